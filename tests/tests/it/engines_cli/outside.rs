//! Without a program, and programs that are not ours.

use animaworks_testkit::{llm_server::Reply, program::Program};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{memory, organisation, provider};

#[test]
fn a_missing_program_is_named_with_its_remedy_and_claude_is_reached_by_its_api() {
    let runtime = Runtime::new().unwrap();
    let server = provider(&runtime, [Reply::text("Good morning.")]);
    let program = organisation("codex/gpt-5.4", "anthropic", &server.base_url());
    program.ok(["config", "set", "completion_gate.enabled", "false"]);
    for (model, line) in [
        ("codex/gpt-5.4", "npm install -g @openai/codex"),
        ("cursor/composer-2", "cursor.com/cli"),
        ("gemini/gemini-2.5-pro", "npm install -g @google/gemini-cli"),
    ] {
        program.ok(["anima", "set-model", "sakura", model]);
        let ended = program.run(["chat", "sakura", "hello"]);
        assert_eq!(ended.code, 5, "{model}: {ended:#?}");
        assert!(ended.err.contains("is not installed") && ended.err.contains(line), "{model}: {}", ended.err);
    }
    program.ok(["anima", "set-model", "sakura", "claude-sonnet-4-5"]);
    assert!(program.ok(["chat", "sakura", "hello"]).contains("Good morning."));
    assert_eq!(server.recorder().requests()[0].path, "/v1/messages");
}

#[test]
fn an_outside_client_reads_and_writes_one_memory_with_the_tools_it_was_given() {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    let ask = |args: &[&str], calls: &[Value]| -> Vec<Value> {
        let mut lines = vec![
            json!({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
            json!({"method": "notifications/initialized"}),
            json!({"id": 1, "method": "tools/list"}),
        ];
        lines.extend(
            calls.iter().enumerate().map(|(at, call)| json!({"id": at + 2, "method": "tools/call", "params": call})),
        );
        let said: String = lines
            .into_iter()
            .map(|mut line| {
                line["jsonrpc"] = json!("2.0");
                format!("{line}\n")
            })
            .collect();
        let ended = program.run_with([&["mcp", "--anima", "sakura"], args].concat(), said.as_bytes());
        assert_eq!(ended.code, 0, "{ended:#?}");
        let mut answers: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        answers
    };
    let names = |answers: &[Value]| -> Vec<String> {
        let tools = answers[1]["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let note = json!({"path": "knowledge/lantern.md", "content": "# Lantern\n\nIt stands in the hall.\n"});
    let written = ask(&[], &[json!({"name": "write_memory_file", "arguments": note})]);
    assert_eq!(names(&written), ["archive_memory_file", "read_memory_file", "search_memory", "write_memory_file"]);
    assert_eq!(written[2]["result"]["isError"], false, "{written:#?}");
    assert!(memory(&program, "knowledge/lantern.md").contains("origin: mixed"), "it is not taken for a person's word");

    let search = json!({"name": "search_memory", "arguments": {"query": "lantern"}});
    let denied = json!({"name": "write_memory_file", "arguments": note});
    let found = ask(&["--tools", "search_memory,read_memory_file"], &[search, denied]);
    assert_eq!(names(&found), ["read_memory_file", "search_memory"]);
    assert!(found[2].to_string().contains("It stands in the hall."), "{found:#?}");
    assert_eq!(found[3]["result"]["isError"], true, "what was not given is not there");
    let unknown = program.run(["mcp", "--anima", "sakura", "--tools", "send_message"]);
    assert_eq!(unknown.code, 2, "{unknown:#?}");
}

#[test]
fn a_prompt_is_drawn_without_a_turn_and_what_turns_cost_is_counted() {
    let runtime = Runtime::new().unwrap();
    let server = provider(&runtime, [Reply::text("Good morning.").usage(1_000_000, 100_000, 0)]);
    let program = organisation("openai/gpt-4.1", "openai", &server.base_url());
    program.ok(["config", "set", "completion_gate.enabled", "false"]);
    let shown = program.ok(["--json", "prompt", "show", "sakura", "--message", "Where is the <lantern>?"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let section = |id: &str| {
        let sections = shown["sections"].as_array().unwrap();
        sections.iter().find(|section| section["id"] == id).cloned().unwrap_or_default()
    };
    assert_eq!(section("identity")["source"], "identity.md");
    assert!(
        section("identity")["tokens"].as_u64().unwrap() > 0
            && section("environment")["text"].to_string().contains("sakura")
    );
    assert_eq!(shown["messages"][0], "Where is the <lantern>?");
    let why =
        |id: &str| shown["omitted"].as_array().unwrap().iter().find(|one| one["id"] == id).cloned().unwrap_or_default();
    assert_eq!(why("notifications")["why"], "trigger");
    let page = program.home().join("prompt.html");
    program.ok(["prompt", "show", "sakura", "--message", "Where is the <lantern>?", "--html", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Where is the &lt;lantern&gt;?") && page.contains("identity.md"), "{page}");
    assert!(program.ok(["prompt", "show", "sakura", "--trigger", "heartbeat"]).contains("heartbeat"));
    assert_eq!(program.run(["prompt", "show", "sakura", "--trigger", "whim"]).code, 2);
    assert_eq!(server.recorder().requests().len(), 0, "looking asks nobody");

    assert_eq!(program.ok(["cost"]), "");
    program.ok(["chat", "sakura", "hello"]);
    let cost: Value = serde_json::from_str(&program.ok(["--json", "cost", "sakura", "--today"])).unwrap();
    assert_eq!(cost["rows"][0]["model"], "openai/gpt-4.1");
    assert_eq!((cost["total"]["runs"].as_u64(), cost["total"]["cost_usd"].as_f64()), (Some(1), Some(2.8)));
}
