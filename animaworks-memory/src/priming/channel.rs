//! The channels that only read files: who speaks, what happened, what is to be done, what was said to others.

use std::{collections::BTreeSet, sync::Arc};

use animaworks_core::{
    Cue, MemoryError, Origin, ResultExt, Tokens, Trust,
    fs::{self, FileError, Jail},
    home::activity::{ActivityQuery, LoggedActivity, Room as ActivityRoom, render},
    home::task_book::{FileTaskBook, Live, priming},
    ids::RandomIds,
    memory::{PrimingChannel, PrimingSection},
    t,
    task::Task,
    trigger::TriggerKind,
};
use chrono::Duration;
use futures_util::future::BoxFuture;

use super::{budget::Room, section};
use crate::{front::Front, index::plan::text_of, store::Inner, text::terms::query_terms};

/// What a channel that reads files is: a function that blocks.
type Channel = fn(&Inner, &Cue, &Room) -> Result<Vec<PrimingSection>, MemoryError>;

/// Runs a channel off the async workers.
pub(crate) fn blocking(
    inner: &Arc<Inner>,
    cue: &Cue,
    room: &Room,
    channel: Channel,
) -> BoxFuture<'static, Result<Vec<PrimingSection>, MemoryError>> {
    let (inner, cue, room) = (Arc::clone(inner), cue.clone(), room.clone());
    Box::pin(fs::blocking(move || channel(&inner, &cue, &room)))
}

