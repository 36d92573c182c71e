//! Sessions, notes, episodes, transcripts and the other small files.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::{
    home::{
        state::{IDLE, excerpt},
        tests::{home_at, put},
        transcript::TranscriptLine,
        usage::UsageRecord,
    },
    trust::Origin,
    units::Usage,
};

const CHAT: SessionKind = SessionKind::Chat;

fn main() -> ThreadId {
    ThreadId::main()
}

#[test]
fn a_session_state_is_found_archived_and_pruned() {
    let (_dir, home, clock) = home_at("2026-03-31T09:15:02+09:00");
    let directory = home.dir().shortterm(CHAT, &main());
    for n in 0..60 {
        let state = SessionState { session_id: n.to_string(), ..SessionState::default() };
        home.save_session(CHAT, &main(), state).unwrap();
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(home.session(CHAT, &main()).unwrap().unwrap().session_id, "59");
    home.archive_session(CHAT, &main()).unwrap();
    assert_eq!(home.session(CHAT, &main()).unwrap(), None);
    assert_eq!(list(&directory.join("archive")).unwrap().len(), MAX_ARCHIVED);
}

#[test]
fn an_older_or_stranger_session_state_opens() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let old = json!({"session_id": 7, "mood": "good", "tool_uses": [{"name": "Read", "input": {"a": 1}, "x": 2}]});
    put(&home.dir().file("shortterm").join("session_state.json"), old.to_string());
    put(&home.dir().file("shortterm").join("archive/20260101_000000.json"), "{}");
    let state = home.session(CHAT, &main()).unwrap().unwrap();
    assert_eq!((state.session_id.as_str(), &state.extra["mood"]), ("7", &json!("good")));
    assert_eq!(state.tool_uses[0].input, r#"{"a":1}"#);
    assert!(home.dir().shortterm(CHAT, &main()).join("archive/20260101_000000.json").exists());
}

#[test]
fn a_session_state_says_what_must_not_be_repeated() {
    let state = SessionState {
        accumulated_response: format!("始{}", "あ".repeat(8000)),
        tool_uses: (0..21).map(|n| ToolUse { name: format!("tool{n}"), ..ToolUse::default() }).collect(),
        ..SessionState::default()
    };
    let page = state.render(Locale::Ja);
    assert!(page.contains("繰り返さない") && page.contains("前半は省略") && !page.contains('始'));
    assert!(page.contains("- tool1:") && !page.contains("- tool0:"));
}

#[test]
fn checkpoints_and_engine_sessions_come_and_go() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let mut checkpoint = StreamCheckpoint { accumulated_text: "い".repeat(3000), ..StreamCheckpoint::default() };
    checkpoint.completed("send_message", "ok");
    home.save_checkpoint(CHAT, &main(), checkpoint).unwrap();
    let found = home.checkpoint(CHAT, &main()).unwrap().unwrap();
    assert_eq!((found.last_words().chars().count(), found.completed_tools.len()), (2000, 1));
    home.clear_checkpoint(CHAT, &main()).unwrap();
    assert_eq!(home.checkpoint(CHAT, &main()).unwrap(), None);

    let thread = ThreadId::new("side").unwrap();
    let path = home.dir().current_session(CHAT, &thread);
    put(&path, r#"{"session_id":"old","timestamp":"x","engine":"codex"}"#);
    home.leave_engine_session(CHAT, &thread).unwrap();
    assert!(path.exists(), "a session of another version stays for the way back");
    let session = SessionId::new("new").unwrap();
    home.set_engine_session(CHAT, &thread, Some((&session, ExecutionMode::Codex))).unwrap();
    assert_eq!(home.engine_session(CHAT, &thread, ExecutionMode::Codex).unwrap(), Some(session));
    assert_eq!(home.engine_session(CHAT, &thread, ExecutionMode::Sdk).unwrap(), None, "it is another engine's");
    assert_eq!(fs::read_json::<Value>(&path).unwrap()["engine"], "codex");
    home.leave_engine_session(CHAT, &thread).unwrap();
    assert!(!path.exists());
    home.set_engine_session(CHAT, &thread, None).unwrap();
    assert_eq!(home.engine_session(CHAT, &thread, ExecutionMode::Codex).unwrap(), None);
}

#[test]
fn working_notes_are_put_into_the_episode_before_they_go() {
    let (_dir, home, _) = home_at("2026-03-31T14:05:00+09:00");
    assert_eq!(home.current_state().unwrap(), IDLE);
    put(&home.dir().state("current_task.md"), "請求書の確認中");
    assert_eq!(home.current_state().unwrap(), "請求書の確認中");
    fs::create_dir(&home.dir().episode(home.today())).unwrap();
    assert!(home.put_state_away(&Origin::anima()).is_err());
    assert_eq!(home.current_state().unwrap(), "請求書の確認中");
    fs_err::remove_dir(home.dir().episode(home.today())).unwrap();
    home.put_state_away(&Origin::anima()).unwrap();
    assert_eq!(home.current_state().unwrap(), IDLE);
    let page = fs::read_text(&home.dir().episode(home.today())).unwrap();
    assert_eq!(page, "# 2026-03-31 行動ログ\n\n## 14:05 — 作業メモの退避\n\n請求書の確認中\n");
}

#[test]
fn an_episode_from_outside_marks_its_page() {
    let (_dir, home, _) = home_at("2026-03-31T14:05:00+09:00");
    home.append_episode("朝", "- a", &Origin::human()).unwrap();
    let path = home.append_episode("検索", "- b", &Origin::of(Origin::EXTERNAL_WEB).relayed_by(Origin::ANIMA)).unwrap();
    let page = fs::read_text(&path).unwrap();
    assert_eq!(
        page,
        "---\norigin: external_web\norigin_chain:\n- external_web\n---\n\n# 2026-03-31 行動ログ\n\n## 14:05 — 朝\n\n\
         - a\n\n## 14:05 — 検索\n\n- b\n"
    );
    home.append_episode("昼", "- c", &Origin::human()).unwrap();
    assert!(fs::read_text(&path).unwrap().starts_with(&page), "an append only appends");
}

#[test]
fn notes_for_a_prompt_begin_with_a_line() {
    assert_eq!(excerpt("short", 10), "short");
    assert_eq!(excerpt("first line\nxy\nsecond line", 14), "second line");
    assert_eq!(excerpt(&format!("{}\nb", "a".repeat(30)), 20), format!("{}\nb", "a".repeat(18)));
}

#[test]
fn a_heartbeat_leaves_its_mark_until_it_has_ended() {
    let (_dir, home, _) = home_at("2026-03-31T14:05:00+09:00");
    home.mark_heartbeat(3).unwrap();
    assert_eq!(home.heartbeat_mark().unwrap().unwrap().unread_count, 3);
    home.clear_heartbeat_mark().unwrap();
    assert_eq!(home.heartbeat_mark().unwrap(), None);
    assert_eq!(home.recovery_note().unwrap(), None);
}

#[test]
fn transcripts_and_usage_are_lines_of_their_day() {
    let (_dir, home, _) = home_at("2026-03-31T14:05:00+09:00");
    home.transcribe(TranscriptLine::new("human", "見積は？", &main())).unwrap();
    home.transcribe(TranscriptLine::new("assistant", "はい", &ThreadId::new("side").unwrap())).unwrap();
    let text = fs::read_text(&home.dir().transcript(home.today())).unwrap();
    let expected = [
        r#"{"ts":"2026-03-31T14:05:00+09:00","role":"human","content":"見積は？"}"#,
        r#"{"ts":"2026-03-31T14:05:00+09:00","role":"assistant","content":"はい","thread_id":"side"}"#,
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert_eq!(home.transcript(home.today()).unwrap().len(), 2);

    let usage = Usage { input_tokens: 1200, output_tokens: 300, ..Usage::default() };
    home.record_usage(UsageRecord { turns: 3, ..UsageRecord::new("claude-sonnet-4-6", "heartbeat", "S", usage) })
        .unwrap();
    let text = fs::read_text(&home.dir().token_usage(home.today())).unwrap();
    assert_eq!(
        text.trim_end(),
        r#"{"ts":"2026-03-31T14:05:00+09:00","model":"claude-sonnet-4-6","trigger":"heartbeat","mode":"S","input_tokens":1200,"output_tokens":300,"total_tokens":1500,"turns":3,"duration_ms":0,"estimated_cost_usd":null}"#
    );
    assert_eq!(home.usage(home.today()).unwrap()[0].total_tokens, 1500);
}

#[test]
fn what_was_solved_is_shown_once_and_for_a_week() {
    let (_dir, home, clock) = home_at("2026-03-31T11:00:00+09:00");
    home.note_resolution("版番号の取り違え").unwrap();
    clock.advance(Duration::from_secs(3600));
    home.note_resolution("版番号の取り違え").unwrap();
    let shown: Vec<_> = home.resolutions().unwrap().iter().map(crate::home::resolution::Resolution::line).collect();
    assert_eq!(shown, ["- [2026-03-31T12:00] sakura: 版番号の取り違え"]);
    clock.advance(Duration::from_secs(8 * 24 * 3600));
    assert_eq!(home.resolutions().unwrap(), []);
}
