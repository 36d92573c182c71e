//! The sandbox helper by itself, for programs that embed the tools without the `animaworks` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    animaworks_tools::sandbox::helper::main(std::env::args_os().skip(1))
}
