//! Sentences live in the catalogue and in `templates/`, never in code.

use std::{collections::BTreeSet, fs, path::Path};

use super::Source;

/// Files whose Japanese is part of a file format or of a tokeniser, not something said to anybody.
const FORMAT_WORDS: &[(&str, &str)] = &[
    ("animaworks-core/src/creation", "headings and cells of character sheets"),
    ("animaworks-core/src/home", "marks and headings in the files of an Anima"),
    ("animaworks-core/src/config", "marks in the files of an Anima"),
    ("animaworks-core/src/prompt", "marks in the files of an Anima"),
    ("animaworks-memory/src/text", "normalisation and terms"),
    ("animaworks-memory/src/chunk", "marks in the files of an Anima"),
    ("animaworks-memory/src/priming", "question and greeting words that are recognised"),
    ("animaworks-memory/src/retrieve", "words for days that are recognised"),
    ("animaworks-memory/src/pack", "words for days that are refused"),
    ("animaworks-memory/src/fuse", "particles that are recognised"),
    ("animaworks-memory/src/dates", "words for days that are recognised"),
    ("animaworks-exec/src/local", "words that are recognised"),
    ("animaworks-exec/src/basic", "announcements that are recognised"),
    ("animaworks-tools/src/permission", "headings of permissions.md"),
    ("animaworks-tools/src/tasks/backlog", "words an Anima means itself by"),
    ("animaworks-core/src/trust.rs", "the wide bracket that disarms a fence"),
    ("animaworks-cli/src/ui/prompt.rs", "an answer that is recognised"),
];

/// Calls that show their argument to a person.
const SHOWN: &[&str] = &["ui::note(\"", "ui::line(\"", "ui::piece(\"", "note(\"", "CliError::said("];

/// Families of keys that are put together at run time.
const FAMILIES: &[&str] = &[
    "error.",
    "hint.",
    "cli.command.",
    "cli.arg.",
    "cli.help.",
    "tools.describe.",
    "tools.arg.",
    "tools.refuse.",
    "tools.instead.",
    "exec.recall.",
    "memory.name",
    "exec.name",
    "tools.name",
    "server.name",
    "cli.name",
    "pack.name",
    "pack.refused.",
    "pack.secret.",
    "pack.left.",
    "pack.page.",
    "pack.dashboard.",
    "cli.bench.pack.",
];

pub(super) fn check(root: &Path, sources: &[Source], breaches: &mut Vec<String>) -> Result<(), String> {
    let keys = catalogue(root)?;
    let mut used = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.path.starts_with("xtask")) {
        for (at, line) in source.text.lines().enumerate() {
            let place = format!("{}:{}", source.path.display(), at + 1);
            for literal in literals(line) {
                if keys.contains(literal) {
                    used.insert(literal.to_owned());
                }
            }
            if let Some(key) = t_key(line)
                && !keys.contains(key)
            {
                breaches.push(format!("{place}: the catalogue has no {key}"));
            }
        }
        check_code(source, breaches);
    }
    for key in keys.difference(&used).filter(|key| !FAMILIES.iter().any(|family| key.starts_with(family))) {
        breaches.push(format!("locales: {key} is used nowhere"));
    }
    Ok(())
}

/// The part of a file before its tests.
fn check_code(source: &Source, breaches: &mut Vec<String>) {
    let path = source.path.to_string_lossy();
    let in_crate = path.starts_with("animaworks-") && path.contains("/src/");
    if !in_crate || path.contains("/tests") || path.ends_with("tests.rs") || path.contains("test_support") {
        return;
    }
    let format_words = FORMAT_WORDS.iter().any(|(file, _)| path.starts_with(file));
    for (at, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        let place = format!("{path}:{}", at + 1);
        if !format_words && literals(line).any(|literal| literal.chars().any(is_japanese)) {
            breaches.push(format!("{place}: Japanese in code; it belongs into the catalogue or templates"));
        }
        if SHOWN.iter().any(|call| code.contains(call))
            && literals(line).any(|literal| {
                literal.contains(' ') && literal.chars().any(char::is_alphabetic) && !literal.contains('{')
            })
        {
            breaches.push(format!("{place}: a sentence in code; it belongs into the catalogue"));
        }
    }
}

/// The keys of the catalogue, one per line of its files.
fn catalogue(root: &Path) -> Result<BTreeSet<String>, String> {
    let dir = root.join("animaworks-core/locales/en");
    let mut keys = BTreeSet::new();
    for entry in fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))? {
        let path = entry.map_err(|error| format!("{}: {error}", dir.display()))?.path();
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        for line in text.lines() {
            if let Some(key) = line.strip_prefix("  \"").and_then(|rest| rest.split_once("\":")).map(|(key, _)| key) {
                keys.insert(key.to_owned());
            }
        }
    }
    Ok(keys)
}

/// The key of a `t!(locale, "key"…)` that stands on one line.
fn t_key(line: &str) -> Option<&str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    let (_, rest) = code
        .split_once(" t!(")
        .or_else(|| code.split_once("(t!("))
        .or_else(|| code.strip_prefix("t!(").map(|rest| ("", rest)))?;
    let (_, rest) = rest.split_once(", \"")?;
    let (key, _) = rest.split_once('"')?;
    let shaped = key.contains('.') && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    shaped.then_some(key)
}

/// The contents of the string literals of a line; comments at its end do not count.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    let code = match line.find("// ") {
        Some(at) if line[..at].matches('"').count().is_multiple_of(2) => &line[..at],
        _ => line,
    };
    code.split('"').skip(1).step_by(2)
}

fn is_japanese(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xFF00..=0xFFEF)
}
