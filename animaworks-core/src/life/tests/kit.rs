//! What the tests of the life are made with.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    StopReason, Tokens, Trust,
    event::TurnEvent,
    executor::{Capabilities, Checkpoint, ExecError, Executor, ResolvedModel, TurnHost, TurnRequest},
    gate::{Ask, Decision, Permissions},
    home::AnimaHome,
    ids::{CallId, ModelId, ToolName},
    layout::DataDir,
    mode::ExecutionMode,
    test_support::{FakeMemory, FakeTool, ManualClock, SerialIds},
    tool::{DurationClass, Tool, ToolCall, ToolContext, ToolError, ToolOutput, ToolSpec},
    trust::Origin,
};

/// One Anima's directory and everything around it.
pub(super) struct Kit {
    dir: Arc<tempfile::TempDir>,
    pub(super) clock: ManualClock,
    tools: Vec<Arc<dyn Tool>>,
}

impl Kit {
    pub(super) fn new() -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self { dir, clock: ManualClock::at("2026-03-31T09:15:02+09:00"), tools: Vec::new() }
    }

    pub(super) fn with_tool(&self, tool: FakeTool) -> Self {
        self.with_tools(vec![Arc::new(tool)])
    }

    pub(super) fn with_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { dir: self.dir.clone(), clock: self.clock.clone(), tools }
    }

    pub(super) fn parts(&self, engines: Arc<dyn ExecutorSource>) -> Parts {
        let dir = DataDir::new(self.dir.path()).anima(&AnimaName::new("sakura").unwrap());
        let model = ResolvedModel {
            id: ModelId::new("test/model").unwrap(),
            mode: ExecutionMode::Autonomous,
            window: Tokens(128_000),
            max_output: Tokens(4096),
            credential: String::new(),
            thinking: None,
        };
        Parts {
            home: AnimaHome::open(dir, chrono_tz::Asia::Tokyo, Arc::new(self.clock.clone())),
            memory: Arc::new(FakeMemory::default()),
            engines,
            gate: Gate::new(self.tools.clone(), Arc::new(Everything)),
            choices: Arc::new(Always(Choice::of(model))),
            ids: Arc::new(SerialIds::default()),
            post: None,
            tasks: None,
            holder: "test".into(),
        }
    }

    pub(super) async fn open(&self, engine: impl ExecutorSource + 'static) -> DigitalAnima {
        DigitalAnima::open(self.parts(Arc::new(engine))).await.unwrap()
    }

    /// Drops everything at once, as a crash does, and waits until nothing of it runs any more.
    pub(super) async fn end(&self, anima: DigitalAnima) {
        let life = Arc::downgrade(&anima.life);
        drop(anima);
        while life.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until a turn has said something.
    pub(super) async fn until_text(&self, anima: &DigitalAnima, turn: &TurnId, text: &str) {
        let mut events = anima.watch(turn.clone(), None);
        let mut said = String::new();
        while !said.contains(text) {
            match events.next().await.unwrap().unwrap().event {
                LifeEvent::Text(piece) => said.push_str(&piece),
                LifeEvent::Done(report) => panic!("ended before {text}: {report:?}"),
                _ => {}
            }
        }
    }

    /// Lets time pass while a turn waits.
    pub(super) async fn turn_time_until_done(&self, anima: &DigitalAnima, turn: &TurnId) {
        let mut events = anima.watch(turn.clone(), None);
        loop {
            match events.next().await.unwrap().unwrap().event {
                LifeEvent::Retrying { .. } => self.advance_slowly(6).await,
                LifeEvent::Done(_) => return,
                _ => {}
            }
        }
    }

    /// Moves time second by second, letting everybody see each of them.
    pub(super) async fn advance_slowly(&self, seconds: u64) {
        for _ in 0..seconds {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.clock.advance(Duration::from_secs(1));
        }
    }
}

pub(super) fn script(steps: Vec<Step>) -> Script {
    let mut runs = VecDeque::from([Vec::new()]);
    for step in steps {
        match step {
            Step::Run => runs.push_back(Vec::new()),
            step => runs.back_mut().unwrap().push(step),
        }
    }
    Script { runs: Arc::new(Mutex::new(runs)), requests: Arc::default() }
}

pub(super) fn puppet() -> (Puppet, Hand) {
    let (sender, runs) = mpsc::unbounded_channel();
    (Puppet(Arc::new(PuppetEngine { runs: sender })), Hand { runs })
}

pub(super) async fn all_events(anima: &DigitalAnima, turn: &TurnId) -> Vec<LifeEvent> {
    anima.watch(turn.clone(), None).map(|event| event.unwrap().event).collect().await
}

pub(super) fn text_of(events: &[LifeEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        LifeEvent::Text(piece) => Some(piece.as_str()),
        _ => None,
    });
    texts.collect()
}

#[derive(Debug)]
struct Everything;

impl Permissions for Everything {
    fn decide(&self, _: &Ask<'_>) -> Decision {
        Decision::Allow
    }
}

/// What a scripted run does next.
pub(super) enum Step {
    Event(TurnEvent),
    Fail(ExecError),
    /// The engine asks how to go on; the first word of the answer becomes a note.
    Ask(Checkpoint),
    /// The next run of the engine begins.
    Run,
}

impl Step {
    pub(super) fn text(text: &str) -> Self {
        Self::Event(TurnEvent::Text(text.into()))
    }

    pub(super) fn call(tool: &str, args: &str) -> Self {
        let id = CallId::new(format!("call_{tool}")).unwrap();
        let args = serde_json::from_str(args).unwrap();
        Self::Event(TurnEvent::ToolCall(ToolCall { id, name: ToolName::new(tool).unwrap(), args }))
    }
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("step")
    }
}

