//! One letter as JSON (memory spec §10.4).

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    clock::timestamp,
    error::ResultExt,
    home::{
        parse_in,
        text::{stringify, take},
    },
    ids::{AnimaName, MessageId, ThreadId},
    message::{Image, Intent, Message, SenderKind},
    trust::Origin,
};

/// The name of a letter's file. An id that is no plain name is replaced by its hash.
pub(super) fn file_name(id: &MessageId) -> String {
    let plain = id.as_str().chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if plain {
        return format!("{id}.json");
    }
    let hash = Sha256::digest(id.as_str().as_bytes());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.json")
}

pub(super) fn to_value(letter: &Message, to: &AnimaName, at: DateTime<Tz>) -> Value {
    let mut chain = letter.origin.chain.clone();
    if !letter.origin.source.is_empty() {
        chain.push(letter.origin.source.clone());
    }
    let source = match letter.from_kind {
        SenderKind::Human => "human",
        SenderKind::Anima => "anima",
        SenderKind::System => "system",
    };
    json!({
        "id": letter.id,
        "thread_id": letter.thread,
        "reply_to": letter.reply_to.as_ref().map(MessageId::as_str).unwrap_or_default(),
        "from_person": letter.from,
        "to_person": to,
        "type": "message",
        "content": letter.text,
        "attachments": letter.images,
        "intent": letter.intent.map(Intent::as_str).unwrap_or_default(),
        "timestamp": timestamp(&at),
        "source": source,
        "source_message_id": "",
        "external_user_id": "",
        "external_channel_id": "",
        "external_thread_ts": "",
        "origin_chain": chain,
        "meta": {},
    })
}

/// Reads a letter of any version; the error says in English what is wrong with it.
pub(super) fn from_value(value: Value, file: &str, zone: Tz) -> Result<Message, String> {
    let Value::Object(mut map) = value else { return Err("not a JSON object".to_owned()) };
    let stem = file.strip_suffix(".json").unwrap_or(file);
    let id = match take(&mut map, "id") {
        id if id.is_empty() => stem.to_owned(),
        id => id,
    };
    let id = MessageId::new(id).map_err(|error| error.to_string())?;
    let from = either(&mut map, "from_person", "from");
    if from.is_empty() {
        return Err("no sender".to_owned());
    }
    let source = take(&mut map, "source");
    let chain: Vec<String> = match map.shift_remove("origin_chain") {
        Some(Value::Array(links)) => links.into_iter().map(stringify).collect(),
        _ => Vec::new(),
    };
    let (from_kind, origin) = sender(&source);
    let mut origin = Origin { source: origin.to_owned(), chain };
    // we write the source itself as the last link
    origin.chain.pop_if(|last| *last == origin.source);
    let at = parse_in(zone, &either(&mut map, "timestamp", "ts")).map(|at| at.with_timezone(&Utc));
    let reply_to = take(&mut map, "reply_to");
    let images = match map.shift_remove("attachments") {
        Some(Value::Array(items)) => items
            .into_iter()
            .filter_map(|item| {
                serde_json::from_value::<Image>(item).ignore("an attachment of another sort stays in the file")
            })
            .collect(),
        _ => Vec::new(),
    };
    Ok(Message {
        id,
        from,
        from_kind,
        thread: ThreadId::new(take(&mut map, "thread_id")).unwrap_or_else(|_| ThreadId::main()),
        text: take(&mut map, "content"),
        intent: match take(&mut map, "intent").as_str() {
            "report" => Some(Intent::Report),
            "delegation" => Some(Intent::Delegation),
            "question" => Some(Intent::Question),
            _ => None,
        },
        reply_to: MessageId::new(reply_to).ignore("most letters answer nothing"),
        origin,
        at,
        images,
    })
}

fn either(map: &mut Map<String, Value>, name: &str, older: &str) -> String {
    let old = take(map, older);
    let new = take(map, name);
    if new.is_empty() { old } else { new }
}

/// Who speaks and how far to believe it, by the `source` of a letter (memory spec §20).
fn sender(source: &str) -> (SenderKind, &str) {
    match source {
        "anima" => (SenderKind::Anima, Origin::ANIMA),
        "human" => (SenderKind::Human, Origin::HUMAN),
        "system" => (SenderKind::System, Origin::SYSTEM),
        "slack" | "chatwork" | "googlechat" | "discord" | "zoom" | "line" | "telegram" => {
            (SenderKind::Human, Origin::EXTERNAL_PLATFORM)
        }
        "" => (SenderKind::Anima, ""),
        other => (SenderKind::Human, other),
    }
}
