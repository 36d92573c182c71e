//! What Claude Code says, as events of a turn.

use std::collections::BTreeMap;

use animaworks_core::{ExecError, ResultExt, SessionId, StopReason, TurnEvent, units::Usage};
use serde_json::Value;

use super::{
    super::said::{Said, Speech, call, classify, count, failure, output, text_of, word},
    ENGINE,
};
use crate::autonomous::Echo;

/// Reads the lines of one turn.
#[derive(Debug, Default)]
pub struct Hearing {
    window: u64,
    /// Complete messages before the first streamed one are what was said before.
    replaying: bool,
    /// The message being streamed; its text is not taken again when it is repeated whole.
    streaming: String,
    /// Whether text has been said, so that the next block begins a paragraph.
    said: bool,
    block_open: bool,
    /// What was sent back by the gate is not said again.
    draft: Option<Echo>,
    heard: bool,
    tools: BTreeMap<String, String>,
    /// Text of the answer so far.
    text: String,
}

impl Hearing {
    /// Hears a turn in a window of this many tokens. `resumed`: what was said before may be repeated first.
    pub fn new(window: u64, resumed: bool) -> Self {
        Self { window, replaying: resumed, ..Self::default() }
    }

    /// The answer was sent back and begins again.
    pub(super) fn sent_back(&mut self, draft: &str) {
        self.draft = Some(Echo::new(draft.trim()));
        // the echo begins the paragraph itself
        self.said = false;
    }

