//! Stops models that go round in circles.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use animaworks_core::{tool::Effect, units::is_cjk};
use serde_json::Value;

/// Identical calls in a row before a reminder, and before the end.
const ROW_REMIND: usize = 3;
const ROW_HALT: usize = 5;
/// How many calls are looked back on, and how many of them may be the same.
const WINDOW: usize = 20;
const WINDOW_REMIND: usize = 8;
const WINDOW_HALT: usize = 12;
/// A full window with no more different calls than this is a circle too.
const WINDOW_VARIETY: usize = 3;

/// What to do about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Nothing.
    Go,
    /// Tell the model.
    Remind,
    /// No more tools.
    Halt,
}

/// Watches the calls of a turn. A call repeats only when its result does: trying
/// again after a different failure, or until something changes, is honest work.
#[derive(Debug, Default)]
pub(super) struct Runaway {
    recent: VecDeque<u64>,
}

impl Runaway {
    /// Takes a call with its result.
    pub(super) fn saw(&mut self, name: &str, args: &Value, effect: Option<Effect>, result: &str) -> Verdict {
        let mut hasher = DefaultHasher::new();
        (name, canonical(args), result).hash(&mut hasher);
        let signature = hasher.finish();
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(signature);
        let row = self.recent.iter().rev().take_while(|other| **other == signature).count();
        let same = self.recent.iter().filter(|other| **other == signature).count();
        let mut different: Vec<u64> = self.recent.iter().copied().collect();
        different.sort_unstable();
        different.dedup();
        // looking again harms nobody, so waiting for a change gets the longer leash
        let patient = effect == Some(Effect::Reads);
        if (row >= ROW_HALT && !patient)
            || same >= WINDOW_HALT
            || (self.recent.len() == WINDOW && different.len() <= WINDOW_VARIETY)
        {
            Verdict::Halt
        } else if row == ROW_REMIND || same == WINDOW_REMIND {
            Verdict::Remind
        } else {
            Verdict::Go
        }
    }
}

/// JSON with sorted keys, so that equal arguments are equal texts.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<_> = object.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            let parts: Vec<_> = keys.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// The length of a phrase in words, how often one may come, and after how many words we look.
const PHRASE: usize = 10;
const MAX_REPEATS: u32 = 10;
const REPEATS_AFTER: usize = 100;
/// How many words are looked back on.
const MEMORY: usize = 600;

/// Watches a streamed text. A word is a run of letters and digits, or one CJK character.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    word: u64,
    in_word: bool,
    words: VecDeque<u64>,
    phrases: VecDeque<u64>,
    counts: HashMap<u64, u32>,
    seen: usize,
}

impl Repetition {
    /// Takes the next piece; whether the text goes round in circles.
    pub(super) fn saw(&mut self, text: &str) -> bool {
        let mut circling = false;
        for c in text.chars() {
            let letter = c.is_alphanumeric();
            if letter && !is_cjk(c) {
                self.word = mix(self.word, u64::from(u32::from(c)));
                self.in_word = true;
                continue;
            }
            if std::mem::take(&mut self.in_word) {
                circling |= self.end_word();
            }
            if letter {
                self.word = mix(0, u64::from(u32::from(c)));
                circling |= self.end_word();
            }
        }
        circling
    }

    fn end_word(&mut self) -> bool {
        self.words.push_back(std::mem::take(&mut self.word));
        self.seen += 1;
        if self.words.len() > PHRASE {
            self.words.pop_front();
        }
        if self.words.len() < PHRASE {
            return false;
        }
        let phrase = self.words.iter().fold(0, |hash, word| mix(hash, *word));
        self.phrases.push_back(phrase);
        if self.phrases.len() > MEMORY
            && let Some(old) = self.phrases.pop_front()
            && let Some(count) = self.counts.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&old);
            }
        }
        let count = self.counts.entry(phrase).or_default();
        *count += 1;
        self.seen > REPEATS_AFTER && *count >= MAX_REPEATS
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn worst(calls: impl IntoIterator<Item = (&'static str, Effect, String)>) -> Verdict {
        let mut guard = Runaway::default();
        let calls = calls.into_iter();
        let verdicts =
            calls.map(|(what, effect, result)| guard.saw("tool", &json!({"what": what}), Some(effect), &result));
        verdicts.max().unwrap()
    }

    #[test]
    fn two_calls_that_alternate_are_stopped() {
        let calls = (0..40).map(|n| (if n % 2 == 0 { "a" } else { "b" }, Effect::Reads, "same".to_owned()));
        assert_eq!(worst(calls), Verdict::Halt);
    }

    #[test]
    fn honest_retries_and_polls_are_not() {
        let retries = (0..3).map(|n| ("a", Effect::Acts, format!("error {n}")));
        assert_eq!(worst(retries), Verdict::Go);
        let poll = (0..9).map(|n| ("a", Effect::Reads, if n < 8 { "waiting" } else { "ready" }.to_owned()));
        assert_eq!(worst(poll), Verdict::Remind);
    }

    #[test]
    fn the_same_deed_five_times_is_stopped_whatever_the_order_of_its_arguments() {
        let mut guard = Runaway::default();
        let verdicts: Vec<_> = (0..5)
            .map(|n| {
                let args = if n % 2 == 0 { json!({"a": 1, "b": 2}) } else { json!({"b": 2, "a": 1}) };
                guard.saw("write", &args, Some(Effect::Remembers), "ok")
            })
            .collect();
        assert_eq!(verdicts, [Verdict::Go, Verdict::Go, Verdict::Remind, Verdict::Go, Verdict::Halt]);
    }

    #[test]
    fn a_text_in_circles_is_noticed_and_a_long_one_is_not() {
        let mut guard = Repetition::default();
        assert!((0..40).any(|_| guard.saw("And then we go on to the next of the many steps. ")));
        let mut guard = Repetition::default();
        assert!((0..40).any(|_| guard.saw("そして次の手順に進みます。それから")));
        let mut guard = Repetition::default();
        assert!(!(0..2000).any(|n| guard.saw(&format!("row {n} has the value {} and that is fine. ", n * 7))));
    }
}
