//! `backlog_task` and `update_task`: what is owed, and how far it has come.

use animaworks_core::{
    ToolContext, ToolError, ToolOutput, TypedTool,
    home::{activity::Activity, text::head},
    seams::{TaskEvent, TaskUpdate},
    t,
    task::{Task, TaskSource, TaskStatus},
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::{Asked, MAX_INSTRUCTION, TaskServices, check_deadline, note, origin_meta, pick, required, short};
use crate::fault;

/// Words an Anima means itself by.
const MYSELF: [&str; 5] = ["self", "me", "myself", "自分", "私"];

/// What `backlog_task` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BacklogArgs {
    source: Asked,
    original_instruction: String,
    assignee: String,
    summary: String,
    deadline: String,
    #[serde(default)]
    relay_chain: Vec<String>,
}

#[derive(Debug)]
pub(super) struct BacklogTask {
    pub(super) services: TaskServices,
}

impl TypedTool for BacklogTask {
    const NAME: &'static str = "backlog_task";
    const EFFECT: Effect = Effect::Remembers;
    type Args = BacklogArgs;

    async fn run(&self, args: BacklogArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let TaskServices { home, book, ids } = &self.services;
        let instruction = required(Self::NAME, "original_instruction", &args.original_instruction, cx)?;
        let summary = required(Self::NAME, "summary", &args.summary, cx)?;
        let assignee = required(Self::NAME, "assignee", &args.assignee, cx)?;
        check_deadline(Self::NAME, &args.deadline, home, cx)?;
        let myself = MYSELF.contains(&assignee.to_lowercase().as_str());
        let source = args.source.believed(cx);
        let now = home.now().fixed_offset();
        let task = Task {
            task_id: ids.task(),
            ts: now,
            source,
            original_instruction: head(&instruction, MAX_INSTRUCTION).to_owned(),
            assignee: if myself { cx.anima.to_string() } else { assignee },
            status: TaskStatus::Pending,
            summary: summary.clone(),
            deadline: Some(args.deadline),
            relay_chain: args.relay_chain,
            updated_at: now,
            meta: origin_meta(cx),
            extra: Map::new(),
        };
        let id = task.task_id.clone();
        let created = book.append(&cx.anima, TaskEvent::Create(Box::new(task))).await;
        created.map_err(|error| fault::post(error, cx.locale))?;
        note(home, Activity::TASK_CREATED, &id, &summary, TaskStatus::Pending.as_str()).await?;
        let entry = book.find(&cx.anima, &id).await.map_err(|error| fault::post(error, cx.locale))?;
        let due = entry.as_ref().and_then(|task| task.deadline.clone()).unwrap_or_default();
        let mut text = t!(cx.locale, "tools.backlog_task.done", id = id, summary = summary, deadline = due);
        if args.source == Asked::Human && source == TaskSource::Anima {
            text.push('\n');
            text.push_str(&t!(cx.locale, "tools.backlog_task.not_human"));
        }
        Ok(ToolOutput::text(text).with_data(json!({"status": "created", "task": entry})))
    }
}

/// What a task can become by declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Declared {
    Pending,
    InProgress,
    Done,
    Cancelled,
    Blocked,
    Failed,
}

impl From<Declared> for TaskStatus {
    fn from(declared: Declared) -> Self {
        match declared {
            Declared::Pending => Self::Pending,
            Declared::InProgress => Self::InProgress,
            Declared::Done => Self::Done,
            Declared::Cancelled => Self::Cancelled,
            Declared::Blocked => Self::Blocked,
            Declared::Failed => Self::Failed,
        }
    }
}

/// What `update_task` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UpdateArgs {
    task_id: String,
    status: Declared,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    reopen: bool,
}

#[derive(Debug)]
pub(super) struct UpdateTask {
    pub(super) services: TaskServices,
}

impl TypedTool for UpdateTask {
    const NAME: &'static str = "update_task";
    const EFFECT: Effect = Effect::Remembers;
    type Args = UpdateArgs;

    async fn run(&self, args: UpdateArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let TaskServices { home, book, .. } = &self.services;
        let tasks = book.list(&cx.anima).await.map_err(|error| fault::post(error, cx.locale))?;
        let task = pick(&tasks, &args.task_id, cx)?;
        let status = TaskStatus::from(args.status);
        if task.status == TaskStatus::Delegated {
            return Err(fault::failed(
                "StateError",
                t!(cx.locale, "tools.update_task.delegated", id = short(&task.task_id)),
                t!(cx.locale, "tools.update_task.delegated_instead"),
            ));
        }
        if task.status.is_terminal() && status != task.status && !args.reopen {
            return Err(fault::failed(
                "StateError",
                t!(cx.locale, "tools.update_task.finished", id = short(&task.task_id), status = task.status.as_str()),
                t!(cx.locale, "tools.update_task.finished_instead"),
            ));
        }
        let mut meta = task.meta.clone();
        let result = args.result.as_deref().map(str::trim).filter(|text| !text.is_empty());
        match status {
            TaskStatus::Done => {
                meta.insert("completed_by".to_owned(), json!("agent_declaration"));
                meta.insert("declared_at".to_owned(), json!(home.stamp_seconds()));
            }
            TaskStatus::Blocked => {
                meta.insert("blocked_at".to_owned(), json!(home.stamp_seconds()));
            }
            _ => {}
        }
        if let Some(result) = result {
            meta.insert("result_note".to_owned(), json!(head(result, 2000)));
        }
        let summary = args.summary.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let update = TaskUpdate {
            task_id: task.task_id.clone(),
            status: Some(status),
            summary: summary.clone(),
            meta: (meta != task.meta).then_some(meta),
            reopen: args.reopen,
        };
        let updated = book.append(&cx.anima, TaskEvent::Update(update)).await;
        updated.map_err(|error| fault::post(error, cx.locale))?;
        let summary = summary.unwrap_or_else(|| task.summary.clone());
        note(home, Activity::TASK_UPDATED, &task.task_id, &summary, status.as_str()).await?;
        let text = t!(
            cx.locale,
            "tools.update_task.done",
            id = short(&task.task_id),
            before = task.status.as_str(),
            after = status.as_str()
        );
        let data = json!({"status": "updated", "task_id": task.task_id, "task_status": status});
        Ok(ToolOutput::text(text).with_data(data))
    }
}
