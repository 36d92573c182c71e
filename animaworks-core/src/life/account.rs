//! What comes of a turn while it runs.

use std::collections::BTreeMap;

use crate::{
    anima::ToolRecord,
    home::text::head,
    ids::{CallId, ToolName},
    tool::{ToolCall, ToolOutput},
    units::Usage,
};

/// The most thinking that is kept, in characters.
const THINKING_CHARS: usize = 10_000;
/// The longest kept form of a call's arguments and of its result, in characters.
const INPUT_CHARS: usize = 500;
const RESULT_CHARS: usize = 2000;

/// The growing result of a turn, over all its attempts and sessions.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) text: String,
    pub(super) thinking: String,
    thinking_chars: usize,
    pub(super) tools: Vec<ToolRecord>,
    open: BTreeMap<CallId, usize>,
    pub(super) usage: Usage,
    pub(super) notes: Vec<String>,
    pub(super) chains: u32,
    pub(super) emotion: Option<&'static str>,
}

impl Account {
    pub(super) fn think(&mut self, piece: &str) {
        let room = THINKING_CHARS.saturating_sub(self.thinking_chars);
        if room > 0 {
            let kept = head(piece, room);
            self.thinking.push_str(kept);
            self.thinking_chars += kept.chars().count();
        }
    }

    /// A tool begins; the short line that says with what.
    pub(super) fn begin(&mut self, call: &ToolCall) -> String {
        let args = call.args.to_string();
        self.open.insert(call.id.clone(), self.tools.len());
        self.tools.push(ToolRecord {
            tool_name: call.name.to_string(),
            tool_id: call.id.to_string(),
            input_summary: head(&args, INPUT_CHARS).to_owned(),
            result_summary: String::new(),
            is_error: false,
        });
        detail(call)
    }

    /// A tool has ended; its name, when it was begun.
    pub(super) fn end(&mut self, id: &CallId, output: &ToolOutput) -> Option<ToolName> {
        let record = self.open.remove(id).and_then(|at| self.tools.get_mut(at))?;
        head(&output.text, RESULT_CHARS).clone_into(&mut record.result_summary);
        record.is_error = output.is_error;
        ToolName::new(&record.tool_name).ok()
    }

    /// The answer, cleaned of what the stream left at its ends.
    pub(super) fn answer(&self) -> &str {
        self.text.trim()
    }
}

/// One short line about a call: a path, a query, a recipient, a command.
fn detail(call: &ToolCall) -> String {
    const TELLING: [&str; 8] = ["path", "file_path", "query", "to", "command", "channel", "url", "task_id"];
    let found = TELLING.iter().find_map(|key| call.args.get(key)?.as_str());
    head(found.unwrap_or_default().lines().next().unwrap_or_default(), 80).to_owned()
}
