//! The six ways to think, and the wildcards that pick one for a model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which engine runs a turn. On disk it is one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExecutionMode {
    /// Claude Code as a child process.
    #[serde(rename = "S")]
    Sdk,
    /// Codex CLI as a child process.
    #[serde(rename = "C")]
    Codex,
    /// Cursor Agent CLI as a child process.
    #[serde(rename = "D")]
    Cursor,
    /// Gemini CLI as a child process.
    #[serde(rename = "G")]
    Gemini,
    /// An API that can call tools; the loop is ours.
    #[serde(rename = "A")]
    Autonomous,
    /// A model that only writes text; the framework does the memory work.
    #[serde(rename = "B")]
    Basic,
}

impl ExecutionMode {
    /// All modes.
    pub const ALL: [Self; 6] = [Self::Sdk, Self::Codex, Self::Cursor, Self::Gemini, Self::Autonomous, Self::Basic];

    /// The letter used on disk.
    pub fn letter(self) -> char {
        match self {
            Self::Sdk => 'S',
            Self::Codex => 'C',
            Self::Cursor => 'D',
            Self::Gemini => 'G',
            Self::Autonomous => 'A',
            Self::Basic => 'B',
        }
    }

    /// Reads a letter or one of the older names, in any case (exec spec §1.2).
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "s" | "a1" => Some(Self::Sdk),
            "c" => Some(Self::Codex),
            "d" => Some(Self::Cursor),
            "g" => Some(Self::Gemini),
            "a" | "autonomous" | "a1f" | "a1_fallback" | "a2" => Some(Self::Autonomous),
            "b" | "assisted" => Some(Self::Basic),
            _ => None,
        }
    }

    /// Whether the engine is a program of its own that brings its own loop and tools.
    pub fn is_child(self) -> bool {
        matches!(self, Self::Sdk | Self::Codex | Self::Cursor | Self::Gemini)
    }
}

impl fmt::Display for ExecutionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// A model pattern with the semantics of a shell wildcard: `*`, `?`, `[abc]`, `[!a-c]`; everything else is literal.
///
/// `{`, `}` and `\` are ordinary characters and `*` crosses `/`, as existing
/// `models.json` files expect.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p + 1, t));
            p += 1;
        } else if let Some(next) = text.get(t).and_then(|c| step(&pattern, p, *c)) {
            p = next;
            t += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            p = after;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|c| *c == '*')
}

/// The position after the pattern element at `p`, when it matches `c`.
fn step(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => match class(pattern, p) {
            Some((negated, members, end)) => (in_class(members, c) != negated).then_some(end),
            None => (c == '[').then_some(p + 1),
        },
        literal => (*literal == c).then_some(p + 1),
    }
}

/// Splits `[...]` at `p` into its sign, its members and the position behind it; `None` when it never closes.
fn class(pattern: &[char], p: usize) -> Option<(bool, &[char], usize)> {
    let negated = pattern.get(p + 1) == Some(&'!');
    let start = p + 1 + usize::from(negated);
    // a `]` in the first place is a member
    let close = pattern.iter().enumerate().skip(start + 1).find(|(_, c)| **c == ']').map(|(at, _)| at)?;
    Some((negated, pattern.get(start..close)?, close + 1))
}

fn in_class(members: &[char], c: char) -> bool {
    let mut at = 0;
    while let Some(low) = members.get(at) {
        match (members.get(at + 1), members.get(at + 2)) {
            (Some('-'), Some(high)) => {
                if (*low..=*high).contains(&c) {
                    return true;
                }
                at += 3;
            }
            _ => {
                if *low == c {
                    return true;
                }
                at += 1;
            }
        }
    }
    false
}

/// How specific a pattern is, for picking the best of several that match: exact
/// first, then the longer literal prefix, then the longer pattern (exec spec §1.2).
pub fn specificity(pattern: &str) -> (bool, usize, usize) {
    let prefix = pattern.chars().take_while(|c| !matches!(c, '*' | '?' | '[')).count();
    let length = pattern.chars().count();
    (prefix == length, prefix, length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn matches_as_cpython_does() {
        for (pattern, text, matches) in [
            ("claude-*", "claude-opus-4-6", true),
            ("claude-*", "Claude-opus", false),
            ("cursor/*", "cursor/a/b", true),
            ("ollama/qwen3:?b", "ollama/qwen3:8b", true),
            ("ollama/qwen3:[0-9]b", "ollama/qwen3:8b", true),
            ("ollama/qwen3:[!0-9]b", "ollama/qwen3:8b", false),
            ("a[]]b", "a]b", true),
            ("a[b", "a[b", true),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
            ("a\\*", "a\\xyz", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("東京*", "東京駅", true),
        ] {
            assert_eq!(fnmatch(pattern, text), matches, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_without_wildcards_matches_itself_only(text in "[a-z/:.-]{0,12}", other in "[a-z/:.-]{0,12}") {
            prop_assert!(fnmatch(&text, &text));
            prop_assert_eq!(fnmatch(&text, &other), text == other);
        }

        #[test]
        fn never_panics_and_star_matches_all(pattern in "[a-c*?\\[\\]!-]{0,10}", text in "[a-c\\[\\]]{0,10}") {
            fnmatch(&pattern, &text);
            prop_assert!(fnmatch("*", &text));
        }
    }
}
