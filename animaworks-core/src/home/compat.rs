//! A home as the Python version leaves it: it opens, is lived in, and can go back.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pretty_assertions::assert_eq;

use super::{
    AnimaHome,
    activity::{Activity, ActivityQuery, Room, render},
    conversation::Turn,
    post_office::{DmQuery, FilePostOffice},
    task_book::{FileTaskBook, PendingTask},
    transcript::TranscriptLine,
    usage::UsageRecord,
};
use crate::{
    frontmatter::Document,
    fs,
    i18n::Locale,
    ids::{AnimaName, BoardName, ThreadId},
    layout::DataDir,
    message::SenderKind,
    mode::ExecutionMode,
    seams::{BoardPost, PostOffice, Settled, TaskBook, TaskEvent, TaskUpdate},
    task::TaskStatus,
    test_support::{ManualClock, SerialIds},
    trigger::SessionKind,
    trust::Origin,
    units::Usage,
};

const NOW: &str = "2026-03-31T12:00:00+09:00";
const CHAT: SessionKind = SessionKind::Chat;

struct Visit {
    _dir: tempfile::TempDir,
    locale: Locale,
    peer: &'static str,
    human: &'static str,
    before: BTreeMap<PathBuf, Vec<u8>>,
    home: AnimaHome,
    office: FilePostOffice,
    book: FileTaskBook,
}

fn visit(locale: Locale) -> Visit {
    let (me, peer, human) = match locale {
        Locale::Ja => ("sakura", "yuki", "tanaka"),
        Locale::En => ("mira", "otto", "jensen"),
    };
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/python-home").join(locale.as_str());
    let dir = tempfile::tempdir().unwrap();
    let before = files(&fixture);
    for (path, bytes) in &before {
        fs::write_atomic(&dir.path().join(path), bytes, fs::Privacy::Normal).unwrap();
    }
    let (data, zone) = (DataDir::new(dir.path()), chrono_tz::Asia::Tokyo);
    let clock = Arc::new(ManualClock::at(NOW));
    let ids = Arc::new(SerialIds::default());
    Visit {
        locale,
        peer,
        human,
        before,
        home: AnimaHome::open(data.anima(&AnimaName::new(me).unwrap()), zone, clock.clone()).with_locale(locale),
        office: FilePostOffice::new(data.clone(), zone, clock.clone(), ids.clone()),
        book: FileTaskBook::new(data, zone, clock, ids),
        _dir: dir,
    }
}

/// Every file below a directory, by its relative path.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for path in super::list(&directory).unwrap() {
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs_err::read(&path).unwrap());
            }
        }
    }
    found
}

impl Visit {
    fn root(&self) -> &Path {
        self.home.dir().data().root()
    }

    fn opens(&self) {
        let home = &self.home;
        let day = home.load(&ActivityQuery::days(1)).unwrap();
        let kinds: Vec<_> = day.iter().map(|entry| (entry.line, entry.activity.kind.as_str())).collect();
        let expected = [
            (1, "dm_received"),
            (2, "message_received"),
            (3, "response_sent"),
            (4, "odd_future_event"),
            (5, "heartbeat_end"),
        ];
        assert_eq!(kinds, expected);
        assert!(day.iter().all(|entry| entry.at.is_some()));
        let told = render(&day, home.zone(), self.locale, Room::Chars(5000));
        assert!(told.contains(&format!("DM {}:", self.peer)), "{told}");
        assert_eq!(home.load(&ActivityQuery::days(2)).unwrap().len(), 6);

        assert_eq!(home.threads().unwrap().len(), 2);
        let talk = home.conversation(&ThreadId::main()).unwrap();
        assert_eq!((talk.conversation.turns.len(), talk.set_aside), (3, None));
        assert_eq!((talk.conversation.compressed_turn_count, talk.conversation.unfinalized().len()), (12, 1));
        let session = home.engine_session(CHAT, &ThreadId::main(), ExecutionMode::Sdk).unwrap();
        assert_eq!(session.unwrap().as_str(), "e3b0c442");
        assert!(home.current_state().unwrap().contains("v3"));
        assert!(home.backlog().unwrap().starts_with("- "));
        assert_eq!(home.transcript(home.today()).unwrap()[0].from, self.human);
        assert_eq!(home.usage(home.today()).unwrap()[0].total_tokens, 1500);
        assert_eq!(home.resolutions().unwrap().len(), 1);
        assert_eq!(home.dm_history(self.peer, &DmQuery::default()).unwrap().len(), 2);

        for (path, keys, problem) in [
            ("knowledge/customer-context.md", 11, false),
            ("procedures/monthly-close.md", 10, false),
            ("skills/invoice/SKILL.md", 3, false),
            ("knowledge/broken.md", 0, true),
        ] {
            let page = Document::parse(&fs::read_text(&home.dir().file(path)).unwrap());
            assert_eq!((page.fields().len(), page.problem().is_some()), (keys, problem), "{path}");
        }
    }

