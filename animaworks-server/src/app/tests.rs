//! The routes over an Anima that repeats what it hears.

use animaworks_core::{Anima, AnimaError, AnimaName, test_support::FakeAnima};
use async_trait::async_trait;
use axum::{body::Body, http::Request};
use tower::ServiceExt;

use super::*;

/// One Anima, called `sakura`.
#[derive(Debug)]
struct One(Arc<FakeAnima>);

#[async_trait]
impl Host for One {
    async fn anima(&self, name: &AnimaName) -> Result<Arc<dyn Anima>, AnimaError> {
        if name == self.0.name() {
            return Ok(self.0.clone());
        }
        Err(AnimaError::UnknownAnima { name: name.to_string(), near: vec![self.0.name().to_string()] })
    }

    async fn set_enabled(&self, _: &AnimaName, _: bool) -> Result<(), AnimaError> {
        Ok(())
    }

    async fn restart(&self, _: &AnimaName) -> Result<(), AnimaError> {
        Ok(())
    }

    async fn reload(&self, _: &AnimaName) -> Result<(), AnimaError> {
        Ok(())
    }
}

async fn send(request: Request<Body>) -> (StatusCode, String) {
    let host = One(Arc::new(FakeAnima::new(AnimaName::new("sakura").unwrap())));
    let response = App::new(Arc::new(host), Locale::En).router().oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn say(name: &str, host: &str) -> Request<Body> {
    Request::post(format!("/api/animas/{name}/chat/stream"))
        .header("host", host)
        .header("content-type", "application/json")
        .body(Body::from(r#"{"message":"こんにちは"}"#))
        .unwrap()
}

#[tokio::test]
async fn a_turn_streams_from_its_start_to_its_end() {
    let (status, body) = send(say("sakura", "127.0.0.1:18500")).await;
    assert_eq!(status, StatusCode::OK);
    let events: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["stream_start", "text_delta", "done"]);
    assert!(body.contains("こんにちは"), "{body}");
}

#[tokio::test]
async fn an_unknown_name_is_told_its_neighbour() {
    let (status, body) = send(say("sakurai", "localhost")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(body.contains("sakura") && body.contains("unknown_anima_near"), "{body}");
}

#[tokio::test]
async fn a_foreign_host_is_turned_away() {
    assert_eq!(send(say("sakura", "evil.example")).await.0, StatusCode::FORBIDDEN);
    let mut request = say("sakura", "localhost:18500");
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert_eq!(send(request).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn health_says_ok() {
    let request = Request::get("/health").header("host", "[::1]:1").body(Body::empty()).unwrap();
    let (status, body) = send(request).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("\"status\":\"ok\""), "{body}");
}
