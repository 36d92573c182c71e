//! What somebody wants from `local/recall`, told by the word tables alone.

use animaworks_core::{mode::fnmatch, units::is_cjk};

use super::{
    terms::Terms,
    words::{Tables, Words, fold},
};

/// One thing that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    Greeting,
    Thanks,
    Farewell,
    Who,
    Abilities,
    /// What was done, so many days before today (0 or negative).
    Day(i64),
    /// To be kept, in the speaker's words.
    Remember(String),
    /// Everything else.
    Question(String),
}

/// At most this many questions of one message are answered.
const MAX_QUESTIONS: usize = 3;

/// Reads a message to `name`. Never empty: a message without any word is a question that nothing answers.
pub(super) fn read(message: &str, name: &str) -> Vec<Intent> {
    let tables = Tables::all();
    let message = addressed(message.trim(), name);
    if let Some(fact) = fact(tables, message) {
        return vec![Intent::Remember(fact)];
    }
    let mut intents = Vec::new();
    let mut questions = Vec::new();
    for sentence in sentences(message) {
        for part in parts(tables, addressed(sentence, name)) {
            match part {
                Intent::Question(text) => questions.push(text),
                other if intents.contains(&other) => {}
                other => intents.push(other),
            }
        }
    }
    // of several sentences only those that ask are questions, the rest is told around them
    if questions.iter().any(|text| asks(text)) {
        questions.retain(|text| asks(text));
    } else if questions.len() > 1 {
        questions = vec![questions.join(" ")];
    }
    if !questions.is_empty() {
        // a greeting in front of a question needs no answer of its own
        intents.retain(|intent| !matches!(intent, Intent::Greeting | Intent::Thanks | Intent::Farewell));
    }
    intents.extend(questions.into_iter().take(MAX_QUESTIONS).map(Intent::Question));
    if intents.is_empty() {
        intents.push(Intent::Question(message.to_owned()));
    }
    intents
}

/// The message without being called by name.
fn addressed<'a>(message: &'a str, name: &str) -> &'a str {
    let folded = fold(message);
    let Some(rest) = folded.strip_prefix(&fold(name)) else { return message };
    let rest = ["さん", "ちゃん", "くん", "様"].iter().find_map(|title| rest.strip_prefix(title)).unwrap_or(rest);
    let trimmed = rest.trim_start_matches([',', '、', '。', ':', '!', ' ', '-']);
    // "sakura's birthday" and "さくらの誕生日" speak about, not to
    if trimmed.len() == rest.len() || trimmed.is_empty() {
        return message;
    }
    let skipped = folded.chars().count() - trimmed.chars().count();
    tail(message, skipped)
}

/// Everything behind the first `n` characters.
fn tail(text: &str, n: usize) -> &str {
    text.char_indices().nth(n).and_then(|(at, _)| text.get(at..)).unwrap_or_default()
}

fn sentences(message: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = message.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '。' | '！' | '？' | '!' | '?' | '\n' => !matches!(next, Some('!' | '?' | '！' | '？' | '」' | '"')),
            '.' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            found.extend(message.get(start..end));
            start = end;
        }
    }
    found.extend(message.get(start..));
    found.into_iter().map(str::trim).filter(|sentence| sentence.chars().any(char::is_alphanumeric)).collect()
}

/// What one sentence wants; a sentence of several short wishes is taken apart.
fn parts(tables: &Tables, sentence: &str) -> Vec<Intent> {
    if let Some(intent) = known(tables, sentence) {
        return vec![intent];
    }
    let pieces: Vec<&str> =
        sentence.split([',', '、', '，']).map(str::trim).filter(|piece| !piece.is_empty()).collect();
    if let [first, rest @ ..] = pieces.as_slice()
        && !rest.is_empty()
        && let Some(intent) = known(tables, first)
    {
        let others: Option<Vec<Intent>> = rest.iter().map(|piece| known(tables, without_lead(tables, piece))).collect();
        if let Some(others) = others {
            return std::iter::once(intent).chain(others).collect();
        }
        if matches!(intent, Intent::Greeting | Intent::Thanks) {
            let behind = sentence.get(first.len()..).unwrap_or_default().trim_start_matches([',', '、', '，', ' ']);
            // "Hello, Sakura" names somebody and asks nothing
            if !asks(behind) && behind.chars().count() <= 12 && Terms::of(behind).len() <= 1 {
                return vec![intent];
            }
            return vec![intent, Intent::Question(behind.to_owned())];
        }
    }
    vec![Intent::Question(sentence.to_owned())]
}

