//! One conversation with an Anima: asks, shows the answer as it comes, and listens for Ctrl-C.

use std::sync::Arc;

use animaworks_core::{
    Anima, CycleReport, ErrorKind, LifeEvent, Locale, Message, Scope, ThreadId,
    anima::{CycleAction, RecalledSource},
    i18n::fill,
    t,
};
use futures_util::StreamExt;

use crate::{
    error::{CliError, CliResult},
    ui,
};

/// Who talks to whom, and what is shown of it.
pub(crate) struct Conversation {
    pub(crate) anima: Arc<dyn Anima>,
    pub(crate) locale: Locale,
    pub(crate) from: String,
    pub(crate) thread: ThreadId,
    /// Show tools and remarks beside the answer.
    pub(crate) verbose: bool,
    /// Show the answer while it comes.
    pub(crate) streaming: bool,
    /// The last turn, for `/why`.
    pub(crate) last: Option<Turn>,
}

/// A turn as it was seen.
pub(crate) struct Turn {
    pub(crate) report: CycleReport,
    pub(crate) sources: Vec<RecalledSource>,
    pub(crate) recall_ms: u64,
}

impl Conversation {
    /// Says something and follows the turn to its end.
    pub(crate) async fn say(&mut self, text: &str) -> CliResult<&Turn> {
        let message = Message::human(&self.from, text).in_thread(self.thread.clone());
        let mut events = self.anima.converse(message).await?;
        let mut seen =
            Seen { locale: self.locale, verbose: self.verbose, streaming: self.streaming, ..Seen::default() };
        let mut asked_to_stop = false;
        loop {
            tokio::select! {
                event = events.next() => {
                    let Some(event) = event else {
                        return Err(CliError::said(ErrorKind::Interrupted, t!(self.locale, "cli.chat.lost")));
                    };
                    if let Some(report) = seen.show(event?.event)? {
                        let turn = Turn { report, sources: seen.sources, recall_ms: seen.recall_ms };
                        return Ok(self.last.insert(turn));
                    }
                }
                pressed = tokio::signal::ctrl_c() => {
                    pressed.map_err(CliError::Output)?;
                    if asked_to_stop {
                        return Err(CliError::said(ErrorKind::Cancelled, t!(self.locale, "cli.chat.left")));
                    }
                    asked_to_stop = true;
                    self.anima.interrupt(Scope::Thread(self.thread.clone())).await?;
                }
            }
        }
    }

    /// A hint that names this Anima.
    fn named(&self, hint: &str) -> String {
        fill(hint, &[("anima", self.anima.name().as_str())])
    }

    /// The error of the last turn, as the command's own.
    pub(crate) fn outcome(&self) -> CliResult {
        let Some(turn) = &self.last else { return Ok(()) };
        match (&turn.report.action, &turn.report.error) {
            (CycleAction::Error, Some(error)) => {
                let said = CliError::said(error.kind, &error.message);
                Err(match &error.hint {
                    Some(hint) => said.with_hint(self.named(hint)),
                    None => said,
                })
            }
            (CycleAction::Cancelled, _) => {
                Err(CliError::said(ErrorKind::Cancelled, t!(self.locale, "cli.chat.stopped")))
            }
            _ => Ok(()),
        }
    }
}

/// What has been shown so far.
#[derive(Default)]
struct Seen {
    locale: Locale,
    verbose: bool,
    streaming: bool,
    in_line: bool,
    sources: Vec<RecalledSource>,
    recall_ms: u64,
}

impl Seen {
    /// Shows an event; the report when it was the last one.
    fn show(&mut self, event: LifeEvent) -> CliResult<Option<CycleReport>> {
        match event {
            LifeEvent::Text(text) if self.streaming => {
                self.in_line = !text.ends_with('\n');
                ui::piece(&text)?;
            }
            LifeEvent::Recalled { sources, took_ms } => {
                self.sources = sources;
                self.recall_ms = took_ms;
            }
            LifeEvent::ToolStarted { name, detail, .. } => {
                self.aside(&t!(self.locale, "cli.chat.tool", name = name, detail = detail))?;
            }
            LifeEvent::ToolEnded { name, is_error: true, summary, .. } => {
                self.aside(&t!(self.locale, "cli.chat.tool_failed", name = name, summary = summary))?;
            }
            LifeEvent::Retrying { attempt, max_attempts, .. } => {
                self.aside(&t!(self.locale, "cli.chat.retrying", attempt = attempt, of = max_attempts))?;
            }
            LifeEvent::Compressing(true) => self.aside(&t!(self.locale, "cli.chat.compressing"))?,
            LifeEvent::Degraded(part) => {
                self.aside(&t!(self.locale, "cli.chat.degraded", part = part.part, why = part.why))?;
            }
            LifeEvent::Done(report) => {
                if self.streaming && self.in_line {
                    ui::piece("\n")?;
                }
                return Ok(Some(*report));
            }
            _ => {}
        }
        Ok(None)
    }

    /// A remark beside the answer.
    fn aside(&mut self, text: &str) -> CliResult {
        if !self.verbose {
            return Ok(());
        }
        if self.in_line {
            ui::piece("\n")?;
            self.in_line = false;
        }
        ui::note(ui::style::Paint::stderr().dim(text));
        Ok(())
    }
}
