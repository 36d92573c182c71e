//! The activity log: everything that happens, in one line each (memory spec §2).

mod read;
mod render;
mod rotate;

pub use read::{ActivityPage, ActivityQuery, LoggedActivity};
pub use render::{Room, render};
pub use rotate::{Rotated, Rotation, RotationMode};

use chrono::NaiveDate;
use serde_json::{Map, Value};

use super::{
    AnimaHome,
    text::{head, stringify, take},
};
use crate::{
    error::ResultExt,
    fs::{self, FileError},
    trust::Origin,
};

/// The longest content of a record, in characters.
pub const MAX_CONTENT: usize = 20_000;

/// One line of the log. Empty fields are not written; fields of other versions are kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activity {
    /// When, as written; filled when it is logged.
    pub ts: String,
    /// What sort of event: an open set of words.
    pub kind: String,
    /// The full text.
    pub content: String,
    /// A short form for display.
    pub summary: String,
    /// Who from.
    pub from: String,
    /// Who to.
    pub to: String,
    /// `chat`, `inbox`, or a board.
    pub channel: String,
    /// The tool.
    pub tool: String,
    /// The notification channel.
    pub via: String,
    /// Whatever belongs to this sort of event.
    pub meta: Map<String, Value>,
    /// Where the words come from.
    pub origin: Origin,
    /// What the Anima was doing: `chat`, `cron:{job}`, …
    pub ctx: String,
    /// Fields of other versions.
    pub extra: Map<String, Value>,
}

/// Names the sorts of events that the program itself speaks of.
macro_rules! kinds {
    ($($name:ident = $word:literal;)*) => {
        impl Activity {
            $(
                #[doc = concat!("`", $word, "`")]
                pub const $name: &'static str = $word;
            )*
        }
    };
}

kinds! {
    MESSAGE_RECEIVED = "message_received";
    MESSAGE_SENT = "message_sent";
    RESPONSE_SENT = "response_sent";
    CHANNEL_READ = "channel_read";
    CHANNEL_POST = "channel_post";
    HUMAN_NOTIFY = "human_notify";
    TOOL_USE = "tool_use";
    TOOL_RESULT = "tool_result";
    HEARTBEAT_START = "heartbeat_start";
    HEARTBEAT_END = "heartbeat_end";
    HEARTBEAT_REFLECTION = "heartbeat_reflection";
    CRON_EXECUTED = "cron_executed";
    MEMORY_WRITE = "memory_write";
    ERROR = "error";
    INBOX_PROCESSING_START = "inbox_processing_start";
    INBOX_PROCESSING_END = "inbox_processing_end";
    ISSUE_RESOLVED = "issue_resolved";
    TASK_CREATED = "task_created";
    TASK_UPDATED = "task_updated";
    TASK_EXEC_START = "task_exec_start";
    TASK_EXEC_END = "task_exec_end";
    CONSOLIDATION_START = "consolidation_start";
    CONSOLIDATION_END = "consolidation_end";
    MODEL_FALLBACK = "model_fallback";
}

