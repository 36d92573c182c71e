//! What goes out: one at a time, counted, delivered, noted (exec spec §8.1).

use std::{collections::BTreeSet, sync::Arc};

use animaworks_core::{
    AnimaName, BoardName, IdSource, Intent, Message, MessageId, Origin, ThreadId, ToolContext, ToolError,
    fs::{self, Lock},
    home::{
        AnimaHome,
        activity::{Activity, ActivityQuery, LoggedActivity},
    },
    seams::PostOffice,
};
use chrono::{DateTime, Duration, FixedOffset};

use super::MessageServices;
use crate::fault;

/// How much an Anima may send to its colleagues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendingLimits {
    /// Letters within an hour.
    pub per_hour: u32,
    /// Letters within a day.
    pub per_day: u32,
    /// Different recipients within one run; each of them gets one letter.
    pub recipients_per_run: u32,
    /// Letters between two Animas, in both directions, within `exchange`.
    pub per_exchange: u32,
    /// The window of an exchange.
    pub exchange: Duration,
    /// Between two posts on one board.
    pub post_pause: Duration,
}

impl Default for SendingLimits {
    fn default() -> Self {
        Self {
            per_hour: 30,
            per_day: 100,
            recipients_per_run: 2,
            per_exchange: 6,
            exchange: Duration::minutes(10),
            post_pause: Duration::minutes(5),
        }
    }
}

/// A letter that was sent, as far as the limits look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentLetter {
    /// When; a letter without a time counts for every window.
    pub at: Option<DateTime<FixedOffset>>,
    /// Whom to.
    pub to: String,
    /// In which run.
    pub turn: String,
    /// Whether it is outside the rule of one letter per recipient and run.
    pub is_handover: bool,
}

/// Why a letter may not be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitHit {
    /// The recipient has already got one in this run.
    SameRecipient,
    /// Too many recipients in this run.
    Recipients,
    /// Too many letters within an hour; the next one may go at this moment.
    Hour(DateTime<FixedOffset>),
    /// Too many letters within a day; the next one may go at this moment.
    Day(DateTime<FixedOffset>),
    /// The two have written to and fro too often; the next one may go at this moment.
    Exchange(DateTime<FixedOffset>),
}

impl SendingLimits {
    /// Whether one more letter may be sent. `sent` holds at least the last day and the whole run; its order does not
    /// matter.
    ///
    /// # Errors
    ///
    /// The limit that forbids it.
    pub fn check(
        &self,
        sent: &[SentLetter],
        now: DateTime<FixedOffset>,
        turn: &str,
        to: &str,
        is_handover: bool,
    ) -> Result<(), LimitHit> {
        let run = || sent.iter().filter(|letter| letter.turn == turn && !letter.is_handover);
        if !is_handover {
            if run().any(|letter| letter.to == to) {
                return Err(LimitHit::SameRecipient);
            }
            let recipients: BTreeSet<&str> = run().map(|letter| letter.to.as_str()).collect();
            if recipients.len() >= usize::try_from(self.recipients_per_run).unwrap_or(usize::MAX) {
                return Err(LimitHit::Recipients);
            }
        }
        let hour = Duration::hours(1);
        if let Some(free) = full(sent, now, hour, self.per_hour) {
            return Err(LimitHit::Hour(free));
        }
        match full(sent, now, Duration::hours(24), self.per_day) {
            Some(free) => Err(LimitHit::Day(free)),
            None => Ok(()),
        }
    }
}

/// When a full window has room again; `None` when it has.
fn full(sent: &[SentLetter], now: DateTime<FixedOffset>, window: Duration, max: u32) -> Option<DateTime<FixedOffset>> {
    let mut inside: Vec<_> =
        sent.iter().map(|letter| letter.at.unwrap_or(now)).filter(|at| *at > now - window).collect();
    let over = inside.len().checked_sub(usize::try_from(max).unwrap_or(usize::MAX))?;
    inside.sort_unstable();
    // the oldest that has to leave the window first
    Some(inside.get(over).map_or(now + window, |at| *at + window))
}

/// The kinds of letters that no limit looks at: the framework's own.
const EXEMPT: [&str; 3] = ["ack", "error", "system_alert"];

/// The way out for one Anima's letters.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    pub(crate) home: AnimaHome,
    pub(crate) post: Arc<dyn PostOffice>,
    ids: Arc<dyn IdSource>,
    limits: SendingLimits,
}

/// A letter that is to be sent.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: AnimaName,
    pub(crate) text: String,
    pub(crate) intent: Option<Intent>,
    pub(crate) reply_to: Option<MessageId>,
    pub(crate) thread: ThreadId,
    /// The tool that sends it.
    pub(crate) tool: &'static str,
    /// Whether it hands work over, which the rule of one letter per run does not count.
    pub(crate) is_handover: bool,
}

/// What became of a letter.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) id: MessageId,
    /// Letters to the same recipient within the last day, with this one.
    pub(crate) lately: usize,
}

impl Outbox {
    pub(crate) fn new(services: &MessageServices) -> Self {
        Self {
            home: services.home.clone(),
            post: services.post.clone(),
            ids: services.ids.clone(),
            limits: services.limits,
        }
    }

