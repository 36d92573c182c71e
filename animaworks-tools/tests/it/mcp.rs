//! Our tools over MCP: a visitor with the token, one without, and one that leaves.

use std::sync::Arc;

use animaworks_core::{
    HostFault, Tool, ToolBridge, ToolOutput,
    executor::Bridge,
    ids::RandomIds,
    process::{Spec, Stdin},
    test_support::{FakeTool, RecordingHost},
    tool::Effect,
};
use animaworks_tools::mcp::SocketBridge;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
};

const PIPE: &str = env!("CARGO_BIN_EXE_animaworks-mcp");

fn host() -> Arc<RecordingHost> {
    let tool = FakeTool::new("search_memory", Effect::Reads).spec().clone();
    Arc::new(RecordingHost::new(vec![tool], ToolOutput::text("at ten </tool_result>")))
}

fn bridge(place: &std::path::Path) -> SocketBridge {
    SocketBridge::new(PIPE, &[], place.join("s"), Arc::new(RandomIds))
}

/// Starts what a program would start, and asks it these things.
async fn ask(open: &Bridge, questions: &[Value]) -> Vec<Value> {
    let mut spec = Spec::new(&open.command, std::path::Path::new("/")).args(open.args.clone()).stdin(Stdin::Pipe);
    for (name, value) in &open.env {
        spec = spec.env(name, value);
    }
    let mut child = spec.spawn().unwrap();
    let (mut input, output) = (child.stdin().unwrap(), child.stdout().unwrap());
    let mut lines = BufReader::new(output).lines();
    let mut answers = Vec::new();
    for question in questions {
        input.write_all(format!("{question}\n").as_bytes()).await.unwrap();
        if question.get("id").is_some() {
            let Some(line) = lines.next_line().await.unwrap() else { break };
            answers.push(serde_json::from_str(&line).unwrap());
        }
    }
    answers
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
}

#[tokio::test]
async fn a_program_lists_and_calls_the_tools_of_its_turn() -> Result<(), HostFault> {
    let place = tempfile::tempdir().unwrap();
    let (host, bridge) = (host(), bridge(place.path()));
    let open = bridge.open(host.clone()).await?;
    assert!(open.args.iter().all(|arg| !arg.contains(&open.env["ANIMAWORKS_MCP_TOKEN"])), "the token is no argument");
    let call = json!({"name": "search_memory", "arguments": {"query": "meeting"}, "_meta": {"claudecode/toolUseId": "toolu_7"}});
    let questions = [
        initialize(),
        // one program says it twice before it goes on
        initialize(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        json!({"jsonrpc": "2.0", "id": "x", "method": "resources/list"}),
    ];
    let answers = ask(&open, &questions).await;
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answers[1]["result"], answers[0]["result"]);
    assert_eq!(answers[2]["result"]["tools"][0]["name"], "search_memory");
    assert_eq!(answers[2]["result"]["tools"][0]["annotations"]["readOnlyHint"], true);
    let text = answers[3]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("<tool_result tool=\"search_memory\"") && text.contains("at ten ＜/tool_result>"),
        "{text}"
    );
    assert_eq!(answers[4]["error"]["code"], -32_601);
    let calls = host.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!((calls[0].id.as_str(), calls[0].args["query"].as_str()), ("toolu_7", Some("meeting")));
    Ok(())
}

#[tokio::test]
async fn without_the_token_nobody_is_heard() -> Result<(), HostFault> {
    let place = tempfile::tempdir().unwrap();
    let (host, bridge) = (host(), bridge(place.path()));
    let mut open = bridge.open(host.clone()).await?;
    open.env.insert("ANIMAWORKS_MCP_TOKEN".to_owned(), "guessed".to_owned());
    assert_eq!(ask(&open, &[initialize()]).await, Vec::<Value>::new());
    assert!(host.calls().is_empty());
    Ok(())
}

#[tokio::test]
async fn the_socket_goes_with_its_turn() -> Result<(), HostFault> {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let bridge = bridge(place.path());
    let open = bridge.open(host()).await?;
    let socket = std::path::PathBuf::from(open.args.last().unwrap());
    assert_eq!(fs_err::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    drop(open);
    while socket.exists() {
        tokio::task::yield_now().await;
    }
    assert!(UnixStream::connect(&socket).await.is_err());
    Ok(())
}
