//! `list_tasks`: everything that is owed, people's first.

use animaworks_core::{
    Origin, ToolContext, ToolError, ToolOutput, TypedTool,
    home::text::{head, one_line},
    t,
    task::{Task, TaskSource, TaskStatus, deadline},
    tool::Effect,
};
use chrono::{DateTime, FixedOffset};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{TaskServices, short};
use crate::fault;

/// Without an update for so long, a task is stale.
const STALE_MINUTES: i64 = 30;

/// Which tasks to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Which {
    Pending,
    InProgress,
    Done,
    Cancelled,
    Blocked,
    Failed,
    Delegated,
}

impl Which {
    fn is(self, status: TaskStatus) -> bool {
        let wanted = match self {
            Self::Pending => TaskStatus::Pending,
            Self::InProgress => TaskStatus::InProgress,
            Self::Done => TaskStatus::Done,
            Self::Cancelled => TaskStatus::Cancelled,
            Self::Blocked => TaskStatus::Blocked,
            Self::Failed => TaskStatus::Failed,
            Self::Delegated => TaskStatus::Delegated,
        };
        wanted == status
    }
}

/// What `list_tasks` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListArgs {
    #[serde(default)]
    status: Option<Which>,
    #[serde(default)]
    detail: bool,
}

#[derive(Debug)]
pub(super) struct ListTasks {
    pub(super) services: TaskServices,
}

impl TypedTool for ListTasks {
    const NAME: &'static str = "list_tasks";
    const EFFECT: Effect = Effect::Reads;
    type Args = ListArgs;

    async fn run(&self, args: ListArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let listed = self.services.book.list(&cx.anima).await;
        let mut tasks = listed.map_err(|error| fault::post(error, cx.locale))?;
        match args.status {
            Some(which) => tasks.retain(|task| which.is(task.status)),
            None => tasks.retain(|task| !task.status.is_terminal()),
        }
        tasks.sort_by_key(|task| (task.source != TaskSource::Human, task.ts));
        let now = self.services.home.now().fixed_offset();
        let mut text = t!(cx.locale, "tools.list_tasks.found", count = tasks.len());
        for task in &tasks {
            text.push('\n');
            text.push_str(&line(task, now));
            if args.detail {
                text.push_str("\n    ");
                text.push_str(&one_line(head(&task.original_instruction, 1000)));
            }
        }
        // tasks are our own, but may repeat what somebody from outside said
        let lowest = tasks.iter().min_by_key(|task| task.trust());
        let output = ToolOutput::text(text).with_data(json!({ "tasks": tasks }));
        Ok(match lowest.map(Task::origin).filter(|origin| *origin != Origin::default()) {
            Some(origin) => output.from_origin(origin),
            None => output,
        })
    }
}

/// A task on one line.
fn line(task: &Task, now: DateTime<FixedOffset>) -> String {
    let source = if task.source == TaskSource::Human { "human" } else { "anima" };
    let mut line = format!(
        "- [{}] {} ({source}) {} → {}",
        short(&task.task_id),
        task.status.as_str(),
        one_line(&task.summary),
        one_line(&task.assignee)
    );
    if let Some(due) = &task.deadline {
        line.push_str(&format!(" 📅 {}", one_line(due)));
    }
    if task.status.is_terminal() {
        return line;
    }
    let due = task.deadline.as_deref().and_then(|text| deadline(text, now));
    if due.is_some_and(|due| due <= now) {
        line.push_str(" 🔴 OVERDUE");
    } else if (now - task.updated_at).num_minutes() >= STALE_MINUTES {
        line.push_str(" ⚠️ STALE");
    }
    line
}
