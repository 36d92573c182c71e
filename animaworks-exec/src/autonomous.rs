//! Mode A: any API that can call tools; the loop is ours.
//!
//! A turn is model calls and tool calls in turn until the model has nothing more
//! to do. [`Autonomous`] starts it, `ask` makes one model call with its
//! retries, `deeds` runs the tools, `history` keeps the conversation lawful.

mod arguments;
mod ask;
mod deeds;
mod guards;
pub mod history;
mod text;
mod text_calls;
mod think;
mod voice;

use std::sync::Arc;

use animaworks_core::{
    Capabilities, Checkpoint, Clock, Directive, ExecError, ExecutionMode, Executor, IdSource, Locale, StopReason,
    TurnEvent, TurnHost, TurnRequest, seams::HttpTransport, t,
};
use futures_util::stream::BoxStream;
use tokio_util::sync::CancellationToken;

pub use self::text::ApiText;
pub(crate) use self::voice::Echo;
use self::{
    ask::Answer,
    deeds::Deed,
    guards::{Runaway, Verdict},
    history::History,
};
use crate::{
    live::{Out, live},
    provider::{Endpoint, Learned},
    retry::RetryPolicy,
    wire::Finish,
};

/// How often a silent model is asked again.
const MAX_NUDGES: u32 = 2;
/// How often a model that wants to stop is sent back.
const MAX_SENT_BACK: u32 = 3;

/// Runs turns against an API.
#[derive(Debug, Clone)]
pub struct Autonomous {
    endpoint: Endpoint,
    line: Line,
    capabilities: Capabilities,
    stands_in_for: Option<&'static str>,
}

/// What model calls go through.
#[derive(Debug, Clone)]
pub struct Line {
    /// HTTP.
    pub transport: Arc<dyn HttpTransport>,
    /// Time, for limits and waits.
    pub clock: Arc<dyn Clock>,
    /// Chance, for waits.
    pub ids: Arc<dyn IdSource>,
    /// What is known about models; shared by all turns of a process.
    pub learned: Arc<Learned>,
    /// How patient to be.
    pub retry: RetryPolicy,
}

impl Autonomous {
    /// An engine for one model at one endpoint. Opens no connection.
    pub fn new(endpoint: Endpoint, line: Line) -> Self {
        let capabilities = Capabilities {
            native_tools: true,
            images: true,
            resume: false,
            reports_context: true,
            needs_network: true,
            keeps_history: false,
        };
        Self { endpoint, line, capabilities, stands_in_for: None }
    }

    /// The same engine in place of a program that is not installed; every turn says so.
    #[must_use]
    pub fn standing_in(mut self, program: &'static str) -> Self {
        self.stands_in_for = Some(program);
        self
    }
}

impl Executor for Autonomous {
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
        let (endpoint, line, missing) = (self.endpoint.clone(), self.line.clone(), self.stands_in_for);
        live(move |out| async move {
            let (limit, engine) = (request.limits.total, endpoint.provider.name.to_owned());
            let total = line.clock.sleep(limit);
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ExecError::Cancelled),
                end = Turn::new(endpoint, line, request, host, out).live(missing) => end,
                () = total => Err(ExecError::Timeout { engine, waiting_for: "the whole turn", after: limit }),
            }
        })
    }
}

/// One turn being lived.
struct Turn {
    endpoint: Endpoint,
    line: Line,
    request: TurnRequest,
    host: Arc<dyn TurnHost>,
    out: Out,
    history: History,
    runaway: Runaway,
    /// The provider's count of a prompt over our own; its number wins.
    scale: f64,
    /// An answer that was shown but not accepted as the last.
    draft: Option<String>,
}

impl Turn {
    fn new(endpoint: Endpoint, line: Line, request: TurnRequest, host: Arc<dyn TurnHost>, out: Out) -> Self {
        let history = History::new(&request.prompt, request.locale);
        Self { endpoint, line, request, host, out, history, runaway: Runaway::default(), scale: 1.0, draft: None }
    }

    fn locale(&self) -> Locale {
        self.request.locale
    }

