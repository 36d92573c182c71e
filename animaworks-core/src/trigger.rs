//! Why a turn starts, and which lane it runs in (exec spec §2.1).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    ids::{TaskId, ThreadId},
    message::Message,
};

/// Why a turn starts. Data, so that every trigger takes the same path.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// Somebody speaks to the Anima.
    Chat(Box<Message>),
    /// A person opens the conversation without saying anything yet.
    Greet {
        /// Who it is.
        user: String,
    },
    /// The first run of a new Anima, which makes itself out of its character sheet.
    Bootstrap,
    /// Letters from colleagues.
    Inbox {
        /// The senders, each once.
        from: Vec<String>,
    },
    /// Looking around.
    Heartbeat,
    /// An appointment.
    Cron {
        /// The name of the job in `cron.md`.
        job: String,
    },
    /// A task from the queue.
    Task(TaskId),
    /// Sleep.
    Consolidation(Night),
}

/// How deep the sleep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Night {
    /// Every night: yesterday becomes episodes and knowledge.
    Daily,
    /// Once a week: merging and compressing.
    Weekly,
    /// Once a month: forgetting.
    Monthly,
}

/// One of the three ways an Anima can be busy; they run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// People.
    Conversation,
    /// Colleagues.
    Inbox,
    /// Everything the Anima does by itself.
    Background,
}

/// The directory family a trigger's session files live in: `shortterm/{kind}`,
/// `streaming_journal_{kind}.jsonl`, `current_session_{kind}.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionKind {
    /// Conversations with people.
    Chat,
    /// Letters from colleagues.
    Inbox,
    /// Heartbeat, cron and sleep (memory spec §0.17).
    Heartbeat,
    /// Tasks.
    Task,
}

impl SessionKind {
    /// All kinds, in the order recovery looks at them.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Heartbeat, Self::Task, Self::Inbox];

    /// The word used in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Inbox => "inbox",
            Self::Heartbeat => "heartbeat",
            Self::Task => "task",
        }
    }
}

impl Trigger {
    /// The lane the turn waits for and then holds.
    pub fn lane(&self) -> Lane {
        match self {
            Self::Chat(_) | Self::Greet { .. } | Self::Bootstrap => Lane::Conversation,
            Self::Inbox { .. } => Lane::Inbox,
            Self::Heartbeat | Self::Cron { .. } | Self::Task(_) | Self::Consolidation(_) => Lane::Background,
        }
    }

    /// The family of session files.
    pub fn session(&self) -> SessionKind {
        match self {
            Self::Chat(_) | Self::Greet { .. } | Self::Bootstrap => SessionKind::Chat,
            Self::Inbox { .. } => SessionKind::Inbox,
            Self::Heartbeat | Self::Cron { .. } | Self::Consolidation(_) => SessionKind::Heartbeat,
            Self::Task(_) => SessionKind::Task,
        }
    }

    /// The thread, for conversations.
    pub fn thread(&self) -> ThreadId {
        match self {
            Self::Chat(message) => message.thread.clone(),
            _ => ThreadId::main(),
        }
    }

    /// Whether the main model runs it; the background model does otherwise.
    pub fn is_foreground(&self) -> bool {
        matches!(self, Self::Chat(_) | Self::Greet { .. } | Self::Bootstrap | Self::Task(_))
    }

    /// The word that picks prompt sections and tools.
    pub fn kind(&self) -> TriggerKind {
        match self {
            Self::Chat(_) | Self::Greet { .. } | Self::Bootstrap => TriggerKind::Chat,
            Self::Inbox { .. } => TriggerKind::Inbox,
            Self::Heartbeat => TriggerKind::Heartbeat,
            Self::Cron { .. } => TriggerKind::Cron,
            Self::Task(_) => TriggerKind::Task,
            Self::Consolidation(_) => TriggerKind::Consolidation,
        }
    }
}

/// A trigger without its data: the row of every table that differs by trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerKind {
    /// A conversation with a person.
    Chat,
    /// Letters.
    Inbox,
    /// Looking around.
    Heartbeat,
    /// An appointment.
    Cron,
    /// A task.
    Task,
    /// Sleep.
    Consolidation,
}

impl fmt::Display for Trigger {
    /// The string used in files and logs, such as `message:tanaka` or `cron:backup`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chat(message) => write!(f, "message:{}", message.from),
            Self::Greet { user } => write!(f, "greet:{user}"),
            Self::Bootstrap => f.write_str("bootstrap"),
            Self::Inbox { from } => write!(f, "inbox:{}", from.join(",")),
            Self::Heartbeat => f.write_str("heartbeat"),
            Self::Cron { job } => write!(f, "cron:{job}"),
            Self::Task(id) => write!(f, "task:{id}"),
            Self::Consolidation(Night::Daily) => f.write_str("consolidation:daily"),
            Self::Consolidation(Night::Weekly) => f.write_str("consolidation:weekly"),
            Self::Consolidation(Night::Monthly) => f.write_str("consolidation:monthly"),
        }
    }
}
