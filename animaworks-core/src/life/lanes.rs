//! Who goes when: one turn at a time in each lane, lanes side by side (exec spec §2.1).

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{
    ids::ThreadId,
    trigger::{Lane, Trigger},
};

/// What is locked: a thread of conversation, the inbox, or the background.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Thread(ThreadId),
    Inbox,
    Background,
}

impl Key {
    pub(super) fn of(trigger: &Trigger) -> Self {
        match trigger.lane() {
            Lane::Conversation => Self::Thread(trigger.thread()),
            Lane::Inbox => Self::Inbox,
            Lane::Background => Self::Background,
        }
    }
}

/// The queues. First come, first served.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes(Arc<Mutex<HashMap<Key, VecDeque<oneshot::Sender<Pass>>>>>);

/// A place in a queue. Dropping it gives the place up.
#[derive(Debug)]
pub(super) enum Ticket {
    Now(Pass),
    Wait(oneshot::Receiver<Pass>),
}

/// The right to be in a lane; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Pass {
    key: Key,
    lanes: Lanes,
}

impl Lanes {
    fn queues(&self) -> MutexGuard<'_, HashMap<Key, VecDeque<oneshot::Sender<Pass>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place. The order of these calls is the order of the turns.
    pub(super) fn queue(&self, key: Key) -> Ticket {
        let mut queues = self.queues();
        if let Some(waiting) = queues.get_mut(&key) {
            let (sender, receiver) = oneshot::channel();
            waiting.push_back(sender);
            return Ticket::Wait(receiver);
        }
        queues.insert(key.clone(), VecDeque::new());
        Ticket::Now(Pass { key, lanes: self.clone() })
    }
}

impl Ticket {
    /// Whether the lane was free.
    pub(super) fn is_first(&self) -> bool {
        matches!(self, Self::Now(_))
    }

    /// Waits for the lane; `None` when the lanes are gone.
    pub(super) async fn enter(self) -> Option<Pass> {
        match self {
            Self::Now(pass) => Some(pass),
            Self::Wait(receiver) => receiver.await.ok(),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let lanes = self.lanes.clone();
        let mut queues = lanes.queues();
        let next = queues.get_mut(&self.key).and_then(VecDeque::pop_front);
        let Some(next) = next else {
            queues.remove(&self.key);
            return;
        };
        // outside the lock: a pass that nobody takes comes back here and goes to the one after
        drop(queues);
        drop(next.send(Pass { key: self.key.clone(), lanes }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lane_is_first_come_first_served_and_skips_who_left() {
        let lanes = Lanes::default();
        let first = lanes.queue(Key::Background).enter().await.unwrap();
        let gone = lanes.queue(Key::Background);
        let second = lanes.queue(Key::Background);
        assert!(!gone.is_first() && lanes.queue(Key::Inbox).is_first());
        drop(gone);
        drop(first);
        let second = second.enter().await.unwrap();
        assert!(!lanes.queue(Key::Background).is_first());
        drop(second);
        assert!(lanes.queue(Key::Background).is_first(), "nobody holds it any more");
    }

    #[tokio::test]
    async fn a_pass_that_was_handed_to_nobody_is_not_lost() {
        let lanes = Lanes::default();
        let first = lanes.queue(Key::Inbox);
        let waiting = lanes.queue(Key::Inbox);
        drop(first);
        // the pass lies in the channel of a ticket that is now dropped
        drop(waiting);
        assert!(lanes.queue(Key::Inbox).is_first());
    }
}