    /// What was said so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn speak(&mut self, text: &str, said: &mut Vec<Said>) {
        let mut text = match &mut self.draft {
            Some(echo) => echo.push(text),
            None => text.to_owned(),
        };
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.block_open) && self.said {
            text.insert_str(0, "\n\n");
        }
        self.said = true;
        self.text.push_str(&text);
        said.push(Said::Event(TurnEvent::Text(text)));
    }

    fn streamed(&mut self, event: &Value, said: &mut Vec<Said>) {
        self.replaying = false;
        match word(event, "type") {
            "message_start" => {
                let message = event.get("message").unwrap_or(&Value::Null);
                word(message, "id").clone_into(&mut self.streaming);
                let usage = message.get("usage").unwrap_or(&Value::Null);
                let used = count(usage, "input_tokens")
                    + count(usage, "cache_creation_input_tokens")
                    + count(usage, "cache_read_input_tokens");
                if used > 0 {
                    said.push(Said::Event(TurnEvent::Context { used, window: self.window }));
                }
            }
            "content_block_start" => {
                self.block_open = event.pointer("/content_block/type").and_then(Value::as_str) == Some("text");
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                match word(delta, "type") {
                    "text_delta" => self.speak(word(delta, "text"), said),
                    "thinking_delta" => said.push(Said::Event(TurnEvent::Thinking(word(delta, "thinking").to_owned()))),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn whole(&mut self, message: &Value, said: &mut Vec<Said>) {
        // the program's own words about a failure come again in its result
        if self.replaying || word(message, "model") == "<synthetic>" {
            return;
        }
        let seen = self.streaming == word(message, "id") && !self.streaming.is_empty();
        let blocks = message.get("content").and_then(Value::as_array);
        for block in blocks.into_iter().flatten() {
            match word(block, "type") {
                "text" if !seen => {
                    self.block_open = true;
                    self.speak(word(block, "text"), said);
                }
                "thinking" if !seen => {
                    said.push(Said::Event(TurnEvent::Thinking(word(block, "thinking").to_owned())));
                }
                "tool_use" => {
                    let (id, name) = (word(block, "id"), word(block, "name"));
                    self.tools.insert(id.to_owned(), name.to_owned());
                    said.extend(call(id, name, block.get("input").cloned().unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    fn results(&mut self, line: &Value, said: &mut Vec<Said>) {
        if self.replaying || line.get("isReplay").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let blocks = line.pointer("/message/content").and_then(Value::as_array);
        for block in blocks.into_iter().flatten().filter(|block| word(block, "type") == "tool_result") {
            let id = word(block, "tool_use_id");
            let text = text_of(block.get("content").unwrap_or(&Value::Null));
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            said.extend(output(id, self.tools.get(id).map(String::as_str), text, is_error));
        }
    }

    fn result(&mut self, line: &Value, said: &mut Vec<Said>) {
        if let Some(usage) = line.get("usage") {
            let usage = Usage {
                input_tokens: count(usage, "input_tokens"),
                output_tokens: count(usage, "output_tokens"),
                cache_read_tokens: count(usage, "cache_read_input_tokens"),
                cache_write_tokens: count(usage, "cache_creation_input_tokens"),
                estimated: false,
            };
            said.push(Said::Event(TurnEvent::Usage(usage)));
        }
        let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or_default();
        let answer = word(line, "result");
        let end = match (word(line, "subtype"), is_error) {
            ("error_max_turns", _) => Ok(StopReason::MaxTurns),
            ("success", false) => {
                if !self.heard && !answer.is_empty() && self.text.is_empty() {
                    self.speak(answer, said);
                }
                Ok(match word(line, "stop_reason") {
                    "max_tokens" => StopReason::Length,
                    _ if self.text.trim().is_empty() => StopReason::Empty,
                    _ => StopReason::End,
                })
            }
            (subtype, _) => Err(error(line, subtype, answer)),
        };
        said.push(Said::End(end));
    }
}

/// What the program reports as a failure.
fn error(line: &Value, subtype: &str, answer: &str) -> ExecError {
    let engine = ENGINE.to_owned();
    let errors = text_list(line.get("errors"));
    let mut detail = if answer.is_empty() { errors } else { answer.to_owned() };
    if detail.is_empty() {
        subtype.clone_into(&mut detail);
    }
    let status = u16::try_from(count(line, "api_error_status")).unwrap_or_default();
    match status {
        401 | 403 => ExecError::Auth { engine, detail },
        402 => ExecError::Quota { engine, detail },
        404 => ExecError::Rejected { engine, status, detail },
        429 | 529 => ExecError::Busy { engine, detail, retry_after: None },
        500.. => ExecError::Unreachable { engine, detail },
        _ if subtype == "error_during_execution" => {
            classify(ENGINE, &detail).unwrap_or(ExecError::Interrupted { engine, detail })
        }
        _ => failure(ENGINE, &detail),
    }
}

fn text_list(list: Option<&Value>) -> String {
    let texts = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join("; ")
}

impl Speech for Hearing {
    fn hear(&mut self, line: &Value, said: &mut Vec<Said>) {
        // what an agent inside the agent says is its own affair
        if line.get("parent_tool_use_id").is_some_and(|parent| !parent.is_null()) {
            return;
        }
        match (word(line, "type"), word(line, "subtype")) {
            ("system", "init") => {
                if let Some(servers) = line.get("mcp_servers").and_then(Value::as_array) {
                    for server in servers.iter().filter(|server| word(server, "status") == "failed") {
                        tracing::error!(server = word(server, "name"), "claude could not start an MCP server");
                    }
                }
                let session = SessionId::new(word(line, "session_id")).log_err("read the session of claude");
                said.push(Said::Event(TurnEvent::Started { session }));
            }
            ("system", "api_retry") => {
                let number = |key| u32::try_from(count(line, key)).unwrap_or(u32::MAX);
                let reason = format!("{} {}", word(line, "error"), count(line, "error_status"));
                let (attempt, max_attempts) = (number("attempt"), number("max_retries"));
                said.push(Said::Event(TurnEvent::Retrying { attempt, max_attempts, reason }));
            }
            ("stream_event", _) => {
                self.heard = true;
                self.streamed(line.get("event").unwrap_or(&Value::Null), said);
            }
            ("assistant", _) => self.whole(line.get("message").unwrap_or(&Value::Null), said),
            ("user", _) => self.results(line, said),
            ("result", _) => self.result(line, said),
            _ => {}
        }
    }
}
