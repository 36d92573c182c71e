//! What is kept, shown and made short.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::{
    executor::PromptMessage,
    home::tests::{home_at, put},
    units::Tokens,
};

fn record(id: &str, chars: usize) -> ToolRecord {
    ToolRecord {
        tool_name: "Read".into(),
        tool_id: id.into(),
        input_summary: String::new(),
        result_summary: "r".repeat(chars),
        is_error: false,
    }
}

fn main() -> ThreadId {
    ThreadId::main()
}

#[test]
fn a_turn_is_stored_within_its_limits() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let tools = (0..11).map(|n| record(&n.to_string(), 2001)).collect();
    let stored = home.append_turn(&main(), Turn::assistant("あ".repeat(5001)).with_tools(tools)).unwrap();
    let turn = &stored.turns[0];
    assert!(turn.content.starts_with(&"あ".repeat(5000)) && turn.content.contains("5001"));
    assert_eq!((turn.tool_records.len(), turn.tool_records[0].result_summary.len()), (10, 2003));
    assert_eq!(turn.timestamp, "2026-03-31T09:15:02+09:00");
    let text = fs::read_text(&home.dir().conversation(&main())).unwrap();
    assert!(text.starts_with("{\n  \"anima_name\": \"sakura\",\n  \"turns\": ["));
}

#[test]
fn a_broken_file_is_set_aside() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    put(&home.dir().conversation(&main()), "{\"turns\": [");
    let loaded = home.conversation(&main()).unwrap();
    assert_eq!(loaded.conversation.turns, []);
    let aside = loaded.set_aside.unwrap();
    assert!(aside.to_string_lossy().ends_with("conversation.json.corrupt.20260331_091502"));
    assert_eq!(fs::read_text(&aside).unwrap(), "{\"turns\": [");
}

#[test]
fn a_file_that_is_no_text_is_kept_before_it_is_replaced() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let path = home.dir().conversation(&main());
    let bytes = b"{\"turns\": [{\"role\": \"human\", \"content\": \"\xff\"}]}";
    put(&path, bytes);
    home.append_turn(&main(), Turn::human("次")).unwrap();
    assert_eq!(fs_err::read(path.with_file_name("conversation.json.bak.20260331_091502")).unwrap(), bytes);
    assert_eq!(home.conversation(&main()).unwrap().conversation.turns.len(), 2);
}

#[test]
fn an_interrupted_answer_is_kept_once() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    home.append_turns(&main(), vec![Turn::human("一"), Turn::assistant("はい"), Turn::human("二")]).unwrap();
    assert!(home.append_interrupted(&main(), "はい", Vec::new()).unwrap(), "the same words answered something else");
    assert!(!home.append_interrupted(&main(), "はい", Vec::new()).unwrap());
    let english = home.clone().with_locale(Locale::En);
    assert!(!english.append_interrupted(&main(), &mark_interrupted("はい", Locale::Ja), Vec::new()).unwrap());
    assert!(!home.append_interrupted(&main(), "  ", Vec::new()).unwrap());
    let last = home.conversation(&main()).unwrap().conversation.turns.pop().unwrap();
    assert_eq!(last.content, format!("はい\n{}", t!(Locale::Ja, "memory.interrupted")));
    assert_eq!(strip_interrupted(&last.content), "はい");
}

#[test]
fn a_model_reads_the_summary_and_the_turns_with_their_tools() {
    let mut talk = Conversation { compressed_summary: "昔の話".into(), ..Conversation::default() };
    talk.turns.push(Turn::new("tanaka", "見積は？"));
    talk.turns.push(Turn::assistant("送りました。").with_tools(vec![record("a.b", 3)]));
    let messages = talk.messages(chrono_tz::Asia::Tokyo, Locale::En, Tokens(1000));
    assert_eq!(messages.len(), 2 + 1 + 3);
    assert_eq!(messages[2], PromptMessage::User { text: "見積は？".into(), images: Vec::new() });
    let PromptMessage::Assistant { calls, .. } = &messages[3] else { panic!() };
    assert_eq!(calls[0].args, json!({"_summary": ""}));
    assert!(matches!(&messages[4], PromptMessage::ToolResult { text, .. } if text == "rrr"));
}

#[test]
fn a_text_form_keeps_its_end() {
    let mut talk = Conversation::default();
    for (role, content) in [("tanaka", "見積は？"), ("assistant", "送りました。")] {
        let timestamp = "2026-03-31T00:15:02+00:00".to_owned();
        talk.turns.push(Turn { timestamp, ..Turn::new(role, content) });
    }
    let text = talk.text(chrono_tz::Asia::Tokyo, Locale::Ja, 2000);
    assert_eq!(text, "**[09:15] tanaka:**\n見積は？\n\n**[09:15] assistant:**\n送りました。");
    assert_eq!(talk.text(chrono_tz::Asia::Tokyo, Locale::Ja, 6), "送りました。");
}

#[test]
fn is_compressed_when_long_or_many() {
    let talk = |n: usize, chars: usize| Conversation {
        turns: vec![Turn::human("あ".repeat(chars)); n],
        ..Conversation::default()
    };
    assert!(talk(51, 1).needs_compression(Tokens(200_000), 0.3));
    assert!(!talk(3, 5000).needs_compression(Tokens(8_000), 0.3));
    assert!(talk(10, 5000).needs_compression(Tokens(128_000), 0.3));
    assert!(!talk(10, 3000).needs_compression(Tokens(128_000), 0.3));
    // a window of 32,000 allows 15 %: 4,800 tokens
    assert!(talk(5, 1000).needs_compression(Tokens(32_000), 0.3));
    assert!(!talk(5, 900).needs_compression(Tokens(32_000), 0.3));
}

