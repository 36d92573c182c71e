//! Some of an Anima's tools for its owner, whom no turn has called: for a coding agent, or by hand.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use animaworks_core::{
    AnimaError, Checkpoint, Directive, HostFault, MemoryStore, Origin, Permit, PermitRequest, ResultExt, ThreadId,
    Tool, ToolCall, ToolContext, ToolName, ToolOutput, ToolSpec, TriggerKind, TurnHost, TurnId, fs,
    gate::Gate,
    home::text::head,
    home::{AnimaHome, activity::Activity},
};
use animaworks_memory::FileMemory;
use animaworks_tools::OwnerPermissions;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long one call may take.
const CALL_LIMIT: Duration = Duration::from_secs(600);
/// A visit to an Anima: some of its tools behind its owner's rules, written down in its activity log.
#[derive(Debug)]
pub struct Visit {
    home: AnimaHome,
    memory: Arc<FileMemory>,
    gate: Gate,
    tools: Vec<Arc<ToolSpec>>,
    turn: TurnId,
    floor: Mutex<Origin>,
    /// How the activity log calls it.
    context: &'static str,
    cancel: CancellationToken,
}

impl Visit {
    /// By a program of the owner's to the memory. What it writes is of medium trust: it may have read anything.
    pub(super) fn to_memory(
        home: AnimaHome,
        memory: Arc<FileMemory>,
        permissions: Arc<OwnerPermissions>,
        wanted: Option<&[ToolName]>,
        turn: TurnId,
    ) -> Result<Self, AnimaError> {
        let store: Arc<dyn MemoryStore> = memory.clone();
        let mut tools = animaworks_tools::memory_tools(&store, home.locale());
        if let Some(wanted) = wanted {
            let unknown = wanted.iter().find(|name| !tools.iter().any(|tool| tool.spec().name == **name));
            if let Some(name) = unknown {
                return Err(AnimaError::Refused { code: "unknown_memory_tool", reason: name.to_string() });
            }
            tools.retain(|tool| wanted.contains(&tool.spec().name));
        }
        Ok(Self::of(home, memory, Gate::new(tools, permissions), turn, Origin::of(Origin::MIXED), "mcp"))
    }

    /// By the owner in person, to the services that the Anima may use.
    pub(super) fn to_services(
        home: AnimaHome,
        memory: Arc<FileMemory>,
        permissions: Arc<OwnerPermissions>,
        services: Vec<Arc<dyn Tool>>,
        turn: TurnId,
    ) -> Self {
        Self::of(home, memory, Gate::new(services, permissions), turn, Origin::human(), "tool")
    }

    fn of(
        home: AnimaHome,
        memory: Arc<FileMemory>,
        gate: Gate,
        turn: TurnId,
        floor: Origin,
        context: &'static str,
    ) -> Self {
        let (tools, floor) = (gate.offered(TriggerKind::Chat), Mutex::new(floor));
        Self { home, memory, gate, tools, turn, floor, context, cancel: CancellationToken::new() }
    }

    /// Ends the visit; what was written is durable.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn close(&self) {
        self.cancel.cancel();
        self.memory.close().await;
    }

    fn context(&self, call: &ToolCall) -> ToolContext {
        let limit = chrono::Duration::from_std(CALL_LIMIT).unwrap_or(chrono::Duration::MAX);
        ToolContext {
            anima: self.home.name().clone(),
            turn: self.turn.clone(),
            call: call.id.clone(),
            trigger: TriggerKind::Chat,
            thread: ThreadId::main(),
            locale: self.home.locale(),
            floor: self.floor.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            deadline: self.home.clock().now().checked_add_signed(limit).unwrap_or(DateTime::<Utc>::MAX_UTC),
            cancel: self.cancel.clone(),
            progress: mpsc::channel(1).0,
        }
    }

    async fn log(&self, kind: &str, call: &ToolCall, line: impl FnOnce(Activity) -> Activity) {
        let line =
            line(Activity::new(kind).tool(call.name.as_str()).meta("tool_use_id", call.id.as_str()).ctx(self.context));
        let home = self.home.clone();
        fs::blocking(move || home.log(line)).await.log_err("append to the activity log");
    }
}

#[async_trait]
impl TurnHost for Visit {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.tools
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        let args = call.args.to_string();
        self.log(Activity::TOOL_USE, &call, |line| line.meta("args", head(&args, 500))).await;
        let context = self.context(&call);
        let output = self.gate.call(call.clone(), &context).await?;
        {
            let mut floor = self.floor.lock().unwrap_or_else(PoisonError::into_inner);
            *floor = floor.joined(&output.leaves());
        }
        self.log(Activity::TOOL_RESULT, &call, |line| {
            line.content(output.text.clone())
                .meta("result_status", if output.is_error { "fail" } else { "ok" })
                .meta("result_bytes", output.text.len())
                .meta("is_error", output.is_error)
                .origin(output.origin.clone())
        })
        .await;
        Ok(output)
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        // a visitor's own tools are its owner's business
        Ok(Permit::Allow { args: ask.args })
    }

    async fn checkpoint(&self, _at: Checkpoint) -> Directive {
        Directive::Go
    }
}
