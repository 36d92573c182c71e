//! The one path of every turn: trigger, lane, prime, prompt, engine, tools, record, report (DESIGN §4).

use std::{sync::Arc, time::Duration};

use super::{
    Life, Live,
    account::Account,
    choices::Choice,
    engine::{Engine, Session},
    gather::{self, Errand},
    host::{Chaining, HostParts, LifeHost, checklist},
    lanes::{Pass, Ticket},
    pen::Pen,
    record::Outcome,
};
use crate::{
    anima::{AnimaError, AnimaEvent, CycleReport, LifeEvent, RecalledSource, StopKind},
    error::{ResultExt, chain},
    executor::{Prompt, PromptMessage, TurnHost},
    fs,
    home::{
        AnimaHome,
        activity::{Activity, ActivityQuery},
        conversation::Conversation,
        journal::{Journal, JournalStart, OpenedJournal},
    },
    ids::{SessionId, TaskId},
    memory::{Cue, Degraded, Priming},
    message::{Intent, Message, SenderKind},
    mode::ExecutionMode,
    prompt::{self, PromptInput, SystemPrompt, Texts},
    seams::{Claim, Settled},
    t,
    trigger::Trigger,
    trust::{Origin, Trust},
    units::Tokens,
};

/// Letters that one turn answers.
const LETTERS: usize = 10;
/// How long letters stay claimed.
const LETTER_LEASE: Duration = Duration::from_secs(1800);
/// When letters of a failed turn come back.
const LETTER_RETRY: Duration = Duration::from_secs(300);

impl Life {
    /// Lives one turn, from its place in the queue to its report. Never fails: what goes wrong is in the report.
    pub(super) async fn live(self: Arc<Self>, live: Arc<Live>, ticket: Ticket, journal: Option<Journal>) {
        let ending = Ending { life: self.clone(), live: live.clone(), report: None };
        let entered = tokio::select! {
            biased;
            () = live.cancel.cancelled() => None,
            pass = ticket.enter() => pass,
        };
        if entered.is_some() {
            // from here on a newcomer interrupts it
            live.run(self.clock().now());
        }
        let report = self.cycle(&live, entered.as_ref(), journal).await;
        ending.with(report);
        // the next one begins after this one is told
        drop(entered);
    }

    async fn cycle(&self, live: &Live, pass: Option<&Pass>, journal: Option<Journal>) -> CycleReport {
        live.hold(Some(self.clock().hold()));
        let started = self.clock().elapsed();
        let mut account = Account::default();
        let mut outcome = Outcome::default();
        let journal = self.journal(live, journal, pass.is_some()).await;
        let pen = Pen::start(self.tasks.upgrade().as_deref(), journal, self.clock().clone(), live.feed.clone());
        outcome.stop = match pass {
            Some(_) => self.think(live, &pen, &mut account, &mut outcome).await,
            // somebody took the request back before its lane was free
            None => Ok(StopKind::Interrupted),
        };
        let took = self.clock().elapsed().saturating_sub(started);
        let report = self.conclude(live, &pen, account, outcome, took).await;
        live.hold(None);
        report
    }

    /// Everything between the lane and the record.
    async fn think(
        &self,
        live: &Live,
        pen: &Pen,
        account: &mut Account,
        outcome: &mut Outcome,
    ) -> Result<StopKind, AnimaError> {
        let (choice, texts) = self.choose(live).await?;
        let engine = Engine { model: choice.model.clone(), executor: self.parts.engines.executor(&choice.model)? };
        outcome.model = Some(choice.model.clone());
        self.begin(live, &choice).await;

        let (errand, letters) = self.errand(live).await?;
        outcome.letters = letters;
        let asked = errand.ask(&self.parts.home, &texts);

        let conversation = self.conversation(live, &choice, &engine, &texts).await?;
        let priming = self.prime(live, &choice, &errand, &conversation).await;
        let floor = floor(&errand, &priming);

        let host = self.host(live, pen, &choice, engine.executor.mode(), &texts, floor);
        let mut material = self.material(live, &choice, &texts, host.tools().to_vec(), priming).await?;
        material.recent_results = recent_results(&conversation);
        let messages = self.messages(live, &choice, engine.executor.mode(), &conversation, &errand, &asked);
        let ask_cost = messages.iter().map(cost).sum();
        let system = prompt::build(&PromptInput { beside: ask_cost, ..material.clone() });
        let prompt = Prompt { system: system.text, messages };
        let resume = self.resume(live, &engine).await;
        // a session that goes on knows what came before
        let resume = resume.map(|session| {
            let messages = vec![PromptMessage::User { text: asked.clone(), images: images(&errand) }];
            (session, Prompt { system: prompt.system.clone(), messages })
        });

        let again = t!(self.locale(), "core.life.go_on");
        let continued = |notes: &str| continue_from(&material, notes, &again);
        let mut session = Session {
            life: self,
            live,
            choice: &choice,
            texts: &texts,
            host: host.clone(),
            pen: pen.clone(),
            account,
            asked,
            model: None,
        };
        let stop = session.run(engine, prompt, resume, continued).await;
        outcome.model = session.model.take().or(outcome.model.take());
        outcome.floor = host.floor();
        outcome.checked = host.reminded();
        Ok(stop?)
    }

