//! The dashboard of the memory pack: looks at everything, changes nothing but where a transcript stands.
//!
//! It answers on loopback only, to requests that name loopback as their host. GET and HEAD are
//! the rule; [`MOVES`] are the exception: three moves that undo one another, with a token that
//! only the page of this start has.

mod agents;
mod memories;
mod sessions;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use animaworks_core::{
    Clock, Locale,
    config::Env,
    ids::{IdSource, RandomIds},
};
use animaworks_memory::pack::{Pack, Sessions, Settings, board};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Query, Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{ApiError, is_local},
    pages,
};

/// The only requests that change anything, and what they change can be changed back.
const MOVES: [&str; 3] = ["/api/archive-session", "/api/restore-session", "/api/pin-session"];
/// The header with the token of this start.
const TOKEN: &str = "x-pack-token";
/// A move names a session and no more.
const MAX_BODY_BYTES: usize = 16 << 10;
/// The longest a search through transcripts may take before it says how far it came.
const SEARCH_TIME: Duration = Duration::from_secs(2);
/// Where the catalogue keeps the words of the page.
const WORDS: &str = "pack.page.";

/// The dashboard over what the environment of one user names.
#[derive(Debug, Clone)]
pub struct Dashboard {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    env: Env,
    locale: Locale,
    clock: Arc<dyn Clock>,
    sessions: Sessions,
    token: String,
}

impl Dashboard {
    /// A dashboard; errors and the page are in `locale` unless a request asks for the other one.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be read.
    pub fn new(env: Env, locale: Locale, clock: Arc<dyn Clock>) -> Result<Self, animaworks_core::MemoryError> {
        let sessions = Sessions::of(&env, &Settings::load(&env)?);
        let token = RandomIds.fresh().to_string();
        Ok(Self { inner: Arc::new(Inner { env, locale, clock, sessions, token }) })
    }

    /// Answers on this port of loopback until `stop`; 0 takes any that is free. `ready` learns where.
    ///
    /// # Errors
    ///
    /// When the port is taken or the listener fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the listener.
    pub async fn serve(
        self,
        port: u16,
        stop: CancellationToken,
        ready: impl FnOnce(SocketAddr) + Send,
    ) -> std::io::Result<()> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port)).await?;
        ready(listener.local_addr()?);
        axum::serve(listener, self.router()).with_graceful_shutdown(async move { stop.cancelled().await }).await
    }

    /// The routes, for a listener on loopback.
    pub fn router(self) -> Router {
        let mut router = Router::new()
            .route("/api/health", get(health))
            .route("/api/config", get(config))
            .route("/api/words", get(words))
            .route("/api/agents", get(agents::list))
            .route("/api/start-command", get(agents::start_command))
            .route("/api/projects", get(sessions::projects))
            .route("/api/sessions", get(sessions::list))
            .route("/api/archive", get(sessions::archived))
            .route("/api/session", get(sessions::one))
            .route("/api/session-search", get(sessions::search))
            .route("/api/memory", get(memories::list))
            .route("/api/memory-file", get(memories::file))
            .route("/api/memory-search", get(memories::search))
            .route("/api/memory-report", get(memories::report))
            .route("/api/tasks", get(tasks))
            .route("/api/archive-session", post(sessions::archive))
            .route("/api/restore-session", post(sessions::restore))
            .route("/api/pin-session", post(sessions::pin));
        for asset in pages::PACK {
            router = router.route(asset.path, get(move |State(me): State<Self>| async move { me.page(asset) }));
        }
        router
            .method_not_allowed_fallback(|State(me): State<Self>| async move {
                me.refuse(StatusCode::METHOD_NOT_ALLOWED, "read_only")
            })
            .fallback(|State(me): State<Self>| async move { me.refuse(StatusCode::NOT_FOUND, "not_found") })
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(middleware::from_fn_with_state(self.clone(), guard))
            .with_state(self)
    }

    fn page(&self, asset: &pages::Asset) -> Response {
        // only the page itself learns the token; another site cannot read it
        let body = asset.body.replace("{token}", &self.inner.token).replace("{lang}", self.inner.locale.as_str());
        ([(header::CONTENT_TYPE, asset.kind)], body).into_response()
    }

    /// The configuration is read again for every request: a person may have changed it.
    fn settings(&self) -> Result<Settings, ApiError> {
        Settings::load(&self.inner.env).map_err(|error| self.fault(&error))
    }

    /// The memories as of now.
    fn pack(&self) -> Result<Pack, ApiError> {
        let now = self.inner.clock.now().with_timezone(&chrono::Local).fixed_offset();
        Pack::find(&self.inner.env, &[], now).map_err(|error| self.fault(&error))
    }

    fn fault(&self, error: &dyn animaworks_core::Fault) -> ApiError {
        ApiError::from_fault(error, self.inner.locale)
    }

    fn refuse(&self, status: StatusCode, code: &'static str) -> ApiError {
        ApiError::new(status, code, self.inner.locale.text(&format!("pack.dashboard.{code}"), &[]))
    }

    /// An answer with the time it was made.
    fn answer(&self, value: Value) -> Json<Value> {
        let mut answer = Map::new();
        answer.insert("generatedAt".to_owned(), json!(self.inner.clock.now()));
        if let Value::Object(fields) = value {
            answer.extend(fields);
        }
        Json(Value::Object(answer))
    }

    /// What is asked for; a question without words is none.
    fn question(&self, asked: &Asked) -> Result<String, ApiError> {
        let question = asked.q.trim();
        if question.is_empty() {
            return Err(self.refuse(StatusCode::BAD_REQUEST, "no_question"));
        }
        Ok(question.chars().take(400).collect())
    }
}

