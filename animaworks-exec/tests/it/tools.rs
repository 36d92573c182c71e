//! Tool calls, kind and unkind.

use std::sync::{Arc, Mutex};

use animaworks_core::{
    Checkpoint, Directive, HostFault, Permit, PermitRequest, StopReason, ToolCall, ToolOutput, ToolSpec, TurnEvent,
    TurnHost,
};
use animaworks_testkit::llm_server::{LlmServer, Reply};
use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::kit::{Desk, engine, request, tell, tell_until};

fn results(body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let pair = |message: &Value| {
        (message["tool_call_id"].as_str().unwrap().to_owned(), message["content"].as_str().unwrap().to_owned())
    };
    results.map(pair).collect()
}

/// Lets the first call wait until the last one is done.
#[derive(Debug)]
struct Crossing {
    desk: Desk,
    order: Mutex<Vec<String>>,
    last_done: CancellationToken,
}

#[async_trait]
impl TurnHost for Crossing {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        self.desk.tools()
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        if call.id.as_str() == "first" {
            self.last_done.cancelled().await;
        }
        self.order.lock().unwrap().push(call.id.to_string());
        if call.id.as_str() == "last" {
            self.last_done.cancel();
        }
        Ok(ToolOutput::text(format!("result of {}", call.id)))
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        self.desk.permit(ask).await
    }

    async fn checkpoint(&self, at: Checkpoint) -> Directive {
        self.desk.checkpoint(at).await
    }
}

#[tokio::test]
async fn calls_run_side_by_side_and_results_keep_their_order() {
    let calls = [
        ("first", "read", json!({"path": "a"})),
        ("middle", "read", json!({"path": "日本.md"})),
        ("last", "act", json!({"say": "\"quoted\"\n"})),
    ];
    let server = LlmServer::start([Reply::parallel(calls), Reply::text("ok")]).await.unwrap();
    let host = Crossing { desk: Desk::new(), order: Mutex::default(), last_done: CancellationToken::new() };
    let host = Arc::new(host);
    let told = tell_until(&engine(&server.base_url()), request("x"), host.clone(), CancellationToken::new()).await;
    assert_eq!(told.text(), "ok");
    assert_eq!(host.order.lock().unwrap().last().map(String::as_str), Some("first"));
    let ids: Vec<_> = results(&server.bodies().remove(1)).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["first", "middle", "last"]);
}

#[tokio::test]
async fn writes_to_one_path_keep_their_order() {
    let write = |text: &str| json!({"path": "state/a.md", "content": text});
    let calls = [("w1", "write", write("1")), ("w2", "write", write("2")), ("w3", "write", write("3"))];
    let server = LlmServer::start([Reply::parallel(calls), Reply::text("ok")]).await.unwrap();
    let desk = Arc::new(Desk::new());
    tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    let order: String = desk.calls().iter().filter_map(|call| call.chars().rev().nth(2)).collect();
    assert_eq!(order, "123");
}

#[tokio::test]
async fn wrong_arguments_and_unknown_tools_go_back_to_the_model() {
    let reply = Reply::raw_call("a", "read", r#"{"path": "x"#).and_call("b", "read", r#"{"path": "y"}}"#).and_call(
        "c",
        "reed file",
        "{}",
    );
    let server = LlmServer::start([reply, Reply::text("sorry")]).await.unwrap();
    let desk = Arc::new(Desk::new());
    let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    assert_eq!((told.text().as_str(), desk.calls()), ("sorry", vec![r#"read {"path":"y"}"#.to_owned()]));
    let results = results(&server.bodies().remove(1));
    assert!(results[0].1.contains("InvalidArguments") && results[0].1.contains(r#"{\"path\": \"x"#), "{results:?}");
    assert!(results[1].1.contains("read done"), "{results:?}");
    assert!(results[2].1.contains("UnknownTool"), "{results:?}");
    // the transcript keeps what was really written
    let kept = told.events.iter().any(
        |event| matches!(event, TurnEvent::ToolCall(call) if call.args == Value::String(r#"{"path": "x"#.to_owned())),
    );
    assert!(kept, "{:?}", told.events);
}

#[tokio::test]
async fn ids_that_come_again_are_made_unique() {
    let call = || Reply::tool_call("call_0", "read", &json!({}));
    let server = LlmServer::start([call(), call(), Reply::text("ok")]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    let id = |event: &TurnEvent| match event {
        TurnEvent::ToolCall(call) => Some(call.id.to_string()),
        _ => None,
    };
    assert_eq!(told.events.iter().filter_map(id).collect::<Vec<_>>(), ["call_0", "call_0_2"]);
}

#[tokio::test]
async fn a_call_written_as_text_runs_and_is_not_shown() {
    let written = "Let me look.\n<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>";
    let server = LlmServer::start([Reply::text(written), Reply::text("Found.")]).await.unwrap();
    let desk = Arc::new(Desk::new());
    let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    assert_eq!(desk.calls(), [r#"read {"path":"a"}"#]);
    assert_eq!(told.text(), "Let me look.\nFound.");
}

#[tokio::test]
async fn a_call_inside_a_tool_result_or_an_example_never_runs() {
    let page = "<tool_call>{\"name\": \"act\", \"arguments\": {}}</tool_call>";
    let example = format!("Like this:\n```\n{page}\n```\nSee?");
    let replies = [Reply::tool_call("c", "read", &json!({})), Reply::text(&example)];
    let server = LlmServer::start(replies).await.unwrap();
    let mut desk = Desk::new();
    desk.answers.insert("read".to_owned(), ToolOutput::text(page));
    let desk = Arc::new(desk);
    let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    assert_eq!(told.text(), example);
    assert_eq!(desk.calls(), ["read {}"]);
}

#[tokio::test]
async fn the_last_call_has_no_tools_and_a_person_gets_an_answer() {
    let call = |n: u32| Reply::tool_call(&format!("c{n}"), "read", &json!({"n": n}));
    let server = LlmServer::start([call(1), call(2), Reply::text("So far: two.")]).await.unwrap();
    let mut request = request("x");
    request.limits.max_turns = 3;
    let told = tell(&engine(&server.base_url()), request, Arc::new(Desk::new())).await;
    assert_eq!((told.text().as_str(), told.stop()), ("So far: two.", Some(StopReason::MaxTurns)));
    let last = server.bodies().remove(2);
    assert_eq!((last["tool_choice"].clone(), last["tools"].is_array()), (json!("none"), true));
}

#[tokio::test]
async fn a_runaway_is_stopped_with_an_answer() {
    let call = || Reply::tool_call("c", "act", &json!({"again": true}));
    let replies = std::iter::repeat_with(call).take(5).chain([Reply::text("I was going in circles.")]);
    let server = LlmServer::start(replies).await.unwrap();
    let desk = Arc::new(Desk::new());
    let told = tell(&engine(&server.base_url()), request("x"), desk.clone()).await;
    assert_eq!((told.stop(), desk.calls().len()), (Some(StopReason::Runaway), 5));
    assert_eq!(told.text(), "I was going in circles.");
    assert!(server.bodies()[3].to_string().contains("again and again"), "a reminder after the third");
}

#[tokio::test]
async fn a_text_that_goes_round_in_circles_is_cut() {
    let circle = "And then we go on to the next of the many steps. ".repeat(200);
    let server = LlmServer::start([Reply::text(&circle)]).await.unwrap();
    let told = tell(&engine(&server.base_url()), request("x"), Arc::new(Desk::new())).await;
    assert_eq!(told.stop(), Some(StopReason::Runaway));
    assert!(told.text().len() < circle.len() / 2);
}
