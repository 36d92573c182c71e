//! Runs the engine to its end: pumps its events, takes a broken stream up again, and chains sessions.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;

use super::{Life, Live, account::Account, choices::Choice, emotion::EmotionFilter, host::LifeHost, pen::Pen};
use crate::{
    anima::{LifeEvent, StopKind},
    error::{ErrorKind, Fault, ResultExt, Retry, chain},
    event::{StopReason, TurnEvent, lawful},
    executor::{ExecError, Executor, Prompt, PromptMessage, ResolvedModel, TurnHost, TurnRequest},
    fs,
    home::{
        AnimaHome,
        shortterm::{SessionState, StreamCheckpoint, ToolUse},
        text::{head, tail},
    },
    ids::{SessionId, ThreadId},
    mode::ExecutionMode,
    prompt::{Texts, retry},
    tool::Effect,
    trigger::SessionKind,
};

/// How long an engine may take to stop before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The wait after a stream that broke at once.
const SHORT_WAIT: Duration = Duration::from_millis(500);
/// The longest wait a provider may ask for within a turn.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A turn in its engine.
pub(super) struct Session<'a> {
    pub(super) life: &'a Life,
    pub(super) live: &'a Live,
    pub(super) choice: &'a Choice,
    pub(super) texts: &'a Texts,
    pub(super) host: Arc<LifeHost>,
    pub(super) pen: Pen,
    pub(super) account: &'a mut Account,
    /// What was asked, for attempts that begin again.
    pub(super) asked: String,
    /// The model that took over, when one did.
    pub(super) model: Option<ResolvedModel>,
}

/// How one run of the engine ended.
enum End {
    Finished(StopReason),
    Stopped,
    Failed(ExecError),
}

/// An engine with the model it runs.
pub(super) struct Engine {
    pub(super) model: ResolvedModel,
    pub(super) executor: Arc<dyn Executor>,
}

