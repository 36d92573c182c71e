//! Real coding agents that tests talk to: packages from npm, installed once beside the repository.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A program and where tests look for it.
struct Agent {
    package: &'static str,
    program: &'static str,
    variable: &'static str,
    /// Where npm does not run a package's own installation, its native program is put in place by this script.
    script: Option<&'static str>,
}

const AGENTS: &[Agent] = &[
    Agent {
        package: "@anthropic-ai/claude-code@2.1.197",
        program: "claude",
        variable: "ANIMAWORKS_TEST_CLAUDE",
        script: Some("@anthropic-ai/claude-code/install.cjs"),
    },
    Agent { package: "@openai/codex@0.171.0", program: "codex", variable: "ANIMAWORKS_TEST_CODEX", script: None },
    Agent { package: "@google/gemini-cli@0.61.0", program: "gemini", variable: "ANIMAWORKS_TEST_GEMINI", script: None },
];

impl Agent {
    fn path(&self) -> Option<PathBuf> {
        Some(place()?.join("node_modules/.bin").join(self.program))
    }

    fn is_here(&self) -> bool {
        self.path().is_some_and(|program| program.is_file())
    }
}

/// Installs what is not there. Without a network or npm the tests that need it skip and say so.
pub fn fetch() {
    let missing: Vec<_> =
        AGENTS.iter().filter(|agent| env::var_os(agent.variable).is_none() && !agent.is_here()).collect();
    if missing.is_empty() {
        return;
    }
    if let Err(problem) = install(&missing) {
        eprintln!("npm: {problem}; tests that need it are skipped");
    }
}

/// Where the programs are, for the tests.
pub fn environment() -> Vec<(&'static str, PathBuf)> {
    let named = |agent: &Agent| env::var_os(agent.variable).is_some();
    let here = AGENTS.iter().filter(|agent| !named(agent) && agent.is_here());
    here.filter_map(|agent| Some((agent.variable, agent.path()?))).collect()
}

fn place() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let deps = env::var_os("ANIMAWORKS_TEST_DEPS").map_or_else(|| repository.join(".testdeps"), PathBuf::from);
    Some(deps.join("npm"))
}

fn install(agents: &[&Agent]) -> Result<(), String> {
    let place = place().ok_or("no place for it")?;
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&place);
    finish(npm.args(agents.iter().map(|agent| agent.package)))?;
    let scripts = agents.iter().filter_map(|agent| Some(place.join("node_modules").join(agent.script?)));
    for script in scripts.filter(|script| script.is_file()) {
        finish(Command::new("node").arg(script))?;
    }
    Ok(())
}

fn finish(command: &mut Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
