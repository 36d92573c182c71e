//! One file per command. Each takes what it needs, prints what it found, and returns.

mod anima;
mod bench;
mod chat;
mod completions;
mod config;
mod conversation;
mod cost;
mod credential;
mod demo;
mod doctor;
mod index;
mod init;
mod internal;
pub(crate) mod mcp;
mod memory;
mod models;
mod pack;
mod prompt;
mod tool;
mod weights;

use crate::{args::Command, context::Cx, error::CliResult};

/// Runs a command.
pub(crate) fn run(cx: &Cx, command: Command) -> CliResult {
    match command {
        Command::Init(args) => init::run(cx, args),
        Command::Demo(args) => demo::run(cx, args),
        Command::Chat(args) => chat::run(cx, args),
        Command::Anima(command) => anima::run(cx, command),
        Command::Models(command) => models::run(cx, command),
        Command::Config(command) => config::run(cx, command),
        Command::Index(args) => index::run(cx, args),
        Command::Memory(command) => memory::run(cx, command),
        Command::Cost(args) => cost::run(cx, args),
        Command::Prompt(command) => prompt::run(cx, command),
        Command::Mcp(args) => mcp::run(cx, args),
        Command::Tool(command) => tool::run(cx, command),
        Command::Weights(command) => weights::run(cx, command),
        Command::Credential(command) => credential::run(cx, command),
        Command::Pack(command) => pack::run(cx, command),
        Command::Doctor(args) => doctor::run(cx, args),
        Command::Bench(command) => bench::run(cx, command),
        Command::Completions(args) => completions::run(cx, args),
        Command::Internal(command) => internal::run(cx, command),
    }
}
