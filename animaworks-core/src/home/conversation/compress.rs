//! Making room: old turns become a summary (memory spec §5.3).
//!
//! Asking a model for the summary is the life's business; here are the pieces, and the digest that needs no model.

use super::{Conversation, Turn};
use crate::{
    fs::FileError,
    home::{
        AnimaHome,
        text::{clip, head, one_line},
    },
    ids::ThreadId,
    units::Tokens,
};

/// Fewer turns are never compressed.
const MIN_TURNS: usize = 4;
/// More are always.
const MAX_TURNS: usize = 50;
/// The newest turns that stay as they are.
const KEEP: usize = 15;
/// Windows below this count as small.
const SMALL_WINDOW: f64 = 64_000.0;

/// What is to be summarised.
#[derive(Debug, Clone, PartialEq)]
pub struct Compression {
    /// The summary so far.
    pub old_summary: String,
    /// The turns it will stand for, oldest first.
    pub turns: Vec<Turn>,
}

impl Conversation {
    /// The budget tokens of all that is remembered.
    pub fn tokens(&self) -> Tokens {
        self.turns.iter().map(|turn| Tokens::estimate(&turn.content)).sum::<Tokens>()
            + Tokens::estimate(&self.compressed_summary)
    }

    /// Whether it takes more of the window than `threshold` (a share, 0 to 1) allows.
    pub fn needs_compression(&self, window: Tokens, threshold: f64) -> bool {
        if self.turns.len() < MIN_TURNS {
            return false;
        }
        if self.turns.len() > MAX_TURNS {
            return true;
        }
        let size = f64::from(window.0);
        let share = if size < SMALL_WINDOW { threshold.min((size / SMALL_WINDOW * 0.30).max(0.10)) } else { threshold };
        f64::from(self.tokens().0) > size * share
    }

    /// What a compression would take away; `None` when there are too few turns.
    pub fn compression(&self) -> Option<Compression> {
        if self.turns.len() < MIN_TURNS {
            return None;
        }
        let keep = KEEP.min(self.turns.len() - 1);
        let turns = self.turns.get(..self.turns.len() - keep)?.to_vec();
        Some(Compression { old_summary: self.compressed_summary.clone(), turns })
    }

    /// Puts a summary in the place of the turns it stands for. Turns that came since stay; `false`, and nothing
    /// changed, when the old ones are not what they were.
    pub fn apply_summary(&mut self, taken: &Compression, summary: &str) -> bool {
        let n = taken.turns.len();
        if self.compressed_summary != taken.old_summary || self.turns.get(..n) != Some(&taken.turns[..]) {
            return false;
        }
        self.turns.drain(..n);
        summary.clone_into(&mut self.compressed_summary);
        self.compressed_turn_count += n as u64;
        self.last_finalized_turn_index = self.last_finalized_turn_index.saturating_sub(n as u64);
        true
    }
}

/// A summary without a model: the old one, then a line for each turn; at most 12,000 characters, the newest kept.
pub fn digest(compression: &Compression) -> String {
    const MAX: usize = 12_000;
    let old = clip(&compression.old_summary, 6000);
    let mut left = MAX.saturating_sub(old.chars().count() + 1);
    let mut lines = Vec::new();
    for turn in compression.turns.iter().rev() {
        let tools: Vec<_> = turn.tool_records.iter().take(5).map(|record| record.tool_name.as_str()).collect();
        let tools = if tools.is_empty() { String::new() } else { format!(" [{}]", tools.join(", ")) };
        let words = one_line(&turn.content);
        let line = format!("- {}: {}{}", turn.role, head(&words, 500), tools);
        let cost = line.chars().count() + 1;
        if cost > left {
            break;
        }
        left -= cost;
        lines.push(line);
    }
    if !old.is_empty() {
        lines.push(old);
    }
    lines.reverse();
    lines.join("\n")
}

impl AnimaHome {
    /// Replaces old turns by a summary, under the conversation's lock; `false` when they changed meanwhile.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn compress(&self, thread: &ThreadId, taken: &Compression, summary: &str) -> Result<bool, FileError> {
        self.update_conversation(thread, |conversation| conversation.apply_summary(taken, summary))
    }
}
