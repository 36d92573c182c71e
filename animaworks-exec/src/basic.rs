//! Mode B: any model that can write text, with tools by a textual protocol (exec spec §1.15).
//!
//! The framework does the memory work around it; here are the protocol, its lenient
//! reading, and the loop. What writes the text is a [`TextModel`]: a model in this
//! process, an endpoint, or a script.

mod history;
mod listen;
mod parse;
mod protocol;

use std::{fmt::Debug, pin::Pin, sync::Arc};

use animaworks_core::{
    BadId, Capabilities, Checkpoint, Directive, ExecError, ExecutionMode, Executor, Limits, Locale, PromptMessage,
    ResolvedModel, StopReason, Tokens, ToolCall, ToolName, TurnEvent, TurnHost, TurnRequest, Usage, ids::CallId, t,
};
use async_stream::try_stream;
use futures_util::{StreamExt, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use self::{
    listen::{Heard, Listener, Piece},
    parse::Call,
};

/// A model that reads text and writes text.
pub trait TextModel: Debug + Send + Sync {
    /// Its name in errors, such as `ollama` or `local/gemma3`.
    fn name(&self) -> &str;

    /// Whether it leaves the machine.
    fn needs_network(&self) -> bool;

    /// Begins to write one message; dropping the stream ends the work behind it.
    ///
    /// The stream ends with [`TextEvent::End`] or an `Err`; one that just stops counts
    /// as interrupted.
    fn write(&self, ask: TextAsk) -> BoxStream<'static, Result<TextEvent, ExecError>>;
}

/// What a [`TextModel`] is asked.
#[derive(Debug, Clone)]
pub struct TextAsk {
    /// The model, as resolved for the turn.
    pub model: ResolvedModel,
    /// Who it is and how it calls tools.
    pub system: Arc<str>,
    /// The exchange, oldest first; speakers alternate and a person speaks last.
    pub messages: Vec<TextMessage>,
    /// When to give up.
    pub limits: Limits,
}

/// One message of the exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMessage {
    /// Whether the model wrote it.
    pub by_model: bool,
    /// What it says.
    pub text: String,
}

/// What a [`TextModel`] sends.
#[derive(Debug, Clone, PartialEq)]
pub enum TextEvent {
    /// It is working, and nothing is to be shown yet.
    Working,
    /// A piece of its text.
    Text(String),
    /// A piece of thinking that came on a channel of its own.
    Thinking(String),
    /// What it consumed.
    Usage(Usage),
    /// A fact worth telling, in words of the catalogue.
    Note(String),
    /// It is done: [`StopReason::End`] or [`StopReason::Length`].
    End(StopReason),
}

/// Model calls within one turn, at most (exec spec §1.15).
const MAX_STEPS: u32 = 20;
/// How often a model is asked again for the same kind of slip.
const MAX_REPROMPTS: u32 = 2;
/// The same call this often in a row gets a reminder.
const REPEATS_REMIND: u32 = 3;
/// The same call this often in a row ends the turn.
const REPEATS_STOP: u32 = 5;
/// Of earlier results so many characters stay when room is needed.
const SHORTENED_CHARS: usize = 200;

/// The engine of mode B.
#[derive(Debug, Clone)]
pub struct Basic {
    model: Arc<dyn TextModel>,
    capabilities: Capabilities,
}

impl Basic {
    /// Mode B over a model.
    pub fn new(model: Arc<dyn TextModel>) -> Self {
        let capabilities = Capabilities { needs_network: model.needs_network(), ..Capabilities::default() };
        Self { model, capabilities }
    }
}

impl Executor for Basic {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Basic
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
        turn(self.model.clone(), request, host, cancel)
    }
}

/// What a message led to.
#[derive(Debug)]
enum Step {
    /// Run this tool.
    Call(ToolCall),
    /// Say this to the model and let it write again.
    Again(String),
    /// The turn is over.
    Done(StopReason),
}

