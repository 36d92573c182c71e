//! A provider on loopback: a real HTTP server that says what a test tells it to.
//!
//! It speaks the chat completions dialect, Anthropic Messages, the Responses dialect and that of Gemini, streamed or
//! whole as the request asks, and checks every request against the rules real providers have.

mod gemini;
mod responses;

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use animaworks_core::tasks::Tasks;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Response, StatusCode, Uri},
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What the server answers to one request.
#[derive(Debug, Clone)]
pub struct Reply {
    parts: Vec<Part>,
    usage: Option<(u64, u64, u64)>,
    status: u16,
    headers: Vec<(&'static str, String)>,
    raw: Option<Vec<u8>>,
    ending: Ending,
    drip: Option<usize>,
    finish: Option<&'static str>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Thinking(String),
    Call { id: String, name: String, arguments: String },
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Proper,
    /// After this many events nothing more comes, and the connection stays open.
    Stall(usize),
    /// After this many events the connection closes.
    Close(usize),
    /// After this many events half of the next one comes, then the connection closes.
    HalfEvent(usize),
    /// After this many events the connection breaks without the end of the body.
    Reset(usize),
}

impl Reply {
    fn new(parts: Vec<Part>) -> Self {
        Self {
            parts,
            usage: Some((11, 7, 0)),
            status: 200,
            headers: Vec::new(),
            raw: None,
            ending: Ending::Proper,
            drip: None,
            finish: None,
        }
    }

    /// Says this.
    pub fn text(text: &str) -> Self {
        Self::new(vec![Part::Text(text.to_owned())])
    }

    /// Calls a tool.
    pub fn tool_call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::raw_call(id, name, &arguments.to_string())
    }

    /// Calls a tool with arguments exactly as written.
    pub fn raw_call(id: &str, name: &str, arguments: &str) -> Self {
        Self::new(Vec::new()).and_call(id, name, arguments)
    }

    /// Calls several tools at once.
    pub fn parallel<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, Value)>) -> Self {
        calls.into_iter().fold(Self::new(Vec::new()), |reply, (id, name, arguments)| {
            reply.and_call(id, name, &arguments.to_string())
        })
    }

    /// Nothing at all, properly ended.
    pub fn silence() -> Self {
        Self::new(Vec::new())
    }

    /// Refuses with a status and a body.
    pub fn error(status: u16, body: &Value) -> Self {
        Self { status, raw: Some(body.to_string().into_bytes()), ..Self::new(Vec::new()) }
    }

    /// Exactly these bytes with status 200 and no content type.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some(bytes.into()), ..Self::new(Vec::new()) }
    }

    /// The same, thinking first.
    #[must_use]
    pub fn thinking(mut self, text: &str) -> Self {
        self.parts.insert(0, Part::Thinking(text.to_owned()));
        self
    }

    /// The same with one more call.
    #[must_use]
    pub fn and_call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        let (id, name, arguments) = (id.to_owned(), name.to_owned(), arguments.to_owned());
        self.parts.push(Part::Call { id, name, arguments });
        self
    }

    /// The same with these counts: read, written, and how much of the read was cached.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64, cached: u64) -> Self {
        self.usage = Some((input, output, cached));
        self
    }

    /// The same without counts.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// The same with another finish reason.
    #[must_use]
    pub fn finish(mut self, reason: &'static str) -> Self {
        self.finish = Some(reason);
        self
    }

    /// The same with `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, value: &str) -> Self {
        self.headers.push(("retry-after", value.to_owned()));
        self
    }

    /// The same, but after `events` nothing more comes.
    #[must_use]
    pub fn stall(mut self, events: usize) -> Self {
        self.ending = Ending::Stall(events);
        self
    }

    /// The same, but closed after `events`.
    #[must_use]
    pub fn close(mut self, events: usize) -> Self {
        self.ending = Ending::Close(events);
        self
    }

    /// The same, but broken off in the middle of the event after `events`.
    #[must_use]
    pub fn half_event(mut self, events: usize) -> Self {
        self.ending = Ending::HalfEvent(events);
        self
    }

    /// The same, but the connection breaks after `events`.
    #[must_use]
    pub fn reset(mut self, events: usize) -> Self {
        self.ending = Ending::Reset(events);
        self
    }

    /// The same, in pieces of this many bytes.
    #[must_use]
    pub fn drip(mut self, bytes: usize) -> Self {
        self.drip = Some(bytes.max(1));
        self
    }

    fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The path and query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Value,
}

