//! Obligations that are never lost, and work that is never done twice.

use pretty_assertions::assert_eq;
use serde_json::{Map, json};

use super::*;
use crate::{
    home::tests::put,
    test_support::{ManualClock, SerialIds},
    units::Tokens,
};

const LEASE: Duration = Duration::from_secs(600);

struct Fixture {
    _dir: tempfile::TempDir,
    book: FileTaskBook,
    clock: ManualClock,
    home: AnimaHome,
    owner: AnimaName,
}

fn desk() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    let clock = ManualClock::at("2026-03-31T09:20:00+09:00");
    let owner = AnimaName::new("sakura").unwrap();
    let zone = chrono_tz::Asia::Tokyo;
    let home = AnimaHome::open(data.anima(&owner), zone, Arc::new(clock.clone()));
    let book = FileTaskBook::new(data, zone, Arc::new(clock.clone()), Arc::new(SerialIds::default()));
    Fixture { _dir: dir, book, clock, home, owner }
}

impl Fixture {
    fn task(&self, id: &str) -> Task {
        let now = self.home.now().fixed_offset();
        Task {
            task_id: id.parse().unwrap(),
            ts: now,
            source: TaskSource::Anima,
            original_instruction: format!("do {id}"),
            assignee: "sakura".into(),
            status: TaskStatus::Pending,
            summary: format!("task {id}"),
            deadline: None,
            relay_chain: Vec::new(),
            updated_at: now,
            meta: Map::new(),
            extra: Map::new(),
        }
    }

    fn queue(&self) -> TaskQueue {
        self.book.queue(&self.owner)
    }

    fn create(&self, task: Task) {
        self.queue().append(TaskEvent::Create(Box::new(task))).unwrap();
    }

    fn status(&self, id: &str) -> Option<TaskStatus> {
        self.queue().find(&id.parse().unwrap()).unwrap().map(|task| task.status)
    }

    fn file(&self, path: &str) -> std::path::PathBuf {
        self.home.dir().state("pending").join(path)
    }

    async fn claim(&self) -> Option<(LeaseId, String, u32)> {
        let claim = self.book.claim(&self.owner, LEASE).await.unwrap()?;
        Some((claim.lease, claim.item.task_id.to_string(), claim.attempt))
    }
}

fn set(id: &str, status: TaskStatus, reopen: bool) -> TaskEvent {
    let task_id = id.parse().unwrap();
    TaskEvent::Update(TaskUpdate { task_id, status: Some(status), summary: None, meta: None, reopen })
}

fn pending(id: &str, depends_on: &[&str]) -> PendingTask {
    PendingTask {
        task_id: id.into(),
        title: format!("title {id}"),
        description: format!("do {id}"),
        depends_on: depends_on.iter().map(|id| (*id).to_owned()).collect(),
        ..PendingTask::default()
    }
}

#[test]
fn a_finished_task_stays_finished_unless_it_is_reopened() {
    let d = desk();
    d.create(d.task("a"));
    let queue = d.queue();
    queue.append(set("a", TaskStatus::Done, false)).unwrap();
    let refused = queue.append(set("a", TaskStatus::Pending, false)).unwrap_err();
    assert!(matches!(refused, PostError::Task { code: "task_transition", .. }));
    assert_eq!(d.status("a"), Some(TaskStatus::Done));
    queue.append(set("a", TaskStatus::Pending, true)).unwrap();
    assert_eq!(d.status("a"), Some(TaskStatus::Pending));
    let before = fs::read_text(&d.home.dir().task_queue()).unwrap();
    assert!(matches!(
        queue.append(set("zz", TaskStatus::Done, false)),
        Err(PostError::Task { code: "task_unknown", .. })
    ));
    assert_eq!(fs::read_text(&d.home.dir().task_queue()).unwrap(), before);
}

