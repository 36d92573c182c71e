//! The queue: events that only grow, and what they add up to.

use std::{collections::BTreeMap, path::PathBuf};

use chrono::{DateTime, FixedOffset, SubsecRound};
use serde_json::{Map, Value, json};

use crate::{
    clock::timestamp,
    error::ResultExt,
    fs::{self, FileError, Lock, Privacy},
    home::{
        AnimaHome,
        text::{head, stringify},
    },
    ids::TaskId,
    seams::{PostError, TaskEvent, TaskUpdate},
    task::{Task, TaskStatus, deadline},
};

/// The longest instruction, in characters.
const MAX_INSTRUCTION: usize = 10_000;
/// A larger file is compacted by itself.
const MAX_BYTES: u64 = 1024 * 1024;
/// So many finished tasks, when they are the larger part, too.
const MAX_FINISHED: usize = 100;

/// The queue of one Anima.
#[derive(Debug, Clone)]
pub struct TaskQueue {
    pub(super) home: AnimaHome,
}

/// What the events of a queue add up to.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    order: Vec<String>,
    tasks: BTreeMap<String, Map<String, Value>>,
    /// Lines that are no events of ours; kept when the queue is compacted.
    strange: Vec<String>,
}

impl TaskQueue {
    /// The queue in a home.
    pub fn new(home: AnimaHome) -> Self {
        Self { home }
    }