/// What was asked, and which rules it broke.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    requests: Vec<Captured>,
    breaches: Vec<String>,
    replies: VecDeque<Reply>,
    forever: Option<Reply>,
}

impl Recorder {
    /// The requests so far.
    pub fn requests(&self) -> Vec<Captured> {
        self.lock().requests.clone()
    }

    /// The rules that were broken so far.
    pub fn breaches(&self) -> Vec<String> {
        self.lock().breaches.clone()
    }

    /// How many replies nobody has asked for yet.
    pub fn left(&self) -> usize {
        self.lock().replies.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, request: Captured) -> Option<Reply> {
        let mut record = self.lock();
        let breaches = breaches(&request);
        record.breaches.extend(breaches);
        record.requests.push(request);
        record.replies.pop_front().or_else(|| record.forever.clone())
    }
}

/// The server. Dropping it ends it, and fails a test whose requests broke a rule.
#[derive(Debug)]
pub struct LlmServer {
    address: SocketAddr,
    recorder: Recorder,
    _tasks: Tasks,
}

impl LlmServer {
    /// Listens on a free port of loopback and gives these replies in order.
    ///
    /// # Errors
    ///
    /// When loopback cannot be listened on.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> anyhow::Result<Self> {
        Self::listen(replies.into_iter().collect(), None).await
    }

    /// The same reply to every request.
    ///
    /// # Errors
    ///
    /// When loopback cannot be listened on.
    pub async fn always(reply: Reply) -> anyhow::Result<Self> {
        Self::listen(VecDeque::new(), Some(reply)).await
    }

    async fn listen(replies: VecDeque<Reply>, forever: Option<Reply>) -> anyhow::Result<Self> {
        let recorder = Recorder(Arc::new(Mutex::new(Record { replies, forever, ..Record::default() })));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let app = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/openai/deployments/{deployment}/chat/completions", post(chat))
            .route("/v1/messages", post(messages))
            .route("/v1/responses", post(openai_responses))
            .route("/v1beta/models/{call}", post(generate_content))
            .with_state(recorder.clone());
        let tasks = Tasks::new("llm server");
        tasks.spawn("serve", async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing_free_report(&error);
            }
        });
        Ok(Self { address, recorder, _tasks: tasks })
    }

    /// The base address to put into a credential.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The bodies of the requests so far.
    pub fn bodies(&self) -> Vec<Value> {
        self.recorder.requests().into_iter().map(|request| request.body).collect()
    }
}

impl Drop for LlmServer {
    fn drop(&mut self) {
        let breaches = self.recorder.breaches();
        if !std::thread::panicking() {
            assert!(breaches.is_empty(), "requests broke the rules of the dialect: {breaches:#?}");
        }
    }
}

#[allow(clippy::print_stderr, reason = "a test reads it")]
pub(crate) fn tracing_free_report(error: &std::io::Error) {
    eprintln!("llm server: {error}");
}

async fn chat(State(recorder): State<Recorder>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    answer(&recorder, uri, headers, &body, chat_events, chat_whole)
}

async fn messages(State(recorder): State<Recorder>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    answer(&recorder, uri, headers, &body, messages_events, messages_whole)
}

async fn openai_responses(
    State(recorder): State<Recorder>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    answer(&recorder, uri, headers, &body, responses::events, responses::whole)
}

async fn generate_content(
    State(recorder): State<Recorder>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    answer(&recorder, uri, headers, &body, gemini::events, gemini::whole)
}

fn answer(
    recorder: &Recorder,
    uri: Uri,
    headers: HeaderMap,
    body: &[u8],
    events: fn(&Reply, bool) -> Vec<String>,
    whole: fn(&Reply) -> Value,
) -> Response<Body> {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let streams =
        body.get("stream").and_then(Value::as_bool).unwrap_or(false) || uri.path().ends_with(":streamGenerateContent");
    let wants_usage = body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
    let Some(reply) = recorder.take(Captured { path: uri.to_string(), headers, body }) else {
        recorder.lock().breaches.push("a request nobody planned a reply for".to_owned());
        return plain(599, Vec::new(), Body::empty());
    };
    if let Some(raw) = &reply.raw {
        return plain(reply.status, reply.headers.clone(), pieces(raw.clone(), reply.drip));
    }
    if !streams {
        return plain(reply.status, reply.headers.clone(), Body::from(whole(&reply).to_string()));
    }
    let mut headers = reply.headers.clone();
    headers.push(("content-type", "text/event-stream".to_owned()));
    plain(reply.status, headers, stream_body(&reply, &events(&reply, wants_usage)))
}

