//! The same conversation through a scripted API and through real llama.cpp behind one.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::{Value, json};

fn organisation(model: &str, base_url: Option<&str>) -> Program {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    program.ok(["config", "set", "completion_gate.enabled", "false"]);
    if let Some(url) = base_url {
        program.ok(["config", "set", "credentials.openai.base_url", url]);
    }
    program.ok(["anima", "set-model", "sakura", model]);
    program
}

#[test]
fn a_fact_is_written_with_a_tool_and_recalled_after_a_restart() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let note = json!({"path": "knowledge/family.md", "content": "# Family\n\nTanaka's sister is called Yuki.\n"});
    let replies = [
        Reply::tool_call("call_1", "write_memory_file", &note),
        Reply::text("I have written down that your sister is called Yuki."),
        Reply::tool_call("call_2", "search_memory", &json!({"query": "sister"})),
        Reply::text("Your sister is called Yuki."),
    ];
    let server = runtime.block_on(LlmServer::start(replies)).unwrap();
    let program = organisation("openai/test", Some(&server.base_url()));
    let told = program.ok(["chat", "sakura", "--from", "tanaka", "my sister is called Yuki"]);
    assert!(told.contains("written down"), "{told}");
    // every command is a process of its own: this is the restart
    let asked = program.ok(["chat", "sakura", "--from", "tanaka", "what is my sister called?"]);
    assert!(asked.contains("Yuki"), "{asked}");

    let bodies = server.bodies();
    assert_eq!(bodies.len(), 4);
    // what came to mind before the second question is already in its prompt
    let system = bodies[2]["messages"][0]["content"].to_string();
    assert!(system.contains("Yuki") && system.contains("<priming"), "{system}");
    // and the tool found the file by its words
    let result = bodies[3]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(result.contains("knowledge/family.md#L"), "{result}");
    let key_is_nowhere = bodies.iter().all(|body| !body.to_string().contains("dummy"));
    assert!(key_is_nowhere);
}

/// The model that `cargo xtask test` fetches.
fn gguf() -> Option<PathBuf> {
    let path = std::env::var_os("ANIMAWORKS_TEST_GGUF").map(PathBuf::from).filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: ANIMAWORKS_TEST_GGUF names no file (cargo xtask gguf fetches one)");
    }
    path
}

/// llama.cpp behind an OpenAI-compatible wrapper, ended with the test.
struct LlamaServer {
    child: Child,
    base_url: String,
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn llama_cpp(model: &PathBuf) -> Option<LlamaServer> {
    let Some(modules) = std::env::var_os("ANIMAWORKS_TEST_LLAMA").map(PathBuf::from).filter(|path| path.is_dir())
    else {
        println!("skipped: ANIMAWORKS_TEST_LLAMA names no directory with the llama.cpp addon");
        return None;
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("kit/llama_server.mjs");
    let mut child =
        Command::new("node").arg(script).arg(model).env("NODE_PATH", modules).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let base_url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    Some(LlamaServer { child, base_url })
}

#[test]
fn real_llama_cpp_streams_through_mode_a() {
    let Some(path) = gguf() else { return };
    let Some(server) = llama_cpp(&path) else { return };
    let program = organisation("openai/gemma", Some(&server.base_url));
    program.ok(["config", "set", "model_max_tokens", r#"{"openai/*": 24}"#]);
    let out = program.ok(["chat", "sakura", "--json", "The capital of France is"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(!report["text"].as_str().unwrap().is_empty(), "{report}");
    println!("llama.cpp: {} ms for {}", report["duration_ms"], report["usage"]);
}