    /// When it may write to a colleague again with whom it has just written to and fro; `None` when it may.
    async fn exchange_full(
        &self,
        peer: &AnimaName,
        now: DateTime<FixedOffset>,
    ) -> Result<Option<DateTime<FixedOffset>>, ToolError> {
        let (home, limits) = (self.home.clone(), self.limits);
        let kinds = [Activity::MESSAGE_SENT, Activity::MESSAGE_RECEIVED];
        let query = ActivityQuery::since(now - limits.exchange).kinds(&kinds).involving(peer.as_str());
        let entries = fs::blocking(move || home.load(&query)).await.map_err(fault::file)?;
        let letters: Vec<SentLetter> = entries.into_iter().filter_map(counted).collect();
        Ok(full(&letters, now, limits.exchange, limits.per_exchange))
    }

    /// How long a board still rests after this Anima's last post on it; `None` when it may post.
    pub(super) fn post_rest(&self, board: &BoardName, posts: &[LoggedActivity]) -> Option<DateTime<FixedOffset>> {
        let here = posts.iter().filter(|post| post.activity.channel == board.as_str());
        let free = here.filter_map(|post| post.at).max()? + self.limits.post_pause;
        (free > self.home.now().fixed_offset()).then_some(free)
    }

    /// Waits until nobody else of this Anima is sending.
    pub(super) async fn hold(&self) -> Result<Lock, ToolError> {
        let path = self.home.dir().data().run().join(format!("outbound_{}.lock", self.home.name()));
        fs::blocking(move || Lock::wait(&path)).await.map_err(fault::file)
    }

    /// Events of the last day.
    pub(super) async fn lately(&self, kind: &'static str) -> Result<Vec<LoggedActivity>, ToolError> {
        let home = self.home.clone();
        fs::blocking(move || home.load(&ActivityQuery::hours(24).kinds(&[kind]))).await.map_err(fault::file)
    }

    pub(super) async fn note(&self, activity: Activity) -> Result<(), ToolError> {
        let home = self.home.clone();
        fs::blocking(move || home.log(activity).map(|_| ())).await.map_err(fault::file)
    }

    /// Sends one letter. A cancelled call may have delivered it without noting it.
    pub(crate) async fn send(
        &self,
        letter: Letter,
        cx: &ToolContext,
    ) -> Result<Result<Delivered, LimitHit>, ToolError> {
        let _held = self.hold().await?;
        let now = self.home.now();
        let sent: Vec<SentLetter> =
            self.lately(Activity::MESSAGE_SENT).await?.into_iter().filter_map(counted).collect();
        let to = letter.to.as_str();
        if let Err(hit) = self.limits.check(&sent, now.fixed_offset(), cx.turn.as_str(), to, letter.is_handover) {
            tracing::info!(anima = %cx.anima, to, ?hit, "letter held back");
            return Ok(Err(hit));
        }
        if !letter.is_handover
            && let Some(free) = self.exchange_full(&letter.to, now.fixed_offset()).await?
        {
            tracing::info!(anima = %cx.anima, to, "letter held back: the two write to and fro");
            return Ok(Err(LimitHit::Exchange(free)));
        }
        let lately = sent.iter().filter(|earlier| earlier.to == to).count() + 1;
        let (id, origin) = (self.ids.message(now), relayed(cx));
        let message = Message {
            intent: letter.intent,
            reply_to: letter.reply_to,
            at: Some(now.to_utc()),
            thread: letter.thread.clone(),
            ..Message::anima(cx.anima.as_str(), letter.text.clone(), origin.clone())
        }
        .with_id(id.clone());
        self.post.post(message, &letter.to).await.map_err(|error| fault::post(error, cx.locale))?;
        let line = Activity::new(Activity::MESSAGE_SENT)
            .content(letter.text)
            .from(cx.anima.as_str())
            .to(to)
            .tool(letter.tool)
            .origin(origin)
            .meta("message_id", id.as_str())
            .meta("thread_id", letter.thread.as_str())
            .meta("intent", letter.intent.map(Intent::as_str).unwrap_or_default())
            .meta("turn", cx.turn.as_str())
            .meta("handover", letter.is_handover);
        self.note(line).await?;
        Ok(Ok(Delivered { id, lately }))
    }

    /// Puts a note about a mention into a colleague's inbox; the post on the board is what counts.
    pub(super) async fn mention(
        &self,
        to: &AnimaName,
        text: String,
        is_personal: bool,
        cx: &ToolContext,
    ) -> Result<(), ToolError> {
        let now = self.home.now();
        let message = Message {
            intent: is_personal.then_some(Intent::Question),
            at: Some(now.to_utc()),
            ..Message::anima(cx.anima.as_str(), text, relayed(cx))
        }
        .with_id(self.ids.message(now));
        self.post.post(message, to).await.map(|_| ()).map_err(|error| fault::post(error, cx.locale))
    }
}

/// Where the words come from that an Anima writes now: from everything its session has seen.
pub(super) fn relayed(cx: &ToolContext) -> Origin {
    cx.floor.relayed_by(Origin::ANIMA)
}

/// What the limits see of an event; `None` for what they do not look at.
fn counted(entry: LoggedActivity) -> Option<SentLetter> {
    let activity = entry.activity;
    if EXEMPT.contains(&activity.meta_str("type")) {
        return None;
    }
    let is_handover = activity.meta.get("handover").and_then(serde_json::Value::as_bool).unwrap_or_default();
    Some(SentLetter { at: entry.at, turn: activity.meta_str("turn").to_owned(), to: activity.to, is_handover })
}
