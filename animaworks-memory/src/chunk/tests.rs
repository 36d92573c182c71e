//! Tests of the chunkers.

use proptest::prelude::*;

use super::*;

fn setting(kind: Kind, path: &str) -> Setting<'_> {
    Setting { kind, path, modified: DateTime::<Utc>::UNIX_EPOCH, zone: chrono_tz::Asia::Tokyo, anima: "sakura" }
}

fn texts(kind: Kind, path: &str, text: &str) -> Vec<(String, String)> {
    cut(setting(kind, path), text).chunks.into_iter().map(|chunk| (chunk.context, chunk.text)).collect()
}

#[test]
fn a_short_note_is_one_place() {
    assert_eq!(
        texts(Kind::Knowledge, "knowledge/a.md", "A社の担当は田中さん。"),
        [("a".to_owned(), "A社の担当は田中さん。".to_owned())]
    );
    assert!(texts(Kind::Knowledge, "knowledge/a.md", " \n\n").is_empty());
}

#[test]
fn sections_are_places_and_so_is_what_stands_before_them() {
    let text = "# 請求\n短い前文\n\n## 手順\n締めは25日\n### 例外\n年末\n## 連絡先\n経理\n```\n## not a heading\n```\n";
    let found = texts(Kind::Knowledge, "knowledge/billing.md", text);
    let contexts: Vec<&str> = found.iter().map(|(context, _)| context.as_str()).collect();
    assert_eq!(contexts, ["請求", "請求 > 手順", "請求 > 連絡先"]);
    assert_eq!(found[1].1, "## 手順\n締めは25日\n### 例外\n年末");
    assert!(found[2].1.ends_with("## not a heading\n```"));
}

#[test]
fn an_entry_of_a_day_knows_its_time_and_its_turns() {
    let text = "# 2026-03-31 行動ログ\n\n## 9:05 — 朝\n- 会議\n\n## メモ\n- 続き\n## 10:00 — 通話\n- [10:01] 田中: 鍵はどこ？\n- [10:02] sakura: 南口です\n  北口ではありません\n";
    let page = cut(setting(Kind::Episodes, "episodes/2026-03-31.md"), text);
    let seen: Vec<(Option<&str>, String, &str)> = page
        .chunks
        .iter()
        .map(|chunk| {
            let at = chunk.at.unwrap().with_timezone(&chrono_tz::Asia::Tokyo).format("%m-%d %H:%M").to_string();
            (chunk.speaker.as_deref(), at, chunk.text.as_str())
        })
        .collect();
    assert_eq!(seen[0], (None, "03-31 09:05".to_owned(), "## 9:05 — 朝\n- 会議"));
    assert_eq!(seen[2], (Some("田中"), "03-31 10:01".to_owned(), "- [10:01] 田中: 鍵はどこ？"));
    assert_eq!(seen[3].2, "- [10:02] sakura: 南口です\n  北口ではありません");
    assert_eq!(page.chunks[2].group, page.chunks[3].group);
}

#[test]
fn superseded_knowledge_is_not_found() {
    assert!(
        cut(setting(Kind::Knowledge, "knowledge/a.md"), "---\nvalid_until: '2026-03-31'\n---\n\n古い\n")
            .chunks
            .is_empty()
    );
}

#[test]
fn a_mark_in_a_text_from_outside_marks_nothing() {
    let mark = |head: &str| {
        cut(setting(Kind::Knowledge, "knowledge/a.md"), &format!("{head}[IMPORTANT] x")).chunks[0].important
    };
    assert!(mark(""));
    assert!(mark("---\norigin: anima\n---\n"));
    assert!(!mark("---\norigin: external_web\n---\n"));
}

