//! What an engine sends while a turn runs, and the law of its order.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream, stream::BoxStream};

use crate::{
    executor::ExecError,
    ids::{CallId, SessionId},
    tool::{ToolCall, ToolOutput},
    units::Usage,
};

/// One event of a running turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TurnEvent {
    /// The engine has begun. Always first, once.
    Started {
        /// Its session, when it can be resumed.
        session: Option<SessionId>,
    },
    /// A piece of the answer.
    Text(String),
    /// A piece of thinking.
    Thinking(String),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// The tool has answered.
    ToolOutput(CallId, ToolOutput),
    /// How full the context is.
    Context {
        /// Tokens in it.
        used: u64,
        /// The window.
        window: u64,
    },
    /// What one model call consumed. Several add up.
    Usage(Usage),
    /// The engine tries again by itself.
    Retrying {
        /// Which attempt, from 1.
        attempt: u32,
        /// At most this many.
        max_attempts: u32,
        /// Why, in English.
        reason: String,
    },
    /// A fact worth telling a person, such as tokens per second. Words come from the catalogue.
    Note(String),
    /// The end. Always last, once.
    Completed(StopReason),
}

/// Why an engine finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It was finished.
    End,
    /// It took too many steps.
    MaxTurns,
    /// It made room for another session.
    Chain,
    /// The answer hit the output limit.
    Length,
    /// The same thing over and over.
    Runaway,
    /// The model said nothing.
    Empty,
}

/// Checks the order of a turn's events, one at a time.
///
/// `Started` first and once; a tool output only for a call that was made and not
/// yet answered; nothing after the end.
#[derive(Debug, Default)]
pub struct TurnLaw {
    started: bool,
    ended: bool,
    open: BTreeSet<CallId>,
}

impl TurnLaw {
    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// Says in English which law it breaks.
    pub fn check(&mut self, event: &Result<TurnEvent, ExecError>) -> Result<(), String> {
        if self.ended {
            return Err("an event after the end".to_owned());
        }
        let Ok(event) = event else {
            self.ended = true;
            return Ok(());
        };
        match event {
            TurnEvent::Started { .. } if self.started => return Err("started twice".to_owned()),
            TurnEvent::Started { .. } => self.started = true,
            _ if !self.started => return Err(format!("{event:?} before the start")),
            TurnEvent::ToolCall(call) => {
                if !self.open.insert(call.id.clone()) {
                    return Err(format!("call {} made twice", call.id));
                }
            }
            TurnEvent::ToolOutput(id, _) => {
                if !self.open.remove(id) {
                    return Err(format!("an output for {id}, which was not called"));
                }
            }
            TurnEvent::Completed(_) => {
                self.ended = true;
                if let Some(id) = self.open.first() {
                    return Err(format!("completed while {id} was unanswered"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Holds a stream to the law: a breach is logged, and an end without its event becomes [`ExecError::Interrupted`].
pub fn lawful(
    engine: &'static str,
    events: BoxStream<'static, Result<TurnEvent, ExecError>>,
) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
    stream::unfold((events, TurnLaw::default(), false), move |(mut events, mut law, done)| async move {
        if done {
            return None;
        }
        let Some(event) = events.next().await else {
            let detail = "no end event".to_owned();
            let error = ExecError::Interrupted { engine: engine.to_owned(), detail };
            return Some((Err(error), (events, law, true)));
        };
        if let Err(breach) = law.check(&event) {
            tracing::error!(engine, breach, "an engine broke the order of events");
        }
        let done = law.ended;
        Some((event, (events, law, done)))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_without_an_end_is_interrupted() {
        let events = stream::iter([Ok(TurnEvent::Started { session: None }), Ok(TurnEvent::Text("half".into()))]);
        let seen: Vec<_> = lawful("test", events.boxed()).collect().await;
        assert!(matches!(seen.last(), Some(Err(ExecError::Interrupted { .. }))));
    }

    #[test]
    fn an_output_needs_its_call() {
        let mut law = TurnLaw::default();
        assert_eq!(law.check(&Ok(TurnEvent::Started { session: None })), Ok(()));
        let id = CallId::new("c1").unwrap();
        assert!(law.check(&Ok(TurnEvent::ToolOutput(id, ToolOutput::text("x")))).is_err());
    }
}
