//! An engine that follows a script, and a host that remembers what it was asked.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use crate::{
    event::{StopReason, TurnEvent},
    executor::{
        Capabilities, Checkpoint, Directive, ExecError, Executor, ExecutorSource, HostFault, Permit, PermitRequest,
        ResolvedModel, TurnHost, TurnRequest,
    },
    mode::ExecutionMode,
    tool::{ToolCall, ToolOutput, ToolSpec},
};

/// Plays one script per turn: its tool calls really go to the host.
#[derive(Debug, Clone, Default)]
pub struct ScriptedExecutor {
    scripts: Arc<Mutex<VecDeque<Vec<TurnEvent>>>>,
    requests: Arc<Mutex<Vec<TurnRequest>>>,
    capabilities: Capabilities,
}

impl ScriptedExecutor {
    /// An engine with one script per turn. `Started` and `Completed` are added where a script has none.
    pub fn new(scripts: impl IntoIterator<Item = Vec<TurnEvent>>) -> Self {
        Self { scripts: Arc::new(Mutex::new(scripts.into_iter().collect())), ..Self::default() }
    }

    /// An engine that says these things, one per turn.
    pub fn saying<S: Into<String>>(answers: impl IntoIterator<Item = S>) -> Self {
        Self::new(answers.into_iter().map(|answer| vec![TurnEvent::Text(answer.into())]))
    }

    /// What it was asked to run.
    pub fn requests(&self) -> Vec<TurnRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Executor for ScriptedExecutor {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Autonomous
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn run(
        &self,
        request: TurnRequest,
        host: Arc<dyn TurnHost>,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let script = self.scripts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(mut script) = script else {
            let error = ExecError::Rejected { engine: "scripted".into(), status: 0, detail: "no script left".into() };
            return stream::iter([Err(error)]).boxed();
        };
        if !matches!(script.first(), Some(TurnEvent::Started { .. })) {
            script.insert(0, TurnEvent::Started { session: None });
        }
        if !matches!(script.last(), Some(TurnEvent::Completed(_))) {
            script.push(TurnEvent::Completed(StopReason::End));
        }
        let steps = stream::iter(script).then(move |event| {
            let (host, cancel) = (host.clone(), cancel.clone());
            async move {
                if cancel.is_cancelled() {
                    return vec![Err(ExecError::Cancelled)];
                }
                match event {
                    TurnEvent::ToolCall(call) => {
                        let id = call.id.clone();
                        let answered = host.call(call.clone()).await;
                        let output = answered.map(|output| TurnEvent::ToolOutput(id, output)).map_err(ExecError::Host);
                        vec![Ok(TurnEvent::ToolCall(call)), output]
                    }
                    event => vec![Ok(event)],
                }
            }
        });
        steps.flat_map(stream::iter).boxed()
    }
}

impl ExecutorSource for ScriptedExecutor {
    fn executor(&self, _model: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> {
        Ok(Arc::new(self.clone()))
    }
}

/// A host with fixed tools and one answer for every call.
#[derive(Debug)]
pub struct RecordingHost {
    tools: Vec<Arc<ToolSpec>>,
    answer: ToolOutput,
    calls: Mutex<Vec<ToolCall>>,
}

impl RecordingHost {
    /// A host that offers these tools and answers every call with `answer`.
    pub fn new(tools: Vec<Arc<ToolSpec>>, answer: ToolOutput) -> Self {
        Self { tools, answer, calls: Mutex::default() }
    }

    /// The calls that were made.
    pub fn calls(&self) -> Vec<ToolCall> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl TurnHost for RecordingHost {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.tools
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        Ok(self.answer.clone())
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        Ok(Permit::Allow { args: ask.args })
    }

    async fn checkpoint(&self, _at: Checkpoint) -> Directive {
        Directive::Go
    }
}