    /// Makes sure of a journal. Without one the turn goes on, and says so.
    async fn journal(&self, live: &Live, journal: Option<Journal>, begins: bool) -> Option<Journal> {
        if journal.is_some() || !begins {
            return journal;
        }
        match self.open_journal(live).await {
            Ok(journal) => Some(journal),
            Err(error) => {
                tracing::warn!(turn = %live.id, %error, "a turn runs without a journal");
                live.feed.send(LifeEvent::Degraded(Degraded::new("journal", chain(&error))));
                None
            }
        }
    }

    /// Opens the journal; what an earlier life left there is put away first.
    pub(super) async fn open_journal(&self, live: &Live) -> Result<Journal, fs::FileError> {
        let home = self.parts.home.clone();
        let (kind, thread) = (live.trigger.session(), live.trigger.thread());
        let from = live.speaker().to_owned();
        let start = JournalStart { trigger: live.trigger.to_string(), from, session_id: live.id.to_string() };
        fs::blocking(move || {
            loop {
                match home.open_journal(kind, &thread, &start)? {
                    OpenedJournal::Fresh(journal) => return Ok(journal),
                    OpenedJournal::Orphan(orphan) => {
                        super::recover::put_away(&home, &orphan)?;
                    }
                }
            }
        })
        .await
    }

    pub(super) async fn choose(&self, live: &Live) -> Result<(Choice, Texts), AnimaError> {
        let (choices, trigger) = (self.parts.choices.clone(), live.trigger.clone());
        let (locale, prompts) = (self.locale(), self.parts.home.dir().data().prompts());
        fs::blocking(move || Ok((choices.choose(&trigger)?, Texts::read(locale, &prompts)?))).await
    }

    /// Tells everybody that it begins.
    async fn begin(&self, live: &Live, choice: &Choice) {
        live.feed.send(LifeEvent::Began { model: choice.model.id.clone(), mode: choice.model.mode });
        self.events.send(AnimaEvent::TurnBegan(live.run(self.clock().now())));
        if let Some(kind) = live.policy.begins {
            self.log(Activity::new(kind).ctx(live.context()).meta("turn", live.id.as_str())).await;
        }
    }

    /// What there is to do, with the letters that were taken for it.
    pub(super) async fn errand(&self, live: &Live) -> Result<(Errand, Vec<Claim<Message>>), AnimaError> {
        let (home, trigger) = (self.parts.home.clone(), live.trigger.clone());
        if let Some(errand) = fs::blocking(move || gather::from_files(&home, &trigger)).await? {
            return Ok((errand, Vec::new()));
        }
        match &live.trigger {
            Trigger::Task(id) => Ok((Errand::Task(Box::new(self.task(id).await?)), Vec::new())),
            _ => {
                let who = self.parts.home.name();
                let letters = match &self.parts.post {
                    Some(post) => {
                        post.claim(who, LETTERS, LETTER_LEASE).await.map_err(|error| AnimaError::Other(error.into()))?
                    }
                    None => Vec::new(),
                };
                let read: Vec<_> = letters.iter().map(|claim| claim.item.clone()).collect();
                let (home, arrived) = (self.parts.home.clone(), read.clone());
                fs::blocking(move || log_arrivals(&home, &arrived)).await.log_err("note what arrived");
                let errand = Errand::Inbox(read);
                Ok((errand, letters))
            }
        }
    }

    async fn task(&self, id: &TaskId) -> Result<crate::task::Task, AnimaError> {
        let missing = || AnimaError::Refused { code: "unknown_task", reason: id.to_string() };
        let tasks = self.parts.tasks.as_ref().ok_or_else(missing)?;
        let all = tasks.list(self.parts.home.name()).await.map_err(|error| AnimaError::Other(error.into()))?;
        all.into_iter().find(|task| task.task_id == *id).ok_or_else(missing)
    }

