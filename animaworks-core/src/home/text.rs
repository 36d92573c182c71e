//! Cutting text by characters, and reading fields that other versions wrote loosely.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The first `max` characters.
pub fn head(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((at, _)) => text.get(..at).unwrap_or_default(),
        None => text,
    }
}

/// The last `max` characters.
pub fn tail(text: &str, max: usize) -> &str {
    let skip = text.chars().count().saturating_sub(max);
    match text.char_indices().nth(skip) {
        Some((at, _)) => text.get(at..).unwrap_or_default(),
        None => "",
    }
}

/// The first `max` characters, with `...` behind them when something is missing.
pub fn clip(text: &str, max: usize) -> String {
    let kept = head(text, max);
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept}...") }
}

/// All on one line.
pub fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `{name}.{suffix}` beside a file, with a number when that is taken.
pub(super) fn free_name(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let first = path.with_file_name(format!("{name}.{suffix}"));
    if fs_err::symlink_metadata(&first).is_err() {
        return first;
    }
    (1_u32..10_000)
        .map(|n| path.with_file_name(format!("{name}.{suffix}.{n}")))
        .find(|path| fs_err::symlink_metadata(path).is_err())
        .unwrap_or(first)
}

/// A value as text: a string as it is, nothing for null, anything else as JSON.
pub(super) fn stringify(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Takes a text field out of a record, whatever it was written as.
pub(super) fn take(map: &mut Map<String, Value>, key: &str) -> String {
    map.shift_remove(key).map(stringify).unwrap_or_default()
}

/// For serde: a text, whatever it was written as.
pub(super) fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Value::deserialize(deserializer).map(stringify)
}

/// For serde: a list; null is an empty one and a single thing is a list of it.
pub(super) fn lenient_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => Vec::new(),
        Value::Array(items) => items.into_iter().map(stringify).collect(),
        other => vec![stringify(other)],
    })
}

/// For serde: a count; anything that is none is zero.
pub(super) fn lenient_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default().max(0.0) as u64),
        Value::String(text) => text.trim().parse().unwrap_or_default(),
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_by_characters() {
        assert_eq!(head("会議は十時", 2), "会議");
        assert_eq!(tail("会議は十時", 2), "十時");
        assert_eq!(tail("会議", 9), "会議");
        assert_eq!(tail("会議", 0), "");
        assert_eq!(clip("会議は", 2), "会議...");
        assert_eq!(clip("会議", 2), "会議");
        assert_eq!(one_line("a\r\n\n  b "), "a b");
    }
}
