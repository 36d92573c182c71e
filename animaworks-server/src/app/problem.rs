//! An error as an answer: one shape, a stable code, no internals (server spec §2.1).

use animaworks_core::{ErrorKind, Fault, Locale};
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

/// What a caller is told.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    code: String,
    message: String,
}

impl ApiError {
    /// An error of our own.
    pub fn new(status: StatusCode, code: &str, message: String) -> Self {
        Self { status, code: code.to_owned(), message }
    }

    /// A fault in the caller's language. What is internal is logged, not told.
    pub fn from_fault(fault: &dyn Fault, locale: Locale) -> Self {
        let kind = fault.kind();
        let status = match kind {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::InvalidRequest => StatusCode::BAD_REQUEST,
            ErrorKind::Permission => StatusCode::FORBIDDEN,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::RateLimited | ErrorKind::Quota => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Unavailable | ErrorKind::NotInstalled | ErrorKind::Interrupted => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %animaworks_core::error::chain(fault), "request failed");
            return Self::new(status, kind.as_str(), locale.text("server.internal", &[]));
        }
        Self::new(status, fault.code(), fault.explain(locale).message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message }, "detail": self.message });
        (self.status, Json(body)).into_response()
    }
}
