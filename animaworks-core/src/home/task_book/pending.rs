//! Tasks that are ready to be carried out: one JSON file each, and a manifest for those that belong together.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use petgraph::{algo::toposort, graph::DiGraph};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::queue::{TaskQueue, refused};
use crate::{
    clock::timestamp,
    error::ResultExt,
    fs::{self, FileError, Privacy},
    home::{
        claims::Desk,
        list,
        text::{head, lenient, lenient_list, stringify},
    },
    ids::TaskId,
    seams::{PostError, TaskEvent},
    task::{Task, TaskSource, TaskStatus, deadline},
};

/// What a task carries beside its own fields, and its entry of the queue carries too.
const CARRIED: &[&str] = &["origin", "origin_chain", "delegated_by", "parent_task_id"];

/// One file of `state/pending/`. An Anima may write such a file by hand, so that almost everything may be missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PendingTask {
    /// `llm`, or `command`.
    #[serde(default = "llm", deserialize_with = "lenient")]
    pub task_type: String,
    /// Its id; the name of the file when missing.
    #[serde(default, deserialize_with = "lenient")]
    pub task_id: String,
    /// What it was handed in with.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub batch_id: String,
    /// What it is called; the first line of the description when missing.
    #[serde(default, deserialize_with = "lenient")]
    pub title: String,
    /// What to do.
    #[serde(default, deserialize_with = "lenient")]
    pub description: String,
    /// Whether it may run beside others.
    #[serde(default, deserialize_with = "lenient_bool")]
    pub parallel: bool,
    /// What has to be done before.
    #[serde(default, deserialize_with = "lenient_list")]
    pub depends_on: Vec<String>,
    /// What to know.
    #[serde(default, deserialize_with = "lenient")]
    pub context: String,
    /// When it is done.
    #[serde(default, deserialize_with = "lenient_list")]
    pub acceptance_criteria: Vec<String>,
    /// What to mind.
    #[serde(default, deserialize_with = "lenient_list")]
    pub constraints: Vec<String>,
    /// Files it is about.
    #[serde(default, deserialize_with = "lenient_list")]
    pub file_paths: Vec<String>,
    /// Who handed it in.
    #[serde(default, deserialize_with = "lenient")]
    pub submitted_by: String,
    /// When.
    #[serde(default, deserialize_with = "lenient")]
    pub submitted_at: String,
    /// Who wants to know.
    #[serde(default, deserialize_with = "name")]
    pub reply_to: String,
    /// `delegation`, or nothing.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When it is due, as [`deadline`] reads it.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub deadline: String,
    /// The Animas it passed through.
    #[serde(default, deserialize_with = "lenient_list", skip_serializing_if = "Vec::is_empty")]
    pub relay_chain: Vec<String>,
    /// Where to work.
    #[serde(default, deserialize_with = "lenient")]
    pub working_directory: String,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn llm() -> String {
    "llm".to_owned()
}

fn lenient_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Bool(yes) => yes,
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    })
}

/// A name, or an object with one.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Object(mut map) => map.shift_remove("name").map(stringify).unwrap_or_default(),
        other => stringify(other),
    })
}

impl PendingTask {
    /// What a claimed task carries in its meta.
    pub fn of(task: &Task) -> Option<Self> {
        serde_json::from_value(task.meta.get("task_desc")?.clone()).log_err("read what a task carries")
    }

    /// The entry of the queue for it.
    pub(super) fn entry(&self, queue: &TaskQueue, source: TaskSource) -> Result<Task, PostError> {
        let id = TaskId::new(&self.task_id).map_err(|error| PostError::Task {
            task: self.task_id.clone(),
            code: "task_invalid",
            problem: error.to_string(),
        })?;
        let now = queue.home.now().fixed_offset();
        let mut meta = Map::new();
        meta.insert("executor".to_owned(), json!("taskexec"));
        meta.insert("batch_id".to_owned(), json!(self.batch_id));
        meta.insert("depends_on".to_owned(), json!(self.depends_on));
        meta.insert("parallel".to_owned(), json!(self.parallel));
        meta.insert("task_desc".to_owned(), json!(self));
        for key in CARRIED {
            if let Some(value) = self.extra.get(*key) {
                meta.insert((*key).to_owned(), value.clone());
            }
        }
        let due = match self.deadline.trim() {
            "" => None,
            text => deadline(text, now).map(|at| timestamp(&at)),
        };
        Ok(Task {
            task_id: id,
            ts: now,
            source,
            original_instruction: self.description.clone(),
            assignee: queue.home.name().to_string(),
            status: TaskStatus::Pending,
            summary: self.title.clone(),
            deadline: due,
            relay_chain: self.relay_chain.clone(),
            updated_at: now,
            meta,
            extra: Map::new(),
        })
    }
}

/// The name of a task's file.
pub(super) fn plain(id: &TaskId) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    id.as_str().chars().map(plain).collect()
}

