//! What two have written to each other (memory spec §10.3).

use chrono::{DateTime, FixedOffset};
use serde_json::Value;

use crate::{
    fs::{self, FileError},
    home::{
        AnimaHome,
        activity::{Activity, ActivityQuery},
        text::take,
    },
    trust::Origin,
};

/// How far back the activity log is read.
const DAYS: u32 = 30;

/// One letter between two.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectMessage {
    /// When.
    pub at: Option<DateTime<FixedOffset>>,
    /// Who wrote.
    pub from: String,
    /// Whom to.
    pub to: String,
    /// What.
    pub text: String,
    /// Where the words come from; nothing when nobody noted it.
    pub origin: Origin,
}

/// Which letters to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DmQuery {
    /// At most so many, the newest; zero means 20.
    pub limit: usize,
    /// Only sent (`Some(true)`) or only received (`Some(false)`).
    pub sent: Option<bool>,
    /// Only so many hours back.
    pub hours: Option<u32>,
    /// Only with this word.
    pub keyword: Option<String>,
}

impl AnimaHome {
    /// What this Anima and a colleague wrote to each other, oldest first. The log of the Python version's first days
    /// is read when the activity log holds too little and nothing is filtered.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn dm_history(&self, peer: &str, query: &DmQuery) -> Result<Vec<DirectMessage>, FileError> {
        let limit = if query.limit == 0 { 20 } else { query.limit };
        let span = query.hours.map_or_else(|| ActivityQuery::days(DAYS), ActivityQuery::hours);
        let entries = self.load(&span.kinds(&[Activity::MESSAGE_SENT, Activity::MESSAGE_RECEIVED]).involving(peer))?;
        let mut letters: Vec<_> = entries
            .into_iter()
            .filter(|entry| {
                let from_type = entry.activity.meta_str("from_type");
                entry.activity.to == peer || from_type == "anima" || entry.activity.kind == "dm_received"
            })
            .map(|entry| {
                let me = || self.name().to_string();
                let sent = entry.activity.to == peer;
                let Activity { from, to, content, origin, .. } = entry.activity;
                DirectMessage {
                    at: entry.at,
                    from: if sent && from.is_empty() { me() } else { from },
                    to: if !sent && to.is_empty() { me() } else { to },
                    text: content,
                    origin,
                }
            })
            .filter(|letter| query.sent.is_none_or(|sent| (letter.to == peer) == sent))
            .filter(|letter| query.keyword.as_ref().is_none_or(|word| letter.text.contains(word)))
            .collect();
        let unfiltered = query.sent.is_none() && query.hours.is_none() && query.keyword.is_none();
        if letters.len() < limit && unfiltered {
            let first = letters.first().and_then(|letter| letter.at);
            let mut older = self.older_letters(peer)?;
            older.retain(|letter| first.is_none_or(|first| letter.at.is_some_and(|at| at < first)));
            older.append(&mut letters);
            letters = older;
        }
        letters.drain(..letters.len().saturating_sub(limit));
        Ok(letters)
    }

    fn older_letters(&self, peer: &str) -> Result<Vec<DirectMessage>, FileError> {
        let mut pair = [self.name().as_str(), peer];
        pair.sort_unstable();
        if peer.is_empty() || peer.contains(['/', '\\', '\0']) {
            return Ok(Vec::new());
        }
        let path = self.dir().data().shared().join("dm_logs").join(format!("{}-{}.jsonl", pair[0], pair[1]));
        let (lines, _) = fs::read_lines(&path)?;
        Ok(lines
            .into_iter()
            .filter_map(|line| {
                let Value::Object(mut map) = line.value else { return None };
                Some(DirectMessage {
                    at: self.parse_time(&take(&mut map, "ts")),
                    from: take(&mut map, "from"),
                    to: take(&mut map, "to"),
                    text: take(&mut map, "text"),
                    origin: Origin::default(),
                })
            })
            .collect())
    }
}
