//! The content of a question, and how much of it a passage covers.

use std::{collections::BTreeSet, sync::LazyLock};

use animaworks_core::units::is_cjk;
use rust_stemmers::{Algorithm, Stemmer};

use super::words::{Tables, fold};

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// A word that says little by itself, such as "name".
const LIGHT: f32 = 0.6;
/// How much of a light word is covered by a line that looks like its answer.
const SHOWN: f32 = 0.7;

/// The content words of a question.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Terms(Vec<Term>);

#[derive(Debug, Clone, PartialEq)]
struct Term {
    word: String,
    weight: f32,
    forms: Vec<Form>,
}

#[derive(Debug, Clone, PartialEq)]
enum Form {
    /// A stem, compared with whole words.
    Stem(String),
    /// Pieces of a run of characters, looked for anywhere; the first is the whole run.
    Run(Vec<String>),
}

/// A passage, ready to be compared.
#[derive(Debug)]
pub(super) struct Passage {
    folded: String,
    stems: BTreeSet<String>,
}

impl Passage {
    pub(super) fn new(text: &str) -> Self {
        let folded = fold(text);
        let stems = words(&folded).map(stem).collect();
        Self { folded, stems }
    }

    pub(super) fn folded(&self) -> &str {
        &self.folded
    }
}

impl Terms {
    /// Takes a question apart.
    pub(super) fn of(question: &str) -> Self {
        let tables = Tables::all();
        let folded = fold(question);
        let rest = tables.without_noise(&folded);
        let mut found: Vec<Term> = Vec::new();
        let mut add = |word: String, form: Form| {
            if found.iter().any(|term| term.word == word) {
                return;
            }
            let mut forms = vec![form];
            forms.extend(tables.alike(&word).into_iter().map(form_of));
            let weight = if tables.is_light(&word) { LIGHT } else { 1.0 };
            found.push(Term { word, weight, forms });
        };
        for word in words(&rest) {
            let short = word.chars().count() < 2 && !word.chars().all(|c| c.is_ascii_digit());
            if !short && !tables.is_noise(word) {
                add(word.to_owned(), Form::Stem(stem(word)));
            }
        }
        for run in runs(&rest) {
            add(run.clone(), form_of(&run));
        }
        Self(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The words alone, for a second search.
    pub(super) fn joined(&self) -> String {
        self.0.iter().map(|term| term.word.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// How much of the question a passage covers, and how much with what stands around it:
    /// `around` gives passages and how much a word found only there counts. `shown` covers light words.
    pub(super) fn coverage(&self, line: &Passage, around: &[(&Passage, f32)], shown: bool) -> Coverage {
        let mut whole = 0.0;
        let (mut own, mut all) = (0.0, 0.0);
        let mut named = false;
        for term in &self.0 {
            let mut here = term.found_in(line);
            if term.weight < 1.0 {
                named |= here > 0.99;
                if shown {
                    here = here.max(SHOWN);
                }
            }
            let there = around.iter().map(|(passage, counts)| term.found_in(passage) * counts).fold(here, f32::max);
            whole += term.weight;
            own += term.weight * here;
            all += term.weight * there;
        }
        if whole == 0.0 { Coverage::default() } else { Coverage { own: own / whole, all: all / whole, named } }
    }
}

/// Shares of a question, from 0 to 1.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Coverage {
    /// By the line itself.
    pub(super) own: f32,
    /// By the line and what stands around it.
    pub(super) all: f32,
    /// Whether the line has the very light word that was asked for, such as "name".
    pub(super) named: bool,
}

impl Term {
    fn found_in(&self, passage: &Passage) -> f32 {
        let found = self.forms.iter().map(|form| match form {
            Form::Stem(stem) => f32::from(u8::from(passage.stems.contains(stem))),
            Form::Run(pieces) => match pieces.split_first() {
                Some((whole, _)) if passage.folded.contains(whole.as_str()) => 1.0,
                Some((_, parts)) if !parts.is_empty() => {
                    let hits = parts.iter().filter(|part| passage.folded.contains(part.as_str())).count();
                    hits as f32 / parts.len() as f32
                }
                _ => 0.0,
            },
        });
        found.fold(0.0, f32::max)
    }
}

fn form_of(word: &str) -> Form {
    if !word.chars().any(is_cjk) {
        return Form::Stem(stem(word));
    }
    let chars: Vec<char> = word.chars().collect();
    let mut pieces = vec![word.to_owned()];
    if chars.len() > 2 && chars.iter().all(|c| is_kanji(*c)) {
        pieces.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
    }
    Form::Run(pieces)
}

/// Words of scripts that put spaces between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() || is_cjk(c)).filter(|word| !word.is_empty())
}

fn stem(word: &str) -> String {
    STEMMER.stem(word).into_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Kanji,
    Katakana,
    Hiragana,
    Other,
}

fn is_kanji(c: char) -> bool {
    matches!(c, '々' | '〆' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn script(c: char) -> Script {
    match c {
        c if is_kanji(c) => Script::Kanji,
        '\u{30a1}'..='\u{30fa}' | 'ー' | '\u{ff66}'..='\u{ff9f}' => Script::Katakana,
        '\u{3041}'..='\u{3096}' => Script::Hiragana,
        _ => Script::Other,
    }
}

/// Runs of kanji, of katakana, and of hiragana that are words of their own.
fn runs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = String::new();
    let mut of = Script::Other;
    let mut before = Script::Other;
    for c in text.chars().chain(std::iter::once('\u{1f}')) {
        let next = script(c);
        if next != of {
            match of {
                Script::Kanji => found.push(std::mem::take(&mut open)),
                Script::Katakana => {
                    let run = open.trim_end_matches('ー');
                    if run.chars().count() >= 2 {
                        found.push(run.to_owned());
                    }
                }
                // behind a kanji it is an ending, and short ones are particles
                Script::Hiragana if !matches!(before, Script::Kanji | Script::Katakana) => {
                    let run =
                        open.trim_end_matches(['は', 'が', 'を', 'に', 'の', 'で', 'と', 'も', 'へ', 'か', 'ね', 'よ']);
                    if run.chars().count() >= 3 {
                        found.push(run.to_owned());
                    }
                }
                Script::Hiragana | Script::Other => {}
            }
            open.clear();
            before = of;
            of = next;
        }
        open.push(c);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(question: &str) -> String {
        Terms::of(question).joined()
    }

    #[test]
    fn keeps_what_a_question_is_about() {
        for (question, wanted) in [
            ("what is my sister's name?", "sister name"),
            ("鍵はどこ？", "鍵"),
            ("明日の会議は何時からですか？", "会議"),
            ("東京駅のロッカーの番号を教えて", "東京駅 ロッカ 番号"),
            ("田中さんの電話番号は？", "田中 電話番号"),
            ("When is the release?", "release"),
            ("さくらの誕生日はいつ？", "さくら 誕生日"),
            ("why?", ""),
        ] {
            assert_eq!(words_of(question), wanted, "{question}");
        }
    }

    #[test]
    fn covers_by_stem_by_run_and_by_other_words() {
        let share = |question: &str, text: &str| Terms::of(question).coverage(&Passage::new(text), &[], false).own;
        assert!(share("what is my sister's name?", "my sister is called Yuki") > 0.99);
        assert!(share("鍵はどこ？", "品川駅の南口に鍵を預けた") > 0.99);
        assert!(share("東京駅の鍵はどこ？", "品川駅の南口に鍵を預けた") < 0.6);
        assert!(share("what is my brother's name?", "my sister is called Yuki") < 0.5);
    }
}
