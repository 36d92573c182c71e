//! Background tasks that somebody owns.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::task::AbortHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::error::ResultExt;

/// A group of tasks. Dropping the group ends all of them; a task that panics is an error with its name.
#[derive(Debug)]
pub struct Tasks {
    name: &'static str,
    tracker: TaskTracker,
    cancel: CancellationToken,
    handles: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Tasks {
    /// An empty group.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            tracker: TaskTracker::new(),
            cancel: CancellationToken::new(),
            handles: Arc::new(Mutex::new(Vec::new())),
        }
    }

    /// Fires when the group is asked to end.
    pub fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Starts a task.
    #[allow(clippy::disallowed_methods, reason = "the one place that starts tasks")]
    pub fn spawn(&self, what: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let group = self.name;
        let handle = tokio::spawn(self.tracker.track_future(work));
        let abort = handle.abort_handle();
        {
            let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
            handles.retain(|handle| !handle.is_finished());
            handles.push(abort);
        }
        // a watcher only to report a panic; it ends with the task
        tokio::spawn(async move {
            if let Err(error) = handle.await
                && error.is_panic()
            {
                tracing::error!(group, what, %error, "a task panicked");
            }
        });
    }

    /// Waits until every task has ended by itself.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
        self.tracker.reopen();
    }

    /// Asks every task to end, without waiting.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Asks every task to end, waits for at most `grace`, and then ends them; whether all ended by themselves.
    ///
    /// # Cancel safety
    ///
    /// Safe; the tasks have been asked.
    pub async fn shutdown(&self, grace: Duration) -> bool {
        self.cancel.cancel();
        let ended = tokio::time::timeout(grace, self.finished()).await;
        self.abort();
        ended.ignore("the caller learns it from the result").is_some()
    }

    fn abort(&self) {
        for handle in self.handles.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            handle.abort();
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn dropping_the_group_ends_its_tasks() {
        let tasks = Tasks::new("test");
        let gone = CancellationToken::new();
        let guard = gone.clone().drop_guard();
        tasks.spawn("forever", async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        drop(tasks);
        tokio::time::timeout(Duration::from_secs(5), gone.cancelled()).await.unwrap();
    }

    #[tokio::test]
    async fn shutdown_waits_for_those_that_listen() {
        let tasks = Tasks::new("test");
        let token = tasks.token().clone();
        tasks.spawn("listener", async move { token.cancelled().await });
        assert!(tasks.shutdown(Duration::from_secs(5)).await);
    }
}
