//! Puts away what came of a turn: conversation, activity, episode, usage, journal; then the report.

use std::time::Duration;

use super::{Life, Live, account::Account, pen::Pen};
use crate::{
    anima::{AnimaError, CycleAction, CycleReport, LifeEvent, ReportedError, StopKind},
    config::Prices,
    creation::finish_bootstrap,
    error::{Fault, ResultExt, chain},
    executor::ResolvedModel,
    fs,
    home::{
        activity::Activity,
        conversation::{Turn, mark_interrupted},
        text::head,
        transcript::TranscriptLine,
        usage::UsageRecord,
    },
    ids::MemoryPath,
    memory::{Changed, Degraded},
    message::Message,
    mode::ExecutionMode,
    seams::Claim,
    t,
    trigger::{Trigger, TriggerKind},
    trust::Origin,
};

/// What a heartbeat says when there is nothing to do.
const NOTHING_TO_DO: &str = "HEARTBEAT_OK";

/// What a turn leaves besides its words.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) stop: Result<StopKind, AnimaError>,
    pub(super) model: Option<ResolvedModel>,
    pub(super) letters: Vec<Claim<Message>>,
    pub(super) floor: Origin,
    /// Whether the answer was checked against the request.
    pub(super) checked: bool,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { stop: Ok(StopKind::Normal), model: None, letters: Vec::new(), floor: Origin::system(), checked: false }
    }
}

impl Life {
    /// Records the turn and reports it. The journal goes only when the words are safe elsewhere.
    pub(super) async fn conclude(
        &self,
        live: &Live,
        pen: &Pen,
        account: Account,
        outcome: Outcome,
        took: Duration,
    ) -> CycleReport {
        pen.flush().await;
        let report = self.report(live, &account, &outcome, took);
        let recorded = self.keep_words(live, &account, &report).await;
        self.note(live, &report, &outcome).await;
        self.keep_episode(live, &report, &outcome).await;
        self.count(&report).await;
        self.settle(&outcome.letters, report.error.is_none() && report.stop != StopKind::Interrupted).await;
        self.keep_session(live, account.chains > 0).await;
        if outcome.model.as_ref().is_some_and(|model| !model.mode.is_child()) {
            // what was said with an engine without sessions is not in the session that another one left
            self.leave_session(live).await;
        }
        self.clear_shortterm(live, &report).await;
        self.after_round(live, &report).await;
        self.finish_first_run().await;
        match recorded {
            Ok(()) => {
                pen.finish(report.text.clone()).await;
            }
            // the journal stays: the next start finds the words in it
            Err(error) => {
                tracing::error!(turn = %live.id, %error, "an answer could not be kept");
                live.feed.send(LifeEvent::Degraded(Degraded::new("conversation", chain(&error))));
            }
        }
        report
    }

    fn report(&self, live: &Live, account: &Account, outcome: &Outcome, took: Duration) -> CycleReport {
        let locale = self.locale();
        let chats = live.policy.converses;
        let mut text = account.answer().to_owned();
        let (mut stop, error) = match &outcome.stop {
            Ok(stop) => (*stop, None),
            Err(error) => (StopKind::StreamError, Some(self.reported(error))),
        };
        if error.is_none() && text.is_empty() && matches!(stop, StopKind::Normal | StopKind::EmptyResponse) && chats {
            stop = StopKind::EmptyResponse;
            text = t!(locale, "core.life.empty_response");
        }
        let idle = text.is_empty() || (live.trigger.kind() == TriggerKind::Heartbeat && text == NOTHING_TO_DO);
        let action = match stop {
            _ if error.is_some() => CycleAction::Error,
            StopKind::Interrupted => CycleAction::Cancelled,
            _ if idle => CycleAction::Idle,
            _ => CycleAction::Responded,
        };
        CycleReport {
            turn: live.id.clone(),
            trigger: live.trigger.to_string(),
            action,
            stop,
            text,
            thinking: account.thinking.clone(),
            thread: live.trigger.thread(),
            model: outcome.model.as_ref().map(|model| model.id.clone()),
            mode: outcome.model.as_ref().map(|model| model.mode),
            usage: account.usage,
            tools: account.tools.clone(),
            chains: account.chains,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            ended_at: self.clock().now(),
            error,
            notes: account.notes.clone(),
        }
    }

    /// An error in a person's words.
    fn reported(&self, error: &AnimaError) -> ReportedError {
        let fault: &dyn Fault = error;
        let explained = fault.explain(self.locale());
        ReportedError {
            kind: fault.kind(),
            code: fault.code().to_owned(),
            message: explained.message,
            hint: explained.hint,
        }
    }

    /// Puts the answer into the conversation.
    async fn keep_words(&self, live: &Live, account: &Account, report: &CycleReport) -> Result<(), fs::FileError> {
        if !live.policy.converses {
            return Ok(());
        }
        let locale = self.locale();
        let content = match (&report.error, report.stop) {
            (Some(error), _) => {
                let mark = t!(locale, "core.life.failed", message = error.message);
                if report.text.is_empty() { mark } else { format!("{}\n{mark}", report.text) }
            }
            (None, StopKind::Interrupted) => mark_interrupted(&report.text, locale),
            (None, _) => report.text.clone(),
        };
        let mut line = TranscriptLine::new(Turn::ASSISTANT, content.clone(), &report.thread);
        line.tool_names = report.tools.iter().map(|tool| tool.tool_name.clone()).collect();
        let turn = Turn::assistant(content).with_tools(account.tools.clone());
        let (home, thread) = (self.parts.home.clone(), live.trigger.thread());
        let message = match &live.trigger {
            Trigger::Chat(message) => Some(message.id.clone()),
            _ => None,
        };
        fs::blocking(move || {
            match message {
                Some(id) => home.answer(&thread, &id, turn).map(drop)?,
                None => home.append_turn(&thread, turn).map(drop)?,
            }
            home.transcribe(line).log_err("append to the transcript");
            Ok(())
        })
        .await
    }

