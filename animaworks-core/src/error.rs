//! What every error of the workspace can say about itself.
//!
//! Each seam has its own enum; policy (retry, fallback, exit code, HTTP status,
//! what a model is told) never matches on variants but asks [`Fault`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::i18n::Locale;

/// What sort of trouble it is; the only thing policy decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A key or a login is missing or wrong.
    Auth,
    /// The account has nothing left to spend.
    Quota,
    /// Too many requests; later is fine.
    RateLimited,
    /// The prompt does not fit the model.
    ContextOverflow,
    /// The request itself is wrong.
    InvalidRequest,
    /// The other side cannot be reached or is overloaded.
    Unavailable,
    /// It stopped before its end.
    Interrupted,
    /// Somebody asked to stop.
    Cancelled,
    /// Not allowed.
    Permission,
    /// There is no such thing.
    NotFound,
    /// Somebody else changed or holds it.
    Conflict,
    /// A file or an answer cannot be understood.
    Corrupt,
    /// A program or a feature that is needed is not there.
    NotInstalled,
    /// Our own mistake, or the machine's.
    Internal,
}

impl ErrorKind {
    /// The kind as written on the wire, such as `rate_limited`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimited => "rate_limited",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidRequest => "invalid_request",
            Self::Unavailable => "unavailable",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Permission => "permission",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Corrupt => "corrupt",
            Self::NotInstalled => "not_installed",
            Self::Internal => "internal",
        }
    }

    /// The exit code of a command that ends with this kind (server-cli-ui §7.1, RULINGS 23).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::InvalidRequest => 2,
            Self::Conflict => 3,
            Self::Unavailable | Self::RateLimited => 4,
            Self::NotFound | Self::NotInstalled => 5,
            Self::Permission => 6,
            Self::Corrupt => 7,
            Self::Cancelled => 130,
            Self::Auth | Self::Quota | Self::ContextOverflow | Self::Interrupted | Self::Internal => 1,
        }
    }
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It will fail the same way.
    Never,
    /// It may work at once.
    Now,
    /// It may work after this long.
    After(Duration),
}

/// An error that knows its kind, whether to retry, and how to be explained to a person.
///
/// `Display` is English and for logs. People see the catalogue's sentence
/// `error.{code}` with [`Fault::fields`] filled in, and `hint.{code}` below it.
pub trait Fault: std::error::Error + Send + Sync {
    /// What sort of trouble it is.
    fn kind(&self) -> ErrorKind;

    /// Whether trying again can help.
    fn retry(&self) -> Retry {
        match self.kind() {
            ErrorKind::RateLimited | ErrorKind::Unavailable | ErrorKind::Interrupted => Retry::Now,
            _ => Retry::Never,
        }
    }

    /// A stable word for this very error: the catalogue key, and `code` in JSON answers.
    fn code(&self) -> &'static str {
        self.kind().as_str()
    }

    /// What the catalogue's sentence needs.
    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

impl dyn Fault + '_ {
    /// The sentence and, where there is one, the hint for a person.
    pub fn explain(&self, locale: Locale) -> Explained {
        let fields = self.fields();
        let lookup = |prefix: &str| {
            let key = format!("{prefix}.{}", self.code());
            locale.find(&key).map(|template| crate::i18n::fill(template, &fields))
        };
        Explained { message: lookup("error").unwrap_or_else(|| chain(self)), hint: lookup("hint") }
    }
}

/// An error in a person's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What happened.
    pub message: String,
    /// What to do next, when there is something to do.
    pub hint: Option<String>,
}

/// An error and everything behind it, joined by `: `.
pub fn chain(error: &(impl std::error::Error + ?Sized)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let part = source.to_string();
        // layers that repeat their source's text add nothing
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = source.source();
    }
    text
}

/// The two lawful ways to let a failure go.
pub trait ResultExt<T> {
    /// Logs a failure as a warning and goes on; `what` says what was tried.
    fn log_err(self, what: &'static str) -> Option<T>;
    /// Drops a failure on purpose; `why` says why that is right.
    fn ignore(self, why: &'static str) -> Option<T>;
}

impl<T, E: std::fmt::Display> ResultExt<T> for Result<T, E> {
    fn log_err(self, what: &'static str) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::warn!(%error, what, "went on without it");
                None
            }
        }
    }

    fn ignore(self, why: &'static str) -> Option<T> {
        match self {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::trace!(%error, why, "ignored");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("read {path}")]
    struct Outer {
        path: &'static str,
        #[source]
        source: std::io::Error,
    }

    #[test]
    fn a_chain_says_each_layer_once() {
        let error = Outer { path: "a.md", source: std::io::Error::other("disk on fire") };
        assert_eq!(chain(&error), "read a.md: disk on fire");
        assert_eq!(error.path, "a.md");
    }
}
