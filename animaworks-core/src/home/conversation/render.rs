//! The conversation as a model reads it (memory spec §5.2).

use chrono_tz::Tz;

use super::Conversation;
use crate::{
    executor::PromptMessage,
    home::{parse_in, text::tail},
    i18n::Locale,
    prompt::{Past, history, history_as_text},
    units::Tokens,
};

impl Conversation {
    /// What was said, as the prompt takes it.
    pub fn past(&self, zone: Tz) -> Vec<Past> {
        let past = |turn: &super::Turn| Past {
            own: turn.is_assistant(),
            speaker: turn.role.clone(),
            text: turn.content.clone(),
            at: parse_in(zone, &turn.timestamp).map(|at| at.with_timezone(&zone).fixed_offset()),
            tools: turn.tool_records.iter().map(super::ToolNote::record).collect(),
        };
        self.turns.iter().map(past).collect()
    }

    /// The messages of a prompt: the summary as an exchange, then the newest turns with their tools as calls.
    pub fn messages(&self, zone: Tz, locale: Locale, budget: Tokens) -> Vec<PromptMessage> {
        history(locale, &self.compressed_summary, &self.past(zone), budget)
    }

    /// The same as one text, for models that only read text; the last `max_chars` characters of it.
    pub fn text(&self, zone: Tz, locale: Locale, max_chars: usize) -> String {
        let text = history_as_text(locale, &self.compressed_summary, &self.past(zone), Tokens(u32::MAX));
        tail(&text, max_chars).to_owned()
    }
}
