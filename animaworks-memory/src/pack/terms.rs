//! What a piece can be found by, as the two full-text tables have it.
//!
//! Words stand as they are; runs of Japanese, Chinese or Korean stand as pairs of characters and
//! single kanji in the table of words, so that one or two characters are found without reading
//! every text, and as whole runs in the table of trigrams.

use std::collections::HashSet;

use crate::text::normalize::{Script, fold};

/// A question has at most this many parts.
const MOST_TERMS: usize = 32;

/// The text of a piece for both tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Indexed {
    /// Words, pairs and kanji, each once, with spaces between them.
    pub(super) words: String,
    /// Runs without spaces, of three characters and more.
    pub(super) runs: String,
}

/// One part of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    /// A word.
    Word(String),
    /// A run without spaces.
    Run(String),
}

impl Term {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Run(text) => text,
        }
    }

    /// Whether the table of words knows every place of it: pairs and single kanji are all there, a part of a word is not.
    pub(super) fn is_complete(&self) -> bool {
        let Self::Run(run) = self else { return false };
        let mut letters = run.chars();
        letters.next().is_some_and(|first| letters.next().is_some() || Script::of(first) == Script::Han)
    }

    /// The expression that finds it in the table of words.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Word(word) => quoted(word),
            Self::Run(run) => {
                let letters: Vec<char> = run.chars().collect();
                match letters.as_slice() {
                    // a kanji stands by itself; of others only the pairs that begin with it do
                    [one] if Script::of(*one) == Script::Han => quoted(run),
                    [_] => format!("{} *", quoted(run)),
                    _ => joined(letters.windows(2).map(|pair| quoted(&pair.iter().collect::<String>()))),
                }
            }
        }
    }

    /// The expression that finds it in the table of trigrams.
    pub(super) fn in_trigrams(&self) -> Option<String> {
        let Self::Run(run) = self else { return None };
        let letters: Vec<char> = run.chars().collect();
        let parts = letters.windows(3).map(|three| quoted(&three.iter().collect::<String>()));
        (letters.len() >= 3).then(|| joined(parts))
    }
}

/// Expressions that all have to match.
pub(super) fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" AND ")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Every word (`false`) or run (`true`) of a folded text, in order.
fn split(folded: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut open: Option<(usize, bool)> = None;
    for (at, c) in folded.char_indices() {
        let script = Script::of(c);
        let kind = if script == Script::Gap { None } else { Some(script.is_run_on()) };
        if let Some((start, run)) = open
            && kind != Some(run)
        {
            parts.push((folded.get(start..at).unwrap_or_default(), run));
            open = None;
        }
        if open.is_none() {
            open = kind.map(|run| (at, run));
        }
    }
    if let Some((start, run)) = open {
        parts.push((folded.get(start..).unwrap_or_default(), run));
    }
    parts
}

/// What the tables hold of a text.
pub(super) fn indexed(text: &str) -> Indexed {
    let folded = fold(text);
    let mut seen: HashSet<&str> = HashSet::new();
    let mut found = Indexed::default();
    for (part, run) in split(&folded) {
        if !run {
            if seen.insert(part) {
                push(&mut found.words, part);
            }
            continue;
        }
        let mut count = 0;
        let mut before: Option<usize> = None;
        for (at, c) in part.char_indices() {
            let end = at + c.len_utf8();
            if let Some(pair) = before.and_then(|before| part.get(before..end))
                && seen.insert(pair)
            {
                push(&mut found.words, pair);
            }
            if let Some(one) = part.get(at..end)
                && (Script::of(c) == Script::Han || part.len() == c.len_utf8())
                && seen.insert(one)
            {
                push(&mut found.words, one);
            }
            before = Some(at);
            count += 1;
        }
        if count >= 3 {
            push(&mut found.runs, part);
        }
    }
    found
}

fn push(to: &mut String, part: &str) {
    if !to.is_empty() {
        to.push(' ');
    }
    to.push_str(part);
}

/// The different parts of a question, in order.
pub(super) fn question(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for (part, run) in split(&fold(text)) {
        let term = if run { Term::Run(part.to_owned()) } else { Term::Word(part.to_owned()) };
        if terms.len() < MOST_TERMS && !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_two_characters_stand_in_the_table_of_words() {
        let found = indexed("東京駅で会議、Deploy は鍵。");
        for term in ["会議", "鍵", "駅", "deploy", "東京"] {
            assert!(found.words.split(' ').any(|word| word == term), "{term}: {found:?}");
        }
        assert_eq!(found.runs, "東京駅で会議");
        assert_eq!(question("東京駅 deploy"), [Term::Run("東京駅".into()), Term::Word("deploy".into())]);
        assert_eq!(question("東京駅")[0].in_trigrams().unwrap(), "\"東京駅\"");
        assert_eq!(question("a\"b OR *").len(), 3);
    }
}
