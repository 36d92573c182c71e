//! Obligations, as the task queue keeps them (memory spec §11).

use chrono::{DateTime, Duration, FixedOffset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    error::ResultExt,
    ids::TaskId,
    trust::{Origin, Trust},
};

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Waits.
    Pending,
    /// Somebody is at it.
    InProgress,
    /// Somebody below does it.
    Delegated,
    /// Cannot go on.
    Blocked,
    /// Finished.
    Done,
    /// Given up on purpose.
    Cancelled,
    /// Did not work out.
    Failed,
}

impl TaskStatus {
    /// Whether nothing more will happen to it, short of an explicit reopening.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }

    /// The word used in files and tool arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Delegated => "delegated",
            Self::Blocked => "blocked",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// Who asked for it. People come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSource {
    /// A person.
    Human,
    /// An Anima.
    Anima,
}

/// One task: a creation line of `task_queue.jsonl` with its updates applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub task_id: TaskId,
    /// When it was created.
    pub ts: DateTime<FixedOffset>,
    /// Who asked for it.
    pub source: TaskSource,
    /// What was asked, word for word; at most 10,000 characters.
    #[serde(default)]
    pub original_instruction: String,
    /// Who does it.
    #[serde(default)]
    pub assignee: String,
    /// How far it has come.
    pub status: TaskStatus,
    /// One line for lists.
    #[serde(default)]
    pub summary: String,
    /// When it is due, as written; see [`deadline`].
    #[serde(default)]
    pub deadline: Option<String>,
    /// The Animas it passed through.
    #[serde(default)]
    pub relay_chain: Vec<String>,
    /// When it last changed.
    #[serde(default = "epoch")]
    pub updated_at: DateTime<FixedOffset>,
    /// Whatever belongs to it besides.
    #[serde(default)]
    pub meta: Map<String, Value>,
    /// Fields of other versions, kept on rewrite.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Task {
    /// Where its words come from; nothing when nobody noted it.
    pub fn origin(&self) -> Origin {
        let noted = ["origin", "origin_chain"].into_iter();
        let noted: Map<String, Value> =
            noted.filter_map(|key| Some((key.to_owned(), self.meta.get(key)?.clone()))).collect();
        if noted.is_empty() {
            return Origin::default();
        }
        // a note that cannot be read is no reason to believe more
        serde_json::from_value(Value::Object(noted))
            .log_err("read the origin of a task")
            .unwrap_or_else(|| Origin::of("unknown"))
    }

    /// The trust its words deserve: tasks without a note are our own.
    pub fn trust(&self) -> Trust {
        let origin = self.origin();
        if origin == Origin::default() { Trust::Trusted } else { origin.trust() }
    }
}

fn epoch() -> DateTime<FixedOffset> {
    DateTime::UNIX_EPOCH.fixed_offset()
}

/// Reads a deadline as people and models write it: `30m`, `2h`, `1d`, `1w`, or an ISO date or time.
///
/// Returns the moment in the zone of `now`; `None` when the text is in neither form.
pub fn deadline(text: &str, now: DateTime<FixedOffset>) -> Option<DateTime<FixedOffset>> {
    let text = text.trim();
    if let Some(unit) = text.chars().last().filter(|c| "mhdw".contains(*c)) {
        let digits = text.strip_suffix(unit)?;
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            let n: i64 = digits.parse().ok().filter(|n| *n <= 100_000)?;
            let span = match unit {
                'm' => Duration::minutes(n),
                'h' => Duration::hours(n),
                'd' => Duration::days(n),
                _ => Duration::weeks(n),
            };
            return now.checked_add_signed(span);
        }
    }
    crate::clock::parse_timestamp(text, *now.offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_span_or_a_date() {
        let now = DateTime::parse_from_rfc3339("2026-03-31T09:00:00+09:00").unwrap();
        let at = |s: &str| deadline(s, now).map(|t| t.to_rfc3339());
        assert_eq!(at("30m").as_deref(), Some("2026-03-31T09:30:00+09:00"));
        assert_eq!(at("1w").as_deref(), Some("2026-04-07T09:00:00+09:00"));
        assert_eq!(at("2026-04-01").as_deref(), Some("2026-04-01T00:00:00+09:00"));
        assert_eq!(at("2026-04-01T10:00:00Z").as_deref(), Some("2026-04-01T10:00:00+00:00"));
        for bad in ["", "soon", "d", "1y", "-3d"] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }
}
