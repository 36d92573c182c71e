//! A person made of software, seen from outside.
//!
//! All that is inside stays inside; the only way in is words. Whoever holds an
//! `Arc<dyn Anima>` cannot tell whether it lives in this process, behind a
//! socket or in a test.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream::BoxStream};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ErrorKind, Fault},
    executor::ExecError,
    ids::{AnimaName, CallId, ModelId, SessionId, ThreadId, ToolName, TurnId},
    memory::{Degraded, MemoryError},
    message::Message,
    mode::ExecutionMode,
    trigger::{Lane, Trigger},
    units::{Seq, Usage},
};

/// A person made of software.
///
/// ```
/// use animaworks_core::{Anima, AnimaError, LifeEvent, Message};
/// use futures_util::StreamExt;
///
/// async fn ask(anima: &dyn Anima, words: &str) -> Result<String, AnimaError> {
///     let mut events = anima.converse(Message::human("tanaka", words)).await?;
///     let mut answer = String::new();
///     while let Some(event) = events.next().await {
///         match event?.event {
///             LifeEvent::Text(piece) => answer.push_str(&piece),
///             LifeEvent::Done(report) => return Ok(report.text),
///             _ => {}
///         }
///     }
///     Ok(answer)
/// }
/// ```
#[async_trait]
pub trait Anima: Debug + Send + Sync {
    /// The name.
    fn name(&self) -> &AnimaName;

    /// Says something to it. Returns once the message is durable: from then on
    /// it is answered, whatever dies in between. The same message id twice is one message.
    ///
    /// # Errors
    ///
    /// When the message cannot be made durable, or is refused (too long, the Anima is shutting down).
    /// No model is called then.
    ///
    /// # Cancel safety
    ///
    /// Resumable: say it again with the same id.
    async fn talk(&self, message: Message) -> Result<TurnId, AnimaError>;

    /// Starts a turn for a reason other than a message: heartbeat, cron, inbox, task, sleep, bootstrap.
    ///
    /// # Errors
    ///
    /// [`AnimaError::Busy`] when the lane already has such a turn waiting; otherwise as [`Anima::talk`].
    ///
    /// # Cancel safety
    ///
    /// Safe until it returns.
    async fn wake(&self, trigger: Trigger) -> Result<TurnId, AnimaError>;

    /// Looks at a turn, from its first event or from after `after`. Dropping the
    /// stream only stops looking; the turn goes on. It ends after [`LifeEvent::Done`].
    fn watch(&self, turn: TurnId, after: Option<Seq>) -> BoxStream<'static, Result<Numbered<LifeEvent>, AnimaError>>;

    /// Asks running turns to stop. What they said so far is kept, marked as interrupted.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownTurn`] when the named turn is neither running nor recent.
    ///
    /// # Cancel safety
    ///
    /// Safe; asking twice changes nothing.
    async fn interrupt(&self, scope: Scope) -> Result<(), AnimaError>;

    /// How it is.
    ///
    /// # Errors
    ///
    /// When its process cannot be reached.
    async fn status(&self) -> Result<AnimaStatus, AnimaError>;

    /// What it lives through, for pages and logs: turns beginning and ending, states changing.
    fn events(&self, after: Option<Seq>) -> BoxStream<'static, Result<Numbered<AnimaEvent>, AnimaError>>;

    /// Lets it finish for at most `grace`, then interrupts what still runs. Nothing accepted is lost.
    ///
    /// # Errors
    ///
    /// When something could not be made durable.
    async fn shutdown(&self, grace: Duration) -> Result<(), AnimaError>;
}

impl dyn Anima + '_ {
    /// Says something and looks at the answer.
    ///
    /// # Errors
    ///
    /// As [`Anima::talk`].
    ///
    /// # Cancel safety
    ///
    /// As [`Anima::talk`].
    pub async fn converse(
        &self,
        message: Message,
    ) -> Result<BoxStream<'static, Result<Numbered<LifeEvent>, AnimaError>>, AnimaError> {
        let turn = self.talk(message).await?;
        Ok(self.watch(turn, None))
    }

    /// Waits for the end of a turn.
    ///
    /// # Errors
    ///
    /// When the turn is unknown or its process dies first.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn report(&self, turn: TurnId) -> Result<CycleReport, AnimaError> {
        let mut events = self.watch(turn.clone(), None);
        while let Some(event) = events.next().await {
            if let LifeEvent::Done(report) = event?.event {
                return Ok(*report);
            }
        }
        Err(AnimaError::Lost { turn })
    }
}

/// An event and its place in its stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<E> {
    /// The place, from 1, without gaps.
    pub seq: Seq,
    /// The event.
    pub event: E,
}

