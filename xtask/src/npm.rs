//! Real coding agents that tests talk to: packages from npm, installed once beside the repository.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const PACKAGE: &str = "@anthropic-ai/claude-code@2.1.197";
/// What the tests look for.
const VARIABLE: &str = "ANIMAWORKS_TEST_CLAUDE";

/// Installs what is not there. Without a network or npm the tests that need it skip and say so.
pub fn fetch() {
    if program().is_some_and(|program| program.is_file()) || env::var_os(VARIABLE).is_some() {
        return;
    }
    if let Err(problem) = install() {
        eprintln!("npm: {problem}; tests that need it are skipped");
    }
}

/// Where the program is, for the tests.
pub fn environment() -> Option<(&'static str, PathBuf)> {
    let program = program().filter(|program| program.is_file())?;
    env::var_os(VARIABLE).is_none().then_some((VARIABLE, program))
}

fn place() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let deps = env::var_os("ANIMAWORKS_TEST_DEPS").map_or_else(|| repository.join(".testdeps"), PathBuf::from);
    Some(deps.join("npm"))
}

fn program() -> Option<PathBuf> {
    Some(place()?.join("node_modules/.bin/claude"))
}

fn install() -> Result<(), String> {
    let place = place().ok_or("no place for it")?;
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&place).arg(PACKAGE);
    finish(&mut npm)?;
    // where npm does not run a package's own installation, its native program is put in place by hand
    let script = place.join("node_modules/@anthropic-ai/claude-code/install.cjs");
    if script.is_file() { finish(Command::new("node").arg(script)) } else { Ok(()) }
}

fn finish(command: &mut Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
