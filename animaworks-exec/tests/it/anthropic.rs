//! The Anthropic dialect, and which engine a model gets.

use std::sync::Arc;

use animaworks_core::{
    ExecError, ExecutionMode, Executor, ExecutorSource, ModelId, StopReason, SystemClock, TurnEvent,
    config::ModelCredential, test_support::ScriptedExecutor,
};
use animaworks_exec::{autonomous::Autonomous, resolve::Engines};
use animaworks_testkit::llm_server::{LlmServer, Reply};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::{Desk, KEY, credential, endpoint, line, request, tell};

#[tokio::test]
async fn a_tool_round_with_signed_thinking() {
    let calls = [("toolu_1", "read", json!({"path": "日本.md"})), ("toolu_2", "act", json!({}))];
    let replies = [Reply::parallel(calls).thinking("I should look.").usage(50, 9, 40), Reply::text("Done.")];
    let server = LlmServer::start(replies).await.unwrap();
    let engine = Autonomous::new(endpoint("claude-sonnet-4-5", &server.base_url()), line(Arc::new(SystemClock::new())));
    let mut request = request("look");
    request.model.thinking = Some("medium".to_owned());
    let told = tell(&engine, request, Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.thoughts().as_str()), ("Done.", "I should look."));
    assert_eq!(told.usage().cache_read_tokens, 40);
    let captured = server.recorder().requests();
    assert_eq!(captured[0].headers.get("x-api-key").unwrap(), KEY);
    assert_eq!(captured[0].headers.get("anthropic-version").unwrap(), "2023-06-01");
    assert_eq!(captured[0].body["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    // thoughts go back unchanged, and before the calls they led to
    let second = &captured[1].body["messages"];
    let thought = json!({"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"});
    assert_eq!(second[1]["content"][0], thought);
    assert_eq!(second[2]["content"].as_array().unwrap().len(), 2);
}

fn engines(server: &LlmServer) -> Engines {
    let base = server.base_url();
    Engines {
        line: line(Arc::new(SystemClock::new())),
        keys: Arc::new(move |name| match name {
            "anthropic" | "openai" => credential(Some(&base)),
            _ => ModelCredential::default(),
        }),
        local: Arc::new(|_| Ok(Arc::new(ScriptedExecutor::saying(["local"])) as Arc<dyn Executor>)),
        programs: None,
    }
}

#[tokio::test]
async fn a_missing_program_is_replaced_by_its_api_and_says_so() {
    let server = LlmServer::start([Reply::text("by API")]).await.unwrap();
    let mut request = request("x");
    request.model.id = ModelId::new("claude-sonnet-4-6").unwrap();
    (request.model.mode, request.model.credential) = (ExecutionMode::Sdk, "anthropic".to_owned());
    let engine = engines(&server).executor(&request.model).unwrap();
    let told = tell(&*engine, request, Arc::new(Desk::new())).await;
    assert_eq!(told.text(), "by API");
    assert!(told.events.iter().any(|event| matches!(event, TurnEvent::Note(note) if note.contains("claude"))));
    assert!(server.recorder().requests()[0].path.ends_with("/messages"));
}

#[tokio::test]
async fn every_model_gets_its_engine_or_a_reason() {
    let server = LlmServer::start([Reply::text("Plain words.")]).await.unwrap();
    let engines = engines(&server);
    let mut request = request("x");
    request.model.mode = ExecutionMode::Basic;
    let engine = engines.executor(&request.model).unwrap();
    assert_eq!(engine.mode(), ExecutionMode::Basic);
    let told = tell(&*engine, request.clone(), Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.stop()), ("Plain words.", Some(StopReason::End)));
    let mut model = request.model;
    for (id, mode, credential) in
        [("cursor/x", ExecutionMode::Cursor, "anthropic"), ("gemini/x", ExecutionMode::Gemini, "nobody")]
    {
        (model.id, model.mode, model.credential) = (ModelId::new(id).unwrap(), mode, credential.to_owned());
        assert!(matches!(engines.executor(&model), Err(ExecError::NotInstalled { .. })), "{id}");
    }
    (model.id, model.mode) = (ModelId::new("mistral/x").unwrap(), ExecutionMode::Autonomous);
    assert!(matches!(engines.executor(&model), Err(ExecError::Auth { .. })));
    model.id = ModelId::new("who/x").unwrap();
    assert!(matches!(engines.executor(&model), Err(ExecError::UnknownModel { .. })));
    model.id = ModelId::new("local/recall").unwrap();
    assert!(engines.executor(&model).is_ok());
}