fn turn(
    model: Arc<dyn TextModel>,
    request: TurnRequest,
    host: Arc<dyn TurnHost>,
    cancel: CancellationToken,
) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
    try_stream! {
        yield TurnEvent::Started { session: None };
        if request.prompt.messages.iter().any(has_images) {
            yield TurnEvent::Note(t!(request.locale, "exec.basic.no_images"));
        }
        let mut exchange = Exchange::new(&request, host.as_ref());
        let mut slips = Slips::new(request.locale);
        let mut wait = Wait::new(model.name(), request.limits, cancel);
        let steps = request.limits.max_turns.clamp(1, MAX_STEPS);
        // why the model was told to come to an end, once it was
        let mut ending = None;
        let mut step = 0;
        let reason = loop {
            step += 1;
            if step > steps && ending.is_none() {
                ending = Some(StopReason::MaxTurns);
                exchange.said(t!(request.locale, "exec.basic.wrap_up"));
            }
            exchange.make_room();
            let context = (u64::from(exchange.size().0), u64::from(request.model.window.0));
            yield TurnEvent::Context { used: context.0, window: context.1 };
            let at = Checkpoint::Context { used: context.0, window: context.1 };
            if host.checkpoint(at).await == Directive::EndForChain {
                break StopReason::Chain;
            }

            let mut message = Written::default();
            let mut events = model.write(exchange.ask(&request));
            while message.is_open() {
                let event = wait.next(&mut events).await?;
                for event in message.take(event, exchange.has_spoken) {
                    yield event;
                }
            }
            drop(events);
            if !message.counted {
                yield TurnEvent::Usage(message.estimate(context.0));
            }
            exchange.has_spoken |= !message.shown.is_empty();
            if let Some(reason) = ending {
                break reason;
            }

            let next = match slips.judge(&message, host.tools())? {
                Step::Done(reason) => match host.checkpoint(Checkpoint::BeforeStop { draft: message.shown.as_str().into() }).await {
                    Directive::Remind(reminder) if !slips.reminded => {
                        slips.reminded = true;
                        Step::Again(reminder.to_string())
                    }
                    _ => Step::Done(reason),
                },
                next => next,
            };
            exchange.wrote(message.text);
            match next {
                Step::Done(reason) => break reason,
                Step::Again(words) => exchange.said(words),
                Step::Call(call) => {
                    let repeats = slips.repeats(&call);
                    yield TurnEvent::ToolCall(call.clone());
                    let output = wait.cancellable(host.call(call.clone())).await??;
                    yield TurnEvent::ToolOutput(call.id.clone(), output.clone());
                    let directive = host.checkpoint(Checkpoint::AfterTool(call.id)).await;
                    let reminder = match &directive {
                        Directive::EndForChain => break StopReason::Chain,
                        Directive::Remind(reminder) => Some(reminder.to_string()),
                        Directive::Go if repeats >= REPEATS_REMIND => Some(t!(request.locale, "exec.basic.repeating")),
                        Directive::Go => None,
                    };
                    exchange.answered(protocol::answered(request.locale, &call.name, &output, reminder.as_deref()));
                    if repeats >= REPEATS_STOP {
                        ending = Some(StopReason::Runaway);
                        exchange.said(t!(request.locale, "exec.basic.wrap_up"));
                    }
                }
            }
        };
        yield TurnEvent::Completed(reason);
    }
    .boxed()
}

fn has_images(message: &PromptMessage) -> bool {
    matches!(message, PromptMessage::User { images, .. } if !images.is_empty())
}

/// The limits of a turn, held against whatever is waited for.
#[derive(Debug)]
struct Wait {
    engine: String,
    limits: Limits,
    cancel: CancellationToken,
    whole_turn: Pin<Box<tokio::time::Sleep>>,
    /// Nothing has come yet.
    fresh: bool,
}

impl Wait {
    fn new(engine: &str, limits: Limits, cancel: CancellationToken) -> Self {
        let whole_turn = Box::pin(tokio::time::sleep(limits.total));
        Self { engine: engine.to_owned(), limits, cancel, whole_turn, fresh: true }
    }

