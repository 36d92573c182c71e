//! The pack as its users meet it, in directories of its own.

use animaworks_core::Locale;

use super::*;

fn now() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-06-12T10:00:00+09:00").unwrap()
}

struct Place {
    dir: tempfile::TempDir,
    pack: Pack,
}

impl Place {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pack = Pack::over(vec![dir.path().to_owned()], settings, now());
        Self { dir, pack }
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs_err::read_to_string(self.dir.path().join(name)).unwrap()
    }

    async fn found(&self, question: &str) -> Vec<String> {
        let hits = self.pack.search(question, 5).await.unwrap();
        hits.into_iter().map(|hit| format!("{}:{}", hit.source, hit.line)).collect()
    }

    async fn save(&self, file: &str, heading: &str, body: &str) -> Written {
        self.pack.write(file, heading, body, None).await.unwrap()
    }
}

fn reason(written: &Written) -> &'static str {
    match written {
        Written::Refused { reason, .. } => reason.code(),
        Written::Saved { .. } | Written::Replaced { .. } => "written",
    }
}

fn two_languages() -> Place {
    let place = Place::new();
    place.put(
        "decisions.md",
        "# 決定\n\n## 2026-06-11 決定: 請求は毎月25日締め\n会議で決めた。東京駅の店舗も同じ。\n\n",
    );
    place.put(
        "tools/deploy.md",
        "## 2026-05-02 Deploy\nWe deployed with the blue script.\n\n## 2026-05-03 鍵\n鍵は棚の中。\n",
    );
    place
}

#[tokio::test]
async fn a_second_index_adds_nothing_and_a_lost_one_comes_back_the_same() {
    let place = two_languages();
    let first = place.pack.reindex(false).await.unwrap();
    assert_eq!((first.files, first.added), (2, 3));
    let second = place.pack.reindex(false).await.unwrap();
    assert_eq!((second.files, second.added, second.removed), (2, 0, 0));
    let questions = ["会議", "東京駅", "deploy", "鍵", "請求 締め"];
    let mut before = Vec::new();
    for question in questions {
        before.push(place.pack.search(question, 5).await.unwrap());
    }
    fs_err::remove_dir_all(place.dir.path().join(OWN_DIR)).unwrap();
    place.pack.reindex(false).await.unwrap();
    for (question, before) in questions.iter().zip(before) {
        assert!(!before.is_empty(), "{question}");
        assert_eq!(place.pack.search(question, 5).await.unwrap(), before, "{question}");
    }
    assert_eq!(place.text(".pack/.gitignore"), "*\n");
}

#[tokio::test]
async fn short_japanese_long_japanese_and_english_are_each_found() {
    let place = two_languages();
    place.pack.reindex(false).await.unwrap();
    for question in ["会議", "東京駅", "締", "店舗 会議", "請求は毎月25日"] {
        assert_eq!(place.found(question).await, ["decisions.md:3"], "{question}");
    }
    for question in ["deploy", "DEPLOYED", "ｄｅｐｌｏｙ", "blue script", "script blue"] {
        assert_eq!(place.found(question).await, ["tools/deploy.md:1"], "{question}");
    }
    assert_eq!(place.found("鍵").await, ["tools/deploy.md:4"]);
    assert_eq!(place.found("京都駅").await, Vec::<String>::new());
    // no piece has both
    assert_eq!(place.found("鍵 deploy").await.len(), 2);
}

#[tokio::test]
async fn hostile_questions_are_only_questions() {
    let place = two_languages();
    place.put("odd.md", "## 2026-01-01 odd\n100%_sure -> ok\n");
    place.pack.reindex(false).await.unwrap();
    for question in
        ["a\"b OR *", "NEAR(", "", "  ", "'; DROP TABLE chunks;", "%", "_", "\\", "->", "🦀", "heading:x", "-"]
    {
        place.pack.search(question, 5).await.unwrap();
    }
    assert_eq!(place.found("->").await, ["odd.md:1"]);
    assert_eq!(place.found("%_").await, ["odd.md:1"]);
}

#[tokio::test]
async fn the_same_block_in_two_files_is_two_places() {
    let place = Place::new();
    let block = "## 2026-06-01 same\nThe lantern stands in the hall.\n";
    place.put("a.md", block);
    place.put("b.md", block);
    place.pack.reindex(false).await.unwrap();
    assert_eq!(place.found("lantern").await, ["a.md:1", "b.md:1"]);
    fs_err::remove_file(place.dir.path().join("a.md")).unwrap();
    let done = place.pack.reindex(false).await.unwrap();
    assert_eq!((done.files, done.removed), (1, 1));
    assert_eq!(place.found("lantern").await, ["b.md:1"]);
}

