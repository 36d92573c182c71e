//! Who said what to whom: a message is accepted once, and its answer stands behind it.
//!
//! A human turn carries `message_id` and its answer `reply_to`, so that a message nobody has
//! answered can be found after a crash, and a message that comes twice is one message.

use serde_json::Value;

use super::{Conversation, Turn};
use crate::{
    fs::FileError,
    home::AnimaHome,
    ids::{MessageId, ThreadId},
    message::{Message, SenderKind},
};

/// Ids that are remembered after their turns have become a summary.
const REMEMBERED: usize = 200;
const MESSAGE_ID: &str = "message_id";
const REPLY_TO: &str = "reply_to";
const ACCEPTED: &str = "accepted_ids";

/// What came of handing a message in.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// It is durable now.
    New,
    /// It was there before, and nobody has answered it yet.
    Open,
    /// It was there before and has been answered; without the answer when both have become part of the summary.
    Answered(Option<Box<Turn>>),
}

/// A message nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// Where.
    pub thread: ThreadId,
    /// Which.
    pub message: MessageId,
}

impl AnimaHome {
    /// Appends a message to its conversation, unless it is there already. Durable when this returns.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn accept(&self, message: &Message) -> Result<Accepted, FileError> {
        let (locale, now) = (self.locale(), self.stamp_seconds());
        let id = message.id.as_str();
        self.update_conversation(&message.thread, |conversation| {
            if conversation.has_seen(id) {
                let answer = conversation.turns.iter().rfind(|turn| turn.extra_str(REPLY_TO) == Some(id));
                let waits = conversation.turns.iter().any(|turn| turn.extra_str(MESSAGE_ID) == Some(id));
                return match answer {
                    Some(answer) => Accepted::Answered(Some(Box::new(answer.clone()))),
                    None if waits => Accepted::Open,
                    None => Accepted::Answered(None),
                };
            }
            let mut turn = match message.from_kind {
                SenderKind::Human => Turn::human(&message.text),
                SenderKind::Anima | SenderKind::System => Turn::new(&message.from, &message.text),
            };
            turn.limit(locale);
            turn.timestamp = now;
            turn.extra.insert(MESSAGE_ID.to_owned(), Value::from(id));
            conversation.turns.push(turn);
            conversation.remember(id);
            Accepted::New
        })
    }

    /// Takes a message back that could not be accepted as a whole.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn withdraw(&self, thread: &ThreadId, message: &MessageId) -> Result<(), FileError> {
        self.update_conversation(thread, |conversation| {
            conversation.turns.retain(|turn| turn.extra_str(MESSAGE_ID) != Some(message.as_str()));
            if let Some(Value::Array(ids)) = conversation.extra.get_mut(ACCEPTED) {
                ids.retain(|id| id.as_str() != Some(message.as_str()));
            }
        })
    }

    /// Puts the answer behind its message, whatever has been said since; `false` when it has one already.
    ///
    /// # Errors
    ///
    /// As [`AnimaHome::update_conversation`].
    pub fn answer(&self, thread: &ThreadId, message: &MessageId, mut turn: Turn) -> Result<bool, FileError> {
        let (locale, now) = (self.locale(), self.stamp_seconds());
        self.update_conversation(thread, |conversation| {
            let id = Some(message.as_str());
            if conversation.turns.iter().any(|turn| turn.extra_str(REPLY_TO) == id) {
                return false;
            }
            turn.limit(locale);
            turn.timestamp = now;
            turn.extra.insert(REPLY_TO.to_owned(), Value::from(message.as_str()));
            let at = conversation.turns.iter().rposition(|turn| turn.extra_str(MESSAGE_ID) == id);
            let at = at.map_or(conversation.turns.len(), |at| at + 1);
            conversation.turns.insert(at, turn);
            true
        })
    }

    /// Messages in all threads that were accepted and have no answer, oldest first in each.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn unanswered(&self) -> Result<Vec<Unanswered>, FileError> {
        let mut found = Vec::new();
        for thread in self.threads()? {
            let turns = self.conversation(&thread)?.conversation.turns;
            let open = turns.iter().filter_map(|turn| turn.extra_str(MESSAGE_ID)).filter(|id| {
                let id = Some(*id);
                !turns.iter().any(|turn| turn.extra_str(REPLY_TO) == id)
            });
            for id in open {
                match MessageId::new(id) {
                    Ok(message) => found.push(Unanswered { thread: thread.clone(), message }),
                    Err(error) => tracing::warn!(%error, %thread, "a message with a strange id in a conversation"),
                }
            }
        }
        Ok(found)
    }
}

impl Conversation {
    fn has_seen(&self, id: &str) -> bool {
        let remembered =
            matches!(self.extra.get(ACCEPTED), Some(Value::Array(ids)) if ids.iter().any(|seen| seen == id));
        remembered || self.turns.iter().any(|turn| turn.extra_str(MESSAGE_ID) == Some(id))
    }

    fn remember(&mut self, id: &str) {
        let entry = self.extra.entry(ACCEPTED).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(ids) = entry {
            ids.push(Value::from(id));
            ids.drain(..ids.len().saturating_sub(REMEMBERED));
        }
    }
}

impl Turn {
    fn extra_str(&self, key: &str) -> Option<&str> {
        self.extra.get(key).and_then(Value::as_str)
    }

    /// The message this turn is, when it was accepted by us.
    pub fn message_id(&self) -> Option<&str> {
        self.extra_str(MESSAGE_ID)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AnimaName, layout::DataDir, test_support::ManualClock};

    #[test]
    fn a_message_is_accepted_once_and_answered_once_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at("2026-03-31T09:15:02+09:00"));
        let anima = DataDir::new(dir.path()).anima(&AnimaName::new("sakura").unwrap());
        let home = AnimaHome::open(anima, chrono_tz::Asia::Tokyo, clock);
        let message = |id: &str| Message::human("tanaka", id).with_id(MessageId::new(id).unwrap());
        assert_eq!(home.accept(&message("m1")).unwrap(), Accepted::New);
        assert_eq!(home.accept(&message("m1")).unwrap(), Accepted::Open);
        assert_eq!(home.accept(&message("m2")).unwrap(), Accepted::New);
        let main = ThreadId::main();
        assert!(home.answer(&main, &message("m1").id, Turn::assistant("a1")).unwrap());
        assert!(!home.answer(&main, &message("m1").id, Turn::assistant("again")).unwrap());
        assert!(matches!(home.accept(&message("m1")).unwrap(), Accepted::Answered(Some(turn)) if turn.content == "a1"));
        let turns = home.conversation(&main).unwrap().conversation.turns;
        assert_eq!(turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), ["m1", "a1", "m2"]);
        assert_eq!(home.unanswered().unwrap(), [Unanswered { thread: main.clone(), message: message("m2").id }]);
        home.withdraw(&main, &message("m2").id).unwrap();
        assert!(home.unanswered().unwrap().is_empty());
        assert_eq!(home.accept(&message("m2")).unwrap(), Accepted::New);
    }
}
