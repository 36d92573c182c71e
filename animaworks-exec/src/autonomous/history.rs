//! The conversation of a turn, kept in an order every provider accepts.

use std::collections::BTreeSet;

use animaworks_core::{Locale, Prompt, PromptMessage, Tokens, t};
use serde_json::Value;

use crate::wire::{WireCall, request::WireMessage};

/// The most reminders that wait at a time.
const MAX_REMINDERS: usize = 10;
/// What a picture is taken to cost.
const IMAGE_TOKENS: u32 = 1_000;
/// Messages at the beginning and at the end that compaction leaves alone.
const KEPT_HEAD: usize = 2;
const KEPT_TAIL: usize = 6;
/// How much of a message survives compaction, in characters.
const KEPT_WORDS: usize = 2_000;
const KEPT_RESULT: usize = 200;
/// The longest summary, in tokens.
const MAX_SUMMARY: u32 = 4_096;
/// Smaller windows have nothing to gain from a summary.
const MIN_COMPACTED_WINDOW: u32 = 16_000;

/// The conversation so far.
///
/// INVARIANT: every call is followed by exactly one result, no result stands
/// without its call, nothing is empty, and neighbours differ in role.
#[derive(Debug)]
pub struct History {
    messages: Vec<WireMessage>,
    reminders: Vec<String>,
    used_ids: BTreeSet<String>,
    locale: Locale,
}

impl History {
    /// The conversation of a prompt, mended where a crash or an edit left it unlawful.
    pub fn new(prompt: &Prompt, locale: Locale) -> Self {
        let mut history = Self { messages: Vec::new(), reminders: Vec::new(), used_ids: BTreeSet::new(), locale };
        // what the unanswered calls were called, and what they are called now
        let mut open: Vec<(String, String)> = Vec::new();
        for message in &prompt.messages {
            match message {
                PromptMessage::ToolResult { id, text, is_error, .. } => {
                    if let Some(at) = open.iter().position(|(was, _)| was == id.as_str()) {
                        let (_, id) = open.remove(at);
                        history.tool(id, text.clone(), *is_error);
                    }
                }
                PromptMessage::User { text, images } => {
                    history.answer_all(&mut open);
                    history.join(WireMessage::User { text: text.clone(), images: images.clone() });
                }
                PromptMessage::Assistant { text, calls } => {
                    history.answer_all(&mut open);
                    let mut written = Vec::new();
                    for call in calls {
                        let id = history.fresh_id(call.id.as_str());
                        open.push((call.id.to_string(), id.clone()));
                        let arguments = match &call.args {
                            Value::String(raw) => raw.clone(),
                            args => args.to_string(),
                        };
                        written.push(WireCall { id, name: call.name.to_string(), arguments, opaque: None });
                    }
                    history.assistant(text.clone(), written, Vec::new());
                }
            }
        }
        history.answer_all(&mut open);
        history
    }

    /// The messages, ready to send.
    pub fn messages(&self) -> &[WireMessage] {
        &self.messages
    }

    /// An id nobody in this conversation has; the model's own when it is free and fits.
    pub fn fresh_id(&mut self, wanted: &str) -> String {
        let fits =
            !wanted.is_empty() && wanted.len() <= 128 && !wanted.chars().any(|c| c.is_control() || c.is_whitespace());
        let base: String = if fits { wanted.to_owned() } else { format!("call_{}", self.used_ids.len() + 1) };
        let head: String = base.chars().take(24).collect();
        let (mut id, mut next) = (base, 2);
        while !self.used_ids.insert(id.clone()) {
            id = format!("{head}_{next}");
            next += 1;
        }
        id
    }

    /// What the model said.
    pub fn assistant(&mut self, text: String, calls: Vec<WireCall>, opaque: Vec<Value>) {
        self.join(WireMessage::Assistant { text, calls, opaque });
    }

    /// What a tool answered.
    pub fn tool(&mut self, id: String, text: String, is_error: bool) {
        self.messages.push(WireMessage::Tool { id, text, is_error });
    }

    /// What the other side says.
    pub fn user(&mut self, text: String) {
        self.join(WireMessage::User { text, images: Vec::new() });
    }

