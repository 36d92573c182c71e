//! One model call: made to fit, sent, read, and tried again where that is right.

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use animaworks_core::{
    Checkpoint, ExecError, Tokens, TurnEvent, Usage,
    seams::{Body, TransportError},
};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Response};
use serde_json::Value;

use super::{Turn, voice::Voice};
use crate::{
    provider::{Lesson, Thinking, classify, from_wire},
    retry::Backoff,
    wire::{Dialect, Finish, WireCall, WireEvent, WireReader, anthropic, openai, request::WireRequest},
};

/// The room an answer must have, and the margin below it.
const MIN_OUTPUT: u32 = 256;
const OUTPUT_MARGIN: u32 = 128;
/// The part of a system prompt that is never cut, in characters.
const MIN_SYSTEM_CHARS: usize = 2_000;
/// How much of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// How long a refusal may take to arrive, and an answer to close that is already whole.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);
const CLOSING_LIMIT: Duration = Duration::from_secs(2);

/// What the model said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<WireCall>,
    pub(super) opaque: Vec<Value>,
    pub(super) usage: Usage,
    pub(super) finish: Finish,
    pub(super) circling: bool,
}

/// A call that failed, and whether some of its answer was already shown.
struct Failed {
    error: ExecError,
    said: bool,
}

impl From<ExecError> for Failed {
    fn from(error: ExecError) -> Self {
        Self { error, said: false }
    }
}

impl Turn {
    /// Asks the model until it answers or there is no point in asking again.
    pub(super) async fn ask(&mut self, may_call: bool) -> Result<Answer, ExecError> {
        self.history.deliver_reminders();
        let seed = u64::from_str_radix(self.line.ids.fresh().get(..16).unwrap_or_default(), 16).unwrap_or(1);
        let mut backoff = Backoff::new(self.line.retry, seed);
        let mut compacted = false;
        loop {
            let failed = match self.attempt(may_call).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            // what was shown cannot be taken back; the life goes on from its checkpoint
            if failed.said {
                return Err(failed.error);
            }
            if self.learn(&failed.error) {
                continue;
            }
            if matches!(failed.error, ExecError::ContextOverflow { .. }) && !compacted {
                compacted = true;
                self.host.checkpoint(Checkpoint::BeforeCompaction).await;
                if self.history.compact(self.request.model.window) {
                    continue;
                }
            }
            let Some(wait) = backoff.next(&failed.error) else { return Err(failed.error) };
            let (attempt, max_attempts) = (backoff.attempt(), self.line.retry.retries);
            let reason = failed.error.to_string();
            self.out.send(TurnEvent::Retrying { attempt, max_attempts, reason }).await;
            self.line.clock.sleep(wait).await;
        }
    }

    /// Takes a refusal as a lesson about the model; whether the next request will differ by it.
    fn learn(&self, error: &ExecError) -> bool {
        let ExecError::Rejected { status: 400 | 404 | 422 | 501, detail, .. } = error else { return false };
        let detail = detail.to_lowercase();
        let refused =
            ["unsupported", "not supported", "not support", "unknown", "unrecognized", "not permitted", "extra"];
        if !refused.iter().any(|word| detail.contains(word)) {
            return false;
        }
        let lesson = if detail.contains("stream_options") {
            Lesson::NoStreamUsage
        } else if ["reasoning", "thinking", "chat_template"].iter().any(|word| detail.contains(word)) {
            if self.request.model.thinking.is_none() || self.endpoint.provider.quirks.thinking == Thinking::Unknown {
                return false;
            }
            Lesson::NoThinkingParameter
        } else if detail.contains("stream") {
            Lesson::NoStreaming
        } else {
            return false;
        };
        self.line.learned.learn(&self.learned_as(), lesson)
    }

    fn learned_as(&self) -> String {
        format!("{} {}", self.endpoint.url, self.endpoint.model)
    }

