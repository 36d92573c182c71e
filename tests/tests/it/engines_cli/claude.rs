//! Mode S: the real Claude Code.

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

use super::{agent, interrupt, lantern, memory, organisation, provider, texts, writes_looks_up_and_is_asked};

const VARIABLE: &str = "ANIMAWORKS_TEST_CLAUDE";
/// It asks about a window of 200,000 tokens, so that a context near its end can be played.
const MODEL: &str = "claude-sonnet-4-5";

fn sakura(agent: &Path, server: &LlmServer) -> Program {
    let program = organisation(MODEL, "anthropic", server.base_url().trim_end_matches("/v1"));
    program.ok(["config", "set", "anima_defaults.mode_s_auth", "api"]);
    program.offer("claude", agent);
    program
}

#[test]
fn it_remembers_with_our_tools_checks_itself_once_and_goes_on_after_a_restart() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let server = provider(
        &runtime,
        [
            Reply::tool_call("toolu_1", "mcp__aw__write_memory_file", &lantern()),
            Reply::tool_call("toolu_2", "mcp__aw__search_memory", &json!({"query": "lantern"})),
            Reply::text("I wrote it down."),
            Reply::text("The lantern is noted, and I looked it up again."),
            Reply::text("In the hall, as you said."),
            Reply::text("In the hall, as you said: all parts are answered."),
        ],
    );
    let program = sakura(&agent, &server);
    let asked = writes_looks_up_and_is_asked(&program, &server, 4);
    assert!(asked[0].contains("mcp__aw__search_memory"));
    assert!(!asked[0].contains("mcp__aw__Bash"), "a tool it has itself is not offered twice");
    assert_eq!(asked[3].matches("Stop hook feedback").count(), 1, "the answer was sent back once");
    let resumed = &asked[4];
    assert!(resumed.contains("toolu_1") && resumed.contains("I wrote it down."), "its own session goes on: {resumed}");
}

#[test]
fn what_was_said_before_an_interrupt_was_streamed_and_is_kept() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let long = "First the lamps are lit, then the doors are opened, and nobody ever learns what comes third.";
    let server = provider(&runtime, [Reply::text(long).stall(8), Reply::text("Going on."), Reply::text("Going on.")]);
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

#[test]
fn a_context_that_would_be_compacted_goes_on_in_another_session_with_our_notes() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let server = provider(
        &runtime,
        [
            Reply::tool_call("toolu_1", "mcp__aw__write_memory_file", &lantern()),
            Reply::text("It is written down.").usage(20, 5, 0),
            Reply::text("All that was asked is done."),
            Reply::text("The lantern is in the hall; I went on in a fresh session."),
            Reply::text("The lantern is in the hall; I went on in a fresh session, and checked it."),
        ],
    );
    let program = sakura(&agent, &server);
    program.ok(["chat", "sakura", "The lantern stands in the hall."]);
    assert_eq!(texts(&server).len(), 3);
    // its own command to compact asks our hook first, as a full context does
    let out = program.ok(["--json", "chat", "sakura", "/compact"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["chains"], 1, "{report}");
    assert!(report["text"].as_str().unwrap().contains("fresh session"), "{report}");
    let asked = texts(&server);
    assert!(!asked[3].contains("toolu_1"), "the long conversation is not carried over: {}", asked[3]);
    assert!(asked[3].contains("The lantern stands in the hall."), "our notes and memory are: {}", asked[3]);
}

#[test]
fn a_session_that_was_lost_is_told_again_to_a_fresh_one() {
    let Some(agent) = agent(VARIABLE) else { return };
    let runtime = Runtime::new().unwrap();
    let server = provider(&runtime, [Reply::text("Noted: Yuki."), Reply::text("She is called Yuki.")]);
    let program = sakura(&agent, &server);
    program.ok(["config", "set", "completion_gate.enabled", "false"]);
    program.ok(["chat", "sakura", "My sister is called Yuki."]);
    std::fs::remove_dir_all(program.data().join("animas/sakura/.claude_home/.claude/projects")).unwrap();
    let again = program.ok(["chat", "sakura", "What is my sister called?"]);
    assert!(again.contains("She is called Yuki."), "{again}");
    let asked = &texts(&server)[1];
    assert!(asked.contains("My sister is called Yuki.") && asked.contains("Noted: Yuki."), "{asked}");
}
