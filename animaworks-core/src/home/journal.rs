//! The streaming journal: what of a reply is safe while it is still being made (memory spec §3).
//!
//! It is opened before the engine starts and removed after the reply is recorded. Whatever dies in between is
//! found by [`AnimaHome::orphans`] at the next start.

mod recover;

pub use recover::{CallStatus, Recovered, RecoveredCall};

use std::{path::PathBuf, sync::Arc, time::Duration};

use chrono_tz::Tz;
use serde_json::{Value, json};

use super::{AnimaHome, text::head};
use crate::{
    clock::Clock,
    fs::{self, FileError, Privacy},
    ids::{CallId, ThreadId, ToolName},
    tool::Effect,
    trigger::SessionKind,
};

/// Text that waits for the disk never grows past this many characters.
const FLUSH_CHARS: usize = 500;
/// Text never waits longer than this.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// What a journal begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalStart {
    /// Why the turn runs, such as `message:tanaka`.
    pub trigger: String,
    /// Who asked.
    pub from: String,
    /// The turn or session.
    pub session_id: String,
}

/// What opening a journal finds.
#[derive(Debug)]
pub enum OpenedJournal {
    /// Nothing was in the way; the start is on disk.
    Fresh(Journal),
    /// An earlier reply broke off and has not been put away. Recover it, confirm, and open again.
    Orphan(Box<Recovered>),
}

/// The journal of one running turn.
///
/// An error of a write means that what was given is kept in memory, is tried again at the next flush, and is lost
/// if the process dies before.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    zone: Tz,
    clock: Arc<dyn Clock>,
    buffer: String,
    buffered_chars: usize,
    /// When the oldest waiting text came.
    waiting_since: Option<Duration>,
    /// Events that could not be written yet.
    unwritten: Vec<String>,
    finished: bool,
}

impl AnimaHome {
    /// Opens the journal of a session. The start is durable when this returns.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when it cannot be written, or an old one cannot be read.
    pub fn open_journal(
        &self,
        kind: SessionKind,
        thread: &ThreadId,
        start: &JournalStart,
    ) -> Result<OpenedJournal, FileError> {
        if let Some(orphan) = self.orphan(kind, thread)? {
            return Ok(OpenedJournal::Orphan(Box::new(orphan)));
        }
        let path = self.dir().journal(kind, thread);
        let line = json!({
            "ev": "start",
            "trigger": start.trigger,
            "from": start.from,
            "session_id": start.session_id,
            "ts": self.stamp_seconds(),
        });
        fs::write_atomic(&path, format!("{line}\n").as_bytes(), Privacy::Normal)?;
        Ok(OpenedJournal::Fresh(Journal {
            path,
            zone: self.zone(),
            clock: self.clock().clone(),
            buffer: String::new(),
            buffered_chars: 0,
            waiting_since: None,
            unwritten: Vec::new(),
            finished: false,
        }))
    }
}

impl Journal {
    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Whether something that was given could not be written yet.
    pub fn is_degraded(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Takes a piece of the reply; writes when 500 characters or a second have gathered.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; see [`Journal`].
    pub fn text(&mut self, piece: &str) -> Result<(), FileError> {
        if self.finished || piece.is_empty() {
            return Ok(());
        }
        self.buffer.push_str(piece);
        self.buffered_chars += piece.chars().count();
        self.waiting_since.get_or_insert_with(|| self.clock.elapsed());
        if self.buffered_chars >= FLUSH_CHARS { self.flush() } else { self.flush_if_due().map(drop) }
    }

    /// How long the waiting text may still wait; `None` when none waits. For the caller's timer.
    pub fn due_in(&self) -> Option<Duration> {
        let waited = self.clock.elapsed().saturating_sub(self.waiting_since?);
        Some(FLUSH_AFTER.saturating_sub(waited))
    }

    /// Writes the waiting text when it has waited a second; whether it did.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; see [`Journal`].
    pub fn flush_if_due(&mut self) -> Result<bool, FileError> {
        if self.due_in().is_some_and(|left| left.is_zero()) { self.flush().map(|()| true) } else { Ok(false) }
    }

    /// Writes whatever waits.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; see [`Journal`].
    pub fn flush(&mut self) -> Result<(), FileError> {
        if self.finished {
            return Ok(());
        }
        if !self.buffer.is_empty() {
            let text = std::mem::take(&mut self.buffer);
            self.queue(json!({"ev": "text", "t": text}));
        }
        self.buffered_chars = 0;
        self.waiting_since = None;
        self.write()
    }

    /// Notes that a tool is about to run. A tool with an effect must not run when this fails, because nobody
    /// would know after a crash.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; see [`Journal`].
    pub fn tool_start(
        &mut self,
        tool: &ToolName,
        id: Option<&CallId>,
        args: &str,
        effect: Effect,
    ) -> Result<(), FileError> {
        let mut event = json!({"ev": "tool_start", "tool": tool, "args_summary": head(args, 200)});
        note_id(&mut event, id);
        event["effect"] = json!(effect);
        self.event(event)
    }

    /// Notes that a tool has answered.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; see [`Journal`].
    pub fn tool_end(&mut self, tool: &ToolName, id: Option<&CallId>, result: &str) -> Result<(), FileError> {
        let mut event = json!({"ev": "tool_end", "tool": tool, "result_summary": head(result, 200)});
        note_id(&mut event, id);
        self.event(event)
    }

    /// Notes the end and removes the file. Call it after the reply is recorded; twice is harmless.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when the file cannot be removed; call it again then.
    pub fn finalize(&mut self, summary: &str) -> Result<(), FileError> {
        if !self.finished {
            // a crash between here and the removal finds a complete journal
            self.event(json!({"ev": "done", "summary": head(summary, 500)}))?;
            self.finished = true;
        }
        fs::remove_if_exists(&self.path).map(drop)
    }

    /// Writes whatever waits and leaves the file for recovery.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn close(mut self) -> Result<(), FileError> {
        self.flush()
    }

    fn event(&mut self, event: Value) -> Result<(), FileError> {
        if self.finished {
            return Ok(());
        }
        // the text before it goes first, in the same write
        if !self.buffer.is_empty() {
            let text = std::mem::take(&mut self.buffer);
            self.queue(json!({"ev": "text", "t": text}));
            self.buffered_chars = 0;
            self.waiting_since = None;
        }
        self.queue(event);
        self.write()
    }

    fn queue(&mut self, mut event: Value) {
        let now = self.clock.now().with_timezone(&self.zone);
        event["ts"] = json!(now.format("%Y-%m-%dT%H:%M:%S%:z").to_string());
        self.unwritten.push(event.to_string());
    }

    fn write(&mut self) -> Result<(), FileError> {
        fs::append_lines(&self.path, self.unwritten.iter().map(String::as_str))?;
        self.unwritten.clear();
        Ok(())
    }
}

fn note_id(event: &mut Value, id: Option<&CallId>) {
    if let Some(id) = id {
        event["tool_id"] = json!(id);
    }
}

#[cfg(test)]
mod tests;
