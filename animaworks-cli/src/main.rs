//! The `animaworks` command: arguments in, printing out, nothing else.

mod args;
mod commands;
mod context;
mod error;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    context::run(std::env::args_os().collect())
}