    /// Writes down what the turn consumed.
    async fn count(&self, report: &CycleReport) {
        let (Some(model), Some(mode)) = (&report.model, report.mode) else { return };
        let mut record = UsageRecord::new(model.as_str(), &report.trigger, mode.to_string(), report.usage);
        record.chains = u64::from(report.chains);
        record.duration_ms = report.duration_ms;
        let (home, usage) = (self.parts.home.clone(), report.usage);
        let noted = fs::blocking(move || {
            let prices = Prices::load(home.dir().data()).log_err("read the prices").unwrap_or_else(Prices::shipped);
            #[allow(clippy::cast_precision_loss, reason = "the cost of a turn is far below 2^52 millionths")]
            let usd = prices.cost(&record.model, &usage).map(|cost| cost.0 as f64 / 1e6);
            record.estimated_cost_usd = usd;
            home.record_usage(record)
        });
        noted.await.log_err("record usage");
    }

    /// A turn that came to its end leaves no notes for another session.
    async fn clear_shortterm(&self, live: &Live, report: &CycleReport) {
        let (kind, thread, ended) = (live.trigger.session(), live.trigger.thread(), report.error.is_none());
        let home = self.parts.home.clone();
        let cleared = fs::blocking(move || {
            if ended {
                home.archive_session(kind, &thread)?;
            }
            home.clear_checkpoint(kind, &thread)
        });
        cleared.await.log_err("clear the notes of a session");
    }

    /// Writes what happened into the activity log.
    async fn note(&self, live: &Live, report: &CycleReport, outcome: &Outcome) {
        let mut line = Activity::new(live.policy.ends)
            .content(report.text.clone())
            .channel(live.policy.channel)
            .ctx(live.context())
            .meta("turn", report.turn.as_str())
            .meta("stop_kind", serde_json::to_value(report.stop).unwrap_or_default());
        if live.policy.converses {
            line = line.to(live.speaker()).meta("thread_id", report.thread.as_str());
        }
        if !report.thinking.is_empty() {
            line = line.meta("thinking_text", report.thinking.clone());
        }
        if let Trigger::Cron { job } = &live.trigger {
            line = line.meta("task_name", job.as_str()).meta("duration_ms", report.duration_ms);
        }
        if outcome.checked {
            line = line.meta("completion_gate", true);
        }
        self.log(line).await;
        if let Some(error) = &report.error {
            let line = Activity::new(Activity::ERROR)
                .summary(error.message.clone())
                .ctx(live.context())
                .meta("phase", "turn")
                .meta("turn", report.turn.as_str())
                .meta("error", head(&error.message, 200));
            self.log(line).await;
        }
    }

    /// Text models do no memory work of their own: the framework keeps the exchange as an episode (RULINGS 10).
    async fn keep_episode(&self, live: &Live, report: &CycleReport, outcome: &Outcome) {
        let basic = report.mode == Some(ExecutionMode::Basic);
        let Trigger::Chat(message) = &live.trigger else { return };
        if !basic || report.action != CycleAction::Responded || report.stop == StopKind::EmptyResponse {
            return;
        }
        let title: String = message.text.lines().next().unwrap_or_default().chars().take(40).collect();
        let (home, floor) = (self.parts.home.clone(), outcome.floor.clone());
        let (said, answer) = (message.text.trim(), report.text.as_str());
        let name = home.name().clone();
        let body =
            t!(self.locale(), "core.life.episode", from = message.from, said = said, name = name, answer = answer);
        let kept = fs::blocking(move || {
            home.append_episode(&title, &body, &floor)?;
            Ok::<_, fs::FileError>(MemoryPath::new(format!("episodes/{}.md", home.today())))
        });
        let path = match kept.await {
            Ok(path) => path,
            Err(error) => {
                live.feed.send(LifeEvent::Degraded(Degraded::new("episode", chain(&error))));
                return;
            }
        };
        if let Some(path) = path.log_err("name an episode") {
            self.parts.memory.refresh(Changed::Paths(vec![path])).await.log_err("index an episode");
        }
    }

    /// The instructions of the first run go once the Anima has written down who it is (RULINGS 15).
    async fn finish_first_run(&self) {
        let dir = self.parts.home.dir().clone();
        fs::blocking(move || finish_bootstrap(&dir)).await.log_err("put the instructions of the first run away");
    }

    /// What a round leaves: its reflection is kept, and the note it was shown is done with.
    async fn after_round(&self, live: &Live, report: &CycleReport) {
        if live.trigger.kind() != TriggerKind::Heartbeat
            || report.error.is_some()
            || report.stop == StopKind::Interrupted
        {
            return;
        }
        if let Some(reflection) = reflection(&report.text) {
            self.log(Activity::new(Activity::HEARTBEAT_REFLECTION).content(reflection).ctx(live.context())).await;
        }
        let home = self.parts.home.clone();
        fs::blocking(move || home.clear_recovery_note()).await.log_err("remove a recovery note");
    }
}

/// The first `[REFLECTION]…[/REFLECTION]` of a text.
fn reflection(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("[REFLECTION]")?;
    let (inside, _) = rest.split_once("[/REFLECTION]")?;
    Some(inside.trim()).filter(|inside| !inside.is_empty())
}