    /// A word of the framework for the model, carried by the next message it reads.
    pub fn remind(&mut self, text: &str) {
        if self.reminders.len() < MAX_REMINDERS {
            self.reminders.push(format!("<system-reminder>\n{text}\n</system-reminder>"));
        }
    }

    /// Hangs the waiting reminders on the last message.
    pub fn deliver_reminders(&mut self) {
        if self.reminders.is_empty() {
            return;
        }
        let reminders = std::mem::take(&mut self.reminders).join("\n");
        match self.messages.last_mut() {
            Some(WireMessage::User { text, .. } | WireMessage::Tool { text, .. }) => append(text, &reminders),
            _ => self.user(reminders),
        }
    }

    /// What the conversation costs, by the one estimator.
    pub fn tokens(&self) -> Tokens {
        self.messages.iter().map(cost).sum()
    }

    /// Replaces the middle by a digest; whether that made it smaller.
    pub fn compact(&mut self, window: Tokens) -> bool {
        if window.0 < MIN_COMPACTED_WINDOW {
            return false;
        }
        let is_result = |at: usize| matches!(self.messages.get(at), Some(WireMessage::Tool { .. }));
        // a call and its results stay on the same side of the cut
        let mut end = self.messages.len().saturating_sub(KEPT_TAIL);
        while end > 0 && is_result(end) {
            end -= 1;
        }
        let mut start = KEPT_HEAD;
        while is_result(start) {
            start += 1;
        }
        if start >= end {
            return false;
        }
        let before = self.tokens();
        let budget = Tokens(MAX_SUMMARY.min(window.0 / 4));
        let mut spent = Tokens(0);
        let mut lines: Vec<String> = Vec::new();
        // the latest matter most
        for message in self.messages.get(start..end).unwrap_or_default().iter().rev() {
            let line = digest(message);
            spent += Tokens::estimate(&line);
            if spent > budget {
                break;
            }
            lines.push(line);
        }
        lines.push(t!(self.locale, "exec.compacted"));
        lines.reverse();
        let tail = self.messages.split_off(end);
        self.messages.truncate(start);
        self.user(lines.join("\n"));
        for message in tail {
            self.join(message);
        }
        self.tokens() < before
    }

    /// Gives every open call a result that says it was interrupted.
    fn answer_all(&mut self, open: &mut Vec<(String, String)>) {
        for (_, id) in open.drain(..) {
            self.tool(id, t!(self.locale, "exec.call_interrupted"), true);
        }
    }

    /// Appends a message, or joins it to a neighbour of the same role.
    fn join(&mut self, message: WireMessage) {
        match (self.messages.last_mut(), message) {
            (Some(WireMessage::User { text, images }), WireMessage::User { text: more, images: pictures }) => {
                append(text, &more);
                images.extend(pictures);
            }
            (
                Some(WireMessage::Assistant { text, calls, opaque }),
                WireMessage::Assistant { text: more, calls: new, opaque: blocks },
            ) => {
                append(text, &more);
                calls.extend(new);
                opaque.extend(blocks);
            }
            (_, WireMessage::User { text, images }) if text.is_empty() && images.is_empty() => {}
            (_, WireMessage::Assistant { text, calls, .. }) if text.is_empty() && calls.is_empty() => {}
            (_, message) => self.messages.push(message),
        }
    }
}

fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

fn cost(message: &WireMessage) -> Tokens {
    // a few tokens of frame for each message
    Tokens(4)
        + match message {
            WireMessage::User { text, images } => Tokens::estimate(text) + Tokens(images.len() as u32 * IMAGE_TOKENS),
            WireMessage::Assistant { text, calls, opaque } => {
                let calls = calls.iter().map(|call| Tokens::estimate(&call.arguments) + Tokens::estimate(&call.name));
                let opaque = opaque.iter().map(|block| Tokens::estimate(&block.to_string()));
                Tokens::estimate(text) + calls.chain(opaque).sum()
            }
            WireMessage::Tool { text, .. } => Tokens::estimate(text),
        }
}

