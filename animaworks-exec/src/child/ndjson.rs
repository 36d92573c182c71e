//! Programs that speak in lines of JSON: started behind walls, heard line by line, always ended.

use std::{
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use animaworks_core::{
    ErrorKind, ExecError, Fault, HostFault, ResultExt,
    error::chain,
    process::{Child, DRAIN, Spec, Stdin},
    seams::{Sandbox, SandboxPolicy},
    tasks::Tasks,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    time::Instant,
};

/// A longer line is dropped and counted as noise.
const MAX_LINE: usize = 16 << 20;
/// More than this that is not JSON is not a program we know.
const MAX_NOISE: u64 = 16 << 20;
/// How much of the end of a program's complaints is kept.
const TAIL: usize = 4_000;
/// Pieces of output read ahead of whoever listens.
const READ_AHEAD: usize = 16;
/// Messages waiting for a program that does not read.
const UNREAD: usize = 256;
/// Between the polite signal and the other one.
const GRACE: Duration = Duration::from_secs(3);
/// How long a program that has said its last word may take to go.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a program printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// One JSON object.
    Json(Value),
    /// Something else, of this many bytes.
    Noise(u64),
}

/// Cuts output into lines, whatever the pieces it comes in.
#[derive(Debug, Default)]
pub struct LineSplitter {
    held: Vec<u8>,
    dropped: u64,
}

impl LineSplitter {
    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8], lines: &mut Vec<Line>) {
        let mut parts = piece.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            self.hold(part);
            self.close(lines);
        }
        self.hold(last);
    }

    /// The output is over; an unfinished line is a line.
    pub fn finish(&mut self, lines: &mut Vec<Line>) {
        self.close(lines);
    }

    fn hold(&mut self, part: &[u8]) {
        if self.dropped > 0 || self.held.len() + part.len() > MAX_LINE {
            self.dropped += (self.held.len() + part.len()) as u64;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(part);
        }
    }

    fn close(&mut self, lines: &mut Vec<Line>) {
        if self.dropped > 0 {
            lines.push(Line::Noise(std::mem::take(&mut self.dropped)));
            return;
        }
        let text = String::from_utf8_lossy(&self.held);
        let text = text.trim();
        if !text.is_empty() {
            lines.push(match serde_json::from_str::<Value>(text) {
                Ok(value) if value.is_object() => Line::Json(value),
                Ok(_) | Err(_) => Line::Noise(text.len() as u64),
            });
        }
        self.held.clear();
    }
}

/// A running program. Dropping it ends its whole group at once.
#[derive(Debug)]
pub(super) struct Program {
    engine: &'static str,
    child: Child,
    lines: mpsc::Receiver<Vec<Line>>,
    input: Option<mpsc::Sender<Bytes>>,
    complaints: Arc<Mutex<Vec<u8>>>,
    tasks: Tasks,
    noise: u64,
    /// Until when the pipes of a leader that is gone are listened to.
    drain: Option<Instant>,
}

