//! The activity log and the ground of the home.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{
    activity::{Activity, ActivityQuery, Room, Rotation, RotationMode, render},
    *,
};
use crate::{layout::DataDir, test_support::ManualClock, units::Tokens};

/// A home in a fresh directory, at a moment, with the clock to turn.
pub(crate) fn home_at(moment: &str) -> (tempfile::TempDir, AnimaHome, ManualClock) {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(moment);
    let dir = DataDir::new(directory.path()).anima(&AnimaName::new("sakura").unwrap());
    let home = AnimaHome::open(dir, chrono_tz::Asia::Tokyo, Arc::new(clock.clone()));
    (directory, home, clock)
}

/// Writes a file of a test.
pub(crate) fn put(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write_atomic(path, bytes.as_ref(), fs::Privacy::Normal).unwrap();
}

fn day(n: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, n).unwrap()
}

#[test]
fn a_time_without_an_offset_is_meant_here() {
    for (text, utc) in [
        ("2026-03-31T09:15:02", "2026-03-31T00:15:02+00:00"),
        ("2026-03-31T09:15:02Z", "2026-03-31T09:15:02+00:00"),
        ("2026-03-31T09:15:02.5+01:00", "2026-03-31T08:15:02.500+00:00"),
        ("2026-03-31", "2026-03-30T15:00:00+00:00"),
    ] {
        let at = parse_in(chrono_tz::Asia::Tokyo, text).unwrap();
        assert_eq!(at.with_timezone(&Utc), DateTime::parse_from_rfc3339(utc).unwrap(), "{text}");
    }
    assert_eq!(parse_in(chrono_tz::Asia::Tokyo, "soon"), None);
}

#[test]
fn an_event_is_written_as_it_always_was() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02.481937+09:00");
    home.log(
        Activity::new(Activity::MESSAGE_RECEIVED)
            .content("見積書は送った？")
            .from("tanaka")
            .channel("chat")
            .meta("from_type", "human")
            .meta("thread_id", "default")
            .origin(crate::trust::Origin::human()),
    )
    .unwrap();
    assert_eq!(
        fs::read_text(&home.dir().activity_log(day(31))).unwrap(),
        concat!(
            r#"{"ts":"2026-03-31T09:15:02.481937+09:00","type":"message_received","content":"見積書は送った？","from":"tanaka","channel":"chat","meta":{"from_type":"human","thread_id":"default"},"origin":"human"}"#,
            "\n"
        )
    );
}

#[test]
fn long_content_is_cut_and_a_given_time_picks_the_file() {
    let (_dir, home, _) = home_at("2026-03-31T09:00:00+09:00");
    let long = "あ".repeat(20_001);
    let mut activity = Activity::new("odd_event").content(long);
    activity.ts = "2026-03-29T23:00:00+09:00".to_owned();
    let logged = home.log(activity).unwrap();
    assert_eq!(logged.content.chars().count(), 20_000 + "\n... (truncated 20001 chars → 20,000)".chars().count());
    let read = home.load(&ActivityQuery::days(3)).unwrap();
    assert_eq!((read.len(), read[0].date, read[0].line), (1, day(29), 1));
}