    /// Settles the letters of a turn.
    pub(super) async fn settle(&self, letters: &[Claim<Message>], handled: bool) {
        let Some(post) = &self.parts.post else { return };
        for letter in letters {
            let how = if handled { Settled::Done } else { Settled::Retry { after: LETTER_RETRY } };
            post.settle(&letter.lease, how).await.log_err("settle a letter");
        }
    }

    /// What was said before this turn's own message; made shorter when it takes too much room.
    async fn conversation(
        &self,
        live: &Live,
        choice: &Choice,
        engine: &Engine,
        texts: &Texts,
    ) -> Result<Conversation, AnimaError> {
        if !live.policy.converses {
            return Ok(Conversation::new(self.parts.home.name()));
        }
        let mut conversation = self.load(live).await?;
        if conversation.needs_compression(choice.model.window, choice.history_threshold) {
            live.feed.send(LifeEvent::Compressing(true));
            self.compress(live, &conversation, engine, texts).await;
            live.feed.send(LifeEvent::Compressing(false));
            conversation = self.load(live).await?;
        }
        if let Trigger::Chat(message) = &live.trigger {
            let own = conversation.turns.iter().position(|turn| turn.message_id() == Some(message.id.as_str()));
            conversation.turns.truncate(own.unwrap_or(conversation.turns.len()));
        }
        Ok(conversation)
    }

    /// What was said before, as it is.
    pub(super) async fn said_before(&self, live: &Live) -> Result<Conversation, AnimaError> {
        if !live.policy.converses {
            return Ok(Conversation::new(self.parts.home.name()));
        }
        self.load(live).await
    }

    async fn load(&self, live: &Live) -> Result<Conversation, AnimaError> {
        let (home, thread) = (self.parts.home.clone(), live.trigger.thread());
        let loaded = fs::blocking(move || home.conversation(&thread)).await?;
        if let Some(aside) = loaded.set_aside {
            live.feed
                .send(LifeEvent::Degraded(Degraded::new("conversation", format!("set aside: {}", aside.display()))));
        }
        Ok(loaded.conversation)
    }

