//! A tool that counts its calls.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    i18n::Locale,
    ids::{AnimaName, CallId, ThreadId, ToolName, TurnId},
    tool::{DurationClass, Effect, Tool, ToolContext, ToolError, ToolOutput, ToolSpec},
    trigger::TriggerKind,
    trust::{Origin, Trust},
};

/// Answers with its arguments and counts.
#[derive(Debug, Clone)]
pub struct FakeTool {
    spec: Arc<ToolSpec>,
    calls: Arc<AtomicUsize>,
}

impl FakeTool {
    /// A tool of a name and an effect.
    #[allow(clippy::expect_used, reason = "for tests, which name a constant")]
    pub fn new(name: &str, effect: Effect) -> Self {
        let spec = ToolSpec {
            name: ToolName::new(name).expect("a tool name"),
            description: format!("{name} (test)"),
            schema: serde_json::json!({"type": "object"}),
            effect,
            duration: DurationClass::Quick,
            returns: Trust::Trusted,
        };
        Self { spec: Arc::new(spec), calls: Arc::default() }
    }

    /// How often it was called.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for FakeTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    async fn call(&self, args: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(ToolOutput::text(args.to_string()))
    }
}

/// The surroundings of a call by `sakura`, in English, trusted.
#[allow(clippy::expect_used, reason = "for tests, which name constants")]
pub fn context(trigger: TriggerKind) -> ToolContext {
    ToolContext {
        anima: AnimaName::new("sakura").expect("a name"),
        turn: TurnId::new("t1").expect("an id"),
        call: CallId::new("c1").expect("an id"),
        trigger,
        thread: ThreadId::main(),
        locale: Locale::En,
        floor: Origin::human(),
        deadline: chrono::DateTime::<chrono::Utc>::MAX_UTC,
        cancel: CancellationToken::new(),
        progress: mpsc::channel(1).0,
    }
}