fn plain(status: u16, headers: Vec<(&'static str, String)>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn pieces(bytes: Vec<u8>, drip: Option<usize>) -> Body {
    let Some(step) = drip else { return Body::from(bytes) };
    let pieces: Vec<_> = bytes.chunks(step).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    // each piece leaves by itself
    Body::from_stream(stream::iter(pieces).then(|piece| async {
        tokio::task::yield_now().await;
        piece
    }))
}

fn stream_body(reply: &Reply, events: &[String]) -> Body {
    let joined = |events: &[String]| events.concat().into_bytes();
    let upto = |count: usize| events.get(..count.min(events.len())).unwrap_or(events);
    match reply.ending {
        Ending::Proper => pieces(joined(events), reply.drip),
        Ending::Close(count) => pieces(joined(upto(count)), reply.drip),
        Ending::HalfEvent(count) => {
            let mut bytes = joined(upto(count));
            let half = events.get(count).map_or("", String::as_str).as_bytes();
            bytes.extend_from_slice(half.get(..half.len() / 2).unwrap_or_default());
            pieces(bytes, reply.drip)
        }
        Ending::Stall(count) => {
            let head = stream::iter([Ok::<_, std::io::Error>(joined(upto(count)))]);
            Body::from_stream(head.chain(stream::pending()))
        }
        Ending::Reset(count) => {
            let head = stream::iter([Ok(joined(upto(count)))]);
            let broken = stream::once(async {
                // lets the events leave before the connection breaks
                tokio::task::yield_now().await;
                Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
            });
            Body::from_stream(head.chain(broken))
        }
    }
}

/// Pieces of a few characters, never of bytes.
fn words(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(5).map(|piece| piece.iter().collect()).collect()
}

fn chat_events(reply: &Reply, wants_usage: bool) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "kit", "choices": choices,
        });
        if wants_usage && let Some(chunk) = chunk.as_object_mut() {
            chunk.insert("usage".to_owned(), usage);
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    let mut index = 0;
    for part in &reply.parts {
        match part {
            Part::Text(text) => events.extend(words(text).into_iter().map(|piece| delta(json!({"content": piece})))),
            Part::Thinking(text) => {
                events.extend(words(text).into_iter().map(|piece| delta(json!({"reasoning_content": piece}))));
            }
            Part::Call { id, name, arguments } => {
                let function = json!({"name": name, "arguments": ""});
                let call = json!({"index": index, "id": id, "type": "function", "function": function});
                events.push(delta(json!({"tool_calls": [call]})));
                events.extend(
                    words(arguments).into_iter().map(|piece| {
                        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
                    }),
                );
                index += 1;
            }
        }
    }
    let finish = reply.finish.unwrap_or(if reply.calls() { "tool_calls" } else { "stop" });
    events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null));
    if wants_usage && let Some(usage) = reply.usage {
        events.push(chunk(json!([]), chat_usage(usage)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn chat_usage((input, output, cached): (u64, u64, u64)) -> Value {
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    })
}

fn chat_whole(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": null});
    let mut calls = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Text(text) => message["content"] = json!(text),
            Part::Thinking(text) => message["reasoning_content"] = json!(text),
            Part::Call { id, name, arguments } => {
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
        }
    }
    let finish = reply.finish.unwrap_or(if reply.calls() { "tool_calls" } else { "stop" });
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    let mut body =
        json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "kit", "choices": choices});
    if let Some(usage) = reply.usage {
        body["usage"] = chat_usage(usage);
    }
    body
}

fn messages_events(reply: &Reply, _wants_usage: bool) -> Vec<String> {
    let event = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    let (input, output, cached) = reply.usage.unwrap_or_default();
    let usage = json!({"input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
    let mut events = vec![event(json!({"type": "message_start", "message": message})), event(json!({"type": "ping"}))];
    for (index, part) in reply.parts.iter().enumerate() {
        let (block, deltas): (Value, Vec<Value>) = match part {
            Part::Text(text) => (
                json!({"type": "text", "text": ""}),
                words(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect(),
            ),
            Part::Thinking(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                words(text)
                    .into_iter()
                    .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                    .chain([json!({"type": "signature_delta", "signature": "c2lnbmVk"})])
                    .collect(),
            ),
            Part::Call { id, name, arguments } => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                words(arguments)
                    .into_iter()
                    .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                    .collect(),
            ),
        };
        events.push(event(json!({"type": "content_block_start", "index": index, "content_block": block})));
        let deltas =
            deltas.into_iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.extend(deltas.map(event));
        events.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    let reason = reply.finish.unwrap_or(if reply.calls() { "tool_use" } else { "end_turn" });
    let usage = json!({"output_tokens": output});
    events.push(event(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage})));
    events.push(event(json!({"type": "message_stop"})));
    events
}

fn messages_whole(reply: &Reply) -> Value {
    let block = |part: &Part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}),
        Part::Call { id, name, arguments } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
    };
    let (input, output, cached) = reply.usage.unwrap_or_default();
    let reason = reply.finish.unwrap_or(if reply.calls() { "tool_use" } else { "end_turn" });
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": reason,
        "content": reply.parts.iter().map(block).collect::<Vec<_>>(),
        "usage": {"input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": output},
    })
}

