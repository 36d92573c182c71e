//! The life of an Anima: one path for every reason to live through something (DESIGN §4).
//!
//! ```text
//! trigger ─► lane ─► prime ─► build prompt ─► run engine ─► act through tools ─► record ─► report
//! ```
//!
//! The path is [`cycle`]; what differs by trigger is the table in [`policy`]. Lanes run side by side,
//! turns within one of them one after the other. What is accepted is on disk before [`DigitalAnima::talk`]
//! returns; what breaks off is found by [`recover`] when the Anima is opened again.

mod account;
mod choices;
mod compress;
mod cycle;
mod emotion;
mod engine;
mod gather;
mod host;
mod hub;
mod lanes;
mod pen;
mod policy;
mod record;
mod recover;
mod sketch;

#[cfg(test)]
mod tests;

pub use choices::{Always, Choice, Choices, FileChoices};
pub use sketch::{Sketch, sketch};

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    anima::{
        Anima, AnimaError, AnimaEvent, AnimaStatus, CycleAction, CycleReport, LifeEvent, Numbered, RunningTurn, Scope,
        StopKind,
    },
    clock::{Clock, Hold},
    error::{ResultExt, chain},
    executor::ExecutorSource,
    fs::{self, FileError, Lock},
    gate::Gate,
    home::{
        AnimaHome,
        activity::Activity,
        conversation::{Accepted, mark_interrupted},
        journal::Journal,
        transcript::TranscriptLine,
    },
    i18n::Locale,
    ids::{AnimaName, IdSource, SessionId, ThreadId, TurnId},
    memory::MemoryStore,
    message::{Message, SenderKind},
    mode::ExecutionMode,
    seams::{PostOffice, TaskBook},
    t,
    tasks::Tasks,
    trigger::Trigger,
    units::{Seq, Usage},
};

use self::{
    emotion::EmotionFilter,
    hub::Feed,
    lanes::{Key, Lanes, Ticket},
    policy::LanePolicy,
};

/// The longest message, in characters.
pub const MAX_MESSAGE: usize = 200_000;
/// Events of a turn that are kept for those who come late.
const TURN_EVENTS: usize = 16_384;
/// Events of the life that are kept.
const LIFE_EVENTS: usize = 1024;
/// Finished turns that can still be looked at.
const RECENT_TURNS: usize = 64;
/// How long interrupted turns may take to put their words away at the end.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What an Anima is composed of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Its files.
    pub home: AnimaHome,
    /// What it remembers.
    pub memory: Arc<dyn MemoryStore>,
    /// Its engines.
    pub engines: Arc<dyn ExecutorSource>,
    /// Its tools and the rules they are used under.
    pub gate: Gate,
    /// What its owner decided.
    pub choices: Arc<dyn Choices>,
    /// Where turns get their names.
    pub ids: Arc<dyn IdSource>,
    /// Where letters come from, when there are any.
    pub post: Option<Arc<dyn PostOffice>>,
    /// Where tasks are, when there are any.
    pub tasks: Option<Arc<dyn TaskBook>>,
    /// Who holds the Anima, for others to read: a process id and what it does.
    pub holder: String,
}

/// An Anima that lives in this process. One process at a time holds it.
#[derive(Debug)]
pub struct DigitalAnima {
    life: Arc<Life>,
    /// Owned here and not by the life, whose turns hold it: dropping the Anima ends them.
    tasks: Arc<Tasks>,
    _held: Lock,
}

/// What all turns of an Anima share.
#[derive(Debug)]
struct Life {
    parts: Parts,
    lanes: Lanes,
    live: Mutex<BTreeMap<TurnId, Arc<Live>>>,
    recent: Mutex<VecDeque<(TurnId, Arc<Feed<LifeEvent>>)>>,
    events: Arc<Feed<AnimaEvent>>,
    tasks: Weak<Tasks>,
    /// Fires when all of it is to end.
    ended: CancellationToken,
    /// Makes accepting one message after the other: the same id cannot be taken twice at once.
    accepting: tokio::sync::Mutex<()>,
    closing: AtomicBool,
}

