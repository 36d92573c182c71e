//! Turns that go wrong, and what is left of them.

use std::{sync::Arc, time::Duration};

use animaworks_core::{ErrorKind, ExecError, Fault, Limits, Retry, SystemClock, TurnEvent, test_support::ManualClock};
use animaworks_exec::{
    autonomous::Autonomous,
    retry::RetryPolicy,
    transport::{Transport, TransportOptions},
};
use animaworks_testkit::{
    gated_sse::GatedSse,
    llm_server::{LlmServer, Reply},
};
use futures_util::StreamExt;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::kit::{Desk, KEY, endpoint, engine, line, line_over, request, tell};

fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n")
}

const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_stream_without_its_end_is_an_error_and_no_tool_runs() {
    let call = || Reply::tool_call("c1", "act", &json!({"say": "something long enough"}));
    for reply in [Reply::text("half of it").close(2), call().close(3), call().half_event(3), call().reset(3)] {
        let server = LlmServer::start([reply.clone()]).await.unwrap();
        let desk = Arc::new(Desk::new());
        let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
        let error = told.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{reply:?}: {error}");
        assert!(desk.calls().is_empty());
    }
}

#[tokio::test]
async fn a_broken_answer_is_asked_for_again_unless_it_was_shown() {
    let clock = ManualClock::at("2026-04-01T09:00:00Z");
    let call = Reply::tool_call("c1", "act", &json!({"say": "something"}));
    let replies = [
        call.close(3),
        Reply::error(529, &json!({"error": {"message": "Overloaded"}})),
        Reply::error(429, &json!({"error": {"message": "slow"}})).retry_after("Wed, 01 Apr 2026 09:02:30 GMT"),
        Reply::text("there"),
        Reply::text("half of it").close(2),
    ];
    let server = LlmServer::start(replies).await.unwrap();
    let mut line = line(Arc::new(clock.clone()));
    line.retry = RetryPolicy::default();
    let engine = Autonomous::new(endpoint("openai/kit", &server.base_url()), line);
    let desk = Arc::new(Desk::new());
    let mut stream = animaworks_core::Executor::run(&engine, request("x"), desk, CancellationToken::new());
    let (mut text, mut reasons) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            TurnEvent::Retrying { attempt, max_attempts, reason } => {
                reasons.push((attempt, max_attempts, reason));
                // longer than any of these waits, shorter than the limit for a first byte
                clock.advance(Duration::from_secs(60));
            }
            TurnEvent::Text(piece) => text.push_str(&piece),
            _ => {}
        }
    }
    assert_eq!(text, "there");
    assert_eq!(reasons.iter().map(|(attempt, max, _)| (*attempt, *max)).collect::<Vec<_>>(), [(1, 3), (2, 3), (3, 3)]);
    let told = tell(&engine, request("x"), Arc::new(Desk::new())).await;
    assert!(matches!(told.error, Some(ExecError::Interrupted { .. })));
    assert_eq!(server.recorder().left(), 0);
}

#[tokio::test]
async fn refusals_end_the_turn_with_their_kind() {
    let body = |text: &str| json!({"error": {"message": text}});
    for (reply, kind, retry) in [
        (Reply::error(401, &body("bad key")), ErrorKind::Auth, Retry::Never),
        (Reply::error(402, &body("pay")), ErrorKind::Quota, Retry::Never),
        (Reply::error(404, &body("no such model")), ErrorKind::NotFound, Retry::Never),
        (Reply::error(413, &body("too big")), ErrorKind::ContextOverflow, Retry::Never),
        (
            Reply::error(429, &body("slow")).retry_after("9"),
            ErrorKind::RateLimited,
            Retry::After(Duration::from_secs(9)),
        ),
        (Reply::error(502, &body("bad gateway")), ErrorKind::InvalidRequest, Retry::Now),
    ] {
        let server = LlmServer::start([reply]).await.unwrap();
        let error = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await.error.unwrap();
        assert_eq!((error.kind(), error.retry()), (kind, retry), "{error}");
    }
}

#[tokio::test]
async fn nobody_there_is_said_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let error = tell(&engine(&base), request("x"), Arc::new(Desk::new())).await.error.unwrap();
    assert!(matches!(error, ExecError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_key_never_shows_in_errors_or_events() {
    let echo = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}});
    let server = LlmServer::start([Reply::error(401, &echo)]).await.unwrap();
    let engine = engine(&server.base_url());
    let told = tell(&engine, request("x"), Arc::new(Desk::new())).await;
    let error = told.error.unwrap();
    let fields = format!("{:?}", error.fields());
    let shown = format!("{error} {error:?} {fields} {:?} {engine:?}", told.events);
    assert!(!shown.contains("planted"), "{shown}");
}

