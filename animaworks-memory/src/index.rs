//! The shadow: what is needed to find a place in the files without reading them.
//!
//! One SQLite file per Anima holds posting lists and where each chunk stands; the
//! small facts about chunks are also kept in memory. It can be deleted at any time.

pub(crate) mod directory;
pub(crate) mod plan;
pub(crate) mod reader;
pub(crate) mod schema;
pub(crate) mod sources;
pub(crate) mod writer;

use animaworks_core::MemoryError;

/// Turns a database error into ours, saying what was tried.
pub(crate) fn failed(what: &'static str) -> impl FnOnce(sqlx::Error) -> MemoryError {
    move |error| MemoryError::Index { what: what.to_owned(), source: Box::new(error) }
}

/// Whether the database file itself is broken, so that only building it again helps.
pub(crate) fn is_corrupt(error: &MemoryError) -> bool {
    let MemoryError::Index { source, .. } = error else { return false };
    let Some(sqlx::Error::Database(database)) = source.downcast_ref::<sqlx::Error>() else { return false };
    // the primary result codes of "malformed" and "not a database"
    let code = database.code().and_then(|code| code.parse::<i64>().ok()).map(|code| code & 0xFF);
    matches!(code, Some(11 | 26))
}