/// A turn that waits or runs.
#[derive(Debug)]
struct Live {
    id: TurnId,
    trigger: Trigger,
    policy: LanePolicy,
    feed: Arc<Feed<LifeEvent>>,
    cancel: CancellationToken,
    state: Mutex<LiveState>,
}

#[derive(Debug, Default)]
struct LiveState {
    since: Option<DateTime<Utc>>,
    /// The engine's own session, and which engine's.
    session: Option<(SessionId, ExecutionMode)>,
    /// Keeps simulated time standing while it works.
    hold: Option<Hold>,
}

impl DigitalAnima {
    /// Wakes an Anima up: takes hold of it, and puts away what an earlier life left unfinished.
    ///
    /// # Errors
    ///
    /// [`AnimaError::Held`] when another process holds it; [`AnimaError::Home`] when its files cannot be used.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was put away stays so, the rest is found the next time.
    pub async fn open(parts: Parts) -> Result<Self, AnimaError> {
        let (home, holder) = (parts.home.clone(), parts.holder.clone());
        let (held, found) = fs::blocking(move || {
            let held = match Lock::try_hold(&home.dir().run().join("anima.lock"), &holder)? {
                Ok(held) => held,
                Err(other) => return Err(AnimaError::Held { name: home.name().clone(), holder: other.0 }),
            };
            let found = recover::recover(&home)?;
            Ok((held, found))
        })
        .await?;
        let tasks = Arc::new(Tasks::new("life"));
        let life = Life::new(parts, &tasks);
        for found in found {
            life.tell_recovered(found);
        }
        Ok(Self { life: Arc::new(life), tasks, _held: held })
    }

    /// Its files.
    pub fn home(&self) -> &AnimaHome {
        &self.life.parts.home
    }

    /// What it remembers.
    pub fn memory(&self) -> &Arc<dyn MemoryStore> {
        &self.life.parts.memory
    }

    /// Accepts a message in a task of its own: a caller that goes away cannot leave it half accepted.
    async fn spoken(&self, message: Message) -> Result<TurnId, AnimaError> {
        let (sender, answer) = oneshot::channel();
        let life = self.life.clone();
        self.tasks.spawn("talk", async move {
            let accepted = life.talk(message).await;
            if sender.send(accepted).is_err() {
                tracing::debug!("who spoke did not wait for the answer");
            }
        });
        match answer.await {
            Ok(accepted) => accepted,
            Err(gone) => {
                tracing::debug!(%gone, "the life ended while a message was accepted");
                Err(self.life.closed())
            }
        }
    }
}

#[async_trait]
impl Anima for DigitalAnima {
    fn name(&self) -> &AnimaName {
        self.life.parts.home.name()
    }

    async fn talk(&self, message: Message) -> Result<TurnId, AnimaError> {
        self.spoken(message).await
    }

    async fn wake(&self, trigger: Trigger) -> Result<TurnId, AnimaError> {
        match trigger {
            Trigger::Chat(message) => self.spoken(*message).await,
            trigger => self.life.wake(trigger),
        }
    }

    fn watch(&self, turn: TurnId, after: Option<Seq>) -> BoxStream<'static, Result<Numbered<LifeEvent>, AnimaError>> {
        match self.life.feed(&turn) {
            Some(feed) => feed.watch(after),
            None => stream::iter([Err(AnimaError::UnknownTurn { turn })]).boxed(),
        }
    }

    async fn interrupt(&self, scope: Scope) -> Result<(), AnimaError> {
        self.life.interrupt(&scope)
    }

    async fn status(&self) -> Result<AnimaStatus, AnimaError> {
        let choices = self.life.parts.choices.clone();
        let (enabled, model) = fs::blocking(move || {
            // without a usable model the rest of the status is still worth having
            let model = choices.choose(&Trigger::Bootstrap).log_err("choose a model");
            Ok::<_, AnimaError>((choices.is_enabled()?, model.map(|choice| choice.model.id)))
        })
        .await?;
        let live = self.life.turns();
        let running: Vec<RunningTurn> = live.values().filter_map(|live| live.running()).collect();
        let waiting = live.len() - running.len();
        Ok(AnimaStatus { name: self.name().clone(), enabled, running, waiting, model })
    }

    fn events(&self, after: Option<Seq>) -> BoxStream<'static, Result<Numbered<AnimaEvent>, AnimaError>> {
        self.life.events.watch(after)
    }

    async fn shutdown(&self, grace: Duration) -> Result<(), AnimaError> {
        let life = &self.life;
        life.closing.store(true, Ordering::SeqCst);
        let clock = life.clock().clone();
        tokio::select! {
            () = self.tasks.finished() => {}
            () = clock.sleep(grace) => {
                life.interrupt(&Scope::All)?;
                tokio::select! {
                    () = self.tasks.finished() => {}
                    () = clock.sleep(LAST_WORDS) => tracing::warn!("turns did not end; their journals are kept"),
                }
            }
        }
        self.tasks.shutdown(Duration::ZERO).await;
        life.events.close();
        Ok(())
    }
}