impl Program {
    /// Starts a program behind walls.
    pub(super) fn start(
        engine: &'static str,
        spec: Spec,
        sandbox: &dyn Sandbox,
        policy: &SandboxPolicy,
    ) -> Result<Self, ExecError> {
        let missing = |detail| ExecError::NotInstalled { engine: engine.to_owned(), detail };
        let (spec, _) = sandbox
            .confine(spec, policy)
            .map_err(|error| ExecError::Host(HostFault::because(format!("confine {engine}"), error)))?;
        let piped = matches!(spec.stdin, Stdin::Pipe);
        let mut child = spec.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotInstalled => missing(chain(&error)),
            _ => ExecError::Unreachable { engine: engine.to_owned(), detail: chain(&error) },
        })?;
        let tasks = Tasks::new("engine program");
        let (sender, lines) = mpsc::channel(READ_AHEAD);
        if let Some(pipe) = child.stdout() {
            tasks.spawn("read", listen(pipe, sender));
        }
        let complaints = Arc::<Mutex<Vec<u8>>>::default();
        if let Some(pipe) = child.stderr() {
            tasks.spawn("read complaints", keep_tail(pipe, complaints.clone()));
        }
        let input = child.stdin().filter(|_| piped).map(|mut pipe| {
            let (sender, mut messages) = mpsc::channel::<Bytes>(UNREAD);
            tasks.spawn("write", async move {
                while let Some(message) = messages.recv().await {
                    if pipe.write_all(&message).await.ignore("a program that is gone is seen on its output").is_none() {
                        return;
                    }
                }
            });
            sender
        });
        Ok(Self { engine, child, lines, input, complaints, tasks, noise: 0, drain: None })
    }

    /// The next lines; `None` when there are no more. A grandchild that holds the pipe does not hold us.
    ///
    /// Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Vec<Line>> {
        loop {
            if let Some(until) = self.drain {
                let lines = tokio::time::timeout_at(until, self.lines.recv()).await;
                return lines.ignore("whoever still holds the pipe has nothing to say to us").flatten();
            }
            tokio::select! {
                biased;
                lines = self.lines.recv() => return lines,
                status = self.child.wait() => {
                    status.log_err("wait for an engine's program");
                    self.drain = Some(Instant::now() + DRAIN);
                }
            }
        }
    }

    /// Says something to the program, as one line.
    pub(super) fn say(&self, message: &Value) -> Result<(), ExecError> {
        let deaf = |detail: &str| ExecError::Interrupted { engine: self.engine.to_owned(), detail: detail.to_owned() };
        let mut line = message.to_string();
        line.push('\n');
        let input = self.input.as_ref().ok_or_else(|| deaf("its input is closed"))?;
        match input.try_send(Bytes::from(line)) {
            // a program that has gone is noticed where its output ends
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(deaf("it does not read what it is told")),
        }
    }

    /// Counts what was not JSON.
    pub(super) fn noise(&mut self, bytes: u64) -> Result<(), ExecError> {
        self.noise += bytes;
        if self.noise <= MAX_NOISE {
            return Ok(());
        }
        let detail = format!("{} bytes on its output are not JSON", self.noise);
        Err(ExecError::Malformed { engine: self.engine.to_owned(), detail })
    }

    /// Lets a program that has said its last word go, or makes it.
    pub(super) async fn farewell(&mut self) {
        self.input = None;
        tokio::time::timeout(FAREWELL, self.child.wait()).await.ignore("it is made to go below");
        self.child.stop(Duration::ZERO).await.log_err("end an engine's program");
    }

    /// Ends the program and all it started.
    pub(super) async fn stop(&mut self) {
        self.input = None;
        self.child.stop(GRACE).await.log_err("end an engine's program");
    }

    /// Why a program ended without a result.
    pub(super) async fn post_mortem(&mut self) -> ExecError {
        self.input = None;
        let status = match tokio::time::timeout(FAREWELL, self.child.wait()).await {
            Ok(status) => status.log_err("wait for an engine's program"),
            Err(_) => None,
        };
        self.child.stop(GRACE).await.log_err("end an engine's program");
        tokio::time::timeout(DRAIN, self.tasks.finished()).await.ignore("what it complained so far is enough");
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let said = String::from_utf8_lossy(&complaints).trim().to_owned();
        let how = match status.map(|status: ExitStatus| (status.code(), status)) {
            Some((Some(code), _)) => format!("exit code {code}"),
            Some((None, status)) => status.to_string(),
            None => "it closed its output and stayed".to_owned(),
        };
        match status.and_then(|status| status.code()) {
            // the words of the helper that starts it
            Some(126 | 127) => ExecError::NotInstalled { engine: self.engine.to_owned(), detail: said },
            _ if said.is_empty() => ExecError::Interrupted { engine: self.engine.to_owned(), detail: how },
            _ => super::said::classify(self.engine, &said).unwrap_or_else(|| ExecError::Interrupted {
                engine: self.engine.to_owned(),
                detail: format!("{how}: {said}"),
            }),
        }
    }
}

async fn listen(mut pipe: impl AsyncRead + Unpin, sender: mpsc::Sender<Vec<Line>>) {
    let (mut splitter, mut buffer) = (LineSplitter::default(), vec![0_u8; 64 << 10]);
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut lines = Vec::new();
        splitter.push(buffer.get(..count).unwrap_or_default(), &mut lines);
        if !lines.is_empty() && sender.send(lines).await.is_err() {
            return;
        }
    }
    let mut lines = Vec::new();
    splitter.finish(&mut lines);
    if !lines.is_empty() {
        sender.send(lines).await.ignore("nobody listens any more");
    }
}

async fn keep_tail(mut pipe: impl AsyncRead + Unpin, tail: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0_u8; 4 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let over = tail.len().saturating_sub(TAIL);
        tail.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<Line> {
        let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece, &mut lines);
        }
        splitter.finish(&mut lines);
        lines
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(at in proptest::collection::vec(0_usize..60, 0..6)) {
            let bytes = "warming up…\n{\"会議\":\"10時\"}\r\n\n[1]\n{\"last\":true}".as_bytes();
            let mut cuts = at;
            cuts.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for cut in cuts {
                let cut = cut.clamp(from, bytes.len());
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(split(&pieces), split(&[bytes]));
        }
    }

    #[test]
    fn what_is_not_an_object_is_noise() {
        let lines = split(&[b"hello\n{\"a\":1}\n[1]\n{\"b\""]);
        let json = Line::Json(serde_json::json!({"a": 1}));
        assert_eq!(lines, [Line::Noise(5), json, Line::Noise(3), Line::Noise(4)]);
    }

    #[test]
    fn an_endless_line_is_dropped_and_the_next_one_read() {
        let long = vec![b'x'; MAX_LINE];
        let lines = split(&[&long, b"xx", b"\n{}\n"]);
        assert_eq!(lines, [Line::Noise(MAX_LINE as u64 + 2), Line::Json(serde_json::json!({}))]);
    }
}
