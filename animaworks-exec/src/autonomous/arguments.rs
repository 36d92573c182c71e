//! Reads the arguments of a call, and mends them where there is only one way to.

use serde_json::{Map, Value};

/// The arguments as an object.
///
/// # Errors
///
/// Says in English why they are not one.
pub(super) fn read(raw: &str) -> Result<Value, String> {
    let text = raw.trim();
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let problem = match serde_json::from_str(text) {
        Ok(value) => return object(value),
        Err(error) => error.to_string(),
    };
    let bare = unfenced(text);
    let mended = [bare.to_owned(), without_raw_controls(bare), without_last_commas(&without_raw_controls(bare))];
    mended.iter().find_map(|text| whole_with_excess(text)).map_or(Err(problem), object)
}

fn object(value: Value) -> Result<Value, String> {
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(Map::new())),
        // some models encode twice
        Value::String(inner) => match serde_json::from_str(&inner) {
            Ok(Value::Object(object)) => Ok(Value::Object(object)),
            _ => Err("a text instead of an object".to_owned()),
        },
        Value::Array(_) => Err("a list instead of an object".to_owned()),
        _ => Err("not an object".to_owned()),
    }
}

/// A whole value followed by nothing but closing brackets too many.
fn whole_with_excess(text: &str) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let behind = text.get(values.byte_offset()..)?;
    behind.chars().all(|c| c.is_whitespace() || matches!(c, '}' | ']')).then_some(value)
}

fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner).trim())
}

/// Line breaks and tabs inside strings, which JSON wants escaped.
fn without_raw_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '\n' if in_string => out.push_str("\\n"),
            '\r' if in_string => out.push_str("\\r"),
            '\t' if in_string => out.push_str("\\t"),
            c => out.push(c),
        }
        (in_string, escaped) = step(c, in_string, escaped);
    }
    out
}

/// Commas before a closing bracket.
fn without_last_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if !in_string && matches!(c, '}' | ']') {
            let kept = out.trim_end().trim_end_matches(',').len();
            out.truncate(kept);
        }
        out.push(c);
        (in_string, escaped) = step(c, in_string, escaped);
    }
    out
}

fn step(c: char, in_string: bool, escaped: bool) -> (bool, bool) {
    match c {
        _ if escaped => (in_string, false),
        '\\' if in_string => (true, true),
        '"' => (!in_string, false),
        _ => (in_string, false),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_be_mended_in_one_way_is_mended() {
        for (raw, value) in [
            ("", json!({})),
            ("null", json!({})),
            (r#"{"q": "say \"hi\""}}"#, json!({"q": "say \"hi\""})),
            ("{\"q\": \"a\nb\"}", json!({"q": "a\nb"})),
            (r#"{"q": [1, 2,], }"#, json!({"q": [1, 2]})),
            ("```json\n{\"q\": 1}\n```", json!({"q": 1})),
            (r#""{\"q\": 1}""#, json!({"q": 1})),
        ] {
            assert_eq!(read(raw), Ok(value), "{raw}");
        }
        for raw in [r#"{"a":"#, "[1]", "3", r#"{"a": 1} {"a": 2}"#, "rm -rf", r#"{"path": "x"#] {
            assert!(read(raw).is_err(), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(raw in "[{}\\[\\]\",:a\\\\\n ]{0,30}") {
            if let Ok(value) = read(&raw) {
                prop_assert!(value.is_object());
            }
        }
    }
}
