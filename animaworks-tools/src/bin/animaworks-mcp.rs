//! The MCP pipe by itself, for programs that embed the tools without the `animaworks` binary.

use std::{io::Write, path::PathBuf, process::ExitCode};

use animaworks_core::{config::Env, error::ResultExt};
use animaworks_tools::mcp::{TOKEN_VARIABLE, pipe};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [flag, socket] = args.as_slice() else {
        writeln!(std::io::stderr(), "usage: animaworks-mcp --socket PATH").ignore("there is nobody else to tell");
        return ExitCode::from(2);
    };
    let token = Env::from_process().var(TOKEN_VARIABLE).unwrap_or_default().to_owned();
    let carried = match flag.to_str() {
        Some("--socket") => pipe::run(&PathBuf::from(socket), &token, std::io::stdin(), std::io::stdout()),
        _ => return ExitCode::from(2),
    };
    match carried {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(std::io::stderr(), "animaworks-mcp: {error}").ignore("there is nobody else to tell");
            ExitCode::FAILURE
        }
    }
}
