//! Room in the window, and what the transport allows.

use std::sync::Arc;

use animaworks_core::{
    Checkpoint, ExecError, PromptMessage, StopReason, SystemClock, Tokens,
    seams::{HttpTransport, TransportError},
};
use animaworks_exec::transport::{Reach, Transport, TransportOptions};
use animaworks_testkit::llm_server::{LlmServer, Reply};
use bytes::Bytes;
use futures_util::StreamExt;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::{Desk, engine, request, tell};

#[tokio::test]
async fn the_answer_gets_what_room_there_is() {
    let server = LlmServer::always(Reply::text("ok")).await.unwrap();
    let mut request = request(&"word ".repeat(3_000));
    request.model.window = Tokens(8_192);
    tell(&engine(&server.base_url()), request.clone(), Arc::new(Desk::new())).await;
    let room = server.bodies()[0]["max_tokens"].as_u64().unwrap();
    assert!((256..4_400).contains(&room), "{room}");
    // the system prompt gives way before the conversation does
    request.prompt.system = "rule ".repeat(4_000).into();
    tell(&engine(&server.base_url()), request, Arc::new(Desk::new())).await;
    let body = server.bodies().remove(1);
    let system = body["messages"][0]["content"].as_str().unwrap().len();
    assert!((2_000..20_000).contains(&system) && body["max_tokens"] == json!(256), "{system}");
}

#[tokio::test]
async fn an_overflow_is_compacted_once_and_the_life_is_told_before() {
    let overflow = || Reply::error(400, &json!({"error": {"message": "prompt is too long"}}));
    let server = LlmServer::start([overflow(), Reply::text("fits"), overflow(), overflow()]).await.unwrap();
    let mut request = request("go on");
    let old = (0..20).flat_map(|n| {
        let question = PromptMessage::User { text: format!("{n} {}", "question ".repeat(400)), images: Vec::new() };
        let answer = PromptMessage::Assistant { text: format!("{n} {}", "answer ".repeat(400)), calls: Vec::new() };
        [question, answer]
    });
    request.prompt.messages = old.chain(request.prompt.messages).collect();
    let desk = Arc::new(Desk::new());
    let told = tell(&engine(&server.base_url()), request.clone(), desk.clone()).await;
    assert_eq!((told.text().as_str(), told.stop()), ("fits", Some(StopReason::End)));
    assert!(desk.checkpoints().contains(&Checkpoint::BeforeCompaction));
    let sizes: Vec<usize> = server.bodies().iter().map(|body| body.to_string().len()).collect();
    assert!(sizes[1] < sizes[0] / 2, "{sizes:?}");
    let told = tell(&engine(&server.base_url()), request, Arc::new(Desk::new())).await;
    assert!(matches!(told.error, Some(ExecError::ContextOverflow { .. })));
}

fn get(address: &str) -> http::Request<Bytes> {
    http::Request::get(address).body(Bytes::new()).unwrap()
}

#[tokio::test]
async fn a_body_has_a_cap() {
    let server = LlmServer::always(Reply::text(&"x".repeat(10_000)).drip(100)).await.unwrap();
    let options = TransportOptions { max_body_bytes: 4_096, ..TransportOptions::default() };
    let transport = Transport::open(options, Arc::new(SystemClock::new())).unwrap();
    let body = json!({"messages": [{"role": "user", "content": "x"}], "stream": true}).to_string();
    let url = format!("{}/chat/completions", server.base_url());
    let answer = transport.send(http::Request::post(url).body(Bytes::from(body)).unwrap()).await.unwrap();
    let pieces: Vec<_> = answer.into_body().collect().await;
    assert!(matches!(pieces.last(), Some(Err(TransportError::TooLarge { limit_bytes: 4_096, .. }))));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    use axum::{Router, http::StatusCode, response::IntoResponse, routing::get as route};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let elsewhere = format!("http://localhost:{port}/here");
    let app = Router::new()
        .route("/away", route(move || async move { (StatusCode::FOUND, [("location", elsewhere)]).into_response() }))
        .route("/near", route(|| async { (StatusCode::FOUND, [("location", "/here")]).into_response() }))
        .route("/here", route(|| async { "here" }));
    let tasks = animaworks_core::tasks::Tasks::new("redirects");
    tasks.spawn("serve", async move { axum::serve(listener, app).await.unwrap() });
    let transport = Transport::open(TransportOptions::default(), Arc::new(SystemClock::new())).unwrap();
    let status = |path: &'static str| {
        let transport = transport.clone();
        async move { transport.send(get(&format!("http://127.0.0.1:{port}{path}"))).await.unwrap().status().as_u16() }
    };
    assert_eq!((status("/near").await, status("/away").await), (200, 302));
}

#[tokio::test]
async fn a_public_transport_reaches_nothing_inside_whatever_it_is_called() {
    let options = TransportOptions { reach: Reach::Public, ..TransportOptions::default() };
    let transport = Transport::open(options, Arc::new(SystemClock::new())).unwrap();
    for host in ["127.0.0.1", "[::1]", "localhost", "127.1", "2130706433", "[::ffff:10.0.0.1]", "169.254.169.254"] {
        let answer = transport.send(get(&format!("http://{host}:9/"))).await;
        let error = answer.err().unwrap();
        assert!(matches!(error, TransportError::Forbidden { .. }), "{host}: {error}");
    }
}

#[tokio::test]
async fn what_is_no_address_is_refused_without_a_connection() {
    let transport = Transport::open(TransportOptions::default(), Arc::new(SystemClock::new())).unwrap();
    assert!(matches!(transport.send(get("/no/host")).await, Err(TransportError::BadRequest(_))));
    let bad = TransportOptions { proxy: Some("::not a proxy::".to_owned()), ..TransportOptions::default() };
    let error = Transport::open(bad, Arc::new(SystemClock::new())).unwrap_err();
    assert!(matches!(error, TransportError::BadRequest(_)));
}
