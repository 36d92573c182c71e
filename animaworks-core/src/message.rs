//! What people and Animas say to each other.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    ids::{IdSource, MessageId, RandomIds, ThreadId},
    trust::Origin,
};

/// Who is speaking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SenderKind {
    /// A person.
    #[default]
    Human,
    /// A colleague.
    Anima,
    /// The framework.
    System,
}

/// Why a colleague writes (exec spec §8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    /// Tells what came of something.
    Report,
    /// Hands work over.
    Delegation,
    /// Wants an answer.
    Question,
}

impl Intent {
    /// The word used in files and tool arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Delegation => "delegation",
            Self::Question => "question",
        }
    }
}

/// A picture that comes with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// One message. Its id makes delivery idempotent: the same id is one message, however often it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Unique; chosen by the sender.
    pub id: MessageId,
    /// The sender's name.
    pub from: String,
    /// What sort of sender that is.
    pub from_kind: SenderKind,
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// What is said.
    pub text: String,
    /// Why a colleague writes; people never say.
    pub intent: Option<Intent>,
    /// The message it answers.
    pub reply_to: Option<MessageId>,
    /// Where the words come from.
    pub origin: Origin,
    /// When it was said; `None` until somebody with a clock accepts it.
    pub at: Option<DateTime<Utc>>,
    /// Pictures.
    pub images: Vec<Image>,
}

impl Message {
    /// Something a person says, in the main thread, with a fresh id.
    pub fn human(from: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(SenderKind::Human, from.into(), text.into(), Origin::human())
    }

    /// Something a colleague says.
    pub fn anima(from: impl Into<String>, text: impl Into<String>, origin: Origin) -> Self {
        Self::new(SenderKind::Anima, from.into(), text.into(), origin)
    }

    /// Something the framework says.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(SenderKind::System, "system".to_owned(), text.into(), Origin::system())
    }

    fn new(from_kind: SenderKind, from: String, text: String, origin: Origin) -> Self {
        let fresh: &dyn IdSource = &RandomIds;
        let id = MessageId::new(fresh.fresh())
            .unwrap_or_else(|_| fresh.message(DateTime::UNIX_EPOCH.with_timezone(&chrono_tz::UTC)));
        Self {
            id,
            from,
            from_kind,
            thread: ThreadId::main(),
            text,
            intent: None,
            reply_to: None,
            origin,
            at: None,
            images: Vec::new(),
        }
    }

    /// The same message in another thread.
    #[must_use]
    pub fn in_thread(mut self, thread: ThreadId) -> Self {
        self.thread = thread;
        self
    }

    /// The same message under a given id.
    #[must_use]
    pub fn with_id(mut self, id: MessageId) -> Self {
        self.id = id;
        self
    }
}