#[test]
fn a_task_is_written_as_it_always_was() {
    let d = desk();
    let task = Task {
        source: TaskSource::Human,
        original_instruction: "見積を今日中に".into(),
        summary: "見積書作成".into(),
        deadline: Some("9h".into()),
        ..d.task("a1b2c3d4e5f6")
    };
    d.create(task);
    d.queue().append(set("a1b2c3d4e5f6", TaskStatus::Done, false)).unwrap();
    let expected = [
        r#"{"task_id":"a1b2c3d4e5f6","ts":"2026-03-31T09:20:00+09:00","source":"human","original_instruction":"見積を今日中に","assignee":"sakura","status":"pending","summary":"見積書作成","deadline":"2026-03-31T18:20:00+09:00","relay_chain":[],"updated_at":"2026-03-31T09:20:00+09:00","meta":{}}"#,
        r#"{"task_id":"a1b2c3d4e5f6","status":"done","updated_at":"2026-03-31T09:20:00+09:00","_event":"update"}"#,
    ];
    assert_eq!(fs::read_text(&d.home.dir().task_queue()).unwrap().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn what_cannot_be_is_refused() {
    let d = desk();
    let create = |task: Task| match d.queue().append(TaskEvent::Create(Box::new(task))) {
        Ok(()) => "",
        Err(PostError::Task { code, .. }) => code,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(create(Task { status: TaskStatus::Done, ..d.task("a") }), "task_transition");
    assert_eq!(create(Task { deadline: Some("soon".into()), ..d.task("a") }), "task_deadline");
    assert_eq!(create(Task { deadline: Some("2026-04-01".into()), ..d.task("a") }), "");
    assert_eq!(create(d.task("a")), "", "handing in again is no second task");
    assert_eq!(create(Task { original_instruction: "other".into(), ..d.task("a") }), "task_exists");
    let delegated = Task { status: TaskStatus::Delegated, ..d.task("b") };
    assert_eq!(create(delegated.clone()), "task_transition");
    let meta = json!({"delegated_to": "yuki", "delegated_task_id": "c"}).as_object().unwrap().clone();
    assert_eq!(create(Task { meta, ..delegated }), "");
    let long = Task { original_instruction: "あ".repeat(10_001), ..d.task("c") };
    assert_eq!(create(long), "");
    let stored = d.queue().find(&"c".parse().unwrap()).unwrap().unwrap();
    assert_eq!(stored.original_instruction.chars().count(), 10_000);
    assert_eq!(d.queue().list().unwrap().len(), 3);
}

#[test]
fn events_of_other_versions_and_accidents_add_up() {
    let d = desk();
    let lines = [
        "\u{feff}{\"task_id\":\"a\",\"ts\":\"2026-03-31T09:00:00\",\"source\":\"robot\",\"status\":\"pending\",\"summary\":5,\"mood\":\"x\",\"meta\":null}\r",
        "not json",
        r#"{"task_id":"b","status":"odd"}"#,
        r#"{"task_id":"zz","status":"done","_event":"update"}"#,
        r#"{"task_id":"a","status":"in_progress","updated_at":"2026-03-31T09:10:00+09:00","_event":"update"}"#,
        r#"{"task_id":"c","ts":"2026-03-31T09:00:00+09:00","source":"anima","status":"done"}"#,
        r#"{"task_id":"a","stat"#,
    ];
    put(&d.home.dir().task_queue(), lines.join("\n"));
    let tasks = d.queue().list().unwrap();
    assert_eq!(tasks.iter().map(|task| task.task_id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!((tasks[0].status, tasks[0].summary.as_str()), (TaskStatus::InProgress, "5"));
    assert_eq!(tasks[0].ts.to_rfc3339(), "2026-03-31T09:00:00+09:00");
    assert_eq!(d.queue().compact().unwrap(), 1);
    let text = fs::read_text(&d.home.dir().task_queue()).unwrap();
    for kept in ["not json", r#"{"task_id":"b","status":"odd"}"#, r#""mood":"x""#, r#"{"task_id":"a","stat"#] {
        assert!(text.contains(kept), "{kept}");
    }
    assert_eq!(d.status("c"), Some(TaskStatus::Done), "the archive still knows it");
}

#[test]
fn compacting_survives_a_crash_between_its_steps() {
    let d = desk();
    d.create(d.task("a"));
    d.create(d.task("b"));
    d.queue().append(set("a", TaskStatus::Done, false)).unwrap();
    let before = fs_err::read(d.home.dir().task_queue()).unwrap();
    assert_eq!(d.queue().compact().unwrap(), 1);
    let archive = fs::read_text(&d.home.dir().state("task_queue_archive.jsonl")).unwrap();
    // as if the process had died before the queue was replaced
    put(&d.home.dir().task_queue(), before);
    assert_eq!(d.queue().compact().unwrap(), 1);
    assert_eq!(fs::read_text(&d.home.dir().state("task_queue_archive.jsonl")).unwrap(), archive);
    assert_eq!(d.queue().list().unwrap().len(), 1);
    assert_eq!(d.queue().compact().unwrap(), 0);
}

#[test]
fn many_hands_lose_nothing_while_it_is_compacted() {
    let d = desk();
    std::thread::scope(|scope| {
        for hand in 0..3 {
            let d = &d;
            scope.spawn(move || {
                for n in 0..20 {
                    let id = format!("t{hand}_{n}");
                    d.create(d.task(&id));
                    d.queue().append(set(&id, TaskStatus::Done, false)).unwrap();
                    let same =
                        d.queue().add_if_absent(d.task(&format!("x{hand}_{n}")), |task| task.summary == "task x");
                    assert_eq!(same.unwrap(), None);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..10 {
                d.queue().compact().unwrap();
            }
        });
    });
    d.queue().compact().unwrap();
    assert_eq!(d.queue().list().unwrap().len(), 60);
    let (archived, _) = fs::read_lines(&d.home.dir().state("task_queue_archive.jsonl")).unwrap();
    assert_eq!(archived.len(), 60);
    let same = d.queue().add_if_absent(d.task("new"), |task| task.summary == "task x1_1").unwrap();
    assert_eq!(same.unwrap().task_id.as_str(), "x1_1");
}

#[tokio::test]
async fn a_batch_runs_in_the_order_of_its_needs() {
    let d = desk();
    let batch = vec![
        PendingTask { parallel: true, ..pending("a", &[]) },
        PendingTask { parallel: true, ..pending("b", &[]) },
        pending("c", &["a", "b"]),
        pending("d", &["c"]),
    ];
    d.book.submit(&d.owner, TaskSource::Anima, "build", batch).unwrap();
    assert_eq!(d.status("a"), Some(TaskStatus::Pending));
    let (a, a_id, _) = d.claim().await.unwrap();
    let (b, b_id, _) = d.claim().await.unwrap();
    assert_eq!((a_id.as_str(), b_id.as_str(), d.claim().await), ("a", "b", None));
    assert_eq!(d.status("a"), Some(TaskStatus::InProgress));
    d.book.settle(&a, Settled::Done).await.unwrap();
    d.book.settle(&b, Settled::Failed { reason: "no disk".into() }).await.unwrap();
    assert_eq!(d.claim().await, None);
    assert_eq!((d.status("a"), d.status("b")), (Some(TaskStatus::Done), Some(TaskStatus::Failed)));
    assert_eq!((d.status("c"), d.status("d")), (Some(TaskStatus::Failed), Some(TaskStatus::Failed)));
    let c = d.queue().find(&"c".parse().unwrap()).unwrap().unwrap();
    assert_eq!(c.meta["failure"], "dependency_failed:b");
    assert_eq!(fs::read_text(&d.file("failed/d.json.error")).unwrap(), "dependency_failed:c\n");
    assert!(!d.file("processing/a.json").exists() && !d.file("a.json").exists());
}

#[test]
fn a_batch_that_makes_no_sense_leaves_nothing() {
    let d = desk();
    let submit = |batch: &str, tasks| d.book.submit(&d.owner, TaskSource::Anima, batch, tasks);
    assert!(submit("b", vec![]).is_err());
    assert!(submit("../b", vec![pending("a", &[])]).is_err());
    assert!(submit("b", vec![pending("a", &[]), pending("a", &[])]).is_err());
    assert!(submit("b", vec![pending("a", &["zz"])]).is_err());
    assert!(submit("b", vec![pending("a", &["b"]), pending("b", &["a"])]).is_err());
    assert!(submit("b", vec![PendingTask { title: " ".into(), ..pending("a", &[]) }]).is_err());
    assert_eq!(d.queue().list().unwrap(), []);
    assert!(!d.file("a.json").exists() && !d.file(".batches").exists());
}

#[tokio::test]
async fn a_batch_handed_in_by_a_dying_process_is_whole() {
    let d = desk();
    let manifest = json!({"batch_id": "x", "source": "human", "tasks": [
        {"task_id": "a", "title": "A", "description": "a", "batch_id": "x"},
        {"task_id": "b", "title": "B", "description": "b", "batch_id": "x", "depends_on": ["a"]},
    ]});
    put(&d.file(".batches/x.json"), manifest.to_string());
    // it had got as far as the first entry
    d.create(Task { original_instruction: "a".into(), ..d.task("a") });
    let (lease, id, _) = d.claim().await.unwrap();
    assert_eq!(id, "a");
    d.book.settle(&lease, Settled::Done).await.unwrap();
    assert_eq!(d.claim().await.unwrap().1, "b");
    assert!(!d.file(".batches/x.json").exists());
}

#[tokio::test]
async fn a_crash_is_forgiven_once() {
    let d = desk();
    d.book.submit(&d.owner, TaskSource::Anima, "x", vec![pending("a", &[])]).unwrap();
    let (first, _, attempt) = d.claim().await.unwrap();
    assert_eq!((attempt, d.claim().await), (1, None));
    assert_eq!(d.book.release_all(&d.owner).unwrap(), 1);
    let (_, id, attempt) = d.claim().await.unwrap();
    assert_eq!((id.as_str(), attempt), ("a", 2));
    assert!(matches!(d.book.settle(&first, Settled::Done).await, Err(PostError::UnknownLease { .. })));
    d.clock.advance(LEASE);
    assert_eq!(d.claim().await, None);
    assert_eq!(d.status("a"), Some(TaskStatus::Failed));
    assert!(d.file("failed/a.json").exists());
}

#[tokio::test]
async fn a_task_that_ended_before_the_crash_is_not_done_again() {
    let d = desk();
    d.book.submit(&d.owner, TaskSource::Anima, "x", vec![pending("a", &[])]).unwrap();
    d.claim().await.unwrap();
    d.queue().append(set("a", TaskStatus::Done, false)).unwrap();
    d.book.release_all(&d.owner).unwrap();
    assert_eq!((d.claim().await, d.status("a")), (None, Some(TaskStatus::Done)));
    assert!(!d.file("processing/a.json").exists() && !d.file("failed/a.json").exists());
}

#[tokio::test]
async fn a_retry_waits_its_time() {
    let d = desk();
    d.book.submit(&d.owner, TaskSource::Anima, "x", vec![pending("a", &[])]).unwrap();
    let (lease, _, _) = d.claim().await.unwrap();
    d.book.settle(&lease, Settled::Retry { after: LEASE }).await.unwrap();
    assert_eq!((d.claim().await, d.status("a")), (None, Some(TaskStatus::Pending)));
    d.clock.advance(LEASE);
    assert_eq!(d.claim().await.unwrap().2, 2);
}

#[tokio::test]
async fn serial_tasks_wait_for_each_other_and_people_come_first() {
    let d = desk();
    d.book.submit(&d.owner, TaskSource::Anima, "x", vec![pending("a", &[]), pending("b", &[])]).unwrap();
    d.book.submit(&d.owner, TaskSource::Human, "y", vec![pending("c", &[])]).unwrap();
    let (lease, id, _) = d.claim().await.unwrap();
    assert_eq!((id.as_str(), d.claim().await), ("c", None));
    d.book.settle(&lease, Settled::Done).await.unwrap();
    assert_eq!(d.claim().await.unwrap().1, "a");
}

#[tokio::test]
async fn a_file_written_by_hand_is_enough() {
    let d = desk();
    put(
        &d.file("check.json"),
        "{\"description\":\"\\n倉庫を確認する\\n二行目\",\"reply_to\":{\"name\":\"yuki\"},\"x\":1}",
    );
    put(&d.file("broken.json"), "{\"task_id\":");
    put(&d.file("empty.json"), "{}");
    let claim = d.book.claim(&d.owner, LEASE).await.unwrap().unwrap();
    let work = PendingTask::of(&claim.item).unwrap();
    assert_eq!(
        (work.task_id.as_str(), work.title.as_str(), work.reply_to.as_str()),
        ("check", "倉庫を確認する", "yuki")
    );
    assert_eq!(work.extra["x"], 1);
    assert!(d.file("failed/broken.json").exists() && d.file("failed/empty.json.error").exists());
    assert_eq!(d.queue().list().unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_of_the_same_name_waits_for_the_running_one() {
    let d = desk();
    d.book.submit(&d.owner, TaskSource::Anima, "x", vec![PendingTask { parallel: true, ..pending("a", &[]) }]).unwrap();
    let (lease, _, _) = d.claim().await.unwrap();
    put(&d.file("a.json"), r#"{"title":"again","task_id":"b","parallel":true}"#);
    assert_eq!(d.claim().await, None);
    d.book.settle(&lease, Settled::Retry { after: Duration::ZERO }).await.unwrap();
    assert_eq!(d.claim().await.unwrap().1, "b");
    assert!(d.file("failed/a.json").exists());
}

#[tokio::test]
async fn what_waited_a_day_or_was_cancelled_is_not_begun() {
    let d = desk();
    d.book.submit(&d.owner, TaskSource::Anima, "x", vec![pending("a", &[]), pending("b", &[])]).unwrap();
    d.queue().append(set("a", TaskStatus::Cancelled, false)).unwrap();
    d.clock.advance(Duration::from_secs(25 * 3600));
    assert_eq!(d.claim().await, None);
    assert_eq!((d.status("a"), d.status("b")), (Some(TaskStatus::Cancelled), Some(TaskStatus::Cancelled)));
    assert!(d.file("failed/a.json").exists() && d.file("failed/b.json").exists());
}

#[test]
fn what_was_handed_over_comes_back() {
    let d = desk();
    let yuki = AnimaName::new("yuki").unwrap();
    let handed = |id: &str, to: &str, child: &str| Task {
        status: TaskStatus::Delegated,
        meta: json!({"delegated_to": to, "delegated_task_id": child}).as_object().unwrap().clone(),
        ..d.task(id)
    };
    d.create(handed("p1", "yuki", "k1"));
    d.create(handed("p2", "yuki", "k2"));
    d.create(handed("p3", "yuki", "gone"));
    d.create(handed("p4", "nobody", "k1"));
    let child = d.book.queue(&yuki);
    for id in ["k1", "k2"] {
        child.append(TaskEvent::Create(Box::new(Task { assignee: "yuki".into(), ..d.task(id) }))).unwrap();
    }
    child.append(set("k1", TaskStatus::Done, false)).unwrap();
    child.append(set("k2", TaskStatus::Failed, false)).unwrap();
    child.compact().unwrap();
    let changed = d.book.sync_delegated(&d.owner, Locale::En).unwrap();
    assert_eq!(changed.iter().map(TaskId::as_str).collect::<Vec<_>>(), ["p1", "p2"]);
    let p1 = d.queue().find(&"p1".parse().unwrap()).unwrap().unwrap();
    assert_eq!((p1.status, p1.summary.as_str()), (TaskStatus::Done, "task p1 (→yuki: done) task k1"));
    let live = |id: &str| d.book.live(&d.queue().find(&id.parse().unwrap()).unwrap().unwrap()).unwrap();
    assert_eq!((live("p3"), live("p4")), (Live::Archived, Live::Unknown));
}

#[test]
fn what_is_owed_comes_to_mind_in_order() {
    let d = desk();
    let mut tasks = vec![
        Task { summary: "集計".into(), ..d.task("aaaaaaaaaaaa") },
        Task {
            summary: "返信".into(),
            source: TaskSource::Human,
            deadline: Some("2026-03-31T18:00:00".into()),
            ..d.task("bbbbbbbbbbbb")
        },
        Task {
            summary: "古い約束".into(),
            deadline: Some("2026-03-31T08:00:00+09:00".into()),
            ..d.task("cccccccccccc")
        },
        Task { status: TaskStatus::Delegated, summary: "発注".into(), ..d.task("dddddddddddd") },
    ];
    tasks[0].status = TaskStatus::InProgress;
    tasks[0].meta.insert("executor".into(), json!("taskexec"));
    tasks[3].meta.insert("delegated_to".into(), json!("yuki"));
    d.clock.advance(Duration::from_secs(95 * 60));
    let child = Live::Known(Box::new(Task { status: TaskStatus::Done, ..d.task("k") }));
    let text = priming(&tasks, d.home.now(), Locale::En, Tokens(300), &|_| child.clone());
    let expected = [
        "- 📋 🔴 HIGH [bbbbbbbb] 返信 (assignee: sakura) ⏱️ 1h 35m ⚠️ STALE 📅 By 18:00",
        "- 🔄 in progress ⚪ [aaaaaaaa] 集計 (assignee: sakura) (auto: TaskExec) ⏱️ 1h 35m ⚠️ STALE",
        "🔴 OVERDUE aggregate (1): [cccccccc] 古い約束 -> list_tasks(status=\"pending\")",
        "- 📌 [dddddddd] 発注 → yuki (yuki: ✅ done) ⏱️ 1h 35m",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert!(Tokens::estimate(&priming(&tasks, d.home.now(), Locale::Ja, Tokens(40), &|_| Live::Unknown)) <= Tokens(40));
}

#[test]
fn a_result_is_kept_short_and_under_a_safe_name() {
    let d = desk();
    let id = TaskId::new("../x").unwrap();
    d.home.write_task_result(&id, &"あ".repeat(3000)).unwrap();
    assert_eq!(d.home.task_result(&id).unwrap().unwrap().chars().count(), 2000);
    assert!(d.home.dir().state("task_results/___x.md").exists());
}