    async fn is_lived_in(&self) {
        let (home, main) = (&self.home, ThreadId::main());
        let orphans = home.orphans().unwrap();
        assert_eq!((orphans.len(), orphans[0].calls.len(), orphans[0].from.as_str()), (1, 1, self.human));
        assert!(home.append_interrupted(&main, &orphans[0].text, Vec::new()).unwrap());
        home.confirm_recovered(&orphans[0]).unwrap();

        home.log(Activity::new(Activity::MESSAGE_RECEIVED).from(self.human).content("…")).unwrap();
        home.append_turns(&main, vec![Turn::new(self.human, "…"), Turn::assistant("!")]).unwrap();
        home.append_turn(&ThreadId::new("side").unwrap(), Turn::human("…")).unwrap();
        home.transcribe(TranscriptLine::new("assistant", "!", &main)).unwrap();
        home.record_usage(UsageRecord::new("m", "chat", "A", Usage::default())).unwrap();
        home.append_episode("!", "- !", &Origin::human()).unwrap();
        home.set_current_state("status: idle").unwrap();
        home.note_resolution("!").unwrap();
        let session = home.session(CHAT, &main).unwrap().unwrap();
        home.save_session(CHAT, &main, session).unwrap();
        let id = home.engine_session(CHAT, &main, ExecutionMode::Sdk).unwrap().unwrap();
        home.set_engine_session(CHAT, &main, Some((&id, ExecutionMode::Sdk))).unwrap();

        let lease = Duration::from_secs(60);
        let letters = self.office.claim(home.name(), 10, lease).await.unwrap();
        assert_eq!((letters.len(), letters[0].item.from.as_str()), (1, self.peer));
        self.office.settle(&letters[0].lease, Settled::Done).await.unwrap();
        let board = BoardName::new("general").unwrap();
        assert_eq!(self.office.board(&board, home.name(), None, 20).await.unwrap().len(), 2);
        let post = BoardPost {
            ts: home.now().fixed_offset(),
            from: home.name().to_string(),
            text: "!".into(),
            source: SenderKind::Anima,
            extra: serde_json::Map::new(),
        };
        self.office.publish(&board, post).await.unwrap();

        let tasks = self.book.list(home.name()).await.unwrap();
        assert_eq!(tasks.len(), 3);
        let claim = self.book.claim(home.name(), lease).await.unwrap().unwrap();
        assert_eq!(PendingTask::of(&claim.item).unwrap().reply_to, self.peer);
        self.book.settle(&claim.lease, Settled::Retry { after: lease }).await.unwrap();
        assert_eq!(self.book.sync_delegated(home.name(), self.locale).unwrap().len(), 1);
        let update = TaskUpdate {
            task_id: "a1b2c3d4e5f6".parse().unwrap(),
            status: Some(TaskStatus::InProgress),
            summary: None,
            meta: None,
            reopen: false,
        };
        self.book.append(home.name(), TaskEvent::Update(update)).await.unwrap();
        assert_eq!(self.book.queue(home.name()).compact().unwrap(), 2);

        for path in ["knowledge/customer-context.md", "procedures/monthly-close.md", "knowledge/broken.md"] {
            let path = home.dir().file(path);
            let mut page = Document::parse(&fs::read_text(&path).unwrap());
            page.set("version", 3);
            fs::write_atomic(&path, page.to_string().as_bytes(), fs::Privacy::Normal).unwrap();
        }
    }

    fn can_go_back(&self) {
        let after = files(self.root());
        let me = Path::new("animas").join(self.home.name().as_str());
        let moved = [
            ("shortterm/session_state.json", "shortterm/chat/session_state.json"),
            ("state/current_task.md", "state/current_state.md"),
        ];
        let inbox = Path::new("shared/inbox").join(self.home.name().as_str());
        for (path, old) in &self.before {
            let inside = path.strip_prefix(&me).unwrap_or(Path::new(""));
            if inside == Path::new("shortterm/streaming_journal.jsonl") {
                assert!(!after.contains_key(path), "the journal was put away");
                continue;
            }
            let now_at = moved.iter().find(|(from, _)| inside == Path::new(from)).map(|(_, to)| me.join(to));
            let now_at = match path.strip_prefix(&inbox) {
                Ok(letter) => inbox.join("processed").join(letter),
                Err(_) => now_at.unwrap_or_else(|| path.clone()),
            };
            let new = after.get(&now_at).unwrap_or_else(|| panic!("{} is gone", path.display()));
            let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
            let archive = me.join("state/task_queue_archive.jsonl");
            let archived = String::from_utf8_lossy(after.get(&archive).map(Vec::as_slice).unwrap_or_default());
            for mark in old.split(['"', '\r', '\n', ' ']).filter(|word| word.starts_with("keep-")) {
                let finished = path.ends_with("task_queue.jsonl") && archived.contains(mark);
                assert!(new.contains(mark) || finished, "{} lost {mark}", path.display());
            }
            let name = path.to_string_lossy();
            if name.ends_with(".jsonl") && !name.ends_with("task_queue.jsonl") {
                assert!(new.starts_with(&*old), "{name} only grows");
            }
            if name.ends_with(".md") && name.contains("episodes") {
                assert!(new.starts_with(&*old), "{name} only grows");
            }
            let untouched = ["pending.md", "index_meta.json", "SKILL.md", "index.md", ".bak", "facts/", "skill_usage"];
            if untouched.iter().any(|part| name.contains(part)) {
                assert_eq!(old, new, "{name}");
            }
            if Path::new(&*name).extension().is_some_and(|extension| extension == "json") {
                let text = new.strip_prefix('\u{feff}').unwrap_or(&new);
                assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{name}");
            }
        }
        assert!(after.keys().all(|path| !path.to_string_lossy().ends_with(".tmp")));
    }
}

#[tokio::test]
async fn a_python_home_opens_is_lived_in_and_can_go_back() {
    for locale in Locale::ALL {
        let visit = visit(locale);
        visit.opens();
        visit.is_lived_in().await;
        visit.can_go_back();
    }
}

#[test]
fn opening_changes_nothing() {
    for locale in Locale::ALL {
        let visit = visit(locale);
        visit.opens();
        assert_eq!(files(visit.root()), visit.before);
    }
}
