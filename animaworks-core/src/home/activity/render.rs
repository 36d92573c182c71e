//! The log as an Anima remembers it: grouped, short, with pointers to the lines (memory spec §2.6).

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, NaiveDate};
use chrono_tz::Tz;
use serde_json::Value;

use super::{
    Activity,
    read::{LoggedActivity, current_name},
};
use crate::{
    home::text::{clip, head, one_line},
    i18n::Locale,
    t,
    units::Tokens,
};

/// A pause that ends a group.
const GAP: Duration = Duration::minutes(30);
/// The longest text of a single event, in characters.
const TRIM: usize = 200;

/// How much may be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// In budget tokens.
    Tokens(Tokens),
    /// In characters, as the Python version counts (four to a token).
    Chars(usize),
}

/// Renders events (oldest first) into the room there is; when it is short the oldest are left out.
pub fn render(entries: &[LoggedActivity], zone: Tz, locale: Locale, room: Room) -> String {
    let mut kept = Vec::new();
    let mut left = match room {
        Room::Tokens(tokens) => tokens.get(),
        Room::Chars(chars) => chars,
    };
    for group in groups(entries).into_iter().rev() {
        let text = group.render(zone, locale);
        let cost = match room {
            Room::Tokens(_) => Tokens::estimate(&text).get() + 1,
            Room::Chars(_) => text.chars().count() + 1,
        };
        if cost > left {
            break;
        }
        left -= cost;
        kept.push(text);
    }
    kept.reverse();
    kept.join("\n")
}

/// What events are told together.
#[derive(Debug, PartialEq, Eq)]
enum Family {
    /// Letters with one colleague.
    Letters(String),
    /// Heartbeats in a row.
    Heartbeats,
    /// Runs of one job in a row.
    Job(String),
    /// Posts and looks on one board.
    Board(String),
    /// Everything else stands alone.
    Alone,
}

impl Family {
    fn of(activity: &Activity) -> Self {
        match activity.kind.as_str() {
            Activity::MESSAGE_SENT | "dm_sent" => Self::Letters(activity.to.clone()),
            "dm_received" => Self::Letters(activity.from.clone()),
            Activity::MESSAGE_RECEIVED if activity.meta_str("from_type") == "anima" => {
                Self::Letters(activity.from.clone())
            }
            Activity::HEARTBEAT_START | Activity::HEARTBEAT_END => Self::Heartbeats,
            Activity::CRON_EXECUTED => Self::Job(activity.meta_str("task_name").to_owned()),
            Activity::CHANNEL_POST | Activity::CHANNEL_READ => Self::Board(activity.channel.clone()),
            _ => Self::Alone,
        }
    }

    /// Whether a pause ends the group.
    fn minds_gaps(&self) -> bool {
        matches!(self, Self::Letters(_) | Self::Board(_))
    }
}

struct Group<'a> {
    family: Family,
    entries: Vec<&'a LoggedActivity>,
}

fn groups(entries: &[LoggedActivity]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for entry in entries {
        let family = Family::of(&entry.activity);
        let joins = groups.last().is_some_and(|open| {
            let close = match (open.entries.last().and_then(|last| last.at), entry.at) {
                (Some(before), Some(now)) => now - before <= GAP,
                _ => true,
            };
            family != Family::Alone && open.family == family && (close || !family.minds_gaps())
        });
        match groups.last_mut() {
            Some(open) if joins => open.entries.push(entry),
            _ => groups.push(Group { family, entries: vec![entry] }),
        }
    }
    groups
}

