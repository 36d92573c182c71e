//! The developers' own helper: `cargo xtask ci | test | tidy | …`. It has no dependencies.

mod coverage;
mod embedding;
mod gguf;
mod npm;
mod shell;
mod tidy;
mod weights;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  ci      what CI runs: fmt, tidy, clippy, docs, test
  test    install what the tests need, run every test there is
  tidy    the rules no compiler knows
  gguf    fetch the small language model that tests read, and say where it is
  embedding  build a program outside the workspace over the packaged crates
  coverage   lines of core that its tests reach (at least 70 %)
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ci"] => shell::ci(),
        ["test"] => shell::test(),
        ["tidy"] => tidy::run(),
        ["gguf"] => gguf::fetch().map(|path| println!("{}", path.display())),
        ["embedding"] => embedding::run(),
        ["coverage"] => coverage::run(),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
