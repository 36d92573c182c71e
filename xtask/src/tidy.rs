//! The rules no compiler knows.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The longest file, in lines.
const MAX_LINES: usize = 800;

/// Checks all rules and reports every breach.
pub fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    let mut breaches = Vec::new();
    for file in tracked(root)? {
        if file.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(root.join(&file)).map_err(|error| format!("{}: {error}", file.display()))?;
            check_source(&file, &text, &mut breaches);
        }
    }
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

fn check_source(file: &Path, text: &str, breaches: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > MAX_LINES {
        breaches.push(format!("{}: {lines} lines; cut it by meaning (at most {MAX_LINES})", file.display()));
    }
    if file.file_name().is_some_and(|name| name == "mod.rs") {
        breaches.push(format!("{}: modules are foo.rs and foo/bar.rs", file.display()));
    }
    if !text.starts_with("//!") && !text.starts_with("#!") {
        breaches.push(format!("{}: a file begins with what it is for (//!)", file.display()));
    }
}
