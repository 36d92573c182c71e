//! `delegate_task`: work for a direct subordinate.

use animaworks_core::{
    AnimaName, Intent, ThreadId, ToolContext, ToolError, ToolOutput, TypedTool, fs,
    home::{activity::Activity, task_book::PendingTask, text::head},
    organisation::Organisation,
    seams::TaskEvent,
    t,
    task::{Task, TaskSource, TaskStatus},
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::{MAX_INSTRUCTION, TaskServices, check_deadline, note, origin_meta, required};
use crate::{
    fault,
    messages::{Letter, Outbox},
};

/// What `delegate_task` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DelegateArgs {
    name: String,
    instruction: String,
    #[serde(default)]
    summary: Option<String>,
    deadline: String,
    #[serde(default)]
    acceptance_criteria: Vec<String>,
    #[serde(default)]
    parent_task_id: Option<String>,
}

#[derive(Debug)]
pub(super) struct DelegateTask {
    pub(super) services: TaskServices,
    pub(super) outbox: Outbox,
}

impl TypedTool for DelegateTask {
    const NAME: &'static str = "delegate_task";
    const EFFECT: Effect = Effect::Communicates;
    type Args = DelegateArgs;

    async fn run(&self, args: DelegateArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (locale, TaskServices { home, book, ids }) = (cx.locale, &self.services);
        let instruction = required(Self::NAME, "instruction", &args.instruction, cx)?;
        check_deadline(Self::NAME, &args.deadline, home, cx)?;
        let data = home.dir().data().clone();
        let organisation = fs::blocking(move || Organisation::load(&data)).await.map_err(fault::file)?;
        let who = subordinate(&args.name, &organisation, cx)?;
        let summary = match args.summary.as_deref().map(str::trim) {
            Some(summary) if !summary.is_empty() => summary.to_owned(),
            _ => head(instruction.lines().next().unwrap_or_default(), 80).to_owned(),
        };
        let parent = self.parent(args.parent_task_id.as_deref(), cx).await?;
        let mut chain = parent.as_ref().map(|task| task.relay_chain.clone()).unwrap_or_default();
        chain.push(cx.anima.to_string());

        // both books first: a letter that gets lost loses no work, and the next heartbeat finds the task
        let (theirs, ours) = (ids.task(), ids.task());
        let mut extra = origin_meta(cx);
        extra.insert("delegated_by".to_owned(), json!(cx.anima));
        extra.insert("parent_task_id".to_owned(), json!(parent.as_ref().map(|task| &task.task_id)));
        let work = PendingTask {
            task_id: theirs.to_string(),
            title: summary.clone(),
            description: head(&instruction, MAX_INSTRUCTION).to_owned(),
            acceptance_criteria: args.acceptance_criteria,
            submitted_by: cx.anima.to_string(),
            reply_to: cx.anima.to_string(),
            source: "delegation".to_owned(),
            deadline: args.deadline.clone(),
            relay_chain: chain.clone(),
            extra,
            ..PendingTask::default()
        };
        let batch = format!("delegation-{theirs}");
        let handed = book.submit(&who, TaskSource::Anima, &batch, vec![work]).await;
        handed.map_err(|error| fault::post(error, locale))?;
        self.track(&ours, &theirs, &who, &instruction, &summary, args.deadline.clone(), chain, cx).await?;

        let their_entry = book.find(&who, &theirs).await.map_err(|error| fault::post(error, locale))?;
        let due = their_entry.and_then(|task| task.deadline).unwrap_or(args.deadline);
        let told = self.tell(&who, &theirs, &instruction, &due, cx).await?;
        let mut text =
            t!(locale, "tools.delegate_task.done", name = who, summary = summary, theirs = theirs, ours = ours);
        if !told {
            text.push('\n');
            text.push_str(&t!(locale, "tools.delegate_task.not_told"));
        }
        if organisation.member(&who).is_some_and(|member| !member.enabled) {
            text.push('\n');
            text.push_str(&t!(locale, "tools.delegate_task.disabled", name = who));
        }
        let data = json!({
            "status": "delegated", "delegated_to": who, "delegated_task_id": theirs, "task_id": ours, "told": told
        });
        Ok(ToolOutput::text(text).with_data(data))
    }
}

