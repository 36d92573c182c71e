//! Anthropic Messages.

use std::collections::BTreeMap;

use animaworks_core::units::Usage;
use serde_json::{Value, json};

use super::{
    Finish, WireCall, WireEvent, WireFault,
    openai::provider_fault,
    parse,
    request::{WireMessage, WireRequest, lawful_id, object},
    sse::SseEvent,
};

/// The version of the dialect that is spoken here.
pub const VERSION: &str = "2023-06-01";

/// The least output limit that leaves room to think.
const THINKING_OUTPUT: u32 = 16_384;

/// A request as bytes.
///
/// # Errors
///
/// [`WireFault::Malformed`] when it cannot be written as JSON.
pub fn body(request: &WireRequest<'_>) -> Result<Vec<u8>, WireFault> {
    let thinking = request.thinking.filter(|level| !matches!(*level, "off" | "none" | "false"));
    let max_tokens = if thinking.is_some() { request.max_output.max(THINKING_OUTPUT) } else { request.max_output };
    let mut body = json!({
        "model": request.model,
        "max_tokens": max_tokens,
        "messages": messages(request.messages),
        "stream": request.stream,
    });
    let mut put = |key: &str, value: Value| {
        if let Some(body) = body.as_object_mut() {
            body.insert(key.to_owned(), value);
        }
    };
    if !request.system.is_empty() {
        // everything up to this mark is the same in every call of a turn
        let block = json!({"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}});
        put("system", json!([block]));
    }
    if !request.tools.is_empty() {
        let tool = |tool: &std::sync::Arc<animaworks_core::ToolSpec>| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
        put("tools", request.tools.iter().map(tool).collect());
        put("tool_choice", json!({"type": if request.may_call { "auto" } else { "none" }}));
    }
    if let Some(level) = thinking {
        put("thinking", thinking_block(request.model, level));
    }
    serde_json::to_vec(&body).map_err(|error| WireFault::Malformed(error.to_string()))
}

fn thinking_block(model: &str, level: &str) -> Value {
    if ["opus-4-6", "sonnet-4-6"].iter().any(|adaptive| model.contains(adaptive)) {
        return json!({"type": "adaptive"});
    }
    let budget = match level {
        "low" => 2_048,
        "high" => 12_288,
        _ => 6_144,
    };
    json!({"type": "enabled", "budget_tokens": budget})
}

/// The conversation in blocks; neighbours of one role become one message, as the dialect demands.
fn messages(messages: &[WireMessage]) -> Value {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            WireMessage::User { text, images } => {
                let picture = |image: &animaworks_core::message::Image| {
                    let source = json!({"type": "base64", "media_type": image.media_type, "data": image.data});
                    json!({"type": "image", "source": source})
                };
                ("user", images.iter().map(picture).chain(words(text)).collect())
            }
            WireMessage::Assistant { text, calls, opaque } => {
                let call = |call: &WireCall| {
                    let input = object(&call.arguments);
                    json!({"type": "tool_use", "id": lawful_id(&call.id, None), "name": call.name, "input": input})
                };
                ("assistant", opaque.iter().cloned().chain(words(text)).chain(calls.iter().map(call)).collect())
            }
            WireMessage::Tool { id, text, is_error } => {
                let mut block = json!({"type": "tool_result", "tool_use_id": lawful_id(id, None), "content": text});
                if let (true, Some(block)) = (is_error, block.as_object_mut()) {
                    block.insert("is_error".to_owned(), json!(true));
                }
                ("user", vec![block])
            }
        };
        match out.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => out.push((role, blocks)),
        }
    }
    out.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn words(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub struct AnthropicDecoder {
    blocks: BTreeMap<u64, Block>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    called: bool,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking { text: String, signature: String },
    Opaque(Value),
    Call { call: WireCall, given: Value },
}

impl AnthropicDecoder {
    /// Takes one event of a stream.
    ///
    /// # Errors
    ///
    /// [`WireFault`] for an error the provider reports, or one that is not JSON.
    pub fn event(&mut self, event: &SseEvent, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        if event.data.trim().is_empty() {
            return Ok(());
        }
        let data: Value = parse(event.data.as_bytes())?;
        let index = data.get("index").and_then(Value::as_u64).unwrap_or(0);
        match data.get("type").and_then(Value::as_str).unwrap_or(&event.name) {
            "message_start" => self.counted(data.pointer("/message/usage")),
            "content_block_start" => {
                if let Some(block) = data.get("content_block") {
                    self.open(index, block, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = data.get("delta") {
                    self.delta(index, delta, out);
                }
            }
            "content_block_stop" => self.close(index, out),
            "message_delta" => {
                self.counted(data.get("usage"));
                if let Some(reason) = data.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.finish = Some(finish(reason));
                }
            }
            "message_stop" => self.end(out)?,
            "error" => return Err(provider_fault(data.get("error").unwrap_or(&data))),
            // `ping`, and whatever comes one day
            _ => {}
        }
        Ok(())
    }

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    ///
    /// [`WireFault`] for an error, or a body that is no message.
    pub fn whole(&mut self, body: &Value, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        if let Some(error) = body.get("error") {
            return Err(provider_fault(error));
        }
        let blocks = body.get("content").and_then(Value::as_array);
        let blocks = blocks.ok_or_else(|| WireFault::Malformed("no content in the answer".to_owned()))?;
        for (index, block) in (0..).zip(blocks) {
            self.open(index, block, out);
            self.close(index, out);
        }
        self.counted(body.get("usage"));
        self.finish = body.get("stop_reason").and_then(Value::as_str).map(finish);
        self.end(out)
    }

    fn open(&mut self, index: u64, block: &Value, out: &mut Vec<WireEvent>) {
        let word = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let opened = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                say(WireEvent::Text, &word("text"), out);
                Block::Text
            }
            Some("thinking") => {
                say(WireEvent::Thinking, &word("thinking"), out);
                Block::Thinking { text: word("thinking"), signature: word("signature") }
            }
            Some("redacted_thinking") => Block::Opaque(block.clone()),
            Some("tool_use") => {
                let call = WireCall { id: word("id"), name: word("name"), arguments: String::new(), opaque: None };
                Block::Call { call, given: block.get("input").cloned().unwrap_or(Value::Null) }
            }
            _ => return,
        };
        self.blocks.insert(index, opened);
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<WireEvent>) {
        let piece = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match (delta.get("type").and_then(Value::as_str), self.blocks.get_mut(&index)) {
            (Some("text_delta"), _) => say(WireEvent::Text, piece("text"), out),
            (Some("thinking_delta"), Some(Block::Thinking { text, .. })) => {
                text.push_str(piece("thinking"));
                say(WireEvent::Thinking, piece("thinking"), out);
            }
            (Some("signature_delta"), Some(Block::Thinking { signature, .. })) => {
                signature.push_str(piece("signature"));
            }
            (Some("input_json_delta"), Some(Block::Call { call, .. })) => {
                call.arguments.push_str(piece("partial_json"));
            }
            _ => {}
        }
    }

    fn close(&mut self, index: u64, out: &mut Vec<WireEvent>) {
        match self.blocks.remove(&index) {
            Some(Block::Thinking { text, signature }) if !signature.is_empty() => {
                out.push(WireEvent::Opaque(json!({"type": "thinking", "thinking": text, "signature": signature})));
            }
            Some(Block::Opaque(block)) => out.push(WireEvent::Opaque(block)),
            Some(Block::Call { mut call, given }) => {
                if call.arguments.is_empty() && given.is_object() {
                    call.arguments = given.to_string();
                }
                self.called = true;
                out.push(WireEvent::Call(call));
            }
            _ => {}
        }
    }

    fn end(&mut self, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        // a block that never closed may be half a call
        let Some(finish) = self.finish.filter(|_| self.blocks.is_empty()) else {
            return Err(WireFault::Truncated);
        };
        out.extend(self.usage.take().map(WireEvent::Usage));
        out.push(WireEvent::End(if self.called && finish == Finish::Stop { Finish::Tools } else { finish }));
        Ok(())
    }

    /// Usage comes in parts: what was read at the start, what was written at the end.
    fn counted(&mut self, usage: Option<&Value>) {
        let Some(counts) = usage else { return };
        let usage = self.usage.get_or_insert_default();
        let mut take = |key: &str, into: fn(&mut Usage) -> &mut u64| {
            if let Some(count) = counts.get(key).and_then(Value::as_u64) {
                *into(usage) = count;
            }
        };
        take("input_tokens", |usage| &mut usage.input_tokens);
        take("output_tokens", |usage| &mut usage.output_tokens);
        take("cache_read_input_tokens", |usage| &mut usage.cache_read_tokens);
        take("cache_creation_input_tokens", |usage| &mut usage.cache_write_tokens);
    }
}

fn say(event: fn(String) -> WireEvent, text: &str, out: &mut Vec<WireEvent>) {
    if !text.is_empty() {
        out.push(event(text.to_owned()));
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_use" => Finish::Tools,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Filtered,
        _ => Finish::Stop,
    }
}
