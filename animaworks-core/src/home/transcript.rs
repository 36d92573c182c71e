//! The raw record of conversations, a file a day (memory spec §5.4).

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AnimaHome, text::lenient};
use crate::{
    fs::{self, FileError},
    ids::ThreadId,
};

/// One thing said, word for word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TranscriptLine {
    /// When; filled when it is written.
    #[serde(default, deserialize_with = "lenient")]
    pub ts: String,
    /// `assistant`, `human`, or the speaker's name.
    #[serde(default, deserialize_with = "lenient")]
    pub role: String,
    /// What.
    #[serde(default, deserialize_with = "lenient")]
    pub content: String,
    /// Who, when the role does not say.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The thread, when it is not the main one.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub thread_id: String,
    /// What came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
    /// The tools used for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_names: Vec<String>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl TranscriptLine {
    /// Something said in a thread.
    pub fn new(role: impl Into<String>, content: impl Into<String>, thread: &ThreadId) -> Self {
        let thread_id = if thread.is_main() { String::new() } else { thread.to_string() };
        Self { role: role.into(), content: content.into(), thread_id, ..Self::default() }
    }
}

impl AnimaHome {
    /// Appends to today's transcript.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn transcribe(&self, mut line: TranscriptLine) -> Result<(), FileError> {
        if line.ts.is_empty() {
            line.ts = self.stamp();
        }
        let path = self.dir().transcript(self.today());
        fs::append_line(&path, &fs::json_line(&path, &line)?)
    }

    /// The transcript of a day, in the order it was written.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file; a day without one is empty.
    pub fn transcript(&self, date: NaiveDate) -> Result<Vec<TranscriptLine>, FileError> {
        fs::read_records(&self.dir().transcript(date))
    }
}
