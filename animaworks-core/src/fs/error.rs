//! A file that cannot be used: which one, where in it, and what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::error::{ErrorKind, Fault};

/// What can go wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system said no.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// What was tried: `read`, `write`, `append to`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file cannot be parsed.
    #[error("{}:{line}:{column}: {problem}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 when unknown.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A value in the file is out of range or of the wrong kind.
    #[error("{}: {key}: {problem}", .path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The dotted key.
        key: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A path leads out of where it may lead.
    #[error("{path} leads outside {}", .root.display())]
    Outside {
        /// The path as given.
        path: String,
        /// Where it had to stay.
        root: PathBuf,
    },
}

impl FileError {
    /// An operating system error with its path.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Whether the file simply is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The file it is about, when there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. } | Self::Syntax { path, .. } | Self::Value { path, .. } => Some(path),
            Self::Outside { .. } => None,
        }
    }
}

impl Fault for FileError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
                _ => ErrorKind::Internal,
            },
            Self::Syntax { .. } | Self::Value { .. } => ErrorKind::Corrupt,
            Self::Outside { .. } => ErrorKind::Permission,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "file_not_found",
                io::ErrorKind::PermissionDenied => "file_permission",
                io::ErrorKind::ReadOnlyFilesystem => "file_read_only",
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "file_disk_full",
                _ => "file_io",
            },
            Self::Syntax { .. } => "file_syntax",
            Self::Value { .. } => "file_value",
            Self::Outside { .. } => "file_outside",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Io { action, path, source } => vec![
                ("action", (*action).to_owned()),
                ("path", path.display().to_string()),
                ("cause", source.to_string()),
            ],
            Self::Syntax { path, line, column, problem } => vec![
                ("path", path.display().to_string()),
                ("line", line.to_string()),
                ("column", column.to_string()),
                ("problem", problem.clone()),
            ],
            Self::Value { path, key, problem } => {
                vec![("path", path.display().to_string()), ("key", key.clone()), ("problem", problem.clone())]
            }
            Self::Outside { path, root } => vec![("path", path.clone()), ("root", root.display().to_string())],
        }
    }
}
