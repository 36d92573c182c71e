//! The rules no compiler knows.

mod words;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The longest file, in lines.
const MAX_LINES: usize = 800;

/// Words that were replaced by another one (docs/glossary.md); they name nothing any more.
const RETIRED: &[&str] =
    &["AgentManager", "DigitalPerson", "ToolHandler", "PromptBuilder", "RagEngine", "MemoryManager"];

/// A source file with its path from the root.
struct Source {
    path: PathBuf,
    text: String,
}

/// Checks all rules and reports every breach.
pub fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    let mut sources = Vec::new();
    for path in tracked(root)? {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(root.join(&path)).map_err(|error| format!("{}: {error}", path.display()))?;
            sources.push(Source { path, text });
        }
    }
    let mut breaches = Vec::new();
    for source in &sources {
        check_shape(source, &mut breaches);
    }
    words::check(root, &sources, &mut breaches)?;
    check_invariants(root, &sources, &mut breaches);
    if breaches.is_empty() {
        return Ok(());
    }
    for breach in &breaches {
        eprintln!("tidy: {breach}");
    }
    Err(format!("{} breaches", breaches.len()))
}

fn tracked(root: &Path) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output();
    let output = output.map_err(|error| format!("git ls-files: {error}"))?;
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(names.split('\0').filter(|name| !name.is_empty() && root.join(name).is_file()).map(PathBuf::from).collect())
}

fn check_shape(source: &Source, breaches: &mut Vec<String>) {
    let (file, text) = (source.path.display(), &source.text);
    let lines = text.lines().count();
    if lines > MAX_LINES {
        breaches.push(format!("{file}: {lines} lines; cut it by meaning (at most {MAX_LINES})"));
    }
    if source.path.file_name().is_some_and(|name| name == "mod.rs") {
        breaches.push(format!("{file}: modules are foo.rs and foo/bar.rs"));
    }
    if !text.starts_with("//!") && !text.starts_with("#!") {
        breaches.push(format!("{file}: a file begins with what it is for (//!)"));
    }
    if source.path.starts_with("xtask") {
        return;
    }
    for word in RETIRED {
        if text.contains(word) {
            breaches.push(format!("{file}: {word} is a retired word (docs/glossary.md)"));
        }
    }
    for (at, line) in text.lines().enumerate() {
        if line.contains("#[ignore") && !line.contains("live_") {
            breaches.push(format!("{file}:{}: a test that is not run proves nothing", at + 1));
        }
    }
}

/// Every invariant of ARCHITECTURE.md names the test that holds it, and that test exists.
fn check_invariants(root: &Path, sources: &[Source], breaches: &mut Vec<String>) {
    let Ok(text) = fs::read_to_string(root.join("ARCHITECTURE.md")) else {
        breaches.push("ARCHITECTURE.md: missing".to_owned());
        return;
    };
    for (at, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("| I")) {
        let named: Vec<&str> = line
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.contains('_') && !name.contains([' ', '/', '.']))
            .collect();
        if named.is_empty() {
            breaches.push(format!("ARCHITECTURE.md:{}: an invariant without its test", at + 1));
        }
        for name in named {
            let name = name.rsplit("::").next().unwrap_or(name);
            let function = format!("fn {name}(");
            if !sources.iter().any(|source| source.text.contains(&function)) {
                breaches.push(format!("ARCHITECTURE.md:{}: there is no test {name}", at + 1));
            }
        }
    }
}