impl DelegateTask {
    async fn parent(&self, id: Option<&str>, cx: &ToolContext) -> Result<Option<Task>, ToolError> {
        let Some(id) = id.map(str::trim).filter(|id| !id.is_empty()) else { return Ok(None) };
        let listed = self.services.book.list(&cx.anima).await;
        let tasks = listed.map_err(|error| fault::post(error, cx.locale))?;
        super::pick(&tasks, id, cx).map(|task| Some(task.clone()))
    }

    /// Our own entry, by which the work is followed.
    #[allow(clippy::too_many_arguments, reason = "the fields of one entry, used once")]
    async fn track(
        &self,
        ours: &animaworks_core::TaskId,
        theirs: &animaworks_core::TaskId,
        who: &AnimaName,
        instruction: &str,
        summary: &str,
        deadline: String,
        relay_chain: Vec<String>,
        cx: &ToolContext,
    ) -> Result<(), ToolError> {
        let now = self.services.home.now().fixed_offset();
        let mut meta: Map<_, _> = origin_meta(cx);
        meta.insert("delegated_to".to_owned(), json!(who));
        meta.insert("delegated_task_id".to_owned(), json!(theirs));
        let task = Task {
            task_id: ours.clone(),
            ts: now,
            source: TaskSource::Anima,
            original_instruction: instruction.to_owned(),
            assignee: who.to_string(),
            status: TaskStatus::Delegated,
            summary: summary.to_owned(),
            deadline: Some(deadline),
            relay_chain,
            updated_at: now,
            meta,
            extra: Map::new(),
        };
        let created = self.services.book.append(&cx.anima, TaskEvent::Create(Box::new(task))).await;
        created.map_err(|error| fault::post(error, cx.locale))?;
        note(&self.services.home, Activity::TASK_CREATED, ours, summary, TaskStatus::Delegated.as_str()).await
    }

    /// Writes to the subordinate; whether it was sent.
    async fn tell(
        &self,
        who: &AnimaName,
        task: &animaworks_core::TaskId,
        instruction: &str,
        due: &str,
        cx: &ToolContext,
    ) -> Result<bool, ToolError> {
        let text = t!(cx.locale, "tools.delegate_task.letter", id = task, deadline = due, instruction = instruction);
        let letter = Letter {
            to: who.clone(),
            text,
            intent: Some(Intent::Delegation),
            reply_to: None,
            thread: ThreadId::main(),
            tool: Self::NAME,
            is_handover: true,
        };
        match self.outbox.send(letter, cx).await {
            Ok(sent) => Ok(sent.is_ok()),
            Err(error @ ToolError::Host(_)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, to = %who, "a letter about a task was not delivered");
                Ok(false)
            }
        }
    }
}

/// Somebody who reports to us directly; everybody else is refused with the names that there are.
fn subordinate(name: &str, organisation: &Organisation, cx: &ToolContext) -> Result<AnimaName, ToolError> {
    let wanted = name.trim().trim_start_matches('@').to_lowercase();
    let direct = organisation.subordinates(&cx.anima);
    if let Some(name) = direct.iter().find(|name| name.as_str() == wanted) {
        return Ok((*name).clone());
    }
    let names: Vec<_> = direct.iter().map(|name| name.as_str()).collect();
    let further = organisation.descendants(&cx.anima).into_iter().find(|name| name.as_str() == wanted);
    let over = further.and_then(|name| organisation.supervisor(name));
    let suggestion = match over {
        Some(over) => t!(cx.locale, "tools.delegate_task.over", over = over),
        None if names.is_empty() => t!(cx.locale, "tools.delegate_task.nobody"),
        None => t!(cx.locale, "tools.delegate_task.names", names = names.join(", ")),
    };
    Err(fault::failed(
        "PermissionDenied",
        t!(cx.locale, "tools.delegate_task.not_direct", name = head(name.trim(), 40)),
        suggestion,
    ))
}
