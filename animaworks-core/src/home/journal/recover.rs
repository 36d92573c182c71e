//! Finding replies that broke off.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{
    error::ResultExt,
    fs::{self, FileError, Privacy},
    home::{AnimaHome, list, text::take},
    ids::ThreadId,
    t,
    tool::Effect,
    trigger::SessionKind,
};

/// A journal that nobody finished, as far as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// The family of its session.
    pub kind: SessionKind,
    /// Its thread.
    pub thread: ThreadId,
    /// The file.
    pub path: PathBuf,
    /// Why the turn ran.
    pub trigger: String,
    /// Who asked.
    pub from: String,
    /// The turn or session.
    pub session_id: String,
    /// When it began, as written.
    pub started_at: String,
    /// When it was last heard of, as written.
    pub last_event_at: String,
    /// The text of the reply, up to the break.
    pub text: String,
    /// The tools it called, in order.
    pub calls: Vec<RecoveredCall>,
    /// Whether the end was noted: only the file was left over.
    pub is_complete: bool,
}

impl Recovered {
    /// The calls that had an effect: finished or not, they must not be made again unasked.
    pub fn effects(&self) -> impl Iterator<Item = &RecoveredCall> {
        self.calls.iter().filter(|call| call.effect.is_none_or(|effect| effect > Effect::Reads))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }
}

/// One tool call of a broken reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredCall {
    /// The tool.
    pub tool: String,
    /// The engine's number for it, when it had one.
    pub id: Option<String>,
    /// What it was called with, shortened.
    pub args_summary: String,
    /// What it answered, shortened.
    pub result_summary: Option<String>,
    /// What it does to the world; `None` in journals of other versions.
    pub effect: Option<Effect>,
    /// How far it came.
    pub status: CallStatus,
}

/// How far a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// It was about to run, or ran; nobody saw the end.
    Started,
    /// It answered.
    Completed,
}

impl AnimaHome {
    /// All replies that broke off: every kind of session, every thread, and the places of older versions.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when a directory or a journal cannot be read.
    pub fn orphans(&self) -> Result<Vec<Recovered>, FileError> {
        let mut found = Vec::new();
        for kind in SessionKind::ALL {
            for (thread, path) in self.journals(kind)? {
                found.push(parse(kind, thread, &path)?);
            }
        }
        Ok(found)
    }

    /// The reply of one session that broke off, if there is one.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when the journal cannot be read.
    pub fn orphan(&self, kind: SessionKind, thread: &ThreadId) -> Result<Option<Recovered>, FileError> {
        let mut paths = vec![self.dir().journal(kind, thread)];
        if thread.is_main() {
            paths.extend(older_places(self.dir().root(), kind));
        }
        match paths.into_iter().find(|path| path.is_file()) {
            Some(path) => parse(kind, thread.clone(), &path).map(Some),
            None => Ok(None),
        }
    }

    /// Removes the journal of a reply that has been put away. Call it only after that is durable.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; the reply is then found again at the next start.
    pub fn confirm_recovered(&self, recovered: &Recovered) -> Result<(), FileError> {
        fs::remove_if_exists(&recovered.path).map(drop)
    }

    /// Keeps a broken reply as an episode of its own and returns the file (memory spec §3.4).
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn persist_recovered(&self, recovered: &Recovered) -> Result<PathBuf, FileError> {
        let now = self.now();
        let name = format!("{}_recovered-{}.md", now.format("%Y-%m-%d"), now.format("%H%M%S"));
        let locale = self.locale();
        let mut text = t!(locale, "memory.recovered.title", trigger = recovered.trigger);
        text.push_str("\n\n");
        for (label, value) in [
            ("from", &recovered.from),
            ("session_id", &recovered.session_id),
            ("started_at", &recovered.started_at),
            ("last_event_at", &recovered.last_event_at),
            ("complete", &recovered.is_complete.to_string()),
        ] {
            text.push_str(&format!("- {label}: {value}\n"));
        }
        for call in &recovered.calls {
            let result = call.result_summary.as_deref().unwrap_or("?");
            text.push_str(&format!("- tool: {} {} → {result}\n", call.tool, call.args_summary));
        }
        text.push_str(&format!("\n## {}\n\n{}\n", t!(locale, "memory.recovered.text"), recovered.text));
        let path = self.dir().root().join("episodes").join(name);
        let path = if path.exists() { free_episode(&path) } else { path };
        fs::write_atomic(&path, text.as_bytes(), Privacy::Normal)?;
        Ok(path)
    }

