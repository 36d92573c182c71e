//! What an Anima owes, hands in and hands over (exec spec §7.1–7.3).

mod backlog;
mod delegate;
mod show;
mod submit;
mod track;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use animaworks_core::{
    IdSource, Locale, TaskId, Tool, ToolContext, ToolError, Trust, Typed, fs,
    home::{AnimaHome, activity::Activity},
    seams::TaskBook,
    t,
    task::{Task, TaskSource, deadline},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    fault,
    messages::{MessageServices, Outbox},
};

/// What the tools of tasks stand on.
#[derive(Debug, Clone)]
pub struct TaskServices {
    /// The home of the Anima that owes.
    pub home: AnimaHome,
    /// Keeps the tasks.
    pub book: Arc<dyn TaskBook>,
    /// Names them.
    pub ids: Arc<dyn IdSource>,
}

/// The four tools of an Anima's own tasks.
pub fn task_tools(services: &TaskServices, locale: Locale) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Typed::localized(backlog::BacklogTask { services: services.clone() }, locale)),
        Arc::new(Typed::localized(backlog::UpdateTask { services: services.clone() }, locale)),
        Arc::new(Typed::localized(show::ListTasks { services: services.clone() }, locale)),
        Arc::new(Typed::localized(submit::SubmitTasks { services: services.clone() }, locale)),
    ]
}

/// The two tools for work that others do. For Animas with subordinates; both look at the organisation as it is when
/// they are called.
pub fn delegation_tools(services: &TaskServices, messages: &MessageServices, locale: Locale) -> Vec<Arc<dyn Tool>> {
    let outbox = Outbox::new(messages);
    vec![
        Arc::new(Typed::localized(delegate::DelegateTask { services: services.clone(), outbox }, locale)),
        Arc::new(Typed::localized(track::TaskTracker { services: services.clone() }, locale)),
    ]
}

/// Who asked for a task, as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Asked {
    Human,
    Anima,
}

impl Asked {
    /// Words from outside cannot make a person's task of themselves.
    fn believed(self, cx: &ToolContext) -> TaskSource {
        match self {
            Self::Human if cx.floor.trust() > Trust::Untrusted => TaskSource::Human,
            _ => TaskSource::Anima,
        }
    }
}

/// The longest instruction, in characters.
const MAX_INSTRUCTION: usize = 10_000;

/// A deadline that can be read.
fn check_deadline(tool: &'static str, text: &str, home: &AnimaHome, cx: &ToolContext) -> Result<(), ToolError> {
    match deadline(text, home.now().fixed_offset()) {
        Some(_) => Ok(()),
        None => Err(fault::invalid(tool, t!(cx.locale, "tools.task.deadline", text = text.trim()))),
    }
}

/// A text that must not be blank.
fn required(tool: &'static str, argument: &str, text: &str, cx: &ToolContext) -> Result<String, ToolError> {
    match text.trim() {
        "" => Err(fault::invalid(tool, t!(cx.locale, "tools.task.blank", argument = argument))),
        text => Ok(text.to_owned()),
    }
}

/// Where a task's words come from, for its meta.
fn origin_meta(cx: &ToolContext) -> Map<String, Value> {
    let origin = cx.floor.relayed_by(animaworks_core::Origin::ANIMA);
    let mut meta = Map::new();
    meta.insert("origin".to_owned(), json!(origin.source));
    meta.insert("origin_chain".to_owned(), json!(origin.chain));
    meta
}

/// Writes into the activity log what happened to a task.
async fn note(
    home: &AnimaHome,
    kind: &'static str,
    task: &TaskId,
    summary: &str,
    status: &str,
) -> Result<(), ToolError> {
    let line = Activity::new(kind).summary(summary).meta("task_id", task.as_str()).meta("status", status);
    let home = home.clone();
    fs::blocking(move || home.log(line).map(|_| ())).await.map_err(fault::file)
}

/// The first characters of an id, as lists show it.
fn short(id: &TaskId) -> &str {
    animaworks_core::home::text::head(id.as_str(), 8)
}

/// Finds a task by its id or by a beginning that only it has.
fn pick<'a>(tasks: &'a [Task], wanted: &str, cx: &ToolContext) -> Result<&'a Task, ToolError> {
    let wanted = wanted.trim();
    if let Some(task) = tasks.iter().find(|task| task.task_id.as_str() == wanted) {
        return Ok(task);
    }
    let alike: Vec<&Task> =
        tasks.iter().filter(|task| !wanted.is_empty() && task.task_id.as_str().starts_with(wanted)).collect();
    match alike.as_slice() {
        [task] => Ok(task),
        [] => Err(fault::failed(
            "FileNotFound",
            t!(cx.locale, "tools.task.unknown", id = animaworks_core::home::text::head(wanted, 60)),
            t!(cx.locale, "tools.task.unknown_instead"),
        )),
        several => {
            let ids: Vec<_> = several.iter().map(|task| task.task_id.as_str()).collect();
            Err(fault::failed(
                "ValidationError",
                t!(cx.locale, "tools.task.ambiguous", id = wanted),
                t!(cx.locale, "tools.task.ambiguous_instead", ids = ids.join(", ")),
            ))
        }
    }
}