#[tokio::test]
async fn a_stall_ends_by_the_idle_limit_and_keeps_what_was_said() {
    let clock = ManualClock::at("2026-04-01T09:00:00Z");
    let gate = GatedSse::start().await.unwrap();
    gate.send(delta("so "));
    let engine = Autonomous::new(endpoint("openai/kit", &gate.base_url()), line(Arc::new(clock.clone())));
    let mut stream =
        animaworks_core::Executor::run(&engine, request("x"), Arc::new(Desk::new()), CancellationToken::new());
    let mut last = None;
    while let Some(event) = stream.next().await {
        if matches!(event, Ok(TurnEvent::Text(_))) {
            clock.advance(Duration::from_secs(121));
        }
        last = Some(event);
    }
    let timeout = matches!(last, Some(Err(ExecError::Timeout { waiting_for: "next event", .. })));
    assert!(timeout, "{last:?}");
}

#[tokio::test]
async fn an_answer_ends_at_its_final_event_though_the_connection_stays_open() {
    let gate = GatedSse::start().await.unwrap();
    gate.send(format!("{}{STOP}data: [DONE]\n\n", delta("done")));
    let told = tell(&engine(&gate.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!(told.text(), "done");
}

#[tokio::test]
async fn a_server_that_says_no_done_is_not_waited_for() {
    let (clock, long) = (ManualClock::at("2026-04-01T09:00:00Z"), Duration::from_secs(1_000_000));
    let gate = GatedSse::start().await.unwrap();
    gate.send(delta("done"));
    gate.send(STOP);
    let options = TransportOptions { first_byte: long, idle: long, ..TransportOptions::default() };
    let transport = Transport::open(options, Arc::new(clock.clone())).unwrap();
    let line = line_over(Arc::new(transport), Arc::new(clock.clone()));
    let engine = Autonomous::new(endpoint("openai/kit", &gate.base_url()), line);
    let mut request = request("x");
    request.limits = Limits { first_byte: long, idle: long, total: long, ..Limits::default() };
    let time = async {
        // two seconds after the finish are enough; the idle limit is far beyond all of this
        for _ in 0..200_000 {
            tokio::task::yield_now().await;
            clock.advance(Duration::from_secs(3));
        }
    };
    tokio::select! {
        told = tell(&engine, request, Arc::new(Desk::new())) => assert_eq!(told.text(), "done"),
        () = time => panic!("it still waits for the connection to close"),
    }
}

#[tokio::test]
async fn cancelling_ends_a_turn_wherever_it_waits() {
    let gate = GatedSse::start().await.unwrap();
    gate.send(delta("so "));
    let engine = engine(&gate.base_url());
    let cancel = CancellationToken::new();
    let mut stream = animaworks_core::Executor::run(&engine, request("x"), Arc::new(Desk::new()), cancel.clone());
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        if matches!(event, Ok(TurnEvent::Text(_))) {
            cancel.cancel();
        }
        seen.push(event);
    }
    assert!(matches!(seen.last(), Some(Err(ExecError::Cancelled))), "{seen:?}");
    // before anything is sent
    let cancel = CancellationToken::new();
    cancel.cancel();
    let told = crate::kit::tell_until(&engine, request("x"), Arc::new(Desk::new()), cancel).await;
    assert!(matches!(told.error, Some(ExecError::Cancelled)));
}

#[tokio::test]
async fn a_broken_connection_after_the_finish_is_no_loss() {
    let gate = GatedSse::start().await.unwrap();
    gate.send(delta("done"));
    gate.send(STOP);
    gate.close();
    let told = tell(&engine(&gate.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.usage().estimated), ("done", true));
}

#[tokio::test]
async fn a_slow_drip_reads_the_same() {
    let text = "一文字ずつ、ゆっくりと🎣。";
    let server = LlmServer::start([Reply::text(text).drip(1)]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!(told.text(), text);
}

#[tokio::test]
async fn the_whole_turn_has_a_limit() {
    let clock = ManualClock::at("2026-04-01T09:00:00Z");
    let server = LlmServer::start([Reply::text("never ends").stall(1)]).await.unwrap();
    let engine = Autonomous::new(endpoint("openai/kit", &server.base_url()), line(Arc::new(clock.clone())));
    let mut request = request("x");
    request.limits.total = Duration::from_secs(60);
    let mut stream = animaworks_core::Executor::run(&engine, request, Arc::new(Desk::new()), CancellationToken::new());
    let mut last = None;
    while let Some(event) = stream.next().await {
        if matches!(event, Ok(TurnEvent::Started { .. })) {
            clock.advance(Duration::from_secs(61));
        }
        last = Some(event);
    }
    let late = matches!(last, Some(Err(ExecError::Timeout { waiting_for: "the whole turn", .. })));
    assert!(late, "{last:?}");
}

#[tokio::test]
async fn many_turns_at_once_do_not_disturb_each_other() {
    let server = LlmServer::always(Reply::text("the same for all")).await.unwrap();
    let engine = Autonomous::new(endpoint("openai/kit", &server.base_url()), line(Arc::new(SystemClock::new())));
    let turns = (0..20).map(|_| tell(&engine, request("x"), Arc::new(Desk::new())));
    let told = futures_util::future::join_all(turns).await;
    assert!(told.iter().all(|told| told.text() == "the same for all"));
}