    /// All tasks that are not archived, in the order they were created.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn list(&self) -> Result<Vec<Task>, PostError> {
        let ledger = self.replay()?;
        Ok(ledger.order.iter().filter_map(|id| self.task(ledger.tasks.get(id)?)).collect())
    }

    /// One task, archived or not.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn find(&self, id: &TaskId) -> Result<Option<Task>, PostError> {
        if let Some(found) = self.replay()?.tasks.get(id.as_str()) {
            return Ok(self.task(found));
        }
        let (lines, _) = fs::read_lines(&self.archive())?;
        let last = lines.into_iter().rev().find(|line| line.value["task_id"].as_str() == Some(id.as_str()));
        Ok(last.and_then(|line| self.task(line.value.as_object()?)))
    }

    /// Records an event, when it is allowed.
    ///
    /// # Errors
    ///
    /// [`PostError::Task`] when it is not, [`PostError::File`].
    pub fn append(&self, event: TaskEvent) -> Result<(), PostError> {
        let _held = self.lock()?;
        self.append_held(event)
    }

    /// Adds a task unless an active one is the same already, and returns that one.
    ///
    /// # Errors
    ///
    /// As [`TaskQueue::append`].
    pub fn add_if_absent(&self, task: Task, same: impl Fn(&Task) -> bool) -> Result<Option<Task>, PostError> {
        let _held = self.lock()?;
        let existing = self.list()?.into_iter().find(|task| !task.status.is_terminal() && same(task));
        if existing.is_none() {
            self.append_held(TaskEvent::Create(Box::new(task)))?;
        }
        Ok(existing)
    }

    /// Moves finished tasks to the archive; how many. A crash in between leaves them in both, and the next run
    /// archives nothing twice.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn compact(&self) -> Result<usize, PostError> {
        let _held = self.lock()?;
        self.compact_held()
    }

    pub(super) fn lock(&self) -> Result<Lock, PostError> {
        let path = self.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Lock::wait(&path.with_file_name(format!("{name}.lock")))?)
    }

    /// [`TaskQueue::append`] for whoever holds the lock.
    pub(super) fn append_held(&self, event: TaskEvent) -> Result<(), PostError> {
        let ledger = self.replay()?;
        let line = match event {
            TaskEvent::Create(task) => match self.creation(&ledger, *task)? {
                Some(line) => line,
                None => return Ok(()),
            },
            TaskEvent::Update(update) => self.update(&ledger, update)?,
        };
        fs::append_line(&self.path(), &line.to_string())?;
        let size = fs_err::metadata(self.path()).map_or(0, |meta| meta.len());
        let finished = ledger.tasks.values().filter(|task| is_finished(task)).count();
        if finished > 0 && (size > MAX_BYTES || (finished > MAX_FINISHED && finished * 2 > ledger.tasks.len())) {
            self.compact_held().log_err("compact a task queue");
        }
        Ok(())
    }

    fn creation(&self, ledger: &Ledger, mut task: Task) -> Result<Option<Value>, PostError> {
        let delegated = task.status == TaskStatus::Delegated && task.meta.contains_key("delegated_to");
        if !delegated && !matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress) {
            let problem = format!("cannot begin as {}", task.status.as_str());
            return Err(refused(&task.task_id, "task_transition", problem));
        }
        task.original_instruction = head(&task.original_instruction, MAX_INSTRUCTION).to_owned();
        task.ts = task.ts.trunc_subsecs(6);
        task.updated_at = task.updated_at.trunc_subsecs(6);
        if let Some(text) = task.deadline.take().filter(|text| !text.trim().is_empty()) {
            let now = self.home.now().fixed_offset();
            let Some(at) = deadline(&text, now) else {
                let problem = format!("{text}: a deadline is 30m, 2h, 1d, 1w or an ISO date or time");
                return Err(refused(&task.task_id, "task_deadline", problem));
            };
            let relative = text.trim().ends_with(['m', 'h', 'd', 'w']);
            task.deadline = Some(if relative { timestamp(&at) } else { text });
        }
        if let Some(existing) = ledger.tasks.get(task.task_id.as_str()) {
            let same = existing.get("original_instruction").and_then(Value::as_str)
                == Some(task.original_instruction.as_str());
            // the same task handed in again is one task
            if same {
                return Ok(None);
            }
            return Err(refused(&task.task_id, "task_exists", "there is another task of this id".to_owned()));
        }
        let line = serde_json::to_value(&task)
            .map_err(|error| FileError::io("encode", &self.path(), std::io::Error::other(error)))?;
        Ok(Some(line))
    }

    fn update(&self, ledger: &Ledger, update: TaskUpdate) -> Result<Value, PostError> {
        let id = &update.task_id;
        let Some(task) = ledger.tasks.get(id.as_str()) else {
            return Err(refused(id, "task_unknown", "there is no such task".to_owned()));
        };
        let old = status_of(task);
        if let (Some(old), Some(new)) = (old, update.status)
            && old.is_terminal()
            && new != old
            && !update.reopen
        {
            let problem = format!("{} does not become {} unless it is reopened", old.as_str(), new.as_str());
            return Err(refused(id, "task_transition", problem));
        }
        let mut line = Map::new();
        line.insert("task_id".to_owned(), json!(id));
        if let Some(status) = update.status {
            line.insert("status".to_owned(), json!(status));
        }
        if let Some(summary) = update.summary {
            line.insert("summary".to_owned(), Value::String(summary));
        }
        if let Some(meta) = update.meta {
            line.insert("meta".to_owned(), Value::Object(meta));
        }
        line.insert("updated_at".to_owned(), Value::String(self.home.stamp()));
        line.insert("_event".to_owned(), json!("update"));
        Ok(Value::Object(line))
    }

    fn compact_held(&self) -> Result<usize, PostError> {
        let ledger = self.replay()?;
        let finished: Vec<_> =
            ledger.order.iter().filter_map(|id| ledger.tasks.get(id)).filter(|task| is_finished(task)).collect();
        if finished.is_empty() {
            return Ok(0);
        }
        let (archived, _) = fs::read_lines(&self.archive())?;
        let known: std::collections::BTreeSet<_> = archived
            .iter()
            .map(|line| (line.value["task_id"].as_str().unwrap_or_default(), line.value["status"].as_str()))
            .collect();
        let fresh: Vec<_> = finished
            .iter()
            .filter(|task| {
                let id = task.get("task_id").and_then(Value::as_str).unwrap_or_default();
                !known.contains(&(id, task.get("status").and_then(Value::as_str)))
            })
            .map(|task| Value::Object((*task).clone()).to_string())
            .collect();
        fs::append_lines(&self.archive(), fresh.iter().map(String::as_str))?;
        let mut kept = String::new();
        for line in &ledger.strange {
            kept.push_str(line);
            kept.push('\n');
        }
        for task in ledger.order.iter().filter_map(|id| ledger.tasks.get(id)).filter(|task| !is_finished(task)) {
            kept.push_str(&Value::Object(task.clone()).to_string());
            kept.push('\n');
        }
        fs::write_atomic(&self.path(), kept.as_bytes(), Privacy::Normal)?;
        Ok(finished.len())
    }

    pub(super) fn replay(&self) -> Result<Ledger, PostError> {
        let mut ledger = Ledger::default();
        for line in fs::read_text_if_exists(&self.path())?.unwrap_or_default().lines() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let Ok(Value::Object(event)) = serde_json::from_str::<Value>(line) else {
                ledger.strange.push(line.to_owned());
                continue;
            };
            ledger.apply(event, line);
        }
        Ok(ledger)
    }

    /// A task out of its fields, whoever wrote them; `None` when it has no status we know.
    fn task(&self, fields: &Map<String, Value>) -> Option<Task> {
        let mut fields = fields.clone();
        for key in ["ts", "updated_at"] {
            let at = fields.get(key).and_then(Value::as_str).and_then(|text| self.home.parse_time(text));
            let at: DateTime<FixedOffset> = at.unwrap_or_else(|| DateTime::UNIX_EPOCH.fixed_offset());
            fields.insert(key.to_owned(), Value::String(timestamp(&at)));
        }
        for key in ["original_instruction", "assignee", "summary"] {
            if let Some(value) = fields.get_mut(key).filter(|value| !value.is_string()) {
                *value = Value::String(stringify(value.take()));
            }
        }
        if !matches!(fields.get("source").and_then(Value::as_str), Some("human" | "anima")) {
            fields.insert("source".to_owned(), json!("anima"));
        }
        for (key, empty) in [("meta", json!({})), ("relay_chain", json!([])), ("deadline", Value::Null)] {
            let right = match (key, fields.get(key)) {
                ("meta", Some(value)) => value.is_object(),
                ("relay_chain", Some(value)) => {
                    value.as_array().is_some_and(|links| links.iter().all(Value::is_string))
                }
                (_, Some(value)) => value.is_string() || value.is_null(),
                (_, None) => true,
            };
            if !right {
                fields.insert(key.to_owned(), empty);
            }
        }
        serde_json::from_value(Value::Object(fields)).log_err("read a task")
    }

    fn path(&self) -> PathBuf {
        self.home.dir().task_queue()
    }

    fn archive(&self) -> PathBuf {
        self.home.dir().state("task_queue_archive.jsonl")
    }
}

