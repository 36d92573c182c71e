//! The conversation as a model reads it (memory spec §5.2).

use chrono_tz::Tz;
use serde_json::json;

use super::{Conversation, Turn};
use crate::{
    executor::PromptMessage,
    home::{
        parse_in,
        text::{clip, tail},
    },
    i18n::Locale,
    ids::{CallId, ToolName},
    t,
    tool::ToolCall,
};

/// The newest turns that a model reads.
const SHOWN: usize = 15;
/// The longest answer of its own it reads again.
const MAX_ASSISTANT: usize = 2500;
/// The longest of what others said.
const MAX_OTHER: usize = 800;
/// The most tool calls, over all turns.
const MAX_CALLS: usize = 50;

impl Conversation {
    /// The messages of a prompt: the summary as an exchange, then the newest turns with their tools as calls.
    pub fn messages(&self, locale: Locale) -> Vec<PromptMessage> {
        let mut messages = Vec::new();
        if !self.compressed_summary.trim().is_empty() {
            let text = t!(locale, "memory.conversation.summary", summary = self.compressed_summary);
            messages.push(PromptMessage::User { text, images: Vec::new() });
            let text = t!(locale, "memory.conversation.understood");
            messages.push(PromptMessage::Assistant { text, calls: Vec::new() });
        }
        let shown = self.shown();
        let all: usize = shown.iter().map(|turn| turn.tool_records.len()).sum();
        // the newest calls are the ones worth their room
        let mut skip = all.saturating_sub(MAX_CALLS);
        let mut unnamed = 0;
        for turn in shown {
            if !turn.is_assistant() {
                let text = clip(&turn.content, MAX_OTHER);
                messages.push(PromptMessage::User { text, images: Vec::new() });
                continue;
            }
            let mut calls = Vec::new();
            let mut results = Vec::new();
            for record in &turn.tool_records {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let (Ok(id), Ok(name)) =
                    (call_id(&record.tool_id, &mut unnamed), ToolName::new(sanitised(&record.tool_name)))
                else {
                    continue;
                };
                let args = json!({"_summary": record.input_summary});
                calls.push(ToolCall { id: id.clone(), name: name.clone(), args });
                let text = match record.result_summary.as_str() {
                    "" => t!(locale, "memory.conversation.completed"),
                    result => result.to_owned(),
                };
                results.push(PromptMessage::ToolResult { id, name, text, is_error: record.is_error });
            }
            let text = clip(&turn.content, MAX_ASSISTANT);
            if calls.is_empty() {
                messages.push(PromptMessage::Assistant { text, calls });
            } else {
                // what it called came before what it said
                messages.push(PromptMessage::Assistant { text: String::new(), calls });
                messages.append(&mut results);
                messages.push(PromptMessage::Assistant { text, calls: Vec::new() });
            }
        }
        messages
    }

    /// The same as one text, for models that only read text; the last `max_chars` characters of it.
    pub fn text(&self, zone: Tz, locale: Locale, max_chars: usize) -> String {
        let mut blocks = Vec::new();
        if !self.compressed_summary.trim().is_empty() {
            blocks.push(t!(locale, "memory.conversation.summary", summary = self.compressed_summary));
        }
        for turn in self.shown() {
            let time = parse_in(zone, &turn.timestamp)
                .map_or_else(|| "--:--".to_owned(), |at| at.with_timezone(&zone).format("%H:%M").to_string());
            let max = if turn.is_assistant() { MAX_ASSISTANT } else { MAX_OTHER };
            blocks.push(format!("**[{time}] {}:**\n{}", turn.role, clip(&turn.content, max)));
        }
        tail(&blocks.join("\n\n"), max_chars).to_owned()
    }

    fn shown(&self) -> &[Turn] {
        self.turns.get(self.turns.len().saturating_sub(SHOWN)..).unwrap_or_default()
    }
}

fn sanitised(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).take(128).collect()
}

fn call_id(id: &str, unnamed: &mut usize) -> Result<CallId, crate::ids::BadId> {
    if id.is_empty() {
        *unnamed += 1;
        return CallId::new(format!("hist_{unnamed}"));
    }
    CallId::new(sanitised(id))
}
