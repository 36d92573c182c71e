//! JSON objects on disk that other programs and people write too: read as they are, changed in place.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::fs::{self, FileError, Lock, Privacy};

/// An object as it stands in a file.
pub(crate) type Object = Map<String, Value>;

/// Reads an object, or `None` when there is no file.
///
/// # Errors
///
/// [`FileError::Syntax`] with the place when it is no JSON object; [`FileError::Io`].
pub(crate) fn read_object(path: &Path) -> Result<Option<Object>, FileError> {
    match fs::read_json::<Value>(path) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(FileError::Syntax {
            path: path.to_owned(),
            line: 1,
            column: 1,
            problem: "expected a JSON object: { … }".into(),
        }),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Changes an object under its lock and writes it back atomically, unless nothing changed.
/// A missing file counts as an empty object; a broken one is an error and stays.
///
/// # Errors
///
/// [`FileError`], or whatever `change` says; the file is then as it was.
pub(crate) fn edit_object<T, E: From<FileError>>(
    path: &Path,
    change: impl FnOnce(&mut Object) -> Result<T, E>,
) -> Result<T, E> {
    let _lock = Lock::wait(&lock_path(path))?;
    let mut object = read_object(path)?.unwrap_or_default();
    let before = object.clone();
    let outcome = change(&mut object)?;
    if object != before || !path.exists() {
        fs::write_json(path, &object, Privacy::Secret)?;
    }
    Ok(outcome)
}

/// `run/{file}.lock` beside the file.
fn lock_path(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name("run").join(format!("{name}.lock"))
}

/// The value at a path of keys.
pub(crate) fn at<'a>(object: &'a Object, keys: &[String]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(object.get(first)?, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

/// Puts a value at a path of keys, making the objects on the way. `false` when something on the way is no object.
pub(crate) fn put(object: &mut Object, keys: &[String], value: Value) -> bool {
    match keys {
        [] => false,
        [last] => {
            object.insert(last.clone(), value);
            true
        }
        [first, rest @ ..] => {
            let next = object.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
            if next.is_null() {
                *next = Value::Object(Map::new());
            }
            next.as_object_mut().is_some_and(|next| put(next, rest, value))
        }
    }
}

/// Splits a dotted key; a part in double quotes may hold dots itself.
pub(crate) fn split_key(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in key.chars() {
        match (c, parts.last_mut()) {
            ('"', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (c, Some(part)) => part.push(c),
            (_, None) => {}
        }
    }
    parts
}
