//! The vocabulary, the traits and the life of an Anima.
//!
//! An **Anima** is a person made of software: it has a name, a memory, a
//! judgement and a working day. This crate holds everything that is
//! `AnimaWorks` and nothing that is heavy: no HTTP client or server, no SQL, no
//! model runtime, no terminal. Everything else plugs in behind the traits here.
//!
//! | trait | what stands behind it |
//! |---|---|
//! | [`Anima`] | a person; the only way in is words |
//! | [`Executor`] | an engine that turns one prompt into one finished turn |
//! | [`Tool`] | something an Anima can do |
//! | [`MemoryStore`] | what an Anima remembers |
//!
//! ```
//! use animaworks_core::{AnimaName, Message, ThreadId, Tokens};
//!
//! let name = AnimaName::new("sakura")?;
//! let message = Message::human("tanaka", "明日の会議は何時？").in_thread(ThreadId::main());
//! assert_eq!(name.as_str(), "sakura");
//! assert_eq!(Tokens::estimate(&message.text), Tokens(9));
//! # Ok::<(), animaworks_core::BadId>(())
//! ```
//!
//! # Map, in reading order
//!
//! words: [`ids`], [`units`], [`error`], [`trust`], [`message`], [`trigger`],
//! [`task`] · traits: [`anima`], [`executor`], [`event`], [`tool`], [`memory`],
//! [`seams`] · ground: [`clock`], [`fs`], [`process`], [`tasks`], [`i18n`],
//! [`templates`].
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `test-support` | in-memory fakes of the traits and a hand-turned clock |

#![warn(missing_docs, clippy::missing_errors_doc)]

#[cfg(not(unix))]
compile_error!("AnimaWorks runs on Linux and macOS; on Windows use WSL");

pub mod error;
pub mod ids;
pub mod units;

pub mod message;
pub mod task;
pub mod trigger;
pub mod trust;

pub mod anima;
pub mod event;
pub mod executor;
pub mod memory;
pub mod mode;
pub mod seams;
pub mod tool;

pub mod config;
pub mod creation;
pub mod organisation;

pub mod gate;
pub mod home;
pub mod layout;
pub mod life;
pub mod prompt;

pub mod clock;
pub mod frontmatter;
pub mod fs;
pub mod i18n;
pub mod process;
pub mod tasks;
pub mod templates;

#[cfg(any(test, feature = "test-support"))]
pub mod test_support;

pub use anima::{Anima, AnimaError, AnimaEvent, AnimaStatus, CycleReport, LifeEvent, Numbered, Scope};
pub use clock::{Clock, Hold, SystemClock};
pub use error::{ErrorKind, Fault, ResultExt, Retry};
pub use event::{StopReason, TurnEvent};
pub use executor::{
    Capabilities, Checkpoint, Directive, ExecError, Executor, ExecutorSource, HostFault, Limits, Permit, PermitRequest,
    Prompt, PromptMessage, ResolvedModel, ToolBridge, TurnHost, TurnRequest,
};
pub use i18n::Locale;
pub use ids::{
    AnimaName, BadId, BoardName, CallId, IdSource, LeaseId, MemoryPath, MessageId, ModelId, SessionId, TaskId,
    ThreadId, ToolName, TurnId,
};
pub use layout::{AnimaDir, DataDir};
pub use life::{DigitalAnima, Parts};
pub use memory::{
    Changed, Cue, Degraded, Hit, Indexed, MemoryError, MemoryFile, MemoryHealth, MemoryStore, MemoryWrite, Priming,
    Query, Recall, SearchScope, Written,
};
pub use message::{Intent, Message, SenderKind};
pub use mode::ExecutionMode;
pub use tool::{Tool, ToolCall, ToolContext, ToolError, ToolOutput, ToolSpec, Typed, TypedTool};
pub use trigger::{Lane, Night, Trigger, TriggerKind};
pub use trust::{Origin, Trust};
pub use units::{MicroDollars, Score, Seq, Tokens, Usage};
