//! Who is looking: events in order, kept for those who come late (exec spec §2.3).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio::sync::watch;

use crate::{
    anima::{AnimaError, Numbered},
    units::Seq,
};

/// A numbered series of events that many may watch at once.
///
/// The last `capacity` events are kept. Who comes so late that the first ones are gone begins
/// with the oldest that is left; the last event of a turn carries its whole text.
#[derive(Debug)]
pub(super) struct Feed<E> {
    ring: Mutex<Ring<E>>,
    bell: watch::Sender<u64>,
    capacity: usize,
}

#[derive(Debug)]
struct Ring<E> {
    events: VecDeque<E>,
    /// The number of the event that comes next.
    next: u64,
    closed: bool,
}

impl<E: Clone + Send + Sync + 'static> Feed<E> {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        let ring = Ring { events: VecDeque::new(), next: 1, closed: false };
        Arc::new(Self { ring: Mutex::new(ring), bell: watch::Sender::new(0), capacity })
    }

    fn ring(&self) -> MutexGuard<'_, Ring<E>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub(super) fn send(&self, event: E) {
        self.add(event, false);
    }

    /// Adds the last event.
    pub(super) fn close_with(&self, event: E) {
        self.add(event, true);
    }

    fn add(&self, event: E, last: bool) {
        let next = {
            let mut ring = self.ring();
            if ring.closed {
                return;
            }
            if ring.events.len() == self.capacity {
                ring.events.pop_front();
            }
            ring.events.push_back(event);
            ring.next += 1;
            ring.closed = last;
            ring.next
        };
        self.bell.send_replace(next);
    }

    /// Adds nothing more.
    pub(super) fn close(&self) {
        self.ring().closed = true;
        self.bell.send_modify(|next| *next += 1);
    }

    /// The events from the beginning or from after a place. Dropping the stream only stops looking.
    pub(super) fn watch(self: &Arc<Self>, after: Option<Seq>) -> BoxStream<'static, Result<Numbered<E>, AnimaError>> {
        let from = after.map_or(1, |after| after.0 + 1);
        let bell = self.bell.subscribe();
        stream::unfold((self.clone(), bell, from), |(feed, mut bell, from)| async move {
            loop {
                // seen before looking, so that an event in between rings again
                bell.borrow_and_update();
                {
                    let ring = feed.ring();
                    let oldest = ring.next - ring.events.len() as u64;
                    let at = from.max(oldest);
                    let found = usize::try_from(at - oldest).ok().and_then(|at| ring.events.get(at)).cloned();
                    let closed = ring.closed;
                    drop(ring);
                    if let Some(event) = found {
                        return Some((Ok(Numbered { seq: Seq(at), event }), (feed, bell, at + 1)));
                    }
                    if closed {
                        return None;
                    }
                }
                if bell.changed().await.is_err() {
                    return None;
                }
            }
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(feed: &Arc<Feed<u32>>, after: Option<Seq>) -> Vec<(u64, u32)> {
        feed.watch(after).map(|event| event.unwrap()).map(|event| (event.seq.0, event.event)).collect().await
    }

    #[tokio::test]
    async fn late_and_early_watchers_see_the_same() {
        let feed = Feed::new(100);
        let early = tokio::join!(all(&feed, None), async {
            for n in 0..5 {
                feed.send(n);
                tokio::task::yield_now().await;
            }
            feed.close_with(9);
            feed.send(10);
        })
        .0;
        assert_eq!(early, [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 9)]);
        assert_eq!(all(&feed, None).await, early);
        assert_eq!(all(&feed, Some(Seq(4))).await, [(5, 4), (6, 9)]);
        assert_eq!(all(&feed, Some(Seq(99))).await, []);
    }

    #[tokio::test]
    async fn a_full_ring_forgets_the_oldest() {
        let feed = Feed::new(2);
        for n in 1..=5 {
            feed.send(n);
        }
        feed.close();
        assert_eq!(all(&feed, None).await, [(4, 4), (5, 5)]);
    }
}
