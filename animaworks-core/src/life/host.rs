//! The life's side of a running turn: tools through the gate, written down before and after.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::pen::Pen;
use crate::{
    error::ResultExt,
    executor::{Checkpoint, Directive, HostFault, Permit, PermitRequest, TurnHost},
    fs,
    gate::{Decision, Gate},
    home::{AnimaHome, activity::Activity, text::head},
    i18n::Locale,
    ids::{CallId, ThreadId, ToolName, TurnId},
    prompt::Texts,
    t,
    tool::{Effect, ToolCall, ToolContext, ToolOutput, ToolSpec},
    trigger::TriggerKind,
    trust::Origin,
};

/// Tools of ours that every engine that is a program has itself.
const OWN_TOOLS: &[&str] = &["Bash", "Read", "Write", "Edit", "Glob", "Grep", "list_directory"];
/// How long one tool call may take.
const CALL_LIMIT: Duration = Duration::from_secs(600);

/// What a host is made of.
#[derive(Debug)]
pub(super) struct HostParts {
    pub(super) home: AnimaHome,
    pub(super) gate: Gate,
    pub(super) turn: TurnId,
    pub(super) trigger: TriggerKind,
    /// Whether the engine brings files and a shell of its own.
    pub(super) has_own_tools: bool,
    pub(super) context: String,
    pub(super) thread: ThreadId,
    pub(super) floor: Origin,
    pub(super) pen: Pen,
    pub(super) cancel: CancellationToken,
    pub(super) chaining: Chaining,
    pub(super) checklist: Option<Arc<str>>,
    pub(super) checklist_from: u32,
}

/// When another session takes over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chaining {
    /// Whether the engine leaves that to us.
    pub(super) possible: bool,
    /// The share of the window.
    pub(super) threshold: f64,
}

/// The host of one turn, over all its sessions and attempts.
#[derive(Debug)]
pub(super) struct LifeHost {
    parts: HostParts,
    tools: Vec<Arc<ToolSpec>>,
    state: Mutex<State>,
    chains_left: AtomicU32,
    crossed: AtomicBool,
}

#[derive(Debug)]
struct State {
    floor: Origin,
    attempt: u32,
    calls: Vec<Made>,
    reminded: bool,
}

/// A call that was made, kept so that a second attempt does not make it again.
#[derive(Debug)]
struct Made {
    attempt: u32,
    name: ToolName,
    args: Value,
    effect: Effect,
    output: Option<ToolOutput>,
    /// Whether a later attempt has been answered with it.
    replayed: bool,
}

/// What a later attempt finds out about a call.
enum Earlier {
    Never,
    Answered(ToolOutput),
    Unknown,
}

