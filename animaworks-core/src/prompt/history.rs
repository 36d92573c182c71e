//! The conversation so far, as a model reads it (memory spec §5.2).

use chrono::{DateTime, FixedOffset};

use crate::{
    anima::ToolRecord,
    executor::PromptMessage,
    i18n::Locale,
    ids::{CallId, ToolName},
    t,
    tool::ToolCall,
    units::Tokens,
};

/// One thing that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// Whether the Anima said it.
    pub own: bool,
    /// Who said it.
    pub speaker: String,
    /// What.
    pub text: String,
    /// When.
    pub at: Option<DateTime<FixedOffset>>,
    /// The tools it used with it.
    pub tools: Vec<ToolRecord>,
}

/// At most this many turns are shown.
const TURNS: usize = 15;
/// The Anima's own words are cut to this many characters.
const OWN_CHARS: usize = 2500;
/// Other words are cut to this many characters.
const OTHER_CHARS: usize = 800;
/// At most this many tool calls are shown.
const CALLS: usize = 50;

/// The conversation as messages, oldest first, for engines that take structure. The summary of what was before
/// stands first as something said and acknowledged. `budget` keeps the newest turns that fit.
pub fn history(locale: Locale, summary: &str, past: &[Past], budget: Tokens) -> Vec<PromptMessage> {
    let mut messages = Vec::new();
    if !summary.trim().is_empty() {
        messages.push(user(t!(locale, "prompt.history.summary", summary = summary.trim())));
        messages.push(assistant(t!(locale, "prompt.history.summary_ack"), Vec::new()));
    }
    let mut calls_left = CALLS;
    let mut numbered = 0_u32;
    for turn in newest(past, budget) {
        let text = cut(&turn.text, if turn.own { OWN_CHARS } else { OTHER_CHARS });
        if !turn.own {
            messages.push(user(text));
            continue;
        }
        let records: Vec<&ToolRecord> = turn.tools.iter().take(calls_left).collect();
        calls_left -= records.len();
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for record in records {
            numbered += 1;
            if let Some((call, result)) = replayed(locale, record, numbered) {
                calls.push(call);
                results.push(result);
            }
        }
        if calls.is_empty() {
            messages.push(assistant(text, calls));
        } else {
            // what a tool answered came before the words that rest on it
            messages.push(assistant(String::new(), calls));
            messages.extend(results);
            messages.push(assistant(text, Vec::new()));
        }
    }
    messages
}

/// The conversation as one text, for engines that only take text.
pub fn history_as_text(locale: Locale, summary: &str, past: &[Past], budget: Tokens) -> String {
    let mut blocks = Vec::new();
    if !summary.trim().is_empty() {
        blocks.push(t!(locale, "prompt.history.summary", summary = summary.trim()));
    }
    for turn in newest(past, budget) {
        let at = turn.at.map(|at| format!("[{}] ", at.format("%H:%M"))).unwrap_or_default();
        let text = cut(&turn.text, if turn.own { OWN_CHARS } else { OTHER_CHARS });
        blocks.push(format!("**{at}{}:**\n{text}", turn.speaker));
    }
    blocks.join("\n\n")
}

/// The newest turns within both limits, oldest first.
fn newest(past: &[Past], budget: Tokens) -> impl Iterator<Item = &Past> {
    let mut spent = 0_u32;
    let kept = past
        .iter()
        .rev()
        .take(TURNS)
        .take_while(|turn| {
            spent = spent.saturating_add(Tokens::estimate(&turn.text).0.min(OWN_CHARS as u32));
            spent <= budget.0
        })
        .count();
    past.iter().skip(past.len() - kept)
}

fn replayed(locale: Locale, record: &ToolRecord, number: u32) -> Option<(ToolCall, PromptMessage)> {
    // an id of another version may hold anything
    let id: String = record.tool_id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect();
    let id = CallId::new(if id.is_empty() { format!("hist_{number}") } else { format!("{id}_{number}") }).ok()?;
    let name = ToolName::new(&record.tool_name).ok()?;
    let text = match record.result_summary.trim() {
        "" => t!(locale, "prompt.history.completed"),
        result => result.to_owned(),
    };
    let args = serde_json::json!({"_summary": record.input_summary});
    let call = ToolCall { id: id.clone(), name: name.clone(), args };
    Some((call, PromptMessage::ToolResult { id, name, text, is_error: record.is_error }))
}

fn user(text: String) -> PromptMessage {
    PromptMessage::User { text, images: Vec::new() }
}

fn assistant(text: String, calls: Vec<ToolCall>) -> PromptMessage {
    PromptMessage::Assistant { text, calls }
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
