//! The task book as files: `task_queue.jsonl` says what is owed, `pending/*.json` what is ready to be carried out
//! (memory spec §11, §12; exec spec §7.3).

mod pending;
mod priming;
mod queue;
mod run;

pub use pending::PendingTask;
pub use priming::{Live, priming};
pub use queue::TaskQueue;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono_tz::Tz;
use futures_util::stream::BoxStream;
use serde_json::Value;

use super::{
    AnimaHome,
    bell::Bells,
    claims::{Desk, Leases},
    text::head,
};
use crate::{
    clock::Clock,
    fs::{self, FileError, Privacy},
    i18n::Locale,
    ids::{AnimaName, IdSource, LeaseId, TaskId},
    layout::DataDir,
    seams::{Claim, PostError, Settled, TaskBook, TaskEvent, TaskUpdate},
    t,
    task::{Task, TaskSource, TaskStatus},
};

/// A task book on one machine. Clones share their bells and claims.
#[derive(Debug, Clone)]
pub struct FileTaskBook {
    data: DataDir,
    zone: Tz,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    bells: Arc<Bells>,
    leases: Arc<Leases<AnimaName>>,
}

impl FileTaskBook {
    /// The task book of an organisation.
    pub fn new(data: DataDir, zone: Tz, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { data, zone, clock, ids, bells: Arc::default(), leases: Arc::default() }
    }

    /// The queue of one Anima, for callers that block.
    pub fn queue(&self, owner: &AnimaName) -> TaskQueue {
        TaskQueue::new(AnimaHome::open(self.data.anima(owner), self.zone, self.clock.clone()))
    }

    /// Hands in tasks that belong together. All of them or none are there afterwards, whatever happens in between.
    ///
    /// # Errors
    ///
    /// [`PostError::Task`] when ids are missing or double, or dependencies unknown or circular.
    pub fn submit(
        &self,
        owner: &AnimaName,
        source: TaskSource,
        batch: &str,
        tasks: Vec<PendingTask>,
    ) -> Result<(), PostError> {
        let desk = self.desk(owner);
        let queue = self.queue(owner);
        let _held = queue.lock()?;
        pending::submit(&queue, &desk, source, batch, tasks)?;
        self.bells.ring(desk.waiting);
        Ok(())
    }

    /// Ends all claims on an Anima's tasks. For the start of the process that alone carries them out.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn release_all(&self, owner: &AnimaName) -> Result<usize, PostError> {
        let queue = self.queue(owner);
        let _held = queue.lock()?;
        Ok(self.desk(owner).release_all()?)
    }

    /// How a task that was handed over is doing, in the book of whoever has it.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn live(&self, task: &Task) -> Result<Live, PostError> {
        let word = |key: &str| task.meta.get(key).and_then(Value::as_str).unwrap_or_default();
        let (Ok(who), Ok(id)) = (AnimaName::new(word("delegated_to")), TaskId::new(word("delegated_task_id"))) else {
            return Ok(Live::Unknown);
        };
        if !self.data.anima(&who).root().is_dir() {
            return Ok(Live::Unknown);
        }
        Ok(self.queue(&who).find(&id)?.map_or(Live::Archived, |child| Live::Known(Box::new(child))))
    }

    /// Brings the state of tasks that were handed over back into the owner's book; which ones changed.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn sync_delegated(&self, owner: &AnimaName, locale: Locale) -> Result<Vec<TaskId>, PostError> {
        let queue = self.queue(owner);
        let mut changed = Vec::new();
        for task in queue.list()?.into_iter().filter(|task| task.status == TaskStatus::Delegated) {
            let Live::Known(child) = self.live(&task)? else { continue };
            let who = &child.assignee;
            let (status, summary) = match child.status {
                TaskStatus::Done => (
                    TaskStatus::Done,
                    t!(
                        locale,
                        "memory.tasks.delegated_done",
                        summary = task.summary,
                        who = who,
                        result = head(&child.summary, 200)
                    ),
                ),
                TaskStatus::Failed | TaskStatus::Cancelled => {
                    (TaskStatus::Failed, t!(locale, "memory.tasks.delegated_failed", summary = task.summary, who = who))
                }
                _ => continue,
            };
            queue.append(TaskEvent::Update(TaskUpdate {
                task_id: task.task_id.clone(),
                status: Some(status),
                summary: Some(summary),
                meta: None,
                reopen: false,
            }))?;
            changed.push(task.task_id);
        }
        Ok(changed)
    }

    fn desk(&self, owner: &AnimaName) -> Desk {
        Desk::new(self.data.anima(owner).state("pending"), "failed")
    }
}

impl AnimaHome {
    /// Keeps what came of a task: the first 2,000 characters.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn write_task_result(&self, task: &TaskId, text: &str) -> Result<(), FileError> {
        let path = self.dir().state("task_results").join(format!("{}.md", pending::plain(task)));
        fs::write_atomic(&path, head(text, 2000).as_bytes(), Privacy::Normal)
    }

    /// What came of a task, if it was kept.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn task_result(&self, task: &TaskId) -> Result<Option<String>, FileError> {
        fs::read_text_if_exists(&self.dir().state("task_results").join(format!("{}.md", pending::plain(task))))
    }
}

#[async_trait]
impl TaskBook for FileTaskBook {
    async fn append(&self, owner: &AnimaName, event: TaskEvent) -> Result<(), PostError> {
        let queue = self.queue(owner);
        fs::blocking(move || queue.append(event)).await?;
        self.bells.ring(self.desk(owner).waiting);
        Ok(())
    }

    async fn list(&self, owner: &AnimaName) -> Result<Vec<Task>, PostError> {
        let queue = self.queue(owner);
        fs::blocking(move || queue.list()).await
    }

    async fn find(&self, owner: &AnimaName, task: &TaskId) -> Result<Option<Task>, PostError> {
        let (queue, task) = (self.queue(owner), task.clone());
        fs::blocking(move || queue.find(&task)).await
    }

    async fn submit(
        &self,
        owner: &AnimaName,
        source: TaskSource,
        batch: &str,
        tasks: Vec<PendingTask>,
    ) -> Result<(), PostError> {
        let (this, owner, batch) = (self.clone(), owner.clone(), batch.to_owned());
        fs::blocking(move || Self::submit(&this, &owner, source, &batch, tasks)).await
    }

    async fn claim(&self, owner: &AnimaName, lease: Duration) -> Result<Option<Claim<Task>>, PostError> {
        let (this, owner) = (self.clone(), owner.clone());
        fs::blocking(move || this.claim_blocking(&owner, lease)).await
    }

    async fn settle(&self, lease: &LeaseId, how: Settled) -> Result<(), PostError> {
        let (this, lease) = (self.clone(), lease.clone());
        fs::blocking(move || this.settle_blocking(&lease, &how)).await
    }

    fn arrivals(&self, owner: &AnimaName) -> BoxStream<'static, ()> {
        self.bells.listen(self.desk(owner).waiting, self.clock.clone())
    }
}

#[cfg(test)]
mod tests;
