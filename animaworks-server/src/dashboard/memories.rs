//! What is remembered: found, listed and shown. The index follows the files; the files stay as they are.

use animaworks_core::{Fault, ResultExt, fs::read_text};
use animaworks_memory::pack::Pack;
use axum::{
    Json,
    extract::{Query, State},
    http::StatusCode,
};
use serde_json::{Value, json};

use super::{ApiError, Asked, Dashboard, blocking};

/// The most hits.
const MOST: usize = 100;

pub(super) async fn search(State(me): State<Dashboard>, Query(asked): Query<Asked>) -> Result<Json<Value>, ApiError> {
    let question = me.question(&asked)?;
    let pack = me.pack()?;
    pack.reindex(false).await.log_err("bring the index up to date");
    let limit = asked.limit.unwrap_or(20).min(MOST);
    let hits = pack.search(&question, limit).await.map_err(|error| me.fault(&error))?;
    let hits: Vec<Value> = hits
        .iter()
        .map(|hit| {
            let dir = pack.dirs().iter().position(|dir| hit.path.starts_with(dir));
            json!({
                "dir": dir, "source": hit.source, "path": hit.path, "line": hit.line, "heading": hit.heading,
                "content": hit.content, "date": hit.date, "score": hit.score,
            })
        })
        .collect();
    Ok(me.answer(json!({ "q": question, "hits": hits })))
}

pub(super) async fn list(State(me): State<Dashboard>) -> Result<Json<Value>, ApiError> {
    let pack = me.pack()?;
    let dirs = blocking(move || {
        let dirs = pack.dirs().iter().enumerate();
        dirs.map(|(at, dir)| json!({ "dir": at, "path": dir, "files": pack.sources(at) })).collect::<Vec<_>>()
    })
    .await;
    Ok(me.answer(json!({ "dirs": dirs })))
}

pub(super) async fn file(State(me): State<Dashboard>, Query(asked): Query<Asked>) -> Result<Json<Value>, ApiError> {
    let pack = me.pack()?;
    let missing = || me.refuse(StatusCode::NOT_FOUND, "not_found");
    let dir = pack.dirs().get(asked.dir).cloned().ok_or_else(missing)?;
    let one = Pack::over(vec![dir], pack.settings().clone(), me.inner.clock.now().fixed_offset());
    let path = one.locate(&asked.source).map_err(|error| {
        tracing::debug!(error = %animaworks_core::error::chain(&error as &dyn Fault), "no such memory");
        missing()
    })?;
    let text = read_text(&path).map_err(|error| me.fault(&error))?;
    Ok(me.answer(json!({ "dir": asked.dir, "source": asked.source, "path": path, "text": text })))
}

pub(super) async fn report(State(me): State<Dashboard>) -> Result<Json<Value>, ApiError> {
    let pack = me.pack()?;
    let days = pack.settings().stale_days;
    let report = blocking(move || Some(pack.report(days))).await;
    let report = report.ok_or_else(|| me.refuse(StatusCode::INTERNAL_SERVER_ERROR, "not_found"))?;
    let report = report.map_err(|error| me.fault(&error))?;
    Ok(me.answer(json!({ "report": report })))
}
