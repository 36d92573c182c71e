//! Which task is next, and what came of it.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{
    FileTaskBook,
    pending::{self, PendingTask},
    queue::TaskQueue,
};
use crate::{
    home::claims::{Desk, Note, file_name, later},
    ids::{AnimaName, LeaseId, TaskId},
    seams::{Claim, PostError, Settled, TaskEvent, TaskUpdate},
    task::{Task, TaskSource, TaskStatus},
};

/// A task that nobody began within this long is not begun any more.
const TTL: chrono::Duration = chrono::Duration::hours(24);
/// So many crashes end a task.
const MAX_CRASHES: u32 = 2;

/// A file that waits.
struct Waiting {
    file: String,
    task: PendingTask,
    note: Note,
    at: Option<DateTime<Utc>>,
}

/// Whether what a task needs is there.
enum Needs {
    Met,
    Open,
    Failed(String),
}

impl FileTaskBook {
    pub(super) fn claim_blocking(&self, owner: &AnimaName, lease: Duration) -> Result<Option<Claim<Task>>, PostError> {
        let (queue, desk) = (self.queue(owner), self.desk(owner));
        let _held = queue.lock()?;
        pending::unpack(&queue, &desk)?;
        let now = self.clock.now();
        let serial_runs = look_at_taken(&queue, &desk, now)?;
        let mut waiting = waiting(&queue, &desk)?;
        drop_stale(&queue, &desk, &mut waiting, now)?;
        let ready = ready(&queue, &desk, waiting)?;
        let sources: BTreeMap<String, TaskSource> =
            queue.list()?.into_iter().map(|task| (task.task_id.to_string(), task.source)).collect();
        let next = ready
            .into_iter()
            .filter(|waiting| waiting.note.until <= now && (waiting.task.parallel || !serial_runs))
            .min_by_key(|waiting| {
                // people come first
                let human = sources.get(&waiting.task.task_id) == Some(&TaskSource::Human);
                (!human, waiting.at, waiting.file.clone())
            });
        let Some(next) = next else { return Ok(None) };
        self.take(owner, &queue, &desk, next, later(now, lease)).map(Some)
    }

    fn take(
        &self,
        owner: &AnimaName,
        queue: &TaskQueue,
        desk: &Desk,
        next: Waiting,
        until: DateTime<Utc>,
    ) -> Result<Claim<Task>, PostError> {
        let entry = next.task.entry(queue, TaskSource::Anima)?;
        let id = entry.task_id.clone();
        if queue.find(&id)?.is_none() {
            queue.append_held(TaskEvent::Create(Box::new(entry)))?;
        }
        let lease = self.ids.lease();
        let note =
            Note { lease: lease.to_string(), until, attempts: next.note.attempts + 1, crashes: next.note.crashes };
        desk.take(&next.file, &note)?;
        set_status(queue, &id, TaskStatus::InProgress, None)?;
        let mut item =
            queue.find(&id)?.ok_or_else(|| super::queue::refused(&id, "task_unknown", "it went away".to_owned()))?;
        item.meta.insert("task_desc".to_owned(), json!(next.task));
        self.leases.remember(lease.clone(), owner.clone(), next.file);
        Ok(Claim { lease, item, attempt: note.attempts })
    }

    pub(super) fn settle_blocking(&self, lease: &LeaseId, how: &Settled) -> Result<(), PostError> {
        let unknown = || PostError::UnknownLease { lease: lease.clone() };
        let (owner, file) = self.leases.forget(lease).ok_or_else(unknown)?;
        let (queue, desk) = (self.queue(&owner), self.desk(&owner));
        let settled = (|| {
            let _held = queue.lock()?;
            let note = desk.note(&file)?.filter(|note| note.lease == lease.as_str()).ok_or_else(unknown)?;
            let task = pending::read(&desk.processing().join(&file))?;
            let id = task.ok().and_then(|task| task.task_id.parse::<TaskId>().ok());
            let close = |status, reason| id.as_ref().map_or(Ok(()), |id| set_status(&queue, id, status, reason));
            match how {
                Settled::Done => {
                    close(TaskStatus::Done, None)?;
                    desk.discard(&file)?;
                }
                Settled::Retry { after } => {
                    close(TaskStatus::Pending, None)?;
                    let until = later(self.clock.now(), *after);
                    desk.put_back(&file, &Note { lease: String::new(), until, ..note })?;
                    self.bells.ring(desk.waiting.clone());
                }
                Settled::Failed { reason } => {
                    close(TaskStatus::Failed, Some(reason))?;
                    desk.retire(&file, &desk.failed(), Some(reason))?;
                }
            }
            Ok(())
        })();
        if matches!(settled, Err(PostError::File(_))) {
            // settling it again must stay possible
            self.leases.remember(lease.clone(), owner, file);
        }
        settled
    }
}

/// Gives crashed tasks their second try, or ends them; whether a task runs that others wait for.
fn look_at_taken(queue: &TaskQueue, desk: &Desk, now: DateTime<Utc>) -> Result<bool, PostError> {
    let mut serial_runs = false;
    for path in desk.taken_files()? {
        let file = file_name(&path);
        let note = desk.note(&file)?.unwrap_or_default();
        let task = match pending::read(&path)? {
            Ok(task) => task,
            Err(problem) => {
                desk.retire(&file, &desk.failed(), Some(&problem))?;
                continue;
            }
        };
        if note.until > now {
            serial_runs |= !task.parallel;
            continue;
        }
        let note = Note { lease: String::new(), crashes: note.crashes + 1, until: DateTime::UNIX_EPOCH, ..note };
        let Ok(id) = TaskId::new(&task.task_id) else { continue };
        let finished = queue.find(&id)?.is_some_and(|entry| entry.status.is_terminal());
        if finished {
            // its end was written down, only the file was left over
            desk.discard(&file)?;
        } else if note.crashes >= MAX_CRASHES {
            desk.retire(&file, &desk.failed(), Some("interrupted"))?;
            set_status(queue, &id, TaskStatus::Failed, Some("interrupted"))?;
        } else {
            desk.put_back(&file, &note)?;
            set_status(queue, &id, TaskStatus::Pending, None)?;
        }
    }
    Ok(serial_runs)
}

