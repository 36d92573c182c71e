//! Real programs that tests talk to: packages from npm, installed once beside the repository.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// One of them.
struct Package {
    spec: &'static str,
    /// The variable by which the tests find it.
    variable: &'static str,
    /// What the variable names, under `node_modules`.
    thing: &'static str,
    /// The package's own installation, for where npm does not run it.
    script: Option<&'static str>,
}

const PACKAGES: [Package; 4] = [
    Package {
        spec: "@anthropic-ai/claude-code@2.1.197",
        variable: "ANIMAWORKS_TEST_CLAUDE",
        thing: ".bin/claude",
        script: Some("@anthropic-ai/claude-code/install.cjs"),
    },
    Package { spec: "@openai/codex@0.171.0", variable: "ANIMAWORKS_TEST_CODEX", thing: ".bin/codex", script: None },
    Package {
        spec: "@google/gemini-cli@0.61.0",
        variable: "ANIMAWORKS_TEST_GEMINI",
        thing: ".bin/gemini",
        script: None,
    },
    Package {
        spec: "@fugood/llama.node@1.7.15",
        variable: "ANIMAWORKS_TEST_LLAMA",
        thing: "@fugood/llama.node",
        script: None,
    },
];

/// Installs what is not there. Without a network or npm the tests that need it skip and say so.
pub fn fetch() {
    for package in &PACKAGES {
        if package.place().is_some_and(|place| place.exists()) || env::var_os(package.variable).is_some() {
            continue;
        }
        if let Err(problem) = package.install() {
            eprintln!("npm: {}: {problem}; tests that need it are skipped", package.spec);
        }
    }
}

/// Where the programs are, for the tests.
pub fn environment() -> Vec<(&'static str, PathBuf)> {
    let there = PACKAGES.iter().filter(|package| env::var_os(package.variable).is_none());
    there.filter_map(|package| Some((package.variable, package.place().filter(|place| place.exists())?))).collect()
}

fn prefix() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let deps = env::var_os("ANIMAWORKS_TEST_DEPS").map_or_else(|| repository.join(".testdeps"), PathBuf::from);
    Some(deps.join("npm"))
}

impl Package {
    fn place(&self) -> Option<PathBuf> {
        Some(prefix()?.join("node_modules").join(self.thing))
    }

    fn install(&self) -> Result<(), String> {
        let prefix = prefix().ok_or("no place for it")?;
        fs::create_dir_all(&prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&prefix).arg(self.spec);
        finish(&mut npm)?;
        let Some(script) = self.script.map(|script| prefix.join("node_modules").join(script)) else { return Ok(()) };
        if script.is_file() { finish(Command::new("node").arg(script)) } else { Ok(()) }
    }
}

fn finish(command: &mut Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
