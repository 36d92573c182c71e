//! Other models for when a provider refuses.

use std::{sync::Arc, time::Duration};

use animaworks_core::{
    ErrorKind, ExecError, Executor, Fault, ModelId, ResolvedModel, TurnEvent, config::RateGuardSettings,
    test_support::ManualClock,
};
use animaworks_exec::{
    autonomous::Autonomous,
    fallback::{Candidate, Fallback, RateGuard},
};
use animaworks_testkit::llm_server::{LlmServer, Reply};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::{Desk, endpoint, line, request, tell};

fn candidate(model: &str, server: &LlmServer, clock: &ManualClock) -> Candidate {
    let engine = Autonomous::new(endpoint(model, &server.base_url()), line(Arc::new(clock.clone())));
    let id = ModelId::new(model).unwrap();
    let credential = model.split('/').next().unwrap().to_owned();
    let model = ResolvedModel { id, credential, ..request("x").model };
    Candidate { model, engine: Arc::new(engine) as Arc<dyn Executor> }
}

fn quota() -> Reply {
    Reply::error(429, &json!({"error": {"code": "insufficient_quota", "message": "nothing left"}}))
}

fn slow() -> Reply {
    Reply::error(429, &json!({"error": {"message": "slow down"}})).retry_after("30")
}

#[tokio::test]
async fn a_refusal_leads_to_the_next_model_and_is_remembered_for_all() {
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at("2026-04-01T09:00:00Z");
    let guard = || {
        let path = home.path().join("llm_rate_guard.json");
        RateGuard::new(path, RateGuardSettings::default(), Arc::new(clock.clone()), "sakura")
    };
    let first = LlmServer::start([quota(), Reply::text("back again")]).await.unwrap();
    let second = LlmServer::start([Reply::text("instead"), Reply::text("still instead")]).await.unwrap();
    let chain = || {
        let others = vec![candidate("mistral/b", &second, &clock)];
        Fallback::new(candidate("openai/a", &first, &clock), others, guard())
    };
    let told = tell(&chain(), request("x"), Arc::new(Desk::new())).await;
    assert_eq!(told.text(), "instead");
    assert!(told.events.iter().any(|event| matches!(event, TurnEvent::Note(note) if note.contains("mistral/b"))));
    let file: serde_json::Value = animaworks_core::fs::read_json(&home.path().join("llm_rate_guard.json")).unwrap();
    let block = &file["openai:openai"];
    assert_eq!((block["reason"].clone(), block["seconds"].clone()), (json!("quota"), json!(1800)));
    // another process does not even ask
    assert_eq!(tell(&chain(), request("x"), Arc::new(Desk::new())).await.text(), "still instead");
    assert_eq!(first.bodies().len(), 1);
    clock.advance(Duration::from_secs(1801));
    assert_eq!(tell(&chain(), request("x"), Arc::new(Desk::new())).await.text(), "back again");
    let model = candidate("openai/a", &first, &clock).model;
    assert_eq!(guard().blocked(&model).await, None);
}

#[tokio::test]
async fn when_all_refuse_the_turn_says_when_to_come_back() {
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at("2026-04-01T09:00:00Z");
    let path = home.path().join("guard.json");
    let guard = RateGuard::new(path, RateGuardSettings::default(), Arc::new(clock.clone()), "sakura");
    let server = LlmServer::start([slow()]).await.unwrap();
    let chain = Fallback::new(candidate("openai/a", &server, &clock), Vec::new(), guard.clone());
    let told = tell(&chain, request("x"), Arc::new(Desk::new())).await;
    assert_eq!(told.error.unwrap().kind(), ErrorKind::RateLimited);
    let told = tell(&chain, request("x"), Arc::new(Desk::new())).await;
    let after = matches!(told.error, Some(ExecError::Busy { retry_after: Some(after), .. }) if after.as_secs() == 30);
    assert!(after, "{:?}", told.error);
    assert_eq!(server.bodies().len(), 1);
}

#[tokio::test]
async fn nothing_is_said_or_done_twice() {
    let home = tempfile::tempdir().unwrap();
    let clock = ManualClock::at("2026-04-01T09:00:00Z");
    let path = home.path().join("guard.json");
    let guard = RateGuard::new(path, RateGuardSettings::default(), Arc::new(clock.clone()), "sakura");
    let first = LlmServer::start([Reply::tool_call("c", "act", &json!({})), quota()]).await.unwrap();
    let second = LlmServer::start([]).await.unwrap();
    let others = vec![candidate("mistral/b", &second, &clock)];
    let chain = Fallback::new(candidate("openai/a", &first, &clock), others, guard);
    let desk = Arc::new(Desk::new());
    let told = tell(&chain, request("x"), desk.clone()).await;
    assert_eq!((told.error.unwrap().kind(), desk.calls().len()), (ErrorKind::Quota, 1));
    assert!(second.bodies().is_empty());
}
