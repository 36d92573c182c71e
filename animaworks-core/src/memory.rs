//! What an Anima remembers: the questions that can be asked of it and the answers.

use std::{collections::BTreeMap, fmt::Debug, str::FromStr, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ErrorKind, Fault},
    i18n::Locale,
    ids::MemoryPath,
    message::Intent,
    trigger::TriggerKind,
    trust::{Origin, Trust},
    units::{Score, Tokens},
};

/// What an Anima remembers. Files are the truth behind it.
///
/// ```
/// use animaworks_core::{MemoryError, MemoryStore, Query};
///
/// async fn where_is_the_key(memory: &dyn MemoryStore) -> Result<Option<String>, MemoryError> {
///     let recall = memory.search(&Query::new("鍵")).await?;
///     Ok(recall.hits.first().map(|hit| format!("{}:{}", hit.path, hit.line)))
/// }
/// ```
#[async_trait]
pub trait MemoryStore: Debug + Send + Sync {
    /// Finds what fits a question.
    ///
    /// # Errors
    ///
    /// Only when nothing at all can be searched; a part that is broken or missing is named in [`Recall::degraded`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn search(&self, query: &Query) -> Result<Recall, MemoryError>;

    /// What comes to mind before a turn. Answers within [`Cue::within`]: slow or
    /// broken parts are left out and named.
    ///
    /// # Errors
    ///
    /// Only when the Anima's directory itself cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn prime(&self, cue: &Cue) -> Result<Priming, MemoryError>;

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`MemoryError::NotFound`] with near matches, [`MemoryError::Denied`] outside what this Anima may read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn read(&self, path: &MemoryPath) -> Result<MemoryFile, MemoryError>;

    /// Writes a file and makes its words searchable before it returns.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Changed`] when `expect` does not hold any more; nothing is written then.
    ///
    /// # Cancel safety
    ///
    /// The file is either as before or as asked; the index catches up at the next sweep.
    async fn write(&self, write: MemoryWrite) -> Result<Written, MemoryError>;

    /// Moves a file to `archive/`, keeping its relative path, with a reason. It can be brought back.
    ///
    /// # Errors
    ///
    /// As [`MemoryStore::read`].
    ///
    /// # Cancel safety
    ///
    /// The file is in one of the two places.
    async fn archive(&self, path: &MemoryPath, reason: &str) -> Result<(), MemoryError>;

    /// Brings the index up to date with the files. Idempotent.
    ///
    /// # Errors
    ///
    /// When the index cannot be written; searches then go on without it.
    ///
    /// # Cancel safety
    ///
    /// Resumable: what was committed stays, the rest is found by the next sweep.
    async fn refresh(&self, changed: Changed) -> Result<Indexed, MemoryError>;

    /// How it is.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn health(&self) -> MemoryHealth;
}

/// Where to look (memory spec §17, the seed's scopes).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SearchScope {
    /// What it has learned.
    Knowledge,
    /// What it has lived through.
    Episodes,
    /// How things are done.
    Procedures,
    /// What everybody shares.
    CommonKnowledge,
    /// What it can do.
    Skills,
    /// What happened in the last three days.
    ActivityLog,
    /// Everywhere.
    #[default]
    All,
}

impl SearchScope {
    /// Every scope.
    pub const ALL: [Self; 7] = [
        Self::Knowledge,
        Self::Episodes,
        Self::Procedures,
        Self::CommonKnowledge,
        Self::Skills,
        Self::ActivityLog,
        Self::All,
    ];

    /// The word used in tool arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Knowledge => "knowledge",
            Self::Episodes => "episodes",
            Self::Procedures => "procedures",
            Self::CommonKnowledge => "common_knowledge",
            Self::Skills => "skills",
            Self::ActivityLog => "activity_log",
            Self::All => "all",
        }
    }
}

impl FromStr for SearchScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("{text} is not one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}

/// A question to memory. The text is data: quotes, operators and wildcards in it mean nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What is asked, in any words.
    pub text: String,
    /// Where to look.
    pub scope: SearchScope,
    /// At most this many hits; 10 by default.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
    /// Not before this day.
    pub from: Option<NaiveDate>,
    /// Not after this day.
    pub to: Option<NaiveDate>,
    /// What "today" and "yesterday" mean in it.
    pub today: Option<NaiveDate>,
}

