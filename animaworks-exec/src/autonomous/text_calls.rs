//! Tool calls that small models write as text.
//!
//! A call counts as one in `<tool_call>{…}</tool_call>` outside of code, or when the
//! whole answer is nothing but a call: a JSON object, the same in one code block, or
//! `name({…})`. An example among prose, or a block that shows the tag, is text.

use std::collections::BTreeSet;

use serde_json::Value;

use super::think::Code;
use crate::wire::WireCall;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// Takes an answer in pieces, lets text through and holds back what may be a call.
#[derive(Debug)]
pub(super) struct TextCalls {
    known: BTreeSet<String>,
    /// Not let through.
    held: String,
    /// Whether everything is held until the end.
    holding: bool,
    /// Whether anything visible was let through.
    spoken: bool,
    code: Code,
}

impl TextCalls {
    /// Looks for calls of these tools.
    pub(super) fn new(known: BTreeSet<String>) -> Self {
        Self { known, held: String::new(), holding: false, spoken: false, code: Code::default() }
    }

    /// Takes the next piece; what can be shown of it.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let mut shown = String::new();
        while !self.holding && !self.held.is_empty() {
            if !self.spoken && self.may_begin_with_call() {
                return shown;
            }
            let at = self.held.find('<').unwrap_or(self.held.len());
            let from = self.held.split_off(at);
            self.show(at, &mut shown);
            if from.is_empty() {
                break;
            }
            self.held = from;
            if !self.code.open() && OPEN.starts_with(&*self.held) && self.held.len() < OPEN.len() {
                break;
            }
            if !self.code.open() && self.held.starts_with(OPEN) {
                self.holding = true;
            } else {
                self.show(1, &mut shown);
            }
        }
        shown
    }

    /// The answer is over: the calls in it, and the text that was held for nothing.
    pub(super) fn finish(&mut self) -> (Vec<WireCall>, String) {
        let held = std::mem::take(&mut self.held);
        let calls = if held.trim_start().starts_with(OPEN) {
            tagged(&held, &self.known)
        } else if self.spoken {
            None
        } else {
            whole(held.trim(), &self.known).map(|call| (vec![call], String::new()))
        };
        calls.unwrap_or((Vec::new(), held))
    }

    /// Lets the first `length` bytes of what is held through.
    fn show(&mut self, length: usize, shown: &mut String) {
        let rest = self.held.split_off(length);
        for c in self.held.chars() {
            self.code.take(c);
            self.spoken |= !c.is_whitespace();
        }
        shown.push_str(&std::mem::replace(&mut self.held, rest));
    }

    /// Whether the answer may turn out to be nothing but a call. Decides for good once it can.
    fn may_begin_with_call(&mut self) -> bool {
        let start = self.held.trim_start();
        let named = |name: &String| {
            let call = format!("{name}(");
            start.starts_with(&call) || call.starts_with(start)
        };
        start.is_empty()
            || start.starts_with('{')
            || "```json".starts_with(start)
            || ["```json\n", "```\n{", "```{"].iter().any(|fence| start.starts_with(fence) || fence.starts_with(start))
            || self.known.iter().any(named)
    }
}

/// All `<tool_call>` blocks and the text around them; `None` when one is not a call.
fn tagged(text: &str, known: &BTreeSet<String>) -> Option<(Vec<WireCall>, String)> {
    let (mut calls, mut around, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once(OPEN) {
        // a model that stops right after its call may leave the closing tag out
        let (inner, behind) = after.split_once(CLOSE).unwrap_or((after, ""));
        calls.push(object(inner.trim(), known)?);
        around.push_str(before);
        rest = behind;
    }
    around.push_str(rest);
    Some((calls, if around.trim().is_empty() { String::new() } else { around }))
}

fn whole(text: &str, known: &BTreeSet<String>) -> Option<WireCall> {
    if let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) {
        return object(inner.strip_prefix("json").unwrap_or(inner).trim(), known);
    }
    if let Some((name, rest)) = text.split_once('(')
        && known.contains(name.trim())
    {
        let arguments = rest.trim_end_matches(';').strip_suffix(')')?;
        super::arguments::read(arguments).ok()?;
        return Some(call(name.trim(), arguments.trim().to_owned()));
    }
    object(text, known)
}

fn object(text: &str, known: &BTreeSet<String>) -> Option<WireCall> {
    let value = super::arguments::read(text).ok()?;
    let value = value.get("function").filter(|function| function.is_object()).unwrap_or(&value);
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|key| value.get(key)?.as_str())?;
    let arguments = ["arguments", "parameters", "args", "input"].iter().find_map(|key| value.get(key));
    let arguments = match arguments {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(object) => object.to_string(),
    };
    known.contains(name).then(|| call(name, arguments))
}

fn call(name: &str, arguments: String) -> WireCall {
    WireCall { id: String::new(), name: name.to_owned(), arguments, opaque: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str, step: usize) -> (Vec<(String, String)>, String) {
        let mut calls = TextCalls::new(["read".to_owned(), "search_memory".to_owned()].into());
        let letters: Vec<char> = answer.chars().collect();
        let mut text: String =
            letters.chunks(step).map(|piece| calls.push(&piece.iter().collect::<String>())).collect();
        let (found, rest) = calls.finish();
        text.push_str(&rest);
        (found.into_iter().map(|call| (call.name, call.arguments)).collect(), text)
    }

    #[test]
    fn a_call_runs_and_an_example_does_not() {
        let tagged = r#"<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>"#;
        let ran = vec![("read".to_owned(), r#"{"path":"a"}"#.to_owned())];
        for answer in [
            tagged.to_owned(),
            format!("{tagged}\n"),
            tagged.trim_end_matches("</tool_call>").to_owned(),
            r#"{"name":"read","parameters":{"path":"a"}}"#.to_owned(),
            "```json\n{\"tool\":\"read\",\"args\":{\"path\":\"a\"}}\n```".to_owned(),
            r#"read({"path":"a"})"#.to_owned(),
        ] {
            for step in [1, 3, 1000] {
                assert_eq!(read(&answer, step), (ran.clone(), String::new()), "{answer} by {step}");
            }
        }
        let before = format!("Let me look.\n{tagged}");
        assert_eq!(read(&before, 1), (ran, "Let me look.\n".to_owned()));
        for text in [
            format!("Like this:\n```\n{tagged}\n```\nYou see?"),
            format!("```\n{tagged}\n```"),
            format!("Write `{tagged}` to call."),
            "For example:\n```json\n{\"name\":\"read\",\"arguments\":{}}\n```".to_owned(),
            r#"{"name":"unknown","arguments":{}}"#.to_owned(),
            r#"{"answer": 3}"#.to_owned(),
            "read(it) aloud".to_owned(),
            "reading is <b>fun</b>".to_owned(),
            "a < b".to_owned(),
        ] {
            for step in [1, 3, 1000] {
                assert_eq!(read(&text, step), (Vec::new(), text.clone()), "{text} by {step}");
            }
        }
    }

    #[test]
    fn plain_text_is_not_held_back() {
        let mut calls = TextCalls::new(["read".to_owned()].into());
        assert_eq!(calls.push("Hello"), "Hello");
        assert_eq!(calls.push(" read"), " read");
    }
}
