//! Engines: one prompt in, one finished turn out.

use std::{collections::BTreeMap, fmt::Debug, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    error::{ErrorKind, Fault, Retry},
    event::TurnEvent,
    i18n::Locale,
    ids::{AnimaName, CallId, ModelId, SessionId, ToolName, TurnId},
    message::Image,
    mode::ExecutionMode,
    tool::{ToolCall, ToolOutput, ToolSpec},
    trigger::TriggerKind,
    units::Tokens,
};

/// An engine that turns one prompt into one finished turn.
///
/// ```
/// use std::sync::Arc;
///
/// use animaworks_core::{Capabilities, ExecError, ExecutionMode, Executor, StopReason, TurnEvent, TurnHost, TurnRequest};
/// use futures_util::{StreamExt, stream, stream::BoxStream};
/// use tokio_util::sync::CancellationToken;
///
/// /// Says what it heard.
/// #[derive(Debug, Default)]
/// struct Echo(Capabilities);
///
/// impl Executor for Echo {
///     fn mode(&self) -> ExecutionMode {
///         ExecutionMode::Basic
///     }
///
///     fn capabilities(&self) -> &Capabilities {
///         &self.0
///     }
///
///     fn run(
///         &self,
///         request: TurnRequest,
///         _host: Arc<dyn TurnHost>,
///         _cancel: CancellationToken,
///     ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
///         let heard = request.prompt.last_words().to_owned();
///         stream::iter([
///             Ok(TurnEvent::Started { session: None }),
///             Ok(TurnEvent::Text(heard)),
///             Ok(TurnEvent::Completed(StopReason::End)),
///         ])
///         .boxed()
///     }
/// }
/// ```
pub trait Executor: Debug + Send + Sync {
    /// The mode it implements.
    fn mode(&self) -> ExecutionMode;

    /// What it can do, as data.
    fn capabilities(&self) -> &Capabilities;

    /// Runs one turn. Lazy: nothing happens before the first poll. Dropping the
    /// stream ends the turn's request or child process.
    ///
    /// The stream obeys [`crate::event::TurnLaw`]: `Started` first, every tool
    /// output after its call, and either `Completed` or one `Err` last. A stream
    /// that ends otherwise counts as [`ExecError::Interrupted`].
    ///
    /// After `cancel` fires the stream ends within the engine's limits with
    /// [`ExecError::Cancelled`]; text sent before stays valid.
    fn run(
        &self,
        request: TurnRequest,
        host: Arc<dyn TurnHost>,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>>;
}

/// The life's side of a running turn: how an engine reaches back.
#[async_trait]
pub trait TurnHost: Debug + Send + Sync {
    /// The tools of this turn, in a stable order.
    fn tools(&self) -> &[Arc<ToolSpec>];

    /// Runs a tool through the gate. Whatever the model can mend (unknown tool, bad arguments,
    /// a refusal, a failure of the tool) is an output with `is_error`, not an `Err`.
    ///
    /// # Errors
    ///
    /// [`HostFault`] ends the turn.
    ///
    /// # Cancel safety
    ///
    /// A call with effects may have happened; it is in the journal either way.
    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault>;

    /// Decides about a tool of the engine's own.
    ///
    /// # Errors
    ///
    /// [`HostFault`] ends the turn.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault>;

    /// Tells the life where the turn is and learns how to go on.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn checkpoint(&self, at: Checkpoint) -> Directive;
}

/// Which engine for which model. Asked at every turn, so a change of model needs no restart.
pub trait ExecutorSource: Debug + Send + Sync {
    /// The engine for a model.
    ///
    /// # Errors
    ///
    /// [`ExecError::NotInstalled`] or [`ExecError::Auth`] when it cannot run here, with the remedy.
    fn executor(&self, model: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError>;
}

/// Offers a turn's tools to an outside program over MCP.
#[async_trait]
pub trait ToolBridge: Debug + Send + Sync {
    /// Opens a bridge for one turn; it closes when the [`Bridge`] is dropped.
    ///
    /// # Errors
    ///
    /// When no socket can be opened.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn open(&self, host: Arc<dyn TurnHost>) -> Result<Bridge, HostFault>;
}

/// How an outside program reaches the tools of one turn.
#[derive(Debug)]
pub struct Bridge {
    /// The MCP server to start.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides the scrubbed one.
    pub env: BTreeMap<String, String>,
    /// Closes the bridge.
    pub close: DropGuard,
}

/// Where a turn is.
#[derive(Debug, Clone, PartialEq)]
pub enum Checkpoint {
    /// A tool has just answered.
    AfterTool(CallId),
    /// The context has this size.
    Context {
        /// Tokens in it.
        used: u64,
        /// The window.
        window: u64,
    },
    /// The engine is about to finish with this text.
    BeforeStop {
        /// What it would say.
        draft: Arc<str>,
    },
    /// The engine is about to shorten its own context.
    BeforeCompaction,
}

/// How to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directive {
    /// As planned.
    Go,
    /// With this reminder in front of the model.
    Remind(Arc<str>),
    /// Not; another session continues from notes.
    EndForChain,
}

/// A question about an engine's own tool.
#[derive(Debug, Clone, PartialEq)]
pub struct PermitRequest {
    /// The tool.
    pub tool: ToolName,
    /// What it would be called with.
    pub args: Value,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Permit {
    /// Yes, with these arguments.
    Allow {
        /// The arguments, possibly made safer.
        args: Value,
    },
    /// No.
    Deny {
        /// Why, and what is allowed instead; the model reads it.
        reason: Arc<str>,
    },
}

/// What an engine can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Calls tools by structure, not by text.
    pub native_tools: bool,
    /// Sees images.
    pub images: bool,
    /// Can resume a session by its id.
    pub resume: bool,
    /// Reports how full its context is.
    pub reports_context: bool,
    /// Leaves the machine to think.
    pub needs_network: bool,
    /// Holds its own conversation history, so that none is sent.
    pub keeps_history: bool,
}

/// A model with everything that was decided about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedModel {
    /// As the operator wrote it.
    pub id: ModelId,
    /// The mode.
    pub mode: ExecutionMode,
    /// The context window.
    pub window: Tokens,
    /// The longest answer.
    pub max_output: Tokens,
    /// The name of the credential, as in `config.json`.
    pub credential: String,
    /// Whether to let it think, and how hard (`low`, `medium`, `high`).
    pub thinking: Option<String>,
}