/// A: the profile of whoever speaks.
pub(crate) fn sender_profile(inner: &Inner, cue: &Cue, room: &Room) -> Result<Vec<PrimingSection>, MemoryError> {
    let users = inner.reading.dir.data().users();
    // a name from another platform is only a name, never a way through directories
    let is_name = !cue.sender.is_empty() && !cue.sender.contains(['/', '\\', '\0']) && !cue.sender.starts_with('.');
    if !is_name || !users.is_dir() {
        return Ok(Vec::new());
    }
    let file = match Jail::new(&users)?.resolve(&format!("{}/index.md", cue.sender)) {
        Ok(file) => file,
        Err(FileError::Outside { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let Some(text) = fs::read_text_if_exists(&file)? else { return Ok(Vec::new()) };
    let front = Front::read(&text);
    let body = head(text.get(front.body_start..).unwrap_or_default().trim(), room.sender);
    let origin = front.origin();
    let trust = if origin == Origin::default() { Trust::Medium } else { origin.trust().min(Trust::Medium) };
    Ok(vec![section(PrimingChannel::SenderProfile, body, trust, origin)])
}

/// The beginning of a text that fits, cut at the end of a sentence or a line where there is one near.
pub(crate) fn head(text: &str, room: Tokens) -> String {
    let fits = room.head(text);
    if fits.len() == text.len() {
        return text.to_owned();
    }
    let far = fits.len() * 4 / 5;
    let end = fits.char_indices().rev().take_while(|(at, _)| *at >= far).find(|(_, c)| matches!(c, '。' | '.' | '\n'));
    match end {
        Some((at, c)) => fits.get(..at + c.len_utf8()).unwrap_or(fits).trim_end().to_owned(),
        None => {
            let shorter = room.saturating_sub(Tokens(1)).head(text);
            format!("{}...", shorter.trim_end())
        }
    }
}

/// Events that say nothing about what matters to a turn.
const NOISE: &[&str] = &["tool_use", "tool_result", "heartbeat_start", "heartbeat_reflection"];
/// More of them, where a person speaks.
const CHAT_NOISE: &[&str] = &["memory_write", "cron_executed", "heartbeat_end"];
/// Events that are looked at, and that are kept.
const LOOKED_AT: usize = 100;
const KEPT: usize = 50;

/// B: what happened in the last two days.
pub(crate) fn recent_activity(inner: &Inner, cue: &Cue, room: &Room) -> Result<Vec<PrimingSection>, MemoryError> {
    let chat = cue.trigger == TriggerKind::Chat;
    let mut entries = inner.home.recent(2, LOOKED_AT)?;
    entries.retain(|entry| {
        let kind = entry.activity.kind.as_str();
        let noise = NOISE.contains(&kind) || kind.starts_with("inbox_processing_");
        !(noise || chat && CHAT_NOISE.contains(&kind))
    });
    let keywords: BTreeSet<String> = query_terms(&cue.message).into_iter().map(|term| term.key).take(10).collect();
    let mut scored: Vec<(f32, LoggedActivity)> =
        entries.into_iter().map(|entry| (relevance(&entry, cue, &keywords), entry)).collect();
    if scored.len() > KEPT {
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        scored.truncate(KEPT);
    }
    let mut entries: Vec<LoggedActivity> = scored.into_iter().map(|(_, entry)| entry).collect();
    entries.sort_by_key(|entry| (entry.at, entry.date, entry.line));
    let posts = board_posts(inner, cue);
    let boards = head_lines(&posts, Tokens(room.activity.0 / 4));
    let left = room.activity.saturating_sub(Tokens::estimate(&boards));
    let mut body =
        render(&entries, inner.reading.zone, cue.locale, ActivityRoom::Tokens(left.saturating_sub(Tokens(1))));
    if !boards.is_empty() {
        if !body.is_empty() {
            body.push('\n');
        }
        body.push_str(&boards);
    }
    Ok(vec![section(PrimingChannel::RecentActivity, body, Trust::Untrusted, Origin::default())])
}

/// How much an event has to do with the turn.
fn relevance(entry: &LoggedActivity, cue: &Cue, keywords: &BTreeSet<String>) -> f32 {
    let activity = &entry.activity;
    let own = matches!(activity.kind.as_str(), "message_sent" | "response_sent");
    let human =
        activity.meta_str("from_type") == "human" || activity.origin.chain.iter().any(|link| link == Origin::HUMAN);
    let mut score = if own || human { 15.0 } else { 0.0 };
    if !cue.sender.is_empty() && (activity.from == cue.sender || activity.to == cue.sender) {
        score += 10.0;
    }
    let words = query_terms(activity.words());
    score += 3.0 * words.iter().filter(|term| keywords.contains(&term.key)).count() as f32;
    let age_hours = entry.at.map_or(48.0, |at| (cue.now.fixed_offset() - at).num_minutes().max(0) as f32 / 60.0);
    score + 10.0 * (-age_hours / 12.0).exp()
}

/// So many posts of boards are shown.
const POSTS: usize = 15;

/// The newest posts on boards this Anima may read, oldest first.
fn board_posts(inner: &Inner, cue: &Cue) -> Vec<String> {
    let directory = inner.reading.dir.data().shared().join("channels");
    let me = inner.reading.dir.name().as_str();
    let mention = format!("@{me}");
    let mut posts = Vec::new();
    let Ok(entries) = fs_err::read_dir(&directory) else { return Vec::new() };
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.log_err("list boards")?.path())).collect();
    files.sort();
    for file in files {
        let Some(board) = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"))
        else {
            continue;
        };
        if !may_read(&directory.join(format!("{board}.meta.json")), me) {
            continue;
        }
        let Some((lines, _)) = fs::read_lines(&file).log_err("read a board") else { continue };
        let count = lines.len();
        for (at, line) in lines.into_iter().enumerate() {
            let word =
                |key: &str| line.value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            let (from, text) = (word("from"), word("text"));
            let Some(when) = inner.home.parse_time(&word("ts")) else { continue };
            let age = cue.now.fixed_offset() - when;
            let shown = at + 5 >= count && age <= Duration::days(2)
                || word("source") == "human" && age <= Duration::hours(24)
                || text.contains(&mention) && age <= Duration::days(7);
            if shown && from != me {
                let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
                let local = when.with_timezone(&inner.reading.zone).format("%m-%d %H:%M");
                posts.push((when, format!("[{local}] #{board} {from}: {text}")));
            }
        }
    }
    posts.sort();
    posts.drain(..posts.len().saturating_sub(POSTS));
    posts.into_iter().map(|(_, line)| line).collect()
}

/// Whether an Anima may read a board. Facts that cannot be read are no permission.
fn may_read(meta: &std::path::Path, me: &str) -> bool {
    let Some(text) = fs::read_text_if_exists(meta).log_err("read who may use a board") else { return false };
    let Some(text) = text else { return true };
    let Some(meta) = serde_json::from_str::<serde_json::Value>(&text).log_err("read who may use a board") else {
        return false;
    };
    let members: Vec<&str> = meta
        .get("members")
        .and_then(serde_json::Value::as_array)
        .map(|all| all.iter().filter_map(serde_json::Value::as_str).collect())
        .unwrap_or_default();
    let closed = meta.get("closed").and_then(serde_json::Value::as_bool).unwrap_or(false);
    !closed && (members.is_empty() || members.contains(&me))
}

/// The last lines that fit.
fn head_lines(lines: &[String], room: Tokens) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut left = room;
    for line in lines.iter().rev() {
        let cost = Tokens::estimate(line) + Tokens(1);
        if cost > left {
            break;
        }
        left = left.saturating_sub(cost);
        kept.push(line);
    }
    kept.reverse();
    kept.join("\n")
}

