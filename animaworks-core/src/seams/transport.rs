//! HTTP, as one injected thing: one TLS stack, one place for limits and proxies.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::error::{ErrorKind, Fault};

/// A response body, piece by piece.
pub type Body = BoxStream<'static, Result<Bytes, TransportError>>;

/// Sends HTTP requests.
#[async_trait]
pub trait HttpTransport: Debug + Send + Sync {
    /// Sends a request and returns once the headers are here.
    ///
    /// # Errors
    ///
    /// [`TransportError`]; an answer with an error status is not one.
    ///
    /// # Cancel safety
    ///
    /// The request may have been sent.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError>;
}

/// What can go wrong on the wire.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection.
    #[error("cannot connect to {host}: {detail}")]
    Connect {
        /// The host and port.
        host: String,
        /// Why.
        detail: String,
    },
    /// Nothing came for too long.
    #[error("no answer from {host} in time ({waiting_for})")]
    Timeout {
        /// The host and port.
        host: String,
        /// What was waited for.
        waiting_for: &'static str,
    },
    /// The connection broke in the middle.
    #[error("connection to {host} broke: {detail}")]
    Broken {
        /// The host and port.
        host: String,
        /// Why.
        detail: String,
    },
    /// The answer is larger than allowed.
    #[error("answer of {host} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The host and port.
        host: String,
        /// The limit.
        limit_bytes: u64,
    },
    /// This address may not be reached.
    #[error("{host} may not be reached: {reason}")]
    Forbidden {
        /// The host and port.
        host: String,
        /// Why.
        reason: String,
    },
    /// The request is not a request.
    #[error("bad request: {0}")]
    BadRequest(String),
}

impl Fault for TransportError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Connect { .. } | Self::Timeout { .. } => ErrorKind::Unavailable,
            Self::Broken { .. } => ErrorKind::Interrupted,
            Self::TooLarge { .. } | Self::BadRequest(_) => ErrorKind::InvalidRequest,
            Self::Forbidden { .. } => ErrorKind::Permission,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "http_connect",
            Self::Timeout { .. } => "http_timeout",
            Self::Broken { .. } => "http_broken",
            Self::TooLarge { .. } => "http_too_large",
            Self::Forbidden { .. } => "http_forbidden",
            Self::BadRequest(_) => "http_bad_request",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Connect { host, detail } | Self::Broken { host, detail } => {
                vec![("host", host.clone()), ("detail", detail.clone())]
            }
            Self::Timeout { host, waiting_for } => {
                vec![("host", host.clone()), ("detail", (*waiting_for).to_owned())]
            }
            Self::TooLarge { host, limit_bytes } => vec![("host", host.clone()), ("limit", limit_bytes.to_string())],
            Self::Forbidden { host, reason } => vec![("host", host.clone()), ("detail", reason.clone())],
            Self::BadRequest(detail) => vec![("detail", detail.clone())],
        }
    }
}
