//! Runs the steps of CI, each with its time.

use std::{
    process::Command,
    time::{Duration, Instant},
};

/// A step of CI.
type Step = fn() -> Result<(), String>;

/// What CI runs, cheapest first.
pub fn ci() -> Result<(), String> {
    let mut times = Vec::new();
    let steps: &[(&str, Step)] =
        &[("fmt", fmt), ("tidy", crate::tidy::run), ("clippy", clippy), ("docs", docs), ("test", test)];
    for (name, step) in steps {
        let start = Instant::now();
        let result = step();
        times.push((*name, start.elapsed()));
        if result.is_err() {
            table(&times);
            return result;
        }
    }
    table(&times);
    Ok(())
}

fn table(times: &[(&str, Duration)]) {
    eprintln!("\nstep     minutes");
    for (name, time) in times {
        eprintln!("{name:<8} {:>7.1}", time.as_secs_f64() / 60.0);
    }
}

fn fmt() -> Result<(), String> {
    run("cargo", &["fmt", "--all", "--check"])
}

fn clippy() -> Result<(), String> {
    run("cargo", &["clippy", "--profile", "ci", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn docs() -> Result<(), String> {
    let mut command = cargo(&["doc", "--profile", "ci", "--locked", "--no-deps", "--workspace"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    finish(command)
}

/// Every test there is, and a plain total line at the end.
pub fn test() -> Result<(), String> {
    run("cargo", &["test", "--profile", "ci", "--locked", "--workspace", "--doc"])?;
    let nextest = Command::new("cargo").args(["nextest", "--version"]).output().is_ok_and(|out| out.status.success());
    if nextest {
        run("cargo", &["nextest", "run", "--cargo-profile", "ci", "--profile", "ci", "--locked", "--workspace"])
    } else {
        run(
            "cargo",
            &["test", "--profile", "ci", "--locked", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"],
        )
    }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args);
    finish(command)
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args);
    command
}

fn finish(mut command: Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