impl Activity {
    /// An event of a sort, at the moment it is logged.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), ..Self::default() }
    }

    /// With its full text.
    #[must_use]
    pub fn content(mut self, content: impl Into<String>) -> Self {
        self.content = content.into();
        self
    }

    /// With a short form.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// With its sender.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = from.into();
        self
    }

    /// With its recipient.
    #[must_use]
    pub fn to(mut self, to: impl Into<String>) -> Self {
        self.to = to.into();
        self
    }

    /// With its channel.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = channel.into();
        self
    }

    /// With its tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = tool.into();
        self
    }

    /// With its notification channel.
    #[must_use]
    pub fn via(mut self, via: impl Into<String>) -> Self {
        self.via = via.into();
        self
    }

    /// With one more thing in `meta`.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.meta.insert(key.to_owned(), value.into());
        self
    }

    /// With where the words come from.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// With what the Anima was doing.
    #[must_use]
    pub fn ctx(mut self, ctx: impl Into<String>) -> Self {
        self.ctx = ctx.into();
        self
    }

    /// A text in `meta`, empty when there is none.
    pub fn meta_str(&self, key: &str) -> &str {
        self.meta.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Reads one line as any version wrote it; `None` when it has no kind.
    pub fn from_value(value: Value) -> Option<Self> {
        let Value::Object(mut map) = value else { return None };
        let mut either = |name: &str, older: &str| {
            let old = take(&mut map, older);
            let new = take(&mut map, name);
            if new.is_empty() { old } else { new }
        };
        let kind = either("type", "event");
        let ts = either("ts", "timestamp");
        let from = either("from", "from_person");
        let to = either("to", "to_person");
        if kind.is_empty() {
            return None;
        }
        let meta = match map.shift_remove("meta") {
            Some(Value::Object(meta)) => meta,
            None | Some(Value::Null) => Map::new(),
            Some(_) => {
                tracing::warn!(kind, ts, "dropped a meta that is no object");
                Map::new()
            }
        };
        let chain = match map.shift_remove("origin_chain") {
            Some(Value::Array(links)) => links.into_iter().map(stringify).collect(),
            _ => Vec::new(),
        };
        Some(Self {
            ts,
            kind,
            content: take(&mut map, "content"),
            summary: take(&mut map, "summary"),
            from,
            to,
            channel: take(&mut map, "channel"),
            tool: take(&mut map, "tool"),
            via: take(&mut map, "via"),
            meta,
            origin: Origin { source: take(&mut map, "origin"), chain },
            ctx: take(&mut map, "ctx"),
            extra: map,
        })
    }

    /// The line as it is written: known fields in their order, empty ones left out, then the unknown ones.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        let texts = [
            ("ts", &self.ts),
            ("type", &self.kind),
            ("content", &self.content),
            ("summary", &self.summary),
            ("from", &self.from),
            ("to", &self.to),
            ("channel", &self.channel),
            ("tool", &self.tool),
            ("via", &self.via),
        ];
        for (key, text) in texts {
            if !text.is_empty() {
                map.insert(key.to_owned(), Value::String(text.clone()));
            }
        }
        if !self.meta.is_empty() {
            map.insert("meta".to_owned(), Value::Object(self.meta.clone()));
        }
        if !self.origin.source.is_empty() {
            map.insert("origin".to_owned(), Value::String(self.origin.source.clone()));
        }
        if !self.origin.chain.is_empty() {
            map.insert("origin_chain".to_owned(), Value::from(self.origin.chain.clone()));
        }
        if !self.ctx.is_empty() {
            map.insert("ctx".to_owned(), Value::String(self.ctx.clone()));
        }
        for (key, value) in &self.extra {
            map.entry(key).or_insert_with(|| value.clone());
        }
        Value::Object(map)
    }

    /// The text of the line without its long middle: summary, else content.
    pub fn words(&self) -> &str {
        if self.summary.is_empty() { &self.content } else { &self.summary }
    }
}

impl AnimaHome {
    /// Appends an event durably and returns it as written. Without a time it happens now; with one it
    /// goes into the file of that day.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn log(&self, mut activity: Activity) -> Result<Activity, FileError> {
        if activity.ts.is_empty() {
            activity.ts = self.stamp();
        }
        let total = activity.content.chars().count();
        if total > MAX_CONTENT {
            let kept = head(&activity.content, MAX_CONTENT).to_owned();
            activity.content = format!("{kept}\n... (truncated {total} chars → 20,000)");
        }
        let date = head(&activity.ts, 10).parse::<NaiveDate>().unwrap_or_else(|_| self.today());
        fs::append_line(&self.dir().activity_log(date), &activity.to_value().to_string())?;
        Ok(activity)
    }

    /// [`AnimaHome::log`] for places that already handle a failure: a second one is only noted.
    pub fn log_quietly(&self, activity: Activity) {
        self.log(activity).log_err("append to the activity log");
    }
}
