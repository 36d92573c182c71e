//! `config.json` by dotted keys: get, set, list. What is not asked for stays as it is.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    Problem, Settings,
    file::{self, Object},
    sections::AnimaFields,
    shape::{Shape, Shaped, join},
    status::StatusFields,
};
use crate::{
    error::{ErrorKind, Fault},
    fs::FileError,
    gate::near,
    i18n::Locale,
    ids::AnimaName,
    layout::DataDir,
};

/// What can go wrong with configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, parsed or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no organisation here yet; its `config.json` is written when it is made.
    #[error("{} is not initialised", .0.display())]
    NotInitialised(PathBuf),
    /// There is no such key.
    #[error("unknown configuration key: {key}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Keys that look like it.
        near: Vec<String>,
    },
    /// The value does not fit the key.
    #[error("{}: {}", .0.key, .0.text(Locale::En))]
    Unfit(Problem),
    /// There is no such Anima.
    #[error("there is no anima {name}")]
    UnknownAnima {
        /// The name.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
}

impl Fault for ConfigError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::UnknownKey { .. } | Self::Unfit(_) => ErrorKind::InvalidRequest,
            Self::NotInitialised(_) | Self::UnknownAnima { .. } => ErrorKind::NotFound,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::NotInitialised(_) => "not_initialised",
            Self::UnknownKey { near, .. } if near.is_empty() => "config_unknown_key",
            Self::UnknownKey { .. } => "config_unknown_key_near",
            Self::Unfit(problem) => problem.code(),
            Self::UnknownAnima { near, .. } if near.is_empty() => "unknown_anima",
            Self::UnknownAnima { .. } => "unknown_anima_near",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::File(error) => error.fields(),
            Self::NotInitialised(path) => vec![("path", path.display().to_string())],
            Self::UnknownKey { key, near } => vec![("key", key.clone()), ("near", near.join(", "))],
            Self::Unfit(problem) => problem.fields(),
            Self::UnknownAnima { name, near } => vec![("name", name.clone()), ("near", near.join(", "))],
        }
    }
}

/// One key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The dotted key.
    pub key: String,
    /// The value; secrets are masked.
    pub value: Value,
    /// Whether it is written in the file; a default otherwise.
    pub written: bool,
}

/// A key that no part of the program reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The dotted key.
    pub key: String,
    /// The known key that looks most like it, if one does.
    pub near: Vec<String>,
}

/// `config.json` as it stands.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// What the program reads in it.
    pub settings: Settings,
    /// What in it does not fit.
    pub problems: Vec<Problem>,
    object: Object,
}

impl ConfigFile {
    /// Reads the file; without one everything has its default.
    ///
    /// # Errors
    ///
    /// [`FileError`] when it cannot be read or is no JSON object.
    pub fn load(data: &DataDir) -> Result<Self, FileError> {
        let object = file::read_object(&data.config())?.unwrap_or_default();
        let mut problems = Vec::new();
        let settings = Settings::read(&Value::Object(object.clone()), &mut problems);
        Ok(Self { settings, problems, object })
    }

    /// The value of a key: as written, else its default.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownKey`] when it is neither written nor known.
    pub fn value(&self, key: &str) -> Result<Entry, ConfigError> {
        let parts = file::split_key(key);
        let shape = walk(&Settings::shape(), &parts);
        if let Some(value) = file::at(&self.object, &parts) {
            let name = parts.last().map_or("", String::as_str);
            let value = masked(name, shape.as_ref(), value);
            return Ok(Entry { key: key.to_owned(), value, written: true });
        }
        let Some(shape) = shape else {
            return Err(unknown_key(key));
        };
        let value = file::at(&defaults(), &parts).cloned().unwrap_or(Value::Null);
        let value = if shape.is_secret() { Value::Null } else { value };
        Ok(Entry { key: key.to_owned(), value, written: false })
    }

    /// All keys, written or not, one line each, in the order of the file and then of the program.
    pub fn list(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        flatten(&self.object, &defaults(), Some(&Settings::shape()), "", &mut entries);
        entries
    }

    /// The keys that no part of the program reads, with known keys that look like them: a slip of the pen, or another
    /// version's. They are kept either way.
    pub fn unknown(&self) -> Vec<UnknownKey> {
        let mut keys = Vec::new();
        unread(&self.object, &Settings::shape(), "", &mut keys);
        let mut known = Vec::new();
        flatten(&Object::new(), &defaults(), None, "", &mut known);
        let near = |key: &str| near(key, known.iter().map(|entry| entry.key.as_str()), 1);
        keys.into_iter().map(|key| UnknownKey { near: near(&key), key }).collect()
    }

    /// Sets a key from text as a person types it. `animas.NAME.FIELD` goes to the `status.json` of that Anima,
    /// which is where such a field belongs. Returns the file that was written.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]; the file is then as it was.
    pub fn set(data: &DataDir, key: &str, text: &str) -> Result<PathBuf, ConfigError> {
        if !data.config().is_file() {
            return Err(ConfigError::NotInitialised(data.root().to_owned()));
        }
        let parts = file::split_key(key);
        if let [first, name, field] = parts.as_slice() {
            let known = [AnimaFields::shape(), StatusFields::shape()];
            if let Some(shape) = known.iter().find_map(|known| known.child(field)).filter(|_| first == "animas") {
                return set_of_anima(data, name, field, parse(shape, text, key)?);
            }
        }
        let shape = walk(&Settings::shape(), &parts).ok_or_else(|| unknown_key(key))?;
        let value = parse(&shape, text, key)?;
        let canonical = parts.iter().fold(String::new(), |prefix, part| join(&prefix, part));
        file::edit_object(&data.config(), |object| {
            if !file::put(object, &parts, value) {
                return Err(unknown_key(key));
            }
            // two values may only be wrong together
            let mut problems = Vec::new();
            Settings::read(&Value::Object(object.clone()), &mut problems);
            match problems.into_iter().find(|problem| problem.key == canonical) {
                Some(problem) => Err(ConfigError::Unfit(problem)),
                None => Ok(()),
            }
        })?;
        Ok(data.config())
    }