    /// Asks memory what comes to mind; slow or broken memory costs the turn nothing but that.
    pub(super) async fn prime(
        &self,
        live: &Live,
        choice: &Choice,
        errand: &Errand,
        conversation: &Conversation,
    ) -> Priming {
        let within = Duration::from_secs(live.policy.prime_within);
        let (message, intent) = match errand {
            Errand::Chat(message) => (message.text.clone(), message.intent),
            Errand::Inbox(letters) => {
                let texts: Vec<&str> = letters.iter().map(|letter| letter.text.as_str()).collect();
                (texts.join("\n"), letters.first().and_then(|letter| letter.intent))
            }
            Errand::Cron { job, description } => (format!("{job} {description}"), None),
            Errand::Task(task) => (format!("{} {}", task.summary, task.original_instruction), None),
            Errand::Greet { .. } | Errand::Bootstrap | Errand::Heartbeat { .. } | Errand::Consolidation(_) => {
                (String::new(), None)
            }
        };
        let said = conversation.turns.iter().rev().filter(|turn| !turn.is_assistant());
        let cue = Cue {
            trigger: live.trigger.kind(),
            message,
            sender: live.speaker().to_owned(),
            intent,
            recent: said.take(5).map(|turn| turn.content.clone()).collect(),
            window: choice.model.window,
            within,
            now: self.parts.home.now(),
            locale: self.locale(),
        };
        let began = self.clock().elapsed();
        let primed = tokio::select! {
            primed = self.parts.memory.prime(&cue) => primed.map_err(|error| chain(&error)),
            () = self.clock().sleep(within + Duration::from_secs(1)) => Err("no answer in time".to_owned()),
        };
        let priming =
            primed.unwrap_or_else(|why| Priming { sections: Vec::new(), degraded: vec![Degraded::new("memory", why)] });
        for part in &priming.degraded {
            live.feed.send(LifeEvent::Degraded(part.clone()));
        }
        let took = self.clock().elapsed().saturating_sub(began);
        live.feed.send(LifeEvent::Recalled {
            sources: sources(&priming),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        priming
    }

    #[allow(clippy::too_many_arguments, reason = "one call, all of it the turn's own")]
    fn host(
        &self,
        live: &Live,
        pen: &Pen,
        choice: &Choice,
        mode: ExecutionMode,
        texts: &Texts,
        floor: Origin,
    ) -> Arc<LifeHost> {
        // other engines are not held to it (exec spec §2.9)
        let checked = matches!(choice.model.mode, ExecutionMode::Sdk | ExecutionMode::Autonomous);
        let gate = choice.completion_gate.filter(|_| checked && live.policy.completion_gate);
        let parts = HostParts {
            home: self.parts.home.clone(),
            gate: self.parts.gate.clone(),
            turn: live.id.clone(),
            trigger: live.trigger.kind(),
            has_own_tools: mode.is_child(),
            context: live.context(),
            thread: live.trigger.thread(),
            floor,
            pen: pen.clone(),
            cancel: live.cancel.clone(),
            chaining: Chaining {
                possible: choice.model.mode != ExecutionMode::Basic,
                threshold: choice.context_threshold,
            },
            checklist: gate.map(|_| checklist(texts)),
            checklist_from: gate.unwrap_or_default(),
        };
        Arc::new(LifeHost::new(parts, choice.max_chains))
    }

    /// Everything the system prompt is made of, but for what stands beside it.
    pub(super) async fn material(
        &self,
        live: &Live,
        choice: &Choice,
        texts: &Texts,
        tools: Vec<Arc<crate::tool::ToolSpec>>,
        priming: Priming,
    ) -> Result<PromptInput, AnimaError> {
        let (home, choices) = (self.parts.home.clone(), self.parts.choices.clone());
        let (own, shelves, resolutions, around) = fs::blocking(move || {
            let (own, shelves) = (gather::own_files(&home)?, gather::shelves(&home));
            Ok::<_, AnimaError>((own, shelves, gather::resolutions(&home), choices.surroundings()?))
        })
        .await?;
        let dir = self.parts.home.dir();
        Ok(PromptInput {
            locale: self.locale(),
            anima: self.parts.home.name().clone(),
            data_dir: dir.data().root().display().to_string(),
            anima_dir: dir.root().display().to_string(),
            trigger: live.trigger.kind(),
            mode: choice.model.mode,
            window: choice.model.window,
            now: self.parts.home.now(),
            texts: texts.clone(),
            own,
            priming,
            tools,
            around,
            shelves,
            notifications: Vec::new(),
            resolutions,
            recent_results: Vec::new(),
            continues: None,
            beside: Tokens(0),
        })
    }

    /// The engine's own session to go on with.
    async fn resume(&self, live: &Live, engine: &Engine) -> Option<SessionId> {
        if !live.policy.resumes || !engine.executor.capabilities().resume {
            return None;
        }
        let (home, kind, thread) = (self.parts.home.clone(), live.trigger.session(), live.trigger.thread());
        let mode = engine.executor.mode();
        fs::blocking(move || home.engine_session(kind, &thread, mode)).await.log_err("read a session id").flatten()
    }

    /// The conversation and the request, as the engine can take them.
    #[allow(clippy::too_many_arguments, reason = "one call, all of it the turn's own")]
    pub(super) fn messages(
        &self,
        live: &Live,
        choice: &Choice,
        mode: ExecutionMode,
        conversation: &Conversation,
        errand: &Errand,
        asked: &str,
    ) -> Vec<PromptMessage> {
        let images = images(errand);
        let empty = conversation.turns.is_empty() && conversation.compressed_summary.is_empty();
        if empty || !live.policy.converses {
            return vec![PromptMessage::User { text: asked.to_owned(), images }];
        }
        if mode.is_child() {
            // a fresh session of an engine that keeps its own history is told what came before
            let before = conversation.text(self.parts.home.zone(), self.locale(), 16_000);
            let text = t!(self.locale(), "core.life.before", history = before, message = asked);
            return vec![PromptMessage::User { text, images }];
        }
        let mut messages = conversation.messages(self.parts.home.zone(), self.locale(), budget(choice));
        messages.push(PromptMessage::User { text: asked.to_owned(), images });
        messages
    }

    /// Forgets the session that an engine has left.
    pub(super) async fn leave_session(&self, live: &Live) {
        if !live.policy.resumes {
            return;
        }
        let (home, kind, thread) = (self.parts.home.clone(), live.trigger.session(), live.trigger.thread());
        fs::blocking(move || home.leave_engine_session(kind, &thread)).await.log_err("forget a session id");
    }

    /// Keeps the engine's session for the next turn, or forgets it when it is `over`.
    pub(super) async fn keep_session(&self, live: &Live, over: bool) {
        if !live.policy.resumes {
            return;
        }
        let session = live.session().filter(|_| !over);
        if session.is_none() && !over {
            return;
        }
        let (home, kind, thread) = (self.parts.home.clone(), live.trigger.session(), live.trigger.thread());
        let kept = fs::blocking(move || {
            let session = session.as_ref().map(|(session, engine)| (session, *engine));
            home.set_engine_session(kind, &thread, session)
        });
        kept.await.log_err("keep a session id");
    }

    /// Appends to the activity log; a failure is logged and costs nothing else.
    pub(super) async fn log(&self, activity: Activity) {
        let home = self.parts.home.clone();
        fs::blocking(move || home.log(activity)).await.log_err("append to the activity log");
    }
}

/// Notes in the activity log what came by post, once however often a letter is taken up again. Blocks.
fn log_arrivals(home: &AnimaHome, letters: &[Message]) -> Result<(), fs::FileError> {
    let lately = home.load(&ActivityQuery::days(3).kinds(&[Activity::MESSAGE_RECEIVED]))?;
    for letter in letters {
        let id = letter.id.as_str();
        if lately.iter().any(|logged| logged.activity.meta_str("message_id") == id) {
            continue;
        }
        let kind = if letter.from_kind == SenderKind::Human { "human" } else { "anima" };
        let line = Activity::new(Activity::MESSAGE_RECEIVED)
            .content(letter.text.clone())
            .from(letter.from.clone())
            .origin(letter.origin.clone())
            .meta("from_type", kind)
            .meta("thread_id", letter.thread.as_str())
            .meta("message_id", id)
            .meta("intent", letter.intent.map(Intent::as_str).unwrap_or_default());
        home.log(line)?;
    }
    Ok(())
}

/// What tools answered in the last three of its turns, newest first, five of each.
pub(super) fn recent_results(conversation: &Conversation) -> Vec<String> {
    let own = conversation.turns.iter().rev().filter(|turn| turn.is_assistant()).take(3);
    let records = own.flat_map(|turn| turn.tool_records.iter().rev().take(5));
    records.map(|record| format!("{}: {}", record.tool_name, record.result_summary)).collect()
}

/// The tokens that history may take.
fn budget(choice: &Choice) -> Tokens {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a window")]
    let tokens = (f64::from(choice.model.window.0) * choice.history_threshold.clamp(0.0, 1.0)) as u32;
    Tokens(tokens)
}

pub(super) fn cost(message: &PromptMessage) -> Tokens {
    match message {
        PromptMessage::User { text, .. } | PromptMessage::ToolResult { text, .. } => Tokens::estimate(text),
        PromptMessage::Assistant { text, calls } => {
            let calls: Tokens = calls.iter().map(|call| Tokens::estimate(&call.args.to_string())).sum();
            Tokens::estimate(text) + calls
        }
    }
}

/// The prompt of a session that takes over.
fn continue_from(material: &PromptInput, notes: &str, again: &str) -> Prompt {
    let input = PromptInput { continues: Some(notes.to_owned()), beside: Tokens::estimate(again), ..material.clone() };
    let SystemPrompt { text, .. } = prompt::build(&input);
    Prompt { system: text, messages: vec![PromptMessage::User { text: again.to_owned(), images: Vec::new() }] }
}

/// The least trusted thing a turn knows before it begins.
fn floor(errand: &Errand, priming: &Priming) -> Origin {
    let mut floor = match errand {
        Errand::Chat(message) => message.origin.clone(),
        Errand::Inbox(letters) => letters.iter().fold(Origin::anima(), |floor, letter| floor.joined(&letter.origin)),
        // whoever handed it in had seen what it had seen
        Errand::Task(task) if task.trust() < Trust::Trusted => task.origin(),
        _ => Origin::system(),
    };
    // channels of our own making carry no origin; what came from outside names it
    for section in priming.sections.iter().filter(|section| !section.origin.source.is_empty()) {
        floor = floor.joined(&section.origin);
    }
    floor
}

fn sources(priming: &Priming) -> Vec<RecalledSource> {
    let hits = priming.sections.iter().flat_map(|section| &section.hits);
    hits.map(|hit| RecalledSource {
        path: hit.path.to_string(),
        line: hit.line,
        text: hit.text.chars().take(200).collect(),
        score: hit.score.0,
    })
    .collect()
}

/// Sees to it that a turn ends for everybody who looks, whatever happens to its task.
struct Ending {
    life: Arc<Life>,
    live: Arc<Live>,
    report: Option<Box<CycleReport>>,
}

impl Ending {
    fn with(mut self, report: CycleReport) {
        self.report = Some(Box::new(report));
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.life.forget(&self.live);
        match self.report.take() {
            Some(report) => {
                self.life.events.send(AnimaEvent::TurnEnded(report.clone()));
                self.live.feed.close_with(LifeEvent::Done(report));
            }
            // the task died; who looks learns that the turn is lost
            None => self.live.feed.close(),
        }
    }
}

fn images(errand: &Errand) -> Vec<crate::message::Image> {
    match errand {
        Errand::Chat(message) => message.images.clone(),
        _ => Vec::new(),
    }
}