impl Query {
    /// A question over everything, for the ten best answers.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), scope: SearchScope::All, limit: 10, offset: 0, from: None, to: None, today: None }
    }

    /// The same question elsewhere.
    #[must_use]
    pub fn within(mut self, scope: SearchScope) -> Self {
        self.scope = scope;
        self
    }

    /// The same question for at most `limit` answers.
    #[must_use]
    pub fn top(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Recall {
    /// The answers, best first; equal scores in order of path and line.
    pub hits: Vec<Hit>,
    /// Parts that did not take part.
    pub degraded: Vec<Degraded>,
}

/// One place that fits. `text` is exactly what stands in the file from `line` to `end_line`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The file.
    pub path: MemoryPath,
    /// The first line, from 1.
    pub line: u32,
    /// The last line.
    pub end_line: u32,
    /// The headings above it, outermost first.
    pub headings: Vec<String>,
    /// What stands there.
    pub text: String,
    /// How well it fits.
    pub score: Score,
    /// What the score is made of, by name.
    pub parts: BTreeMap<&'static str, f32>,
    /// What sort of memory it is: `knowledge`, `episodes`, `conversation`, …
    pub kind: String,
    /// When it happened or was last changed.
    pub at: Option<DateTime<Utc>>,
    /// Where its words come from.
    pub origin: Origin,
    /// How far it may be believed.
    pub trust: Trust,
}

/// A part of memory that works less well than it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degraded {
    /// Which: `vectors`, `index`, `channel c`, `journal`.
    pub part: String,
    /// Why, in English.
    pub why: String,
}

impl Degraded {
    /// Names a part and says why.
    pub fn new(part: impl Into<String>, why: impl Into<String>) -> Self {
        Self { part: part.into(), why: why.into() }
    }
}

/// What priming goes by (memory spec §18.1).
#[derive(Debug, Clone, PartialEq)]
pub struct Cue {
    /// Why the turn runs.
    pub trigger: TriggerKind,
    /// What was said; empty for a heartbeat.
    pub message: String,
    /// Who said it.
    pub sender: String,
    /// Why a colleague writes.
    pub intent: Option<Intent>,
    /// What people said just before, newest first; at most five.
    pub recent: Vec<String>,
    /// The model's context window, for the dynamic budget.
    pub window: Tokens,
    /// When an answer is due at the latest.
    pub within: Duration,
    /// Now.
    pub now: DateTime<chrono_tz::Tz>,
    /// The language of headings.
    pub locale: Locale,
}

/// What came to mind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Priming {
    /// By channel, in the order of the prompt.
    pub sections: Vec<PrimingSection>,
    /// Parts that did not take part.
    pub degraded: Vec<Degraded>,
}

impl Priming {
    /// The section of a channel.
    pub fn section(&self, channel: PrimingChannel) -> Option<&PrimingSection> {
        self.sections.iter().find(|section| section.channel == channel)
    }
}

/// One channel of priming.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrimingSection {
    /// Which.
    pub channel: PrimingChannel,
    /// What is injected, without its fence.
    pub body: String,
    /// How far it may be believed.
    pub trust: Trust,
    /// Where it comes from.
    pub origin: Origin,
    /// The places it was made of.
    pub hits: Vec<Hit>,
    /// Milliseconds it took.
    pub took_ms: f64,
}

/// The channels of priming (memory spec §18.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrimingChannel {
    /// A: who is speaking.
    SenderProfile,
    /// B: what happened lately.
    RecentActivity,
    /// C: what it knows about this.
    RelatedKnowledge,
    /// C, from outside: the same, but only to be read.
    RelatedKnowledgeExternal,
    /// F: what it has lived through that resembles this.
    Episodes,
    /// E: what is to be done.
    PendingTasks,
    /// What it said to others within two hours.
    RecentOutbound,
}

impl PrimingChannel {
    /// The `source` of the fence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SenderProfile => "sender_profile",
            Self::RecentActivity => "recent_activity",
            Self::RelatedKnowledge => "related_knowledge",
            Self::RelatedKnowledgeExternal => "related_knowledge_external",
            Self::Episodes => "episodes",
            Self::PendingTasks => "pending_tasks",
            Self::RecentOutbound => "recent_outbound",
        }
    }
}