/// A sentence that means one of the fixed things.
fn known(tables: &Tables, sentence: &str) -> Option<Intent> {
    let folded = fold(sentence);
    let bare = bare(&folded);
    let listed = |pick: fn(&Words) -> &Vec<String>| {
        tables.both().into_iter().any(|words| pick(words).iter().any(|pattern| fnmatch(pattern, bare)))
    };
    if listed(|words| &words.greetings) {
        return Some(Intent::Greeting);
    }
    if listed(|words| &words.thanks) {
        return Some(Intent::Thanks);
    }
    if listed(|words| &words.farewells) {
        return Some(Intent::Farewell);
    }
    if listed(|words| &words.who) {
        return Some(Intent::Who);
    }
    if listed(|words| &words.abilities) {
        return Some(Intent::Abilities);
    }
    if listed(|words| &words.did_now) {
        return Some(Intent::Day(0));
    }
    day(tables, bare).map(Intent::Day)
}

/// Which day somebody asks the doings of: a day, a word for doing, and nothing else of content.
fn day(tables: &Tables, bare: &str) -> Option<i64> {
    let (offset, name) = named_day(bare)?;
    let rest = bare.replace(name, " ");
    let did = tables.both().into_iter().any(|words| words.did.iter().any(|word| mentions(bare, word)));
    (did && Terms::of(&rest).is_empty()).then_some(offset)
}

/// The day a text names, as days before today.
pub(super) fn day_named(folded: &str) -> Option<i64> {
    named_day(folded).map(|(offset, _)| offset)
}

fn named_day(folded: &str) -> Option<(i64, &'static str)> {
    let days = Tables::all().both().into_iter().flat_map(|words| &words.days);
    // the longest name wins: "the day before yesterday" has "yesterday" in it
    days.flat_map(|(offset, names)| names.iter().map(move |name| (*offset, name.as_str())))
        .filter(|(_, name)| mentions(folded, name))
        .max_by_key(|(_, name)| name.chars().count())
}

/// Whether a text contains a word: as a whole one where words have spaces around them.
pub(super) fn mentions(folded: &str, word: &str) -> bool {
    if word.chars().any(is_cjk) {
        return folded.contains(word);
    }
    let letter = |c: char| c.is_alphanumeric() && !is_cjk(c);
    folded.match_indices(word).any(|(at, found)| {
        let before = folded.get(..at).and_then(|text| text.chars().next_back());
        let behind = folded.get(at + found.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(letter) && !behind.is_some_and(letter)
    })
}

fn asks(text: &str) -> bool {
    text.trim_end().ends_with(['?', '？'])
}

/// A folded sentence without what stands around its words.
fn bare(folded: &str) -> &str {
    folded.trim_matches(|c: char| {
        c.is_whitespace()
            || matches!(c, '.' | ',' | '!' | '?' | '。' | '、' | '~' | '〜' | '…' | '♪' | '"' | '「' | '」')
    })
}

fn without_lead<'a>(tables: &Tables, text: &'a str) -> &'a str {
    let mut text = text.trim_start();
    loop {
        let folded = fold(text);
        let lead = tables
            .both()
            .into_iter()
            .flat_map(|words| &words.leads)
            .filter(|lead| folded.starts_with(lead.as_str()))
            .max_by_key(|lead| lead.len());
        match lead {
            Some(lead) => text = tail(text, lead.chars().count()).trim_start(),
            None => return text,
        }
    }
}

