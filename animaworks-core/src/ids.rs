//! Names and identifiers.
//!
//! A string becomes one of these once, at the edge; behind it nobody has to ask
//! again whether it is clean. All are cheap to clone.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::error::{ErrorKind, Fault};

/// A string that is not a valid identifier of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {kind}: {value:?} ({rule})")]
pub struct BadId {
    /// What it should have been, such as `anima name`.
    pub kind: &'static str,
    /// The rejected text, cut to 80 characters.
    pub value: String,
    /// The rule it breaks, in words.
    pub rule: &'static str,
}

impl BadId {
    fn new(kind: &'static str, value: &str, rule: &'static str) -> Self {
        Self { kind, value: value.chars().take(80).collect(), rule }
    }
}

impl Fault for BadId {
    fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidRequest
    }

    fn code(&self) -> &'static str {
        "bad_id"
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![("kind", self.kind.to_owned()), ("value", self.value.clone()), ("rule", self.rule.to_owned())]
    }
}

/// Defines string identifiers with one shared shape.
macro_rules! string_id {
    ($($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $valid:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and wraps a string.
            ///
            /// # Errors
            ///
            /// [`BadId`] names the rule that the string breaks.
            pub fn new(value: impl AsRef<str>) -> Result<Self, BadId> {
                let value = value.as_ref();
                let valid: fn(&str) -> bool = $valid;
                if valid(value) { Ok(Self(Arc::from(value))) } else { Err(BadId::new($kind, value, $rule)) }
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;

            fn from_str(s: &str) -> Result<Self, BadId> {
                Self::new(s)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(de::Error::custom)
            }
        }
    )* };
}

string_id! {
    /// The name of an Anima: `^[a-z][a-z0-9_-]{0,31}$`, and not a reserved word.
    ///
    /// It is a directory name, a sender and an address at once, so it is narrow.
    AnimaName, "anima name", "a lower-case letter, then up to 31 of a-z, 0-9, _ and -; not a reserved word", |s| {
        slug(s, 32) && !RESERVED_NAMES.contains(&s)
    };
    /// A conversation thread: `^[a-zA-Z0-9_-]{1,36}$`; [`ThreadId::main`] is `default`.
    ThreadId, "thread id", "1 to 36 of a-z, A-Z, 0-9, _ and -", |s| {
        !s.is_empty() && s.len() <= 36 && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
    };
    /// A board (shared channel): `^[a-z][a-z0-9_-]{0,30}$`.
    BoardName, "board name", "a lower-case letter, then up to 30 of a-z, 0-9, _ and -", |s| slug(s, 31);
    /// One turn: one request and its final answer.
    TurnId, "turn id", "1 to 128 visible characters", opaque;
    /// A task in a task queue; 12 hexadecimal digits when we make it, any token when a caller names it.
    TaskId, "task id", "1 to 128 visible characters", opaque;
    /// A message; `YYYYMMDD_HHMMSS_micro` when we make it.
    MessageId, "message id", "1 to 128 visible characters", opaque;
    /// The name of a tool, as a model calls it.
    ToolName, "tool name", "1 to 128 of a-z, A-Z, 0-9, _, - and .", |s| {
        !s.is_empty() && s.len() <= 128 && s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    };
    /// One tool call within a turn, as the engine numbered it.
    CallId, "call id", "1 to 128 visible characters", opaque;
    /// A model as an operator writes it: `claude-sonnet-4-6`, `openai/gpt-4.1`, `local/recall`.
    ModelId, "model", "1 to 200 visible characters", |s| s.len() <= 200 && visible(s);
    /// An engine's own session, used to resume it.
    SessionId, "session id", "1 to 128 visible characters", opaque;
    /// A claim on a message or a task, or a reservation of budget.
    LeaseId, "lease id", "1 to 128 visible characters", opaque;
    /// A file of memory: relative to the Anima's directory, or under a shared prefix
    /// such as `common_knowledge/`. Forward slashes, no `.` or `..` component, no NUL.
    MemoryPath, "memory path", "a relative path without '.', '..' or empty parts", |s| {
        !s.is_empty()
            && s.len() <= 1024
            && !s.contains('\0')
            && !s.contains('\\')
            && s.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
    };
}

