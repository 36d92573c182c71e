//! `task_tracker`: how the work is doing that others do for us.

use animaworks_core::{
    AnimaName, Origin, TaskId, ToolContext, ToolError, ToolOutput, TypedTool,
    home::text::{head, one_line},
    t,
    task::{Task, TaskStatus, deadline},
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TaskServices, short};
use crate::fault;

/// Which handed-over tasks to show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Which {
    All,
    #[default]
    Active,
    Completed,
}

/// What `task_tracker` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TrackArgs {
    #[serde(default)]
    status: Which,
}

#[derive(Debug)]
pub(super) struct TaskTracker {
    pub(super) services: TaskServices,
}

impl TypedTool for TaskTracker {
    const NAME: &'static str = "task_tracker";
    const EFFECT: Effect = Effect::Reads;
    type Args = TrackArgs;

    async fn run(&self, args: TrackArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let listed = self.services.book.list(&cx.anima).await;
        let tasks = listed.map_err(|error| fault::post(error, cx.locale))?;
        let now = self.services.home.now().fixed_offset();
        let (mut lines, mut rows, mut origin) = (Vec::new(), Vec::new(), Origin::anima());
        for task in tasks.iter().filter(|task| task.meta.contains_key("delegated_to")) {
            let child = self.child(task, cx).await?;
            let status = child.as_ref().map_or(task.status, |child| child.status);
            let is_over = status.is_terminal();
            if (args.status == Which::Active && is_over) || (args.status == Which::Completed && !is_over) {
                continue;
            }
            let who = word(task, "delegated_to");
            let due = task.deadline.as_deref().and_then(|text| deadline(text, now));
            let mark = match status {
                TaskStatus::Done => "✅",
                TaskStatus::Failed | TaskStatus::Cancelled => "❌",
                _ if due.is_some_and(|due| due <= now) => "🔴",
                _ => "⏳",
            };
            let age = (now - task.ts).num_minutes().max(0);
            let mut line = format!(
                "- {mark} [{}] {} → {who} [{}]: {} ({}h {:02}m)",
                short(&task.task_id),
                one_line(&task.summary),
                head(word(task, "delegated_task_id"), 8),
                if child.is_some() { status.as_str() } else { "?" },
                age / 60,
                age % 60
            );
            if let Some(due) = &task.deadline {
                line.push_str(&format!(" 📅 {}", one_line(due)));
            }
            // what the other one wrote into its book is its words
            if let Some(child) = child.as_ref().filter(|child| child.summary != task.summary) {
                line.push_str(&format!("\n    {}", one_line(head(&child.summary, 200))));
            }
            for told in std::iter::once(task).chain(&child).filter(|task| task.origin() != Origin::default()) {
                origin = origin.joined(&told.origin());
            }
            lines.push(line);
            rows.push(json!({"task": task, "live": child}));
        }
        let mut text = t!(cx.locale, "tools.task_tracker.found", count = lines.len());
        for line in &lines {
            text.push('\n');
            text.push_str(line);
        }
        Ok(ToolOutput::text(text).with_data(json!({ "tasks": rows })).from_origin(origin))
    }
}

impl TaskTracker {
    /// The task in the book of whoever has it; nothing when that one is gone.
    async fn child(&self, task: &Task, cx: &ToolContext) -> Result<Option<Task>, ToolError> {
        let (who, id) = (AnimaName::new(word(task, "delegated_to")), TaskId::new(word(task, "delegated_task_id")));
        let (Ok(who), Ok(id)) = (who, id) else { return Ok(None) };
        self.services.book.find(&who, &id).await.map_err(|error| fault::post(error, cx.locale))
    }
}

fn word<'a>(task: &'a Task, key: &str) -> &'a str {
    task.meta.get(key).and_then(Value::as_str).unwrap_or_default()
}
