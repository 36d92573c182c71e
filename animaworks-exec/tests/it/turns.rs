//! Turns that go well.

use std::sync::Arc;

use animaworks_core::{Checkpoint, Directive, StopReason, SystemClock, TurnEvent};
use animaworks_exec::{autonomous::Autonomous, provider::Lesson};
use animaworks_testkit::llm_server::{LlmServer, Reply};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::{Desk, KEY, endpoint, engine, line, request, tell};

#[tokio::test]
async fn text_streams_with_usage_and_context() {
    let server = LlmServer::start([Reply::text("釣り🎣大会は土曜日です。").usage(100, 9, 40)]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("いつ？"), Arc::new(Desk::new())).await;
    assert_eq!(told.text(), "釣り🎣大会は土曜日です。");
    assert!(told.events.iter().filter(|event| matches!(event, TurnEvent::Text(_))).count() > 1, "it streams");
    assert_eq!(told.stop(), Some(StopReason::End));
    let usage = told.usage();
    assert_eq!((usage.input_tokens, usage.cache_read_tokens, usage.output_tokens), (60, 40, 9));
    assert!(told.events.contains(&TurnEvent::Context { used: 100, window: 128_000 }));
    let sent = server.bodies().remove(0);
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
    let headers = server.recorder().requests().remove(0).headers;
    assert_eq!(headers.get("authorization").unwrap(), &format!("Bearer {KEY}"));
}

#[tokio::test]
async fn a_tool_round_goes_out_and_comes_back() {
    let first = Reply::tool_call("call_1", "read", &json!({"path": "a.md"})).usage(20_000, 5, 0);
    let server = LlmServer::start([first, Reply::text("It says hello.").usage(20_100, 5, 0)]).await.unwrap();
    let desk = Arc::new(Desk::new());
    let told = tell(&engine(&server.base_url()), request("read it"), desk.clone()).await;
    assert_eq!(desk.calls(), [r#"read {"path":"a.md"}"#]);
    assert_eq!((told.text().as_str(), told.stop()), ("It says hello.", Some(StopReason::End)));
    // cost is the sum of all calls, the context only the last one
    assert_eq!(told.usage().input_tokens, 40_100);
    let contexts: Vec<_> = told.events.iter().filter(|event| matches!(event, TurnEvent::Context { .. })).collect();
    assert_eq!(contexts.last(), Some(&&TurnEvent::Context { used: 20_100, window: 128_000 }));
    let second = server.bodies().remove(1);
    let assistant = &second["messages"][2];
    assert!(assistant.get("content").is_none_or(serde_json::Value::is_null), "strict servers refuse an empty text");
    let result = second["messages"][3]["content"].as_str().unwrap().to_owned();
    assert!(result.starts_with("<tool_result tool=\"read\" trust=\"trusted\">"), "{result}");
}

#[tokio::test]
async fn an_answer_without_streaming_is_read_too() {
    let body = json!({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]});
    let server = LlmServer::start([Reply::bytes(body.to_string())]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), server.bodies().len()), ("whole", 1));
    assert!(told.usage().estimated, "no usage came");
}

#[tokio::test]
async fn a_stream_without_content_type_is_not_asked_for_twice() {
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"once\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = LlmServer::start([Reply::bytes(stream)]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), server.bodies().len()), ("once", 1));
}

#[tokio::test]
async fn reasoning_is_thinking_and_never_text() {
    let server = LlmServer::start([Reply::text("Yes.").thinking("Hmm, well.")]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.thoughts().as_str()), ("Yes.", "Hmm, well."));
}

#[tokio::test]
async fn a_lost_opening_tag_hides_the_reasoning_of_a_thinking_model() {
    let server = LlmServer::start([Reply::text("the user wants X.</think>Yes")]).await.unwrap();
    let mut request = request("x");
    request.model.thinking = Some("high".to_owned());
    let told = tell(&engine(&server.base_url()), request, Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.thoughts().as_str()), ("Yes", "the user wants X."));
    let sent = server.bodies().remove(0);
    assert_eq!(sent["chat_template_kwargs"], json!({"enable_thinking": true}));
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_twice_more() {
    let replies = [Reply::silence(), Reply::silence().thinking("done"), Reply::text("Here.")];
    let server = LlmServer::start(replies).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.stop()), ("Here.", Some(StopReason::End)));
    let server = LlmServer::always(Reply::silence()).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!((told.stop(), server.bodies().len()), (Some(StopReason::Empty), 3));
}

#[tokio::test]
async fn the_life_can_send_the_model_back_once_and_the_draft_is_not_said_twice() {
    let replies = [Reply::text("All done."), Reply::text("All done. And checked.")];
    let server = LlmServer::start(replies).await.unwrap();
    let desk = Arc::new(Desk::new());
    desk.before_stop.lock().unwrap().push(Directive::Remind("check your work".into()));
    let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    assert_eq!(told.text(), "All done. And checked.");
    let last = server.bodies().remove(1)["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["content"], "<system-reminder>\ncheck your work\n</system-reminder>");
    let drafts = desk.checkpoints().into_iter().filter(|at| matches!(at, Checkpoint::BeforeStop { .. })).count();
    assert_eq!(drafts, 2);
}

#[tokio::test]
async fn a_chain_ends_the_turn_after_its_tools() {
    let server = LlmServer::start([Reply::tool_call("c", "read", &json!({}))]).await.unwrap();
    let desk = Arc::new(Desk::new());
    desk.after_tool.lock().unwrap().push(Directive::EndForChain);
    let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    assert_eq!((told.stop(), desk.calls().len()), (Some(StopReason::Chain), 1));
}

#[tokio::test]
async fn what_a_server_cannot_do_is_learned_once() {
    let refusal = |text: &str| Reply::error(400, &json!({"error": {"message": text}}));
    let replies = [
        refusal("reasoning_effort is not supported with tools"),
        Reply::text("one"),
        Reply::text("two"),
        refusal("streaming tools unsupported"),
        Reply::text("three"),
    ];
    let server = LlmServer::start(replies).await.unwrap();
    let line = line(Arc::new(SystemClock::new()));
    let engine = Autonomous::new(endpoint("ollama/kit", &server.base_url()), line.clone());
    let mut request = request("x");
    request.model.thinking = Some("low".to_owned());
    for expected in ["one", "two", "three"] {
        let told = tell(&engine, request.clone(), Arc::new(Desk::new())).await;
        assert_eq!(told.text(), expected);
    }
    let bodies = server.bodies();
    let thinks: Vec<bool> = bodies.iter().map(|body| body.get("reasoning_effort").is_some()).collect();
    assert_eq!(thinks, [true, false, false, false, false]);
    let streams: Vec<_> = bodies.iter().map(|body| body["stream"] == json!(true)).collect();
    assert_eq!(streams, [true, true, true, true, false]);
    let known = format!("{}/chat/completions kit", server.base_url());
    assert!(line.learned.knows(&known, Lesson::NoStreaming));
}

#[tokio::test]
async fn other_refusals_are_not_asked_twice() {
    let server = LlmServer::start([Reply::error(400, &json!({"error": {"message": "bad schema"}}))]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert!(told.error.unwrap().to_string().contains("bad schema"));
    assert_eq!(server.bodies().len(), 1);
}
