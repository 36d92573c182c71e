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
    let engine = engine.to_owned();
    let detail: String = said.chars().take(500).collect();
    Some(if any(&["quota", "usage limit", "billing", "credit balance", "402 "]) && !any(&["429"]) {
        ExecError::Quota { engine, detail }
    } else if any(&["429", "too many requests", "rate limit", "overloaded", "529"]) {
        ExecError::Busy { engine, detail, retry_after: None }
    } else if any(&[
        "401",
        "403",
        "unauthorized",
        "not logged in",
        "/login",
        "log in",
        "authentication",
        "invalid api key",
        "auth method",
        "api key not valid",
    ]) {
        ExecError::Auth { engine, detail }
    } else if any(&["prompt is too long", "context window", "context_length", "maximum context"]) {
        ExecError::ContextOverflow { engine, detail }
    } else if any(&[
        "econnrefused",
        "connection refused",
        "stream disconnected",
        "fetch failed",
        "500 ",
        "502 ",
        "503 ",
    ]) {
        ExecError::Unreachable { engine, detail }
    } else {
        return None;
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
