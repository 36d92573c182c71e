//! What a value may be, as data: reading, checking, setting and listing follow the same description.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Secret;
use crate::{fs::FileError, i18n::Locale, ids::ModelId, mode::ExecutionMode, t};

/// What a value may be.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A whole number, both ends included.
    Integer {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// Any number, both ends included.
    Number {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// Text.
    Text,
    /// Text that is never shown.
    Secret,
    /// One of some words.
    OneOf(&'static [&'static str]),
    /// The letter of an execution mode, or one of its older names.
    Mode,
    /// The name of a model.
    Model,
    /// A time zone by its IANA name; empty for the default.
    Zone,
    /// `HH:MM`.
    Daily,
    /// `sun:HH:MM`.
    Weekly,
    /// `D:HH:MM` with the day of the month.
    Monthly,
    /// What it says, or nothing (`null` or empty).
    Optional(Box<Shape>),
    /// A list.
    List(Box<Shape>),
    /// An object whose keys are names or patterns.
    Map(Box<Shape>),
    /// An object with these keys.
    Section(Vec<(&'static str, Shape)>),
    /// Anything; somebody else reads it.
    Any,
}

/// A value that does not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The dotted key.
    pub key: String,
    /// What is there, cut short; never a secret.
    pub found: String,
    /// What may be there.
    pub expected: Shape,
}

impl Problem {
    /// What was found and what is allowed, in a person's words.
    pub fn text(&self, locale: Locale) -> String {
        t!(locale, "core.config.unfit", found = self.found, expected = self.expected.describe(locale))
    }

    /// The catalogue's word for it: a sentence for each kind of shape, so that every language says it whole.
    pub(crate) fn code(&self) -> &'static str {
        match self.expected.inner() {
            Shape::Bool => "config_unfit_bool",
            Shape::Integer { .. } => "config_unfit_integer",
            Shape::Number { .. } => "config_unfit_number",
            Shape::OneOf(_) | Shape::Mode => "config_unfit_one_of",
            Shape::Model => "config_unfit_model",
            Shape::Zone => "config_unfit_zone",
            Shape::Daily | Shape::Weekly | Shape::Monthly => "config_unfit_time",
            Shape::Text | Shape::Secret => "config_unfit_text",
            Shape::List(_) => "config_unfit_list",
            Shape::Map(_) | Shape::Section(_) | Shape::Optional(_) | Shape::Any => "config_unfit_object",
        }
    }

    /// What that sentence needs.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![("key", self.key.clone()), ("found", self.found.clone())];
        match self.expected.inner() {
            Shape::Integer { min, max } => fields.extend([("min", min.to_string()), ("max", max.to_string())]),
            Shape::Number { min, max } => fields.extend([("min", min.to_string()), ("max", max.to_string())]),
            Shape::OneOf(words) => fields.push(("words", words.join(", "))),
            Shape::Mode => fields.push(("words", "S, C, D, G, A, B".into())),
            Shape::Daily => fields.push(("example", "02:00".into())),
            Shape::Weekly => fields.push(("example", "sun:03:00".into())),
            Shape::Monthly => fields.push(("example", "1:04:00".into())),
            _ => {}
        }
        fields
    }

    /// The same as an error of a file. `Display` is English.
    pub fn in_file(&self, path: &std::path::Path) -> FileError {
        FileError::Value { path: path.to_owned(), key: self.key.clone(), problem: self.text(Locale::En) }
    }
}

impl Shape {
    /// What is allowed, in a person's words.
    pub fn describe(&self, locale: Locale) -> String {
        match self {
            Self::Bool => t!(locale, "core.config.shape.bool"),
            Self::Integer { min, max } => t!(locale, "core.config.shape.integer", min = min, max = max),
            Self::Number { min, max } if *min <= f64::MIN && *max >= f64::MAX => {
                t!(locale, "core.config.shape.any_number")
            }
            Self::Number { min, max } => t!(locale, "core.config.shape.number", min = min, max = max),
            Self::Text => t!(locale, "core.config.shape.text"),
            Self::Secret => t!(locale, "core.config.shape.secret"),
            Self::OneOf(words) => t!(locale, "core.config.shape.one_of", words = words.join(", ")),
            Self::Mode => t!(locale, "core.config.shape.one_of", words = "S, C, D, G, A, B"),
            Self::Model => t!(locale, "core.config.shape.model"),
            Self::Zone => t!(locale, "core.config.shape.zone"),
            Self::Daily => t!(locale, "core.config.shape.time", example = "02:00"),
            Self::Weekly => t!(locale, "core.config.shape.time", example = "sun:03:00"),
            Self::Monthly => t!(locale, "core.config.shape.time", example = "1:04:00"),
            Self::Optional(inner) => inner.describe(locale),
            Self::List(inner) => t!(locale, "core.config.shape.list", of = inner.describe(locale)),
            Self::Map(_) | Self::Section(_) => t!(locale, "core.config.shape.object"),
            Self::Any => t!(locale, "core.config.shape.any"),
        }
    }

