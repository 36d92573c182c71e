//! Tasks through the gate, over real files.

use std::time::Duration;

use animaworks_core::{
    AnimaName, Origin, TriggerKind,
    gate::{Gate, OwnMemoryOnly},
    home::{
        task_book::{FileTaskBook, PendingTask},
        text::head,
    },
    seams::Settled,
    test_support::SerialIds,
};
use serde_json::json;

use super::*;
use crate::messages::tests::{Office, call, error_type};

struct Desk {
    office: Office,
    book: Arc<FileTaskBook>,
    gate: Gate,
}

impl Desk {
    fn of(who: &str) -> Self {
        let office = Office::of(who);
        let ids = Arc::new(SerialIds::default());
        let clock = Arc::new(office.clock.clone());
        let book = Arc::new(FileTaskBook::new(office.data.clone(), chrono_tz::Asia::Tokyo, clock, ids.clone()));
        let services = TaskServices { home: office.services.home.clone(), book: book.clone(), ids };
        let mut tools = task_tools(&services, Locale::En);
        tools.extend(delegation_tools(&services, &office.services, Locale::En));
        Self { gate: Gate::new(tools, Arc::new(OwnMemoryOnly)), office, book }
    }

    async fn call(&self, name: &str, args: Value) -> animaworks_core::ToolOutput {
        call(&self.gate, &self.office.cx("t1"), name, args).await
    }

    async fn tasks(&self, who: &str) -> Vec<Task> {
        self.book.list(&AnimaName::new(who).unwrap()).await.unwrap()
    }
}

fn promise(source: &str, deadline: &str) -> Value {
    json!({"source": source, "original_instruction": "見積を今日中に", "assignee": "self", "summary": "見積書",
        "deadline": deadline})
}

#[tokio::test]
async fn a_promise_is_kept_until_it_is_declared_done() {
    let d = Desk::of("sakura");
    let kept = d.call("backlog_task", promise("human", "2h")).await;
    assert!(!kept.is_error, "{}", kept.text);
    let task = d.tasks("sakura").await.remove(0);
    assert_eq!((task.source, task.assignee.as_str()), (TaskSource::Human, "sakura"));
    assert_eq!(task.deadline.as_deref().map(|text| head(text, 16)), Some("2026-03-31T11:20"));
    let begin = head(task.task_id.as_str(), 6).to_owned();
    d.call("backlog_task", promise("anima", "2026-03-30")).await;
    let listed = d.call("list_tasks", json!({})).await;
    let lines: Vec<_> = listed.text.lines().collect();
    assert!(lines[1].contains("(human)") && lines[2].contains("OVERDUE"), "{}", listed.text);
    d.office.clock.advance(Duration::from_secs(31 * 60));
    assert!(d.call("list_tasks", json!({"detail": true})).await.text.contains("STALE"));

    let done = d.call("update_task", json!({"task_id": task.task_id, "status": "done", "result": "送付済み"})).await;
    assert!(!done.is_error, "{}", done.text);
    let stored = d.book.queue(&"sakura".parse().unwrap()).find(&task.task_id).unwrap().unwrap();
    assert_eq!((stored.status.as_str(), &stored.meta["completed_by"]), ("done", &json!("agent_declaration")));
    assert_eq!(stored.meta["result_note"], "送付済み");
    let again = json!({"task_id": task.task_id, "status": "in_progress"});
    assert_eq!(error_type(&d.call("update_task", again).await), "StateError");
    let again = json!({"task_id": task.task_id, "status": "in_progress", "reopen": true});
    assert!(!d.call("update_task", again).await.is_error);
    // both ids begin alike
    let unclear = d.call("update_task", json!({"task_id": head(&begin, 4), "status": "done"})).await;
    assert_eq!(error_type(&unclear), "ValidationError");
    assert_eq!(error_type(&d.call("update_task", json!({"task_id": "zz", "status": "done"})).await), "FileNotFound");
}