impl Group<'_> {
    fn render(&self, zone: Tz, locale: Locale) -> String {
        let time = self.time(zone);
        match &self.family {
            Family::Letters(peer) => {
                let mut text = format!("[{time}] DM {peer}:");
                for entry in &self.entries {
                    let activity = &entry.activity;
                    let arrow = if current_name(&activity.kind) == Activity::MESSAGE_SENT { "MSG>" } else { "MSG<" };
                    let words =
                        if activity.summary.is_empty() { head(&activity.content, 100) } else { &activity.summary };
                    text.push_str(&format!("\n  {arrow} {}", one_line(words)));
                }
                format!("{text}\n  -> {}", self.pointer())
            }
            Family::Heartbeats => self.heartbeats(zone, locale),
            Family::Job(job) => {
                let code = self.entries.iter().rev().find_map(|entry| entry.activity.meta.get("exit_code"));
                let code = code.filter(|code| !code.is_null()).map(|code| format!(": exit={code}"));
                format!("[{time}] CRON {job}{}\n  -> {}", code.unwrap_or_default(), self.pointer())
            }
            Family::Board(board) => {
                let count = t!(locale, "memory.activity.items", count = self.entries.len());
                let posts: Vec<_> = self
                    .entries
                    .iter()
                    .map(|entry| {
                        let words = one_line(head(entry.activity.words(), 50));
                        format!("{}→{words}", entry.activity.from)
                    })
                    .collect();
                format!("[{time}] #{board} ({count}): {}\n  -> {}", posts.join(", "), self.pointer())
            }
            Family::Alone => match self.entries.first() {
                Some(entry) => single(entry, &time, locale),
                None => String::new(),
            },
        }
    }

    fn heartbeats(&self, zone: Tz, locale: Locale) -> String {
        let reflection = self.entries.iter().rev().find_map(|entry| {
            let text = entry.activity.content.as_str();
            let found = reflection(text).or_else(|| reflection(&entry.activity.summary))?;
            Some((clock(entry.at.map(|at| at.with_timezone(&zone))), found))
        });
        if let Some((time, reflection)) = reflection {
            let label = t!(locale, "memory.activity.reflection");
            let words = one_line(reflection);
            let words = if words.chars().count() > 100 { format!("{}...", head(&words, 97)) } else { words };
            return format!("[{time}] {label}: {words}");
        }
        let time = self.time(zone);
        let words = self.entries.iter().rev().map(|entry| entry.activity.words()).find(|words| !words.is_empty());
        match words {
            Some(words) => format!("[{time}] HB: {}", one_line(head(words, 50))),
            None => format!("[{time}] HB"),
        }
    }

    fn time(&self, zone: Tz) -> String {
        let at =
            |entry: Option<&&LoggedActivity>| clock(entry.and_then(|entry| entry.at).map(|at| at.with_timezone(&zone)));
        let (first, last) = (at(self.entries.first()), at(self.entries.last()));
        if first == last { first } else { format!("{first}-{last}") }
    }

    /// Where the lines are: `activity_log/2026-03-31.jsonl#L3-4`.
    fn pointer(&self) -> String {
        let mut days: BTreeMap<NaiveDate, Vec<u32>> = BTreeMap::new();
        for entry in &self.entries {
            days.entry(entry.date).or_default().push(entry.line);
        }
        let mut parts = Vec::new();
        for (date, mut lines) in days {
            lines.sort_unstable();
            lines.dedup();
            let contiguous = lines.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b));
            let lines = match (lines.first(), lines.last()) {
                (Some(first), Some(last)) if contiguous && first != last => format!("{first}-{last}"),
                _ => lines.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            };
            parts.push(format!("activity_log/{date}.jsonl#L{lines}"));
        }
        parts.join(" + ")
    }
}

fn clock(at: Option<DateTime<Tz>>) -> String {
    at.map_or_else(|| "--:--".to_owned(), |at| at.format("%H:%M").to_string())
}

/// What stands between the tags of a reflection.
fn reflection(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("[REFLECTION]")?;
    let inner = rest.split_once("[/REFLECTION]").map_or(rest, |(inner, _)| inner).trim();
    (!inner.is_empty()).then_some(inner)
}

