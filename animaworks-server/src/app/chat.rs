//! A turn as server-sent events (server spec §2.4). The turn goes on when the caller leaves.

use std::{convert::Infallible, time::Duration};

use animaworks_core::{
    AnimaError, AnimaName, BadId, Fault, LifeEvent, Locale, Message, Numbered, ThreadId, TurnId,
    anima::{CycleAction, CycleReport},
};
use axum::{
    Json,
    extract::{Path, State},
    http::HeaderName,
    response::{
        IntoResponse,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, App};

/// Silence after which the connection shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize)]
pub(super) struct ChatRequest {
    message: String,
    #[serde(default = "human")]
    from_person: String,
    #[serde(default)]
    thread_id: Option<String>,
}

fn human() -> String {
    "human".to_owned()
}

pub(super) async fn stream(
    State(app): State<App>,
    Path(name): Path<String>,
    Json(request): Json<ChatRequest>,
) -> Result<impl IntoResponse, ApiError> {
    let locale = app.locale;
    let bad_id = |error: BadId| ApiError::from_fault(&error, locale);
    let failed = |error: AnimaError| ApiError::from_fault(&error, locale);
    let name = AnimaName::new(&name).map_err(bad_id)?;
    let thread = request.thread_id.map_or(Ok(ThreadId::main()), ThreadId::new).map_err(bad_id)?;
    let anima = app.host.anima(&name).await.map_err(failed)?;
    let turn =
        anima.talk(Message::human(request.from_person, request.message).in_thread(thread)).await.map_err(failed)?;
    let events = anima.watch(turn.clone(), None);
    let start = frame(&turn, 0, "stream_start", json!({ "response_id": turn }));
    let rest = events.flat_map(move |event| stream::iter(frames(&turn, event, locale)));
    let body = Sse::new(stream::iter([start]).chain(rest).map(Ok::<_, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("keepalive"));
    Ok(([(HeaderName::from_static("x-accel-buffering"), "no")], with_type(body)))
}

/// Keeps the long type of the stream out of the handler's signature.
fn with_type<S>(body: Sse<S>) -> impl IntoResponse
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
    Sse<S>: IntoResponse,
{
    body
}

fn frames(turn: &TurnId, event: Result<Numbered<LifeEvent>, AnimaError>, locale: Locale) -> Vec<Event> {
    let Numbered { seq, event } = match event {
        Ok(event) => event,
        Err(error) => {
            let message = (&error as &dyn Fault).explain(locale).message;
            return vec![frame(turn, u64::MAX, "error", json!({ "code": "STREAM_ERROR", "message": message }))];
        }
    };
    let one = |name: &str, data: Value| vec![frame(turn, seq.0, name, data)];
    match event {
        LifeEvent::Text(text) => one("text_delta", json!({ "text": text })),
        LifeEvent::Thinking(text) => one("thinking_delta", json!({ "text": text })),
        LifeEvent::ToolStarted { id, name, detail } => vec![
            frame(turn, seq.0, "tool_start", json!({ "tool_name": name, "tool_id": id })),
            frame(turn, seq.0, "tool_detail", json!({ "tool_name": name, "tool_id": id, "detail": detail })),
        ],
        LifeEvent::ToolEnded { id, name, is_error, summary } => one(
            "tool_end",
            json!({ "tool_name": name, "tool_id": id, "result_summary": summary, "is_error": is_error }),
        ),
        LifeEvent::Context { used, window, threshold } => one(
            "context_update",
            json!({ "context_usage_ratio": used as f64 / window.max(1) as f64, "input_tokens": used,
                    "context_window": window, "threshold": threshold }),
        ),
        LifeEvent::Chain { chain, .. } => one("chain_start", json!({ "chain": chain })),
        LifeEvent::Compressing(true) => one("compression_start", json!({})),
        LifeEvent::Compressing(false) => one("compression_end", json!({})),
        LifeEvent::Done(report) => done(turn, seq.0, &report),
        _ => Vec::new(),
    }
}

fn done(turn: &TurnId, seq: u64, report: &CycleReport) -> Vec<Event> {
    let mut frames = Vec::new();
    if let (CycleAction::Error, Some(error)) = (report.action, &report.error) {
        let data = json!({ "code": error.code.to_uppercase(), "message": error.message });
        frames.push(frame(turn, seq, "error", data));
    }
    let data = json!({
        "summary": report.text,
        "action": report.action,
        "stop_kind": report.stop,
        "model": report.model,
        "input_tokens": report.usage.input_tokens,
        "output_tokens": report.usage.output_tokens,
        "duration_ms": report.duration_ms,
    });
    frames.push(frame(turn, seq, "done", data));
    frames
}

fn frame(turn: &TurnId, seq: u64, name: &str, data: Value) -> Event {
    Event::default().id(format!("{turn}:{seq}")).event(name).data(data.to_string())
}