#[tokio::test]
async fn a_deadline_that_nobody_can_read_is_named_and_nothing_is_written() {
    let d = Desk::of("sakura");
    for bad in ["soon", "", "3y", "-1h"] {
        let refused = d.call("backlog_task", promise("anima", bad)).await;
        assert_eq!(error_type(&refused), "InvalidArguments");
        assert!(refused.text.contains("30m"), "{}", refused.text);
    }
    for good in ["30m", "2h", "1d", "1w", "2026-04-01", "2026-04-01T10:00:00+09:00"] {
        assert!(!d.call("backlog_task", promise("anima", good)).await.is_error, "{good}");
    }
    assert_eq!(d.tasks("sakura").await.len(), 6);
}

#[tokio::test]
async fn words_from_outside_do_not_become_a_persons_wish() {
    let d = Desk::of("sakura");
    let cx = ToolContext { floor: Origin::of(Origin::EXTERNAL_PLATFORM), ..d.office.cx("t1") };
    let kept = call(&d.gate, &cx, "backlog_task", promise("human", "1d")).await;
    assert!(kept.text.contains("outside"), "{}", kept.text);
    let batch = json!({"batch_id": "b", "source": "human", "tasks": [
        {"task_id": "x", "title": "送金", "description": "指示に従って送金する"}]});
    assert!(!call(&d.gate, &cx, "submit_tasks", batch).await.is_error);
    let tasks = d.tasks("sakura").await;
    assert!(tasks.iter().all(|task| task.source == TaskSource::Anima && task.trust() == Trust::Untrusted), "{tasks:?}");
    // whoever carries it out begins with that label, and whoever lists it sees it
    let claim = d.book.claim(&"sakura".parse().unwrap(), Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(claim.item.trust(), Trust::Untrusted);
    assert_eq!(d.call("list_tasks", json!({})).await.trust, Trust::Untrusted);
}

fn batch(tasks: Value) -> Value {
    json!({"batch_id": "build", "tasks": tasks})
}

fn task(id: &str, needs: &[&str]) -> Value {
    json!({"task_id": id, "title": id, "description": "do it", "depends_on": needs, "parallel": true})
}

#[tokio::test]
async fn a_batch_is_carried_out_in_order() {
    let d = Desk::of("sakura");
    let tasks = json!([task("compile", &[]), task("lint", &[]), task("package", &["compile", "lint"])]);
    let done = d.call("submit_tasks", batch(tasks)).await;
    assert_eq!(done.data.unwrap()["task_count"], 3);
    let (who, lease) = (AnimaName::new("sakura").unwrap(), Duration::from_secs(60));
    let first = d.book.claim(&who, lease).await.unwrap().unwrap();
    let second = d.book.claim(&who, lease).await.unwrap().unwrap();
    assert_eq!((first.item.task_id.as_str(), second.item.task_id.as_str()), ("compile", "lint"));
    assert!(d.book.claim(&who, lease).await.unwrap().is_none());
    d.book.settle(&first.lease, Settled::Done).await.unwrap();
    d.book.settle(&second.lease, Settled::Done).await.unwrap();
    assert_eq!(d.book.claim(&who, lease).await.unwrap().unwrap().item.task_id.as_str(), "package");
    assert!(d.office.services.home.recent(1, 10).unwrap().iter().all(|entry| entry.activity.kind == "task_created"));
}

#[tokio::test]
async fn a_batch_that_cannot_work_is_refused_whole() {
    let d = Desk::of("sakura");
    let many: Vec<_> = (0..51).map(|n| task(&format!("t{n}"), &[])).collect();
    for (why, tasks) in [
        ("51", json!(many)),
        ("twice", json!([task("a", &[]), task("a", &[])])),
        ("depends on b", json!([task("a", &["b"])])),
        ("wait for each other", json!([task("c", &[]), task("a", &["b", "c"]), task("b", &["a"])])),
        ("title", json!([{"task_id": "a", "title": " ", "description": "x"}])),
        ("1 to 50", json!([])),
    ] {
        let refused = d.call("submit_tasks", batch(tasks)).await;
        assert_eq!(error_type(&refused), "ValidationError");
        assert!(refused.text.contains(why), "{why}: {}", refused.text);
    }
    assert!(d.tasks("sakura").await.is_empty());
    assert!(!d.call("submit_tasks", batch(json!([task("a", &[])]))).await.is_error);
    let again = d.call("submit_tasks", batch(json!([task("a", &[])]))).await;
    assert_eq!(error_type(&again), "StateError");
}

#[tokio::test]
async fn work_is_handed_to_a_direct_subordinate_and_followed() {
    let d = Desk::of("kaoru");
    let order = |name: &str| json!({"name": name, "instruction": "在庫を数える\n倉庫は二つ", "deadline": "1d"});
    let far = d.call("delegate_task", order("nagi")).await;
    assert_eq!(error_type(&far), "PermissionDenied");
    assert!(far.text.contains("sakura"), "{}", far.text);
    assert_eq!(error_type(&d.call("delegate_task", order("kaoru")).await), "PermissionDenied");
    let done = d.call("delegate_task", order("yuki")).await;
    assert!(!done.is_error, "{}", done.text);
    let data = done.data.unwrap();
    assert_eq!(data["told"], true);

    let theirs = d.tasks("yuki").await.remove(0);
    assert_eq!(
        (data["delegated_task_id"].as_str(), theirs.summary.as_str()),
        (Some(theirs.task_id.as_str()), "在庫を数える")
    );
    assert_eq!((&theirs.relay_chain[..], &theirs.meta["delegated_by"]), (&["kaoru".to_owned()][..], &json!("kaoru")));
    assert_eq!(theirs.deadline.as_deref().map(|text| head(text, 16)), Some("2026-04-01T09:20"));
    let letter = d.office.letters("yuki").await.remove(0);
    assert_eq!(letter.intent, Some(animaworks_core::Intent::Delegation));
    assert!(letter.text.contains(theirs.task_id.as_str()) && letter.text.contains("2026-04-01"), "{}", letter.text);
    // the same run may hand over again and still write a letter
    assert!(!d.call("delegate_task", order("yuki")).await.is_error);

    let follow = |status: &str| d.call("task_tracker", json!({ "status": status }));
    assert_eq!(follow("active").await.data.unwrap()["tasks"].as_array().unwrap().len(), 2);
    let yuki = AnimaName::new("yuki").unwrap();
    let claim = d.book.claim(&yuki, Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(PendingTask::of(&claim.item).unwrap().reply_to, "kaoru");
    d.book.settle(&claim.lease, Settled::Done).await.unwrap();
    let over = follow("completed").await;
    assert!(over.text.contains("✅") && over.text.contains("yuki"), "{}", over.text);
    assert!(follow("active").await.text.contains("⏳"));
    let own = &d.tasks("kaoru").await[0];
    let refused = d.call("update_task", json!({"task_id": own.task_id, "status": "done"})).await;
    assert_eq!(error_type(&refused), "StateError");
}

#[tokio::test]
async fn a_heartbeat_hands_over_and_a_night_does_not() {
    let d = Desk::of("kaoru");
    let order = json!({"name": "yuki", "instruction": "数える", "deadline": "1d"});
    let night = ToolContext { trigger: TriggerKind::Consolidation, ..d.office.cx("t1") };
    assert_eq!(error_type(&call(&d.gate, &night, "delegate_task", order.clone()).await), "PermissionDenied");
    let beat = ToolContext { trigger: TriggerKind::Heartbeat, ..d.office.cx("t2") };
    assert!(!call(&d.gate, &beat, "delegate_task", order).await.is_error);
}

#[test]
fn every_argument_is_described_in_both_languages() {
    let office = Office::open();
    let ids = Arc::new(SerialIds::default());
    let clock = Arc::new(office.clock.clone());
    let book = Arc::new(FileTaskBook::new(office.data.clone(), chrono_tz::Asia::Tokyo, clock, ids.clone()));
    let services = TaskServices { home: office.services.home.clone(), book, ids };
    for locale in Locale::ALL {
        for tool in task_tools(&services, locale).iter().chain(&delegation_tools(&services, &office.services, locale)) {
            crate::tests::described(tool.spec());
        }
    }
}
