//! Chat completions: the dialect most providers speak.
//!
//! Requests are async-openai's types. Answers are read by types of our own,
//! because compatible servers leave out fields that those insist on and send
//! others they do not know (ADR 0003).

use std::collections::BTreeMap;

use animaworks_core::units::Usage;
use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestMessage, ChatCompletionRequestMessageContentPartImage,
    ChatCompletionRequestMessageContentPartText, ChatCompletionRequestSystemMessage, ChatCompletionRequestToolMessage,
    ChatCompletionRequestUserMessage, ChatCompletionRequestUserMessageContent,
    ChatCompletionRequestUserMessageContentPart, ChatCompletionStreamOptions, ChatCompletionTool,
    ChatCompletionToolChoiceOption, ChatCompletionTools, CreateChatCompletionRequest, FunctionCall, FunctionObject,
    ImageUrl, ToolChoiceOptions,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Finish, WireCall, WireEvent, WireFault, parse,
    request::{WireMessage, WireRequest, lawful_id, object},
    sse::SseEvent,
};
use crate::provider::{MaxTokens, Quirks, Thinking};

/// The most calls one message may hold; more is a runaway.
const MAX_CALLS: usize = 128;

/// A request as bytes.
///
/// # Errors
///
/// [`WireFault::Malformed`] when it cannot be written as JSON.
pub fn body(request: &WireRequest<'_>, quirks: &Quirks) -> Result<Vec<u8>, WireFault> {
    let unwritable = |error: serde_json::Error| WireFault::Malformed(error.to_string());
    let mut value = serde_json::to_value(typed(request, quirks)).map_err(unwritable)?;
    give_back_opaque(&mut value, request.messages);
    if let Some(body) = value.as_object_mut() {
        for (key, extra) in thinking(request.thinking, quirks.thinking) {
            body.insert(key.to_owned(), extra);
        }
    }
    serde_json::to_vec(&value).map_err(unwritable)
}

#[allow(deprecated, reason = "most compatible servers know only max_tokens")]
fn typed(request: &WireRequest<'_>, quirks: &Quirks) -> CreateChatCompletionRequest {
    let system = ChatCompletionRequestSystemMessage { content: request.system.into(), ..Default::default() };
    let system = (!request.system.is_empty()).then_some(ChatCompletionRequestMessage::System(system));
    let messages = request.messages.iter().map(|said| message(said, quirks));
    let tools: Vec<_> = request
        .tools
        .iter()
        .map(|tool| {
            let schema = if quirks.plain_schema { plain_schema(&tool.schema) } else { tool.schema.clone() };
            let function = FunctionObject {
                name: tool.name.to_string(),
                description: Some(tool.description.clone()),
                parameters: Some(schema),
                strict: None,
            };
            ChatCompletionTools::Function(ChatCompletionTool { function })
        })
        .collect();
    let choice = if request.may_call { ToolChoiceOptions::Auto } else { ToolChoiceOptions::None };
    let newer = match quirks.max_tokens {
        MaxTokens::Newer => true,
        MaxTokens::Older => false,
        MaxTokens::ByModel => newer_limit(request.model),
    };
    let limit = Some(request.max_output);
    CreateChatCompletionRequest {
        model: request.model.to_owned(),
        messages: system.into_iter().chain(messages).collect(),
        tool_choice: (!tools.is_empty()).then_some(ChatCompletionToolChoiceOption::Mode(choice)),
        tools: (!tools.is_empty()).then_some(tools),
        max_tokens: limit.filter(|_| !newer),
        max_completion_tokens: limit.filter(|_| newer),
        stream: Some(request.stream),
        stream_options: (request.stream && quirks.stream_usage)
            .then_some(ChatCompletionStreamOptions { include_usage: Some(true), include_obfuscation: None }),
        ..Default::default()
    }
}

/// The models of OpenAI that refuse `max_tokens`: the o series and everything from gpt-5 on.
fn newer_limit(model: &str) -> bool {
    let mut chars = model.chars();
    let o_series = chars.next() == Some('o') && chars.next().is_some_and(|c| c.is_ascii_digit());
    o_series
        || model.strip_prefix("gpt-").and_then(|rest| rest.chars().next()).is_some_and(|c| ('5'..='9').contains(&c))
}

