//! Writes the journal beside the turn, so that a slow disk does not hold up the words.
//!
//! Pieces go through a bounded channel to one task that owns the journal and flushes within
//! a second of time passing. What must be durable before something happens is acknowledged.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::hub::Feed;
use crate::{
    anima::LifeEvent,
    clock::Clock,
    error::{ResultExt, chain},
    fs::{self, FileError},
    home::journal::Journal,
    ids::{CallId, ToolName},
    memory::Degraded,
    tasks::Tasks,
    tool::Effect,
};

/// Pieces that may wait for the disk; a full channel slows the stream down instead of filling memory.
const WAITING: usize = 1024;

/// The writing end of a turn's journal.
#[derive(Debug, Clone)]
pub(super) struct Pen(Option<mpsc::Sender<Stroke>>);

#[derive(Debug)]
enum Stroke {
    Text(String),
    ToolStart { tool: ToolName, id: CallId, args: String, effect: Effect, done: oneshot::Sender<bool> },
    ToolEnd { tool: ToolName, id: CallId, result: String },
    Flush(oneshot::Sender<bool>),
    Finish { summary: String, done: oneshot::Sender<bool> },
}

impl Pen {
    /// Starts writing; without a journal everything is taken and nothing kept.
    pub(super) fn start(
        tasks: Option<&Tasks>,
        journal: Option<Journal>,
        clock: Arc<dyn Clock>,
        feed: Arc<Feed<LifeEvent>>,
    ) -> Self {
        let (Some(tasks), Some(journal)) = (tasks, journal) else { return Self(None) };
        let (sender, strokes) = mpsc::channel(WAITING);
        tasks.spawn("journal", write(journal, strokes, clock, feed));
        Self(Some(sender))
    }

    /// A piece of the answer.
    pub(super) async fn text(&self, piece: String) {
        self.send(Stroke::Text(piece)).await;
    }

    /// A tool is about to run; whether that is durable.
    pub(super) async fn tool_start(&self, tool: &ToolName, id: &CallId, args: String, effect: Effect) -> bool {
        let (tool, id) = (tool.clone(), id.clone());
        self.ask(|done| Stroke::ToolStart { tool, id, args, effect, done }).await
    }

    /// A tool has answered.
    pub(super) async fn tool_end(&self, tool: &ToolName, id: &CallId, result: String) {
        self.send(Stroke::ToolEnd { tool: tool.clone(), id: id.clone(), result }).await;
    }

    /// Writes what waits.
    pub(super) async fn flush(&self) -> bool {
        self.ask(Stroke::Flush).await
    }

    /// The reply is recorded: the journal is not needed any more.
    pub(super) async fn finish(&self, summary: String) -> bool {
        self.0.is_none() || self.ask(|done| Stroke::Finish { summary, done }).await
    }

    async fn send(&self, stroke: Stroke) {
        if let Some(sender) = &self.0 {
            sender.send(stroke).await.ignore("the journal's task ends only with the life");
        }
    }

    async fn ask(&self, stroke: impl FnOnce(oneshot::Sender<bool>) -> Stroke) -> bool {
        let (done, answer) = oneshot::channel();
        self.send(stroke(done)).await;
        answer.await.unwrap_or(false)
    }
}

async fn write(
    mut journal: Journal,
    mut strokes: mpsc::Receiver<Stroke>,
    clock: Arc<dyn Clock>,
    feed: Arc<Feed<LifeEvent>>,
) {
    let mut told = false;
    loop {
        let due = journal.due_in();
        let first = tokio::select! {
            stroke = strokes.recv() => stroke,
            () = wait(&clock, due) => Some(Stroke::Flush(oneshot::channel().0)),
        };
        let Some(first) = first else { break };
        let mut batch = vec![first];
        while let Ok(next) = strokes.try_recv() {
            batch.push(next);
        }
        let written = fs::blocking(move || Ok::<_, FileError>(apply(journal, batch))).await;
        match written {
            Ok((back, problem)) => {
                journal = back;
                if let Some(problem) = problem
                    && !told
                {
                    told = true;
                    feed.send(LifeEvent::Degraded(Degraded::new("journal", problem)));
                }
            }
            Err(error) => {
                // the journal itself is lost with the panicked write; what is on disk stays
                feed.send(LifeEvent::Degraded(Degraded::new("journal", chain(&error))));
                return;
            }
        }
    }
    fs::blocking(move || journal.close()).await.log_err("close a journal");
}

async fn wait(clock: &Arc<dyn Clock>, due: Option<std::time::Duration>) {
    match due {
        Some(due) => clock.sleep(due).await,
        None => std::future::pending().await,
    }
}

/// Applies strokes in order; the second value says what went wrong first.
fn apply(mut journal: Journal, batch: Vec<Stroke>) -> (Journal, Option<String>) {
    let mut problem = None;
    let mut note = |result: Result<(), FileError>| match result {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "the journal cannot be written");
            problem.get_or_insert_with(|| chain(&error));
            false
        }
    };
    for stroke in batch {
        match stroke {
            Stroke::Text(piece) => {
                note(journal.text(&piece));
            }
            Stroke::ToolStart { tool, id, args, effect, done } => {
                let durable = note(journal.tool_start(&tool, Some(&id), &args, effect));
                done.send(durable).ok_or_gone();
            }
            Stroke::ToolEnd { tool, id, result } => {
                note(journal.tool_end(&tool, Some(&id), &result));
            }
            Stroke::Flush(done) => {
                let durable = note(journal.flush());
                done.send(durable).ok_or_gone();
            }
            Stroke::Finish { summary, done } => {
                let durable = note(journal.finalize(&summary));
                done.send(durable).ok_or_gone();
            }
        }
    }
    (journal, problem)
}

/// An answer that nobody waits for any more is no loss.
trait OrGone {
    fn ok_or_gone(self);
}

impl OrGone for Result<(), bool> {
    fn ok_or_gone(self) {
        if let Err(answer) = self {
            tracing::trace!(answer, "nobody waits for the journal any more");
        }
    }
}