#[test]
fn a_digest_needs_no_model() {
    let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
    let turns = (0..51).map(|n| Turn::human(format!("{n}{}", "い".repeat(600)))).collect();
    home.append_turns(&main(), turns).unwrap();
    home.update_conversation(&main(), |talk| talk.last_finalized_turn_index = 40).unwrap();
    let taken = home.conversation(&main()).unwrap().conversation.compression().unwrap();
    let digest = digest(&taken);
    assert!(digest.chars().count() <= 12_000 && digest.contains("- human: 35い"));
    home.append_turn(&main(), Turn::human("遅れて来た")).unwrap();
    assert!(home.compress(&main(), &taken, &digest).unwrap());
    assert!(!home.compress(&main(), &taken, &digest).unwrap(), "twice takes nothing more");
    let talk = home.conversation(&main()).unwrap().conversation;
    assert_eq!((talk.turns.len(), talk.compressed_turn_count, talk.last_finalized_turn_index), (16, 36, 4));
    assert_eq!(talk.turns.last().unwrap().content, "遅れて来た");
}

#[test]
fn a_summary_is_read_in_either_language() {
    let japanese = "前置き\n## エピソード要約\n見積の再送\n\n- 旧版を送った\n\n## ステート変更\n### 解決済み\n- 版の取り違え\n\
                    ### 新規タスク\n- なし\n### 現在の状態\n確認待ち\n";
    let summary = SessionSummary::parse(japanese);
    assert_eq!((summary.title.as_str(), summary.body.as_str()), ("見積の再送", "- 旧版を送った"));
    assert_eq!((summary.resolved.as_slice(), summary.new_tasks.len()), (["版の取り違え".to_owned()].as_slice(), 0));
    assert_eq!(summary.current_state, "確認待ち");
    let english = SessionSummary::parse("## Episode Summary\nSent again\n### Resolved\n(none)\n");
    assert_eq!(
        (english.title.as_str(), english.body.as_str(), english.resolved.len()),
        ("Sent again", "Sent again", 0)
    );
    let bare = SessionSummary::parse(&"あ".repeat(60));
    assert_eq!((bare.title.chars().count(), bare.body.chars().count()), (50, 60));
}

#[test]
fn an_ended_conversation_becomes_one_episode() {
    let (_dir, home, clock) = home_at("2026-03-31T09:15:02+09:00");
    let origin = crate::trust::Origin::human();
    home.append_turns(&main(), vec![Turn::human("a"), Turn::assistant("b"), Turn::human("c")]).unwrap();
    let talk = || home.conversation(&main()).unwrap().conversation;
    assert_eq!(home.to_finalize(&talk()), None, "it may go on");
    clock.advance(std::time::Duration::from_secs(600));
    let taken = home.to_finalize(&talk()).unwrap();
    let summary = SessionSummary::parse("見積の再送\n- 旧版を送った");
    fs::create_dir(&home.dir().episode(home.today())).unwrap();
    assert!(home.finalize(&main(), &taken, &summary, &origin).is_err());
    assert_eq!(talk().unfinalized().len(), 3);
    fs_err::remove_dir(home.dir().episode(home.today())).unwrap();
    home.append_turn(&main(), Turn::assistant("d")).unwrap();
    assert!(home.finalize(&main(), &taken, &summary, &origin).unwrap());
    assert!(!home.finalize(&main(), &taken, &summary, &origin).unwrap());
    assert_eq!(talk().unfinalized().len(), 1);
    // as if the process had died before the note was written
    home.update_conversation(&main(), |talk| talk.last_finalized_turn_index = 0).unwrap();
    assert!(home.finalize(&main(), &taken, &summary, &origin).unwrap());
    let page = fs::read_text(&home.dir().episode(home.today())).unwrap();
    assert_eq!(page.matches("見積の再送").count(), 1);
}

#[test]
fn a_finalized_index_too_large_is_no_trouble() {
    let mut talk =
        Conversation { turns: vec![Turn::human("a")], last_finalized_turn_index: 9, ..Conversation::default() };
    assert_eq!(talk.unfinalized(), []);
    talk.mark_finalized();
    assert_eq!(talk.last_finalized_turn_index, 1);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(32))]
    #[test]
    fn a_rewrite_keeps_unknown_keys(key in "x_[a-z]{1,8}", number in 0_i64..1000, content in "\\PC{0,30}") {
        let (_dir, home, _) = home_at("2026-03-31T09:15:02+09:00");
        let old = json!({
            "anima_name": "sakura",
            &key: {"deep": [number]},
            "turns": [{"role": "human", "content": content, "timestamp": 5, &key: number,
                "tool_records": [{"tool_name": "t", &key: [number]}]}],
        });
        put(&home.dir().conversation(&main()), old.to_string());
        home.append_turn(&main(), Turn::assistant("次")).unwrap();
        let new: serde_json::Value = fs::read_json(&home.dir().conversation(&main())).unwrap();
        proptest::prop_assert_eq!(&new[&key], &old[&key]);
        proptest::prop_assert_eq!(&new["turns"][0][&key], &old["turns"][0][&key]);
        proptest::prop_assert_eq!(&new["turns"][0]["tool_records"][0][&key], &json!([number]));
        proptest::prop_assert_eq!(&new["turns"][0]["content"], &old["turns"][0]["content"]);
        proptest::prop_assert_eq!(&new["turns"][0]["timestamp"], "5");
    }
}
