//! What the Anima is in the middle of: working notes, backlog, and what a crash left to say (memory spec §4.5).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AnimaHome,
    journal::Recovered,
    text::{lenient, lenient_count, tail},
};
use crate::{
    fs::{self, FileError, Privacy},
    t,
    trust::Origin,
};

/// What missing or empty working notes read as.
pub const IDLE: &str = "status: idle";

/// The mark of a heartbeat that has begun; it is gone when the heartbeat has ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatMark {
    /// When it began.
    #[serde(default, deserialize_with = "lenient")]
    pub ts: String,
    /// `heartbeat`.
    #[serde(default, deserialize_with = "lenient")]
    pub trigger: String,
    /// Letters that were waiting.
    #[serde(default, deserialize_with = "lenient_count")]
    pub unread_count: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl AnimaHome {
    /// The working notes; `status: idle` when there are none. A file under its older name counts.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn current_state(&self) -> Result<String, FileError> {
        let path = self.dir().state("current_state.md");
        let text = match fs::read_text_if_exists(&path)? {
            Some(text) => text,
            None => fs::read_text_if_exists(&self.dir().state("current_task.md"))?.unwrap_or_default(),
        };
        Ok(if text.trim().is_empty() { IDLE.to_owned() } else { text })
    }

    /// Replaces the working notes.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn set_current_state(&self, text: &str) -> Result<(), FileError> {
        let path = self.dir().state("current_state.md");
        let older = self.dir().state("current_task.md");
        if !path.exists() && older.exists() {
            fs::move_file(&older, &path)?;
        }
        self.keep_if_not_text(&path)?;
        fs::write_atomic(&path, text.as_bytes(), Privacy::Normal)
    }

    /// Puts the working notes into today's episode and begins with none. When the episode cannot be written the
    /// notes stay.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn put_state_away(&self, origin: &Origin) -> Result<(), FileError> {
        let state = self.current_state()?;
        if state.trim() != IDLE {
            self.append_episode(&t!(self.locale(), "memory.state.archived"), &state, origin)?;
        }
        self.set_current_state(IDLE)
    }

    /// The free-form backlog that the Anima and its superiors read; empty when there is none.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn backlog(&self) -> Result<String, FileError> {
        Ok(fs::read_text_if_exists(&self.dir().state("pending.md"))?.unwrap_or_default())
    }

    /// Says for the next heartbeat what a broken one left.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn write_recovery_note(&self, recovered: &Recovered) -> Result<(), FileError> {
        let note = t!(
            self.locale(),
            "memory.recovery_note",
            at = recovered.last_event_at,
            trigger = recovered.trigger,
            chars = recovered.text.chars().count(),
            calls = recovered.calls.len(),
        );
        let mut text = format!("{note}\n");
        for call in recovered.effects() {
            let result = call.result_summary.as_deref().unwrap_or("?");
            text.push_str(&format!("- {} {} → {result}\n", call.tool, call.args_summary));
        }
        fs::write_atomic(&self.dir().state("recovery_note.md"), text.as_bytes(), Privacy::Normal)
    }

    /// The note for the next heartbeat, when there is one.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn recovery_note(&self) -> Result<Option<String>, FileError> {
        let text = fs::read_text_if_exists(&self.dir().state("recovery_note.md"))?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    /// Removes the note; call it when the turn that read it has succeeded.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn clear_recovery_note(&self) -> Result<(), FileError> {
        fs::remove_if_exists(&self.dir().state("recovery_note.md")).map(drop)
    }

    /// Marks the beginning of a heartbeat.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn mark_heartbeat(&self, unread_count: u64) -> Result<(), FileError> {
        let mark = HeartbeatMark {
            ts: self.stamp_seconds(),
            trigger: "heartbeat".to_owned(),
            unread_count,
            extra: Map::new(),
        };
        fs::write_json(&self.dir().state("heartbeat_checkpoint.json"), &mark, Privacy::Normal)
    }

    /// The mark of a heartbeat that never ended, if there is one.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn heartbeat_mark(&self) -> Result<Option<HeartbeatMark>, FileError> {
        Ok(self.read_or_set_aside(&self.dir().state("heartbeat_checkpoint.json"))?.0)
    }

    /// Removes the mark; call it when the heartbeat has ended well.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn clear_heartbeat_mark(&self) -> Result<(), FileError> {
        fs::remove_if_exists(&self.dir().state("heartbeat_checkpoint.json")).map(drop)
    }
}

/// The end of the working notes for a prompt: at most `max` characters, from the beginning of a line when one
/// begins within the first fifth.
pub fn excerpt(state: &str, max: usize) -> &str {
    let end = tail(state, max);
    if end.len() == state.len() {
        return state;
    }
    match end.split_once('\n') {
        Some((first, rest)) if first.chars().count() * 5 <= max => rest,
        _ => end,
    }
}