/// One turn to run.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// The turn.
    pub turn: TurnId,
    /// Whose it is.
    pub anima: AnimaName,
    /// Why it runs.
    pub trigger: TriggerKind,
    /// The language of the organisation.
    pub locale: Locale,
    /// With which model.
    pub model: ResolvedModel,
    /// What the model reads.
    pub prompt: Prompt,
    /// The engine's session to resume, if it can. When it cannot, the turn ends with [`ExecError::SessionGone`].
    pub resume: Option<SessionId>,
    /// When to give up.
    pub limits: Limits,
    /// The directory an engine's child works in.
    pub work_dir: PathBuf,
}

/// What a model reads. Equal inputs give equal bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    /// Who it is and what it knows.
    pub system: Arc<str>,
    /// The conversation, oldest first; the last one is what to answer.
    pub messages: Vec<PromptMessage>,
}

impl Prompt {
    /// The text of the last thing said by the other side.
    pub fn last_words(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message {
                PromptMessage::User { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .unwrap_or_default()
    }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptMessage {
    /// The other side.
    User {
        /// What is said.
        text: String,
        /// Pictures.
        images: Vec<Image>,
    },
    /// The Anima, earlier.
    Assistant {
        /// What it said.
        text: String,
        /// The tools it called with it.
        calls: Vec<ToolCall>,
    },
    /// What a tool answered.
    ToolResult {
        /// The call.
        id: CallId,
        /// The tool.
        name: ToolName,
        /// The answer, fenced.
        text: String,
        /// Whether it failed.
        is_error: bool,
    },
}

/// When to give up. All are hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls within the turn.
    pub max_turns: u32,
    /// Wait for a connection and its first byte.
    pub first_byte: Duration,
    /// Wait between two events of a stream.
    pub idle: Duration,
    /// The whole turn.
    pub total: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 200,
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(1800),
        }
    }
}

/// The life's side failed; the turn cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct HostFault {
    /// What failed.
    pub what: String,
    /// Why.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl HostFault {
    /// A fault with nothing behind it.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// A fault with its cause.
    pub fn because(what: impl Into<String>, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { what: what.into(), source: Some(Box::new(source)) }
    }
}

