//! The same conversation through a scripted API, real llama.cpp behind one, and a model in this process.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
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

/// An organisation whose Anima thinks with a small model and writes at most `longest` tokens. The model has
/// learned to go on, not to answer: what it says means nothing, that it says it is what is looked at.
fn small_thinker(model: &str, base_url: Option<&str>, longest: u32) -> Program {
    let program = organisation(model, base_url);
    let provider = model.split_once('/').unwrap().0;
    program.ok(["config", "set", "model_max_tokens", &format!(r#"{{"{provider}/*": {longest}}}"#)]);
    // a small window makes a short prompt
    program.ok(["config", "set", "model_context_windows", &format!(r#"{{"{provider}/*": 4096}}"#)]);
    program
}

fn in_process(model: PathBuf, longest: u32) -> Program {
    let program = small_thinker("local/gemma", None, longest);
    let models = program.data().join("models");
    std::fs::create_dir_all(&models).unwrap();
    std::os::unix::fs::symlink(model, models.join("gemma.gguf")).unwrap();
    program
}

/// A whole turn: the report says which model wrote how much, and the answer is in the conversation.
fn answers_within_its_limit(program: &Program, model: &str, longest: u64) -> Value {
    let out = program.ok(["chat", "sakura", "--json", "The capital of France is"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["model"], model);
    let wrote = report["usage"]["output_tokens"].as_u64().unwrap();
    assert!(wrote > 0 && wrote <= longest, "{report}");
    report
}

/// The answer comes in pieces; Ctrl-C ends it, and what was there by then is kept and marked.
fn is_interrupted_and_keeps_what_it_said(program: &Program) {
    let mut child = program.command(["chat", "sakura", "Tell me about the sea"]).spawn().unwrap();
    let mut first = [0];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    signal::kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let conversation = program.data().join("animas/sakura/state/conversation.json");
    let conversation: Value = serde_json::from_str(&std::fs::read_to_string(conversation).unwrap()).unwrap();
    let last = conversation["turns"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("interrupted"), "{last}");
}

#[test]
fn a_model_in_this_process_streams_and_says_how_fast_it_is() {
    let Some(model) = gguf() else { return };
    let report = answers_within_its_limit(&in_process(model, 24), "local/gemma", 24);
    let notes = report["notes"].to_string();
    assert!(notes.contains("a second"), "{report}");
    println!("in this process: {notes}");
}

#[test]
fn a_model_in_this_process_can_be_interrupted() {
    let Some(model) = gguf() else { return };
    is_interrupted_and_keeps_what_it_said(&in_process(model, 2000));
}

/// llama.cpp behind an OpenAI-compatible wrapper, ended with the test.
struct LlamaServer {
    child: Child,
    said: BufReader<ChildStdout>,
    base_url: String,
}

impl LlamaServer {
    fn start(model: &Path) -> Option<Self> {
        let Some(addon) = std::env::var_os("ANIMAWORKS_TEST_LLAMA").filter(|path| Path::new(path).is_dir()) else {
            println!("skipped: ANIMAWORKS_TEST_LLAMA names no llama.cpp addon (cargo xtask test installs it)");
            return None;
        };
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("kit/llama_server.mjs");
        let mut node = Command::new("node");
        node.arg(script).arg(model).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        node.env("ANIMAWORKS_TEST_LLAMA", addon).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = node.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, said, base_url: String::new() };
        let port = server.line("listening ");
        server.base_url = format!("http://127.0.0.1:{port}/v1");
        Some(server)
    }

    /// What it says after `start`, waiting for it.
    fn line(&mut self, start: &str) -> String {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.strip_prefix(start) {
                return rest.trim().to_owned();
            }
            line.clear();
        }
        panic!("the server ended before it said {start:?}");
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn real_llama_cpp_streams_through_mode_a() {
    let Some(model) = gguf() else { return };
    let Some(mut server) = LlamaServer::start(&model) else { return };
    let program = small_thinker("openai/gemma", Some(&server.base_url), 24);
    let report = answers_within_its_limit(&program, "openai/gemma", 24);
    println!("llama.cpp: {} in {} ms", server.line("speed: "), report["duration_ms"]);
}

#[test]
fn real_llama_cpp_can_be_interrupted() {
    let Some(model) = gguf() else { return };
    let Some(server) = LlamaServer::start(&model) else { return };
    is_interrupted_and_keeps_what_it_said(&small_thinker("openai/gemma", Some(&server.base_url), 2000));
}
