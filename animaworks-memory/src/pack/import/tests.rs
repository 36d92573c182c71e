//! Other memories as they are found on a machine, taken over.

use chrono::{DateTime, FixedOffset};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::*;
use crate::pack::Settings;

struct Place {
    dir: tempfile::TempDir,
    pack: Pack,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let now: DateTime<FixedOffset> = DateTime::parse_from_rfc3339("2026-06-12T10:00:00+09:00").unwrap();
        let pack = Pack::over(vec![dir.path().join("own")], Settings::default(), now);
        Self { dir, pack }
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        path
    }

    fn text(&self, name: &str) -> String {
        fs_err::read_to_string(self.dir.path().join("own/imported").join(name)).unwrap()
    }

    async fn import(&self, sources: &[PathBuf]) -> Imported {
        self.pack.import(sources, false).await.unwrap()
    }
}

fn reasons(list: &[Left]) -> Vec<&'static str> {
    list.iter().map(|left| left.reason).collect()
}

#[tokio::test]
async fn the_memory_of_a_coding_agent_is_taken_block_by_block_and_once() {
    let place = Place::new();
    let key = format!("{}{}", "AKIA", "ABCDEFGHIJKLMNOP");
    let memory = "claude/projects/-home-yuki-lantern/memory";
    place.put(&format!("{memory}/MEMORY.md"), "# Memory\n\n- [Lamp](lamp.md) — where it is\n- [Key](key.md)\n");
    place.put(
        &format!("{memory}/lamp.md"),
        "---\nname: The lamp\ndescription: Where it stands\ntype: project\ncreated: 2026-05-01\n---\n\nIt stands in the hall.\n",
    );
    place.put(&format!("{memory}/key.md"), "## 2026-05-02 鍵\n鍵は棚の中。\n\n## 2026-05-03 token\n");
    place.put(&format!("{memory}/secret.md"), &format!("## 2026-05-03 key\n{key}\n"));
    place.put(&format!("{memory}/picture.png"), "x");
    let claude =
        place.put("claude/CLAUDE.md", "# Rules\n\nAnswer in Japanese.\n\n## Style\nShort lines, since yesterday.\n");
    let sources = [claude.clone(), place.dir.path().join(memory)];
    let before: Vec<_> = sources.iter().map(|path| fs_err::metadata(path).unwrap().modified().unwrap()).collect();

    let looked = place.pack.import(&sources, true).await.unwrap();
    assert_eq!((looked.taken, looked.files.len()), (4, 0));
    assert!(!place.dir.path().join("own").exists(), "a look writes nothing");

    let done = place.import(&sources).await;
    assert_eq!((done.taken, done.known), (4, 0), "{done:#?}");
    assert_eq!(reasons(&done.left), ["only_links", "not_markdown", "empty", "secret"]);
    assert_eq!(reasons(&done.doubtful), ["relative_date"]);
    assert_eq!(
        place.text("home-yuki-lantern/lamp.md"),
        "## 2026-05-01 The lamp\nWhere it stands\n\nIt stands in the hall.\n\n"
    );
    assert_eq!(place.text("home-yuki-lantern/key.md"), "## 2026-05-02 鍵\n鍵は棚の中。\n\n");
    assert!(place.text("claude/CLAUDE.md").contains(" Style\nShort lines"));
    assert_eq!(place.pack.search("棚", 5).await.unwrap()[0].heading, "2026-05-02 鍵");

    let again = place.import(&sources).await;
    assert_eq!((again.taken, again.known, again.files.len()), (0, 4, 0));
    // what was thrown away stays away, what was lost from the list is seen in the memory
    fs_err::remove_file(place.dir.path().join("own/imported/home-yuki-lantern/key.md")).unwrap();
    assert_eq!(place.import(&sources).await.taken, 0);
    fs_err::remove_file(place.dir.path().join("own/imported/.taken.jsonl")).unwrap();
    assert_eq!(place.import(&sources).await.taken, 1);
    let after: Vec<_> = sources.iter().map(|path| fs_err::metadata(path).unwrap().modified().unwrap()).collect();
    assert_eq!(before, after, "the originals are untouched");
}

