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
