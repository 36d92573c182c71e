//! Reads a tool call out of what a small model takes for JSON (exec spec §1.15).
//!
//! Accepts what people and models really write: trailing commas, single or curly
//! quotes, Python's `True`, bare keys, raw line breaks in strings, and an object
//! that was never closed.

use serde_json::{Map, Number, Value};

/// A call as the model wrote it; whether there is such a tool is for others to say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) args: Value,
}

/// What stands at the beginning of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Read {
    /// A whole value and the number of bytes it takes.
    Whole(Value, usize),
    /// The text ended inside a value; this is what there was.
    Open(Value),
    /// No JSON, however kindly looked at.
    Not,
}

/// Deeper nesting is not read.
const MAX_DEPTH: usize = 64;

const TOOL_KEYS: [&str; 3] = ["tool", "tool_name", "name"];
const ARGS_KEYS: [&str; 4] = ["arguments", "args", "parameters", "input"];

/// Reads the value that a text begins with.
pub(crate) fn read(text: &str) -> Read {
    let mut reader = Reader { text, at: 0, open: false };
    match reader.value(0) {
        None => Read::Not,
        Some(value) if reader.open => Read::Open(value),
        Some(value) => Read::Whole(value, reader.at),
    }
}

/// The call that a value means, if it means one.
pub(crate) fn call_of(value: &Value) -> Option<Call> {
    let object = match value {
        Value::Object(object) => object,
        // one call per message: the first
        Value::Array(list) => return list.first().and_then(call_of),
        _ => return None,
    };
    for wrapper in ["tool_calls", "tool_call", "function", "function_call"] {
        if let Some(inner @ (Value::Object(_) | Value::Array(_))) = object.get(wrapper) {
            return call_of(inner);
        }
    }
    let (key, tool) = TOOL_KEYS.iter().find_map(|key| Some((*key, object.get(*key)?.as_str()?.trim())))?;
    let args = ARGS_KEYS.iter().find_map(|key| object.get(*key));
    // any object may have a name; a call by name says what it is called with
    if tool.is_empty() || (key == "name" && args.is_none()) {
        return None;
    }
    let args = match args {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) => match read(text.trim()) {
            Read::Whole(inner @ Value::Object(_), _) => inner,
            _ if text.trim().is_empty() => Value::Object(Map::new()),
            _ => Value::String(text.clone()),
        },
        Some(other) => other.clone(),
    };
    Some(Call { tool: tool.to_owned(), args })
}

/// Whether an unreadable text was meant to be a call.
pub(crate) fn looks_like_call(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    let rest = rest.trim_start_matches(['"', '\'', '“', '”']);
    ["tool", "tool_name"].iter().any(|key| {
        rest.strip_prefix(key)
            .is_some_and(|behind| behind.trim_start_matches(['"', '\'', '“', '”']).trim_start().starts_with([':', '=']))
    })
}

