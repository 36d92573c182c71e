//! Days named in a text: `2026-03-31`, `7 May 2023`, `5月7日`, `yesterday`, `先週`.
//!
//! A relative day is resolved when it is written, against the day of its entry;
//! "yesterday" can then be found by its date a year later.

use chrono::{Datelike, Days, Months, NaiveDate};

use super::normalize::fold;

/// The index term of a day.
pub(crate) fn day_term(day: NaiveDate) -> String {
    format!("@{}", day.format("%Y-%m-%d"))
}

/// The index term of a month.
pub(crate) fn month_term(day: NaiveDate) -> String {
    format!("@{}", day.format("%Y-%m"))
}

/// A day, or only its month, that a text speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mention {
    /// A day.
    Day(NaiveDate),
    /// A month; any day of it.
    Month(NaiveDate),
}

impl Mention {
    /// Its index term.
    pub(crate) fn term(self) -> String {
        match self {
            Self::Day(day) => day_term(day),
            Self::Month(day) => month_term(day),
        }
    }

    /// Its last day.
    pub(crate) fn end(self) -> NaiveDate {
        match self {
            Self::Day(day) => day,
            Self::Month(day) => (day + Months::new(1)).with_day(1).and_then(|next| next.pred_opt()).unwrap_or(day),
        }
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The days a text speaks of; relative ones count from `today`.
pub(crate) fn mentions(text: &str, today: Option<NaiveDate>) -> Vec<Mention> {
    let folded = fold(text);
    let mut found = Vec::new();
    numeric(&folded, today, &mut found);
    english(&folded, today, &mut found);
    if let Some(today) = today {
        relative(&folded, today, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// `2026-03-31`, `2026/3/31`, `2026年3月31日`, `3月31日`, `2026年3月`.
fn numeric(text: &str, today: Option<NaiveDate>, found: &mut Vec<Mention>) {
    let tokens = digits(text);
    let mut at = 0;
    while let Some(&(value, width, after)) = tokens.get(at) {
        let next = tokens.get(at + 1).copied();
        let third = tokens.get(at + 2).copied();
        let year_first = width == 4 && matches!(after, Some('-' | '/' | '年'));
        match (year_first, next, third) {
            (true, Some((month, _, Some('-' | '/' | '月'))), Some((day, ..))) if day > 0 => {
                match ymd(value, month, day) {
                    Some(day) => found.push(Mention::Day(day)),
                    None => found.extend(ymd(value, month, 1).map(Mention::Month)),
                }
                at += 3;
            }
            (true, Some((month, ..)), _) if after == Some('年') => {
                found.extend(ymd(value, month, 1).map(Mention::Month));
                at += 2;
            }
            (false, Some((day, _, Some('日'))), _) if after == Some('月') => {
                if let Some(today) = today {
                    found.extend(nearest(value, day, today).map(Mention::Day));
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// Every number with its width and the character right behind it.
fn digits(text: &str) -> Vec<(u32, usize, Option<char>)> {
    let mut found = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(mut value) = c.to_digit(10) else { continue };
        let mut width = 1;
        while let Some(next) = chars.peek().and_then(|c| c.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(next);
            width += 1;
            chars.next();
        }
        found.push((value, width, chars.peek().copied()));
    }
    found
}

/// `7 May 2023`, `May 7, 2023`, `May 7`, `May 2023`.
fn english(text: &str, today: Option<NaiveDate>, found: &mut Vec<Mention>) {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for (at, word) in words.iter().enumerate() {
        let full = MONTHS.iter().position(|month| month == word);
        let short = || MONTHS.iter().position(|month| word.len() >= 3 && word.len() <= 4 && month.starts_with(word));
        let Some(month) = full.or_else(short).and_then(|at| u32::try_from(at + 1).ok()) else { continue };
        let number = |at: Option<usize>| at.and_then(|at| words.get(at)).and_then(|word| ordinal(word));
        let before = number(at.checked_sub(1)).filter(|day| (1..=31).contains(day));
        let after = number(Some(at + 1));
        let year_at = |offset: usize| number(Some(at + offset)).filter(|year| (1900..=2200).contains(year));
        let day = before.or(after.filter(|day| (1..=31).contains(day)));
        let year = year_at(1).or_else(|| year_at(2));
        // "may" is a month only beside a number
        match (day, year) {
            (Some(day), Some(year)) => found.extend(ymd(year, month, day).map(Mention::Day)),
            (None, Some(year)) => found.extend(ymd(year, month, 1).map(Mention::Month)),
            (Some(day), None) => {
                found.extend(today.and_then(|today| nearest(month, day, today)).map(Mention::Day));
            }
            (None, None) => {}
        }
    }
}

/// `7`, `7th`.
fn ordinal(word: &str) -> Option<u32> {
    word.trim_end_matches(|c: char| c.is_ascii_lowercase()).parse().ok()
}

fn ymd(year: u32, month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
}

/// The month and day in the year that brings it closest to `today`.
fn nearest(month: u32, day: u32, today: NaiveDate) -> Option<NaiveDate> {
    [-1, 0, 1]
        .into_iter()
        .filter_map(|shift| NaiveDate::from_ymd_opt(today.year() + shift, month, day))
        .min_by_key(|date| (*date - today).num_days().abs())
}

/// Words for days that depend on when they are said; days before today are negative.
const RELATIVE: &[(&str, i64)] = &[
    ("the day before yesterday", -2),
    ("day after tomorrow", 2),
    ("yesterday", -1),
    ("last night", -1),
    ("tomorrow", 1),
    ("today", 0),
    ("tonight", 0),
    ("一昨日", -2),
    ("おととい", -2),
    ("昨日", -1),
    ("きのう", -1),
    ("昨夜", -1),
    ("明後日", 2),
    ("明日", 1),
    ("今日", 0),
    ("本日", 0),
];

/// Words for weeks and months that depend on when they are said.
const SPANS: &[(&str, Span)] = &[
    ("last week", Span::Days(-7)),
    ("a week ago", Span::Days(-7)),
    ("next week", Span::Days(7)),
    ("先週", Span::Days(-7)),
    ("来週", Span::Days(7)),
    ("last month", Span::Months(-1)),
    ("a month ago", Span::Months(-1)),
    ("next month", Span::Months(1)),
    ("先月", Span::Months(-1)),
    ("来月", Span::Months(1)),
];

#[derive(Debug, Clone, Copy)]
enum Span {
    Days(i64),
    Months(i32),
}

fn relative(text: &str, today: NaiveDate, found: &mut Vec<Mention>) {
    let mut rest = text.to_owned();
    for (word, days) in RELATIVE {
        if rest.contains(word) {
            found.extend(shifted(today, *days).map(Mention::Day));
            // the longer expression is not also the shorter one in it
            rest = rest.replace(word, " ");
        }
    }
    for (word, span) in SPANS {
        if !rest.contains(word) {
            continue;
        }
        match *span {
            Span::Days(days) => {
                // any day of that week
                let monday = shifted(today, days - i64::from(today.weekday().num_days_from_monday()));
                found.extend(
                    monday
                        .into_iter()
                        .flat_map(|monday| (0..7).filter_map(move |day| shifted(monday, day)).map(Mention::Day)),
                );
            }
            Span::Months(months) => {
                let shifted = if months < 0 {
                    today.checked_sub_months(Months::new(months.unsigned_abs()))
                } else {
                    today.checked_add_months(Months::new(months.unsigned_abs()))
                };
                found.extend(shifted.map(Mention::Month));
            }
        }
    }
}

/// Words that say when, without being a day one could look up.
const WHEN: &[&str] = &[
    " ago",
    "weekend",
    "recently",
    "last year",
    "next year",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "last summer",
    "last winter",
    "last spring",
    "last fall",
    "先日",
    "最近",
    "去年",
    "昨年",
    "来年",
    "前に",
    "曜日",
    "週末",
    "今週",
    "今月",
    "今年",
];

/// Whether a text says when something was or will be.
pub(crate) fn is_dated(text: &str) -> bool {
    let folded = fold(text);
    WHEN.iter().any(|word| folded.contains(word))
}

fn shifted(day: NaiveDate, days: i64) -> Option<NaiveDate> {
    if days < 0 {
        day.checked_sub_days(Days::new(days.unsigned_abs()))
    } else {
        day.checked_add_days(Days::new(days.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let today = NaiveDate::from_ymd_opt(2026, 3, 31);
        mentions(text, today).into_iter().map(Mention::term).collect()
    }

    #[test]
    fn days_are_read_in_both_languages() {
        for text in [
            "2026-03-30",
            "30 March 2026",
            "March 30, 2026",
            "2026年3月30日",
            "3月30日",
            "yesterday",
            "昨日の会議",
            "２０２６／３／３０",
        ] {
            assert_eq!(terms(text), ["@2026-03-30"], "{text}");
        }
        assert_eq!(terms("May 2023"), ["@2023-05"]);
        assert_eq!(terms("2023年5月に"), ["@2023-05"]);
        assert_eq!(terms("the day before yesterday"), ["@2026-03-29"]);
        assert_eq!(terms("last week").len(), 7);
        assert_eq!(terms("you may 10 x call, 3/4, 99月99日, 2026-99-99"), ["@2026-05-10"]);
    }
}
