//! One line of a transcript, as far as a reader wants to know it.

use serde::Serialize;
use serde_json::Value;

/// The longest text of one entry, in characters.
const MOST_CHARS: usize = 20_000;
/// The longest text of a call or of its result, in characters.
const MOST_CALL_CHARS: usize = 4_000;
/// The longest title, in characters.
const MOST_TITLE_CHARS: usize = 160;

/// Something that was said or done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// `user`, `assistant` or `system`.
    pub role: String,
    /// When, as the transcript has it.
    pub at: String,
    /// Its place in the transcript, in bytes.
    pub offset: u64,
    /// What was said.
    pub text: String,
    /// What was done with tools, and what they answered.
    pub calls: Vec<Call>,
}

/// A call of a tool or its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The name of the tool; empty for an answer.
    pub name: String,
    /// What it was given, or what it answered.
    pub text: String,
}

/// What a record says, if it says anything.
pub(super) fn said(record: &Value, offset: u64) -> Option<Said> {
    let role = text(record, "type").filter(|role| matches!(*role, "user" | "assistant" | "system"))?;
    let mut said = Said {
        role: role.to_owned(),
        at: text(record, "timestamp").unwrap_or_default().to_owned(),
        offset,
        text: String::new(),
        calls: Vec::new(),
    };
    let content = record.pointer("/message/content").or_else(|| record.get("content"))?;
    match content {
        Value::String(text) => said.text = cut(text, MOST_CHARS),
        Value::Array(parts) => parts.iter().for_each(|part| add(part, &mut said)),
        _ => {}
    }
    (!said.text.trim().is_empty() || !said.calls.is_empty()).then_some(said)
}

fn add(part: &Value, said: &mut Said) {
    match text(part, "type") {
        Some("text") => {
            if !said.text.is_empty() {
                said.text.push_str("\n\n");
            }
            said.text.push_str(&cut(text(part, "text").unwrap_or_default(), MOST_CHARS));
        }
        Some("tool_use") => {
            let name = text(part, "name").unwrap_or_default().to_owned();
            let input = part.get("input").map(ToString::to_string).unwrap_or_default();
            said.calls.push(Call { name, text: cut(&input, MOST_CALL_CHARS) });
        }
        Some("tool_result") => {
            let answer = match part.get("content") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(parts)) => {
                    parts.iter().filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("\n")
                }
                _ => String::new(),
            };
            said.calls.push(Call { name: String::new(), text: cut(&answer, MOST_CALL_CHARS) });
        }
        _ => {}
    }
}

/// What a person asked; what the program itself put in is not asked.
pub(super) fn asked(record: &Value) -> Option<String> {
    if text(record, "type") != Some("user") || record.get("isMeta").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let said = said(record, 0)?;
    let line = said.text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty() && !line.starts_with('<')).then(|| cut(&line, MOST_TITLE_CHARS))
}

/// The titles a transcript gives itself.
#[derive(Debug, Default)]
pub(super) struct Titles {
    custom: String,
    made: String,
    summary: String,
}

impl Titles {
    pub(super) fn see(&mut self, record: &Value) {
        let (place, key) = match text(record, "type") {
            Some("custom-title") => (&mut self.custom, "customTitle"),
            Some("ai-title") => (&mut self.made, "aiTitle"),
            Some("summary") => (&mut self.summary, "summary"),
            _ => return,
        };
        if let Some(title) = text(record, key).filter(|title| !title.trim().is_empty()) {
            *place = cut(title.trim(), MOST_TITLE_CHARS);
        }
    }

    /// The one a person gave, else the one a model made.
    pub(super) fn best(self) -> String {
        [self.custom, self.made, self.summary].into_iter().find(|title| !title.is_empty()).unwrap_or_default()
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