#[test]
fn records_are_places_and_noise_is_not() {
    let log = concat!(
        "{\"ts\":\"2026-03-31T09:00:00+09:00\",\"type\":\"message_received\",\"content\":\"鍵は？\",\"from\":\"tanaka\"}\n",
        "not json\n",
        "{\"ts\":\"2026-03-31T09:00:05+09:00\",\"type\":\"tool_use\",\"tool\":\"Read\",\"content\":\"x\"}\n",
        "{\"ts\":\"2026-03-31T10:00:00+09:00\",\"type\":\"response_sent\",\"content\":\"南口\"}\n",
        "{\"ts\":\"2026-03-31T10:00:01+09:00\",\"ty",
    );
    let chunks =
        turn::lines(setting(Kind::ActivityLog, "activity_log/2026-03-31.jsonl"), log.as_bytes(), turn::Tail::default());
    let seen: Vec<_> =
        chunks.iter().map(|chunk| (chunk.line, chunk.speaker.as_deref(), chunk.text.as_str(), chunk.group)).collect();
    assert_eq!(seen, [(1, Some("tanaka"), "鍵は？", 0), (4, Some("sakura"), "南口", 1)]);
    for chunk in &chunks {
        let raw = log.as_bytes().get(chunk.start..chunk.start + chunk.bytes).unwrap();
        assert_eq!(turn::text_of(setting(Kind::ActivityLog, "x.jsonl"), raw).as_deref(), Some(chunk.text.as_str()));
    }
}

#[test]
fn turns_of_a_conversation_file_have_a_line() {
    let file = serde_json::json!({"turns": [
        {"role": "human", "content": "\"鍵\"は？", "timestamp": "2026-03-31T09:00:00+09:00"},
        {"role": "assistant", "content": "南口\nです", "timestamp": "2026-03-31T09:00:10+09:00"}]});
    let text = serde_json::to_string_pretty(&file).unwrap();
    let chunks = turn::document(setting(Kind::Conversation, "state/conversation.json"), &text);
    assert_eq!(chunks.iter().map(|chunk| chunk.text.as_str()).collect::<Vec<_>>(), ["\"鍵\"は？", "南口\nです"]);
    for chunk in &chunks {
        let line = text.lines().nth(chunk.line as usize - 1).unwrap();
        assert!(line.contains("\"content\""), "{line}");
    }
}

proptest! {
    #[test]
    fn every_place_is_what_stands_in_its_lines(
        parts in proptest::collection::vec(prop_oneof![
            Just("## 見出し\n".to_owned()), Just("\n".to_owned()), Just("---\n".to_owned()), Just("```\n".to_owned()),
            "[a-zあ-ん漢字。 ]{0,60}\n", "[あ-ん。]{0,40}", "- \\[1[0-9]:00\\] [a-z]{1,5}: [あ-ん]{0,20}\n",
            proptest::collection::vec("[あ-ん]{20,60}。", 30..60).prop_map(|sentences| sentences.concat() + "\n"),
        ], 0..12),
        kind in prop_oneof![Just(Kind::Knowledge), Just(Kind::Episodes), Just(Kind::Skills)],
    ) {
        let text = parts.concat();
        let page = cut(setting(kind, "episodes/2026-03-31.md"), &text);
        let lines: Vec<&str> = text.lines().collect();
        for chunk in &page.chunks {
            prop_assert_eq!(text.get(chunk.start..chunk.start + chunk.bytes), Some(chunk.text.as_str()));
            prop_assert!(chunk.text.chars().count() <= MAX_CHARS + 60, "{}", chunk.text.chars().count());
            let there = lines[chunk.line as usize - 1..chunk.end_line as usize].join("\n");
            prop_assert!(there.contains(&chunk.text));
            if chunk.line < chunk.end_line {
                prop_assert_eq!(&there, &chunk.text);
            }
            prop_assert!(!chunk.text.trim().is_empty());
        }
        let body = crate::front::Front::read(&text).body_start;
        let said = text.get(body..).unwrap().lines().any(|line| !line.trim().is_empty() && markdown::heading(line).is_none());
        prop_assert!(!said || !page.chunks.is_empty());
    }
}