/// What to interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One turn.
    Turn(TurnId),
    /// What runs in one conversation thread.
    Thread(ThreadId),
    /// Everything.
    All,
}

/// What can be seen of a turn while it runs (exec spec §2.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LifeEvent {
    /// It is durable and waits for its lane.
    Accepted {
        /// The turn.
        turn: TurnId,
    },
    /// It has its lane and begins.
    Began {
        /// The model that was chosen.
        model: ModelId,
        /// The engine's mode.
        mode: ExecutionMode,
    },
    /// Memory was asked; this is what came to mind.
    Recalled {
        /// One entry per file that was found, with the line.
        sources: Vec<RecalledSource>,
        /// Milliseconds it took.
        took_ms: u64,
    },
    /// A piece of the answer.
    Text(String),
    /// A piece of thinking.
    Thinking(String),
    /// A tool begins.
    ToolStarted {
        /// The call.
        id: CallId,
        /// The tool.
        name: ToolName,
        /// One short line: a path, a query, a recipient.
        detail: String,
    },
    /// A tool has ended.
    ToolEnded {
        /// The call.
        id: CallId,
        /// The tool.
        name: ToolName,
        /// Whether it failed.
        is_error: bool,
        /// The first 200 characters of what it returned.
        summary: String,
    },
    /// How full the context is.
    Context {
        /// Tokens in the context.
        used: u64,
        /// The window.
        window: u64,
        /// The share at which a chain begins.
        threshold: f32,
    },
    /// The context was full; a new session goes on from notes.
    Chain {
        /// Which one, from 1.
        chain: u32,
        /// At most this many.
        max_chains: u32,
    },
    /// The stream broke and is tried again, or another model takes over.
    Retrying {
        /// Which attempt, from 1.
        attempt: u32,
        /// At most this many.
        max_attempts: u32,
        /// Why, in English, for logs.
        reason: String,
        /// The model that takes over, if another one does.
        fallback: Option<ModelId>,
    },
    /// Older conversation is being summarised (`true`) or has been (`false`).
    Compressing(bool),
    /// How it feels about its answer.
    Emotion(String),
    /// A part works less well than it should, and the turn goes on.
    Degraded(Degraded),
    /// The end. Always the last event, also after an error.
    Done(Box<CycleReport>),
}

/// One file that came to mind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecalledSource {
    /// Where.
    pub path: String,
    /// The first line, from 1.
    pub line: u32,
    /// The decisive text, at most 200 characters.
    pub text: String,
    /// How well it fits.
    pub score: f32,
}

/// How a turn went (exec spec §2.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CycleReport {
    /// The turn.
    pub turn: TurnId,
    /// Why it started, as in [`Trigger`]'s text form.
    pub trigger: String,
    /// What came of it.
    pub action: CycleAction,
    /// Why it stopped.
    pub stop: StopKind,
    /// The whole answer, cleaned of tags.
    pub text: String,
    /// What was thought, at most 10,000 characters.
    pub thinking: String,
    /// The conversation thread.
    pub thread: ThreadId,
    /// The model that answered.
    pub model: Option<ModelId>,
    /// Its mode.
    pub mode: Option<ExecutionMode>,
    /// What it consumed.
    pub usage: Usage,
    /// The tools it used, in order.
    pub tools: Vec<ToolRecord>,
    /// Sessions joined by chaining; 0 for one session.
    pub chains: u32,
    /// Milliseconds from its beginning to its end.
    pub duration_ms: u64,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// What went wrong, when something did.
    pub error: Option<ReportedError>,
    /// Facts an engine states about its own work, such as tokens per second.
    pub notes: Vec<String>,
}

/// What came of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleAction {
    /// There is an answer.
    Responded,
    /// There was nothing to do.
    Idle,
    /// It was decided not to run it.
    Skipped,
    /// Somebody stopped it.
    Cancelled,
    /// It failed; what was said before is kept.
    Error,
}

/// Why a turn stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// It was finished.
    Normal,
    /// Somebody interrupted it, or its process died.
    Interrupted,
    /// The same thing over and over.
    RunawayHalt,
    /// The model said nothing.
    EmptyResponse,
    /// The stream broke for good.
    StreamError,
    /// No budget is left.
    BudgetSkipped,
    /// It took too long.
    Timeout,
    /// It took too many steps.
    MaxTurns,
    /// The answer hit the model's output limit.
    Length,
}

/// A tool call as it is kept with the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_id: String,
    /// Its arguments, shortened.
    pub input_summary: String,
    /// Its result, shortened.
    pub result_summary: String,
    /// Whether it failed.
    pub is_error: bool,
}