#[tokio::test]
async fn lines_follow_when_text_above_changes() {
    let place = two_languages();
    place.pack.reindex(false).await.unwrap();
    let text = place.text("tools/deploy.md");
    place.put("tools/deploy.md", &format!("# Tools\n\n{text}"));
    let done = place.pack.reindex(false).await.unwrap();
    assert_eq!((done.changed_files, done.added, done.removed), (1, 0, 0));
    assert_eq!(place.found("鍵").await, ["tools/deploy.md:6"]);
    let done = place.pack.reindex(true).await.unwrap();
    assert_eq!(done.added, 3);
    assert_eq!(place.found("鍵").await, ["tools/deploy.md:6"]);
}

#[tokio::test]
async fn a_broken_index_is_set_aside_and_built_again() {
    let place = two_languages();
    place.pack.reindex(false).await.unwrap();
    place.put(".pack/memory_index.db", "this is no database, and long enough to be looked at as one: 0123456789");
    assert_eq!(place.pack.reindex(false).await.unwrap().added, 3);
    assert_eq!(place.found("鍵").await.len(), 1);
    let names: Vec<_> = fs_err::read_dir(place.dir.path().join(OWN_DIR))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.contains(".corrupt.")), "{names:?}");
}

#[tokio::test]
async fn a_write_updates_rather_than_repeats() {
    let place = Place::new();
    assert_eq!(reason(&place.save("d.md", "2026-06-11 決定: 締め", "毎月25日。").await), "written");
    assert_eq!(place.text("d.md"), "## 2026-06-11 決定: 締め\n毎月25日。\n\n");
    assert_eq!(reason(&place.save("d.md", "## 2026-06-11 決定: 締め", "毎月25日。").await), "duplicate");
    assert_eq!(reason(&place.save("d.md", "2026-06-11  決定: 締め", "  毎月25日。 \n\n").await), "duplicate");
    assert_eq!(place.found("毎月25日").await, ["d.md:1"]);
    let replaced = place.pack.write("d.md", "2026-06-12 決定: 締め", "毎月20日。", Some("決定: 締め")).await.unwrap();
    assert!(matches!(&replaced, Written::Replaced { was, .. } if was == "2026-06-11 決定: 締め"), "{replaced:?}");
    assert_eq!(place.found("毎月20日").await, ["d.md:1"]);
    // what is left of the question is found, what was replaced is not
    let left = place.pack.search("毎月25日", 5).await.unwrap();
    assert!(left.iter().all(|hit| !hit.content.contains("25")), "{left:?}");
    for wanted in ["存在しない", "2026"] {
        place.save("d.md", "2026-06-10 別の件", "別のこと。").await;
        let refused = place.pack.write("d.md", "2026-06-12 x", "y", Some(wanted)).await.unwrap();
        assert_eq!(reason(&refused), "no_single_match", "{wanted}");
        assert!(matches!(refused, Written::Refused { headings, .. } if headings.len() == 2));
    }
}

#[tokio::test]
async fn what_would_make_it_worse_is_refused() {
    let place = Place::new();
    let key = format!("{}{}", "AKIA", "ABCDEFGHIJKLMNOP");
    for (heading, body, wanted) in [
        ("昨日の決定", "x", "relative_date"),
        ("決定", "締めは25日", "no_date"),
        ("2026-06-11 決定", "来週から", "relative_span"),
        ("2026-06-11 決定", " \n ", "empty_body"),
        ("2026-06-11 key", key.as_str(), "secret"),
        ("2026-06-11 two", "a\n## 2026-06-11 b\nc", "heading_in_body"),
        ("2026-99-11 no day", "x", "no_date"),
    ] {
        assert_eq!(reason(&place.save("d.md", heading, body).await), wanted, "{heading}");
    }
    assert_eq!(reason(&place.save("d.txt", "2026-06-11 x", "y").await), "not_markdown");
    assert_eq!(reason(&place.save(".pack/x.md", "2026-06-11 x", "y").await), "not_markdown");
    assert_eq!(reason(&place.save("../d.md", "2026-06-11 x", "y").await), "not_markdown");
    assert!(!place.dir.path().join("d.md").exists());
}

#[tokio::test]
async fn a_full_file_is_refused_with_its_blocks_until_they_are_merged() {
    let place = Place::new();
    let head = "## 2026-06-01 長い\n";
    place.put("full.md", &format!("{head}{}\n", "あ".repeat(9_990 - head.chars().count() - 1)));
    let refused = place.save("full.md", "2026-06-02 次", &"い".repeat(50)).await;
    assert!(
        matches!(&refused, Written::Refused { reason: Refusal::TooLong { limit: 10_000, .. }, headings } if *headings == ["2026-06-01 長い"]),
        "{refused:?}"
    );
    let shorter = place.pack.write("full.md", "2026-06-01 短い", "まとめた。", Some("長い")).await.unwrap();
    assert_eq!(reason(&shorter), "written");
    assert_eq!(reason(&place.save("full.md", "2026-06-02 次", &"い".repeat(50)).await), "written");
}