    /// The next event of a message.
    async fn next(
        &mut self,
        events: &mut BoxStream<'static, Result<TextEvent, ExecError>>,
    ) -> Result<TextEvent, ExecError> {
        let (patience, waiting_for) =
            if self.fresh { (self.limits.first_byte, "first byte") } else { (self.limits.idle, "next event") };
        let next = tokio::time::timeout(patience, events.next());
        match self.cancellable(next).await? {
            Ok(Some(event)) => {
                let event = event?;
                self.fresh = matches!(event, TextEvent::End(_));
                Ok(event)
            }
            Ok(None) => {
                Err(ExecError::Interrupted { engine: self.engine.clone(), detail: "no end of the message".to_owned() })
            }
            Err(elapsed) => {
                tracing::debug!(%elapsed, waiting_for, "gave up");
                Err(ExecError::Timeout { engine: self.engine.clone(), waiting_for, after: patience })
            }
        }
    }

    async fn cancellable<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ExecError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ExecError::Cancelled),
            () = &mut self.whole_turn => Err(ExecError::Timeout {
                engine: self.engine.clone(),
                waiting_for: "the whole turn",
                after: self.limits.total,
            }),
            done = work => Ok(done),
        }
    }
}

/// One message while it is written.
#[derive(Debug, Default)]
struct Written {
    listener: Listener,
    /// All of it.
    text: String,
    /// What a person sees of it.
    shown: String,
    heard: Heard,
    end: Option<StopReason>,
    counted: bool,
}

impl Written {
    /// Whether more is to come. Behind a call nothing counts: a model that goes on invents the result.
    fn is_open(&self) -> bool {
        self.end.is_none() && self.heard == Heard::Prose
    }

    /// Takes an event of the model; what goes on to the life.
    fn take(&mut self, event: TextEvent, has_spoken: bool) -> Vec<TurnEvent> {
        let mut pieces = Vec::new();
        match event {
            TextEvent::Working => {}
            TextEvent::Text(text) => {
                self.text.push_str(&text);
                self.heard = self.listener.push(&text, &mut pieces);
            }
            TextEvent::Thinking(text) => return vec![TurnEvent::Thinking(text)],
            TextEvent::Usage(usage) => {
                self.counted = true;
                return vec![TurnEvent::Usage(usage)];
            }
            TextEvent::Note(note) => return vec![TurnEvent::Note(note)],
            TextEvent::End(reason) => {
                self.end = Some(reason);
                self.heard = self.listener.finish(&mut pieces);
            }
        }
        let mut out = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    // two messages of one turn are two paragraphs
                    if self.shown.is_empty() && has_spoken {
                        out.push(TurnEvent::Text("\n\n".to_owned()));
                    }
                    self.shown.push_str(&text);
                    out.push(TurnEvent::Text(text));
                }
                Piece::Thinking(text) => out.push(TurnEvent::Thinking(text)),
            }
        }
        out
    }

    fn estimate(&self, input_tokens: u64) -> Usage {
        Usage {
            input_tokens,
            output_tokens: u64::from(Tokens::estimate(&self.text).0),
            estimated: true,
            ..Usage::default()
        }
    }
}

/// What a model does wrong, and how often.
#[derive(Debug)]
struct Slips {
    locale: Locale,
    calls: u32,
    /// Kind of slip → times: announced, unreadable, unknown, silent.
    made: [u32; 4],
    last: Option<(ToolName, serde_json::Value, u32)>,
    reminded: bool,
}

impl Slips {
    fn new(locale: Locale) -> Self {
        Self { locale, calls: 0, made: [0; 4], last: None, reminded: false }
    }

    /// What a message leads to.
    fn judge(&mut self, message: &Written, tools: &[Arc<animaworks_core::ToolSpec>]) -> Result<Step, ExecError> {
        Ok(match &message.heard {
            Heard::Call(call) => match tools.iter().find(|tool| tool.name.as_str() == call.tool) {
                Some(tool) => Step::Call(self.numbered(tool.name.clone(), call)?),
                None => self.again(2, StopReason::Runaway, protocol::unknown_tool(self.locale, &call.tool, tools)),
            },
            Heard::Broken => self.again(1, StopReason::Runaway, t!(self.locale, "exec.basic.broken_call")),
            Heard::Prose if message.shown.trim().is_empty() => {
                self.again(3, StopReason::Empty, t!(self.locale, "exec.basic.empty"))
            }
            Heard::Prose => {
                let reason = message.end.unwrap_or(StopReason::End);
                if !tools.is_empty() && protocol::announces(&message.shown) {
                    self.again(0, reason, t!(self.locale, "exec.basic.announced"))
                } else {
                    Step::Done(reason)
                }
            }
        })
    }

