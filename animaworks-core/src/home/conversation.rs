//! The conversation of a thread, as the Anima remembers it (memory spec §5).

mod compress;
mod dialogue;
mod finalize;
mod render;

pub use compress::{Compression, digest};
pub use dialogue::{Accepted, Unanswered};
pub use finalize::SessionSummary;

use std::path::PathBuf;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AnimaHome,
    text::{clip, head, lenient, lenient_count},
};
use crate::{
    anima::ToolRecord,
    fs::{self, FileError, Lock, Privacy},
    i18n::Locale,
    ids::{AnimaName, ThreadId},
    t,
};

/// The longest content of a turn, in characters.
const MAX_CONTENT: usize = 5000;
/// The most tools a turn remembers.
const MAX_TOOLS: usize = 10;
/// The longest summary of what a tool was called with.
const MAX_INPUT: usize = 500;
/// The longest summary of what a tool answered.
const MAX_RESULT: usize = 2000;

/// The file of one thread. Fields of other versions are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// Whose memory it is.
    #[serde(default, deserialize_with = "lenient")]
    pub anima_name: String,
    /// What was said, oldest first.
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// What was said before that, in short.
    #[serde(default, deserialize_with = "lenient")]
    pub compressed_summary: String,
    /// How many turns the summary stands for.
    #[serde(default, deserialize_with = "lenient_count")]
    pub compressed_turn_count: u64,
    /// How many of the turns have become an episode.
    #[serde(default, deserialize_with = "lenient_count")]
    pub last_finalized_turn_index: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One thing said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// `assistant`, `human`, or the speaker's name.
    #[serde(default, deserialize_with = "lenient")]
    pub role: String,
    /// What was said.
    #[serde(default, deserialize_with = "lenient")]
    pub content: String,
    /// When, as written.
    #[serde(default, deserialize_with = "lenient")]
    pub timestamp: String,
    /// Four characters to a token: what the Python version counts by. Budgets here count [`crate::Tokens`].
    #[serde(default, deserialize_with = "lenient_count")]
    pub token_estimate: u64,
    /// What came with it.
    #[serde(default)]
    pub attachments: Vec<Value>,
    /// The tools used for it.
    #[serde(default)]
    pub tool_records: Vec<ToolNote>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One tool used for a turn: a [`ToolRecord`] as the file has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolNote {
    /// The tool.
    #[serde(default, deserialize_with = "lenient")]
    pub tool_name: String,
    /// The engine's number for the call.
    #[serde(default, deserialize_with = "lenient")]
    pub tool_id: String,
    /// What it was called with, shortened.
    #[serde(default, deserialize_with = "lenient")]
    pub input_summary: String,
    /// What it answered, shortened.
    #[serde(default, deserialize_with = "lenient")]
    pub result_summary: String,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl From<ToolRecord> for ToolNote {
    fn from(record: ToolRecord) -> Self {
        Self {
            tool_name: record.tool_name,
            tool_id: record.tool_id,
            input_summary: record.input_summary,
            result_summary: record.result_summary,
            is_error: record.is_error,
            extra: Map::new(),
        }
    }
}

impl ToolNote {
    /// The same without the fields of other versions.
    pub fn record(&self) -> ToolRecord {
        ToolRecord {
            tool_name: self.tool_name.clone(),
            tool_id: self.tool_id.clone(),
            input_summary: self.input_summary.clone(),
            result_summary: self.result_summary.clone(),
            is_error: self.is_error,
        }
    }
}

/// A conversation as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConversation {
    /// What is remembered; empty when there was no file, or a broken one.
    pub conversation: Conversation,
    /// Where a broken file was put.
    pub set_aside: Option<PathBuf>,
}

impl Turn {
    /// The role of the Anima itself.
    pub const ASSISTANT: &'static str = "assistant";
    /// The role of a person without a name.
    pub const HUMAN: &'static str = "human";

    /// Something said; the time is filled when it is appended.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into(), ..Self::default() }
    }

    /// Something a person said.
    pub fn human(content: impl Into<String>) -> Self {
        Self::new(Self::HUMAN, content)
    }

    /// Something the Anima said.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Self::ASSISTANT, content)
    }

    /// With the tools used for it.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<ToolRecord>) -> Self {
        self.tool_records = tools.into_iter().map(ToolNote::from).collect();
        self
    }

    /// Whether the Anima said it.
    pub fn is_assistant(&self) -> bool {
        self.role == Self::ASSISTANT
    }

    /// Cuts everything to what is stored.
    fn limit(&mut self, locale: Locale) {
        let total = self.content.chars().count();
        if total > MAX_CONTENT {
            let note = t!(locale, "memory.conversation.cut", total = total);
            self.content = format!("{}\n{note}", head(&self.content, MAX_CONTENT));
        }
        self.token_estimate = self.content.chars().count() as u64 / 4;
        self.tool_records.truncate(MAX_TOOLS);
        for record in &mut self.tool_records {
            record.input_summary = clip(&record.input_summary, MAX_INPUT);
            record.result_summary = clip(&record.result_summary, MAX_RESULT);
        }
    }
}

