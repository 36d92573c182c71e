//! Files: the truth, written so that nothing can be half there.
//!
//! Whole files are replaced by [`write_atomic`]; logs grow by [`append_line`];
//! paths that models and people hand in go through a [`Jail`]. Nothing else in the
//! workspace writes files. All functions block; call them from async code with [`blocking`].

mod atomic;
mod error;
mod jail;
mod jsonl;
mod lock;

pub use atomic::{Privacy, create_dir, create_private_dir, move_file, remove_if_exists, write_atomic};
pub use error::FileError;
pub use jail::Jail;
pub use jsonl::{JsonLine, append_line, append_lines, json_line, read_lines, read_records};
pub use lock::{Holder, Lock};

use std::path::Path;

/// Reads a text file whatever a person's editor did to it: a byte order mark is dropped and broken UTF-8 replaced.
///
/// # Errors
///
/// [`FileError::Io`] names the path.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let bytes = fs_err::read(path).map_err(|error| FileError::io("read", path, error))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Reads a text file, or `None` when there is none.
///
/// # Errors
///
/// [`FileError::Io`] names the path.
pub fn read_text_if_exists(path: &Path) -> Result<Option<String>, FileError> {
    match read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a JSON file; a broken one is named with line and column and left alone.
///
/// # Errors
///
/// [`FileError::Io`], or [`FileError::Syntax`] with the place.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    let text = read_text(path)?;
    let mut json = serde_json::Deserializer::from_str(&text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let key = error.path().to_string();
        let inner = error.into_inner();
        FileError::Syntax {
            path: path.to_owned(),
            line: inner.line(),
            column: inner.column(),
            problem: {
                // the place is said beside it, and a key of `?` is one that was never read
                let said = inner.to_string();
                let at = format!(" at line {} column {}", inner.line(), inner.column());
                let said = said.strip_suffix(&at).unwrap_or(&said);
                if key == "." || key.starts_with('?') { said.to_owned() } else { format!("{key}: {said}") }
            },
        }
    })
}

/// Writes JSON with two spaces of indentation and a final newline, atomically.
///
/// # Errors
///
/// [`FileError::Io`] names the path.
pub fn write_json<T: serde::Serialize>(path: &Path, value: &T, privacy: Privacy) -> Result<(), FileError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| FileError::io("encode", path, std::io::Error::other(error)))?;
    text.push(b'\n');
    write_atomic(path, &text, privacy)
}

/// Runs blocking file work off the async workers.
///
/// # Errors
///
/// Those of `work`; a panic in it becomes [`FileError::Io`].
///
/// # Cancel safety
///
/// The work is finished even when nobody waits for it.
pub async fn blocking<T, E, F>(work: F) -> Result<T, E>
where
    T: Send + 'static,
    E: From<FileError> + Send + 'static,
    F: FnOnce() -> Result<T, E> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(FileError::io("finish work on", Path::new("."), std::io::Error::other(error)).into()),
    }
}