/// E: what is to be done.
pub(crate) fn pending_tasks(inner: &Inner, cue: &Cue, room: &Room) -> Result<Vec<PrimingSection>, MemoryError> {
    let dir = &inner.reading.dir;
    let book = FileTaskBook::new(dir.data().clone(), inner.reading.zone, Arc::clone(&inner.clock), Arc::new(RandomIds));
    let tasks = book.queue(dir.name()).list().map_err(|error| MemoryError::Other(Box::new(error)))?;
    let live = |task: &Task| book.live(task).log_err("look after a delegated task").unwrap_or(Live::Unknown);
    let owed = priming(&tasks, cue.now, cue.locale, room.tasks, &live);
    let left = room.tasks.saturating_sub(Tokens::estimate(&owed) + Tokens(1));
    let results = head_lines(&recent_results(inner)?, left);
    let body = [owed, results].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    Ok(vec![section(PrimingChannel::PendingTasks, body, Trust::Medium, Origin::default())])
}

/// What became of tasks that ended in the last day: the five newest, oldest first.
fn recent_results(inner: &Inner) -> Result<Vec<String>, MemoryError> {
    let directory = inner.reading.dir.state("task_results");
    let entries = match fs_err::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io("list", &directory, error).into()),
    };
    let day_ago = inner.clock.now() - Duration::hours(24);
    let mut results = Vec::new();
    for entry in entries {
        let Some(entry) = entry.log_err("list task results") else { continue };
        let path = entry.path();
        let modified =
            entry.metadata().ok().and_then(|facts| facts.modified().ok()).map(chrono::DateTime::<chrono::Utc>::from);
        let Some(modified) = modified.filter(|at| *at >= day_ago) else { continue };
        let Some(id) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".md")) else {
            continue;
        };
        let Some(bytes) = fs_err::read(&path).log_err("read a task result") else { continue };
        let text: String = text_of(&bytes).split_whitespace().collect::<Vec<_>>().join(" ").chars().take(150).collect();
        results.push((modified, format!("- [{id}] {text}")));
    }
    results.sort();
    results.drain(..results.len().saturating_sub(5));
    Ok(results.into_iter().map(|(_, line)| line).collect())
}

/// What it said to others within two hours, so that it does not say it again.
pub(crate) fn recent_outbound(inner: &Inner, cue: &Cue, _room: &Room) -> Result<Vec<PrimingSection>, MemoryError> {
    let query =
        ActivityQuery::since((cue.now - Duration::hours(2)).fixed_offset()).kinds(&["channel_post", "message_sent"]);
    let mut entries = inner.home.load(&query)?;
    entries.drain(..entries.len().saturating_sub(3));
    let mut lines = Vec::new();
    for entry in &entries {
        let activity = &entry.activity;
        let time =
            entry.at.map(|at| at.with_timezone(&inner.reading.zone).format("%H:%M").to_string()).unwrap_or_default();
        let text: String =
            activity.content.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        lines.push(if activity.kind == "channel_post" {
            t!(cue.locale, "memory.priming.posted", time = time, board = activity.channel, text = text)
        } else {
            t!(cue.locale, "memory.priming.sent", time = time, to = activity.to, text = text)
        });
    }
    Ok(vec![section(PrimingChannel::RecentOutbound, lines.join("\n"), Trust::Trusted, Origin::anima())])
}