fn single(entry: &LoggedActivity, time: &str, locale: Locale) -> String {
    let activity = &entry.activity;
    match activity.kind.as_str() {
        Activity::TOOL_RESULT => return tool_result(activity, time, locale),
        Activity::HUMAN_NOTIFY => {
            let subject = match activity.meta_str("subject") {
                "" => activity
                    .words()
                    .lines()
                    .map(|line| line.trim_start_matches('#').trim())
                    .find(|line| !line.is_empty()),
                subject => Some(subject),
            };
            let via = if activity.via.is_empty() { String::new() } else { format!("(via:{})", activity.via) };
            let subject = one_line(head(subject.unwrap_or_default(), 120));
            return format!("[{time}] NTFY {}{via}: {subject} -> {}#L{}", activity.kind, entry.file(), entry.line);
        }
        _ => {}
    }
    let parts: Vec<_> = [
        ("from:", &activity.from),
        ("to:", &activity.to),
        ("#", &activity.channel),
        ("tool:", &activity.tool),
        ("via:", &activity.via),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(label, value)| format!("{label}{value}"))
    .collect();
    let context = if parts.is_empty() { String::new() } else { format!("({})", parts.join(", ")) };
    let start = format!("[{time}] {} {}{context}", label(&activity.kind), activity.kind);
    let words = activity.words().trim();
    if words.is_empty() {
        return start;
    }
    match trimmed(words) {
        Some(short) => format!("{start}: {}\n  -> {}", one_line(&short), entry.file()),
        None => format!("{start}: {}", one_line(words)),
    }
}

/// A text cut at the end of a sentence when one ends in its second half; `None` when it is short enough.
fn trimmed(words: &str) -> Option<String> {
    let window = head(words, TRIM);
    if window.len() == words.len() {
        return None;
    }
    let cut = [("。", '。'.len_utf8()), ("\n", 0), (". ", 1)]
        .into_iter()
        .filter_map(|(mark, kept)| window.rfind(mark).map(|at| at + kept))
        .max()
        .and_then(|end| window.get(..end))
        .filter(|cut| cut.chars().count() * 2 > TRIM);
    Some(cut.map_or_else(|| clip(words, TRIM - 20), str::to_owned))
}

fn tool_result(activity: &Activity, time: &str, locale: Locale) -> String {
    let tool = &activity.tool;
    let failed = activity.meta_str("result_status") == "fail"
        || activity.meta.get("is_error").and_then(Value::as_bool).unwrap_or_default();
    if failed {
        return format!("[{time}] TRES {tool} → fail: {}", one_line(head(activity.words(), 60)));
    }
    let mut sizes = Vec::new();
    if let Some(count) = activity.meta.get("result_count").and_then(Value::as_u64) {
        sizes.push(t!(locale, "memory.activity.items", count = count));
    }
    if let Some(bytes) = activity.meta.get("result_bytes").and_then(Value::as_u64) {
        sizes.push(size(bytes));
    }
    let sizes = if sizes.is_empty() { String::new() } else { format!(" ({})", sizes.join(", ")) };
    format!("[{time}] TRES {tool} → ok{sizes}")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.1}KB", bytes as f64 / 1024.0),
        _ => format!("{:.1}MB", bytes as f64 / 1_048_576.0),
    }
}

fn label(kind: &str) -> &'static str {
    match kind {
        Activity::MESSAGE_RECEIVED | "dm_received" => "MSG<",
        Activity::MESSAGE_SENT | "dm_sent" => "MSG>",
        Activity::RESPONSE_SENT => "RESP",
        Activity::CHANNEL_READ => "CH.R",
        Activity::CHANNEL_POST => "CH.W",
        Activity::HUMAN_NOTIFY => "NTFY",
        Activity::TOOL_USE => "TOOL",
        Activity::TOOL_RESULT => "TRES",
        Activity::HEARTBEAT_START | Activity::HEARTBEAT_END => "HB",
        Activity::CRON_EXECUTED => "CRON",
        Activity::MEMORY_WRITE => "MEM",
        Activity::ERROR => "ERR",
        Activity::ISSUE_RESOLVED => "RSLV",
        Activity::TASK_CREATED => "TSK+",
        Activity::TASK_UPDATED => "TSK~",
        _ => "•",
    }
}
