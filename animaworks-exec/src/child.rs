//! Engines that are programs of their own: Claude Code, Codex, Cursor Agent, Gemini CLI.
//!
//! Each turn is one run of the program: in a process group of its own, behind the walls of
//! the [`Sandbox`], in a home of its own, with nothing of our environment but what is
//! harmless, the prompt on its input, and our tools over MCP. A program that ends without a
//! result has been interrupted, whatever its exit code says.
//!
//! | module | program |
//! |---|---|
//! | [`claude`] | `claude`, spoken with in both directions |
//! | [`codex`] | `codex exec --json` |
//! | [`cursor`] | `cursor-agent -p` |
//! | [`gemini`] | `gemini -o stream-json` |

pub mod claude;
pub mod codex;
pub mod cursor;
pub mod gemini;
pub mod home;
pub mod ndjson;
mod said;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use animaworks_core::{
    Capabilities, Checkpoint, Clock, Directive, ExecError, ExecutionMode, Executor, Fault, Locale, Prompt,
    PromptMessage, StopReason, ToolBridge, TurnEvent, TurnHost, TurnRequest,
    config::ModelCredential,
    error::{ErrorKind, chain},
    executor::Bridge,
    fs::FileError,
    process::Spec,
    seams::{Sandbox, SandboxPolicy},
    t,
};
use futures_util::{FutureExt, future::BoxFuture, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use self::{
    home::{Homes, Rooms, Slot},
    ndjson::{Line, Program},
    said::{Order, Said, Speech},
};
use crate::live::{Out, live};

/// How long a resumed program may take to say its first word.
const RESUME_GUARD: Duration = Duration::from_secs(15);

/// What a turn's program may touch, as the owner decided for its Anima.
pub type Walls = Arc<dyn Fn(&TurnRequest) -> SandboxPolicy + Send + Sync>;

/// What every program of this kind needs of the world.
#[derive(Clone)]
pub struct Surroundings {
    /// The program, as a path.
    pub program: PathBuf,
    /// Our environment, of which a child gets what is harmless.
    pub env: BTreeMap<OsString, OsString>,
    /// The walls.
    pub sandbox: Arc<dyn Sandbox>,
    /// What may be touched behind them.
    pub walls: Walls,
    /// How the program reaches our tools.
    pub bridge: Arc<dyn ToolBridge>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where the programs of an Anima are at home. Shared by all turns.
    pub homes: Homes,
    /// The key and the address of the provider; without a key the program's own login counts.
    pub credential: ModelCredential,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("program", &self.program).field("sandbox", &self.sandbox).finish()
    }
}

impl Surroundings {
    /// The program with a clean environment and a home of its own.
    fn spec(&self, request: &TurnRequest, home: &Slot) -> Spec {
        let spec = Spec::new(&self.program, &request.work_dir).harmless_env(&self.env);
        spec.env("HOME", home.path()).env("TMPDIR", home.temp()).env("NO_COLOR", "1")
    }

    /// What the program may touch: what its Anima may, its home, its own files, and its provider.
    fn policy(&self, request: &TurnRequest, home: &Slot) -> SandboxPolicy {
        let mut policy = (self.walls)(request);
        policy.read.extend(home::installation(&self.program));
        policy.write.push(home.base().to_owned());
        policy.write.extend(home.logins().iter().cloned());
        policy.write.extend(self.bridge_dirs());
        policy.connect_all = true;
        policy.local_sockets = true;
        policy.own_process = true;
        policy
    }

    fn bridge_dirs(&self) -> Vec<PathBuf> {
        self.homes.sockets().map(ToOwned::to_owned).into_iter().collect()
    }

    fn key(&self) -> Option<&str> {
        self.credential.key.as_ref().map(|found| found.secret.expose()).filter(|key| !key.is_empty())
    }
}

/// The same words for everything that goes wrong before a program runs.
fn unprepared(engine: &'static str) -> impl Fn(FileError) -> ExecError {
    move |error| ExecError::Unreachable { engine: engine.to_owned(), detail: chain(&error) }
}

/// What a wait for a program came to.
enum Heard {
    Lines(Vec<Line>),
    Over,
    Cancelled,
    Late(ExecError),
}

/// Waits for a program, but never for ever.
struct Watch {
    engine: &'static str,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    total: (Duration, BoxFuture<'static, ()>),
    silence: (Duration, BoxFuture<'static, ()>),
    idle: Duration,
    waiting_for: &'static str,
}

impl Watch {
    /// `patience`: the longest silence that is normal for this program.
    fn new(
        engine: &'static str,
        request: &TurnRequest,
        patience: Duration,
        clock: &Arc<dyn Clock>,
        cancel: &CancellationToken,
    ) -> Self {
        let limits = request.limits;
        let first = match &request.resume {
            Some(_) => RESUME_GUARD,
            None => limits.first_byte,
        };
        Self {
            engine,
            total: (limits.total, clock.sleep(limits.total)),
            silence: (first, clock.sleep(first)),
            clock: clock.clone(),
            cancel: cancel.clone(),
            idle: limits.idle.max(patience),
            waiting_for: "first byte",
        }
    }

    /// `busy`: a tool is at work, which may be silent.
    async fn wait(&mut self, program: &mut Program, busy: bool) -> Heard {
        let late = |waiting_for, after| ExecError::Timeout { engine: self.engine.to_owned(), waiting_for, after };
        let heard = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Heard::Cancelled,
            lines = program.next() => lines,
            () = &mut self.total.1 => return Heard::Late(late("the whole turn", self.total.0)),
            () = &mut self.silence.1, if !busy => return Heard::Late(late(self.waiting_for, self.silence.0)),
        };
        let Some(lines) = heard else { return Heard::Over };
        // noise is no sign of life
        if lines.iter().any(|line| matches!(line, Line::Json(_))) {
            self.waiting_for = "next event";
            self.silence = (self.idle, self.clock.sleep(self.idle));
        }
        Heard::Lines(lines)
    }
}

