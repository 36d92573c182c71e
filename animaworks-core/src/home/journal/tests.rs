//! Breaking off at every moment.

use std::fmt::Write as _;

use pretty_assertions::assert_eq;

use super::*;
use crate::home::tests::{home_at, put};

fn start() -> JournalStart {
    JournalStart { trigger: "message:tanaka".into(), from: "tanaka".into(), session_id: "9f1c".into() }
}

fn fresh(home: &AnimaHome) -> Journal {
    match home.open_journal(SessionKind::Chat, &ThreadId::main(), &start()).unwrap() {
        OpenedJournal::Fresh(journal) => journal,
        OpenedJournal::Orphan(orphan) => panic!("{orphan:?}"),
    }
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

#[test]
fn is_written_as_it_always_was() {
    let (_dir, home, clock) = home_at("2026-03-31T09:15:02+09:00");
    let mut journal = fresh(&home);
    clock.advance(Duration::from_secs(1));
    journal.text("確認します。").unwrap();
    let id = CallId::new("tu_1").unwrap();
    journal.tool_start(&tool("web_search"), Some(&id), r#"{"q":"…"}"#, Effect::Reads).unwrap();
    journal.tool_end(&tool("web_search"), Some(&id), "3 hits").unwrap();
    let expected = [
        r#"{"ev":"start","trigger":"message:tanaka","from":"tanaka","session_id":"9f1c","ts":"2026-03-31T09:15:02+09:00"}"#,
        r#"{"ev":"text","t":"確認します。","ts":"2026-03-31T09:15:03+09:00"}"#,
        r#"{"ev":"tool_start","tool":"web_search","args_summary":"{\"q\":\"…\"}","tool_id":"tu_1","effect":"reads","ts":"2026-03-31T09:15:03+09:00"}"#,
        r#"{"ev":"tool_end","tool":"web_search","result_summary":"3 hits","tool_id":"tu_1","ts":"2026-03-31T09:15:03+09:00"}"#,
    ];
    assert_eq!(fs::read_text(journal.path()).unwrap().lines().collect::<Vec<_>>(), expected);
    journal.finalize("done").unwrap();
    journal.finalize("done").unwrap();
    assert_eq!(home.orphans().unwrap(), []);
}

#[test]
fn text_waits_for_500_characters_or_a_second() {
    let (_dir, home, clock) = home_at("2026-03-31T09:15:02+09:00");
    let mut journal = fresh(&home);
    let lines = |journal: &Journal| fs::read_text(journal.path()).unwrap().lines().count();
    assert_eq!(journal.due_in(), None);
    journal.text(&"あ".repeat(499)).unwrap();
    assert_eq!((lines(&journal), journal.due_in()), (1, Some(Duration::from_secs(1))));
    journal.text("い").unwrap();
    assert_eq!((lines(&journal), journal.due_in()), (2, None));
    journal.text("う").unwrap();
    clock.advance(Duration::from_millis(900));
    assert!(!journal.flush_if_due().unwrap());
    clock.advance(Duration::from_millis(100));
    assert!(journal.flush_if_due().unwrap());
    assert_eq!(lines(&journal), 3);
    journal.close().unwrap();
    assert_eq!(home.orphans().unwrap()[0].text.chars().count(), 501);
}

#[test]
fn an_orphan_is_never_overwritten() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let mut journal = fresh(&home);
    journal.text("書きかけ").unwrap();
    journal.tool_start(&tool("send_message"), None, "{}", Effect::Communicates).unwrap();
    drop(journal);
    let OpenedJournal::Orphan(orphan) = home.open_journal(SessionKind::Chat, &ThreadId::main(), &start()).unwrap()
    else {
        panic!("an orphan was lost")
    };
    assert_eq!((orphan.text.as_str(), orphan.effects().count(), orphan.is_complete), ("書きかけ", 1, false));
    let kept = home.persist_recovered(&orphan).unwrap();
    assert!(kept.ends_with("episodes/2026-03-31_recovered-091502.md"));
    assert!(home.persist_recovered(&orphan).unwrap().ends_with("2026-03-31_recovered-091502-2.md"));
    assert!(fs::read_text(&kept).unwrap().contains("書きかけ"));
    home.confirm_recovered(&orphan).unwrap();
    fresh(&home);
}

#[test]
fn finds_journals_of_all_kinds_threads_and_versions() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let shortterm = home.dir().file("shortterm");
    for name in [
        "streaming_journal.jsonl",
        "streaming_journal_heartbeat.jsonl",
        "streaming_journal_cron.jsonl",
        "streaming_journal_task_exec.jsonl",
        "chat/side/streaming_journal.jsonl",
        "task/0a1b/streaming_journal.jsonl",
    ] {
        put(&shortterm.join(name), "");
    }
    let found = home.orphans().unwrap();
    let found: Vec<_> = found.iter().map(|orphan| (orphan.kind, orphan.thread.as_str(), orphan.is_empty())).collect();
    assert_eq!(
        found,
        [
            (SessionKind::Chat, "default", true),
            (SessionKind::Chat, "side", true),
            (SessionKind::Heartbeat, "default", true),
            (SessionKind::Heartbeat, "default", true),
            (SessionKind::Task, "default", true),
            (SessionKind::Task, "0a1b", true),
        ]
    );
}