impl Life {
    fn new(parts: Parts, tasks: &Arc<Tasks>) -> Self {
        Self {
            parts,
            lanes: Lanes::default(),
            live: Mutex::default(),
            recent: Mutex::default(),
            events: Feed::new(LIFE_EVENTS),
            tasks: Arc::downgrade(tasks),
            ended: tasks.token().clone(),
            accepting: tokio::sync::Mutex::default(),
            closing: AtomicBool::new(false),
        }
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        self.parts.home.clock()
    }

    fn locale(&self) -> Locale {
        self.parts.home.locale()
    }

    fn turns(&self) -> MutexGuard<'_, BTreeMap<TurnId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message: durable first, then a place in its lane.
    async fn talk(self: &Arc<Self>, mut message: Message) -> Result<TurnId, AnimaError> {
        let id = TurnId::new(message.id.as_str())
            .map_err(|error| AnimaError::Refused { code: "bad_id", reason: error.to_string() })?;
        let characters = message.text.chars().count();
        if characters > MAX_MESSAGE {
            return Err(AnimaError::Refused { code: "message_too_long", reason: characters.to_string() });
        }
        let _one = self.accepting.lock().await;
        if self.feed(&id).is_some() {
            return Ok(id);
        }
        self.check_open()?;
        message.at.get_or_insert_with(|| self.clock().now());
        let live = self.new_turn(id.clone(), Trigger::Chat(Box::new(message.clone())));
        let key = Key::of(&live.trigger);
        let ticket = self.lanes.queue(key);
        // a free lane's journal is opened here, so that a full disk is known before anything is promised
        let journal = if ticket.is_first() {
            Some(self.open_journal(&live).await.map_err(|error| not_accepted("journal", &error))?)
        } else {
            None
        };
        match self.accept(message, journal).await? {
            Admitted::Begin(journal) => self.start(live, ticket, journal),
            Admitted::Known(answer) => self.answered_before(&live, answer),
        }
        Ok(id)
    }

    /// Makes a message durable, or leaves nothing of it.
    async fn accept(&self, message: Message, journal: Option<Journal>) -> Result<Admitted, AnimaError> {
        let home = self.parts.home.clone();
        fs::blocking(move || {
            let drop_journal = |journal: Option<Journal>| {
                if let Some(mut journal) = journal {
                    journal.finalize("").log_err("remove a journal that is not needed");
                }
            };
            match home.accept(&message) {
                Ok(Accepted::New) => {}
                // accepted before, by a call that did not live to start its turn
                Ok(Accepted::Open) => return Ok(Admitted::Begin(journal)),
                Ok(Accepted::Answered(answer)) => {
                    drop_journal(journal);
                    return Ok(Admitted::Known(answer.map(|turn| turn.content)));
                }
                Err(error) => {
                    drop_journal(journal);
                    return Err(not_accepted("conversation", &error));
                }
            }
            // from here on it is accepted; these are for reading back
            let kind = if message.from_kind == SenderKind::Human { "human" } else { "anima" };
            let line = Activity::new(Activity::MESSAGE_RECEIVED)
                .content(message.text.clone())
                .from(message.from.clone())
                .channel("chat")
                .origin(message.origin.clone())
                .meta("from_type", kind)
                .meta("thread_id", message.thread.as_str())
                .meta("message_id", message.id.as_str());
            home.log_quietly(line);
            let mut line = TranscriptLine::new(kind, message.text.clone(), &message.thread);
            line.from.clone_from(&message.from);
            home.transcribe(line).log_err("append to the transcript");
            Ok(Admitted::Begin(journal))
        })
        .await
    }

