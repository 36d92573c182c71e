//! The word tables of `local/recall`, one per language, as shipped in `templates/{ja,en}/recall/words.json`.

use std::{collections::BTreeMap, sync::LazyLock};

use animaworks_core::{Locale, templates, units::is_cjk};
use serde::Deserialize;

/// The words of one language.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Words {
    pub(super) greetings: Vec<String>,
    pub(super) thanks: Vec<String>,
    pub(super) farewells: Vec<String>,
    pub(super) who: Vec<String>,
    pub(super) abilities: Vec<String>,
    /// Days back from today (`0`, `-1`, …) and their names.
    pub(super) days: BTreeMap<i64, Vec<String>>,
    /// Words that make a question about a day one about what was done.
    pub(super) did: Vec<String>,
    /// Whole questions about what was done lately.
    pub(super) did_now: Vec<String>,
    /// Polite openings that mean nothing here.
    pub(super) leads: Vec<String>,
    verbs: Vec<String>,
    tails: Vec<String>,
    remember: Vec<String>,
    /// Openings of a "fact" that is none.
    pub(super) not_facts: Vec<String>,
    noise: Vec<String>,
    light: Vec<String>,
    alike: Vec<Vec<String>>,
    pub(super) cues: Vec<Cue>,
}

/// What a question word looks for in an answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Cue {
    pub(super) asked: Vec<String>,
    /// Words an answer shows; `#` is any digit.
    pub(super) shown: Vec<String>,
}

/// A way to say "remember": what stands before the fact and what stands behind it.
#[derive(Debug)]
pub(super) struct Keep {
    pub(super) before: String,
    pub(super) behind: String,
}

/// Both languages, ready to use.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) ja: Words,
    pub(super) en: Words,
    pub(super) keeps: Vec<Keep>,
    /// Longest first.
    noise_phrases: Vec<String>,
    noise_words: Vec<String>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let (ja, en) = (load(Locale::Ja), load(Locale::En));
    let keeps = [&ja, &en].into_iter().flat_map(keeps).collect();
    let mut noise_phrases = Vec::new();
    let mut noise_words = Vec::new();
    for word in ja.noise.iter().chain(&en.noise) {
        if word.chars().any(is_cjk) { noise_phrases.push(word.clone()) } else { noise_words.push(word.clone()) }
    }
    noise_phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.chars().count()));
    Tables { ja, en, keeps, noise_phrases, noise_words }
});

fn load(locale: Locale) -> Words {
    let page = templates::find(locale, "recall/words.json").unwrap_or("{}");
    serde_json::from_str(page).unwrap_or_else(|error| {
        // a test reads both pages; a broken one understands questions only
        tracing::error!(%error, %locale, "recall/words.json cannot be read");
        Words::default()
    })
}

fn keeps(words: &Words) -> Vec<Keep> {
    let mut all = Vec::new();
    for pattern in &words.remember {
        for verb in &words.verbs {
            for tail in &words.tails {
                let filled = pattern.replace("{verb}", verb).replace("{tail}", tail);
                if let Some((before, behind)) = filled.split_once("{fact}") {
                    all.push(Keep { before: before.to_owned(), behind: behind.to_owned() });
                }
                if !pattern.contains("{tail}") {
                    break;
                }
            }
        }
    }
    all
}

impl Tables {
    /// The tables; read on first use.
    pub(super) fn all() -> &'static Self {
        &TABLES
    }

    /// Both languages.
    pub(super) fn both(&self) -> [&Words; 2] {
        [&self.ja, &self.en]
    }

    /// Whether a word of a language with spaces carries no content.
    pub(super) fn is_noise(&self, word: &str) -> bool {
        self.noise_words.iter().any(|noise| noise == word)
    }

    /// Cuts phrases without content out of a folded text; what stood around them stays apart.
    pub(super) fn without_noise(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for phrase in &self.noise_phrases {
            if text.contains(phrase.as_str()) {
                text = text.replace(phrase.as_str(), "\u{1f}");
            }
        }
        text
    }

    /// Whether a content word says little by itself.
    pub(super) fn is_light(&self, word: &str) -> bool {
        self.both().iter().any(|words| words.light.iter().any(|light| light == word))
    }

    /// Other words for the same thing.
    pub(super) fn alike(&self, word: &str) -> Vec<&str> {
        let groups = self.both().into_iter().flat_map(|words| &words.alike);
        let same = groups.filter(|group| group.iter().any(|other| other == word));
        same.flatten().map(String::as_str).filter(|other| *other != word).collect()
    }
}

/// Folds a text for comparison, character by character: the result has as many characters as the text.
///
/// Lower case, half-width ASCII, straight apostrophes, one kind of space, colon and question mark.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .map(|c| {
            let c = match c {
                '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
                '\u{2019}' | '\u{2018}' | '\u{2bc}' => '\'',
                c if c.is_whitespace() => ' ',
                c => c,
            };
            let mut lower = c.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(one), None) => one,
                _ => c,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_pages_can_be_read() {
        for locale in Locale::ALL {
            let page = templates::find(locale, "recall/words.json").unwrap();
            let words: Words = serde_json::from_str(page).unwrap();
            assert!(!words.greetings.is_empty() && !words.cues.is_empty(), "{locale}");
        }
        let japanese: Words = serde_json::from_str(templates::find(Locale::Ja, "recall/words.json").unwrap()).unwrap();
        assert!(japanese.greetings.iter().any(|word| word == "こんにちは"));
    }

    #[test]
    fn folding_keeps_the_number_of_characters() {
        for text in ["Ｈｅｌｌｏ　World’s", "İstanbul ß", "鍵は？：１０時"] {
            assert_eq!(fold(text).chars().count(), text.chars().count(), "{text}");
        }
        assert_eq!(fold("１０時：ＯＫ？"), "10時:ok?");
    }
}
