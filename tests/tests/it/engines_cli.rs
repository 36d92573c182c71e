//! The engines that are programs of their own: the real ones, against providers on loopback.
//!
//! `cargo xtask test` installs them from npm; a test whose program is missing says so and is skipped.
//! Every program runs as it does for a person: started by `animaworks`, behind its walls, in a home of its own.

mod claude;
mod outside;

use std::path::PathBuf;

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::Value;
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
