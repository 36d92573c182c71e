//! The task book.

use std::{fmt::Debug, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};

use super::post::{Claim, PostError, Settled};
use crate::{
    home::task_book::PendingTask,
    ids::{AnimaName, LeaseId, TaskId},
    task::{Task, TaskSource, TaskStatus},
};

/// Keeps obligations: append-only, replayable, never losing one.
#[async_trait]
pub trait TaskBook: Debug + Send + Sync {
    /// Records an event; the transition is checked first.
    ///
    /// # Errors
    ///
    /// [`PostError::Task`] when the transition is not allowed, or when it cannot be made durable.
    ///
    /// # Cancel safety
    ///
    /// Resumable.
    async fn append(&self, owner: &AnimaName, event: TaskEvent) -> Result<(), PostError>;

    /// All tasks of an Anima that are not archived, in the order they were created.
    ///
    /// # Errors
    ///
    /// When the book cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn list(&self, owner: &AnimaName) -> Result<Vec<Task>, PostError>;

    /// One task, archived or not.
    ///
    /// # Errors
    ///
    /// When the book cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn find(&self, owner: &AnimaName, task: &TaskId) -> Result<Option<Task>, PostError>;

    /// Hands in tasks that are to be carried out, all of them or none, whatever happens in between.
    ///
    /// # Errors
    ///
    /// [`PostError::Task`] when ids are missing or double, or dependencies unknown or circular.
    ///
    /// # Cancel safety
    ///
    /// Resumable: handed in again under the same ids they are refused, not doubled.
    async fn submit(
        &self,
        owner: &AnimaName,
        source: TaskSource,
        batch: &str,
        tasks: Vec<PendingTask>,
    ) -> Result<(), PostError>;

    /// Takes the next task that is ready to be carried out; it comes back after `lease` unless settled.
    ///
    /// # Errors
    ///
    /// When the book cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was claimed comes back.
    async fn claim(&self, owner: &AnimaName, lease: Duration) -> Result<Option<Claim<Task>>, PostError>;

    /// Says what came of a claimed task.
    ///
    /// # Errors
    ///
    /// [`PostError::UnknownLease`] when it ran out before.
    ///
    /// # Cancel safety
    ///
    /// Resumable.
    async fn settle(&self, lease: &LeaseId, how: Settled) -> Result<(), PostError>;

    /// Rings when there may be something to do.
    fn arrivals(&self, owner: &AnimaName) -> BoxStream<'static, ()>;
}

/// Something that happens to a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEvent {
    /// It comes into being.
    Create(Box<Task>),
    /// It changes.
    Update(TaskUpdate),
}

/// A change of a task; what is `None` stays.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskUpdate {
    /// Which.
    pub task_id: TaskId,
    /// Its new status.
    pub status: Option<TaskStatus>,
    /// Its new summary.
    pub summary: Option<String>,
    /// Its new meta, as a whole.
    pub meta: Option<Map<String, Value>>,
    /// Allows leaving a terminal status.
    pub reopen: bool,
}