    /// The fitting part of a value, ready to be read; what does not fit is left out and reported.
    pub fn clean(&self, value: &Value, key: &str, problems: &mut Vec<Problem>) -> Option<Value> {
        let fits = match (self, value) {
            (Self::Any, value) => Some(value.clone()),
            (Self::Optional(_), Value::Null) => return Some(Value::Null),
            (_, Value::Null) => return None,
            (Self::Optional(_), Value::String(text)) if text.trim().is_empty() => return Some(Value::Null),
            (Self::Optional(inner), value) => return inner.clean(value, key, problems),
            (Self::Bool, Value::Bool(_)) | (Self::Text | Self::Secret, Value::String(_)) => Some(value.clone()),
            // ids of outside services are often written as numbers
            (Self::Text, Value::Number(number)) => Some(Value::String(number.to_string())),
            (Self::Integer { min, max }, Value::Number(number)) => {
                whole(number).filter(|n| (min..=max).contains(&n)).map(Value::from)
            }
            (Self::Number { min, max }, Value::Number(number)) => {
                number.as_f64().filter(|n| (min..=max).contains(&n)).map(Value::from)
            }
            (Self::OneOf(words), Value::String(text)) => words.contains(&text.as_str()).then(|| value.clone()),
            (Self::Mode, Value::String(text)) => ExecutionMode::parse(text).map(|mode| Value::String(mode.to_string())),
            (Self::Model, Value::String(text)) => ModelId::new(text).is_ok().then(|| value.clone()),
            (Self::Zone, Value::String(text)) => {
                (text.is_empty() || text.parse::<chrono_tz::Tz>().is_ok()).then(|| value.clone())
            }
            (Self::Daily | Self::Weekly | Self::Monthly, Value::String(text)) => {
                self.is_time(text).then(|| value.clone())
            }
            (Self::List(inner), Value::Array(items)) => {
                let cleaned = items.iter().enumerate();
                let cleaned = cleaned.filter_map(|(at, item)| inner.clean(item, &join(key, &at.to_string()), problems));
                return Some(Value::Array(cleaned.collect()));
            }
            (Self::Map(inner), Value::Object(entries)) => {
                let cleaned = entries
                    .iter()
                    .filter_map(|(name, item)| Some((name.clone(), inner.clean(item, &join(key, name), problems)?)));
                return Some(Value::Object(cleaned.collect()));
            }
            (Self::Section(fields), Value::Object(entries)) => {
                let cleaned = fields.iter().filter_map(|(name, shape)| {
                    let item = entries.get(*name)?;
                    Some(((*name).to_owned(), shape.clean(item, &join(key, name), problems)?))
                });
                return Some(Value::Object(cleaned.collect()));
            }
            _ => None,
        };
        if fits.is_none() {
            let found = if self.is_secret() { kind(value).to_owned() } else { short(value) };
            problems.push(Problem { key: key.to_owned(), found, expected: self.clone() });
        }
        fits
    }

    fn inner(&self) -> &Self {
        match self {
            Self::Optional(inner) => inner.inner(),
            shape => shape,
        }
    }

    /// Whether values of this shape are never shown.
    pub fn is_secret(&self) -> bool {
        match self {
            Self::Secret => true,
            Self::Optional(inner) => inner.is_secret(),
            _ => false,
        }
    }

