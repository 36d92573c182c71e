//! The routes, over `dyn Host` and `dyn Anima`: who they are and where they live is not known here.

mod chat;
mod problem;

use std::{fmt, sync::Arc};

use animaworks_core::{Locale, seams::Host};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};
use serde_json::{Value, json};

pub use problem::ApiError;

/// The largest request: a message of 10 MiB and its JSON (server spec §2.3).
const MAX_BODY_BYTES: usize = 32 << 20;

/// What the routes need.
#[derive(Clone)]
pub struct App {
    host: Arc<dyn Host>,
    locale: Locale,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("locale", &self.locale).finish_non_exhaustive()
    }
}

impl App {
    /// Routes over an organisation; errors are told in `locale`.
    pub fn new(host: Arc<dyn Host>, locale: Locale) -> Self {
        Self { host, locale }
    }

    /// The router, for a listener on loopback.
    pub fn router(self) -> Router {
        Router::new()
            .route("/health", get(health))
            .route("/api/animas/{name}/chat/stream", post(chat::stream))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(middleware::from_fn_with_state(self.clone(), only_from_here))
            .with_state(self)
    }
}

async fn health(State(_): State<App>) -> Json<Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

/// A page of another site can reach loopback through a name of its own; it cannot choose the Host header then.
async fn only_from_here(State(app): State<App>, request: Request, next: Next) -> Result<Response, ApiError> {
    if is_local(request.headers()) {
        Ok(next.run(request).await)
    } else {
        Err(ApiError::new(StatusCode::FORBIDDEN, "foreign_host", app.locale.text("server.foreign_host", &[])))
    }
}

/// Whether a request names this machine, and comes from a page of it if from a page at all.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    let local = |authority: &str| {
        let host = authority
            .rsplit_once(':')
            .map_or(authority, |(host, port)| if port.bytes().all(|b| b.is_ascii_digit()) { host } else { authority });
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    };
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let origin = headers.get(header::ORIGIN).map(|value| value.to_str().unwrap_or("unreadable"));
    let origin_is_local =
        origin.is_none_or(|origin| origin.split_once("://").is_some_and(|(_, authority)| local(authority)));
    host.is_some_and(local) && origin_is_local
}

#[cfg(test)]
mod tests;
