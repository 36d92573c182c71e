//! Reading the log back: spans, filters, pages.

use chrono::{DateTime, Days, Duration, FixedOffset, NaiveDate};
use serde_json::Value;

use super::Activity;
use crate::{
    fs::{self, FileError},
    home::{AnimaHome, daily_files},
};

/// The longest line that is read, in characters.
const MAX_LINE: usize = 40_000;

/// An event with its place in the files.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedActivity {
    /// The event.
    pub activity: Activity,
    /// When it happened; `None` when its `ts` cannot be read.
    pub at: Option<DateTime<FixedOffset>>,
    /// The day of the file it is in.
    pub date: NaiveDate,
    /// Its line in that file, from 1.
    pub line: u32,
}

impl LoggedActivity {
    /// Its file relative to the home, such as `activity_log/2026-03-31.jsonl`.
    pub fn file(&self) -> String {
        format!("activity_log/{}.jsonl", self.date)
    }

    /// How the API calls it: `{anima}:{ts}:{type}:{line}`.
    pub fn id(&self, anima: &str) -> String {
        format!("{anima}:{}:{}:{}", self.activity.ts, self.activity.kind, self.line)
    }
}

/// Which events to read. Without any span it is today and yesterday.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActivityQuery {
    /// This many days, today counting as one.
    pub days: Option<u32>,
    /// This many hours back from now.
    pub hours: Option<u32>,
    /// Not before; beats `hours` and `days`.
    pub since: Option<DateTime<FixedOffset>>,
    /// Not after.
    pub until: Option<DateTime<FixedOffset>>,
    /// Only these sorts; older names of a sort count as it. Empty means all.
    pub kinds: Vec<String>,
    /// Only what is from, to or in the channel of this name.
    pub involving: Option<String>,
}

impl ActivityQuery {
    /// The last days, today counting as one.
    pub fn days(days: u32) -> Self {
        Self { days: Some(days), ..Self::default() }
    }

    /// The last hours.
    pub fn hours(hours: u32) -> Self {
        Self { hours: Some(hours), ..Self::default() }
    }

    /// From a moment on.
    pub fn since(since: DateTime<FixedOffset>) -> Self {
        Self { since: Some(since), ..Self::default() }
    }

    /// Up to a moment.
    #[must_use]
    pub fn until(mut self, until: DateTime<FixedOffset>) -> Self {
        self.until = Some(until);
        self
    }

    /// Only these sorts.
    #[must_use]
    pub fn kinds(mut self, kinds: &[&str]) -> Self {
        self.kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self
    }

    /// Only what involves somebody, or a channel.
    #[must_use]
    pub fn involving(mut self, name: impl Into<String>) -> Self {
        self.involving = Some(name.into());
        self
    }

    fn wants(&self, activity: &Activity) -> bool {
        let kind = current_name(&activity.kind);
        let right_kind = self.kinds.is_empty() || self.kinds.iter().any(|wanted| current_name(wanted) == kind);
        right_kind
            && self
                .involving
                .as_ref()
                .is_none_or(|name| [&activity.from, &activity.to, &activity.channel].contains(&name))
    }
}

/// A sort of event under the name it has today.
pub(super) fn current_name(kind: &str) -> &str {
    match kind {
        "dm_sent" => Activity::MESSAGE_SENT,
        "dm_received" => Activity::MESSAGE_RECEIVED,
        other => other,
    }
}

/// One page of events, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityPage {
    /// The events.
    pub entries: Vec<LoggedActivity>,
    /// How many there are in all.
    pub total: usize,
    /// Whether older ones follow.
    pub has_more: bool,
}