fn digest(message: &WireMessage) -> String {
    let head = |text: &str, chars: usize| text.chars().take(chars).collect::<String>();
    match message {
        WireMessage::User { text, .. } => format!("user: {}", head(text, KEPT_WORDS)),
        WireMessage::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| format!("[{} {}]", call.name, head(&call.arguments, KEPT_RESULT)));
            format!("assistant: {}{}", head(text, KEPT_WORDS), calls.collect::<String>())
        }
        WireMessage::Tool { text, .. } => format!("tool: {}", head(text, KEPT_RESULT)),
    }
}

#[cfg(test)]
mod tests {
    use animaworks_core::{CallId, ToolCall, ToolName};

    use super::*;

    fn user(text: &str) -> PromptMessage {
        PromptMessage::User { text: text.to_owned(), images: Vec::new() }
    }

    fn assistant(text: &str, ids: &[&str]) -> PromptMessage {
        let call = |id: &&str| ToolCall {
            id: CallId::new(id).unwrap(),
            name: ToolName::new("read").unwrap(),
            args: Value::String("{\"a\":".to_owned()),
        };
        PromptMessage::Assistant { text: text.to_owned(), calls: ids.iter().map(call).collect() }
    }

    fn result(id: &str) -> PromptMessage {
        PromptMessage::ToolResult {
            id: CallId::new(id).unwrap(),
            name: ToolName::new("read").unwrap(),
            text: format!("result of {id}"),
            is_error: false,
        }
    }

    fn shape(messages: Vec<PromptMessage>) -> Vec<String> {
        let prompt = Prompt { system: "".into(), messages };
        let history = History::new(&prompt, Locale::En);
        let show = |message: &WireMessage| match message {
            WireMessage::User { text, .. } => format!("u {text}"),
            WireMessage::Assistant { text, calls, .. } => {
                format!("a {text} {:?}", calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>())
            }
            WireMessage::Tool { id, text, .. } if text.starts_with("result") => format!("t {id}"),
            WireMessage::Tool { id, .. } => format!("interrupted {id}"),
        };
        history.messages().iter().map(show).collect()
    }

    #[test]
    fn orphans_are_paired_or_dropped_wherever_they_stand() {
        let broken = vec![user("1"), assistant("", &["c1"]), user("2"), assistant("ok", &[]), user("3")];
        assert_eq!(shape(broken), ["u 1", "a  [\"c1\"]", "interrupted c1", "u 2", "a ok []", "u 3"]);
        let twice = vec![user("1"), result("c9"), assistant("", &["c1"]), result("c1"), result("c1"), user("2")];
        assert_eq!(shape(twice), ["u 1", "a  [\"c1\"]", "t c1", "u 2"]);
    }

    #[test]
    fn neighbours_of_one_role_are_joined_and_ids_are_unique() {
        let messages = vec![
            user("1"),
            user("2"),
            assistant("", &["c"]),
            result("c"),
            assistant("", &["c"]),
            result("c"),
            assistant("", &[]),
            user(""),
        ];
        assert_eq!(shape(messages), ["u 1\n\n2", "a  [\"c\"]", "t c", "a  [\"c_2\"]", "t c_2"]);
    }

    #[test]
    fn compaction_keeps_calls_and_results_together() {
        let mut messages = vec![user("the task")];
        for n in 0..12 {
            messages.extend([assistant(&"long words ".repeat(200), &[&format!("c{n}")]), result(&format!("c{n}"))]);
        }
        let prompt = Prompt { system: "".into(), messages };
        let mut history = History::new(&prompt, Locale::En);
        assert!(!history.compact(Tokens(8_000)));
        assert!(history.compact(Tokens(16_000)));
        let mut open = Vec::new();
        for message in history.messages() {
            match message {
                WireMessage::Assistant { calls, .. } => open.extend(calls.iter().map(|call| call.id.clone())),
                WireMessage::Tool { id, .. } => assert_eq!(open.pop().as_ref(), Some(id)),
                WireMessage::User { .. } => assert!(open.is_empty()),
            }
        }
        assert!(matches!(history.messages().first(), Some(WireMessage::User { text, .. }) if text == "the task"));
    }
}
