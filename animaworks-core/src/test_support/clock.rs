//! A clock that only moves when it is told to.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::clock::{Clock, Hold};

/// Time under the test's hand. Sleepers wake when it passes them.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<watch::Sender<DateTime<Utc>>>,
    started: DateTime<Utc>,
    holds: Arc<Mutex<Vec<std::sync::Weak<()>>>>,
}

impl ManualClock {
    /// A clock that stands at an RFC 3339 moment.
    #[allow(clippy::expect_used, reason = "for tests, which name a constant")]
    pub fn at(moment: &str) -> Self {
        let now = DateTime::parse_from_rfc3339(moment).expect("an RFC 3339 moment").with_timezone(&Utc);
        Self { now: Arc::new(watch::Sender::new(now)), started: now, holds: Arc::default() }
    }

    /// Moves time forward.
    pub fn advance(&self, span: Duration) {
        self.now.send_modify(|now| *now += span);
    }

    /// Whether somebody works.
    pub fn is_held(&self) -> bool {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        holds.retain(|hold| hold.strong_count() > 0);
        !holds.is_empty()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.now.borrow()
    }

    fn elapsed(&self) -> Duration {
        (self.now() - self.started).to_std().unwrap_or_default()
    }

    fn sleep_until(&self, at: DateTime<Utc>) -> BoxFuture<'static, ()> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            if now.wait_for(|now| *now >= at).await.is_err() {
                // the clock is gone, so the moment never comes
                std::future::pending::<()>().await;
            }
        })
    }

    fn hold(&self) -> Hold {
        let guard = Arc::new(());
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&guard));
        Hold::new(guard)
    }
}