    async fn attempt(&mut self, may_call: bool) -> Result<Answer, Failed> {
        let tools = self.host.tools().to_vec();
        let tool_tokens: Tokens = tools
            .iter()
            .map(|tool| Tokens::estimate(&tool.description) + Tokens::estimate(&tool.schema.to_string()))
            .sum();
        let (max_output, system) = self.fit(tool_tokens);
        let estimate = Tokens::estimate(&system) + tool_tokens + self.history.tokens();
        let model = self.learned_as();
        let knows = |lesson| self.line.learned.knows(&model, lesson);
        let thinking = self.request.model.thinking.as_deref().filter(|_| !knows(Lesson::NoThinkingParameter));
        let mut quirks = self.endpoint.provider.quirks;
        quirks.stream_usage &= !knows(Lesson::NoStreamUsage);
        let patient = knows(Lesson::OrphanThoughts) || (quirks.thinking == Thinking::Template && thinking.is_some());
        let request = WireRequest {
            model: &self.endpoint.model,
            system: &system,
            messages: self.history.messages(),
            tools: &tools,
            may_call,
            max_output,
            thinking,
            stream: !knows(Lesson::NoStreaming),
        };
        let dialect = self.endpoint.provider.dialect;
        let body = match dialect {
            Dialect::OpenAi => openai::body(&request, &quirks),
            Dialect::Anthropic => anthropic::body(&request),
        };
        let body = body.map_err(|fault| from_wire(&self.endpoint, fault))?;
        let names: BTreeSet<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        let mut voice = Voice::new(patient, (quirks.small_models && may_call).then_some(names), self.draft.as_deref());
        let read = self.exchange(body, WireReader::new(dialect), &mut voice).await;
        if voice.leaked() {
            self.line.learned.learn(&model, Lesson::OrphanThoughts);
        }
        let mut heard = read.map_err(|error| Failed { error, said: voice.said })?;
        let mut events = Vec::new();
        let written = voice.finish(&mut events);
        for event in events {
            self.out.send(event).await;
        }
        if heard.calls.is_empty() {
            heard.calls = written;
        }
        let usage = match heard.usage {
            Some(usage) => {
                if estimate.0 > 0 && usage.context_tokens() > 0 {
                    self.scale = (usage.context_tokens() as f64 / f64::from(estimate.0)).clamp(0.25, 4.0);
                }
                usage
            }
            None => Usage {
                input_tokens: u64::from(estimate.0),
                output_tokens: u64::from(spoken(&voice.text, &heard.calls).0),
                estimated: true,
                ..Usage::default()
            },
        };
        self.draft = None;
        let Heard { calls, opaque, finish, .. } = heard;
        let circling = voice.circling;
        Ok(Answer { text: voice.text, calls, opaque, usage, finish, circling })
    }

    /// Makes room: how long the answer may be, and the system prompt that is left.
    fn fit(&mut self, tools: Tokens) -> (u32, Cow<'static, str>) {
        let system = self.request.prompt.system.to_string();
        let wanted = self.request.model.max_output.0;
        let window = self.request.model.window;
        if window.0 == 0 {
            return (wanted, system.into());
        }
        let scaled = |tokens: Tokens| Tokens((f64::from(tokens.0) * self.scale).ceil() as u32);
        let system_tokens = Tokens::estimate(&system);
        let left = window.saturating_sub(scaled(system_tokens + tools + self.history.tokens())).0;
        if left >= wanted {
            return (wanted, system.into());
        }
        if left >= MIN_OUTPUT + OUTPUT_MARGIN {
            return (left - OUTPUT_MARGIN, system.into());
        }
        let missing = Tokens(MIN_OUTPUT + OUTPUT_MARGIN - left);
        let trimmed = system_tokens.saturating_sub(missing).head(&system);
        if trimmed.chars().count() >= MIN_SYSTEM_CHARS {
            return (MIN_OUTPUT, trimmed.to_owned().into());
        }
        let floor: String = system.chars().take(MIN_SYSTEM_CHARS).collect();
        self.history.compact(window);
        let used = Tokens::estimate(&floor) + tools + self.history.tokens();
        let left = window.saturating_sub(Tokens((f64::from(used.0) * self.scale).ceil() as u32)).0;
        (left.saturating_sub(OUTPUT_MARGIN).clamp(MIN_OUTPUT, wanted.max(MIN_OUTPUT)), floor.into())
    }