impl LifeHost {
    pub(super) fn new(parts: HostParts, max_chains: u32) -> Self {
        let tools = offered(&parts.gate, parts.trigger, parts.has_own_tools);
        let state = State { floor: parts.floor.clone(), attempt: 0, calls: Vec::new(), reminded: false };
        Self {
            parts,
            tools,
            state: Mutex::new(state),
            chains_left: AtomicU32::new(max_chains),
            crossed: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The least trusted thing this turn has seen.
    pub(super) fn floor(&self) -> Origin {
        self.state().floor.clone()
    }

    /// Another attempt begins: what was done stays done.
    pub(super) fn next_attempt(&self) {
        self.state().attempt += 1;
    }

    /// Another session begins.
    pub(super) fn next_chain(&self) {
        self.next_attempt();
        self.crossed.store(false, Ordering::SeqCst);
        let left = self.chains_left.load(Ordering::SeqCst);
        self.chains_left.store(left.saturating_sub(1), Ordering::SeqCst);
    }

    /// Whether the draft has been sent back to be checked.
    pub(super) fn reminded(&self) -> bool {
        self.state().reminded
    }

    /// What has been done so far, for a prompt that says so: tool and what came of it.
    pub(super) fn done(&self) -> Vec<(String, String)> {
        let unknown = t!(self.locale(), "core.life.maybe_done");
        self.state()
            .calls
            .iter()
            .map(|made| {
                let args: String = made.args.to_string().chars().take(120).collect();
                let came = made.output.as_ref().map_or(unknown.as_str(), |output| head(&output.text, 200));
                (made.name.to_string(), format!("{args} → {came}"))
            })
            .collect()
    }

    fn locale(&self) -> Locale {
        self.parts.home.locale()
    }

    fn effect(&self, name: &ToolName) -> Effect {
        self.tools.iter().find(|spec| spec.name == *name).map_or(Effect::External, |spec| spec.effect)
    }

    /// Looks for the same call in an earlier attempt, and notes the new one.
    fn begin(&self, call: &ToolCall, effect: Effect) -> (usize, Earlier) {
        let mut state = self.state();
        let attempt = state.attempt;
        let earlier = state.calls.iter_mut().find(|made| {
            made.attempt < attempt
                && made.effect > Effect::Reads
                && !made.replayed
                && made.name == call.name
                && made.args == call.args
        });
        if let Some(made) = earlier {
            made.replayed = true;
            let found = made.output.clone().map_or(Earlier::Unknown, Earlier::Answered);
            return (usize::MAX, found);
        }
        let made =
            Made { attempt, name: call.name.clone(), args: call.args.clone(), effect, output: None, replayed: false };
        state.calls.push(made);
        (state.calls.len() - 1, Earlier::Never)
    }

    fn end(&self, at: usize, output: &ToolOutput) {
        let mut state = self.state();
        state.floor = state.floor.joined(&output.leaves());
        if let Some(made) = state.calls.get_mut(at) {
            made.output = Some(output.clone());
        }
    }

    fn tool_context(&self, call: &CallId) -> ToolContext {
        let limit = chrono::Duration::from_std(CALL_LIMIT).unwrap_or(chrono::Duration::MAX);
        let now = self.parts.home.clock().now();
        ToolContext {
            anima: self.parts.home.name().clone(),
            turn: self.parts.turn.clone(),
            call: call.clone(),
            trigger: self.parts.trigger,
            thread: self.parts.thread.clone(),
            locale: self.locale(),
            floor: self.floor(),
            deadline: now.checked_add_signed(limit).unwrap_or(DateTime::<Utc>::MAX_UTC),
            cancel: self.parts.cancel.clone(),
            // nobody listens to lines of progress yet: sends fail at once and tools go on
            progress: mpsc::channel(1).0,
        }
    }

    fn activity(&self, kind: &str, tool: &ToolName, id: &CallId) -> Activity {
        Activity::new(kind).tool(tool.as_str()).meta("tool_use_id", id.as_str()).ctx(&self.parts.context)
    }

    /// Writes down that a tool is about to run; whether that is durable.
    pub(super) async fn note_start(&self, call: &ToolCall, effect: Effect) -> bool {
        let args = call.args.to_string();
        let durable = self.parts.pen.tool_start(&call.name, &call.id, args.clone(), effect).await;
        let line = self
            .activity(Activity::TOOL_USE, &call.name, &call.id)
            .meta("args", head(&args, 500))
            .meta("session_type", self.parts.trigger_word());
        self.log(line).await;
        durable
    }

    /// Writes down what a tool answered.
    pub(super) async fn note_end(&self, name: &ToolName, id: &CallId, output: &ToolOutput) {
        self.parts.pen.tool_end(name, id, head(&output.text, 200).to_owned()).await;
        let line = self
            .activity(Activity::TOOL_RESULT, name, id)
            .content(output.text.clone())
            .meta("result_status", if output.is_error { "fail" } else { "ok" })
            .meta("result_bytes", output.text.len())
            .meta("is_error", output.is_error)
            .origin(output.origin.clone());
        self.log(line).await;
    }

    /// Something from an engine's own tool was seen.
    pub(super) fn saw(&self, output: &ToolOutput) {
        let mut state = self.state();
        state.floor = state.floor.joined(&output.leaves());
    }

    async fn log(&self, line: Activity) {
        let home = self.parts.home.clone();
        fs::blocking(move || home.log(line)).await.log_err("append to the activity log");
    }
}

impl HostParts {
    fn trigger_word(&self) -> String {
        self.context.split(':').next().unwrap_or_default().to_owned()
    }
}

#[async_trait]
impl TurnHost for LifeHost {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.tools
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        let locale = self.locale();
        if self.parts.cancel.is_cancelled() {
            return Ok(told("Cancelled", &t!(locale, "core.life.call_cancelled")));
        }
        let effect = self.effect(&call.name);
        let (at, earlier) = self.begin(&call, effect);
        match earlier {
            Earlier::Answered(output) => return Ok(output),
            Earlier::Unknown => {
                let text = t!(locale, "core.life.call_unknown", tool = call.name);
                return Ok(told("MayHaveHappened", &text));
            }
            Earlier::Never => {}
        }
        let durable = self.note_start(&call, effect).await;
        if !durable && effect > Effect::Reads {
            let output = told("NotDurable", &t!(locale, "core.life.call_not_durable", tool = call.name));
            self.end(at, &output);
            return Ok(output);
        }
        let cx = self.tool_context(&call.id);
        let (name, id) = (call.name.clone(), call.id.clone());
        let clock = self.parts.home.clock().clone();
        let answered = tokio::select! {
            answered = self.parts.gate.call(call, &cx) => answered,
            () = clock.sleep(CALL_LIMIT) => {
                let text = t!(locale, "core.life.call_timeout", tool = name, seconds = CALL_LIMIT.as_secs());
                Ok(told("Timeout", &text))
            }
        };
        let output = answered?;
        self.end(at, &output);
        self.note_end(&name, &id, &output).await;
        Ok(output)
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        let id = CallId::new("permit").map_err(|error| HostFault::because("name a permit", error))?;
        let decision = self.parts.gate.decide(&ask.tool, &ask.args, &self.tool_context(&id));
        Ok(match decision {
            Decision::Allow => Permit::Allow { args: ask.args },
            Decision::Deny { reason, instead } => {
                let reason = [Some(reason), instead].into_iter().flatten().collect::<Vec<_>>().join(" ");
                Permit::Deny { reason: reason.into() }
            }
        })
    }

    async fn checkpoint(&self, at: Checkpoint) -> Directive {
        let may_chain = self.parts.chaining.possible && self.chains_left.load(Ordering::SeqCst) > 0;
        match at {
            Checkpoint::Context { used, window } => {
                #[allow(clippy::cast_precision_loss, reason = "a share of two counts")]
                let share = used as f64 / window.max(1) as f64;
                if share >= self.parts.chaining.threshold {
                    self.crossed.store(true, Ordering::SeqCst);
                }
                Directive::Go
            }
            // between a tool and the next thought is the safe place to stop
            Checkpoint::AfterTool(_) if may_chain && self.crossed.load(Ordering::SeqCst) => Directive::EndForChain,
            Checkpoint::AfterTool(_) => Directive::Go,
            Checkpoint::BeforeCompaction if may_chain => Directive::EndForChain,
            Checkpoint::BeforeCompaction => Directive::Go,
            Checkpoint::BeforeStop { .. } => {
                let Some(checklist) = &self.parts.checklist else { return Directive::Go };
                let mut state = self.state();
                let enough = u32::try_from(state.calls.len()).unwrap_or(u32::MAX) >= self.parts.checklist_from;
                if state.reminded || !enough || self.parts.cancel.is_cancelled() {
                    return Directive::Go;
                }
                state.reminded = true;
                Directive::Remind(checklist.clone())
            }
        }
    }
}

/// The tools a turn is offered. An engine that brings files and a shell of its own needs none of ours.
pub(super) fn offered(gate: &Gate, trigger: TriggerKind, has_own_tools: bool) -> Vec<Arc<ToolSpec>> {
    let mut tools = gate.offered(trigger);
    if has_own_tools {
        // two of a kind would cost twice and be mistaken for each other
        tools.retain(|spec| !OWN_TOOLS.contains(&spec.name.as_str()));
    }
    tools
}

/// An answer for the model instead of a result.
fn told(error_type: &str, text: &str) -> ToolOutput {
    ToolOutput::error(error_type, text, None)
}

/// The questions an answer is checked against.
pub(super) fn checklist(texts: &Texts) -> Arc<str> {
    texts.plain("completion_gate").into()
}