    /// Asks once more, or ends for `reason` when that was done often enough.
    fn again(&mut self, kind: usize, reason: StopReason, words: String) -> Step {
        let Some(made) = self.made.get_mut(kind) else { return Step::Done(reason) };
        *made += 1;
        if *made > MAX_REPROMPTS { Step::Done(reason) } else { Step::Again(words) }
    }

    fn numbered(&mut self, name: ToolName, call: &Call) -> Result<ToolCall, ExecError> {
        self.calls += 1;
        let id =
            CallId::new(format!("call-{}", self.calls)).map_err(|error: BadId| ExecError::Other(Box::new(error)))?;
        Ok(ToolCall { id, name, args: call.args.clone() })
    }

    /// How often this very call has been made in a row.
    fn repeats(&mut self, call: &ToolCall) -> u32 {
        let times = match &self.last {
            Some((name, args, times)) if *name == call.name && *args == call.args => times + 1,
            _ => 1,
        };
        self.last = Some((call.name.clone(), call.args.clone(), times));
        times
    }
}

/// The exchange of one turn, and the room it has.
#[derive(Debug)]
struct Exchange {
    system: Arc<str>,
    messages: Vec<TextMessage>,
    /// Which messages are results of tools.
    results: Vec<usize>,
    room: Tokens,
    locale: Locale,
    /// Whether a person has seen text of this turn.
    has_spoken: bool,
}

impl Exchange {
    fn new(request: &TurnRequest, host: &dyn TurnHost) -> Self {
        let window = request.model.window;
        let system = protocol::system(request.locale, &request.prompt.system, host.tools(), window);
        let first = history::render(request.locale, &request.prompt.messages);
        Self {
            system: system.into(),
            messages: vec![TextMessage { by_model: false, text: first }],
            results: Vec::new(),
            room: window.saturating_sub(request.model.max_output.min(Tokens(window.0 / 4))),
            locale: request.locale,
            has_spoken: false,
        }
    }

    fn ask(&self, request: &TurnRequest) -> TextAsk {
        TextAsk {
            model: request.model.clone(),
            system: self.system.clone(),
            messages: self.messages.clone(),
            limits: request.limits,
        }
    }

    /// The model has written this.
    fn wrote(&mut self, text: String) {
        // silence is no message
        if text.trim().is_empty() {
            return;
        }
        self.messages.push(TextMessage { by_model: true, text });
    }

    /// Something is said to the model. Speakers alternate, so that two in a row become one message.
    fn said(&mut self, text: String) {
        match self.messages.last_mut() {
            Some(last) if !last.by_model => {
                last.text.push_str("\n\n");
                last.text.push_str(&text);
            }
            _ => self.messages.push(TextMessage { by_model: false, text }),
        }
    }

    /// A tool has answered.
    fn answered(&mut self, text: String) {
        self.results.push(self.messages.len());
        self.messages.push(TextMessage { by_model: false, text });
    }

    fn size(&self) -> Tokens {
        let exchange: Tokens = self.messages.iter().map(|message| Tokens::estimate(&message.text)).sum();
        Tokens::estimate(&self.system) + exchange
    }

    /// Shortens the oldest results until the exchange fits; the newest stays whole.
    fn make_room(&mut self) {
        while self.size() > self.room && self.results.len() > 1 {
            let oldest = self.results.remove(0);
            if let Some(message) = self.messages.get_mut(oldest)
                && message.text.chars().count() > SHORTENED_CHARS
            {
                let head: String = message.text.chars().take(SHORTENED_CHARS).collect();
                let mark = t!(self.locale, "exec.basic.shortened");
                message.text = format!("{head}…\n</tool_result>\n{mark}");
            }
        }
    }
}
