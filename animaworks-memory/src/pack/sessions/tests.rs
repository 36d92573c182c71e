//! Transcripts as a coding agent leaves them.

use animaworks_core::fs::{Privacy, write_atomic};
use serde_json::json;

use super::*;

struct Place {
    dir: tempfile::TempDir,
    sessions: Sessions,
}

fn id(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn key(n: usize) -> SessionKey {
    SessionKey { project: "-home-yuki-app".to_owned(), id: id(n) }
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", dir.path())]);
        Self { sessions: Sessions::of(&env, &Settings::default()), dir }
    }

    fn file(&self, n: usize) -> PathBuf {
        self.dir.path().join(format!(".claude/projects/-home-yuki-app/{}.jsonl", id(n)))
    }

    /// A transcript whose time is its number.
    fn put(&self, n: usize, records: &[Value]) {
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        write_atomic(&self.file(n), lines.as_bytes(), Privacy::Normal).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_780_000_000 + n as u64);
        fs_err::OpenOptions::new().write(true).open(self.file(n)).unwrap().file().set_modified(time).unwrap();
    }

    fn ids(&self, archived: bool) -> Vec<String> {
        self.sessions.list(archived, None, 0, 100).sessions.into_iter().map(|row| row.session_id).collect()
    }
}

fn user(text: &str) -> Value {
    json!({"type": "user", "cwd": "/home/yuki/my app", "timestamp": "2026-06-01T00:00:00Z", "message": {"role": "user", "content": text}})
}

fn assistant(text: &str) -> Value {
    json!({"type": "assistant", "message": {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]}})
}