#[derive(Debug)]
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The text ended before the value did.
    open: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        let Some(c) = self.peek() else {
            self.open = true;
            return Some(Value::Null);
        };
        match c {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' | '\'' | '“' | '”' => Some(Value::String(self.string(c))),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.step('{');
        let mut object = Map::new();
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.open = true;
                    return Some(Value::Object(object));
                }
                Some('}') => {
                    self.step('}');
                    return Some(Value::Object(object));
                }
                Some(',') => {
                    self.step(',');
                    continue;
                }
                _ => {}
            }
            let key = self.key()?;
            self.space();
            match self.peek() {
                None => {
                    self.open = true;
                    return Some(Value::Object(object));
                }
                Some(':') => self.step(':'),
                Some(_) => return None,
            }
            let value = self.value(depth + 1)?;
            object.insert(key, value);
            if self.open {
                return Some(Value::Object(object));
            }
            self.space();
            if !matches!(self.peek(), None | Some(',' | '}')) {
                return None;
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.step('[');
        let mut list = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.open = true;
                    return Some(Value::Array(list));
                }
                Some(']') => {
                    self.step(']');
                    return Some(Value::Array(list));
                }
                Some(',') => {
                    self.step(',');
                    continue;
                }
                _ => {}
            }
            list.push(self.value(depth + 1)?);
            if self.open {
                return Some(Value::Array(list));
            }
            self.space();
            if !matches!(self.peek(), None | Some(',' | ']')) {
                return None;
            }
        }
    }

    fn key(&mut self) -> Option<String> {
        match self.peek()? {
            quote @ ('"' | '\'' | '“' | '”') => Some(self.string(quote)),
            c if c.is_alphabetic() || c == '_' => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'));
                let name = rest.get(..end.unwrap_or(rest.len()))?;
                self.at += name.len();
                Some(name.to_owned())
            }
            _ => None,
        }
    }

    /// A string in any quotes. A single quote inside a word is an apostrophe.
    fn string(&mut self, quote: char) -> String {
        self.step(quote);
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.step(c);
            match c {
                '\\' => match self.escape() {
                    Some(escaped) => out.push(escaped),
                    None => {
                        self.open = true;
                        return out;
                    }
                },
                '\'' if quote == '\'' && self.is_apostrophe(&out) => out.push(c),
                '"' | '\'' if c == quote => return out,
                '”' | '“' if matches!(quote, '“' | '”') => return out,
                c => out.push(c),
            }
        }
        self.open = true;
        out
    }

    fn is_apostrophe(&self, before: &str) -> bool {
        before.chars().next_back().is_some_and(char::is_alphanumeric) && self.peek().is_some_and(char::is_alphanumeric)
    }

    /// The character behind a backslash; `None` at the end of the text.
    fn escape(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.step(c);
        Some(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let high = self.hex()?;
                match char::from_u32(high) {
                    Some(c) => c,
                    // half of a pair: the other half follows as an escape of its own
                    None if (0xd800..0xdc00).contains(&high) && self.rest().starts_with("\\u") => {
                        self.at += 2;
                        let low = self.hex()?;
                        let pair = 0x10000 + ((high - 0xd800) << 10) + low.wrapping_sub(0xdc00);
                        char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                    None => char::REPLACEMENT_CHARACTER,
                }
            }
            other => other,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits: String = self.rest().chars().take(4).take_while(char::is_ascii_hexdigit).collect();
        self.at += digits.len();
        if digits.len() < 4 && self.rest().is_empty() {
            return None;
        }
        // what is no number becomes the replacement character
        Some(u32::from_str_radix(&digits, 16).unwrap_or(0xd800))
    }

    /// A number, or one of the words of JSON, JavaScript and Python.
    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.')).unwrap_or(rest.len());
        let word = rest.get(..end)?;
        self.at += end;
        let ended = end == rest.len();
        self.open |= ended;
        let value = match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" | "undefined" => Value::Null,
            number => match number.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => match number.parse::<f64>().ok().and_then(Number::from_f64) {
                    Some(number) if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => Value::Number(number),
                    // the beginning of a word that is still being written
                    _ if ended => Value::Null,
                    _ => return None,
                },
            },
        };
        (!word.is_empty()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn whole(text: &str) -> Value {
        match read(text) {
            Read::Whole(value, _) => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn reads_what_models_take_for_json() {
        for (text, value) in [
            (r#"{"a": 1, "b": [true, null, -2.5e3]}"#, json!({"a": 1, "b": [true, null, -2500.0]})),
            (r#"{"a": 1,}"#, json!({"a": 1})),
            (r"{'a': 'it is', 'b': 'don't'}", json!({"a": "it is", "b": "don't"})),
            ("{\"a\": True, \"b\": False, \"c\": None}", json!({"a": true, "b": false, "c": null})),
            ("{“a”: “b”}", json!({"a": "b"})),
            ("{a: 1, b_c: \"x\"}", json!({"a": 1, "b_c": "x"})),
            ("{\"a\": \"two\nlines\"}", json!({"a": "two\nlines"})),
            (r#"{"a": "\u9375 \ud83d\udd11 \" \\"}"#, json!({"a": "鍵 🔑 \" \\"})),
            (r#"{"a": {"b": {"c": "}"}}}"#, json!({"a": {"b": {"c": "}"}}})),
        ] {
            assert_eq!(whole(text), value, "{text}");
        }
        assert_eq!(read("{ int x = 3; }"), Read::Not);
        assert_eq!(read("{\"a\" 1}"), Read::Not);
    }

    #[test]
    fn what_was_never_closed_is_read_as_far_as_it_goes() {
        for (text, value) in [
            (r#"{"tool": "t", "arguments": {"query": "鍵"#, json!({"tool": "t", "arguments": {"query": "鍵"}})),
            (r#"{"tool": "t", "arguments": {"query": "x"}"#, json!({"tool": "t", "arguments": {"query": "x"}})),
            (r#"{"tool": "t","#, json!({"tool": "t"})),
            (r#"{"tool": tr"#, json!({"tool": null})),
        ] {
            assert_eq!(read(text), Read::Open(value), "{text}");
        }
    }

    #[test]
    fn knows_a_call_by_any_of_its_names() {
        let call = |tool: &str, args: Value| Some(Call { tool: tool.to_owned(), args });
        for (value, wanted) in [
            (json!({"tool": "a", "arguments": {"x": 1}}), call("a", json!({"x": 1}))),
            (json!({"tool_name": "a", "args": {"x": 1}}), call("a", json!({"x": 1}))),
            (json!({"name": "a", "parameters": {"x": 1}}), call("a", json!({"x": 1}))),
            (json!({"name": "a", "input": "{\"x\": 1}"}), call("a", json!({"x": 1}))),
            (json!({"tool": "a"}), call("a", json!({}))),
            (json!([{"tool": "a"}, {"tool": "b"}]), call("a", json!({}))),
            (json!({"function": {"name": "a", "arguments": {}}}), call("a", json!({}))),
            (json!({"name": "Yuki", "age": 3}), None),
            (json!({"tool": ""}), None),
            (json!(3), None),
        ] {
            assert_eq!(call_of(&value), wanted, "{value}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\PC\\n]{0,60}", tail in "[{}\\[\\]\"'“”:,\\\\utrn0-9aé鍵 ]{0,60}") {
            for text in [text.clone(), tail.clone(), format!("{{{tail}"), format!("{{\"tool\": {tail}")] {
                if let Read::Whole(value, end) = read(&text) {
                    prop_assert!(text.is_char_boundary(end));
                    call_of(&value);
                }
                looks_like_call(&text);
            }
        }

        #[test]
        fn strict_json_reads_as_itself(key in "[a-z]{1,8}", text in "\\PC{0,20}", number in any::<i64>()) {
            let value = json!({ key: [text, number, { "deep": true }] });
            prop_assert_eq!(whole(&value.to_string()), value);
        }
    }
}