#[test]
fn ends_find_their_starts() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let mut text = String::new();
    for line in [
        r#"{"ev":"tool_start","tool":"a","tool_id":"1","args_summary":"x"}"#,
        r#"{"ev":"tool_start","tool":"a","tool_id":"2","args_summary":"y"}"#,
        r#"{"ev":"tool_end","tool":"a","tool_id":"1","result_summary":"one"}"#,
        r#"{"ev":"tool_end","tool":"a","result_summary":"two"}"#,
        r#"{"ev":"tool_end","tool":"b","result_summary":"lone"}"#,
        r#"{"ev":"text","t":"torn"#,
    ] {
        writeln!(text, "{line}").unwrap();
    }
    put(&home.dir().journal(SessionKind::Chat, &ThreadId::main()), text);
    let orphan = home.orphan(SessionKind::Chat, &ThreadId::main()).unwrap().unwrap();
    let calls: Vec<_> = orphan
        .calls
        .iter()
        .map(|call| (call.args_summary.as_str(), call.result_summary.as_deref(), call.status == CallStatus::Completed))
        .collect();
    assert_eq!(calls, [("x", Some("one"), true), ("y", Some("two"), true), ("", Some("lone"), true)]);
}

#[test]
fn a_full_disk_keeps_the_text_and_tries_again() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let mut journal = fresh(&home);
    let path = journal.path().to_owned();
    fs_err::remove_file(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    assert!(journal.text(&"あ".repeat(500)).is_err());
    assert!(journal.is_degraded());
    fs_err::remove_dir(&path).unwrap();
    journal.text(&"い".repeat(500)).unwrap();
    assert!(!journal.is_degraded());
    assert_eq!(home.orphans().unwrap()[0].text.chars().count(), 1000);
}

/// Cut after any byte, the text is a beginning of what was written, and all of it that was whole on disk.
#[test]
fn every_cut_leaves_a_beginning() {
    let (_dir, home, clock) = home_at("2026-03-31T09:15:02+09:00");
    let mut journal = fresh(&home);
    let mut said = String::new();
    for n in 0..6 {
        let piece = format!("第{n}段「\"引用\"」\n🌸");
        said.push_str(&piece);
        journal.text(&piece).unwrap();
        clock.advance(Duration::from_millis(700));
        if n == 3 {
            journal.tool_start(&tool("write_memory_file"), None, "{}", Effect::Remembers).unwrap();
        }
    }
    let path = journal.path().to_owned();
    let unflushed = journal.buffer.clone();
    drop(journal);
    let bytes = fs_err::read(&path).unwrap();
    let mut before = 0;
    for cut in 0..=bytes.len() {
        put(&path, &bytes[..cut]);
        let orphan = home.orphan(SessionKind::Chat, &ThreadId::main()).unwrap().unwrap();
        assert!(said.starts_with(&orphan.text), "cut at {cut}");
        assert!(orphan.text.len() >= before, "a later cut knows no less");
        before = orphan.text.len();
    }
    assert_eq!(before + unflushed.len(), said.len());
}