impl AnimaHome {
    /// The events of a span, oldest first. A day that cannot be read is logged and left out.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when the directory of the log cannot be listed.
    pub fn load(&self, query: &ActivityQuery) -> Result<Vec<LoggedActivity>, FileError> {
        let now = self.now();
        let (first, since) = match (query.since, query.hours) {
            (Some(since), _) => (since.with_timezone(&self.zone()).date_naive(), Some(since)),
            (None, Some(hours)) => {
                let since = now.fixed_offset() - Duration::hours(i64::from(hours));
                (since.with_timezone(&self.zone()).date_naive(), Some(since))
            }
            (None, None) => {
                let back = query.days.unwrap_or(2).saturating_sub(1);
                (now.date_naive().checked_sub_days(Days::new(u64::from(back))).unwrap_or(NaiveDate::MIN), None)
            }
        };
        let last = query.until.map(|until| until.with_timezone(&self.zone()).date_naive());
        let directory = self.dir().file("activity_log");
        let mut entries = Vec::new();
        for (date, path) in daily_files(&directory, "jsonl")? {
            // a line may stand in the file of the day its own offset says, one off from ours
            let near = Days::new(1);
            let early = first.checked_sub_days(near).is_some_and(|first| date < first) && since.is_some();
            if early || (since.is_none() && date < first) {
                continue;
            }
            if last.and_then(|last| last.checked_add_days(near)).is_some_and(|last| date > last) {
                continue;
            }
            let text = match fs::read_text_if_exists(&path) {
                Ok(text) => text.unwrap_or_default(),
                Err(error) => {
                    tracing::error!(%error, "left a day of the activity log out");
                    continue;
                }
            };
            self.read_day(&text, date, query, &mut entries);
        }
        entries.retain(|entry| {
            entry
                .at
                .is_none_or(|at| since.is_none_or(|since| at >= since) && query.until.is_none_or(|until| at <= until))
        });
        sort_by_time(&mut entries);
        Ok(entries)
    }

    fn read_day(&self, text: &str, date: NaiveDate, query: &ActivityQuery, entries: &mut Vec<LoggedActivity>) {
        for (number, line) in (1_u32..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            if line.len() > MAX_LINE && line.chars().count() > MAX_LINE {
                tracing::warn!(%date, number, "passed over a line of the activity log that is too long");
                continue;
            }
            let activity = match serde_json::from_str::<Value>(line) {
                Ok(value) => Activity::from_value(value),
                Err(error) => {
                    tracing::debug!(%date, number, %error, "passed over a line of the activity log");
                    None
                }
            };
            let Some(activity) = activity.filter(|activity| query.wants(activity)) else { continue };
            let at = self.parse_time(&activity.ts);
            entries.push(LoggedActivity { activity, at, date, line: number });
        }
    }

    /// The newest `limit` events of the last days, oldest first.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::load`].
    pub fn recent(&self, days: u32, limit: usize) -> Result<Vec<LoggedActivity>, FileError> {
        let mut entries = self.load(&ActivityQuery::days(days))?;
        entries.drain(..entries.len().saturating_sub(limit));
        Ok(entries)
    }

    /// A page of events, newest first. At most 500; a limit of zero means everything behind the offset.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::load`].
    pub fn activity_page(&self, query: &ActivityQuery, limit: usize, offset: usize) -> Result<ActivityPage, FileError> {
        let mut entries = self.load(query)?;
        entries.reverse();
        let total = entries.len();
        let limit = if limit == 0 { total } else { limit.min(500) };
        let entries: Vec<_> = entries.into_iter().skip(offset).take(limit).collect();
        let has_more = offset + entries.len() < total;
        Ok(ActivityPage { entries, total, has_more })
    }
}

/// Sorts by time; an entry whose time cannot be read stays behind the one it was written after.
fn sort_by_time(entries: &mut Vec<LoggedActivity>) {
    let mut last = None;
    let mut keyed: Vec<_> = std::mem::take(entries)
        .into_iter()
        .map(|entry| {
            last = entry.at.or(last);
            (last, entry)
        })
        .collect();
    keyed.sort_by_key(|(at, _)| *at);
    entries.extend(keyed.into_iter().map(|(_, entry)| entry));
}