    /// Changes the file in place, under its lock, keeping everything `change` leaves alone.
    ///
    /// # Errors
    ///
    /// [`FileError`]; the file is then as it was.
    pub fn edit<T>(data: &DataDir, change: impl FnOnce(&mut Object) -> T) -> Result<T, FileError> {
        file::edit_object(&data.config(), |object| Ok(change(object)))
    }
}

/// Puts a value into the `status.json` of an Anima; `null` takes it out.
fn set_of_anima(data: &DataDir, name: &str, field: &str, value: Value) -> Result<PathBuf, ConfigError> {
    let anima = AnimaName::new(name).ok().map(|name| data.anima(&name)).filter(|anima| anima.root().is_dir());
    let Some(anima) = anima else {
        let names = crate::organisation::names(data)?;
        let near = near(name, names.iter().map(AnimaName::as_str), 3);
        return Err(ConfigError::UnknownAnima { name: name.to_owned(), near });
    };
    super::Status::set(&anima, field, Some(value).filter(|value| !value.is_null()))?;
    Ok(anima.status())
}

/// Reads text as a value of a shape.
fn parse(shape: &Shape, text: &str, key: &str) -> Result<Value, ConfigError> {
    let inner = match shape {
        Shape::Optional(_) if matches!(text.trim(), "" | "null") => return Ok(Value::Null),
        Shape::Optional(inner) => inner,
        shape => shape,
    };
    let value = match inner {
        Shape::Text
        | Shape::Secret
        | Shape::OneOf(_)
        | Shape::Mode
        | Shape::Model
        | Shape::Zone
        | Shape::Daily
        | Shape::Weekly
        | Shape::Monthly => Value::String(text.to_owned()),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    let mut problems = Vec::new();
    let cleaned = inner.clean(&value, key, &mut problems);
    match problems.into_iter().next() {
        Some(problem) => Err(ConfigError::Unfit(problem)),
        // inside an object unknown keys are kept
        None => Ok(if value.is_object() { value } else { cleaned.unwrap_or(value) }),
    }
}

fn walk(shape: &Shape, parts: &[String]) -> Option<Shape> {
    parts.iter().try_fold(shape, |shape, part| shape.child(part)).cloned()
}

fn defaults() -> Object {
    match serde_json::to_value(Settings::default()) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => Object::new(),
    }
}

fn unknown_key(key: &str) -> ConfigError {
    let mut known = Vec::new();
    flatten(&Object::new(), &defaults(), None, "", &mut known);
    let near = near(key, known.iter().map(|entry| entry.key.as_str()), 3);
    ConfigError::UnknownKey { key: key.to_owned(), near }
}

fn unread(object: &Object, shape: &Shape, prefix: &str, keys: &mut Vec<String>) {
    for (name, value) in object {
        let key = join(prefix, name);
        match (shape.child(name), value) {
            (None, _) => keys.push(key),
            (Some(Shape::Any), _) => {}
            (Some(below), Value::Object(object)) => unread(object, below, &key, keys),
            (Some(_), _) => {}
        }
    }
}

fn flatten(object: &Object, defaults: &Object, shape: Option<&Shape>, prefix: &str, entries: &mut Vec<Entry>) {
    let unwritten = defaults.keys().filter(|key| !object.contains_key(*key));
    for name in object.keys().chain(unwritten) {
        let key = join(prefix, name);
        let shape = shape.and_then(|shape| shape.child(name));
        let (written, default) = (object.get(name), defaults.get(name));
        let empty = Object::new();
        let inner = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        match written.or(default) {
            Some(Value::Object(any)) if !any.is_empty() => {
                let below = if written.is_some() { inner(written) } else { empty };
                flatten(&below, &inner(default), shape, &key, entries);
            }
            Some(value) => {
                entries.push(Entry { key, value: masked(name, shape, value), written: written.is_some() });
            }
            None => {}
        }
    }
}

/// The value without what must not be shown.
fn masked(name: &str, shape: Option<&Shape>, value: &Value) -> Value {
    match value {
        Value::String(text) if text.is_empty() => value.clone(),
        Value::String(_) if shape.is_some_and(Shape::is_secret) || names_a_secret(name) => Value::String("***".into()),
        Value::Array(items) => Value::Array(items.iter().map(|item| masked(name, None, item)).collect()),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(name, item)| (name.clone(), masked(name, shape.and_then(|shape| shape.child(name)), item)));
            Value::Object(entries.collect())
        }
        _ => value.clone(),
    }
}

/// Whether a key of somebody else's section looks like it holds a secret; names of variables do not.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    !name.ends_with("_env") && ["token", "secret", "password", "api_key"].iter().any(|word| name.ends_with(word))
}

#[cfg(test)]
mod tests;