/// Words that can never name an Anima, because they address something else.
pub const RESERVED_NAMES: &[&str] =
    &["system", "human", "shared", "all", "everyone", "general", "anima", "animas", "default", "here", "channel"];

impl ThreadId {
    /// The thread everybody is in who did not ask for another one: `default`.
    pub fn main() -> Self {
        Self(Arc::from("default"))
    }

    /// Whether this is [`ThreadId::main`].
    pub fn is_main(&self) -> bool {
        &*self.0 == "default"
    }
}

impl MemoryPath {
    /// The first component, such as `knowledge` or `common_skills`.
    pub fn root(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The last component.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

/// Where fresh identifiers come from; a test hands in its own to stay repeatable.
pub trait IdSource: fmt::Debug + Send + Sync {
    /// A token nobody has used before: 32 lower-case hexadecimal digits.
    fn fresh(&self) -> Arc<str>;
}

impl dyn IdSource + '_ {
    /// A fresh turn.
    pub fn turn(&self) -> TurnId {
        TurnId(self.fresh())
    }

    /// A fresh task: 12 hexadecimal digits, as the files have always had them.
    pub fn task(&self) -> TaskId {
        TaskId(self.fresh().get(..12).map_or_else(|| self.fresh(), Arc::from))
    }

    /// A fresh claim.
    pub fn lease(&self) -> LeaseId {
        LeaseId(self.fresh())
    }

    /// A fresh call, for engines that do not number their own.
    pub fn call(&self) -> CallId {
        CallId(self.fresh())
    }

    /// A fresh message, dated so that file names sort by time.
    pub fn message(&self, at: chrono::DateTime<chrono_tz::Tz>) -> MessageId {
        let unique = self.fresh();
        let tail = unique.get(..4).unwrap_or(&unique);
        MessageId(Arc::from(format!("{}_{tail}", at.format("%Y%m%d_%H%M%S_%6f"))))
    }
}

/// Identifiers from the operating system's random source.
#[derive(Debug, Default, Clone, Copy)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn fresh(&self) -> Arc<str> {
        // `RandomState` is seeded by the system and differs at every construction;
        // two of them give 128 bits, which is plenty for a name.
        use std::hash::{BuildHasher, RandomState};
        let half = || RandomState::new().hash_one(std::process::id());
        Arc::from(format!("{:016x}{:016x}", half(), half()))
    }
}

fn slug(s: &str, max: usize) -> bool {
    s.len() <= max
        && s.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

fn visible(s: &str) -> bool {
    !s.is_empty() && s.chars().all(|c| !c.is_control() && !c.is_whitespace())
}

fn opaque(s: &str) -> bool {
    s.len() <= 128 && visible(s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anima_name_is_a_safe_directory_name() {
        for good in ["sakura", "a", "team-lead_2"] {
            assert!(AnimaName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "../x", "Sakura", "2fast", "a b", "さくら", "system", "a/b", &"x".repeat(33)] {
            assert!(AnimaName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_memory_path_never_climbs() {
        for good in ["knowledge/a.md", "common_knowledge/運用/手順.md"] {
            assert!(MemoryPath::new(good).is_ok(), "{good}");
        }
        for bad in ["/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\\b", "a\0b"] {
            assert!(MemoryPath::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn random_ids_do_not_repeat() {
        let ids: std::collections::BTreeSet<_> = (0..1000).map(|_| RandomIds.fresh()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 32));
    }

    #[test]
    fn a_message_id_sorts_by_time() {
        let ids: &dyn IdSource = &RandomIds;
        let tz = chrono_tz::Asia::Tokyo;
        let at = |s: &str| chrono::DateTime::parse_from_rfc3339(s).unwrap().with_timezone(&tz);
        let first = ids.message(at("2026-03-31T09:15:02.000001+09:00"));
        let second = ids.message(at("2026-03-31T09:15:02.000002+09:00"));
        assert!(first < second);
        assert!(first.as_str().starts_with("20260331_091502_000001_"));
    }
}