/// Reads a file; the error says in English what is wrong with it.
pub(super) fn read(path: &Path) -> Result<Result<PendingTask, String>, FileError> {
    let mut task: PendingTask = match fs::read_json(path) {
        Ok(task) => task,
        Err(error @ FileError::Syntax { .. }) => return Ok(Err(error.to_string())),
        Err(error) => return Err(error),
    };
    if task.task_id.is_empty() {
        task.task_id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    if task.title.is_empty() {
        let first = task.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        head(first, 80).clone_into(&mut task.title);
    }
    match TaskId::new(&task.task_id) {
        Ok(_) if task.title.is_empty() => Ok(Err("neither a title nor a description".to_owned())),
        Ok(_) => Ok(Ok(task)),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// What a batch is made of, on disk before any of it is.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    batch_id: String,
    source: TaskSource,
    tasks: Vec<PendingTask>,
}

/// Hands in a batch; the caller holds the lock of the queue.
pub(super) fn submit(
    queue: &TaskQueue,
    desk: &Desk,
    source: TaskSource,
    batch: &str,
    mut tasks: Vec<PendingTask>,
) -> Result<(), PostError> {
    validate(queue, batch, &tasks)?;
    let now = queue.home.stamp_seconds();
    for task in &mut tasks {
        batch.clone_into(&mut task.batch_id);
        if task.task_type.is_empty() {
            task.task_type = llm();
        }
        if task.submitted_at.is_empty() {
            task.submitted_at.clone_from(&now);
        }
    }
    let path = desk.waiting.join(".batches").join(format!("{batch}.json"));
    fs::write_json(&path, &Manifest { batch_id: batch.to_owned(), source, tasks }, Privacy::Normal)?;
    unpack(queue, desk)
}

/// Writes out every batch that is not yet, entry by entry and file by file; what is there already stays.
pub(super) fn unpack(queue: &TaskQueue, desk: &Desk) -> Result<(), PostError> {
    for path in list(&desk.waiting.join(".batches"))? {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let manifest: Manifest = match fs::read_json(&path) {
            Ok(manifest) => manifest,
            Err(error @ FileError::Syntax { .. }) => {
                tracing::error!(%error, "set a broken batch aside");
                fs::move_file(&path, &path.with_extension("broken"))?;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for task in &manifest.tasks {
            let entry = task.entry(queue, manifest.source)?;
            let id = entry.task_id.clone();
            let name = format!("{}.json", plain(&id));
            let there =
                [&desk.waiting, &desk.processing(), &desk.failed()].iter().any(|place| place.join(&name).exists());
            match queue.find(&id)? {
                Some(known) if known.status.is_terminal() => continue,
                Some(_) => {}
                None => queue.append_held(TaskEvent::Create(Box::new(entry)))?,
            }
            if !there {
                fs::write_json(&desk.waiting.join(name), task, Privacy::Normal)?;
            }
        }
        fs::remove_if_exists(&path)?;
    }
    Ok(())
}

fn validate(queue: &TaskQueue, batch: &str, tasks: &[PendingTask]) -> Result<(), PostError> {
    let wrong = |task: &str, problem: String| PostError::Task { task: task.to_owned(), code: "task_invalid", problem };
    let plain_batch = !batch.is_empty() && batch.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if !plain_batch || batch.chars().count() > 100 {
        return Err(wrong(batch, "a batch needs an id of letters, digits, _ and -".to_owned()));
    }
    if tasks.is_empty() {
        return Err(wrong(batch, "a batch needs a task".to_owned()));
    }
    let mut names = BTreeSet::new();
    for task in tasks {
        let id = TaskId::new(&task.task_id).map_err(|error| wrong(&task.task_id, error.to_string()))?;
        if task.title.trim().is_empty() || task.description.trim().is_empty() {
            return Err(wrong(&task.task_id, "a task needs a title and a description".to_owned()));
        }
        if !task.deadline.trim().is_empty() && deadline(&task.deadline, queue.home.now().fixed_offset()).is_none() {
            let problem = format!("{}: a deadline is 30m, 2h, 1d, 1w or an ISO date or time", task.deadline);
            return Err(refused(&id, "task_deadline", problem));
        }
        if !names.insert(plain(&id)) {
            return Err(wrong(&task.task_id, "the same id twice".to_owned()));
        }
        if queue.find(&id)?.is_some() {
            return Err(refused(&id, "task_exists", "there is another task of this id".to_owned()));
        }
    }
    let mut graph: DiGraph<&str, ()> = DiGraph::new();
    let nodes: BTreeMap<&str, _> =
        tasks.iter().map(|task| (task.task_id.as_str(), graph.add_node(task.task_id.as_str()))).collect();
    for task in tasks {
        for needed in &task.depends_on {
            match (nodes.get(needed.as_str()), nodes.get(task.task_id.as_str())) {
                (Some(needed), Some(node)) => {
                    graph.add_edge(*needed, *node, ());
                }
                _ => return Err(wrong(&task.task_id, format!("depends on {needed}, which is not in the batch"))),
            }
        }
    }
    match toposort(&graph, None) {
        Ok(_) => Ok(()),
        Err(cycle) => {
            let task = graph.node_weight(cycle.node_id()).copied().unwrap_or_default();
            Err(wrong(task, "depends on itself, in a circle".to_owned()))
        }
    }
}
