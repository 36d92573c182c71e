//! Finding the nearest vectors: the trait, and what goes through it.
//!
//! An index is a shadow beside the database: rows are *staged* (written and synced),
//! the caller records the returned [`Position`] in the same transaction as its own
//! rows, and then *publishes* it. What was staged and never recorded is gone after
//! the next start; what was recorded is there.

#[cfg(any(test, feature = "test-support"))]
pub mod contract;
mod embedded;
mod rows;
mod scan;
mod segment;

pub use embedded::{EmbeddedIndex, Precision};
pub use rows::RowSet;

use std::{fmt::Debug, path::PathBuf, str::FromStr, sync::Arc};

use animaworks_core::{ErrorKind, Fault, fs::FileError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Nearest vectors by cosine.
///
/// One writer at a time (`stage`, `publish`, `discard`, `compact` wait for one another), any number of readers, who
/// see what was last published. Vectors are L2-normalised by whoever makes them.
#[async_trait]
pub trait VectorIndex: Debug + Send + Sync {
    /// How long every vector is.
    fn dimensions(&self) -> usize;

    /// Writes changes durably, in order, without showing them to readers; where the index then stands. A row whose id
    /// is there already takes its place. Repeated calls add up until [`publish`](Self::publish) or
    /// [`discard`](Self::discard).
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimensions`] before anything is written; [`VectorError::File`] or [`VectorError::Remote`] when
    /// the rows could not be made durable: then nothing of this call counts.
    ///
    /// # Cancel safety
    ///
    /// The write is finished even when nobody waits; `discard` undoes it.
    async fn stage(&self, changes: Vec<VectorChange>) -> Result<Position, VectorError>;

    /// Shows readers what was staged, once the caller has recorded `position`.
    ///
    /// # Errors
    ///
    /// [`VectorError::Position`] when `position` is not where the index stands.
    async fn publish(&self, position: Position) -> Result<(), VectorError>;

    /// Forgets what was staged since the last `publish`.
    ///
    /// # Errors
    ///
    /// [`VectorError::Remote`] where forgetting needs somebody else.
    async fn discard(&self) -> Result<(), VectorError>;

    /// The `k` nearest published rows, nearest first, ties by smaller id; only those in `allow` when it is given.
    ///
    /// # Errors
    ///
    /// [`VectorError::Dimensions`], or [`VectorError::Remote`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn search(
        &self,
        query: Vec<f32>,
        k: usize,
        allow: Option<Arc<RowSet>>,
    ) -> Result<Vec<VectorHit>, VectorError>;

    /// The stored vectors of published rows, as exact as they are stored; `None` for rows that are not there.
    ///
    /// # Errors
    ///
    /// [`VectorError::Remote`].
    async fn vectors(&self, ids: Vec<u64>) -> Result<Vec<Option<Vec<f32>>>, VectorError>;

    /// Stages a copy without what was removed, when there is something to gain. Record and publish the position it
    /// returns like any other.
    ///
    /// # Errors
    ///
    /// [`VectorError::Corrupt`] when a stored row does not match its checksum; [`VectorError::Position`] while
    /// something else is staged.
    async fn compact(&self) -> Result<Option<Position>, VectorError>;

    /// How the index is.
    async fn health(&self) -> VectorHealth;
}

/// A row to store.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorRow {
    /// The caller's id; expected to be dense, such as a row id of SQLite.
    pub id: u64,
    /// The vector, L2-normalised.
    pub vector: Vec<f32>,
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorChange {
    /// Store a row, in place of an older one with the same id.
    Put(VectorRow),
    /// Remove a row; one that is not there is no error.
    Remove(u64),
}

/// A row that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    /// The caller's id.
    pub id: u64,
    /// Cosine to the query, as exact as the index stores vectors.
    pub cosine: f32,
}

/// Where an index stands: what its caller records in the database. Written as `generation:rows:removed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Position {
    /// Counts compactions.
    pub generation: u64,
    /// Rows ever appended in this generation.
    pub rows: u64,
    /// Removals ever appended in this generation.
    pub removed: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.generation, self.rows, self.removed)
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.to_string()
    }
}

impl TryFrom<String> for Position {
    type Error = BadPosition;

    fn try_from(text: String) -> Result<Self, BadPosition> {
        text.parse()
    }
}

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, BadPosition> {
        let bad = || BadPosition { text: text.to_owned() };
        let mut parts = text.split(':').map(str::parse::<u64>);
        let mut next = || parts.next().and_then(Result::ok).ok_or_else(bad);
        let position = Self { generation: next()?, rows: next()?, removed: next()? };
        if parts.next().is_some() { Err(bad()) } else { Ok(position) }
    }
}

/// A text that is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a position of a vector index: {text}")]
pub struct BadPosition {
    /// The text.
    pub text: String,
}

/// How an index is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VectorHealth {
    /// Rows that can be found.
    pub live: u64,
    /// Rows that were removed or replaced and still take room.
    pub dead: u64,
    /// Size on disk; 0 when it lies elsewhere.
    pub bytes: u64,
    /// Where it stands.
    pub position: Position,
    /// What does not work, in English, for logs and `doctor`.
    pub problem: Option<String>,
}

/// What can go wrong with an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the index is not what it should be; the index must be rebuilt from the memory files.
    #[error("vector index {}: {problem}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A vector of another model.
    #[error("a vector has {got} dimensions, the index {expected}")]
    Dimensions {
        /// What the index has.
        expected: usize,
        /// What came.
        got: usize,
    },
    /// The position given is not where the index stands.
    #[error("the vector index stands at {at}, not at {given}")]
    Position {
        /// Where it stands.
        at: Position,
        /// What was given.
        given: Position,
    },
    /// A server said no, or nothing.
    #[error("vector server: {problem}")]
    Remote {
        /// What it said.
        problem: String,
    },
}

impl Fault for VectorError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Dimensions { .. } => ErrorKind::InvalidRequest,
            Self::Position { .. } => ErrorKind::Conflict,
            Self::Remote { .. } => ErrorKind::Unavailable,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Corrupt { .. } => "vector_corrupt",
            Self::Dimensions { .. } => "vector_dimensions",
            Self::Position { .. } => "vector_position",
            Self::Remote { .. } => "vector_remote",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::File(error) => error.fields(),
            Self::Corrupt { path, problem } => {
                vec![("path", path.display().to_string()), ("problem", problem.clone())]
            }
            Self::Dimensions { expected, got } => vec![("expected", expected.to_string()), ("got", got.to_string())],
            Self::Position { at, given } => vec![("at", at.to_string()), ("given", given.to_string())],
            Self::Remote { problem } => vec![("problem", problem.clone())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_as_written() {
        let position = Position { generation: 3, rows: 1200, removed: 7 };
        assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
        for bad in ["", "1:2", "1:2:3:4", "a:b:c", "1:2:-3"] {
            assert!(bad.parse::<Position>().is_err(), "{bad}");
        }
    }
}