/// A file of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryFile {
    /// Where.
    pub path: MemoryPath,
    /// Its text, with a byte order mark removed.
    pub text: String,
    /// Its state, to be given back when writing.
    pub etag: Etag,
    /// Where its words come from.
    pub origin: Origin,
}

/// The state of a file: a hash of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Etag(pub String);

impl Etag {
    /// The state of a file that does not exist: expecting it allows creating, never replacing.
    pub fn absent() -> Self {
        Self("absent".to_owned())
    }

    /// The etag of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::{Digest, Sha256};
        let hash = Sha256::digest(bytes);
        Self(hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A file to write.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryWrite {
    /// Where.
    pub path: MemoryPath,
    /// What.
    pub text: String,
    /// Whether to replace the file or to add to its end.
    pub mode: WriteMode,
    /// The state the writer has seen; `None` writes without looking.
    pub expect: Option<Etag>,
    /// Where the words come from; kept with the file and never raised by its text.
    pub origin: Origin,
}

/// Replace or add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// Replace the whole file.
    #[default]
    Overwrite,
    /// Add to its end.
    Append,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// Where.
    pub path: MemoryPath,
    /// Its state now.
    pub etag: Etag,
    /// Its size.
    pub bytes: u64,
    /// Things to tell the writer, such as files with a similar name.
    pub notes: Vec<String>,
}

/// What may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// These files.
    Paths(Vec<MemoryPath>),
    /// Unknown: look at all of them.
    Sweep,
    /// Forget the index and build it again.
    Everything,
}

/// What indexing did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// Files looked at.
    pub files: u64,
    /// Files that had changed.
    pub changed_files: u64,
    /// Chunks added.
    pub added: u64,
    /// Chunks removed.
    pub removed: u64,
    /// Vectors computed.
    pub embedded: u64,
}

/// How memory is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemoryHealth {
    /// Chunks that can be found by their words.
    pub chunks: u64,
    /// Chunks that can be found by their meaning.
    pub vectors: u64,
    /// The embedding model, when there is one.
    pub embedder: Option<String>,
    /// Parts that work less well than they should.
    pub degraded: Vec<Degraded>,
}

/// What can go wrong with memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is no such file.
    #[error("no memory file {path}")]
    NotFound {
        /// The path that was asked for.
        path: String,
        /// Paths that look like it.
        near: Vec<String>,
    },
    /// This Anima may not touch it.
    #[error("{path}: {reason}")]
    Denied {
        /// The path.
        path: String,
        /// The catalogue key of the reason.
        code: &'static str,
        /// Why, in English.
        reason: String,
    },
    /// Somebody changed it since it was read, or it was never read.
    #[error("{path} has changed since it was read")]
    Changed {
        /// The path.
        path: MemoryPath,
        /// Its text now, cut to 2,000 characters.
        current: String,
    },
    /// The content is refused.
    #[error("{path}: {problem}")]
    Invalid {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] crate::fs::FileError),
    /// The index failed.
    #[error("memory index: {what}")]
    Index {
        /// What was tried.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something else, from a store outside this workspace.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Fault for MemoryError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Denied { .. } => ErrorKind::Permission,
            Self::Changed { .. } => ErrorKind::Conflict,
            Self::Invalid { .. } => ErrorKind::InvalidRequest,
            Self::File(error) => error.kind(),
            Self::Index { .. } | Self::Other(_) => ErrorKind::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { near, .. } if near.is_empty() => "memory_not_found",
            Self::NotFound { .. } => "memory_not_found_near",
            Self::Denied { code, .. } => code,
            Self::Changed { .. } => "memory_changed",
            Self::Invalid { .. } => "memory_invalid",
            Self::File(error) => error.code(),
            Self::Index { .. } => "memory_index",
            Self::Other(_) => "internal",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NotFound { path, near } => vec![("path", path.clone()), ("near", near.join(", "))],
            Self::Denied { path, reason, .. } => vec![("path", path.clone()), ("reason", reason.clone())],
            Self::Changed { path, current } => vec![("path", path.to_string()), ("current", current.clone())],
            Self::Invalid { path, problem } => vec![("path", path.clone()), ("problem", problem.clone())],
            Self::File(error) => error.fields(),
            Self::Index { what, source } => vec![("what", what.clone()), ("cause", source.to_string())],
            Self::Other(error) => vec![("cause", error.to_string())],
        }
    }
}
