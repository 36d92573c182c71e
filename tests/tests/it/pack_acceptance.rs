//! What the memory pack promises, one test for each of twelve promises, through the real binary.

use std::{fs, path::PathBuf};

use animaworks_testkit::program::{Ended, Program};
use serde_json::Value;

use crate::pack_dashboard::{Page, session_id};

fn memory(program: &Program) -> PathBuf {
    let dir = program.home().join(".claude/memory");
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn json(program: &Program, args: &[&str]) -> Value {
    let args: Vec<&str> = ["--json", "pack"].into_iter().chain(args.iter().copied()).collect();
    serde_json::from_str(&program.ok(args)).unwrap()
}

fn found(program: &Program, question: &str) -> Vec<String> {
    let hits = json(program, &["search", "--", question]);
    hits.as_array().unwrap().iter().map(|hit| format!("{}:{}", hit["source"].as_str().unwrap(), hit["line"])).collect()
}

fn write(program: &Program, file: &str, heading: &str, body: &str, replace: Option<&str>) -> Ended {
    let mut args = vec!["--json", "pack", "write", "--file", file, "--heading", heading, "--body", body];
    args.extend(replace.iter().flat_map(|replace| ["--replace", replace]));
    program.run(args)
}

/// Notes in two languages.
fn notes(program: &Program) {
    let dir = memory(program);
    fs::write(dir.join("ja.md"), "## 2026-06-11 決定\n会議で決めた。東京駅の店舗も同じ。\n").unwrap();
    fs::write(dir.join("en.md"), "## 2026-05-02 Deploy\nWe deployed with the blue script.\n").unwrap();
}

#[test]
fn promise_01_indexing_twice_adds_nothing() {
    let program = Program::new();
    notes(&program);
    assert_eq!(json(&program, &["reindex"])["added"], 2);
    let again = json(&program, &["reindex"]);
    assert_eq!((&again["added"], &again["removed"], &again["files"]), (&0.into(), &0.into(), &2.into()));
}

#[test]
fn promise_02_a_lost_index_comes_back_with_the_same_results() {
    let program = Program::new();
    notes(&program);
    let questions = ["会議", "東京駅", "deploy", "blue script"];
    let before: Vec<Value> = questions.iter().map(|question| json(&program, &["search", question])).collect();
    fs::remove_file(memory(&program).join(".pack/memory_index.db")).unwrap();
    json(&program, &["reindex"]);
    for (question, before) in questions.iter().zip(before) {
        assert!(!before.as_array().unwrap().is_empty(), "{question}");
        assert_eq!(json(&program, &["search", question]), before, "{question}");
    }
}

#[test]
fn promise_03_two_kanji_three_kanji_and_english_are_each_found() {
    let program = Program::new();
    notes(&program);
    for (question, place) in [("会議", "ja.md:1"), ("東京駅", "ja.md:1"), ("deploy", "en.md:1"), ("鍵", "")] {
        assert_eq!(found(&program, question).join(","), place, "{question}");
    }
}

#[test]
fn promise_04_a_duplicate_is_refused_whatever_its_white_space() {
    let program = Program::new();
    assert_eq!(write(&program, "a.md", "2026-06-11 締め", "毎月 25日。\n理由は経理。", None).code, 0);
    for body in ["毎月 25日。\n理由は経理。", "  毎月 25日。  \n\n理由は経理。 "] {
        let refused = write(&program, "a.md", "2026-06-11 締め", body, None);
        assert_eq!(refused.code, 6);
        assert!(refused.out.contains("\"duplicate\""), "{refused:?}");
    }
    assert_eq!(fs::read_to_string(memory(&program).join("a.md")).unwrap().matches("## ").count(), 1);
}

#[test]
fn promise_05_a_full_file_is_refused_with_its_blocks_until_they_are_merged() {
    let program = Program::new();
    let head = "## 2026-06-01 long\n";
    let text = format!("{head}{}\n", "あ".repeat(9_990 - head.chars().count() - 1));
    assert_eq!(text.chars().count(), 9_990);
    fs::write(memory(&program).join("full.md"), text).unwrap();
    let refused = write(&program, "full.md", "2026-06-02 next", &"い".repeat(50), None);
    assert_eq!(refused.code, 6);
    let told: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!((&told["reason"]["code"], &told["headings"][0]), (&"too_long".into(), &"2026-06-01 long".into()));
    assert_eq!(write(&program, "full.md", "2026-06-01 short", "Merged.", Some("long")).code, 0);
    assert_eq!(write(&program, "full.md", "2026-06-02 next", &"い".repeat(50), None).code, 0);
}

#[test]
fn promise_06_a_day_seen_from_today_is_refused() {
    let program = Program::new();
    let refused = write(&program, "a.md", "昨日の決定", "x", None);
    assert_eq!(refused.code, 6);
    assert!(refused.out.contains("relative_date") && !memory(&program).join("a.md").exists(), "{refused:?}");
}

#[test]
fn promise_07_five_hundred_files_are_told_in_four_thousand_characters() {
    let program = Program::new();
    let dir = memory(&program);
    for n in 0..500 {
        fs::write(dir.join(format!("note-{n:03}-with-a-rather-long-name.md")), "## 2026-01-01 x\ny\n").unwrap();
    }
    let newest = "## 2026-06-11 newest\nThe lantern is being repaired.\n\n## 2026-06-10 before\nolder\n";
    fs::write(dir.join("CONTEXT.md"), newest).unwrap();
    let text = program.ok(["pack", "context"]);
    assert!(text.chars().count() <= 4_000);
    for part in ["animaworks pack search", "The lantern is being repaired.", "note-000"] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn promise_08_rotating_twice_archives_each_block_once() {
    let program = Program::new();
    let dir = memory(&program);
    let blocks: String = (1..=9).rev().map(|n| format!("## 2026-06-0{n} b{n}\ntext {n}\n\n")).collect();
    fs::write(dir.join("CONTEXT.md"), blocks).unwrap();
    program.ok(["pack", "rotate"]);
    let state =
        || (fs::read(dir.join("CONTEXT.md")).unwrap(), fs::read(dir.join("archive/context_archive.md")).unwrap());
    let first = state();
    program.ok(["pack", "rotate"]);
    assert_eq!(state(), first);
    let archive = String::from_utf8(first.1).unwrap();
    for n in 1..=4 {
        assert_eq!(archive.matches(&format!("text {n}\n")).count(), 1, "{n}");
    }
}

#[test]
fn promise_09_the_same_block_in_two_files_outlives_one_of_them() {
    let program = Program::new();
    let dir = memory(&program);
    for name in ["a.md", "b.md"] {
        fs::write(dir.join(name), "## 2026-06-01 same\nThe lantern stands in the hall.\n").unwrap();
    }
    assert_eq!(found(&program, "lantern"), ["a.md:1", "b.md:1"]);
    fs::remove_file(dir.join("a.md")).unwrap();
    assert_eq!(found(&program, "lantern"), ["b.md:1"]);
}

#[test]
fn promise_10_the_dashboard_only_looks_and_its_moves_undo_one_another() {
    let program = Program::new();
    let project = program.home().join(".claude/projects/-work");
    fs::create_dir_all(&project).unwrap();
    let file = project.join(format!("{}.jsonl", session_id(1)));
    let bytes = "{\"type\":\"user\",\"message\":{\"content\":\"hello\"}}\n";
    fs::write(&file, bytes).unwrap();
    let registry = program.home().join(".claude/sessions");
    fs::create_dir_all(&registry).unwrap();
    let live = format!("{{\"pid\": {}, \"sessionId\": \"{}\"}}", std::process::id(), session_id(1));
    fs::write(registry.join("1.json"), live).unwrap();
    let page = Page::open(&program);
    assert_eq!(page.post("/api/config", &Value::Null).0, 405);
    assert_eq!(page.raw("GET", "/", "evil.example", "").0, 403);
    let key = serde_json::json!({"project": "-work", "id": session_id(1)});
    assert_eq!(page.post("/api/archive-session", &key).0, 409);
    fs::remove_file(registry.join("1.json")).unwrap();
    assert_eq!(page.post("/api/archive-session", &key).0, 200);
    assert!(!file.exists());
    assert_eq!(page.post("/api/restore-session", &key).0, 200);
    assert_eq!(fs::read_to_string(&file).unwrap(), bytes);
}

#[test]
fn promise_11_a_save_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let program = Program::new();
    let file = memory(&program).join("a.md");
    let old = format!("## 2026-06-01 old\n{}\n", "old ".repeat(1_500));
    let new = format!("## 2026-06-02 new\n{}\n\n", "new ".repeat(1_500).trim_end());
    for moment in 0..12_u64 {
        fs::write(&file, &old).unwrap();
        let args = ["pack", "write", "--file", "a.md", "--replace", "old", "--heading", "2026-06-02 new", "--body"];
        let mut child = program.command(args).arg("new ".repeat(1_500)).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(moment * 3));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text == old || text == new, "after {} ms: {} bytes", moment * 3, text.len());
    }
}

#[test]
fn promise_12_no_question_is_an_error() {
    let program = Program::new();
    notes(&program);
    for question in ["a\"b OR *", "NEAR(", "'; DROP TABLE chunks;", "%", "_", "-", "heading:x", "🦀", " "] {
        assert_eq!(program.run(["pack", "search", "--", question]).code, 0, "{question}");
    }
    assert_eq!(found(&program, "会議"), ["ja.md:1"]);
}
