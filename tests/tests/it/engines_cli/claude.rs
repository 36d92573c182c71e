//! Mode S: the real Claude Code.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::Command,
};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{agent, memory, organisation, provider, texts};

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
    let note = json!({"path": "knowledge/lantern.md", "content": "# Lantern\n\nThe lantern stands in the hall.\n"});
    let server = provider(
        &runtime,
        [
            Reply::tool_call("toolu_1", "mcp__aw__write_memory_file", &note),
            Reply::tool_call("toolu_2", "mcp__aw__search_memory", &json!({"query": "lantern"})),
            Reply::text("I wrote it down."),
            Reply::text("The lantern is noted, and I looked it up again."),
            Reply::text("In the hall, as you said."),
            Reply::text("In the hall, as you said: all parts are answered."),
        ],
    );
    let program = sakura(&agent, &server);
    let told = program.ok(["chat", "sakura", "--from", "tanaka", "The lantern stands in the hall."]);
    assert!(told.contains("The lantern is noted"), "{told}");
    assert!(memory(&program, "knowledge/lantern.md").contains("The lantern stands in the hall."));
    let asked = texts(&server);
    assert_eq!(asked.len(), 4, "{asked:#?}");
    assert!(asked[0].contains("mcp__aw__search_memory") && asked[0].contains("You are sakura"));
    assert!(asked[2].contains("knowledge/lantern.md#L"), "what was written is found at once: {}", asked[2]);
    assert_eq!(asked[3].matches("Stop hook feedback").count(), 1, "the answer was sent back once");

    // every command is a process of its own: this is the restart
    let again = program.ok(["chat", "sakura", "--from", "tanaka", "Where is the lantern?"]);
    assert!(again.contains("In the hall"), "{again}");
    let asked = texts(&server);
    let resumed = &asked[4];
    assert!(resumed.contains("toolu_1") && resumed.contains("I wrote it down."), "its own session goes on: {resumed}");
    assert!(!asked.iter().any(|body| body.contains("dummy")), "no key is told to a model");
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
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(memory(&program, "state/conversation.json").contains("First the lamps are lit"));
    let again = program.ok(["chat", "sakura", "And then?"]);
    assert!(again.contains("Going on."), "{again}");
}