/// The files that wait, oldest first; what cannot be read is set aside.
fn waiting(queue: &TaskQueue, desk: &Desk) -> Result<Vec<Waiting>, PostError> {
    let mut found = Vec::new();
    for path in desk.waiting_files()? {
        let file = file_name(&path);
        match pending::read(&path)? {
            // commands are another runner's business
            Ok(task) if task.task_type == "command" => {}
            Ok(task) => {
                let at = queue.home.parse_time(&task.submitted_at).map(|at| at.with_timezone(&Utc));
                let note = desk.note(&file)?.unwrap_or_default();
                found.push(Waiting { file, task, note, at });
            }
            Err(problem) => desk.retire(&file, &desk.failed(), Some(&problem))?,
        }
    }
    found.sort_by(|a, b| (a.at, &a.file).cmp(&(b.at, &b.file)));
    Ok(found)
}

/// Ends what waited too long, and what was cancelled meanwhile.
fn drop_stale(queue: &TaskQueue, desk: &Desk, waiting: &mut Vec<Waiting>, now: DateTime<Utc>) -> Result<(), PostError> {
    let statuses = queue.replay()?.statuses();
    let mut kept = Vec::new();
    for one in waiting.drain(..) {
        let ended = statuses.get(&one.task.task_id).is_some_and(|status| status.is_terminal());
        let expired = one.note.attempts == 0 && one.at.is_some_and(|at| now - at > TTL);
        if ended {
            desk.retire(&one.file, &desk.failed(), Some("ended before it began"))?;
        } else if expired {
            desk.retire(&one.file, &desk.failed(), Some("expired"))?;
            if let Ok(id) = TaskId::new(&one.task.task_id) {
                set_status(queue, &id, TaskStatus::Cancelled, Some("expired"))?;
            }
        } else {
            kept.push(one);
        }
    }
    *waiting = kept;
    Ok(())
}

/// What has all it needs. Whatever needs something that failed fails too, and so on.
fn ready(queue: &TaskQueue, desk: &Desk, mut waiting: Vec<Waiting>) -> Result<Vec<Waiting>, PostError> {
    let mut statuses = queue.replay()?.statuses();
    loop {
        let mut open = Vec::new();
        let mut met = Vec::new();
        let mut failed_one = false;
        for one in waiting {
            match needs(queue, desk, &mut statuses, &one.task)? {
                Needs::Met => met.push(one),
                Needs::Open => open.push(one),
                Needs::Failed(needed) => {
                    let reason = format!("dependency_failed:{needed}");
                    if let Ok(id) = TaskId::new(&one.task.task_id) {
                        set_status(queue, &id, TaskStatus::Failed, Some(&reason))?;
                    }
                    desk.retire(&one.file, &desk.failed(), Some(&reason))?;
                    statuses.insert(one.task.task_id, TaskStatus::Failed);
                    failed_one = true;
                }
            }
        }
        if !failed_one {
            return Ok(met);
        }
        met.append(&mut open);
        waiting = met;
    }
}

fn needs(
    queue: &TaskQueue,
    desk: &Desk,
    statuses: &mut BTreeMap<String, TaskStatus>,
    task: &PendingTask,
) -> Result<Needs, PostError> {
    let mut open = false;
    for needed in &task.depends_on {
        let Ok(id) = TaskId::new(needed) else { return Ok(Needs::Failed(needed.clone())) };
        let status = match statuses.get(needed) {
            Some(status) => Some(*status),
            // a finished one may be in the archive
            None => queue.find(&id)?.map(|task| task.status),
        };
        match status {
            Some(TaskStatus::Done) => {}
            Some(status) if status.is_terminal() => return Ok(Needs::Failed(needed.clone())),
            Some(_) => open = true,
            None => {
                let name = format!("{}.json", pending::plain(&id));
                if !desk.waiting.join(&name).exists() && !desk.processing().join(&name).exists() {
                    return Ok(Needs::Failed(needed.clone()));
                }
                open = true;
            }
        }
        if let Some(status) = status {
            statuses.insert(needed.clone(), status);
        }
    }
    Ok(if open { Needs::Open } else { Needs::Met })
}

/// Notes a status in the queue, unless the task has ended already or is not in it.
fn set_status(queue: &TaskQueue, id: &TaskId, status: TaskStatus, reason: Option<&str>) -> Result<(), PostError> {
    let Some(entry) = queue.find(id)? else { return Ok(()) };
    if entry.status.is_terminal() || entry.status == status {
        return Ok(());
    }
    let meta = reason.map(|reason| {
        let mut meta = entry.meta;
        meta.insert("failure".to_owned(), Value::String(reason.to_owned()));
        meta
    });
    let update = TaskUpdate { task_id: id.clone(), status: Some(status), summary: None, meta, reopen: false };
    queue.append_held(TaskEvent::Update(update))
}
