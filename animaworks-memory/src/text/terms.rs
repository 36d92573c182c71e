//! Search terms: what a text can be found by.
//!
//! Words with spaces between them are stemmed (English), and their surface form is
//! kept beside the stem; runs of Japanese become character bigrams, single kanji with
//! a low weight, and katakana words as a whole. One function makes the terms of
//! documents and of questions, so nothing can be written that cannot be found.

use std::{cell::RefCell, collections::HashMap};

use rust_stemmers::{Algorithm, Stemmer};

use super::normalize::{Script, fold};

/// The longest word that is indexed, in characters.
const MAX_WORD: usize = 40;
/// A question has at most this many different terms; longer ones are cut.
pub(crate) const MAX_QUERY_TERMS: usize = 128;

/// What sort of term it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A stemmed word.
    Word,
    /// A word as it was written, where the stem differs.
    Surface,
    /// Two neighbouring characters of a run.
    Bigram,
    /// One kanji within a run.
    Kanji,
    /// A character that stands alone.
    Single,
    /// A whole katakana word.
    Run,
    /// A day or a month.
    Date,
}

impl TermKind {
    /// How much a match of it says.
    pub(crate) fn weight(self) -> f32 {
        match self {
            Self::Word | Self::Bigram | Self::Single => 1.0,
            Self::Surface => 0.25,
            Self::Kanji => 0.3,
            Self::Run => 0.5,
            Self::Date => 1.5,
        }
    }

    /// Whether it counts towards the length of a document; the others only repeat what these say.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Word | Self::Bigram | Self::Single)
    }
}

/// Words that carry no meaning in a search.
const STOP: &[&str] = &[
    "a", "about", "am", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "did",
    "do", "does", "doing", "for", "from", "had", "has", "have", "he", "her", "hers", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "me", "my", "no", "not", "of", "off", "on", "or", "our", "out", "she",
    "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "up", "us", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "would", "you", "your",
];

/// Whether a folded word carries no meaning in a search.
pub(crate) fn is_stop(word: &str) -> bool {
    STOP.contains(&word)
}

thread_local! {
    static ENGLISH: Stemmer = Stemmer::create(Algorithm::English);
    static SCRATCH: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls `emit` with every term of a text, repeats included, in order.
pub(crate) fn each_term(text: &str, emit: &mut dyn FnMut(&str, TermKind)) {
    let folded = fold(text);
    let text: &str = &folded;
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let script = Script::of(c);
        if script == Script::Gap {
            continue;
        }
        let run_on = script.is_run_on();
        let mut end = start + c.len_utf8();
        while let Some(&(at, next)) = chars.peek() {
            let next_script = Script::of(next);
            let joined = if run_on {
                next_script.is_run_on()
            } else {
                next_script == Script::Word || (is_joiner(next) && continues(text, at + next.len_utf8()))
            };
            if !joined {
                break;
            }
            end = at + next.len_utf8();
            chars.next();
        }
        let run = text.get(start..end).unwrap_or_default();
        if run_on { run_terms(run, emit) } else { compound_terms(run, emit) }
    }
}

fn is_joiner(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | '@' | '\'' | '’')
}

/// Whether a word goes on at this place.
fn continues(text: &str, at: usize) -> bool {
    text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(|c| Script::of(c) == Script::Word)
}

/// Bigrams, single kanji, and whole katakana words of a run without spaces.
fn run_terms(run: &str, emit: &mut dyn FnMut(&str, TermKind)) {
    let mut previous: Option<usize> = None;
    let mut katakana: Option<(usize, usize)> = None;
    let mut count = 0_usize;
    for (at, c) in run.char_indices() {
        let script = Script::of(c);
        let end = at + c.len_utf8();
        if let Some(bigram) = previous.and_then(|before| run.get(before..end)) {
            emit(bigram, TermKind::Bigram);
        }
        if script == Script::Han && run.len() > c.len_utf8() {
            emit(run.get(at..end).unwrap_or_default(), TermKind::Kanji);
        }
        katakana = match (script, katakana) {
            (Script::Katakana, Some((start, length))) => Some((start, length + 1)),
            (Script::Katakana, None) => Some((at, 1)),
            (_, open) => {
                katakana_term(run, open, at, emit);
                None
            }
        };
        previous = Some(at);
        count += 1;
    }
    katakana_term(run, katakana, run.len(), emit);
    if count == 1 {
        emit(run, TermKind::Single);
    }
}

fn katakana_term(run: &str, open: Option<(usize, usize)>, end: usize, emit: &mut dyn FnMut(&str, TermKind)) {
    if let Some((start, length)) = open
        && (3..=MAX_WORD).contains(&length)
        && let Some(word) = run.get(start..end)
    {
        emit(word, TermKind::Run);
    }
}