/// The rules of the dialect that a request breaks.
pub fn breaches(request: &Captured) -> Vec<String> {
    let mut found = Vec::new();
    if request.path.ends_with("/responses") {
        responses::breaches(&request.body, &mut found);
        return found;
    }
    if request.path.contains("enerateContent") {
        gemini::breaches(&request.body, &mut found);
        return found;
    }
    let messages = request.body.get("messages").and_then(Value::as_array).cloned().unwrap_or_default();
    if messages.is_empty() {
        found.push("no messages".to_owned());
    }
    if request.path.contains("/messages") {
        messages_breaches(&request.body, &messages, &mut found);
    } else {
        chat_breaches(&request.body, &messages, &mut found);
    }
    found
}

fn chat_breaches(body: &Value, messages: &[Value], found: &mut Vec<String>) {
    let mut open: Vec<String> = Vec::new();
    let mut called = false;
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let empty = message["content"].as_str().is_some_and(str::is_empty)
            || message["content"].as_array().is_some_and(Vec::is_empty);
        if empty {
            found.push(format!("message {at}: empty content"));
        }
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            match open.iter().position(|call| call == id) {
                Some(call) => drop(open.remove(call)),
                None => found.push(format!("message {at}: a result for {id:?}, which was not called just before")),
            }
        } else {
            if !open.is_empty() {
                found.push(format!("message {at}: {open:?} were never answered"));
                open.clear();
            }
            if role == before {
                found.push(format!("message {at}: {role} twice in a row"));
            }
        }
        before = role;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            called = true;
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || open.iter().any(|other| other == id) {
                found.push(format!("message {at}: call id {id:?} is empty or twice"));
            }
            open.push(id.to_owned());
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                found.push(format!("message {at}: arguments are no object: {arguments}"));
            }
        }
    }
    if !open.is_empty() {
        found.push(format!("{open:?} were never answered"));
    }
    if called && body["tools"].as_array().is_none_or(Vec::is_empty) {
        found.push("calls in the history without definitions of tools".to_owned());
    }
    names(body["tools"].as_array(), |tool| &tool["function"]["name"], found);
}

fn messages_breaches(body: &Value, messages: &[Value], found: &mut Vec<String>) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut before = "assistant";
    if body["max_tokens"].as_u64().is_none() {
        found.push("no max_tokens".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == before {
            found.push(format!("message {at}: {role} twice in a row"));
        }
        before = role;
        let blocks = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            content => content.as_array().cloned().unwrap_or_default(),
        };
        if blocks.is_empty() {
            found.push(format!("message {at}: empty content"));
        }
        let mut calls = BTreeSet::new();
        for block in &blocks {
            match block["type"].as_str() {
                Some("text") if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => {
                    found.push(format!("message {at}: an empty text block"));
                }
                Some("tool_use") => drop(calls.insert(block["id"].as_str().unwrap_or_default().to_owned())),
                Some("tool_result") => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    if !open.remove(id) {
                        found.push(format!("message {at}: a result for {id:?}, which was not called just before"));
                    }
                }
                _ => {}
            }
        }
        if !open.is_empty() {
            found.push(format!("message {at}: {open:?} were never answered"));
        }
        open = calls;
    }
    if !open.is_empty() {
        found.push(format!("{open:?} were never answered"));
    }
    let marks = body.to_string().matches("cache_control").count();
    if marks > 4 {
        found.push(format!("{marks} cache marks, 4 are allowed"));
    }
    names(body["tools"].as_array(), |tool| &tool["name"], found);
}

fn names(tools: Option<&Vec<Value>>, name: fn(&Value) -> &Value, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for tool in tools.into_iter().flatten() {
        let name = name(tool).as_str().unwrap_or_default();
        let lawful = (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !lawful || !seen.insert(name.to_owned()) {
            found.push(format!("tool name {name:?} is not lawful or comes twice"));
        }
    }
}
