//! Measures recall without a judge: is the evidence inside the tokens that would be injected, and how fast.
//!
//! The store is filled through the public write API and asked through the public
//! search; what the answers should be is known only to the scorer ([`gold`]). Peers
//! built from textbooks run beside it over the same records, so that every figure
//! has its measure next to it. Sets of others are read from where the caller keeps
//! them; one that is missing is reported as skipped, never as passed.

pub mod cache;
pub mod compare;
pub mod data;
pub mod gold;
pub mod learn;
pub mod longmemeval;
pub mod pack;
pub mod peers;
pub mod plot;
mod random;
pub mod report;
pub mod run;
pub mod scale;
pub mod score;
pub mod targets;

use std::path::{Path, PathBuf};

use animaworks_core::{ErrorKind, Fault, MemoryError, fs::FileError};

use crate::embed::EmbedError;

/// The seed of everything that is drawn.
pub const SEED: u64 = 7;

/// What can go wrong with a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A file of data cannot be understood.
    #[error("{}: {problem}", .path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The memory that is measured failed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The model failed.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A peer's database failed.
    #[error("the peer's database")]
    Sql(#[from] sqlx::Error),
}

impl Fault for BenchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Data { .. } => ErrorKind::Corrupt,
            Self::File(error) => error.kind(),
            Self::Memory(error) => error.kind(),
            Self::Embed(error) => error.kind(),
            Self::Sql(_) => ErrorKind::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Data { .. } => "bench_data",
            Self::File(error) => error.code(),
            Self::Memory(error) => error.code(),
            Self::Embed(error) => error.code(),
            Self::Sql(_) => "internal",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Data { path, problem } => vec![("path", path.display().to_string()), ("problem", problem.clone())],
            Self::File(error) => error.fields(),
            Self::Memory(error) => error.fields(),
            Self::Embed(error) => error.fields(),
            Self::Sql(error) => vec![("cause", error.to_string())],
        }
    }
}

fn data_error(path: &Path, problem: impl ToString) -> BenchError {
    BenchError::Data { path: path.to_owned(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests;
