//! The engines that are programs of their own: the real ones, against providers on loopback.
//!
//! `cargo xtask test` installs them from npm; a test whose program is missing says so and is skipped.
//! Every program runs as it does for a person: started by `animaworks`, behind its walls, in a home of its own.

mod claude;
mod codex;
mod cursor;
mod gemini;
mod outside;

use std::{
    io::{BufReader, Read},
    path::PathBuf,
    process::{Child, Command},
};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The program that a variable names.
fn agent(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: {variable} names no program (cargo xtask test installs it)");
    }
    path
}

/// A provider with these replies.
fn provider(runtime: &Runtime, replies: impl IntoIterator<Item = Reply>) -> LlmServer {
    runtime.block_on(LlmServer::start(replies)).unwrap()
}

/// An organisation with sakura, whose model is reached at `address`.
fn organisation(model: &str, credential: &str, address: &str) -> Program {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    program.ok(["config", "set", &format!("credentials.{credential}.base_url"), address]);
    program.ok(["config", "set", &format!("credentials.{credential}.api_key"), "dummy"]);
    program.ok(["anima", "set-model", "sakura", model]);
    program
}

/// The texts of the bodies of all requests.
fn texts(server: &LlmServer) -> Vec<String> {
    server.bodies().iter().map(Value::to_string).collect()
}

/// A file of sakura's memory.
fn memory(program: &Program, path: &str) -> String {
    std::fs::read_to_string(program.data().join("animas/sakura").join(path)).unwrap_or_default()
}

/// What the note of all conversations says.
fn lantern() -> Value {
    json!({"path": "knowledge/lantern.md", "content": "# Lantern\n\nThe lantern stands in the hall.\n"})
}

/// The conversation that every program has: it writes a note with our tools and looks it up; every command is a process
/// of its own, so the question that follows comes after a restart. Gives all requests; the first `told` of them belong to
/// what it was told.
fn writes_looks_up_and_is_asked(program: &Program, server: &LlmServer, told: usize) -> Vec<String> {
    let said = program.ok(["chat", "sakura", "--from", "tanaka", "The lantern stands in the hall."]);
    assert!(said.contains("The lantern is noted"), "{said}");
    assert!(memory(program, "knowledge/lantern.md").contains("The lantern stands in the hall."));
    let asked = texts(server);
    assert_eq!(asked.len(), told, "{asked:#?}");
    assert!(asked[0].contains("search_memory") && asked[0].contains("You are sakura"), "{}", asked[0]);
    assert!(asked[2].contains("knowledge/lantern.md#L"), "what was written is found at once: {}", asked[2]);

    let again = program.ok(["chat", "sakura", "--from", "tanaka", "Where is the lantern?"]);
    assert!(again.contains("In the hall"), "{again}");
    let asked = texts(server);
    assert!(asked[told].contains("<priming"), "what comes to mind is told at every turn: {}", asked[told]);
    assert!(!asked.iter().any(|body| body.contains("dummy")), "no key is told to a model");
    asked
}

/// Presses Ctrl-C, waits for the end, and makes sure that nothing of it goes on. Gives what was still printed.
fn interrupt(program: &Program, mut child: Child, out: &mut BufReader<impl Read>) -> String {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let home = format!("HOME={}", program.home().display());
    let left: Vec<String> = std::fs::read_dir("/proc")
        .unwrap()
        .map(|process| process.unwrap().path())
        .filter(|process| {
            std::fs::read(process.join("environ")).is_ok_and(|vars| String::from_utf8_lossy(&vars).contains(&home))
        })
        .filter_map(|process| std::fs::read_to_string(process.join("cmdline")).ok())
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(left, Vec::<String>::new(), "orphans");
    rest
}
