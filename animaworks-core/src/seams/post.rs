//! Letters and boards.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, FixedOffset};
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    error::{ErrorKind, Fault},
    fs::FileError,
    ids::{AnimaName, BoardName, LeaseId, MessageId},
    message::{Message, SenderKind},
};

/// Carries letters between Animas and keeps the boards: files on one machine, a database between several.
#[async_trait]
pub trait PostOffice: Debug + Send + Sync {
    /// Delivers a letter. The same message id twice is one letter.
    ///
    /// # Errors
    ///
    /// When it cannot be made durable.
    ///
    /// # Cancel safety
    ///
    /// Resumable: post it again.
    async fn post(&self, letter: Message, to: &AnimaName) -> Result<MessageId, PostError>;

    /// Takes up to `limit` letters for handling; unsettled ones come back after `lease`.
    ///
    /// # Errors
    ///
    /// When the inbox cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was claimed comes back.
    async fn claim(&self, who: &AnimaName, limit: usize, lease: Duration) -> Result<Vec<Claim<Message>>, PostError>;

    /// Says what came of a claimed letter.
    ///
    /// # Errors
    ///
    /// [`PostError::UnknownLease`] when it ran out before.
    ///
    /// # Cancel safety
    ///
    /// Resumable.
    async fn settle(&self, lease: &LeaseId, how: Settled) -> Result<(), PostError>;

    /// Puts a post on a board.
    ///
    /// # Errors
    ///
    /// [`PostError::UnknownBoard`], [`PostError::NotAMember`], or when it cannot be made durable.
    ///
    /// # Cancel safety
    ///
    /// Resumable, but may then stand there twice.
    async fn publish(&self, board: &BoardName, post: BoardPost) -> Result<(), PostError>;

    /// The newest `limit` posts of a board before a moment, oldest first.
    ///
    /// # Errors
    ///
    /// [`PostError::UnknownBoard`], or [`PostError::NotAMember`] for `reader`.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn board(
        &self,
        board: &BoardName,
        reader: &AnimaName,
        before: Option<DateTime<FixedOffset>>,
        limit: usize,
    ) -> Result<Vec<BoardPost>, PostError>;

    /// The boards an Anima may read, by name.
    ///
    /// # Errors
    ///
    /// When the boards cannot be listed.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn boards(&self, reader: &AnimaName) -> Result<Vec<BoardName>, PostError>;

    /// Rings when something may have arrived; several arrivals may ring once.
    fn arrivals(&self, who: &AnimaName) -> BoxStream<'static, ()>;
}

/// One line of a board (memory spec §10.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardPost {
    /// When.
    pub ts: DateTime<FixedOffset>,
    /// Who.
    pub from: String,
    /// What.
    pub text: String,
    /// What sort of author.
    #[serde(default)]
    pub source: SenderKind,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Something taken for handling.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim<T> {
    /// Settles it.
    pub lease: LeaseId,
    /// The thing.
    pub item: T,
    /// Which attempt this is, from 1.
    pub attempt: u32,
}

/// What came of something claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It is handled.
    Done,
    /// Again, after this long.
    Retry {
        /// How long.
        after: Duration,
    },
    /// It cannot be handled; it is set aside with the reason.
    Failed {
        /// Why.
        reason: String,
    },
}

/// What can go wrong with letters, boards and tasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// There is no such board.
    #[error("no board {board}")]
    UnknownBoard {
        /// The board.
        board: BoardName,
    },
    /// Not a member, or the board is closed.
    #[error("{who} may not use board {board}")]
    NotAMember {
        /// The board.
        board: BoardName,
        /// Who asked.
        who: String,
    },
    /// There is nobody of that name.
    #[error("no recipient {name}")]
    UnknownRecipient {
        /// The name.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// The lease ran out, or never was.
    #[error("no lease {lease}")]
    UnknownLease {
        /// The lease.
        lease: LeaseId,
    },
    /// The task book does not allow it.
    #[error("task {task}: {problem}")]
    Task {
        /// The task.
        task: String,
        /// The catalogue key of the reason.
        code: &'static str,
        /// Why, in English.
        problem: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something else, such as a database.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Fault for PostError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownBoard { .. } | Self::UnknownRecipient { .. } | Self::UnknownLease { .. } => {
                ErrorKind::NotFound
            }
            Self::NotAMember { .. } => ErrorKind::Permission,
            Self::Task { .. } => ErrorKind::InvalidRequest,
            Self::File(error) => error.kind(),
            Self::Other(_) => ErrorKind::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::UnknownBoard { .. } => "unknown_board",
            Self::NotAMember { .. } => "board_not_a_member",
            Self::UnknownRecipient { .. } => "unknown_recipient",
            Self::UnknownLease { .. } => "unknown_lease",
            Self::Task { code, .. } => code,
            Self::File(error) => error.code(),
            Self::Other(_) => "internal",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::UnknownBoard { board } => vec![("board", board.to_string())],
            Self::NotAMember { board, who } => vec![("board", board.to_string()), ("who", who.clone())],
            Self::UnknownRecipient { name, near } => vec![("name", name.clone()), ("near", near.join(", "))],
            Self::UnknownLease { lease } => vec![("lease", lease.to_string())],
            Self::Task { task, problem, .. } => vec![("task", task.clone()), ("problem", problem.clone())],
            Self::File(error) => error.fields(),
            Self::Other(error) => vec![("cause", error.to_string())],
        }
    }
}