#[tokio::test]
async fn line_ends_and_preambles_stay() {
    let place = Place::new();
    place.put("w.md", "# Title\r\n\r\n## 2026-06-01 a\r\nx\r\n");
    place.save("w.md", "2026-06-02 b", "y").await;
    assert_eq!(place.text("w.md"), "# Title\r\n\r\n## 2026-06-01 a\r\nx\r\n## 2026-06-02 b\r\ny\r\n\r\n");
    place.put("CONTEXT.md", "# Now\n\n## 2026-06-01 a\nx\n\n");
    place.save("CONTEXT.md", "2026-06-02 b", "y").await;
    assert_eq!(place.text("CONTEXT.md"), "# Now\n\n## 2026-06-02 b\ny\n\n## 2026-06-01 a\nx\n\n");
}

#[test]
fn a_context_of_many_files_stays_within_its_limit() {
    let place = Place::new();
    for n in 0..500 {
        place.put(&format!("note-{n:03}-with-a-rather-long-name.md"), "## 2026-01-01 x\ny\n");
    }
    place.put(
        "CONTEXT.md",
        &format!("## 2026-06-11 いまの作業\n{}\n\n## 2026-06-10 前\n前のこと\n", "進行中の作業。\n".repeat(600)),
    );
    for locale in Locale::ALL {
        let text = place.pack.context(false, locale).unwrap();
        assert!(text.chars().count() <= 4_000, "{}", text.chars().count());
        for part in ["animaworks pack search", "2026-06-11 いまの作業", "note-000", "CONTEXT.md"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // what found no room is counted
        let listed = text.matches("note-").count();
        assert!(text.contains(&(500 - listed).to_string()), "{listed}: {text}");
        assert!(!text.contains("2026-06-10 前"));
        let brief = place.pack.context(true, locale).unwrap();
        assert!(brief.contains("animaworks pack write") && !brief.contains("note-000"));
    }
}

#[test]
fn every_block_is_archived_once() {
    let place = Place::new();
    let blocks: Vec<String> = (1..=9).rev().map(|n| format!("## 2026-06-0{n} b{n}\ntext {n}\n\n")).collect();
    let whole = format!("# Now\n\n{}", blocks.concat());
    place.put("CONTEXT.md", &whole);
    let first = place.pack.rotate().unwrap();
    assert_eq!((first[0].moved, first[0].kept), (4, 5));
    let (context, archive) = (place.text("CONTEXT.md"), place.text("archive/context_archive.md"));
    assert_eq!(place.pack.rotate().unwrap()[0].moved, 0);
    // a rotation that died after the archive was written
    place.put("CONTEXT.md", &whole);
    place.pack.rotate().unwrap();
    assert_eq!(place.text("CONTEXT.md"), context);
    assert_eq!(place.text("archive/context_archive.md"), archive);
    for n in 1..=9 {
        let everywhere = format!("{context}{archive}");
        assert_eq!(everywhere.matches(&format!("text {n}\n")).count(), 1, "{n}");
    }
}

#[test]
fn a_report_lists_candidates_and_changes_nothing() {
    let place = Place::new();
    let text = "請求は毎月25日に締める。理由は経理の処理日に合わせるため。担当は経理の係。";
    place.put("a.md", &format!("## 2025-01-01 古い\n{text}\n"));
    place.put("b.md", &format!("## 2026-06-01 新しい\n{text}以上。\n"));
    place.put("big.md", &format!("## 2026-06-01 big\n{}\n", "x".repeat(8_500)));
    let report = place.pack.report(90).unwrap();
    assert_eq!((report.files, report.blocks_total), (3, 3));
    assert_eq!(report.stale.len(), 1);
    assert_eq!(report.duplicates.len(), 1);
    assert_eq!(report.oversized.len(), 1);
    assert!(!place.dir.path().join(OWN_DIR).exists());
}

#[test]
fn the_memory_is_found_from_where_the_program_stands() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("work/project");
    fs_err::create_dir_all(project.join(".memory")).unwrap();
    fs_err::create_dir_all(project.join("src")).unwrap();
    let env = Env::of([("HOME", dir.path())]).started_in(project.join("src"));
    let pack = Pack::find(&env, &[], now()).unwrap();
    assert_eq!(pack.dirs(), [project.join(".memory"), dir.path().join(".claude/memory")]);
    let env = Env::of([("MEMORY_DIRS", "/a:/b"), ("MEMORY_KEEP_N", "3"), ("MEMORY_INJECT_MAX_CHARS", "90000")]);
    let pack = Pack::find(&env, &[], now()).unwrap();
    assert_eq!(pack.dirs(), [PathBuf::from("/a"), PathBuf::from("/b")]);
    assert_eq!((pack.settings().keep_blocks, pack.settings().inject_max_chars), (3, 4_000));
    let broken = Env::of([("MEMORY_KEEP_N", "many")]);
    assert!(Pack::find(&broken, &[], now()).is_err());
}