/// An engine that can fail where the script says so.
#[derive(Debug, Clone)]
pub(super) struct Script {
    runs: Arc<Mutex<VecDeque<Vec<Step>>>>,
    requests: Arc<Mutex<Vec<TurnRequest>>>,
}

impl Script {
    pub(super) fn requests(&self) -> Vec<TurnRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl ExecutorSource for Script {
    fn executor(&self, _: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> {
        Ok(Arc::new(self.clone()))
    }
}

static PLAIN: Capabilities = Capabilities {
    native_tools: true,
    images: false,
    resume: false,
    reports_context: false,
    needs_network: false,
    keeps_history: false,
};

impl Executor for Script {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Autonomous
    }

    fn capabilities(&self) -> &Capabilities {
        &PLAIN
    }

    fn run(
        &self,
        request: TurnRequest,
        host: Arc<dyn TurnHost>,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
        self.requests.lock().unwrap().push(request);
        let mut steps = self.runs.lock().unwrap().pop_front().unwrap_or_default();
        let ends = matches!(steps.last(), Some(Step::Fail(_) | Step::Event(TurnEvent::Completed(_))));
        if !ends {
            steps.push(Step::Event(TurnEvent::Completed(StopReason::End)));
        }
        let started = stream::iter([Ok(TurnEvent::Started { session: None })]);
        let rest = stream::iter(steps).then(move |step| act(step, host.clone())).flat_map(stream::iter);
        started.chain(rest).boxed()
    }
}

async fn act(step: Step, host: Arc<dyn TurnHost>) -> Vec<Result<TurnEvent, ExecError>> {
    match step {
        Step::Event(TurnEvent::ToolCall(call)) => {
            let id = call.id.clone();
            let output = host.call(call.clone()).await.unwrap();
            vec![Ok(TurnEvent::ToolCall(call)), Ok(TurnEvent::ToolOutput(id, output))]
        }
        Step::Event(event) => vec![Ok(event)],
        Step::Ask(at) => {
            let directive = format!("{:?}", host.checkpoint(at).await);
            vec![Ok(TurnEvent::Note(directive.split('(').next().unwrap_or_default().to_owned()))]
        }
        Step::Fail(error) => vec![Err(error)],
        Step::Run => Vec::new(),
    }
}

/// An engine moved by hand.
#[derive(Debug, Clone)]
pub(super) struct Puppet(Arc<PuppetEngine>);

#[derive(Debug)]
struct PuppetEngine {
    runs: mpsc::UnboundedSender<Run>,
}

/// The hand.
pub(super) struct Hand {
    runs: mpsc::UnboundedReceiver<Run>,
}

impl Hand {
    pub(super) async fn next_run(&mut self) -> Run {
        tokio::time::timeout(Duration::from_secs(20), self.runs.recv()).await.expect("an engine runs").unwrap()
    }
}

/// One run of a puppet.
pub(super) struct Run {
    steps: mpsc::UnboundedSender<Step>,
}

impl Run {
    pub(super) fn say(&self, text: &str) {
        self.steps.send(Step::text(text)).unwrap();
    }

    pub(super) fn call(&self, tool: &str, args: &str) {
        self.steps.send(Step::call(tool, args)).unwrap();
    }

    pub(super) fn end(&self) {
        self.steps.send(Step::Event(TurnEvent::Completed(StopReason::End))).unwrap();
    }
}

impl ExecutorSource for Puppet {
    fn executor(&self, _: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> {
        Ok(self.0.clone())
    }
}

impl Executor for PuppetEngine {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Autonomous
    }

    fn capabilities(&self) -> &Capabilities {
        &PLAIN
    }

    fn run(
        &self,
        _request: TurnRequest,
        host: Arc<dyn TurnHost>,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
        let (steps, next) = mpsc::unbounded_channel();
        self.runs.send(Run { steps }).unwrap();
        let started = stream::iter([Ok(TurnEvent::Started { session: None })]);
        let rest = stream::unfold((next, cancel), |(mut next, cancel)| async move {
            let step = tokio::select! {
                biased;
                step = next.recv() => step,
                () = cancel.cancelled() => Some(Step::Fail(ExecError::Cancelled)),
            };
            step.map(|step| (step, (next, cancel)))
        });
        let rest = rest.then(move |step| act(step, host.clone())).flat_map(stream::iter);
        started.chain(rest).boxed()
    }
}

fn spec(name: &str, returns: Trust) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: ToolName::new(name).unwrap(),
        description: name.into(),
        schema: serde_json::json!({"type": "object"}),
        effect: Effect::Reads,
        duration: DurationClass::Quick,
        returns,
    })
}

/// A tool that brings something from outside.
#[derive(Debug)]
pub(super) struct Web(Arc<ToolSpec>);

impl Default for Web {
    fn default() -> Self {
        Self(spec("web", Trust::Untrusted))
    }
}

#[async_trait]
impl Tool for Web {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("page").from_origin(Origin::of(Origin::EXTERNAL_WEB)))
    }
}

/// A tool that notes the trust it is called with.
#[derive(Debug, Clone)]
pub(super) struct Floor(Arc<ToolSpec>, Arc<Mutex<Vec<Trust>>>);

impl Default for Floor {
    fn default() -> Self {
        Self(spec("floor", Trust::Trusted), Arc::default())
    }
}

impl Floor {
    pub(super) fn seen(&self) -> Vec<Trust> {
        self.1.lock().unwrap().clone()
    }
}

#[async_trait]
impl Tool for Floor {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    async fn call(&self, _: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.1.lock().unwrap().push(cx.floor.trust());
        Ok(ToolOutput::text("noted"))
    }
}
