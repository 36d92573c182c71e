//! What every test here starts from.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use animaworks_core::{
    AnimaName, Checkpoint, Clock, Directive, ExecError, ExecutionMode, Executor, HostFault, Limits, Locale, ModelId,
    Permit, PermitRequest, Prompt, PromptMessage, ResolvedModel, SystemClock, Tokens, Tool, ToolCall, ToolOutput,
    ToolSpec, TurnEvent, TurnHost, TurnId, TurnRequest,
    config::{CredentialSource, Found, ModelCredential, Secret},
    event::TurnLaw,
    seams::HttpTransport,
    test_support::{FakeTool, SerialIds},
    tool::Effect,
    trigger::TriggerKind,
};
use animaworks_exec::{
    autonomous::{Autonomous, Line},
    provider::{Endpoint, Learned},
    retry::RetryPolicy,
    transport::{Transport, TransportOptions},
};
use async_trait::async_trait;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

pub(crate) const KEY: &str = "sk-planted-5f0c9d2e7a1b4836";

/// A turn's request about one message.
pub(crate) fn request(text: &str) -> TurnRequest {
    TurnRequest {
        turn: TurnId::new("t1").unwrap(),
        anima: AnimaName::new("sakura").unwrap(),
        trigger: TriggerKind::Chat,
        locale: Locale::En,
        model: ResolvedModel {
            id: ModelId::new("openai/kit").unwrap(),
            mode: ExecutionMode::Autonomous,
            window: Tokens(128_000),
            max_output: Tokens(8_192),
            credential: "openai".to_owned(),
            thinking: None,
        },
        prompt: Prompt {
            system: "You are Sakura.".into(),
            messages: vec![PromptMessage::User { text: text.to_owned(), images: Vec::new() }],
        },
        resume: None,
        limits: Limits::default(),
        work_dir: "/nonexistent".into(),
    }
}

pub(crate) fn credential(base_url: Option<&str>) -> ModelCredential {
    let key = Found { secret: Secret::new(KEY), source: CredentialSource::Env("KIT".to_owned()) };
    ModelCredential { key: Some(key), base_url: base_url.map(str::to_owned), ..ModelCredential::default() }
}

pub(crate) fn endpoint(model: &str, base_url: &str) -> Endpoint {
    Endpoint::open(model, &credential(Some(base_url))).unwrap()
}

pub(crate) fn line(clock: Arc<dyn Clock>) -> Line {
    let transport = Transport::open(TransportOptions::default(), clock.clone()).unwrap();
    line_over(Arc::new(transport), clock)
}

pub(crate) fn line_over(transport: Arc<dyn HttpTransport>, clock: Arc<dyn Clock>) -> Line {
    let retry = RetryPolicy { retries: 0, ..RetryPolicy::default() };
    Line { transport, clock, ids: Arc::new(SerialIds::default()), learned: Arc::new(Learned::default()), retry }
}

/// An engine that talks to `base_url` as an OpenAI-compatible server, never trying twice.
pub(crate) fn engine(base_url: &str) -> Autonomous {
    Autonomous::new(endpoint("openai/kit", base_url), line(Arc::new(SystemClock::new())))
}

/// A host with tools `read`, `write` and `act`, answers by tool, and directives by checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    tools: Vec<Arc<ToolSpec>>,
    pub(crate) answers: BTreeMap<String, ToolOutput>,
    pub(crate) before_stop: Mutex<Vec<Directive>>,
    pub(crate) after_tool: Mutex<Vec<Directive>>,
    calls: Mutex<Vec<ToolCall>>,
    checkpoints: Mutex<Vec<Checkpoint>>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let tools = [("read", Effect::Reads), ("write", Effect::Remembers), ("act", Effect::Acts)];
        let tools = tools.map(|(name, effect)| FakeTool::new(name, effect).spec().clone());
        Self { tools: tools.to_vec(), ..Self::default() }
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|call| format!("{} {}", call.name, call.args)).collect()
    }

    pub(crate) fn checkpoints(&self) -> Vec<Checkpoint> {
        self.checkpoints.lock().unwrap().clone()
    }
}

#[async_trait]
impl TurnHost for Desk {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.tools
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        let output = self.answers.get(call.name.as_str()).cloned();
        let output = output.unwrap_or_else(|| ToolOutput::text(format!("{} done", call.name)));
        self.calls.lock().unwrap().push(call);
        Ok(output)
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        Ok(Permit::Allow { args: ask.args })
    }

    async fn checkpoint(&self, at: Checkpoint) -> Directive {
        let script = match &at {
            Checkpoint::BeforeStop { .. } => Some(&self.before_stop),
            Checkpoint::AfterTool(_) => Some(&self.after_tool),
            _ => None,
        };
        self.checkpoints.lock().unwrap().push(at);
        script.and_then(|script| script.lock().unwrap().pop()).unwrap_or(Directive::Go)
    }
}

/// A whole turn, held to the law of its events.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) events: Vec<TurnEvent>,
    pub(crate) error: Option<ExecError>,
}

impl Told {
    pub(crate) fn text(&self) -> String {
        self.pick(|event| if let TurnEvent::Text(text) = event { Some(text.as_str()) } else { None })
    }

    pub(crate) fn thoughts(&self) -> String {
        self.pick(|event| if let TurnEvent::Thinking(text) = event { Some(text.as_str()) } else { None })
    }

    pub(crate) fn stop(&self) -> Option<animaworks_core::StopReason> {
        match self.events.last() {
            Some(TurnEvent::Completed(reason)) => Some(*reason),
            _ => None,
        }
    }

    pub(crate) fn usage(&self) -> animaworks_core::Usage {
        let mut sum = animaworks_core::Usage::default();
        for event in &self.events {
            if let TurnEvent::Usage(usage) = event {
                sum += *usage;
            }
        }
        sum
    }

    fn pick<'a>(&'a self, part: impl Fn(&'a TurnEvent) -> Option<&'a str>) -> String {
        self.events.iter().filter_map(part).collect()
    }
}

/// Runs a turn to its end.
pub(crate) async fn tell(engine: &dyn Executor, request: TurnRequest, host: Arc<Desk>) -> Told {
    tell_until(engine, request, host, CancellationToken::new()).await
}

/// Runs a turn to its end, or to what `cancel` makes of it.
pub(crate) async fn tell_until(
    engine: &dyn Executor,
    request: TurnRequest,
    host: Arc<dyn TurnHost>,
    cancel: CancellationToken,
) -> Told {
    let mut stream = engine.run(request, host, cancel);
    let (mut law, mut events, mut error) = (TurnLaw::default(), Vec::new(), None);
    while let Some(event) = stream.next().await {
        if let Err(breach) = law.check(&event) {
            panic!("{breach}: {event:?} after {events:?}");
        }
        match event {
            Ok(event) => events.push(event),
            Err(fault) => error = Some(fault),
        }
    }
    let ended = matches!(events.last(), Some(TurnEvent::Completed(_)));
    assert!(ended != error.is_some(), "a turn ends once: {events:?} {error:?}");
    Told { events, error }
}