/// The parts of `e-mail`, `v1.2` or `KEY_0002`, and the whole without its joints.
fn compound_terms(run: &str, emit: &mut dyn FnMut(&str, TermKind)) {
    let mut parts = 0_usize;
    for part in run.split(['-', '_', '.', '@']) {
        parts += 1;
        let alone = parts == 1 && part.len() == run.len();
        word_terms(part, alone, emit);
    }
    if (2..=4).contains(&parts) && run.len() <= MAX_WORD {
        SCRATCH.with_borrow_mut(|whole| {
            whole.clear();
            whole.extend(run.chars().filter(|c| !is_joiner(*c)));
            ENGLISH.with(|stemmer| emit(&stemmer.stem(whole), TermKind::Word));
        });
    }
}

fn word_terms(word: &str, alone: bool, emit: &mut dyn FnMut(&str, TermKind)) {
    // it's, they're: the part before the apostrophe is the word
    let word = word.split(['\'', '’']).next().unwrap_or_default();
    let length = word.chars().count();
    if length == 0 || length > MAX_WORD || is_stop(word) {
        return;
    }
    if length == 1 && !alone && word.chars().all(|c| c.is_ascii_lowercase()) {
        return;
    }
    if !word.is_ascii() || word.bytes().any(|byte| byte.is_ascii_digit()) {
        emit(word, TermKind::Word);
        return;
    }
    ENGLISH.with(|stemmer| {
        let stem = stemmer.stem(word);
        emit(&stem, TermKind::Word);
        if stem != word {
            SCRATCH.with_borrow_mut(|surface| {
                surface.clear();
                surface.push('=');
                surface.push_str(word);
                emit(surface, TermKind::Surface);
            });
        }
    });
}

/// The terms of a document with how often each occurs, and its length.
#[derive(Debug, Default)]
pub(crate) struct TermCounts {
    /// How often each term occurs.
    pub(crate) counts: HashMap<Box<str>, u32>,
    /// The length, counted in terms that do not repeat others.
    pub(crate) length: u32,
}

impl TermCounts {
    /// Adds the terms of a text.
    pub(crate) fn add(&mut self, text: &str) {
        each_term(text, &mut |term, kind| {
            if kind.counts() {
                self.length += 1;
            }
            match self.counts.get_mut(term) {
                Some(count) => *count += 1,
                None => {
                    self.counts.insert(term.into(), 1);
                }
            }
        });
    }

    /// Adds a day or a month.
    pub(crate) fn add_date(&mut self, date: &str) {
        *self.counts.entry(date.into()).or_insert(0) += 1;
    }
}

/// One term of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryTerm {
    /// The key in the index.
    pub(crate) key: String,
    /// How much a match says.
    pub(crate) weight: f32,
    /// What sort of term it is.
    pub(crate) kind: TermKind,
}

/// The different terms of a question, in order of appearance; the most telling kinds first when there are too many.
pub(crate) fn query_terms(text: &str) -> Vec<QueryTerm> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut terms: Vec<QueryTerm> = Vec::new();
    each_term(text, &mut |term, kind| {
        if let Some(&at) = seen.get(term) {
            if let Some(known) = terms.get_mut(at)
                && kind.weight() > known.weight
            {
                known.weight = kind.weight();
                known.kind = kind;
            }
            return;
        }
        if terms.len() < 4 * MAX_QUERY_TERMS {
            seen.insert(term.to_owned(), terms.len());
            terms.push(QueryTerm { key: term.to_owned(), weight: kind.weight(), kind });
        }
    });
    if terms.len() > MAX_QUERY_TERMS {
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        terms.truncate(MAX_QUERY_TERMS);
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        query_terms(text).into_iter().map(|term| term.key).collect()
    }

    #[test]
    fn a_kanji_is_found_inside_a_run() {
        let counts = {
            let mut counts = TermCounts::default();
            counts.add("品川駅の南口に鍵を預けた");
            counts
        };
        for query in ["鍵", "品川駅", "駅", "南口"] {
            assert!(keys(query).iter().all(|key| counts.counts.contains_key(key.as_str())), "{query}");
        }
        assert_eq!(counts.length, 11);
    }

    #[test]
    fn english_words_meet_in_their_stem() {
        assert_eq!(keys("Deployed the servers"), ["deploy", "=deployed", "server", "=servers"]);
        assert_eq!(keys("it's what they're"), Vec::<String>::new());
        assert_eq!(keys("e-mail"), ["mail", "email"]);
        assert_eq!(keys("email"), ["email"]);
        assert_eq!(keys("KEY-000002"), ["key", "000002", "key000002"]);
    }

    #[test]
    fn hostile_text_is_only_text() {
        for text in ["\" OR * NEAR(", "🦀🦀", "", "....", "-", "'", "a'", "\u{0}"] {
            keys(text);
        }
        assert!(query_terms(&"会議室の鍵deploy ".repeat(2000)).len() <= MAX_QUERY_TERMS);
    }
}
