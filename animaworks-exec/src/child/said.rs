//! What programs say, in the words of a turn, and in an order a turn may have.

use std::collections::BTreeSet;

use animaworks_core::{
    CallId, ExecError, Locale, Origin, ResultExt, StopReason, ToolCall, ToolName, ToolOutput, Trust, TurnEvent, t,
};
use serde_json::Value;

/// What a line of a program means.
#[derive(Debug)]
pub(super) enum Said {
    /// Something of the turn.
    Event(TurnEvent),
    /// The end.
    End(Result<StopReason, ExecError>),
}

/// Reads the lines of one program's turn.
pub(super) trait Speech: Send {
    /// Takes a line; kinds it does not know mean nothing.
    fn hear(&mut self, line: &Value, said: &mut Vec<Said>);
}

/// Puts events into a lawful order: the start first, answers only to calls, no call left open.
#[derive(Debug)]
pub(super) struct Order {
    locale: Locale,
    started: bool,
    made: BTreeSet<CallId>,
    open: BTreeSet<CallId>,
    /// Whether anything was passed on that cannot be taken back.
    pub(super) moved: bool,
}

impl Order {
    pub(super) fn new(locale: Locale) -> Self {
        Self { locale, started: false, made: BTreeSet::new(), open: BTreeSet::new(), moved: false }
    }

    /// Whether a tool is at work.
    pub(super) fn busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// The event, and what must go before it.
    pub(super) fn pass(&mut self, event: TurnEvent) -> Vec<TurnEvent> {
        let lawful = match &event {
            TurnEvent::Started { .. } => !self.started,
            TurnEvent::ToolCall(call) => self.made.insert(call.id.clone()) && self.open.insert(call.id.clone()),
            TurnEvent::ToolOutput(id, _) => self.open.remove(id),
            TurnEvent::Text(text) | TurnEvent::Thinking(text) => !text.is_empty(),
            _ => true,
        };
        if !lawful {
            return Vec::new();
        }
        let mut events = Vec::new();
        if !self.started && !matches!(event, TurnEvent::Started { .. }) {
            events.push(TurnEvent::Started { session: None });
        }
        self.started = true;
        self.moved = true;
        events.push(event);
        events
    }

    /// Answers to the calls that got none, before the end.
    pub(super) fn close(&mut self) -> Vec<TurnEvent> {
        let answer = ToolOutput::error("Interrupted", &t!(self.locale, "exec.call_interrupted"), None);
        let mut events: Vec<_> =
            std::mem::take(&mut self.open).into_iter().map(|id| TurnEvent::ToolOutput(id, answer.clone())).collect();
        if !self.started {
            self.started = true;
            events.push(TurnEvent::Started { session: None });
        }
        events
    }
}

/// A call as an event; `None` for one without a usable number or name.
pub(super) fn call(id: &str, name: &str, args: Value) -> Option<Said> {
    let id = CallId::new(id).log_err("read the number of a call")?;
    let name = ToolName::new(plain_name(name)).log_err("read the name of a tool")?;
    Some(Said::Event(TurnEvent::ToolCall(ToolCall { id, name, args })))
}

/// An answer as an event. `tool` is what was called, for how far the answer may be believed.
pub(super) fn output(id: &str, tool: Option<&str>, text: String, is_error: bool) -> Option<Said> {
    let id = CallId::new(id).log_err("read the number of a call")?;
    let mut output = ToolOutput { is_error, ..ToolOutput::text(text) };
    match tool.map(plain_name) {
        Some("WebFetch" | "WebSearch") => output = output.from_origin(Origin::of(Origin::EXTERNAL_WEB)),
        Some("Bash" | "Read" | "Grep" | "Glob" | "LS") => output.trust = Trust::Medium,
        _ => {}
    }
    Some(Said::Event(TurnEvent::ToolOutput(id, output)))
}

/// A tool's name without the words that programs put before the tools of a server.
pub(super) fn plain_name(name: &str) -> &str {
    ["mcp__aw__", "mcp_aw_"].into_iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// Text out of the shapes in which programs put it: a string, or blocks of text.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A string of an object, or nothing.
pub(super) fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A count of an object, or 0.
pub(super) fn count(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// What a failure is, from what a program says about it; `None` when it says nothing we know.
pub(super) fn classify(engine: &str, said: &str) -> Option<ExecError> {
    let low = said.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| low.contains(word));
    let status = |codes: &[&str]| codes.iter().any(|code| stands_alone(&low, code));
    let engine = engine.to_owned();
    let detail: String = said.chars().take(500).collect();
    Some(if (any(&["quota", "usage limit", "billing", "credit balance"]) || status(&["402"])) && !status(&["429"]) {
        ExecError::Quota { engine, detail }
    } else if any(&["too many requests", "rate limit", "overloaded"]) || status(&["429", "529"]) {
        ExecError::Busy { engine, detail, retry_after: None }
    } else if any(&[
        "unauthorized",
        "not logged in",
        "/login",
        "log in",
        "authentication",
        "invalid api key",
        "auth method",
        "api key not valid",
    ]) || status(&["401", "403"])
    {
        ExecError::Auth { engine, detail }
    } else if any(&["prompt is too long", "context window", "context_length", "maximum context"]) {
        ExecError::ContextOverflow { engine, detail }
    } else if any(&["econnrefused", "connection refused", "stream disconnected", "fetch failed"])
        || status(&["500", "502", "503"])
    {
        ExecError::Unreachable { engine, detail }
    } else {
        return None;
    })
}

/// Whether a status stands in a text as a number of its own, and not as a part of an id.
fn stands_alone(text: &str, code: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
    text.match_indices(code).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + code.len()..).and_then(|after| after.chars().next());
        !joins(before) && !joins(after)
    })
}

/// The same for an end that a program itself calls a failure.
pub(super) fn failure(engine: &str, said: &str) -> ExecError {
    classify(engine, said).unwrap_or_else(|| ExecError::Rejected {
        engine: engine.to_owned(),
        status: 0,
        detail: said.chars().take(500).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_counts_where_it_stands_alone() {
        let kind = |said: &str| classify("claude", said).map(|error| animaworks_core::Fault::kind(&error).as_str());
        assert_eq!(kind("No conversation found with session ID: 25c82156-2bad-4403-88f1-5ebca0a57429"), None);
        assert_eq!(kind("turn 4291 of thread-401-b ended"), None);
        assert_eq!(kind("API Error: 401 {\"type\":\"error\"}"), Some("auth"));
        assert_eq!(kind("unexpected status 403: forbidden"), Some("auth"));
        assert_eq!(kind("exceeded retry limit, last status: 429"), Some("rate_limited"));
        assert_eq!(kind("(529) the service is overloaded"), Some("rate_limited"));
        assert_eq!(kind("HTTP 402 Payment Required"), Some("quota"));
        assert_eq!(kind("server said 503."), Some("unavailable"));
    }
}