    async fn live(mut self, missing: Option<&'static str>) -> Result<StopReason, ExecError> {
        self.out.send(TurnEvent::Started { session: None }).await;
        if let Some(program) = missing {
            let note = t!(self.locale(), "exec.instead", program = program, provider = self.engine());
            self.out.send(TurnEvent::Note(note)).await;
        }
        let max_turns = self.request.limits.max_turns.max(1);
        let (mut nudges, mut sent_back, mut halted) = (0, 0, false);
        for step in 1..=max_turns {
            // the last call has no tools, so that a person always gets an answer
            let last = halted || step == max_turns;
            let forced = last && step > 1;
            if forced {
                self.history.remind(&t!(self.locale(), "exec.answer_now"));
            }
            let answer = self.ask(!last).await?;
            let chain = self.account(&answer).await;
            if answer.circling {
                return Ok(StopReason::Runaway);
            }
            if answer.finish == Finish::Filtered {
                let detail = "stopped by the provider's content filter".to_owned();
                return Err(ExecError::Rejected { engine: self.engine(), status: 0, detail });
            }
            if !last && !answer.calls.is_empty() {
                let (verdict, directive) = self.act(answer).await?;
                halted = verdict == Verdict::Halt;
                if chain || directive {
                    return Ok(StopReason::Chain);
                }
                continue;
            }
            if answer.text.trim().is_empty() {
                if last || nudges == MAX_NUDGES {
                    return Ok(if halted { StopReason::Runaway } else { StopReason::Empty });
                }
                nudges += 1;
                self.history.remind(&t!(self.locale(), "exec.say_something"));
                continue;
            }
            match (halted, forced, answer.finish) {
                (true, ..) => return Ok(StopReason::Runaway),
                (_, true, _) => return Ok(StopReason::MaxTurns),
                (_, _, Finish::Length) => return Ok(StopReason::Length),
                _ => {}
            }
            let before_stop = Checkpoint::BeforeStop { draft: answer.text.as_str().into() };
            match self.host.checkpoint(before_stop).await {
                Directive::Remind(words) if sent_back < MAX_SENT_BACK && !last => {
                    sent_back += 1;
                    self.draft = Some(answer.text.clone());
                    self.history.assistant(answer.text, Vec::new(), answer.opaque);
                    self.history.remind(&words);
                }
                Directive::EndForChain => return Ok(StopReason::Chain),
                Directive::Go | Directive::Remind(_) => return Ok(StopReason::End),
            }
        }
        Ok(StopReason::MaxTurns)
    }

    /// Reports what a call consumed; whether the life wants the turn to end for a chain.
    async fn account(&mut self, answer: &Answer) -> bool {
        self.out.send(TurnEvent::Usage(answer.usage)).await;
        let used = answer.usage.context_tokens();
        let window = u64::from(self.request.model.window.0);
        self.out.send(TurnEvent::Context { used, window }).await;
        let directive = self.host.checkpoint(Checkpoint::Context { used, window }).await;
        self.follow(directive)
    }

    /// Runs the calls of an answer and puts their results into the conversation.
    async fn act(&mut self, answer: Answer) -> Result<(Verdict, bool), ExecError> {
        let (engine, locale) = (self.engine(), self.locale());
        let mut calls = answer.calls;
        let mut deeds = Vec::with_capacity(calls.len());
        for call in &mut calls {
            call.id = self.history.fresh_id(&call.id);
            let deed = Deed::read(call, &call.id, self.host.tools(), locale, &engine)?;
            call.name = deed.call.name.to_string();
            deeds.push(deed);
        }
        self.history.assistant(answer.text, calls, answer.opaque);
        for deed in &deeds {
            self.out.send(TurnEvent::ToolCall(deed.call.clone())).await;
        }
        let outputs = deeds::run(&self.host, &deeds, &self.out).await?;
        let (mut worst, mut chain) = (Verdict::Go, false);
        for (deed, output) in deeds.into_iter().zip(outputs) {
            let name = &deed.call.name;
            let verdict = self.runaway.saw(name.as_str(), &deed.call.args, deed.effect, &output.text);
            worst = worst.max(verdict);
            self.history.tool(deed.call.id.to_string(), output.fenced(name), output.is_error);
            let directive = self.host.checkpoint(Checkpoint::AfterTool(deed.call.id)).await;
            chain |= self.follow(directive);
        }
        if worst == Verdict::Remind {
            self.history.remind(&t!(locale, "exec.repeating"));
        }
        Ok((worst, chain))
    }

    fn follow(&mut self, directive: Directive) -> bool {
        match directive {
            Directive::Go => false,
            Directive::Remind(words) => {
                self.history.remind(&words);
                false
            }
            Directive::EndForChain => true,
        }
    }

    fn engine(&self) -> String {
        self.endpoint.provider.name.to_owned()
    }
}
