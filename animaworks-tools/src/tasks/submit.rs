//! `submit_tasks`: work that is carried out by itself, in the order it depends on.

use std::collections::{BTreeMap, BTreeSet};

use animaworks_core::{
    Locale, ToolContext, ToolError, ToolOutput, TypedTool,
    home::task_book::PendingTask,
    home::{activity::Activity, text::head},
    t,
    task::TaskStatus,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Asked, MAX_INSTRUCTION, TaskServices, note, origin_meta, required};
use crate::fault;

/// Tasks in one batch.
const MOST: usize = 50;

/// What `submit_tasks` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SubmitArgs {
    batch_id: String,
    #[schemars(length(min = 1, max = 50))]
    tasks: Vec<Submitted>,
    #[serde(default)]
    source: Option<Asked>,
}

/// One task of a batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct Submitted {
    task_id: String,
    title: String,
    description: String,
    #[serde(default)]
    parallel: bool,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    acceptance_criteria: Vec<String>,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(default)]
    file_paths: Vec<String>,
    #[serde(default)]
    context: Option<String>,
    #[serde(default)]
    reply_to: Option<String>,
}

#[derive(Debug)]
pub(super) struct SubmitTasks {
    pub(super) services: TaskServices,
}

impl TypedTool for SubmitTasks {
    const NAME: &'static str = "submit_tasks";
    const EFFECT: Effect = Effect::Communicates;
    type Args = SubmitArgs;

    async fn run(&self, args: SubmitArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let TaskServices { home, book, .. } = &self.services;
        let batch = required(Self::NAME, "batch_id", &args.batch_id, cx)?;
        if let Err(problem) = check(&args.tasks, cx.locale) {
            return Err(fault::failed("ValidationError", problem, t!(cx.locale, "tools.submit_tasks.nothing_written")));
        }
        let titles: Vec<(String, String)> =
            args.tasks.iter().map(|task| (task.task_id.trim().to_owned(), task.title.trim().to_owned())).collect();
        let origin = origin_meta(cx);
        let tasks = args.tasks.into_iter().map(|task| PendingTask {
            task_id: task.task_id.trim().to_owned(),
            title: task.title.trim().to_owned(),
            description: head(task.description.trim(), MAX_INSTRUCTION).to_owned(),
            parallel: task.parallel,
            depends_on: task.depends_on.iter().map(|id| id.trim().to_owned()).collect(),
            acceptance_criteria: task.acceptance_criteria,
            constraints: task.constraints,
            file_paths: task.file_paths,
            context: task.context.unwrap_or_default(),
            reply_to: task.reply_to.unwrap_or_default(),
            submitted_by: cx.anima.to_string(),
            extra: origin.clone(),
            ..PendingTask::default()
        });
        let source = args.source.unwrap_or(Asked::Anima).believed(cx);
        let submitted = book.submit(&cx.anima, source, &batch, tasks.collect()).await;
        submitted.map_err(|error| fault::post(error, cx.locale))?;
        let mut ids = Vec::new();
        for (id, title) in titles {
            if let Ok(id) = animaworks_core::TaskId::new(&id) {
                note(home, Activity::TASK_CREATED, &id, &title, TaskStatus::Pending.as_str()).await?;
                ids.push(id);
            }
        }
        let text = t!(cx.locale, "tools.submit_tasks.done", batch = batch, count = ids.len());
        let data = json!({"status": "submitted", "batch_id": batch, "task_count": ids.len(), "task_ids": ids});
        Ok(ToolOutput::text(text).with_data(data))
    }
}

/// Whether a batch can be carried out at all; the error says why not.
fn check(tasks: &[Submitted], locale: Locale) -> Result<(), String> {
    if tasks.is_empty() || tasks.len() > MOST {
        return Err(t!(locale, "tools.submit_tasks.count", max = MOST, count = tasks.len()));
    }
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for task in tasks {
        let id = task.task_id.trim();
        if animaworks_core::TaskId::new(id).is_err()
            || task.title.trim().is_empty()
            || task.description.trim().is_empty()
        {
            return Err(t!(locale, "tools.submit_tasks.incomplete", id = head(id, 60)));
        }
        if needs.insert(id, task.depends_on.iter().map(|id| id.trim()).collect()).is_some() {
            return Err(t!(locale, "tools.submit_tasks.twice", id = id));
        }
    }
    for (id, needed) in &needs {
        if let Some(unknown) = needed.iter().find(|needed| !needs.contains_key(*needed)) {
            return Err(t!(locale, "tools.submit_tasks.unknown", id = id, needed = head(unknown, 60)));
        }
    }
    // what needs nothing is carried out first; what is left over at last waits for itself
    while !needs.is_empty() {
        let ready: Vec<&str> = needs.iter().filter(|(_, needed)| needed.is_empty()).map(|(id, _)| *id).collect();
        if ready.is_empty() {
            let circle: Vec<&str> = needs.keys().copied().collect();
            return Err(t!(locale, "tools.submit_tasks.circle", ids = circle.join(", ")));
        }
        for id in ready {
            needs.remove(id);
            for needed in needs.values_mut() {
                needed.remove(id);
            }
        }
    }
    Ok(())
}