#[allow(deprecated, reason = "the type still has the field")]
fn message(said: &WireMessage, quirks: &Quirks) -> ChatCompletionRequestMessage {
    let id = |id: &str| match quirks.call_id_length {
        Some(length) => lawful_id(id, Some(length)),
        None => id.to_owned(),
    };
    match said {
        WireMessage::User { text, images } if images.is_empty() => {
            let content = ChatCompletionRequestUserMessageContent::Text(text.clone());
            ChatCompletionRequestUserMessage { content, name: None }.into()
        }
        WireMessage::User { text, images } => {
            let words = (!text.is_empty()).then(|| {
                let part = ChatCompletionRequestMessageContentPartText { text: text.clone(), ..Default::default() };
                ChatCompletionRequestUserMessageContentPart::Text(part)
            });
            let pictures = images.iter().map(|image| {
                let url = format!("data:{};base64,{}", image.media_type, image.data);
                let image_url = ImageUrl { url, detail: None };
                let part = ChatCompletionRequestMessageContentPartImage { image_url, ..Default::default() };
                ChatCompletionRequestUserMessageContentPart::ImageUrl(part)
            });
            let parts = words.into_iter().chain(pictures).collect();
            let content = ChatCompletionRequestUserMessageContent::Array(parts);
            ChatCompletionRequestUserMessage { content, name: None }.into()
        }
        WireMessage::Assistant { text, calls, .. } => {
            let calls: Vec<_> = calls
                .iter()
                .map(|call| {
                    let arguments = object(&call.arguments).to_string();
                    let function = FunctionCall { name: call.name.clone(), arguments };
                    let call = ChatCompletionMessageToolCall { id: id(&call.id), function };
                    ChatCompletionMessageToolCalls::Function(call)
                })
                .collect();
            // strict servers refuse an empty content beside calls
            ChatCompletionRequestAssistantMessage {
                content: (!text.is_empty()).then(|| text.as_str().into()),
                tool_calls: (!calls.is_empty()).then_some(calls),
                ..Default::default()
            }
            .into()
        }
        WireMessage::Tool { id: call, text, .. } => {
            ChatCompletionRequestToolMessage { content: text.as_str().into(), tool_call_id: id(call) }.into()
        }
    }
}

/// Puts back what the provider attached to its calls (Gemini's thought signatures).
fn give_back_opaque(body: &mut Value, messages: &[WireMessage]) {
    let Some(written) = body.get_mut("messages").and_then(Value::as_array_mut) else { return };
    let offset = written.len().saturating_sub(messages.len());
    for (said, message) in messages.iter().zip(written.iter_mut().skip(offset)) {
        let WireMessage::Assistant { calls, .. } = said else { continue };
        let Some(slots) = message.get_mut("tool_calls").and_then(Value::as_array_mut) else { continue };
        for (call, slot) in calls.iter().zip(slots) {
            if let (Some(opaque), Some(slot)) = (&call.opaque, slot.as_object_mut()) {
                slot.insert("extra_content".to_owned(), opaque.clone());
            }
        }
    }
}

fn thinking(level: Option<&str>, style: Thinking) -> Vec<(&'static str, Value)> {
    let Some(level) = level else { return Vec::new() };
    let off = matches!(level, "off" | "none" | "false");
    match style {
        Thinking::Unknown => Vec::new(),
        Thinking::Effort if off => Vec::new(),
        Thinking::Effort => vec![("reasoning_effort", json!(level))],
        Thinking::EffortOrNone => vec![("reasoning_effort", json!(if off { "none" } else { level }))],
        Thinking::Nested if off => vec![("reasoning", json!({"enabled": false}))],
        Thinking::Nested => vec![("reasoning", json!({"effort": level}))],
        Thinking::Template => vec![("chat_template_kwargs", json!({"enable_thinking": !off}))],
    }
}

/// A schema without the words Gemini refuses.
fn plain_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let mut plain = serde_json::Map::new();
            for (key, value) in object {
                match (key.as_str(), value) {
                    ("additionalProperties" | "$schema", _) => {}
                    ("type", Value::Array(types)) => {
                        let real = types.iter().find(|kind| kind.as_str() != Some("null"));
                        plain.insert(key.clone(), real.cloned().unwrap_or(json!("string")));
                    }
                    _ => {
                        plain.insert(key.clone(), plain_schema(value));
                    }
                }
            }
            Value::Object(plain)
        }
        Value::Array(items) => Value::Array(items.iter().map(plain_schema).collect()),
        other => other.clone(),
    }
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub struct OpenAiDecoder {
    calls: Vec<WireCall>,
    /// The slot in `calls` that an index stands for.
    by_index: BTreeMap<u32, usize>,
    usage: Option<Usage>,
    finish: Option<Finish>,
}