/// A program to run once, that only speaks.
struct Launch {
    engine: &'static str,
    spec: Spec,
    policy: SandboxPolicy,
    patience: Duration,
    speech: Box<dyn Speech>,
    /// Held until the program has ended.
    _held: (Bridge, Slot),
}

/// Runs a program that only speaks. The second value says whether anything happened that cannot be taken back.
async fn listen(
    launch: Launch,
    around: &Surroundings,
    request: &TurnRequest,
    host: &Arc<dyn TurnHost>,
    out: &Out,
    cancel: &CancellationToken,
) -> (Result<StopReason, ExecError>, bool) {
    let Launch { engine, spec, policy, patience, mut speech, _held } = launch;
    let mut program = match Program::start(engine, spec, &*around.sandbox, &policy) {
        Ok(program) => program,
        Err(error) => return (Err(error), false),
    };
    let mut watch = Watch::new(engine, request, patience, &around.clock, cancel);
    let (mut order, mut said) = (Order::new(request.locale), Vec::new());
    let end = 'turn: loop {
        let lines = match watch.wait(&mut program, order.busy()).await {
            Heard::Lines(lines) => lines,
            Heard::Over => break Err(program.post_mortem().await),
            Heard::Cancelled => break Err(ExecError::Cancelled),
            Heard::Late(error) => break Err(error),
        };
        for line in lines {
            match line {
                Line::Json(line) => speech.hear(&line, &mut said),
                Line::Noise(bytes) => match program.noise(bytes) {
                    Ok(()) => continue,
                    Err(error) => break 'turn Err(error),
                },
            }
            for said in said.drain(..) {
                match said {
                    Said::Event(event) => {
                        let answered = match &event {
                            TurnEvent::ToolOutput(id, _) => Some(id.clone()),
                            _ => None,
                        };
                        out.send_all(order.pass(event)).await;
                        if let Some(id) = answered
                            && host.checkpoint(Checkpoint::AfterTool(id)).await == Directive::EndForChain
                        {
                            break 'turn Ok(StopReason::Chain);
                        }
                    }
                    Said::End(end) => {
                        program.farewell().await;
                        break 'turn end;
                    }
                }
            }
        }
    };
    program.stop().await;
    let moved = order.moved;
    if end.is_ok() || moved {
        out.send_all(order.close()).await;
    }
    (end, moved)
}

/// What ended a run that was to go on with a session and never began: a fresh session may do better.
fn session_gone(engine: &str, error: ExecError) -> ExecError {
    let gone = matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::InvalidRequest | ErrorKind::NotFound)
        || matches!(error, ExecError::Timeout { waiting_for: "first byte", .. });
    if gone { ExecError::SessionGone { engine: engine.to_owned(), detail: chain(&error) } } else { error }
}

/// A program that only speaks, as data.
#[derive(Debug)]
struct Kind {
    engine: &'static str,
    mode: ExecutionMode,
    /// Whether it can be trusted to go on with a session.
    resume: bool,
    rooms: Rooms,
    prepare: fn(&Surroundings, &TurnRequest, Bridge, Slot) -> Result<Launch, FileError>,
}

/// Runs turns with a program that is asked once and only speaks.
#[derive(Debug, Clone)]
pub struct Teller {
    kind: &'static Kind,
    around: Surroundings,
    capabilities: Capabilities,
}

impl Teller {
    fn new(kind: &'static Kind, around: Surroundings) -> Self {
        let capabilities = Capabilities {
            native_tools: true,
            images: false,
            resume: kind.resume,
            reports_context: false,
            needs_network: true,
            keeps_history: true,
        };
        Self { kind, around, capabilities }
    }
}

impl Executor for Teller {
    fn mode(&self) -> ExecutionMode {
        self.kind.mode
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
        let (kind, around) = (self.kind, self.around.clone());
        live(move |out| {
            async move {
                let engine = kind.engine;
                let bridge = around.bridge.open(host.clone()).await?;
                let room = around.homes.enter(&request.anima, &kind.rooms).await.map_err(unprepared(engine))?;
                let launch = (kind.prepare)(&around, &request, bridge, room).map_err(unprepared(engine))?;
                let (end, moved) = listen(launch, &around, &request, &host, &out, &cancel).await;
                end.map_err(|error| match &request.resume {
                    Some(_) if !moved => session_gone(engine, error),
                    _ => error,
                })
            }
            .boxed()
        })
    }
}

/// The conversation as one text, for programs that keep their own history.
fn words(prompt: &Prompt, locale: Locale) -> String {
    if let [PromptMessage::User { text, .. }] = prompt.messages.as_slice() {
        return text.clone();
    }
    let told = prompt.messages.iter().map(|message| match message {
        PromptMessage::User { text, .. } => text.clone(),
        PromptMessage::Assistant { text, .. } => t!(locale, "exec.basic.you_said", text = text),
        PromptMessage::ToolResult { text, .. } => text.clone(),
    });
    told.collect::<Vec<_>>().join("\n\n")
}

/// The model as the program knows it: without the prefix that chose the program.
fn bare<'a>(request: &'a TurnRequest, prefix: &str) -> &'a str {
    let model = request.model.id.as_str();
    model.strip_prefix(prefix).unwrap_or(model)
}
