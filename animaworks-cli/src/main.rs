//! The `animaworks` command: arguments in, printing out, nothing else.

mod args;
mod commands;
mod context;
mod error;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    // every confined child starts through here, so it comes before anything that costs time
    if args.get(1).is_some_and(|arg| arg == "internal") && args.get(2).is_some_and(|arg| arg == "confine") {
        return animaworks_tools::sandbox::helper::main(args.into_iter().skip(1));
    }
    // and so does the pipe that an engine starts for its tools
    if let [_, command, flag, socket] = args.as_slice()
        && command == "mcp"
        && flag == "--socket"
    {
        return commands::mcp::pipe_main(socket.as_ref());
    }
    context::run(args)
}
