//! What an Anima may write and put away in its memory (memory spec §24).

use animaworks_core::{MemoryError, MemoryPath};

use super::access::Located;

/// Files that make an Anima what it is; others decide about them.
const PROTECTED: &[&str] = &["permissions.md", "permissions.json", "identity.md", "bootstrap.md", "status.json"];

/// Directories the framework keeps; writing them would be forging what happened.
const KEPT: &[&str] =
    &["activity_log", "transcripts", "token_usage", "index", "vectordb", "run", "archive", "shortterm", "facts"];

/// Shared trees that Animas read and do not write.
const READ_ONLY: &[&str] = &["common_knowledge", "common_skills", "reference"];

/// What may be put away.
const ARCHIVABLE: &[&str] = &["knowledge", "procedures", "state/overflow_inbox"];

/// Refuses what may not be written.
///
/// # Errors
///
/// [`MemoryError::Denied`] with the reason.
pub(super) fn check_write(path: &MemoryPath, located: &Located) -> Result<(), MemoryError> {
    let denied = |code: &'static str, reason: &str| {
        Err(MemoryError::Denied { path: path.to_string(), code, reason: reason.to_owned() })
    };
    if READ_ONLY.contains(&path.root()) {
        return denied("memory_read_only", "is shared by everybody and only read");
    }
    if !located.own {
        return Ok(());
    }
    // what counts is where a path really leads, on file systems that do not tell cases apart too
    let real = located.real.to_lowercase();
    if PROTECTED.contains(&real.as_str()) {
        return denied("memory_protected", "is protected");
    }
    let first = real.split('/').next().unwrap_or_default();
    let is_data = first == "state" && !crate::chunk::has_extension(&real, "md");
    if KEPT.contains(&first) || is_data || real.split('/').any(|part| part.starts_with('.')) {
        return denied("memory_kept", "is kept by the framework");
    }
    if first == "shared" {
        return denied("memory_kept", "is not a place for notes; only shared/users/ and shared/common_knowledge/ are");
    }
    Ok(())
}

/// Refuses what may not be put away.
///
/// # Errors
///
/// [`MemoryError::Denied`] with the reason.
pub(super) fn check_archive(path: &MemoryPath, located: &Located, reason: &str) -> Result<(), MemoryError> {
    let denied = |code: &'static str, reason: &str| {
        Err(MemoryError::Denied { path: path.to_string(), code, reason: reason.to_owned() })
    };
    let inside = |tree: &&str| located.real.strip_prefix(*tree).is_some_and(|rest| rest.starts_with('/'));
    if !located.own || !ARCHIVABLE.iter().any(inside) {
        return denied("memory_not_archivable", "is not knowledge, a procedure or overflow of the inbox");
    }
    if reason.trim().is_empty() {
        return denied("memory_no_reason", "no reason was given");
    }
    Ok(())
}

/// A path that leads out of memory.
pub(super) fn outside(path: &MemoryPath) -> MemoryError {
    MemoryError::Denied {
        path: path.to_string(),
        code: "memory_outside",
        reason: "leads out of this memory".to_owned(),
    }
}