#[tokio::test]
async fn daily_notes_have_the_day_of_their_name() {
    let place = Place::new();
    place.put("work/MEMORY.md", "# Memory\n\nThe office is on the third floor.\n");
    place.put("work/memory/2026-03-04.md", "Talked about the printer.\n- It is broken.\n");
    place.put("work/memory/2026-03-05.md", "# Thursday\n\n## Printer\nIt works again.\r\n");
    let done = place.import(&[place.dir.path().join("work")]).await;
    assert_eq!((done.taken, done.left), (3, vec![]));
    assert!(place.text("work/memory/2026-03-04.md").starts_with("## 2026-03-04\nTalked about"));
    assert_eq!(place.text("work/memory/2026-03-05.md"), "## 2026-03-05 Printer\nIt works again.\n\n");
}

#[tokio::test]
async fn records_of_claude_mem_are_taken_from_its_database_and_its_export() {
    let place = Place::new();
    let database = place.dir.path().join("claude-mem.db");
    let options = SqliteConnectOptions::new().filename(&database).create_if_missing(true);
    let mut db = SqliteConnection::connect_with(&options).await.unwrap();
    let tables = r#"
        CREATE TABLE observations(id INTEGER PRIMARY KEY, project TEXT, type TEXT, title TEXT, subtitle TEXT,
            narrative TEXT, facts TEXT, files_modified TEXT, created_at TEXT, created_at_epoch INTEGER);
        CREATE TABLE session_summaries(id INTEGER PRIMARY KEY, project TEXT, request TEXT, learned TEXT,
            next_steps TEXT, created_at_epoch INTEGER);
        CREATE TABLE user_prompts(id INTEGER PRIMARY KEY, prompt_text TEXT);
        CREATE TABLE overviews(id INTEGER PRIMARY KEY, content TEXT);
        CREATE VIRTUAL TABLE observations_fts USING fts5(title);
        INSERT INTO observations VALUES(1, '../lantern', 'decision', 'Keep the lamp', '', 'It stays in the hall.',
            '["It is heavy", "It is old"]', '["hall.rs"]', '2026-04-01T10:00:00Z', 1775037600000);
        INSERT INTO observations VALUES(2, 'lantern', 'change', 'Nothing', '', '', '[]', NULL, '2026-04-01', 1);
        INSERT INTO session_summaries VALUES(1, 'lantern', 'Move it', '鍵は棚の中。', 'Ask Yuki', 1775037600000);
        INSERT INTO user_prompts VALUES(1, 'please'), (2, 'again');
        INSERT INTO overviews VALUES(1, 'old');"#;
    sqlx::raw_sql(tables).execute(&mut db).await.unwrap();
    db.close().await.unwrap();
    let bytes = fs_err::read(&database).unwrap();

    let done = place.import(std::slice::from_ref(&database)).await;
    assert_eq!(done.taken, 2, "{done:#?}");
    assert_eq!(reasons(&done.left), ["other_table", "prompts", "empty"]);
    assert_eq!(fs_err::read(&database).unwrap(), bytes);
    let names: Vec<_> = fs_err::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is written beside the original: {names:?}");
    let text = place.text("claude-mem/lantern/2026-04.md");
    for part in ["## 2026-04-01 decision: Keep the lamp\n", "- It is heavy\n", "hall.rs", "**learned**: 鍵は棚の中。"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let export = place.put(
        "export.json",
        r#"{"observations": [{"project": "lantern", "title": "New", "type": "", "narrative": "a\n## b", "created_at_epoch": 1775037600}],
            "prompts": [{}], "sessions": [{}, {}]}"#,
    );
    let done = place.import(&[export, database]).await;
    assert_eq!((done.taken, done.known), (1, 2));
    assert!(place.text("claude-mem/lantern/2026-04.md").contains("## 2026-04-01 New\na\n### b\n"));
}

#[tokio::test]
async fn what_is_too_long_becomes_several_files_and_open_code_is_closed() {
    let place = Place::new();
    let long: String = (0..400).map(|n| format!("line {n} of a long note about the lantern in the hall\n")).collect();
    let notes = place.put("notes/long.md", &format!("## 2026-01-01 long\n{long}\n## 2026-01-02 code\n```\nopen\n"));
    let done = place.import(&[notes]).await;
    assert_eq!(done.files.len(), 3, "{done:#?}");
    for file in &done.files {
        assert!(fs_err::read_to_string(file).unwrap().chars().count() <= 10_000);
    }
    assert!(place.text("notes/long-3.md").ends_with("```\nopen\n```\n\n"), "{}", place.text("notes/long-3.md"));
    assert!(place.text("notes/long.md").starts_with("## 2026-01-01 long (1/3)\n"));
}