/// An error as a report carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportedError {
    /// What sort of trouble.
    pub kind: ErrorKind,
    /// A stable word.
    pub code: String,
    /// In a person's words, in the organisation's language.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How an Anima is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnimaStatus {
    /// Who.
    pub name: AnimaName,
    /// Whether it takes part in the working day.
    pub enabled: bool,
    /// The turns that run now.
    pub running: Vec<RunningTurn>,
    /// Turns waiting for their lane.
    pub waiting: usize,
    /// The model for conversations.
    pub model: Option<ModelId>,
}

/// A turn that runs now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningTurn {
    /// Which.
    pub turn: TurnId,
    /// In which lane.
    pub lane: Lane,
    /// Why.
    pub trigger: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// The engine's own session, when it has one.
    pub session: Option<SessionId>,
}

/// What an Anima lives through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnimaEvent {
    /// A turn begins.
    TurnBegan(RunningTurn),
    /// A turn has ended.
    TurnEnded(Box<CycleReport>),
    /// An interrupted turn of an earlier life was found and kept.
    Recovered {
        /// The thread it belongs to.
        thread: ThreadId,
        /// Characters that were saved.
        characters: usize,
    },
}

/// What can go wrong between a caller and an Anima.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnimaError {
    /// Something could not be made durable; nothing has been started.
    #[error("not accepted: {what}")]
    NotAccepted {
        /// What could not be written.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The request itself is wrong.
    #[error("refused: {reason}")]
    Refused {
        /// The catalogue key of the reason.
        code: &'static str,
        /// Why, in English.
        reason: String,
    },
    /// Another process holds this Anima.
    #[error("{name} is held by {holder}")]
    Held {
        /// Which Anima.
        name: AnimaName,
        /// Who holds it: a process id and what it does.
        holder: String,
    },
    /// The lane already has such a turn waiting.
    #[error("a {trigger} turn is already waiting")]
    Busy {
        /// The trigger.
        trigger: String,
    },
    /// There is no Anima of that name.
    #[error("no anima named {name}")]
    UnknownAnima {
        /// The name that was asked for.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// There is no such turn.
    #[error("no turn {turn}")]
    UnknownTurn {
        /// The turn that was asked for.
        turn: TurnId,
    },
    /// The turn's process died before its end.
    #[error("turn {turn} was lost with its process")]
    Lost {
        /// The turn.
        turn: TurnId,
    },
    /// Its process cannot be reached.
    #[error("{name} cannot be reached")]
    Unreachable {
        /// Who.
        name: AnimaName,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of its home cannot be used.
    #[error(transparent)]
    Home(#[from] crate::fs::FileError),
    /// Memory failed where it may not.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// No engine could be made.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Something else, from an implementation outside this workspace.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Fault for AnimaError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAccepted { source, .. } => match source.kind() {
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
                _ => ErrorKind::Internal,
            },
            Self::Refused { .. } => ErrorKind::InvalidRequest,
            Self::Held { .. } | Self::Busy { .. } => ErrorKind::Conflict,
            Self::UnknownAnima { .. } | Self::UnknownTurn { .. } => ErrorKind::NotFound,
            Self::Lost { .. } => ErrorKind::Interrupted,
            Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::Home(error) => error.kind(),
            Self::Memory(error) => error.kind(),
            Self::Exec(error) => error.kind(),
            Self::Other(_) => ErrorKind::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NotAccepted { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "not_accepted_disk_full",
                _ => "not_accepted",
            },
            Self::Refused { code, .. } => code,
            Self::Held { .. } => "anima_held",
            Self::Busy { .. } => "lane_busy",
            Self::UnknownAnima { near, .. } if near.is_empty() => "unknown_anima",
            Self::UnknownAnima { .. } => "unknown_anima_near",
            Self::UnknownTurn { .. } => "unknown_turn",
            Self::Lost { .. } => "turn_lost",
            Self::Unreachable { .. } => "anima_unreachable",
            Self::Home(error) => error.code(),
            Self::Memory(error) => error.code(),
            Self::Exec(error) => error.code(),
            Self::Other(_) => "internal",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NotAccepted { what, source } => vec![("what", what.clone()), ("cause", source.to_string())],
            Self::Refused { reason, .. } => vec![("reason", reason.clone())],
            Self::Held { name, holder } => vec![("name", name.to_string()), ("holder", holder.clone())],
            Self::Busy { trigger } => vec![("trigger", trigger.clone())],
            Self::UnknownAnima { name, near } => vec![("name", name.clone()), ("near", near.join(", "))],
            Self::UnknownTurn { turn } | Self::Lost { turn } => vec![("turn", turn.to_string())],
            Self::Unreachable { name, source } => vec![("name", name.to_string()), ("cause", source.to_string())],
            Self::Home(error) => error.fields(),
            Self::Memory(error) => error.fields(),
            Self::Exec(error) => error.fields(),
            Self::Other(error) => vec![("cause", error.to_string())],
        }
    }
}
