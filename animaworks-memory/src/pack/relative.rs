//! Days that are named from today: they mean nothing a month later, so they are not stored.

use chrono::{Days, NaiveDate};

use crate::{chunk::markdown::Fence, text::normalize::fold};

/// The words, and how many days from today they mean when they mean one day.
const WORDS: &[(&str, Option<i64>)] = &[
    ("day before yesterday", Some(-2)),
    ("day after tomorrow", Some(2)),
    ("yesterday", Some(-1)),
    ("today", Some(0)),
    ("tonight", Some(0)),
    ("this morning", Some(0)),
    ("tomorrow", Some(1)),
    ("last week", None),
    ("this week", None),
    ("next week", None),
    ("last month", None),
    ("this month", None),
    ("next month", None),
    ("last year", None),
    ("next year", None),
    ("days ago", None),
    ("weeks ago", None),
    ("months ago", None),
    ("一昨日", Some(-2)),
    ("おととい", Some(-2)),
    ("明後日", Some(2)),
    ("あさって", Some(2)),
    ("昨日", Some(-1)),
    ("昨夜", Some(-1)),
    ("昨晩", Some(-1)),
    ("今日", Some(0)),
    ("本日", Some(0)),
    ("今朝", Some(0)),
    ("今夜", Some(0)),
    ("明日", Some(1)),
    ("先週", None),
    ("今週", None),
    ("来週", None),
    ("先月", None),
    ("今月", None),
    ("来月", None),
    ("去年", None),
    ("昨年", None),
    ("来年", None),
    ("日前", None),
    ("週間前", None),
    ("か月前", None),
    ("ヶ月前", None),
];

/// The first such word outside code, and the day it means.
pub(super) fn first(text: &str, today: NaiveDate) -> Option<(&'static str, Option<NaiveDate>)> {
    let mut fence = Fence::default();
    let lines = text.lines().filter(|line| !fence.inside(line));
    let prose: Vec<String> = lines.map(without_code).collect();
    let folded = fold(&prose.join("\n")).into_owned();
    let (word, days) = WORDS.iter().find(|(word, _)| has_word(&folded, word))?;
    Some((word, days.and_then(|days| shifted(today, days))))
}

fn has_word(text: &str, word: &str) -> bool {
    if !word.is_ascii() {
        return text.contains(word);
    }
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    text.match_indices(word).any(|(at, found)| {
        let (before, after) = text.split_at(at);
        !letter(before.chars().next_back()) && !letter(after.chars().nth(found.chars().count()))
    })
}

/// A line without what stands between back quotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

fn shifted(day: NaiveDate, days: i64) -> Option<NaiveDate> {
    let span = Days::new(days.unsigned_abs());
    if days < 0 { day.checked_sub_days(span) } else { day.checked_add_days(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_days_are_seen_in_both_languages() {
        let today: NaiveDate = "2026-06-12".parse().unwrap();
        assert_eq!(first("昨日の決定", today), Some(("昨日", "2026-06-11".parse().ok())));
        assert_eq!(first("We moved it Yesterday.", today), Some(("yesterday", "2026-06-11".parse().ok())));
        assert_eq!(first("来週の火曜", today), Some(("来週", None)));
        assert_eq!(first("`today()` returns a day, todayish too\n```\nyesterday\n```\n", today), None);
        assert_eq!(first("2026-06-11 に決めた", today), None);
    }
}