    /// Starts a turn that no message asks for.
    fn wake(self: &Arc<Self>, trigger: Trigger) -> Result<TurnId, AnimaError> {
        self.check_open()?;
        let name = trigger.to_string();
        let waits = |live: &Arc<Live>| live.running().is_none() && live.trigger.to_string() == name;
        if self.turns().values().any(waits) {
            return Err(AnimaError::Busy { trigger: name });
        }
        let id = self.parts.ids.turn();
        let live = self.new_turn(id.clone(), trigger);
        let ticket = self.lanes.queue(Key::of(&live.trigger));
        self.start(live, ticket, None);
        Ok(id)
    }

    fn check_open(&self) -> Result<(), AnimaError> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(self.closed());
        }
        Ok(())
    }

    fn closed(&self) -> AnimaError {
        AnimaError::Refused { code: "shutting_down", reason: self.parts.home.name().to_string() }
    }

    fn new_turn(&self, id: TurnId, trigger: Trigger) -> Arc<Live> {
        let policy = LanePolicy::of(trigger.kind());
        let (feed, cancel) = (Feed::new(TURN_EVENTS), self.ended.child_token());
        Arc::new(Live { id, trigger, policy, feed, cancel, state: Mutex::default() })
    }

    /// Lets a turn live: the one that runs in its lane makes room when that is the lane's manner.
    fn start(self: &Arc<Self>, live: Arc<Live>, ticket: Ticket, journal: Option<Journal>) {
        live.feed.send(LifeEvent::Accepted { turn: live.id.clone() });
        let busy = !ticket.is_first();
        {
            let mut turns = self.turns();
            if busy && live.policy.newcomer_interrupts {
                let thread = live.trigger.thread();
                let running = turns.values().filter(|other| other.policy.converses && other.running().is_some());
                running.filter(|other| other.trigger.thread() == thread).for_each(|other| other.cancel.cancel());
            }
            turns.insert(live.id.clone(), live.clone());
        }
        if !busy {
            // it runs from now on, so that who comes next interrupts it
            live.run(self.clock().now());
        }
        if let Some(tasks) = self.tasks.upgrade() {
            tasks.spawn("turn", self.clone().live(live, ticket, journal));
        }
    }

    /// A message that was answered in an earlier life: who asks again gets that answer.
    fn answered_before(&self, live: &Live, answer: Option<String>) {
        let text = answer.unwrap_or_else(|| mark_interrupted("", self.locale()));
        live.feed.send(LifeEvent::Accepted { turn: live.id.clone() });
        let report = self.told(&live.id, &live.trigger.to_string(), live.trigger.thread(), text, StopKind::Normal);
        live.feed.close_with(LifeEvent::Done(Box::new(report)));
        self.remember(live.id.clone(), live.feed.clone());
    }

    /// Tells whoever looks that a turn of an earlier life broke off.
    fn tell_recovered(&self, found: recover::Found) {
        let characters = found.text.chars().count();
        self.events.send(AnimaEvent::Recovered { thread: found.thread.clone(), characters });
        let Some(turn) = found.turn else { return };
        let feed = Feed::new(TURN_EVENTS);
        let report = self.told(&turn, &found.trigger, found.thread, found.text, StopKind::Interrupted);
        feed.close_with(LifeEvent::Done(Box::new(report)));
        self.remember(turn, feed);
    }

    /// The report of a turn that is not lived through any more.
    fn told(&self, turn: &TurnId, trigger: &str, thread: ThreadId, text: String, stop: StopKind) -> CycleReport {
        let interrupted = stop == StopKind::Interrupted;
        CycleReport {
            turn: turn.clone(),
            trigger: trigger.to_owned(),
            action: if interrupted { CycleAction::Cancelled } else { CycleAction::Responded },
            stop,
            text,
            thinking: String::new(),
            thread,
            model: None,
            mode: None,
            usage: Usage::default(),
            tools: Vec::new(),
            chains: 0,
            duration_ms: 0,
            ended_at: self.clock().now(),
            error: None,
            notes: if interrupted { vec![t!(self.locale(), "core.life.broke_off")] } else { Vec::new() },
        }
    }

    /// The events of a turn that lives or has lived lately.
    fn feed(&self, turn: &TurnId) -> Option<Arc<Feed<LifeEvent>>> {
        if let Some(live) = self.turns().get(turn) {
            return Some(live.feed.clone());
        }
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().find(|(id, _)| id == turn).map(|(_, feed)| feed.clone())
    }

    /// Keeps the events of a turn that has ended.
    fn remember(&self, turn: TurnId, feed: Arc<Feed<LifeEvent>>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back((turn, feed));
        while recent.len() > RECENT_TURNS {
            recent.pop_front();
        }
    }

    /// A turn has ended.
    fn forget(&self, live: &Live) {
        self.remember(live.id.clone(), live.feed.clone());
        self.turns().remove(&live.id);
    }

    fn interrupt(&self, scope: &Scope) -> Result<(), AnimaError> {
        let turns = self.turns();
        match scope {
            Scope::Turn(turn) => match turns.get(turn) {
                Some(live) => live.cancel.cancel(),
                None => {
                    drop(turns);
                    if self.feed(turn).is_none() {
                        return Err(AnimaError::UnknownTurn { turn: turn.clone() });
                    }
                }
            },
            Scope::Thread(thread) => {
                let theirs = turns.values().filter(|live| live.policy.converses && live.trigger.thread() == *thread);
                theirs.for_each(|live| live.cancel.cancel());
            }
            Scope::All => turns.values().for_each(|live| live.cancel.cancel()),
        }
        Ok(())
    }
}