impl Ledger {
    fn apply(&mut self, event: Map<String, Value>, line: &str) {
        let Some(id) = event.get("task_id").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
            self.strange.push(line.to_owned());
            return;
        };
        if event.get("_event").and_then(Value::as_str) == Some("update") {
            if let Some(task) = self.tasks.get_mut(id) {
                for (key, value) in event {
                    if key != "_event" && key != "task_id" {
                        task.insert(key, value);
                    }
                }
            }
            return;
        }
        if status_of(&event).is_none() {
            self.strange.push(line.to_owned());
            return;
        }
        let id = id.to_owned();
        if self.tasks.insert(id.clone(), event).is_none() {
            self.order.push(id);
        }
    }

    /// The status of every task in the queue.
    pub(super) fn statuses(&self) -> BTreeMap<String, TaskStatus> {
        self.tasks.iter().filter_map(|(id, task)| Some((id.clone(), status_of(task)?))).collect()
    }
}

pub(super) fn refused(id: &TaskId, code: &'static str, problem: String) -> PostError {
    PostError::Task { task: id.to_string(), code, problem }
}

fn status_of(task: &Map<String, Value>) -> Option<TaskStatus> {
    serde_json::from_value(task.get("status")?.clone()).ignore("an unknown status is no status")
}

fn is_finished(task: &Map<String, Value>) -> bool {
    status_of(task).is_some_and(TaskStatus::is_terminal)
}
