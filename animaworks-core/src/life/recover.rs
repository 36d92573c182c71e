//! Finds what an earlier life left unfinished and puts it away, once, without a model (memory spec §3.3).

use crate::{
    anima::ToolRecord,
    fs::FileError,
    home::{
        AnimaHome,
        activity::{Activity, ActivityQuery},
        conversation::{Turn, Unanswered, mark_interrupted},
        journal::Recovered,
    },
    ids::{MessageId, ThreadId, TurnId},
    t,
    trigger::SessionKind,
    trust::Origin,
};

/// Something that was found and put away.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) turn: Option<TurnId>,
    pub(super) thread: ThreadId,
    pub(super) trigger: String,
    pub(super) text: String,
}

/// Puts away everything an earlier life left. Blocks.
///
/// # Errors
///
/// [`FileError`]; what could not be put away stays where it is and is found again.
pub(super) fn recover(home: &AnimaHome) -> Result<Vec<Found>, FileError> {
    let mut found = Vec::new();
    // accepted, and the process died before the activity log had it; a summary of the conversation keeps no words
    for open in home.unanswered()? {
        log_message_once(home, &open)?;
    }
    for orphan in home.orphans()? {
        found.extend(put_away(home, &orphan)?);
    }
    // accepted, and the process died before a word of answer: the person is told instead of being left waiting
    for open in home.unanswered()? {
        let turn = Turn::assistant(mark_interrupted("", home.locale()));
        if home.answer(&open.thread, &open.message, turn)? {
            let turn = TurnId::new(open.message.as_str()).ok();
            let trigger = format!("message:{}", open.message);
            log_once(home, open.message.as_str(), &trigger, 0)?;
            found.push(Found { turn, thread: open.thread, trigger, text: String::new() });
        }
    }
    Ok(found)
}

/// Puts one broken reply away and removes its journal.
///
/// # Errors
///
/// [`FileError`]; the journal stays then.
pub(super) fn put_away(home: &AnimaHome, orphan: &Recovered) -> Result<Option<Found>, FileError> {
    let mut kept = false;
    if !orphan.is_complete {
        kept = match orphan.kind {
            SessionKind::Chat => into_conversation(home, orphan)?,
            SessionKind::Heartbeat if orphan.is_empty() => false,
            SessionKind::Heartbeat => {
                home.write_recovery_note(orphan)?;
                true
            }
            SessionKind::Inbox | SessionKind::Task if orphan.is_empty() => false,
            SessionKind::Inbox | SessionKind::Task => {
                home.persist_recovered(orphan)?;
                true
            }
        };
        if kept || !orphan.is_empty() {
            log_once(home, &orphan.session_id, &orphan.trigger, orphan.text.chars().count())?;
        }
    }
    home.confirm_recovered(orphan)?;
    Ok(kept.then(|| Found {
        turn: TurnId::new(&orphan.session_id).ok(),
        thread: orphan.thread.clone(),
        trigger: orphan.trigger.clone(),
        text: orphan.text.clone(),
    }))
}

/// The partial reply goes behind its message, marked; whether it was not there yet.
fn into_conversation(home: &AnimaHome, orphan: &Recovered) -> Result<bool, FileError> {
    let tools: Vec<ToolRecord> = orphan
        .calls
        .iter()
        .map(|call| ToolRecord {
            tool_name: call.tool.clone(),
            tool_id: call.id.clone().unwrap_or_default(),
            input_summary: call.args_summary.clone(),
            // without a result it may or may not have happened, and the Anima should know
            result_summary: call.result_summary.clone().unwrap_or_else(|| t!(home.locale(), "core.life.maybe_done")),
            is_error: false,
        })
        .collect();
    let conversation = home.conversation(&orphan.thread)?.conversation;
    let message = MessageId::new(&orphan.session_id).ok();
    let ours = conversation.turns.iter().any(|turn| turn.message_id() == Some(orphan.session_id.as_str()));
    match message {
        Some(id) if ours => {
            let text = super::clean(&orphan.text);
            let turn = Turn::assistant(mark_interrupted(&text, home.locale())).with_tools(tools);
            home.answer(&orphan.thread, &id, turn)
        }
        // a journal of another version names no message of ours
        _ => home.append_interrupted(&orphan.thread, &super::clean(&orphan.text), tools),
    }
}

/// The activity log has every message that was accepted.
fn log_message_once(home: &AnimaHome, open: &Unanswered) -> Result<(), FileError> {
    let id = open.message.as_str();
    let is_known = home.load(&ActivityQuery::days(3))?.iter().any(|logged| {
        logged.activity.kind == Activity::MESSAGE_RECEIVED && logged.activity.meta_str("message_id") == id
    });
    let turns = home.conversation(&open.thread)?.conversation.turns;
    let Some(turn) = turns.into_iter().find(|turn| turn.message_id() == Some(id)).filter(|_| !is_known) else {
        return Ok(());
    };
    let (kind, origin) = if turn.role == Turn::HUMAN { ("human", Origin::human()) } else { ("anima", Origin::anima()) };
    let line = Activity::new(Activity::MESSAGE_RECEIVED)
        .content(turn.content)
        .from(turn.role)
        .channel("chat")
        .origin(origin)
        .meta("from_type", kind)
        .meta("thread_id", open.thread.as_str())
        .meta("message_id", id);
    home.log(line).map(drop)
}

/// One line in the activity log for each turn that broke off, however often it is found.
fn log_once(home: &AnimaHome, turn: &str, trigger: &str, characters: usize) -> Result<(), FileError> {
    const PHASE: &str = "recovered";
    let known = home.load(&ActivityQuery::days(3))?;
    let is_known = known.iter().any(|logged| {
        logged.activity.kind == Activity::ERROR
            && logged.activity.meta_str("phase") == PHASE
            && logged.activity.meta_str("turn") == turn
    });
    if is_known {
        return Ok(());
    }
    let summary = t!(home.locale(), "core.life.recovered", trigger = trigger, characters = characters);
    let line = Activity::new(Activity::ERROR)
        .summary(summary)
        .meta("phase", PHASE)
        .meta("turn", turn)
        .meta("trigger", trigger)
        .meta("characters", characters);
    home.log(line).map(drop)
}