    fn journals(&self, kind: SessionKind) -> Result<Vec<(ThreadId, PathBuf)>, FileError> {
        let mut found = Vec::new();
        let main = self.dir().journal(kind, &ThreadId::main());
        for path in std::iter::once(main).chain(older_places(self.dir().root(), kind)) {
            if path.is_file() {
                found.push((ThreadId::main(), path));
            }
        }
        for word in words(kind) {
            for directory in list(&self.dir().root().join("shortterm").join(word))? {
                let path = directory.join("streaming_journal.jsonl");
                if !path.is_file() {
                    continue;
                }
                match ThreadId::new(directory.file_name().unwrap_or_default().to_string_lossy()) {
                    Ok(thread) => found.push((thread, path)),
                    Err(error) => tracing::warn!(%error, path = %path.display(), "a journal in a strange place"),
                }
            }
        }
        Ok(found)
    }
}

/// The words a kind of session has had in file names; ours first.
fn words(kind: SessionKind) -> &'static [&'static str] {
    match kind {
        SessionKind::Chat => &["chat"],
        SessionKind::Inbox => &["inbox"],
        SessionKind::Heartbeat => &["heartbeat", "cron"],
        SessionKind::Task => &["task", "task_exec"],
    }
}

/// Where other versions kept the journal of the main thread.
fn older_places(root: &Path, kind: SessionKind) -> Vec<PathBuf> {
    let shortterm = root.join("shortterm");
    let mut places: Vec<_> =
        words(kind).iter().skip(1).map(|word| shortterm.join(format!("streaming_journal_{word}.jsonl"))).collect();
    if kind == SessionKind::Chat {
        places.push(shortterm.join("streaming_journal.jsonl"));
    }
    places
}

fn free_episode(path: &Path) -> PathBuf {
    // the name has to stay `{date}_{suffix}.md`
    let stem = path.with_extension("");
    (2_u32..10_000)
        .map(|n| PathBuf::from(format!("{}-{n}.md", stem.display())))
        .find(|path| !path.exists())
        .unwrap_or_else(|| path.to_owned())
}

fn parse(kind: SessionKind, thread: ThreadId, path: &Path) -> Result<Recovered, FileError> {
    let (lines, unreadable) = fs::read_lines(path)?;
    if unreadable > 0 {
        tracing::warn!(path = %path.display(), unreadable, "passed over torn lines of a journal");
    }
    let mut recovered = Recovered {
        kind,
        thread,
        path: path.to_owned(),
        trigger: String::new(),
        from: String::new(),
        session_id: String::new(),
        started_at: String::new(),
        last_event_at: String::new(),
        text: String::new(),
        calls: Vec::new(),
        is_complete: false,
    };
    for line in lines {
        let Value::Object(mut event) = line.value else { continue };
        let ts = take(&mut event, "ts");
        match take(&mut event, "ev").as_str() {
            "start" => {
                recovered.trigger = take(&mut event, "trigger");
                recovered.from = take(&mut event, "from");
                recovered.session_id = take(&mut event, "session_id");
                recovered.started_at.clone_from(&ts);
            }
            "text" => recovered.text.push_str(&take(&mut event, "t")),
            "tool_start" => recovered.calls.push(started(event)),
            "tool_end" => end(&mut recovered.calls, event),
            "done" => recovered.is_complete = true,
            other => tracing::debug!(event = other, "an unknown event in a journal"),
        }
        if !ts.is_empty() {
            recovered.last_event_at = ts;
        }
    }
    Ok(recovered)
}

fn started(mut event: Map<String, Value>) -> RecoveredCall {
    let id = take(&mut event, "tool_id");
    RecoveredCall {
        tool: take(&mut event, "tool"),
        id: (!id.is_empty()).then_some(id),
        args_summary: take(&mut event, "args_summary"),
        result_summary: None,
        effect: event
            .shift_remove("effect")
            .and_then(|effect| serde_json::from_value(effect).ignore("an unknown effect counts as one")),
        status: CallStatus::Started,
    }
}

fn end(calls: &mut Vec<RecoveredCall>, mut event: Map<String, Value>) {
    let result = take(&mut event, "result_summary");
    let ended = started(event);
    let open = |call: &&mut RecoveredCall| call.status == CallStatus::Started;
    let by_id = calls.iter_mut().rev().filter(open).find(|call| ended.id.is_some() && call.id == ended.id);
    let by_name = match by_id {
        Some(call) => Some(call),
        None => calls.iter_mut().rev().filter(open).find(|call| call.tool == ended.tool),
    };
    match by_name {
        Some(call) => {
            call.result_summary = Some(result);
            call.status = CallStatus::Completed;
        }
        None => calls.push(RecoveredCall { result_summary: Some(result), status: CallStatus::Completed, ..ended }),
    }
}