    /// Sends a request and reads its answer to the end.
    async fn exchange(&self, body: Vec<u8>, mut reader: WireReader, voice: &mut Voice) -> Result<Heard, ExecError> {
        let limits = self.request.limits;
        let clock = &self.line.clock;
        let mut patience = clock.sleep(limits.first_byte);
        let mut waiting = ("first byte", limits.first_byte);
        let send = self.line.transport.send(self.http(body)?);
        let answer = tokio::select! {
            answer = send => answer.map_err(|error| self.broken(error, false))?,
            () = &mut patience => return Err(self.late(waiting)),
        };
        if !answer.status().is_success() {
            return Err(self.refused(answer).await);
        }
        let mut pieces = answer.into_body();
        let mut heard = Heard::default();
        let mut events = Vec::new();
        while !reader.ended() && !voice.circling {
            let piece = tokio::select! {
                biased;
                piece = pieces.next() => piece,
                () = &mut patience => {
                    if !reader.is_complete() {
                        return Err(self.late(waiting));
                    }
                    None
                }
            };
            let pushed = match piece {
                Some(Ok(bytes)) => reader.push(&bytes, &mut events),
                // the answer is whole; what broke was only the goodbye
                Some(Err(_)) if reader.is_complete() => reader.close(&mut events),
                Some(Err(error)) => return Err(self.broken(error, true)),
                None => reader.close(&mut events),
            };
            // what came before a fault was said
            for event in events.drain(..) {
                self.hear(event, &mut heard, voice).await;
            }
            pushed.map_err(|fault| from_wire(&self.endpoint, fault))?;
            let idle = if reader.is_complete() { limits.idle.min(CLOSING_LIMIT) } else { limits.idle };
            waiting = ("next event", idle);
            patience = clock.sleep(idle);
        }
        Ok(heard)
    }

    async fn hear(&self, event: WireEvent, heard: &mut Heard, voice: &mut Voice) {
        let mut shown = Vec::new();
        match event {
            WireEvent::Text(text) => voice.push(&text, &mut shown),
            WireEvent::Thinking(text) => shown.push(TurnEvent::Thinking(text)),
            WireEvent::Call(call) => heard.calls.push(call),
            WireEvent::Opaque(block) => heard.opaque.push(block),
            WireEvent::Usage(usage) => heard.usage = Some(usage),
            WireEvent::End(finish) => heard.finish = finish,
        }
        for event in shown {
            self.out.send(event).await;
        }
    }

    fn http(&self, body: Vec<u8>) -> Result<http::Request<Bytes>, ExecError> {
        let request = http::Request::builder().method(Method::POST).uri(self.endpoint.url.clone());
        let mut request = request.body(Bytes::from(body)).map_err(|error| ExecError::Rejected {
            engine: self.engine(),
            status: 0,
            detail: error.to_string(),
        })?;
        request.headers_mut().clone_from(self.endpoint.headers());
        Ok(request)
    }

    async fn refused(&self, answer: Response<Body>) -> ExecError {
        let (head, mut pieces) = answer.into_parts();
        let mut body = Vec::new();
        let mut limit = self.line.clock.sleep(REFUSAL_LIMIT);
        while body.len() < MAX_REFUSAL_BYTES {
            let piece = tokio::select! {
                piece = pieces.next() => piece,
                () = &mut limit => None,
            };
            // the status alone says enough
            let Some(Ok(bytes)) = piece else { break };
            body.extend_from_slice(&bytes);
        }
        tracing::debug!(provider = self.endpoint.provider.name, status = head.status.as_u16(), "refused");
        classify(&self.endpoint, head.status, &head.headers, &body, &*self.line.clock)
    }

    fn broken(&self, error: TransportError, begun: bool) -> ExecError {
        let engine = self.engine();
        let detail = self.endpoint.redact(&error.to_string());
        let limits = self.request.limits;
        match error {
            TransportError::Timeout { waiting_for, .. } => {
                let after = if begun { limits.idle } else { limits.first_byte };
                ExecError::Timeout { engine, waiting_for, after }
            }
            TransportError::Connect { .. } => ExecError::Unreachable { engine, detail },
            TransportError::Broken { .. } if begun => ExecError::Interrupted { engine, detail },
            TransportError::Broken { .. } => ExecError::Unreachable { engine, detail },
            TransportError::TooLarge { .. } => ExecError::Malformed { engine, detail },
            _ => ExecError::Rejected { engine, status: 0, detail },
        }
    }

    fn late(&self, (waiting_for, after): (&'static str, Duration)) -> ExecError {
        ExecError::Timeout { engine: self.engine(), waiting_for, after }
    }
}

/// An answer as it was read.
#[derive(Debug)]
struct Heard {
    calls: Vec<WireCall>,
    opaque: Vec<Value>,
    usage: Option<Usage>,
    finish: Finish,
}

impl Default for Heard {
    fn default() -> Self {
        Self { calls: Vec::new(), opaque: Vec::new(), usage: None, finish: Finish::Stop }
    }
}

fn spoken(text: &str, calls: &[WireCall]) -> Tokens {
    Tokens::estimate(text) + calls.iter().map(|call| Tokens::estimate(&call.arguments)).sum()
}