impl Conversation {
    /// An empty one.
    pub fn new(name: &AnimaName) -> Self {
        Self { anima_name: name.to_string(), ..Self::default() }
    }

    /// The turns that have not become an episode yet.
    pub fn unfinalized(&self) -> &[Turn] {
        let done = usize::try_from(self.last_finalized_turn_index).unwrap_or(usize::MAX).min(self.turns.len());
        self.turns.get(done..).unwrap_or_default()
    }

    /// Notes that all turns so far have become an episode.
    pub fn mark_finalized(&mut self) {
        self.last_finalized_turn_index = self.turns.len() as u64;
    }

    /// Whether a text is already the Anima's answer to what was said last; the mark of an
    /// interruption does not matter.
    pub fn has_answer(&self, text: &str) -> bool {
        let text = strip_interrupted(text);
        let text = head(text, MAX_CONTENT);
        if text.is_empty() {
            return false;
        }
        self.turns
            .iter()
            .rev()
            .take_while(|turn| turn.is_assistant())
            .any(|turn| strip_interrupted(&turn.content).contains(text))
    }
}

/// A partial answer with the mark that says so.
pub fn mark_interrupted(text: &str, locale: Locale) -> String {
    let text = strip_interrupted(text);
    let mark = t!(locale, "memory.interrupted");
    if text.is_empty() { mark } else { format!("{text}\n{mark}") }
}

/// An answer without the mark of an interruption, in whichever language it is.
pub fn strip_interrupted(text: &str) -> &str {
    let mut text = text.trim_end();
    for locale in Locale::ALL {
        let mark = t!(locale, "memory.interrupted");
        if let Some(rest) = text.strip_suffix(mark.as_str()) {
            text = rest.trim_end();
        }
    }
    text
}

impl AnimaHome {
    /// The conversation of a thread. A broken file is set aside, never overwritten.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn conversation(&self, thread: &ThreadId) -> Result<LoadedConversation, FileError> {
        let (found, set_aside) = self.read_or_set_aside(&self.dir().conversation(thread))?;
        let conversation = found.unwrap_or_else(|| Conversation::new(self.name()));
        Ok(LoadedConversation { conversation, set_aside })
    }

    /// The threads that have a conversation, the main one first.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn threads(&self) -> Result<Vec<ThreadId>, FileError> {
        let mut threads = Vec::new();
        if self.dir().conversation(&ThreadId::main()).is_file() {
            threads.push(ThreadId::main());
        }
        for path in super::list(&self.dir().state("conversations"))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(thread) = name.strip_suffix(".json").and_then(|stem| stem.parse().ok()) {
                threads.push(thread);
            }
        }
        Ok(threads)
    }

    /// Changes a conversation: reads, changes and writes it under its lock.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; the old file is then as it was.
    pub fn update_conversation<T>(
        &self,
        thread: &ThreadId,
        change: impl FnOnce(&mut Conversation) -> T,
    ) -> Result<T, FileError> {
        let _held = Lock::wait(&self.dir().run().join(format!("conversation_{thread}.lock")))?;
        let mut conversation = self.conversation(thread)?.conversation;
        let before = conversation.clone();
        let result = change(&mut conversation);
        if conversation != before {
            let path = self.dir().conversation(thread);
            self.keep_if_not_text(&path)?;
            fs::write_json(&path, &conversation, Privacy::Normal)?;
        }
        Ok(result)
    }

    /// Appends turns, cut to what is stored, and returns the conversation.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn append_turns(&self, thread: &ThreadId, turns: Vec<Turn>) -> Result<Conversation, FileError> {
        let (locale, now) = (self.locale(), self.stamp_seconds());
        self.update_conversation(thread, |conversation| {
            for mut turn in turns {
                turn.limit(locale);
                if turn.timestamp.is_empty() {
                    turn.timestamp.clone_from(&now);
                }
                conversation.turns.push(turn);
            }
            conversation.clone()
        })
    }

    /// Appends one turn.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn append_turn(&self, thread: &ThreadId, turn: Turn) -> Result<Conversation, FileError> {
        self.append_turns(thread, vec![turn])
    }

    /// Appends an answer that broke off, marked, unless it is there already; whether it was appended.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn append_interrupted(&self, thread: &ThreadId, text: &str, tools: Vec<ToolRecord>) -> Result<bool, FileError> {
        let (locale, now) = (self.locale(), self.stamp_seconds());
        self.update_conversation(thread, |conversation| {
            if (text.trim().is_empty() && tools.is_empty()) || conversation.has_answer(text) {
                return false;
            }
            let mut turn = Turn::assistant(head(strip_interrupted(text), MAX_CONTENT)).with_tools(tools);
            turn.limit(locale);
            turn.content = mark_interrupted(&turn.content, locale);
            turn.timestamp = now;
            conversation.turns.push(turn);
            true
        })
    }

    /// When something was last said in a thread.
    pub fn last_said(&self, conversation: &Conversation) -> Option<DateTime<FixedOffset>> {
        conversation.turns.last().and_then(|turn| self.parse_time(&turn.timestamp))
    }
}

#[cfg(test)]
mod tests;