    /// The shape under a name, when there is one.
    pub fn child(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Section(fields) => fields.iter().find(|(field, _)| *field == name).map(|(_, shape)| shape),
            Self::Map(inner) => Some(inner),
            Self::Optional(inner) => inner.child(name),
            Self::Any => Some(self),
            _ => None,
        }
    }

    fn is_time(&self, text: &str) -> bool {
        let clock = |text: &str| {
            text.split_once(':').is_some_and(|(hour, minute)| {
                hour.parse::<u8>().is_ok_and(|hour| hour < 24) && minute.parse::<u8>().is_ok_and(|minute| minute < 60)
            })
        };
        let after = |known: &dyn Fn(&str) -> bool| {
            text.split_once(':').is_some_and(|(day, rest)| known(&day.to_lowercase()) && clock(rest))
        };
        match self {
            Self::Daily => clock(text),
            Self::Weekly => after(&|day| ["sun", "mon", "tue", "wed", "thu", "fri", "sat"].contains(&day)),
            _ => after(&|day| day.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))),
        }
    }
}

/// A type with a fixed shape in configuration files.
pub(crate) trait Shaped {
    fn shape() -> Shape;
}

/// A whole number between two bounds.
pub(crate) fn int(min: i64, max: i64) -> Shape {
    Shape::Integer { min, max }
}

/// A number between two bounds.
pub(crate) fn num(min: f64, max: f64) -> Shape {
    Shape::Number { min, max }
}

macro_rules! shaped {
    ($($ty:ty => $shape:expr),* $(,)?) => { $(impl Shaped for $ty { fn shape() -> Shape { $shape } })* };
}

shaped! {
    bool => Shape::Bool,
    u8 => int(0, u8::MAX.into()),
    u16 => int(0, u16::MAX.into()),
    u32 => int(0, u32::MAX.into()),
    u64 => int(0, i64::MAX),
    usize => int(0, i64::MAX),
    f64 => num(f64::MIN, f64::MAX),
    String => Shape::Text,
    Secret => Shape::Secret,
    ModelId => Shape::Model,
    ExecutionMode => Shape::Mode,
    Locale => Shape::OneOf(&["ja", "en"]),
    Value => Shape::Any,
}

impl<T: Shaped> Shaped for Option<T> {
    fn shape() -> Shape {
        Shape::Optional(Box::new(T::shape()))
    }
}

impl<T: Shaped> Shaped for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }
}

impl<T: Shaped> Shaped for BTreeMap<String, T> {
    fn shape() -> Shape {
        Shape::Map(Box::new(T::shape()))
    }
}

/// Reads what fits of a value; the rest has its default and is reported under `key`.
pub(crate) fn read<T>(value: &Value, key: &str, problems: &mut Vec<Problem>) -> T
where
    T: Shaped + Default + serde::de::DeserializeOwned,
{
    let Some(cleaned) = T::shape().clean(value, key, problems) else {
        return T::default();
    };
    serde_json::from_value(cleaned).unwrap_or_else(|error| {
        // a shape that lets through what its type refuses would be our own mistake; it must not stop anybody
        tracing::error!(%error, key, "configuration shape and type disagree");
        problems.push(Problem { key: key.to_owned(), found: error.to_string(), expected: Shape::Any });
        T::default()
    })
}

/// Defines sections: fields with type, default and, where the type does not say it, the allowed values.
macro_rules! sections {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty = $default:expr $(, $shape:expr)? ; )* } )*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name { $( $(#[$fdoc])* pub $field: $ty, )* }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::config::shape::Shaped for $name {
            fn shape() -> $crate::config::shape::Shape {
                $crate::config::shape::Shape::Section(vec![ $( (
                    stringify!($field).trim_start_matches("r#"),
                    $crate::config::shape::sections!(@shape $ty $(, $shape)?),
                ), )* ])
            }
        }
    )* };
    (@shape $ty:ty) => { <$ty as $crate::config::shape::Shaped>::shape() };
    (@shape $ty:ty, $shape:expr) => { $shape };
}
pub(crate) use sections;

/// Defines a choice between words.
macro_rules! choices {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $word:literal ),* $(,)? } )*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $( $(#[$vdoc])* #[serde(rename = $word)] $variant, )* }

        impl $name {
            /// The word in the file.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word, )* }
            }
        }

        impl $crate::config::shape::Shaped for $name {
            fn shape() -> $crate::config::shape::Shape {
                $crate::config::shape::Shape::OneOf(&[$($word),*])
            }
        }
    )* };
}
pub(crate) use choices;

/// A key under a prefix; names with dots are quoted, so that every key can be typed back.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    let name = if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() };
    if prefix.is_empty() { name } else { format!("{prefix}.{name}") }
}

fn whole(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        scalar => {
            let text = scalar.to_string();
            match text.char_indices().nth(60) {
                Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
                None => text,
            }
        }
    }
}