#[test]
fn a_list_shows_the_newest_with_their_best_title_and_the_pinned_above() {
    let place = Place::new();
    place
        .put(1, &[user("<command-name>/clear</command-name>"), user("Where is the\nlamp?"), assistant("In the hall.")]);
    place.put(
        2,
        &[
            user("x"),
            json!({"type": "ai-title", "aiTitle": "made"}),
            json!({"type": "custom-title", "customTitle": "given"}),
        ],
    );
    fs_err::write(place.file(1).with_file_name("agent-1.jsonl"), "{}").unwrap();
    fs_err::write(place.file(1).with_file_name("notes.txt"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.file(3)).unwrap();
    let all = place.sessions.list(false, None, 0, 10);
    assert_eq!((all.total, all.projects.len()), (2, 1));
    assert_eq!(all.sessions[0].title, "given");
    assert_eq!(
        (all.sessions[1].title.as_str(), all.sessions[1].first.as_str()),
        ("Where is the lamp?", "Where is the lamp?")
    );
    assert_eq!(all.sessions[1].resume_command, format!("cd '/home/yuki/my app' && claude --resume {}", id(1)));
    place.sessions.pin(&key(1), true).unwrap();
    assert_eq!(place.ids(false), [id(1), id(2)]);
    place.sessions.pin(&key(1), false).unwrap();
    assert_eq!(place.ids(false), [id(2), id(1)]);
    assert_eq!(place.sessions.list(false, Some("other"), 0, 10).total, 0);
    assert_eq!(place.sessions.list(false, None, 1, 10).sessions.len(), 1);
}

#[test]
fn archiving_and_restoring_leave_the_same_bytes() {
    let place = Place::new();
    place.put(1, &[user("keep me")]);
    let (bytes, time) =
        (fs_err::read(place.file(1)).unwrap(), fs_err::metadata(place.file(1)).unwrap().modified().unwrap());
    place.sessions.archive(&key(1)).unwrap();
    assert!(!place.file(1).exists() && place.ids(false).is_empty());
    assert_eq!(place.ids(true), [id(1)]);
    assert_eq!(place.sessions.read(&key(1), true, 0).unwrap().said[0].text, "keep me");
    place.put(1, &[user("another one")]);
    assert!(matches!(place.sessions.restore(&key(1)), Err(SessionError::InTheWay { .. })));
    fs_err::remove_file(place.file(1)).unwrap();
    place.sessions.restore(&key(1)).unwrap();
    assert_eq!(fs_err::read(place.file(1)).unwrap(), bytes);
    assert_eq!(fs_err::metadata(place.file(1)).unwrap().modified().unwrap(), time);
    assert!(matches!(place.sessions.restore(&key(1)), Err(SessionError::Missing { .. })));
}

#[test]
fn a_live_session_stays_and_hostile_names_lead_nowhere() {
    let place = Place::new();
    place.put(1, &[user("x")]);
    let registry = place.dir.path().join(".claude/sessions");
    let entry = |pid: u32| json!({"pid": pid, "sessionId": id(1)}).to_string();
    write_atomic(&registry.join("1.json"), entry(std::process::id()).as_bytes(), Privacy::Normal).unwrap();
    fs_err::write(registry.join("broken.json"), "{").unwrap();
    assert!(place.sessions.list(false, None, 0, 1).sessions[0].live);
    assert!(matches!(place.sessions.archive(&key(1)), Err(SessionError::Live { .. })));
    fs_err::write(registry.join("1.json"), entry(i32::MAX as u32)).unwrap();
    place.sessions.archive(&key(1)).unwrap();
    place.sessions.restore(&key(1)).unwrap();
    for bad in ["", "../x", "x", "00000000-0000-4000-8000-00000000000/"] {
        let key = SessionKey { id: bad.to_owned(), ..key(1) };
        assert!(matches!(place.sessions.read(&key, false, 0), Err(SessionError::BadId { .. })), "{bad}");
    }
    for bad in ["", "..", ".", "a/../-home-yuki-app", "-home-yuki-app/", "/etc", "x\0", "..\\x", "nowhere"] {
        let key = SessionKey { project: bad.to_owned(), ..key(1) };
        assert!(matches!(place.sessions.archive(&key), Err(SessionError::Missing { .. })), "{bad:?}");
    }
    let outside = place.dir.path().join(format!("outside/{}.jsonl", id(1)));
    write_atomic(&outside, b"{}\n", Privacy::Normal).unwrap();
    std::os::unix::fs::symlink(outside.parent().unwrap(), place.dir.path().join(".claude/projects/link")).unwrap();
    let through = SessionKey { project: "link".to_owned(), ..key(1) };
    assert!(place.sessions.read(&through, false, 0).is_err() && outside.exists());
    assert!(place.sessions.archive(&through).is_err() && outside.exists());
}

#[test]
fn a_search_reads_what_was_said_and_says_how_far_it_came() {
    let place = Place::new();
    for n in 0..100 {
        place.put(n, &[user(&format!("question {n}")), assistant("いつもの答え")]);
    }
    place.put(
        7,
        &[
            user("hello"),
            json!({"type": "user", "message": {"content": "ランプは東京駅の LAMP 売り場"}}),
            assistant("done"),
        ],
    );
    let go_on = || true;
    let found = place.sessions.search("lamp 東京駅", 0, 10, &go_on);
    assert_eq!((found.hits.len(), found.searched, found.total), (1, 100, 100));
    assert!(found.hits[0].snippet.contains("東京駅"), "{:?}", found.hits[0].snippet);
    assert_eq!(
        place.sessions.read(&key(7), false, found.hits[0].offset).unwrap().said[0].text,
        "ランプは東京駅の LAMP 売り場"
    );
    // a name of the format is not something that was said
    assert_eq!(place.sessions.search("timestamp", 0, 10, &go_on).hits, []);
    let stopped = place.sessions.search("lamp", 0, 10, &|| false);
    assert_eq!((stopped.hits.len(), stopped.searched), (0, AT_A_TIME));
    let rest = place.sessions.search("lamp", stopped.searched, 10, &go_on);
    assert_eq!((rest.hits.len(), rest.searched), (1, 100));
    assert_eq!(place.sessions.search("   ", 0, 10, &go_on).hits, []);
}

#[test]
fn damaged_lines_are_counted_and_long_transcripts_come_in_pages() {
    let place = Place::new();
    let long = "長い話。".repeat(4_000);
    let records: Vec<Value> = (0..20).map(|n| user(&format!("{n} {long}"))).collect();
    place.put(1, &records);
    let mut bytes = fs_err::read(place.file(1)).unwrap();
    bytes.extend_from_slice(b"{\"type\": \"user\", \"mess\n\xff\xfe\n\n");
    fs_err::write(place.file(1), bytes).unwrap();
    let (mut from, mut said, mut damaged, mut pages) = (0, 0, 0, 0);
    loop {
        let page = place.sessions.read(&key(1), false, from).unwrap();
        said += page.said.len();
        damaged += page.damaged;
        pages += 1;
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!((said, damaged), (20, 2));
    assert!(pages > 1);
}
