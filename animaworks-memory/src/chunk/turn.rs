//! Records: what was said and what happened, one at a time.

use chrono::{DateTime, Offset, TimeZone, Utc};
use serde_json::Value;

use animaworks_core::{Origin, clock::parse_timestamp};

use super::{Chunk, Kind, Setting};

/// Lines longer than this are passed over, as the log itself does.
const MAX_LINE_CHARS: usize = 40_000;
/// A record is found by its first so many characters.
const MAX_TEXT_CHARS: usize = 4_000;
/// A tool's answer shorter than this says nothing later.
const MIN_RESULT_CHARS: usize = 100;
/// A pause that ends a conversation.
const PAUSE_SECONDS: i64 = 1800;

/// Where reading goes on in a log that has grown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tail {
    /// The first byte that is new.
    pub(crate) from: usize,
    /// Lines before it.
    pub(crate) lines: u32,
    /// The group of the last record before it.
    pub(crate) group: u32,
    /// The moment of the last record before it.
    pub(crate) last: Option<DateTime<Utc>>,
}

/// The records of a JSON-lines file, from where `tail` says. Lines that cannot be read are passed over.
pub(crate) fn lines(setting: Setting<'_>, bytes: &[u8], tail: Tail) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let (mut group, mut last) = (tail.group, tail.last);
    let mut start = tail.from;
    let mut number = tail.lines;
    for raw in bytes.get(tail.from..).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
        number = number.saturating_add(1);
        let here = start;
        start += raw.len();
        let line = String::from_utf8_lossy(raw);
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.chars().nth(MAX_LINE_CHARS).is_some() {
            continue;
        }
        let Ok(Value::Object(record)) = serde_json::from_str::<Value>(line) else { continue };
        let Some((speaker, text)) = said(setting, &record) else { continue };
        let at = moment(setting, &record);
        if let (Some(before), Some(now)) = (last, at)
            && (now - before).num_seconds().abs() > PAUSE_SECONDS
        {
            group += 1;
        }
        last = at.or(last);
        chunks.push(Chunk {
            start: here,
            bytes: raw.len(),
            line: number,
            end_line: number,
            text,
            context: String::new(),
            speaker,
            at: at.or(Some(setting.modified)),
            group,
            important: false,
            origin: record_origin(&record),
        });
    }
    chunks
}

/// Who said what in a record; `None` when it is not for remembering.
fn said(setting: Setting<'_>, record: &serde_json::Map<String, Value>) -> Option<(Option<String>, String)> {
    let word = |key: &str| record.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let content = word("content").or_else(|| word("summary")).or_else(|| word("text"))?;
    if content.trim().is_empty() {
        return None;
    }
    let text: String = content.chars().take(MAX_TEXT_CHARS).collect();
    if setting.kind == Kind::Conversation {
        let speaker = match word("role") {
            Some("assistant") => Some(setting.anima),
            role => word("from").or(role),
        };
        return Some((speaker.map(str::to_owned), text));
    }
    let from = word("from").or_else(|| word("from_person"));
    let speaker = match word("type").or_else(|| word("event"))? {
        "message_received" | "dm_received" => from,
        "response_sent" | "message_sent" | "dm_sent" | "human_notify" => Some(setting.anima),
        "tool_result" if is_telling(word("tool").unwrap_or_default(), content) => word("tool"),
        _ => return None,
    };
    Some((speaker.map(str::to_owned), text))
}

/// Whether a tool's answer is worth finding: not what memory and messages say anyway.
fn is_telling(tool: &str, content: &str) -> bool {
    const ECHOES: &[&str] = &[
        "ToolSearch",
        "read_memory_file",
        "search_memory",
        "write_memory_file",
        "post_channel",
        "send_message",
        "call_human",
        "update_task",
        "archive_memory_file",
    ];
    content.chars().nth(MIN_RESULT_CHARS - 1).is_some() && !ECHOES.contains(&tool) && !tool.starts_with("mcp__aw__")
}

fn moment(setting: Setting<'_>, record: &serde_json::Map<String, Value>) -> Option<DateTime<Utc>> {
    let text = ["ts", "timestamp"].iter().find_map(|key| record.get(*key).and_then(Value::as_str))?;
    let zone = setting.zone.offset_from_utc_datetime(&setting.modified.naive_utc()).fix();
    parse_timestamp(text, zone).map(|at| at.with_timezone(&Utc))
}

/// Where a record says its words come from; silence about a person's own words means the person.
fn record_origin(record: &serde_json::Map<String, Value>) -> Option<Origin> {
    let source = record.get("origin").and_then(Value::as_str).unwrap_or_default();
    let chain = record
        .get("origin_chain")
        .and_then(Value::as_array)
        .map(|links| links.iter().filter_map(Value::as_str).map(str::to_owned).take(Origin::MAX_CHAIN).collect())
        .unwrap_or_default();
    let origin = Origin { source: source.to_owned(), chain };
    if origin != Origin::default() {
        return Some(origin);
    }
    let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
    let role = record.get("role").and_then(Value::as_str).unwrap_or_default();
    match (kind, role) {
        (_, "assistant") | ("response_sent" | "message_sent" | "human_notify", _) => Some(Origin::anima()),
        ("", role) if !role.is_empty() => Some(Origin::human()),
        _ => None,
    }
}

/// The turns of a conversation file that is one JSON document (memory spec §5.1).
pub(crate) fn document(setting: Setting<'_>, text: &str) -> Vec<Chunk> {
    let Ok(Value::Object(file)) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut chunks = Vec::new();
    let mut places = super::lines(text, 0).filter_map(|line| {
        let rest = line.text.trim().strip_prefix("\"content\":")?;
        let value = rest.trim().trim_end_matches(',');
        serde_json::from_str::<String>(value).ok().map(|content| (line.start, line.end, line.number, content))
    });
    let turns = file.get("turns").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for turn in turns {
        let Some(record) = turn.as_object() else { continue };
        let Some((speaker, said)) = said(setting, record) else { continue };
        let content = record.get("content").and_then(Value::as_str).unwrap_or_default();
        // a file that is not printed as we print it has no line of its own for a turn
        let Some((start, end, line, _)) = places.by_ref().find(|(.., found)| found == content) else { break };
        chunks.push(Chunk {
            start,
            bytes: end - start,
            line,
            end_line: line,
            text: said,
            context: String::new(),
            speaker,
            at: moment(setting, record).or(Some(setting.modified)),
            group: 0,
            important: false,
            origin: record_origin(record),
        });
    }
    chunks
}

/// What a record's place in its file says: the text of the record on that line.
pub(crate) fn text_of(setting: Setting<'_>, raw: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(raw);
    let line = line.trim_start_matches('\u{feff}').trim();
    if let Some(value) = line.strip_prefix("\"content\":") {
        let text = serde_json::from_str::<String>(value.trim().trim_end_matches(',')).ok()?;
        return Some(text.chars().take(MAX_TEXT_CHARS).collect());
    }
    match serde_json::from_str::<Value>(line).ok()? {
        Value::Object(record) => said(setting, &record).map(|(_, text)| text),
        _ => None,
    }
}