#[test]
fn reads_what_other_versions_and_accidents_left() {
    let (_dir, home, _) = home_at("2026-02-01T12:00:00+09:00");
    let long = format!(r#"{{"ts":"2026-02-01T01:00:00Z","type":"error","content":"{}"}}"#, "x".repeat(41_000));
    let text = [
        "\u{feff}{\"event\":\"dm_sent\",\"timestamp\":\"2026-02-01T00:00:00Z\",\"to\":\"a\"}\r",
        "\r",
        "[]",
        &long,
        r#"{"ts":"sometime","type":"note","from_person":"b","meta":[1],"mood":"good"}"#,
        r#"{"ts":"2026-02-01T08:59:00+09:00","type":"message_received","content":7}"#,
        r#"{"ts":"2026-02-01T10:00"#,
    ]
    .join("\n");
    put(&home.dir().activity_log("2026-02-01".parse().unwrap()), text);
    let all = home.load(&ActivityQuery::default()).unwrap();
    let seen: Vec<_> = all.iter().map(|entry| (entry.line, entry.activity.kind.as_str())).collect();
    assert_eq!(seen, [(6, "message_received"), (1, "dm_sent"), (5, "note")]);
    assert_eq!(all[0].activity.content, "7");
    assert_eq!(all[2].activity.extra, json!({"mood": "good"}).as_object().unwrap().clone());
    let sent = home.load(&ActivityQuery::default().kinds(&[Activity::MESSAGE_SENT])).unwrap();
    assert_eq!(sent.len(), 1);
    assert_eq!(home.load(&ActivityQuery::default().involving("b")).unwrap().len(), 1);
    assert_eq!(sent[0].at.unwrap().to_rfc3339(), "2026-02-01T00:00:00+00:00");
}

#[test]
fn a_span_reaches_over_midnight() {
    let (_dir, home, clock) = home_at("2026-03-30T23:30:00+09:00");
    home.log(Activity::new("error").content("late")).unwrap();
    clock.advance(Duration::from_secs(40 * 60));
    home.log(Activity::new("error").content("early")).unwrap();
    assert_eq!(home.load(&ActivityQuery::hours(1)).unwrap().len(), 2);
    assert_eq!(home.load(&ActivityQuery::days(1)).unwrap().len(), 1);
    let at = |s: &str| DateTime::parse_from_rfc3339(s).unwrap();
    let backwards = ActivityQuery::since(at("2026-03-31T00:00:00+09:00")).until(at("2026-03-30T00:00:00+09:00"));
    assert_eq!(home.load(&backwards).unwrap(), []);
}

#[test]
fn pages_come_newest_first() {
    let (_dir, home, clock) = home_at("2026-03-31T09:00:00+09:00");
    for n in 0..5 {
        home.log(Activity::new("error").content(n.to_string())).unwrap();
        clock.advance(Duration::from_secs(60));
    }
    let words = |limit, offset| {
        let page = home.activity_page(&ActivityQuery::default(), limit, offset).unwrap();
        (page.entries.iter().map(|entry| entry.activity.content.clone()).collect::<String>(), page.has_more)
    };
    assert_eq!(words(2, 0), ("43".into(), true));
    assert_eq!(words(2, 3), ("10".into(), false));
    assert_eq!(words(0, 1), ("3210".into(), false));
    assert_eq!(home.recent(1, 2).unwrap()[0].activity.content, "3");
}

#[test]
fn a_day_that_is_a_directory_does_not_hide_the_others() {
    let (_dir, home, _) = home_at("2026-03-31T09:00:00+09:00");
    home.log(Activity::new("error")).unwrap();
    fs::create_dir(&home.dir().activity_log(day(30))).unwrap();
    assert_eq!(home.load(&ActivityQuery::days(3)).unwrap().len(), 1);
}

#[test]
fn rotation_spares_today_and_unknown_names() {
    let (_dir, home, _) = home_at("2026-03-31T09:00:00+09:00");
    let log = |name: &str| home.dir().file("activity_log").join(name);
    for name in ["2026-03-01.jsonl", "2026-03-29.jsonl", "2026-03-30.jsonl", "2026-03-31.jsonl", "notes.jsonl"] {
        put(&log(name), "x".repeat(100));
    }
    let size = Rotation { max_total_bytes: 250, ..Rotation::default() };
    let done = home.rotate_activity(&size).unwrap();
    assert_eq!((done.deleted, done.bytes), (2, 200));
    assert!(log("2026-03-30.jsonl").exists() && log("notes.jsonl").exists());
    let tiny = Rotation { max_total_bytes: 1, max_file_bytes: 50, ..Rotation::default() };
    let done = home.rotate_activity(&tiny).unwrap();
    assert_eq!((done.deleted, done.set_aside), (0, 1));
    assert!(log("2026-03-30.jsonl.bloated.bak").exists() && log("2026-03-31.jsonl").exists());
    put(&log("2026-03-10.jsonl"), "x");
    let age = Rotation { mode: RotationMode::Time, max_total_bytes: 0, ..Rotation::default() };
    assert_eq!(home.rotate_activity(&age).unwrap().deleted, 1);
}

fn golden_day(home: &AnimaHome) -> Vec<activity::LoggedActivity> {
    let long = format!("{}。{}", "x".repeat(150), "y".repeat(100));
    let at = |time: &str, activity: Activity| Activity { ts: format!("2026-03-31T{time}:00+09:00"), ..activity };
    let reflection = "巡回した。\n[REFLECTION]請求処理が遅延。次回は先に確認する[/REFLECTION]";
    for activity in [
        at("09:00", Activity::new("heartbeat_start")),
        at("09:01", Activity::new("heartbeat_end").content(reflection)),
        at(
            "09:05",
            Activity::new("message_received").from("yuki").meta("from_type", "anima").content("A社の件どうなった？"),
        ),
        at("09:20", Activity::new("message_sent").to("yuki").content("完了しました").summary("→ yuki: 完了しました")),
        at("09:55", Activity::new("message_received").from("yuki").meta("from_type", "anima").content("また質問")),
        at("10:00", Activity::new("cron_executed").meta("task_name", "backup").meta("exit_code", 0)),
        at("10:05", Activity::new("channel_post").channel("general").from("sakura").content("全員へ連絡")),
        at("10:06", Activity::new("channel_read").channel("general").from("taro").content("読んだ")),
        at(
            "10:10",
            Activity::new("tool_result")
                .tool("web_search")
                .content("…")
                .meta("result_status", "ok")
                .meta("result_bytes", 3277)
                .meta("result_count", 12),
        ),
        at("10:11", Activity::new("human_notify").via("slack").content("# 承認依頼\n本文")),
        at(
            "10:12",
            Activity::new("message_received").from("tanaka").channel("chat").meta("from_type", "human").content(long),
        ),
    ] {
        home.log(activity).unwrap();
    }
    home.load(&ActivityQuery::days(1)).unwrap()
}

#[test]
fn a_day_is_remembered_as_the_python_version_tells_it() {
    let (_dir, home, _) = home_at("2026-03-31T12:00:00+09:00");
    let entries = golden_day(&home);
    let x = "x".repeat(150);
    let expected = [
        "[09:01] HB振り返り: 請求処理が遅延。次回は先に確認する",
        "[09:05-09:20] DM yuki:",
        "  MSG< A社の件どうなった？",
        "  MSG> → yuki: 完了しました",
        "  -> activity_log/2026-03-31.jsonl#L3-4",
        "[09:55] DM yuki:",
        "  MSG< また質問",
        "  -> activity_log/2026-03-31.jsonl#L5",
        "[10:00] CRON backup: exit=0",
        "  -> activity_log/2026-03-31.jsonl#L6",
        "[10:05-10:06] #general (2件): sakura→全員へ連絡, taro→読んだ",
        "  -> activity_log/2026-03-31.jsonl#L7-8",
        "[10:10] TRES web_search → ok (12件, 3.2KB)",
        "[10:11] NTFY human_notify(via:slack): 承認依頼 -> activity_log/2026-03-31.jsonl#L10",
        &format!("[10:12] MSG< message_received(from:tanaka, #chat): {x}。"),
        "  -> activity_log/2026-03-31.jsonl",
    ];
    let ja = render(&entries, home.zone(), Locale::Ja, Room::Chars(1300 * 4));
    assert_eq!(ja.lines().collect::<Vec<_>>(), expected);
    let en = render(&entries, home.zone(), Locale::En, Room::Chars(1300 * 4));
    let english: Vec<_> = expected
        .iter()
        .map(|line| line.replace("HB振り返り", "HB reflection").replace("件)", " items)").replace("12件,", "12 items,"))
        .collect();
    assert_eq!(en.lines().collect::<Vec<_>>(), english);
    let short = render(&entries, home.zone(), Locale::Ja, Room::Chars(60 * 4));
    assert_eq!(short.lines().collect::<Vec<_>>(), expected[14..]);
    let tokens = render(&entries, home.zone(), Locale::Ja, Room::Tokens(Tokens(120)));
    assert!(Tokens::estimate(&tokens) <= Tokens(120) && ja.ends_with(&tokens) && !tokens.is_empty());
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]
    /// A log cut anywhere and written on loses at most the line that was cut.
    #[test]
    fn a_torn_log_loses_one_line(words in proptest::collection::vec("\\PC{0,12}", 1..6), cut in 0_usize..400) {
        let (_dir, home, _) = home_at("2026-03-31T12:00:00+09:00");
        for word in &words {
            home.log(Activity::new("note").content(word.clone())).unwrap();
        }
        let path = home.dir().activity_log(day(31));
        let bytes = fs_err::read(&path).unwrap();
        let cut = cut.min(bytes.len());
        put(&path, &bytes[..cut]);
        let whole = bytes[..cut].split(|byte| *byte == b'\n').count() - 1;
        home.log(Activity::new("note").content("after")).unwrap();
        let read = home.load(&ActivityQuery::days(1)).unwrap();
        // a line that lacks nothing but its end is whole too
        proptest::prop_assert!(read.len() == whole + 1 || read.len() == whole + 2);
        let kept = read.iter().take(read.len() - 1).map(|entry| entry.activity.content.as_str());
        proptest::prop_assert!(kept.zip(&words).all(|(read, word)| read == word));
        proptest::prop_assert_eq!(&read.last().unwrap().activity.content, "after");
    }
}
