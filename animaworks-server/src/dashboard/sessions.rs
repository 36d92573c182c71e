//! Transcripts: listed, read, searched; and the three moves.

use animaworks_memory::pack::{Listing, SessionError, SessionHits, SessionKey};
use axum::{
    Json,
    extract::{Query, State, rejection::JsonRejection},
    http::StatusCode,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, Asked, Dashboard, SEARCH_TIME, blocking};

/// The most rows of one answer.
const MOST: usize = 200;
/// Rows when nobody says.
const USUAL: usize = 60;

pub(super) async fn list(state: State<Dashboard>, asked: Query<Asked>) -> Json<Value> {
    listed(state, asked, false).await
}

pub(super) async fn archived(state: State<Dashboard>, asked: Query<Asked>) -> Json<Value> {
    listed(state, asked, true).await
}

async fn listed(State(me): State<Dashboard>, Query(asked): Query<Asked>, archived: bool) -> Json<Value> {
    let limit = asked.limit.unwrap_or(USUAL).min(MOST);
    let listing = rows(&me, archived, asked.project, asked.offset as usize, limit).await;
    me.answer(json!(listing))
}

pub(super) async fn projects(State(me): State<Dashboard>) -> Json<Value> {
    let listing = rows(&me, false, None, 0, 0).await;
    me.answer(json!({ "projects": listing.map(|listing| listing.projects) }))
}

async fn rows(me: &Dashboard, archived: bool, project: Option<String>, offset: usize, limit: usize) -> Option<Listing> {
    let project = project.filter(|project| !project.is_empty());
    let inner = me.inner.clone();
    blocking(move || Some(inner.sessions.list(archived, project.as_deref(), offset, limit))).await
}

pub(super) async fn one(State(me): State<Dashboard>, Query(asked): Query<Asked>) -> Result<Json<Value>, ApiError> {
    let key = SessionKey { project: asked.project.unwrap_or_default(), id: asked.id };
    let inner = me.inner.clone();
    let page = blocking(move || Some(inner.sessions.read(&key, asked.archived, asked.offset))).await;
    match page {
        Some(Ok(page)) => Ok(me.answer(json!(page))),
        Some(Err(error)) => Err(told(&me, &error)),
        None => Err(me.refuse(StatusCode::INTERNAL_SERVER_ERROR, "not_found")),
    }
}

pub(super) async fn search(State(me): State<Dashboard>, Query(asked): Query<Asked>) -> Result<Json<Value>, ApiError> {
    let question = me.question(&asked)?;
    let (inner, clock) = (me.inner.clone(), me.inner.clock.clone());
    let limit = asked.limit.unwrap_or(USUAL).min(MOST);
    let until = clock.elapsed() + SEARCH_TIME;
    let found: Option<SessionHits> = blocking(move || {
        Some(inner.sessions.search(&question, asked.offset as usize, limit, &|| clock.elapsed() < until))
    })
    .await;
    Ok(me.answer(json!(found)))
}

/// A move: which session, and for a pin whether it is one.
#[derive(Debug, Deserialize)]
pub(super) struct Move {
    #[serde(flatten)]
    key: SessionKey,
    #[serde(default = "yes")]
    pinned: bool,
}

fn yes() -> bool {
    true
}

type Sent = Result<Json<Move>, JsonRejection>;

pub(super) async fn archive(State(me): State<Dashboard>, sent: Sent) -> Result<Json<Value>, ApiError> {
    moved(me, sent, |me, wanted| me.inner.sessions.archive(&wanted.key)).await
}

pub(super) async fn restore(State(me): State<Dashboard>, sent: Sent) -> Result<Json<Value>, ApiError> {
    moved(me, sent, |me, wanted| me.inner.sessions.restore(&wanted.key)).await
}

pub(super) async fn pin(State(me): State<Dashboard>, sent: Sent) -> Result<Json<Value>, ApiError> {
    moved(me, sent, |me, wanted| me.inner.sessions.pin(&wanted.key, wanted.pinned)).await
}

async fn moved(
    me: Dashboard,
    sent: Sent,
    work: fn(&Dashboard, &Move) -> Result<(), SessionError>,
) -> Result<Json<Value>, ApiError> {
    let wanted = match sent {
        Ok(Json(wanted)) => wanted,
        Err(rejection) => {
            tracing::debug!(%rejection, "a move could not be understood");
            return Err(me.refuse(StatusCode::BAD_REQUEST, "bad_request"));
        }
    };
    let doing = me.clone();
    match blocking(move || Some(work(&doing, &wanted))).await {
        Some(Ok(())) => Ok(me.answer(json!({ "ok": true }))),
        Some(Err(error)) => Err(told(&me, &error)),
        None => Err(me.refuse(StatusCode::INTERNAL_SERVER_ERROR, "not_found")),
    }
}

/// A name that leads out of the directories is a session that does not exist.
fn told(me: &Dashboard, error: &SessionError) -> ApiError {
    match error {
        SessionError::File(animaworks_core::fs::FileError::Outside { .. }) => {
            me.refuse(StatusCode::NOT_FOUND, "not_found")
        }
        error => me.fault(error),
    }
}
