//! Text that must not be stored or published: keys, tokens, and the names a person listed.

use std::path::{Path, PathBuf};

use regex::RegexSet;
use serde::Serialize;

use animaworks_core::ResultExt;

/// What is looked for, with the word it is reported by.
const PATTERNS: &[(&str, &str)] = &[
    ("private_key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    ("aws_key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("anthropic_key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai_key", r"\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}"),
    ("github_token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})"),
    ("slack_token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("google_key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("stripe_key", r"\b[rs]k_live_[0-9A-Za-z]{16,}"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("url_password", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@$<{]{6,}@"),
    (
        "assigned_secret",
        r#"(?i)\b(?:api[_-]?key|secret[_-]?key|access[_-]?token|auth[_-]?token|password|passwd)\b["']?\s*[:=]\s*["'][A-Za-z0-9+/_.-]{16,}["']"#,
    ),
];

/// A line that has what it should not have. What it is, is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What kind: a pattern's word, or `listed_name`.
    pub kind: &'static str,
}

/// What is looked for.
#[derive(Debug)]
pub struct Secrets {
    patterns: Option<RegexSet>,
    names: Vec<String>,
}

impl Secrets {
    /// The usual keys and tokens, and these names.
    pub fn new(names: &[String]) -> Self {
        let patterns = RegexSet::new(PATTERNS.iter().map(|(_, pattern)| pattern)).log_err("read the patterns");
        let names = names.iter().map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty()).collect();
        Self { patterns, names }
    }

    /// The kind of the first thing in a text that should not be there.
    pub fn first(&self, text: &str) -> Option<&'static str> {
        let found = self.patterns.as_ref().and_then(|patterns| patterns.matches(text).iter().next());
        if let Some((kind, _)) = found.and_then(|at| PATTERNS.get(at)) {
            return Some(kind);
        }
        let lower = text.to_lowercase();
        self.names.iter().any(|name| has_name(&lower, name)).then_some("listed_name")
    }

    /// Looks through files, passing over those that are no text.
    pub fn scan<'a>(&self, files: impl IntoIterator<Item = &'a Path>) -> Vec<Leak> {
        let mut leaks = Vec::new();
        for file in files {
            let Some(bytes) = fs_err::read(file).ignore("a tracked file may be gone from the work tree") else {
                continue;
            };
            let Ok(text) = std::str::from_utf8(&bytes) else { continue };
            // most files have nothing: one look at the whole of them
            if self.first(text).is_none() {
                continue;
            }
            for (at, line) in text.lines().enumerate() {
                if let Some(kind) = self.first(line) {
                    leaks.push(Leak { file: file.to_owned(), line: at + 1, kind });
                }
            }
        }
        leaks
    }
}

/// Whether a name stands by itself in a text; both in lower case.
fn has_name(text: &str, name: &str) -> bool {
    let joined = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = text.split_at(at);
        let behind = after.get(name.len()..).unwrap_or_default();
        let open = joined(name.chars().next()) && joined(before.chars().next_back());
        let close = joined(name.chars().next_back()) && joined(behind.chars().next());
        !open && !close
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_seen_and_prose_is_not() {
        let secrets = Secrets::new(&["Mossgate".to_owned()]);
        assert!(secrets.patterns.is_some(), "every pattern can be read");
        let key = format!("{}{}", "AKIA", "ABCDEFGHIJKLMNOP");
        let token = format!("ghp_{}", "a1".repeat(20));
        assert_eq!(secrets.first(&format!("key {key}")), Some("aws_key"));
        assert_eq!(secrets.first(&token), Some("github_token"));
        assert_eq!(secrets.first(&format!("password = \"{}\"", "x9".repeat(10))), Some("assigned_secret"));
        assert_eq!(secrets.first("Ask mossgate about it"), Some("listed_name"));
        for prose in
            ["the password is in the vault", "mossgateway", "sk-learn and task-force", "https://example.com/a:b"]
        {
            assert_eq!(secrets.first(prose), None, "{prose}");
        }
    }
}