/// What somebody wants kept, in their words.
fn fact(tables: &Tables, message: &str) -> Option<String> {
    let message = message.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '。' | '.' | '!' | '！' | '♪'));
    let asked = asks(message);
    let message = without_lead(tables, message.trim_end_matches(['?', '？']));
    let folded = fold(message);
    let mut best: Option<(usize, &str)> = None;
    for keep in &tables.keeps {
        let Some(inner) =
            folded.strip_prefix(keep.before.as_str()).and_then(|rest| rest.strip_suffix(keep.behind.as_str()))
        else {
            continue;
        };
        let literal = keep.before.chars().count() + keep.behind.chars().count();
        // "remember that …?" can be a polite request; "remember …?" asks
        if asked && keep.behind.is_empty() && !keep.before.ends_with("that ") {
            continue;
        }
        if best.is_none_or(|(most, _)| literal > most) && is_fact(tables, inner) {
            let from = keep.before.chars().count();
            let words: &str = tail(message, from);
            let kept = inner.chars().count();
            let end = words.char_indices().nth(kept).map_or(words.len(), |(at, _)| at);
            best = words.get(..end).map(|words| (literal, words));
        }
    }
    let around = |c: char| c.is_whitespace() || matches!(c, '、' | '。' | ',' | ':' | '：' | '；' | ';');
    best.map(|(_, words)| one_line(words.trim_matches(around)))
}

/// Whether a folded text is something to keep and not a question about keeping.
fn is_fact(tables: &Tables, inner: &str) -> bool {
    let inner = bare(inner);
    let opening = |words: &Words| {
        words.not_facts.iter().any(|opening| {
            inner == opening.trim_end() || (opening.ends_with(' ') && inner.starts_with(opening.as_str()))
        })
    };
    inner.chars().filter(|c| c.is_alphanumeric()).count() >= 2 && !tables.both().into_iter().any(opening)
}

/// A text on one line, so that it is one bullet.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_wanted() {
        let question = |text: &str| vec![Intent::Question(text.to_owned())];
        let remember = |text: &str| vec![Intent::Remember(text.to_owned())];
        for (message, wanted) in [
            ("Hello!", vec![Intent::Greeting]),
            ("こんにちは、さくらさん", vec![Intent::Greeting]),
            ("Sakura, good morning!", vec![Intent::Greeting]),
            ("Thank you so much!", vec![Intent::Thanks]),
            ("who are you?", vec![Intent::Who]),
            ("あなたは誰ですか？", vec![Intent::Who]),
            ("What can you do?", vec![Intent::Abilities]),
            ("何ができますか？", vec![Intent::Abilities]),
            ("Who are you, and what can you do?", vec![Intent::Who, Intent::Abilities]),
            ("what did you do yesterday?", vec![Intent::Day(-1)]),
            ("昨日は何をしましたか？", vec![Intent::Day(-1)]),
            ("What happened the day before yesterday?", vec![Intent::Day(-2)]),
            ("今日は何をしたの？", vec![Intent::Day(0)]),
            ("What did Tanaka do yesterday?", question("What did Tanaka do yesterday?")),
            ("昨日田中さんは何をした？", question("昨日田中さんは何をした？")),
            ("Hi, when is the release?", question("when is the release?")),
            ("Remember that my sister is called Yuki.", remember("my sister is called Yuki")),
            ("Please remember: the door code is 4711", remember("the door code is 4711")),
            ("could you remember that Bob likes tea?", remember("Bob likes tea")),
            ("Do you remember where the key is?", question("Do you remember where the key is?")),
            ("remember where the key is?", question("remember where the key is?")),
            ("Remember me?", question("Remember me?")),
            ("品川駅の南口に鍵を預けたことを覚えておいてください。", remember("品川駅の南口に鍵を預けた")),
            ("妹の名前はユキだと覚えておいてね", remember("妹の名前はユキだ")),
            ("会議は10時から。覚えておいて！", remember("会議は10時から")),
            ("覚えておいて：合言葉は「青い傘」", remember("合言葉は「青い傘」")),
            ("鍵の場所を覚えていますか？", question("鍵の場所を覚えていますか？")),
            ("鍵の場所、覚えてる？", question("鍵の場所、覚えてる？")),
            ("I am at the station. Where is the key?", question("Where is the key?")),
        ] {
            assert_eq!(read(message, "sakura"), wanted, "{message}");
        }
    }
}
