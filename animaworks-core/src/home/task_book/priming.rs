//! What an Anima owes, as it comes to mind (memory spec §11.3).

use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;
use serde_json::Value;

use crate::{
    home::text::{head, one_line},
    i18n::Locale,
    t,
    task::{Task, TaskSource, TaskStatus, deadline},
    units::Tokens,
};

/// A task that nobody touched for so long is stale.
const STALE: chrono::Duration = chrono::Duration::minutes(30);
/// The most tasks of others that are shown.
const MAX_DELEGATED: usize = 5;

/// How a task that was handed over is doing.
#[derive(Debug, Clone, PartialEq)]
pub enum Live {
    /// As its own book says.
    Known(Box<Task>),
    /// No book holds it any more.
    Archived,
    /// There is nobody of that name.
    Unknown,
}

/// What is owed, most urgent first: people's tasks, then the ones that waited longest; then what is overdue, what
/// failed, and what others do. `live` says how those are doing. Stops at the first line that does not fit.
pub fn priming(
    tasks: &[Task],
    now: DateTime<Tz>,
    locale: Locale,
    budget: Tokens,
    live: &dyn Fn(&Task) -> Live,
) -> String {
    let now_fixed = now.fixed_offset();
    let due = |task: &Task| deadline(task.deadline.as_deref()?, now_fixed);
    let open: Vec<&Task> =
        tasks.iter().filter(|task| matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress)).collect();
    let (overdue, mut open): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|task| due(task).is_some_and(|due| due <= now_fixed));
    open.sort_by_key(|task| (task.source != TaskSource::Human, task.updated_at));
    let mut page = Page { lines: Vec::new(), left: budget.get() };
    for task in open {
        if !page.add(line(task, now, due(task), locale)) {
            break;
        }
    }
    if !overdue.is_empty() {
        let names: Vec<_> =
            overdue.iter().map(|task| format!("[{}] {}", id8(task), head(&one_line(&task.summary), 20))).collect();
        page.add(t!(locale, "memory.tasks.overdue", count = overdue.len(), tasks = names.join(", ")));
    }
    let failed: Vec<_> = tasks
        .iter()
        .filter(|task| task.status == TaskStatus::Failed)
        .filter(|task| task.meta.get("executor").and_then(Value::as_str) == Some("taskexec"))
        .collect();
    if !failed.is_empty() && page.add(t!(locale, "memory.tasks.failed_title")) {
        for task in failed {
            let reason = task.meta.get("failure").and_then(Value::as_str).unwrap_or("?");
            let summary = one_line(&task.summary);
            if !page.add(t!(locale, "memory.tasks.failed", id = id8(task), summary = summary, reason = reason)) {
                break;
            }
        }
    }
    for task in tasks.iter().filter(|task| task.status == TaskStatus::Delegated).take(MAX_DELEGATED) {
        let who = task.meta.get("delegated_to").and_then(Value::as_str).unwrap_or(&task.assignee);
        let status = match live(task) {
            Live::Known(child) => match child.status {
                TaskStatus::Done => t!(locale, "memory.tasks.live_done"),
                TaskStatus::Failed => t!(locale, "memory.tasks.live_failed"),
                TaskStatus::Cancelled => t!(locale, "memory.tasks.live_cancelled"),
                other => t!(locale, "memory.tasks.live_open", status = other.as_str()),
            },
            Live::Archived => t!(locale, "memory.tasks.live_archived"),
            Live::Unknown => "?".to_owned(),
        };
        let added = page.add(t!(
            locale,
            "memory.tasks.delegated",
            id = id8(task),
            summary = one_line(&task.summary),
            who = who,
            status = status,
            elapsed = elapsed(task, now_fixed, locale),
        ));
        if !added {
            break;
        }
    }
    page.lines.join("\n")
}

struct Page {
    lines: Vec<String>,
    left: usize,
}

impl Page {
    fn add(&mut self, line: String) -> bool {
        let cost = Tokens::estimate(&line).get() + 1;
        let fits = cost <= self.left;
        if fits {
            self.left -= cost;
            self.lines.push(line);
        }
        fits
    }
}

fn line(task: &Task, now: DateTime<Tz>, due: Option<DateTime<FixedOffset>>, locale: Locale) -> String {
    let running = task.status == TaskStatus::InProgress;
    let state = if running { t!(locale, "memory.tasks.running") } else { t!(locale, "memory.tasks.waiting") };
    let urgency = match task.source {
        TaskSource::Human => t!(locale, "memory.tasks.human"),
        TaskSource::Anima => t!(locale, "memory.tasks.anima"),
    };
    let mut text = t!(
        locale,
        "memory.tasks.line",
        state = state,
        urgency = urgency,
        id = id8(task),
        summary = one_line(&task.summary),
        assignee = task.assignee,
    );
    let mut add = |part: String| {
        text.push(' ');
        text.push_str(&part);
    };
    if running && task.meta.get("executor").and_then(Value::as_str) == Some("taskexec") {
        add(t!(locale, "memory.tasks.auto"));
    }
    if !task.relay_chain.is_empty() {
        add(t!(locale, "memory.tasks.chain", names = task.relay_chain.join(" → ")));
    }
    add(t!(locale, "memory.tasks.elapsed", time = elapsed(task, now.fixed_offset(), locale)));
    if now.fixed_offset() - task.updated_at >= STALE {
        add(t!(locale, "memory.tasks.stale"));
    }
    if let Some(due) = due {
        let due = due.with_timezone(&now.timezone());
        let format = if due.date_naive() == now.date_naive() { "%H:%M" } else { "%m/%d %H:%M" };
        add(t!(locale, "memory.tasks.due", time = due.format(format)));
    }
    text
}

fn elapsed(task: &Task, now: DateTime<FixedOffset>, locale: Locale) -> String {
    let minutes = (now - task.ts).num_minutes().max(0);
    if minutes < 60 {
        t!(locale, "memory.tasks.minutes", minutes = minutes)
    } else {
        t!(locale, "memory.tasks.hours", hours = minutes / 60, minutes = minutes % 60)
    }
}

fn id8(task: &Task) -> &str {
    head(task.task_id.as_str(), 8)
}