/// The parameters any of the requests has.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    q: String,
    project: Option<String>,
    id: String,
    archived: bool,
    offset: u64,
    limit: Option<usize>,
    dir: usize,
    source: String,
    lang: Option<String>,
}

/// Host, origin and method, before anything is looked at; and the rules a browser follows, on every answer.
async fn guard(State(me): State<Dashboard>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    let moves = *request.method() == Method::POST && MOVES.contains(&path);
    let token = request.headers().get(TOKEN).map(HeaderValue::as_bytes);
    let mut response = if !is_local(request.headers()) {
        me.refuse(StatusCode::FORBIDDEN, "foreign_host").into_response()
    } else if !looks && !moves {
        me.refuse(StatusCode::METHOD_NOT_ALLOWED, "read_only").into_response()
    } else if moves && token != Some(me.inner.token.as_bytes()) {
        me.refuse(StatusCode::FORBIDDEN, "no_token").into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, pages::POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn health(State(me): State<Dashboard>) -> Json<Value> {
    me.answer(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

/// What a person may see of the configuration: names and a command, as text.
async fn config(State(me): State<Dashboard>) -> Result<Json<Value>, ApiError> {
    let settings = me.settings()?.dashboard;
    Ok(me.answer(json!({
        "teamName": settings.team_name,
        "startCommand": settings.start_command,
        "tmuxSession": settings.tmux_session,
        "lang": me.inner.locale.as_str(),
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

/// The words of the page in one language.
async fn words(State(me): State<Dashboard>, Query(asked): Query<Asked>) -> Json<Value> {
    let locale = asked.lang.and_then(|lang| lang.parse().ok()).unwrap_or(me.inner.locale);
    let words: Map<String, Value> = locale
        .keys(WORDS)
        .into_iter()
        .map(|key| (key.trim_start_matches(WORDS).to_owned(), Value::from(locale.text(key, &[]))))
        .collect();
    me.answer(json!({ "lang": locale.as_str(), "words": words }))
}

async fn tasks(State(me): State<Dashboard>) -> Result<Json<Value>, ApiError> {
    let places: Vec<_> = me.settings()?.dashboard.tasks.iter().map(|path| me.inner.env.absolute(path)).collect();
    let found = blocking(move || board(&places)).await;
    Ok(me.answer(json!({ "tasks": found.tasks, "without": found.without })))
}

/// Files are read on a thread that may wait.
async fn blocking<T: Send + 'static + Default>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "the dashboard could not look");
            T::default()
        }
    }
}
