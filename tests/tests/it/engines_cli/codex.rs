//! Mode C: the real Codex.

use std::{io::BufReader, path::Path};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{agent, interrupt, lantern, organisation, provider, writes_looks_up_and_is_asked};

const VARIABLE: &str = "ANIMAWORKS_TEST_CODEX";

fn sakura(agent: &Path, server: &LlmServer) -> Program {
    let program = organisation("codex/gpt-5.4", "openai", &server.base_url());
    program.offer("codex", agent);
    program
}

#[test]
fn it_remembers_with_our_tools_and_goes_on_after_a_restart() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let server = provider(
        &runtime,
        [
            Reply::tool_call("call_1", "mcp__aw/write_memory_file", &lantern()),
            Reply::tool_call("call_2", "mcp__aw/search_memory", &json!({"query": "lantern"})),
            Reply::text("The lantern is noted."),
            Reply::text("In the hall, as you said."),
        ],
    );
    let program = sakura(&agent, &server);
    let asked = writes_looks_up_and_is_asked(&program, &server, 3);
    assert!(asked[3].contains("call_1") && asked[3].contains("The lantern is noted."), "its own thread goes on");
}

#[test]
fn it_is_interrupted_while_the_model_speaks() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let server =
        provider(&runtime, [Reply::text("Nobody ever hears the end of this.").stall(4), Reply::text("Going on.")]);
    let program = sakura(&agent, &server);
    let mut child = program.command(["chat", "sakura", "Tell me about the evening."]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    while server.recorder().requests().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it asked");
        std::thread::yield_now();
    }
    interrupt(&program, child, &mut out);
    let again = program.ok(["chat", "sakura", "And then?"]);
    assert!(again.contains("Going on."), "{again}");
}