/// What can go wrong in an engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// No or wrong key, or not logged in.
    #[error("{engine}: not authenticated: {detail}")]
    Auth {
        /// The engine or provider.
        engine: String,
        /// What it said, without secrets.
        detail: String,
    },
    /// Nothing left to spend.
    #[error("{engine}: quota exhausted: {detail}")]
    Quota {
        /// The provider.
        engine: String,
        /// What it said.
        detail: String,
    },
    /// Too many requests, or overloaded.
    #[error("{engine}: rate limited or overloaded: {detail}")]
    Busy {
        /// The provider.
        engine: String,
        /// What it said.
        detail: String,
        /// When it may be tried again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The prompt does not fit.
    #[error("{engine}: the prompt does not fit: {detail}")]
    ContextOverflow {
        /// The provider.
        engine: String,
        /// What it said.
        detail: String,
    },
    /// The provider does not accept the request.
    #[error("{engine}: request not accepted ({status}): {detail}")]
    Rejected {
        /// The provider.
        engine: String,
        /// The HTTP status, 0 when there is none.
        status: u16,
        /// What it said.
        detail: String,
    },
    /// There is no such model.
    #[error("{engine}: unknown model {model}")]
    UnknownModel {
        /// The provider.
        engine: String,
        /// The model.
        model: String,
    },
    /// The program or file an engine needs is not there.
    #[error("{engine} is not installed: {detail}")]
    NotInstalled {
        /// The engine.
        engine: String,
        /// What was looked for.
        detail: String,
    },
    /// It cannot be reached.
    #[error("{engine} cannot be reached: {detail}")]
    Unreachable {
        /// The provider.
        engine: String,
        /// Why.
        detail: String,
    },
    /// Nothing came for too long.
    #[error("{engine}: nothing came for {} s ({waiting_for})", .after.as_secs())]
    Timeout {
        /// The engine.
        engine: String,
        /// `first byte`, `next event` or `the whole turn`.
        waiting_for: &'static str,
        /// The limit.
        after: Duration,
    },
    /// It stopped without its end.
    #[error("{engine}: the stream ended before its end: {detail}")]
    Interrupted {
        /// The engine.
        engine: String,
        /// What was seen last.
        detail: String,
    },
    /// It cannot go on with the session it was given; nothing was said or done. Another one can begin.
    #[error("{engine}: its session cannot go on: {detail}")]
    SessionGone {
        /// The engine.
        engine: String,
        /// What it said.
        detail: String,
    },
    /// It sent something that cannot be understood.
    #[error("{engine}: unreadable answer: {detail}")]
    Malformed {
        /// The engine.
        engine: String,
        /// The offending bytes, shortened.
        detail: String,
    },
    /// Somebody asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The life's side failed.
    #[error(transparent)]
    Host(#[from] HostFault),
    /// Something else, from an engine outside this workspace.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl Fault for ExecError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Auth { .. } => ErrorKind::Auth,
            Self::Quota { .. } => ErrorKind::Quota,
            Self::Busy { .. } => ErrorKind::RateLimited,
            Self::ContextOverflow { .. } => ErrorKind::ContextOverflow,
            Self::Rejected { .. } => ErrorKind::InvalidRequest,
            Self::UnknownModel { .. } => ErrorKind::NotFound,
            Self::NotInstalled { .. } => ErrorKind::NotInstalled,
            Self::Unreachable { .. } | Self::Timeout { .. } => ErrorKind::Unavailable,
            Self::Interrupted { .. } | Self::SessionGone { .. } => ErrorKind::Interrupted,
            Self::Malformed { .. } => ErrorKind::Corrupt,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Host(_) | Self::Other(_) => ErrorKind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Busy { retry_after: Some(after), .. } => Retry::After(*after),
            Self::Busy { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Interrupted { .. }
            | Self::SessionGone { .. } => Retry::Now,
            Self::Rejected { status, .. } if *status >= 500 => Retry::Now,
            _ => Retry::Never,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Auth { .. } => "engine_auth",
            Self::Quota { .. } => "engine_quota",
            Self::Busy { .. } => "engine_busy",
            Self::ContextOverflow { .. } => "engine_context_overflow",
            Self::Rejected { .. } => "engine_rejected",
            Self::UnknownModel { .. } => "engine_unknown_model",
            Self::NotInstalled { engine, .. } if install(engine).is_some() => "program_not_installed",
            Self::NotInstalled { .. } => "engine_not_installed",
            Self::Unreachable { .. } => "engine_unreachable",
            Self::Timeout { .. } => "engine_timeout",
            Self::Interrupted { .. } => "engine_interrupted",
            Self::SessionGone { .. } => "engine_session_gone",
            Self::Malformed { .. } => "engine_malformed",
            Self::Cancelled => "cancelled",
            Self::Host(_) => "host_fault",
            Self::Other(_) => "internal",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Auth { engine, detail }
            | Self::Quota { engine, detail }
            | Self::Busy { engine, detail, .. }
            | Self::ContextOverflow { engine, detail }
            | Self::Unreachable { engine, detail }
            | Self::Interrupted { engine, detail }
            | Self::SessionGone { engine, detail }
            | Self::Malformed { engine, detail } => vec![("engine", engine.clone()), ("detail", detail.clone())],
            Self::NotInstalled { engine, detail } => {
                let install = install(engine).unwrap_or_default().to_owned();
                vec![("engine", engine.clone()), ("detail", detail.clone()), ("install", install)]
            }
            Self::Rejected { engine, status, detail } => {
                vec![("engine", engine.clone()), ("status", status.to_string()), ("detail", detail.clone())]
            }
            Self::UnknownModel { engine, model } => vec![("engine", engine.clone()), ("model", model.clone())],
            Self::Timeout { engine, waiting_for, after } => vec![
                ("engine", engine.clone()),
                ("waiting_for", (*waiting_for).to_owned()),
                ("seconds", after.as_secs().to_string()),
            ],
            Self::Cancelled => Vec::new(),
            Self::Host(fault) => vec![("detail", crate::error::chain(fault))],
            Self::Other(error) => vec![("detail", error.to_string())],
        }
    }
}

/// How people install a program that is an engine.
fn install(program: &str) -> Option<&'static str> {
    Some(match program {
        "claude" => "npm install -g @anthropic-ai/claude-code",
        "codex" => "npm install -g @openai/codex",
        "gemini" => "npm install -g @google/gemini-cli",
        "cursor-agent" => "https://cursor.com/cli",
        _ => return None,
    })
}
