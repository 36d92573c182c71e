//! The server's side of MCP, for one visitor of one turn: JSON-RPC in lines (docs/adr/0005).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use animaworks_core::{CallId, ResultExt, ToolCall, ToolName, ToolOutput, TurnHost, error::chain, tasks::Tasks};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Take},
    net::UnixStream,
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

/// A request is not longer than this; what a tool writes is in it.
const MAX_REQUEST: u64 = 16 << 20;
/// The time a visitor has to show its token.
const KNOCK: Duration = Duration::from_secs(5);
/// Answers waiting for a visitor that does not read.
const UNREAD: usize = 64;
/// What we speak when a visitor does not say what it speaks.
const PROTOCOL: &str = "2025-06-18";

const PARSE_ERROR: i64 = -32_700;
const NO_SUCH_METHOD: i64 = -32_601;
const BAD_PARAMS: i64 = -32_602;

/// Answers a visitor of a socket until it leaves.
pub(super) async fn serve(stream: UnixStream, token: Arc<str>, host: Arc<dyn TurnHost>) {
    let (read, write) = stream.into_split();
    let mut lines = BufReader::new(read.take(MAX_REQUEST));
    let mut line = Vec::new();
    let knocked = tokio::time::timeout(KNOCK, lines.read_until(b'\n', &mut line)).await;
    if !matches!(knocked, Ok(Ok(_))) || !same(line.trim_ascii_end(), token.as_bytes()) {
        tracing::warn!("a visitor without the token was sent away");
        return;
    }
    answer(lines, write, host).await;
}

/// Answers whoever started us, on these two pipes, until the input ends. For clients that no turn of ours has started.
///
/// # Cancel safety
///
/// A call that has begun may have happened.
pub async fn serve_pipes(
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    host: Arc<dyn TurnHost>,
) {
    answer(BufReader::new(input.take(MAX_REQUEST)), output, host).await;
}

async fn answer(
    mut lines: BufReader<Take<impl AsyncRead + Send + Unpin>>,
    output: impl AsyncWrite + Send + Unpin + 'static,
    host: Arc<dyn TurnHost>,
) {
    let work = Tasks::new("calls of a visitor");
    let (answers, queue) = mpsc::channel(UNREAD);
    work.spawn("answer", write_answers(output, queue));
    let visit = Visit { host, answers, running: Arc::default(), number: Arc::default() };
    let mut line = Vec::new();
    loop {
        line.clear();
        lines.get_mut().set_limit(MAX_REQUEST);
        match lines.read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) => break,
            Err(error) => {
                tracing::debug!(%error, "a visitor is gone");
                break;
            }
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(Value::Array(messages)) => {
                for message in messages {
                    visit.take(message, &work).await;
                }
            }
            Ok(message) => visit.take(message, &work).await,
            Err(error) => visit.refuse(&Value::Null, PARSE_ERROR, &error.to_string()).await,
        }
    }
    // a visitor that says nothing more may still wait for its answers
    drop(visit);
    work.finished().await;
}

async fn write_answers(mut output: impl AsyncWrite + Send + Unpin, mut queue: mpsc::Receiver<Value>) {
    while let Some(answer) = queue.recv().await {
        let mut line = answer.to_string();
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        if written.await.ignore("a visitor that is gone needs no answer").is_none() {
            return;
        }
    }
}

/// Compares without telling by its time where the difference is.
fn same(given: &[u8], wanted: &[u8]) -> bool {
    given.len() == wanted.len() && given.iter().zip(wanted).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[derive(Debug, Clone)]
struct Visit {
    host: Arc<dyn TurnHost>,
    answers: mpsc::Sender<Value>,
    /// Calls that may still be called off, by the text of their request's id.
    running: Arc<std::sync::Mutex<BTreeMap<String, CancellationToken>>>,
    number: Arc<AtomicU32>,
}

impl Visit {
    async fn take(&self, message: Value, work: &Tasks) {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = message.get("params").cloned().unwrap_or_default();
        let Some(id) = message.get("id").filter(|id| !id.is_null()).cloned() else {
            if method == "notifications/cancelled"
                && let Some(call) = params.get("requestId")
                && let Some(running) = self.running().get(&call.to_string())
            {
                running.cancel();
            }
            return;
        };
        match method.as_str() {
            "initialize" => {
                let protocol = params.get("protocolVersion").and_then(Value::as_str).unwrap_or(PROTOCOL);
                let server = json!({"name": "aw", "title": "AnimaWorks", "version": env!("CARGO_PKG_VERSION")});
                let result = json!({
                    "protocolVersion": protocol,
                    "capabilities": {"tools": {}},
                    "serverInfo": server,
                });
                self.answer(&id, result).await;
            }
            "ping" => self.answer(&id, json!({})).await,
            "tools/list" => {
                let tools: Vec<Value> = self.host.tools().iter().map(|tool| described(tool)).collect();
                self.answer(&id, json!({"tools": tools})).await;
            }
            "tools/call" => match self.call_of(&params) {
                Ok(call) => {
                    let cancel = CancellationToken::new();
                    self.running().insert(id.to_string(), cancel.clone());
                    let this = self.clone();
                    work.spawn("call", async move { this.call(id, call, cancel).await });
                }
                Err(problem) => self.refuse(&id, BAD_PARAMS, &problem).await,
            },
            // a message without a method is an answer, and we ask nothing
            "" => {}
            other => self.refuse(&id, NO_SUCH_METHOD, &format!("no method {other}")).await,
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CancellationToken>> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn call_of(&self, params: &Value) -> Result<ToolCall, String> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let name = ToolName::new(name).map_err(|error| error.to_string())?;
        // the program's own number, where it tells, so that both sides mean the same call
        let told = ["/_meta/claudecode~1toolUseId", "/_meta/callId"].into_iter().find_map(|at| params.pointer(at));
        let told = told.and_then(Value::as_str).and_then(|id| CallId::new(id).ignore("then it gets a number of ours"));
        let id = match told {
            Some(id) => id,
            None => {
                let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
                CallId::new(format!("mcp_{number}")).map_err(|error| error.to_string())?
            }
        };
        let args = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        Ok(ToolCall { id, name, args })
    }

    async fn call(&self, id: Value, call: ToolCall, cancel: CancellationToken) {
        let name = call.name.clone();
        let result = tokio::select! {
            result = self.host.call(call) => result,
            () = cancel.cancelled() => {
                self.running().remove(&id.to_string());
                return;
            }
        };
        self.running().remove(&id.to_string());
        let output = result.unwrap_or_else(|fault| {
            tracing::error!(tool = %name, %fault, "a tool cannot be run");
            ToolOutput::error("Internal", &chain(&fault), None)
        });
        let content = json!([{"type": "text", "text": output.fenced(&name)}]);
        self.answer(&id, json!({"content": content, "isError": output.is_error})).await;
    }

    async fn answer(&self, id: &Value, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.answers.send(answer).await.ignore("a visitor that is gone needs no answer");
    }

    async fn refuse(&self, id: &Value, code: i64, problem: &str) {
        let error = json!({"code": code, "message": problem});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        self.answers.send(answer).await.ignore("a visitor that is gone needs no answer");
    }
}

fn described(tool: &animaworks_core::ToolSpec) -> Value {
    let reads = tool.effect == animaworks_core::tool::Effect::Reads;
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": {"readOnlyHint": reads},
    })
}
