//! BM25 as Lucene has it, over words or over pairs of characters.

use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Words that tell nothing, in English.
const STOP: &str = "a about am an and are as at be been being but by can could did do does doing for from had has have \
                    he her hers him his how i if in into is it its just me my no not of off on or our out she so some \
                    such than that the their them then there these they this those to too up us very was we were what \
                    when where which while who whom whose why will with would you your";

/// What a text is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// Stemmed English words without stop words; pairs of characters of Japanese.
    Stemmed,
    /// Words as they stand; pairs of characters of Japanese.
    Plain,
    /// Pairs of characters of everything.
    Bigrams,
}

/// An index of texts.
#[derive(Debug)]
pub(super) struct Bm25 {
    cutter: Cutter,
    postings: HashMap<String, Vec<(usize, f64)>>,
    count: usize,
}

impl Bm25 {
    pub(super) fn new(texts: &[String], words: Words) -> Self {
        let cutter = Cutter::new(words);
        let mut counts: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let terms = cutter.cut(text);
            lengths.push(terms.len() as f64);
            for term in terms {
                let postings = counts.entry(term).or_default();
                match postings.last_mut() {
                    Some((last, count)) if *last == at => *count += 1.0,
                    _ => postings.push((at, 1.0)),
                }
            }
        }
        let n = texts.len() as f64;
        let mean = (lengths.iter().sum::<f64>() / n.max(1.0)).max(1e-9);
        for postings in counts.values_mut() {
            let df = postings.len() as f64;
            let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
            for (at, count) in postings {
                let length = lengths.get(*at).copied().unwrap_or(mean);
                let norm = K1 * (1.0 - B + B * length / mean);
                *count = idf * *count * (K1 + 1.0) / (*count + norm);
            }
        }
        Self { cutter, postings: counts, count: texts.len() }
    }

    /// The score of every text.
    pub(super) fn scores(&self, question: &str) -> Vec<f64> {
        let mut scores = vec![0.0; self.count];
        for term in self.cutter.cut(question) {
            for (at, weight) in self.postings.get(&term).into_iter().flatten() {
                if let Some(score) = scores.get_mut(*at) {
                    *score += weight;
                }
            }
        }
        scores
    }
}

struct Cutter {
    words: Words,
    stemmer: Stemmer,
}

impl std::fmt::Debug for Cutter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cutter").field("words", &self.words).finish_non_exhaustive()
    }
}

impl Cutter {
    fn new(words: Words) -> Self {
        Self { words, stemmer: Stemmer::create(Algorithm::English) }
    }

    fn cut(&self, text: &str) -> Vec<String> {
        let folded: String = text.nfkc().collect::<String>().to_lowercase();
        if self.words == Words::Bigrams {
            return folded.split(|c: char| !c.is_alphanumeric()).flat_map(pairs).collect();
        }
        let mut terms = Vec::new();
        let class = |c: char| match c {
            'a'..='z' | '0'..='9' | '\'' => 1,
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => 2,
            _ => 0,
        };
        let mut rest = folded.as_str();
        while let Some(first) = rest.chars().next() {
            let kind = class(first);
            let end = rest.find(|c| class(c) != kind).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            rest = after;
            match kind {
                1 => self.word(run, &mut terms),
                2 => terms.extend(pairs(run)),
                _ => {}
            }
        }
        terms
    }

    /// A word up to its apostrophe.
    fn word(&self, run: &str, terms: &mut Vec<String>) {
        // `'tis` and `rock 'n' roll` begin after theirs
        let word = run.trim_start_matches('\'').split('\'').next().unwrap_or_default();
        if word.is_empty() {
            return;
        }
        match self.words {
            Words::Stemmed if STOP.split(' ').any(|stop| stop == word) => {}
            Words::Stemmed => terms.push(self.stemmer.stem(word).into_owned()),
            Words::Plain | Words::Bigrams => terms.push(word.to_owned()),
        }
    }
}

/// Every two characters of a run; a single one is itself.
fn pairs(run: &str) -> Vec<String> {
    let chars: Vec<char> = run.chars().collect();
    match chars.as_slice() {
        [] => Vec::new(),
        [one] => vec![one.to_string()],
        many => many.windows(2).map(|pair| pair.iter().collect()).collect(),
    }
}