impl Session<'_> {
    /// Runs until there is an answer, somebody stops it, or nothing helps any more. `first` tells all there is to tell;
    /// a session to go on with needs less.
    pub(super) async fn run(
        &mut self,
        mut engine: Engine,
        first: Prompt,
        resume: Option<(SessionId, Prompt)>,
        continued: impl Fn(&str) -> Prompt,
    ) -> Result<StopKind, ExecError> {
        let (mut resume, mut prompt) = match resume {
            Some((session, prompt)) => (Some(session), prompt),
            None => (None, first.clone()),
        };
        let (mut attempt, mut overflowed) = (0, false);
        let mut fallbacks = self.choice.fallbacks.iter();
        loop {
            if self.live.cancel.is_cancelled() {
                // stopped while it was still remembering: no model is called
                return Ok(StopKind::Interrupted);
            }
            let session = resume.take();
            let resumed = session.is_some();
            let end = self.pump(&engine, prompt, session).await;
            let error = match end {
                End::Stopped => return Ok(StopKind::Interrupted),
                End::Finished(StopReason::Chain) if self.account.chains < self.choice.max_chains => {
                    prompt = self.chain(&continued).await;
                    continue;
                }
                End::Finished(reason) => return Ok(stop_kind(reason)),
                End::Failed(error) => error,
            };
            if resumed && matches!(error, ExecError::SessionGone { .. }) {
                tracing::info!(turn = %self.live.id, %error, "a fresh session begins");
                prompt = first.clone();
                continue;
            }
            if error.kind() == ErrorKind::ContextOverflow && !overflowed && self.chains() {
                overflowed = true;
                prompt = self.chain(&continued).await;
                continue;
            }
            let untouched = self.account.text.is_empty() && self.account.tools.is_empty();
            if untouched
                && matches!(error.kind(), ErrorKind::Quota | ErrorKind::Auth | ErrorKind::RateLimited)
                && let Some((model, executor)) = self.fallback(&mut fallbacks)
            {
                self.tell_retry(attempt, &error, Some(&model));
                self.model = Some(model.clone());
                engine = Engine { model, executor };
                prompt = first.clone();
                continue;
            }
            // an engine has already tried again what never began; what broke in the middle is ours to take up
            let broke =
                error.kind() == ErrorKind::Interrupted || (error.kind() == ErrorKind::Unavailable && !untouched);
            if !broke || error.retry() == Retry::Never || attempt >= self.choice.stream_retries {
                return Err(error);
            }
            attempt += 1;
            self.tell_retry(attempt, &error, None);
            self.host.next_attempt();
            let wait = match error.retry() {
                Retry::After(after) => after.min(LONGEST_WAIT),
                _ if untouched => SHORT_WAIT.min(self.choice.retry_delay),
                _ => self.choice.retry_delay,
            };
            self.live.hold(None);
            tokio::select! {
                () = self.live.cancel.cancelled() => return Ok(StopKind::Interrupted),
                () = self.life.clock().sleep(wait) => {}
            }
            self.live.hold(Some(self.life.clock().hold()));
            prompt = if untouched { first.clone() } else { self.again(&first, attempt).await };
        }
    }

    /// Whether this turn may go on in another session.
    fn chains(&self) -> bool {
        self.account.chains < self.choice.max_chains && self.choice.model.mode != ExecutionMode::Basic
    }

    /// Another session takes over with the notes of this one, which are kept on disk as well.
    async fn chain(&mut self, continued: &impl Fn(&str) -> Prompt) -> Prompt {
        self.account.chains += 1;
        self.host.next_chain();
        let (chain, max_chains) = (self.account.chains, self.choice.max_chains);
        self.live.feed.send(LifeEvent::Chain { chain, max_chains });
        let use_of = |(name, result): (String, String)| ToolUse { name, result, ..ToolUse::default() };
        let state = SessionState {
            session_id: self.live.id.to_string(),
            timestamp: self.life.parts.home.stamp(),
            trigger: self.live.trigger.to_string(),
            original_prompt: self.asked.clone(),
            accumulated_response: tail(self.account.answer(), 8000).to_owned(),
            tool_uses: self.host.done().into_iter().map(use_of).collect(),
            turn_count: u64::from(chain),
            ..SessionState::default()
        };
        let notes = state.render(self.life.locale());
        let (home, kind, thread) = self.place();
        fs::blocking(move || home.save_session(kind, &thread, state)).await.log_err("keep the notes of a session");
        continued(&notes)
    }

    /// The same request, with what is done and what was written.
    async fn again(&self, first: &Prompt, attempt: u32) -> Prompt {
        let done = self.host.done();
        let text = retry(self.life.locale(), self.texts, &self.asked, &done, self.account.answer());
        let mut checkpoint = StreamCheckpoint {
            trigger: self.live.trigger.to_string(),
            original_prompt: self.asked.clone(),
            accumulated_text: self.account.answer().to_owned(),
            retry_count: u64::from(attempt),
            ..StreamCheckpoint::default()
        };
        for (tool, result) in &done {
            checkpoint.completed(tool.as_str(), result);
        }
        let (home, kind, thread) = self.place();
        fs::blocking(move || home.save_checkpoint(kind, &thread, checkpoint)).await.log_err("keep a checkpoint");
        let mut prompt = first.clone();
        if let Some(PromptMessage::User { text: last, .. }) = prompt.messages.last_mut() {
            *last = text;
        }
        prompt
    }

    fn place(&self) -> (AnimaHome, SessionKind, ThreadId) {
        (self.life.parts.home.clone(), self.live.trigger.session(), self.live.trigger.thread())
    }

    fn fallback<'m>(
        &self,
        models: &mut impl Iterator<Item = &'m ResolvedModel>,
    ) -> Option<(ResolvedModel, Arc<dyn Executor>)> {
        models.find_map(|model| match self.life.parts.engines.executor(model) {
            Ok(executor) => Some((model.clone(), executor)),
            Err(error) => {
                tracing::info!(%error, model = %model.id, "a fallback model cannot run here");
                None
            }
        })
    }

    fn tell_retry(&self, attempt: u32, error: &ExecError, fallback: Option<&ResolvedModel>) {
        tracing::warn!(turn = %self.live.id, attempt, %error, "an engine's stream broke");
        self.live.feed.send(LifeEvent::Retrying {
            attempt: attempt.max(1),
            max_attempts: self.choice.stream_retries.max(1),
            reason: chain(error),
            fallback: fallback.map(|model| model.id.clone()),
        });
    }

    /// One run of the engine, event by event.
    async fn pump(&mut self, engine: &Engine, prompt: Prompt, resume: Option<SessionId>) -> End {
        let live = self.live;
        let request = TurnRequest {
            turn: live.id.clone(),
            anima: self.life.parts.home.name().clone(),
            trigger: live.trigger.kind(),
            locale: self.life.locale(),
            model: engine.model.clone(),
            prompt,
            resume,
            limits: self.choice.limits,
            work_dir: self.life.parts.home.dir().root().to_owned(),
        };
        let name = engine_name(engine.executor.mode());
        // cancelling the stream on the way out ends what the engine still does
        let cancel = live.cancel.child_token();
        let _ended = cancel.clone().drop_guard();
        let mut events = lawful(name, engine.executor.run(request, self.host.clone(), cancel));
        let mut filter = EmotionFilter::default();
        let mut out = String::new();

        let clock = self.life.clock().clone();
        let mut cancelled = pin!(live.cancel.cancelled());
        let mut over = clock.sleep(self.choice.limits.total + STOP_GRACE);
        let mut stopping = false;
        let end = loop {
            let event = tokio::select! {
                biased;
                () = &mut cancelled, if !stopping => {
                    stopping = true;
                    over = clock.sleep(STOP_GRACE);
                    continue;
                }
                event = events.next() => event,
                () = &mut over => {
                    break if stopping { End::Stopped } else {
                        let after = self.choice.limits.total;
                        End::Failed(ExecError::Timeout { engine: name.to_owned(), waiting_for: "the whole turn", after })
                    };
                }
            };
            match event {
                None => {
                    let detail = "no end event".to_owned();
                    break End::Failed(ExecError::Interrupted { engine: name.to_owned(), detail });
                }
                Some(Ok(TurnEvent::Completed(_))) if stopping => break End::Stopped,
                Some(Ok(TurnEvent::Completed(reason))) => break End::Finished(reason),
                Some(Ok(TurnEvent::Text(piece))) => {
                    filter.push(&piece, &mut out);
                    self.say(&mut out).await;
                }
                Some(Ok(TurnEvent::Started { session })) => live.set_session(session, engine.executor.mode()),
                Some(Ok(event)) => self.take(event).await,
                Some(Err(_)) if stopping => break End::Stopped,
                Some(Err(ExecError::Cancelled)) => break End::Stopped,
                Some(Err(error)) => break End::Failed(error),
            }
        };
        if let Some(emotion) = filter.finish(&mut out) {
            self.account.emotion = Some(emotion);
            live.feed.send(LifeEvent::Emotion(emotion.to_owned()));
        }
        self.say(&mut out).await;
        end
    }

    /// Passes on a piece of the answer.
    async fn say(&mut self, out: &mut String) {
        if out.is_empty() {
            return;
        }
        let piece = std::mem::take(out);
        self.account.text.push_str(&piece);
        self.live.feed.send(LifeEvent::Text(piece.clone()));
        self.pen.text(piece).await;
    }

    async fn take(&mut self, event: TurnEvent) {
        let feed = &self.live.feed;
        match event {
            TurnEvent::Thinking(piece) => {
                self.account.think(&piece);
                feed.send(LifeEvent::Thinking(piece));
            }
            TurnEvent::ToolCall(call) => {
                let detail = self.account.begin(&call);
                feed.send(LifeEvent::ToolStarted { id: call.id.clone(), name: call.name.clone(), detail });
                if !self.is_ours(call.name.as_str()) {
                    // a tool of the engine's own: written down as soon as it is seen
                    self.host.note_start(&call, Effect::Acts).await;
                }
            }
            TurnEvent::ToolOutput(id, output) => {
                let Some(name) = self.account.end(&id, &output) else { return };
                let summary = head(&output.text, 200).to_owned();
                feed.send(LifeEvent::ToolEnded {
                    id: id.clone(),
                    name: name.clone(),
                    is_error: output.is_error,
                    summary,
                });
                if !self.is_ours(name.as_str()) {
                    self.host.saw(&output);
                    self.host.note_end(&name, &id, &output).await;
                }
            }
            TurnEvent::Context { used, window } => {
                #[allow(clippy::cast_possible_truncation, reason = "a share between 0 and 1")]
                let threshold = self.choice.context_threshold as f32;
                feed.send(LifeEvent::Context { used, window, threshold });
            }
            TurnEvent::Usage(usage) => self.account.usage += usage,
            TurnEvent::Retrying { attempt, max_attempts, reason } => {
                feed.send(LifeEvent::Retrying { attempt, max_attempts, reason, fallback: None });
            }
            TurnEvent::Note(note) => self.account.notes.push(note),
            TurnEvent::Started { .. } | TurnEvent::Text(_) | TurnEvent::Completed(_) => {}
        }
    }

    /// Whether a tool goes through the host, which writes it down itself.
    fn is_ours(&self, name: &str) -> bool {
        self.host.tools().iter().any(|spec| spec.name.as_str() == name)
    }
}

fn stop_kind(reason: StopReason) -> StopKind {
    match reason {
        // no session is left to chain to, so what there is is the answer
        StopReason::End | StopReason::Chain => StopKind::Normal,
        StopReason::MaxTurns => StopKind::MaxTurns,
        StopReason::Length => StopKind::Length,
        StopReason::Runaway => StopKind::RunawayHalt,
        StopReason::Empty => StopKind::EmptyResponse,
    }
}

fn engine_name(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::Sdk => "claude code",
        ExecutionMode::Codex => "codex",
        ExecutionMode::Cursor => "cursor",
        ExecutionMode::Gemini => "gemini",
        ExecutionMode::Autonomous => "api",
        ExecutionMode::Basic => "text model",
    }
}