impl OpenAiDecoder {
    /// Whether a finish reason was seen.
    pub(super) fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    /// Takes one event of a stream.
    ///
    /// # Errors
    ///
    /// [`WireFault`] for an error the provider reports, or one that is not JSON.
    pub fn event(&mut self, event: &SseEvent, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            // without a finish reason the model was not done, whatever the marker says
            self.closed(out);
            return if self.finish.is_some() { Ok(()) } else { Err(WireFault::Truncated) };
        }
        if data.is_empty() {
            return Ok(());
        }
        self.chunk(parse(data.as_bytes())?, out)
    }

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    ///
    /// [`WireFault`] for an error, or a body that is no completion.
    pub fn whole(&mut self, body: &Value, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        let chunk: Chunk = Deserialize::deserialize(body)
            .map_err(|error: serde_json::Error| WireFault::Malformed(error.to_string()))?;
        if chunk.error.is_none() && chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Err(WireFault::Malformed("no choices in the answer".to_owned()));
        }
        self.chunk(chunk, out)?;
        self.closed(out);
        Ok(())
    }

    /// The body is over: a finish reason makes it an end.
    pub(super) fn closed(&mut self, out: &mut Vec<WireEvent>) {
        let Some(finish) = self.finish else { return };
        let called = !self.calls.is_empty();
        out.extend(self.calls.drain(..).map(WireEvent::Call));
        out.extend(self.usage.take().map(WireEvent::Usage));
        // servers differ in what they call it when tools are wanted
        let finish = if called && finish == Finish::Stop { Finish::Tools } else { finish };
        out.push(WireEvent::End(finish));
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(provider_fault(&error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        // other choices are other answers; one was asked for
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta, out)?;
            }
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    let message = "the provider ended the answer with an error".to_owned();
                    return Err(WireFault::Provider { kind: "error".to_owned(), message });
                }
                Some("tool_calls" | "function_call") => self.finish = Some(Finish::Tools),
                Some("length" | "max_tokens") => self.finish = Some(Finish::Length),
                Some("content_filter") => self.finish = Some(Finish::Filtered),
                Some(_) => self.finish = Some(Finish::Stop),
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<WireEvent>) -> Result<(), WireFault> {
        // some servers send the same thoughts under both names
        let thoughts = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty());
        out.extend(thoughts.map(WireEvent::Thinking));
        match delta.content {
            Some(Content::Text(text)) if !text.is_empty() => out.push(WireEvent::Text(text)),
            Some(Content::Blocks(blocks)) => out.extend(blocks.iter().filter_map(block)),
            _ => {}
        }
        out.extend(delta.refusal.filter(|text| !text.is_empty()).map(WireEvent::Text));
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.fragment(fragment)?;
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: Fragment) -> Result<(), WireFault> {
        let id = fragment.id.unwrap_or_default();
        let known = match fragment.index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().position(|call| call.id == id),
        };
        // a new id under a known index is another call: some servers number all of them 0
        let known = known.filter(|slot| {
            self.calls.get(*slot).is_some_and(|call| id.is_empty() || call.id.is_empty() || call.id == id)
        });
        let slot = known.unwrap_or(self.calls.len());
        if known.is_none() {
            if slot >= MAX_CALLS {
                return Err(WireFault::Malformed(format!("more than {MAX_CALLS} tool calls in one message")));
            }
            self.calls.push(WireCall {
                id: String::new(),
                name: String::new(),
                arguments: String::new(),
                opaque: None,
            });
        }
        if let Some(index) = fragment.index {
            self.by_index.insert(index, slot);
        }
        let Some(call) = self.calls.get_mut(slot) else { return Ok(()) };
        if call.id.is_empty() {
            call.id = id;
        }
        if fragment.extra_content.is_some() {
            call.opaque = fragment.extra_content;
        }
        let Some(function) = fragment.function else { return Ok(()) };
        if let Some(name) = function.name
            && name != call.name
            && call.arguments.is_empty()
        {
            call.name.push_str(&name);
        }
        match function.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(piece)) => call.arguments.push_str(&piece),
            Some(object) => call.arguments.push_str(&object.to_string()),
        }
        Ok(())
    }
}

/// A content block, as Mistral and others send them.
fn block(block: &Value) -> Option<WireEvent> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()),
        _ => None,
    };
    let (event, key): (fn(String) -> WireEvent, _) = match block.get("type")?.as_str()? {
        "text" => (WireEvent::Text, "text"),
        "thinking" | "reasoning" => (WireEvent::Thinking, "thinking"),
        _ => return None,
    };
    block.get(key).and_then(text).filter(|text| !text.is_empty()).map(event)
}

/// An error object in any of its shapes.
pub(crate) fn provider_fault(error: &Value) -> WireFault {
    let word = |key: &str| match error.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let kind = word("code").or_else(|| word("type")).unwrap_or_else(|| "error".to_owned());
    let message = word("message").or_else(|| error.as_str().map(str::to_owned)).unwrap_or_else(|| error.to_string());
    WireFault::Provider { kind, message }
}

#[derive(Debug, Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<RawUsage>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    index: Option<u32>,
    delta: Option<Delta>,
    message: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delta {
    content: Option<Content>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Fragment>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

#[derive(Debug, Deserialize)]
struct Fragment {
    index: Option<u32>,
    id: Option<String>,
    function: Option<Function>,
    extra_content: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct RawUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<CachedTokens>,
    /// DeepSeek's word for it.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CachedTokens {
    cached_tokens: Option<u64>,
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
        let cached = raw.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let cache_read_tokens = cached.or(raw.prompt_cache_hit_tokens).unwrap_or(0);
        Self {
            // here the cached part is counted within the prompt
            input_tokens: raw.prompt_tokens.unwrap_or(0).saturating_sub(cache_read_tokens),
            output_tokens: raw.completion_tokens.unwrap_or(0),
            cache_read_tokens,
            ..Self::default()
        }
    }
}
