//! What carries a session over a break: its state, the checkpoint of a stream, the engine's session ids
//! (memory spec §4).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AnimaHome, list,
    text::{clip, head, lenient, lenient_count, tail},
};
use crate::{
    error::ResultExt,
    fs::{self, FileError, Privacy},
    i18n::Locale,
    ids::{SessionId, ThreadId},
    mode::ExecutionMode,
    t,
    trigger::SessionKind,
};

/// The most files kept in `archive/`.
const MAX_ARCHIVED: usize = 100;

/// Where a session was when it stopped, for the one that goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The session.
    #[serde(default, deserialize_with = "lenient")]
    pub session_id: String,
    /// When; filled when it is saved.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: String,
    /// Why it ran.
    #[serde(default, deserialize_with = "lenient")]
    pub trigger: String,
    /// What it was asked.
    #[serde(default, deserialize_with = "lenient")]
    pub original_prompt: String,
    /// What it had answered.
    #[serde(default, deserialize_with = "lenient")]
    pub accumulated_response: String,
    /// The tools it had used.
    #[serde(default)]
    pub tool_uses: Vec<ToolUse>,
    /// How full its context was, 0 to 1.
    #[serde(default)]
    pub context_usage_ratio: f64,
    /// Its model calls.
    #[serde(default, deserialize_with = "lenient_count")]
    pub turn_count: u64,
    /// What it wanted to remember.
    #[serde(default, deserialize_with = "lenient")]
    pub notes: String,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One tool used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// What it was called with.
    #[serde(default, deserialize_with = "lenient")]
    pub input: String,
    /// What it answered.
    #[serde(default, deserialize_with = "lenient")]
    pub result: String,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Where a stream was when it dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamCheckpoint {
    /// When; filled when it is saved.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: String,
    /// Why it ran.
    #[serde(default, deserialize_with = "lenient")]
    pub trigger: String,
    /// What it was asked.
    #[serde(default, deserialize_with = "lenient")]
    pub original_prompt: String,
    /// The tools that had answered.
    #[serde(default)]
    pub completed_tools: Vec<CompletedTool>,
    /// What it had said.
    #[serde(default, deserialize_with = "lenient")]
    pub accumulated_text: String,
    /// How often it was tried again.
    #[serde(default, deserialize_with = "lenient_count")]
    pub retry_count: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One tool that had answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletedTool {
    /// The tool.
    #[serde(default, deserialize_with = "lenient")]
    pub tool_name: String,
    /// What came of it.
    #[serde(default, deserialize_with = "lenient")]
    pub summary: String,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EngineSession {
    session_id: String,
    #[serde(default, deserialize_with = "lenient")]
    timestamp: String,
    /// Whose it is; sessions of the Python version do not say.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    execution_mode: String,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl SessionState {
    /// The state as the next session reads it.
    pub fn render(&self, locale: Locale) -> String {
        let mut parts = vec![
            t!(locale, "memory.session.title"),
            t!(
                locale,
                "memory.session.about",
                session = self.session_id,
                time = self.timestamp,
                trigger = self.trigger,
                percent = format!("{:.0}", self.context_usage_ratio * 100.0),
                turns = self.turn_count,
            ),
            t!(locale, "memory.session.request", text = self.original_prompt),
        ];
        let work = tail(&self.accumulated_response, 8000);
        let omitted = if work.len() < self.accumulated_response.len() {
            t!(locale, "memory.session.omitted")
        } else {
            String::new()
        };
        parts.push(t!(locale, "memory.session.work", text = format!("{omitted}{work}")));
        if !self.tool_uses.is_empty() {
            let shown = self.tool_uses.get(self.tool_uses.len().saturating_sub(20)..).unwrap_or_default();
            let tools: Vec<_> = shown
                .iter()
                .map(|tool| format!("- {}: {} → {}", tool.name, clip(&tool.input, 500), clip(&tool.result, 500)))
                .collect();
            parts.push(t!(locale, "memory.session.tools", text = tools.join("\n")));
        }
        if !self.notes.is_empty() {
            parts.push(t!(locale, "memory.session.notes", text = self.notes));
        }
        parts.join("\n\n")
    }
}

impl AnimaHome {
    /// Saves the state of a session as JSON and, for people, as Markdown. The pair before it is archived.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when the JSON cannot be written.
    pub fn save_session(&self, kind: SessionKind, thread: &ThreadId, mut state: SessionState) -> Result<(), FileError> {
        state.timestamp = self.stamp();
        self.archive_session(kind, thread)?;
        let directory = self.dir().shortterm(kind, thread);
        fs::write_json(&directory.join("session_state.json"), &state, Privacy::Normal)?;
        let page = state.render(self.locale());
        fs::write_atomic(&directory.join("session_state.md"), page.as_bytes(), Privacy::Normal)
            .log_err("write the session state for people");
        Ok(())
    }

    /// The state a session left, if it left one. A file that cannot be understood is set aside.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn session(&self, kind: SessionKind, thread: &ThreadId) -> Result<Option<SessionState>, FileError> {
        self.adopt_older_sessions(kind, thread)?;
        Ok(self.read_or_set_aside(&self.dir().shortterm(kind, thread).join("session_state.json"))?.0)
    }

    /// Puts the state of a session away; nothing is left for the next one.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn archive_session(&self, kind: SessionKind, thread: &ThreadId) -> Result<(), FileError> {
        let directory = self.dir().shortterm(kind, thread);
        let archive = directory.join("archive");
        let now = self.stamp_name();
        for extension in ["json", "md"] {
            let path = directory.join(format!("session_state.{extension}"));
            if path.exists() {
                let name = (1_u32..10_000)
                    .map(|n| if n == 1 { format!("{now}.{extension}") } else { format!("{now}_{n}.{extension}") })
                    .find(|name| !archive.join(name).exists())
                    .unwrap_or_default();
                fs::move_file(&path, &archive.join(name))?;
            }
        }
        let archived = list(&archive)?;
        for old in archived.iter().take(archived.len().saturating_sub(MAX_ARCHIVED)) {
            fs::remove_if_exists(old)?;
        }
        Ok(())
    }

    /// Saves where a stream is.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn save_checkpoint(
        &self,
        kind: SessionKind,
        thread: &ThreadId,
        mut checkpoint: StreamCheckpoint,
    ) -> Result<(), FileError> {
        checkpoint.timestamp = self.stamp();
        let path = self.dir().shortterm(kind, thread).join("stream_checkpoint.json");
        fs::write_json(&path, &checkpoint, Privacy::Normal)
    }

    /// Where a stream was, if it dropped.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn checkpoint(&self, kind: SessionKind, thread: &ThreadId) -> Result<Option<StreamCheckpoint>, FileError> {
        Ok(self.read_or_set_aside(&self.dir().shortterm(kind, thread).join("stream_checkpoint.json"))?.0)
    }

    /// Forgets where a stream was.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn clear_checkpoint(&self, kind: SessionKind, thread: &ThreadId) -> Result<(), FileError> {
        fs::remove_if_exists(&self.dir().shortterm(kind, thread).join("stream_checkpoint.json")).map(drop)
    }

    /// The session to resume, if there is one and it is this engine's.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn engine_session(
        &self,
        kind: SessionKind,
        thread: &ThreadId,
        engine: ExecutionMode,
    ) -> Result<Option<SessionId>, FileError> {
        let (found, _) = self.read_or_set_aside::<EngineSession>(&self.dir().current_session(kind, thread))?;
        let found = found.filter(|found| found.execution_mode.is_empty() || found.execution_mode == engine.to_string());
        Ok(found.and_then(|found| SessionId::new(found.session_id).ignore("an unusable id means a new session")))
    }

    /// Remembers the engine's session, or forgets it.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn set_engine_session(
        &self,
        kind: SessionKind,
        thread: &ThreadId,
        session: Option<(&SessionId, ExecutionMode)>,
    ) -> Result<(), FileError> {
        let path = self.dir().current_session(kind, thread);
        let Some((session, engine)) = session else { return fs::remove_if_exists(&path).map(drop) };
        let (old, _) = self.read_or_set_aside::<EngineSession>(&path)?;
        let session = EngineSession {
            session_id: session.to_string(),
            timestamp: self.stamp(),
            execution_mode: engine.to_string(),
            extra: old.map(|old| old.extra).unwrap_or_default(),
        };
        fs::write_json(&path, &session, Privacy::Normal)
    }

    /// Forgets a session of ours. One of the Python version stays, for the way back.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn leave_engine_session(&self, kind: SessionKind, thread: &ThreadId) -> Result<(), FileError> {
        let path = self.dir().current_session(kind, thread);
        let (found, _) = self.read_or_set_aside::<EngineSession>(&path)?;
        match found {
            Some(found) if !found.execution_mode.is_empty() => fs::remove_if_exists(&path).map(drop),
            _ => Ok(()),
        }
    }

    /// Moves what older versions kept directly in `shortterm/` to where chats are.
    fn adopt_older_sessions(&self, kind: SessionKind, thread: &ThreadId) -> Result<(), FileError> {
        if kind != SessionKind::Chat || !thread.is_main() {
            return Ok(());
        }
        let (old, new) = (self.dir().root().join("shortterm"), self.dir().shortterm(kind, thread));
        for name in ["session_state.json", "session_state.md", "stream_checkpoint.json"] {
            adopt(&old.join(name), &new.join(name))?;
        }
        for path in list(&old.join("archive"))? {
            let name: PathBuf = path.file_name().map(PathBuf::from).unwrap_or_default();
            adopt(&path, &new.join("archive").join(name))?;
        }
        Ok(())
    }
}

fn adopt(old: &Path, new: &Path) -> Result<(), FileError> {
    if old.is_file() && !new.exists() { fs::move_file(old, new) } else { Ok(()) }
}

impl StreamCheckpoint {
    /// Notes a tool that answered.
    pub fn completed(&mut self, tool: impl Into<String>, result: &str) {
        self.completed_tools.push(CompletedTool {
            tool_name: tool.into(),
            summary: head(result, 200).to_owned(),
            extra: Map::new(),
        });
    }

    /// The end of what it had said, for the prompt of the next try.
    pub fn last_words(&self) -> &str {
        tail(&self.accumulated_text, 2000)
    }
}

#[cfg(test)]
mod tests;
