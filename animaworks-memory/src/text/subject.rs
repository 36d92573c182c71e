//! What a question is about and what it wants to know: names in it, a moment, a number.

use super::{
    normalize::{Script, fold},
    terms::is_stop,
};

/// What Japanese names are followed by.
const HONORIFICS: &[&str] =
    &["さん", "様", "さま", "氏", "くん", "君", "ちゃん", "先輩", "課長", "部長", "社長", "先生"];

/// The names in a question, folded, in order, each once: what is written with a capital where nothing asks for one,
/// and what somebody is politely called by.
pub(crate) fn names(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let folded = fold(name).into_owned();
        if folded.chars().count() > 1 && !is_stop(&folded) && !found.contains(&folded) {
            found.push(folded);
        }
    };
    let mut begins = true;
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let before = rest.get(..start).unwrap_or_default();
        begins |= before.contains(['.', '!', '?', ':', '\n', '。', '？', '！']);
        rest = rest.get(start..).unwrap_or_default();
        let word_end = rest.find(|c: char| !is_latin(c)).unwrap_or(rest.len());
        if word_end == 0 {
            let run_end = rest.find(|c: char| !c.is_alphanumeric() || is_latin(c)).unwrap_or(rest.len());
            polite(rest.get(..run_end).unwrap_or_default(), &mut add);
            rest = rest.get(run_end..).unwrap_or_default();
            begins = false;
            continue;
        }
        let word = rest.get(..word_end).unwrap_or_default();
        rest = rest.get(word_end..).unwrap_or_default();
        let possessive = ["'s", "’s"].iter().any(|end| rest.starts_with(end));
        let capital = word.chars().next().is_some_and(char::is_uppercase);
        if capital && (!begins || possessive || follows_run_on(rest)) {
            add(word);
        }
        if possessive {
            rest = rest.trim_start_matches(['\'', '’']).strip_prefix('s').unwrap_or(rest);
        }
        begins = false;
    }
    found
}

fn is_latin(c: char) -> bool {
    c.is_alphanumeric() && (c.is_ascii() || Script::of(fold_char(c)) == Script::Word)
}

fn fold_char(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Whether Japanese goes on right behind a word, so that its capital is not that of a sentence.
fn follows_run_on(rest: &str) -> bool {
    rest.chars().next().is_some_and(|c| Script::of(c).is_run_on())
}

/// The names in a run of Japanese: the kanji or katakana before an honorific.
fn polite(run: &str, add: &mut impl FnMut(&str)) {
    for honorific in HONORIFICS {
        for (at, _) in run.match_indices(honorific) {
            let before = run.get(..at).unwrap_or_default();
            let Some(script) = before.chars().next_back().map(Script::of) else { continue };
            if !matches!(script, Script::Han | Script::Katakana) {
                continue;
            }
            let start = before.char_indices().rev().take_while(|(_, c)| Script::of(*c) == script).last();
            if let Some(name) = start.and_then(|(at, _)| before.get(at..)) {
                add(name);
            }
        }
    }
}

/// Whether a text asks something.
pub(crate) fn asks(text: &str) -> bool {
    text.contains(['?', '？']) || text.trim_end().ends_with("か。") || text.trim_end().ends_with('か')
}

/// Whether a text says how many.
pub(crate) fn has_number(text: &str) -> bool {
    const WORDS: &[&str] =
        &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "both", "couple", "few"];
    let folded = fold(text);
    folded.contains(|c: char| c.is_ascii_digit())
        || folded.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word))
        || folded.chars().zip(folded.chars().skip(1)).any(|(number, counter)| {
            "一二三四五六七八九十百千".contains(number) && "つ人本個回度年月日時分枚冊匹台".contains(counter)
        })
}

/// Whether a question asks for a moment.
pub(crate) fn asks_when(question: &str) -> bool {
    const WHEN: &[&str] = &[
        "when ",
        "what date",
        "what day",
        "what month",
        "what year",
        "what time",
        "how long",
        "how many days",
        "how many weeks",
        "how many months",
        "how many years",
        "which month",
        "which year",
        "which day",
        "いつ",
        "何月",
        "何日",
        "何年",
        "何時",
        "何曜",
        "どのくらい前",
    ];
    let folded = fold(question);
    WHEN.iter().any(|word| folded.contains(word))
}

/// Whether a question asks for a number.
pub(crate) fn asks_how_many(question: &str) -> bool {
    const HOW_MANY: &[&str] =
        &["how many", "how much", "how often", "いくつ", "何人", "何回", "何個", "何本", "いくら"];
    let folded = fold(question);
    HOW_MANY.iter().any(|word| folded.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_both_languages() {
        for (question, expected) in [
            ("What is Noriko's desk made of?", vec!["noriko"]),
            ("As of 2025-01-18: Which tool does Otto use?", vec!["otto"]),
            ("Otto's favourite?", vec!["otto"]),
            ("Describe the office", vec![]),
            ("田中さんの席は？", vec!["田中"]),
            ("Ottoの席は？", vec!["otto"]),
            ("2025-01-18の時点では、マリオさんは何を使う？", vec!["マリオ"]),
            ("What is 田中さん's desk?", vec!["田中"]),
            ("何時から？", vec![]),
        ] {
            assert_eq!(names(question), expected, "{question}");
        }
    }

    #[test]
    fn what_is_wanted_is_seen() {
        assert!(asks_when("When did it rain?") && asks_when("いつ届いた？") && !asks_when("Who came?"));
        assert!(asks_how_many("How many boxes?") && asks_how_many("何人来た？"));
        assert!(asks("届きましたか。") && asks("Really?") && !asks("Yes."));
        assert!(has_number("three boxes") && has_number("二つ") && has_number("v2") && !has_number("boxes"));
    }
}