/// What came of accepting a message.
enum Admitted {
    Begin(Option<Journal>),
    Known(Option<String>),
}

impl Live {
    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has its lane.
    fn run(&self, now: DateTime<Utc>) -> RunningTurn {
        let since = *self.state().since.get_or_insert(now);
        RunningTurn {
            turn: self.id.clone(),
            lane: self.trigger.lane(),
            trigger: self.trigger.to_string(),
            since,
            session: self.session().map(|(session, _)| session),
        }
    }

    /// How it runs, when it does.
    fn running(&self) -> Option<RunningTurn> {
        let since = self.state().since?;
        Some(self.run(since))
    }

    /// Works, or waits for time to pass.
    fn hold(&self, hold: Option<Hold>) {
        self.state().hold = hold;
    }

    fn session(&self) -> Option<(SessionId, ExecutionMode)> {
        self.state().session.clone()
    }

    fn set_session(&self, session: Option<SessionId>, engine: ExecutionMode) {
        if let Some(session) = session {
            self.state().session = Some((session, engine));
        }
    }

    /// Who is at the other end.
    fn speaker(&self) -> &str {
        match &self.trigger {
            Trigger::Chat(message) => &message.from,
            Trigger::Greet { user } => user,
            Trigger::Inbox { from } => from.first().map_or("", String::as_str),
            Trigger::Bootstrap
            | Trigger::Heartbeat
            | Trigger::Cron { .. }
            | Trigger::Task(_)
            | Trigger::Consolidation(_) => "",
        }
    }

    /// What the Anima is doing, as the activity log names it.
    fn context(&self) -> String {
        match &self.trigger {
            Trigger::Chat(_) | Trigger::Greet { .. } | Trigger::Bootstrap => "chat".to_owned(),
            Trigger::Inbox { .. } => "inbox".to_owned(),
            other => other.to_string(),
        }
    }
}

fn not_accepted(what: &str, error: &FileError) -> AnimaError {
    // the kind stays: a full disk has another remedy than a broken one
    let kind = match error {
        FileError::Io { source, .. } => source.kind(),
        _ => std::io::ErrorKind::Other,
    };
    AnimaError::NotAccepted { what: what.to_owned(), source: std::io::Error::new(kind, chain(error)) }
}

/// A text without emotion tags, for words that were not filtered on their way.
fn clean(text: &str) -> String {
    let (mut filter, mut out) = (EmotionFilter::default(), String::new());
    filter.push(text, &mut out);
    filter.finish(&mut out);
    out.trim().to_owned()
}
