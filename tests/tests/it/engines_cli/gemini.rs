//! Mode G: the real Gemini CLI.

use std::{
    io::{BufRead, BufReader},
    path::Path,
};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{agent, interrupt, lantern, memory, organisation, provider, writes_looks_up_and_is_asked};

const VARIABLE: &str = "ANIMAWORKS_TEST_GEMINI";

fn sakura(agent: &Path, server: &LlmServer) -> Program {
    let program = organisation("gemini/gemini-2.5-flash", "google", server.base_url().trim_end_matches("/v1"));
    program.offer("gemini", agent);
    program
}

#[test]
fn it_remembers_with_our_tools_and_is_told_what_was_said_after_a_restart() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let server = provider(
        &runtime,
        [
            Reply::tool_call("call_1", "mcp_aw_write_memory_file", &lantern()),
            Reply::tool_call("call_2", "mcp_aw_search_memory", &json!({"query": "lantern"})),
            Reply::text("The lantern is noted."),
            Reply::text("In the hall, as you said."),
        ],
    );
    let program = sakura(&agent, &server);
    let asked = writes_looks_up_and_is_asked(&program, &server, 3);
    assert!(asked[0].contains("mcp_aw_search_memory"), "{}", asked[0]);
    assert!(asked[3].contains("The lantern is noted."), "a fresh session is told what was said: {}", asked[3]);
}

#[test]
fn what_was_said_before_an_interrupt_was_streamed_and_is_kept() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let long = "First the lamps are lit, then the doors are opened, and nobody ever learns what comes third.";
    let server = provider(&runtime, [Reply::text(long).stall(8), Reply::text("Going on.")]);
    let program = sakura(&agent, &server);
    let mut child = program.command(["chat", "sakura", "Tell me about the evening."]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut heard = Vec::new();
    out.read_until(b',', &mut heard).unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), "First the lamps are lit,", "it came while the model still spoke");
    interrupt(&program, child, &mut out);
    assert!(memory(&program, "state/conversation.json").contains("First the lamps are lit"));
    let again = program.ok(["chat", "sakura", "And then?"]);
    assert!(again.contains("Going on."), "{again}");
}
