//! What of an answer is shown, from the model's words to the events of the turn.

use std::collections::BTreeSet;

use animaworks_core::event::TurnEvent;

use super::{
    guards::Repetition,
    text_calls::TextCalls,
    think::{Piece, ThinkFilter},
};
use crate::wire::WireCall;

/// One answer being spoken.
#[derive(Debug)]
pub(super) struct Voice {
    think: ThinkFilter,
    calls: Option<TextCalls>,
    echo: Option<Echo>,
    repetition: Repetition,
    /// The answer so far, without thoughts and calls.
    pub(super) text: String,
    /// Whether any of it was shown; then it cannot be taken back.
    pub(super) said: bool,
    /// Whether it goes round in circles.
    pub(super) circling: bool,
}

impl Voice {
    /// `patient`: hold text until it is known to be no thought. `tools`: the calls to look for in the text.
    /// `draft`: an earlier answer of this turn, which is not said again.
    pub(super) fn new(patient: bool, tools: Option<BTreeSet<String>>, draft: Option<&str>) -> Self {
        Self {
            think: ThinkFilter::new(patient),
            calls: tools.map(TextCalls::new),
            echo: draft.map(Echo::new),
            repetition: Repetition::default(),
            text: String::new(),
            said: false,
            circling: false,
        }
    }

    /// Takes a piece of the answer.
    pub(super) fn push(&mut self, text: &str, events: &mut Vec<TurnEvent>) {
        let pieces = self.think.push(text);
        self.pieces(pieces, events);
    }

    /// The answer is over; the calls that were found in its text.
    pub(super) fn finish(&mut self, events: &mut Vec<TurnEvent>) -> Vec<WireCall> {
        let pieces = self.think.finish();
        self.pieces(pieces, events);
        let (calls, rest) = self.calls.as_mut().map(TextCalls::finish).unwrap_or_default();
        self.show(rest, events);
        calls
    }

    /// Whether thoughts leaked because their opening tag was lost.
    pub(super) fn leaked(&self) -> bool {
        self.think.saw_orphan()
    }

    fn pieces(&mut self, pieces: Vec<Piece>, events: &mut Vec<TurnEvent>) {
        for piece in pieces {
            match piece {
                Piece::Thought(thought) => events.push(TurnEvent::Thinking(thought)),
                Piece::Text(text) => {
                    let text = match &mut self.calls {
                        Some(calls) => calls.push(&text),
                        None => text,
                    };
                    self.show(text, events);
                }
            }
        }
    }

    fn show(&mut self, text: String, events: &mut Vec<TurnEvent>) {
        self.circling |= self.repetition.saw(&text);
        self.text.push_str(&text);
        let text = match &mut self.echo {
            Some(echo) => echo.push(&text),
            None => text,
        };
        if !text.is_empty() {
            self.said |= !text.trim().is_empty();
            events.push(TurnEvent::Text(text));
        }
    }
}

/// Keeps an answer from repeating a draft that was already shown.
#[derive(Debug)]
pub(crate) struct Echo {
    draft: String,
    heard: String,
    passed: bool,
}

impl Echo {
    pub(crate) fn new(draft: &str) -> Self {
        Self { draft: draft.to_owned(), heard: String::new(), passed: false }
    }

    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.passed {
            return text.to_owned();
        }
        self.heard.push_str(text);
        if self.draft.starts_with(self.heard.trim_start()) {
            return String::new();
        }
        self.passed = true;
        let heard = std::mem::take(&mut self.heard);
        match heard.trim_start().strip_prefix(&self.draft) {
            Some(new) => new.to_owned(),
            None => format!("\n\n{heard}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(draft: &str, pieces: &[&str]) -> String {
        let mut echo = Echo::new(draft);
        pieces.iter().map(|piece| echo.push(piece)).collect()
    }

    #[test]
    fn a_draft_is_not_said_twice() {
        assert_eq!(shown("All done.", &["All ", "done."]), "");
        assert_eq!(shown("All done.", &["All ", "done.", " And", " filed."]), " And filed.");
        assert_eq!(shown("All done.", &["All ", "right."]), "\n\nAll right.");
    }
}
