//! Letters that are never lost and never doubled, and boards that stay closed.

use futures_util::StreamExt;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::{
    home::{AnimaHome, activity::Activity, tests::put},
    message::{Intent, SenderKind},
    test_support::{ManualClock, SerialIds},
    trust::Origin,
};

const LEASE: Duration = Duration::from_secs(60);

struct Town {
    _dir: tempfile::TempDir,
    office: FilePostOffice,
    clock: ManualClock,
    data: DataDir,
    yuki: AnimaName,
}

fn town() -> Town {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::new(dir.path());
    let yuki = AnimaName::new("yuki").unwrap();
    fs::create_dir(data.anima(&yuki).root()).unwrap();
    let clock = ManualClock::at("2026-03-31T09:20:00.000123+09:00");
    let ids = Arc::new(SerialIds::default());
    let office = FilePostOffice::new(data.clone(), chrono_tz::Asia::Tokyo, Arc::new(clock.clone()), ids);
    Town { _dir: dir, office, clock, data, yuki }
}

fn letter(id: &str, text: &str) -> Message {
    let origin = Origin::human().relayed_by(Origin::ANIMA);
    Message { intent: Some(Intent::Report), ..Message::anima("sakura", text, origin) }
        .with_id(MessageId::new(id).unwrap())
}

#[tokio::test]
async fn a_letter_is_written_as_it_always_was() {
    let o = town();
    let id = "20260331_092000_000123";
    o.office.post(letter(id, "完了しました"), &o.yuki).await.unwrap();
    let written: Value = fs::read_json(&o.data.inbox(&o.yuki).join(format!("{id}.json"))).unwrap();
    let expected = json!({"id": id, "thread_id": "default", "reply_to": "", "from_person": "sakura", "to_person": "yuki",
        "type": "message", "content": "完了しました", "attachments": [], "intent": "report",
        "timestamp": "2026-03-31T09:20:00.000123+09:00", "source": "anima", "source_message_id": "",
        "external_user_id": "", "external_channel_id": "", "external_thread_ts": "",
        "origin_chain": ["human", "anima"], "meta": {}});
    assert_eq!(written, expected);
    let claims = o.office.claim(&o.yuki, 10, LEASE).await.unwrap();
    let read = &claims[0].item;
    assert_eq!((read.origin.clone(), read.intent), (Origin::human().relayed_by(Origin::ANIMA), Some(Intent::Report)));
}

#[tokio::test]
async fn the_same_letter_twice_is_one() {
    let o = town();
    o.office.post(letter("a", "1"), &o.yuki).await.unwrap();
    o.office.post(letter("a", "1"), &o.yuki).await.unwrap();
    let claims = o.office.claim(&o.yuki, 10, LEASE).await.unwrap();
    assert_eq!(claims.len(), 1);
    o.office.settle(&claims[0].lease, Settled::Done).await.unwrap();
    o.office.post(letter("a", "1"), &o.yuki).await.unwrap();
    assert_eq!(o.office.claim(&o.yuki, 10, LEASE).await.unwrap(), []);
    assert!(o.data.inbox(&o.yuki).join("processed/a.json").exists());
    let again = o.office.settle(&claims[0].lease, Settled::Done).await;
    assert!(matches!(again, Err(PostError::UnknownLease { .. })));
}

#[tokio::test]
async fn what_was_not_settled_comes_back_and_at_last_is_set_aside() {
    let o = town();
    o.office.post(letter("a", "1"), &o.yuki).await.unwrap();
    let mut first = None;
    for attempt in 1..=MAX_CRASHES {
        let claims = o.office.claim(&o.yuki, 10, LEASE).await.unwrap();
        let claim = claims.iter().find(|claim| claim.item.id.as_str() == "a").unwrap();
        assert_eq!(claim.attempt, attempt);
        first.get_or_insert(claim.lease.clone());
        assert_eq!(o.office.claim(&o.yuki, 10, LEASE).await.unwrap(), []);
        o.clock.advance(LEASE);
    }
    assert_eq!(o.office.claim(&o.yuki, 10, LEASE).await.unwrap(), []);
    assert!(o.data.inbox(&o.yuki).join("quarantine/a.json.error").exists());
    assert!(matches!(o.office.settle(&first.unwrap(), Settled::Done).await, Err(PostError::UnknownLease { .. })));
}

#[tokio::test]
async fn a_retry_waits_and_a_new_process_does_not() {
    let o = town();
    o.office.post(letter("a", "1"), &o.yuki).await.unwrap();
    let claims = o.office.claim(&o.yuki, 10, LEASE).await.unwrap();
    o.office.settle(&claims[0].lease, Settled::Retry { after: LEASE }).await.unwrap();
    assert!(o.data.inbox(&o.yuki).join("a.json").exists());
    assert_eq!(o.office.claim(&o.yuki, 10, LEASE).await.unwrap(), []);
    o.clock.advance(LEASE);
    assert_eq!(o.office.claim(&o.yuki, 10, LEASE).await.unwrap()[0].attempt, 2);
    assert_eq!(o.office.release_all(&o.yuki).unwrap(), 1);
    assert_eq!(o.office.claim(&o.yuki, 10, LEASE).await.unwrap()[0].attempt, 3);
    assert_eq!(o.office.unread(&o.yuki).unwrap(), 1);
}

#[tokio::test]
async fn letters_of_other_versions_open_and_broken_ones_are_set_aside() {
    let o = town();
    let inbox = o.data.inbox(&o.yuki);
    put(
        &inbox.join("b.json"),
        "\u{feff}{\"from\":\"U123\",\"content\":\"hi\",\"ts\":\"2026-03-30T10:00:00\",\"source\":\"slack\"}",
    );
    put(&inbox.join("c.json"), "{\"from_person\":");
    put(&inbox.join("d.json"), "{\"content\":\"nobody\"}");
    let claims = o.office.claim(&o.yuki, 10, LEASE).await.unwrap();
    assert_eq!(claims.len(), 1);
    let item = &claims[0].item;
    assert_eq!(
        (item.id.as_str(), item.from_kind, item.origin.source.as_str()),
        ("b", SenderKind::Human, "external_platform")
    );
    assert!(inbox.join("quarantine/c.json").exists() && inbox.join("quarantine/d.json.error").exists());
}

#[tokio::test]
async fn an_unknown_recipient_is_told_who_is_near() {
    let o = town();
    let error = o.office.post(letter("a", "1"), &AnimaName::new("yuuki").unwrap()).await.unwrap_err();
    assert!(matches!(error, PostError::UnknownRecipient { near, .. } if near == ["yuki"]));
}

#[tokio::test]
async fn the_bell_rings_for_waiting_and_new_letters() {
    let o = town();
    let mut bell = o.office.arrivals(&o.yuki);
    o.office.post(letter("a", "1"), &o.yuki).await.unwrap();
    assert_eq!(bell.next().await, Some(()));
    let claims = o.office.claim(&o.yuki, 10, LEASE).await.unwrap();
    o.office.settle(&claims[0].lease, Settled::Done).await.unwrap();
    let next = bell.next();
    let (rang, posted) = tokio::join!(next, o.office.post(letter("b", "2"), &o.yuki));
    assert!(rang.is_some() && posted.is_ok());
}

fn post(from: &str, text: &str) -> BoardPost {
    BoardPost {
        ts: DateTime::parse_from_rfc3339("2026-03-31T10:05:00.000001+09:00").unwrap(),
        from: from.into(),
        text: text.into(),
        source: SenderKind::Anima,
        extra: serde_json::Map::new(),
    }
}

#[tokio::test]
async fn a_board_knows_who_may_use_it() {
    let o = town();
    let general = BoardName::new("general").unwrap();
    assert!(matches!(o.office.publish(&general, post("sakura", "x")).await, Err(PostError::UnknownBoard { .. })));
    assert!(o.office.create_board(&general, None).unwrap());
    o.office.publish(&general, post("sakura", "請求書v3を送付済み @yuki")).await.unwrap();
    assert_eq!(
        fs::read_text(&o.data.board(&general)).unwrap(),
        "{\"ts\":\"2026-03-31T10:05:00.000001+09:00\",\"from\":\"sakura\",\"text\":\"請求書v3を送付済み @yuki\",\"source\":\"anima\"}\n"
    );
    let meta = |text: &str| put(&o.data.board_meta(&general), text);
    meta(r#"{"members":["sakura"],"closed":false}"#);
    assert!(matches!(o.office.board(&general, &o.yuki, None, 20).await, Err(PostError::NotAMember { .. })));
    o.office.publish(&general, post("sakura", "y")).await.unwrap();
    meta(r#"{"members":["sak"#);
    assert!(matches!(o.office.publish(&general, post("sakura", "z")).await, Err(PostError::NotAMember { .. })));
    assert_eq!(o.office.boards(&o.yuki).await.unwrap(), []);
    meta(r#"{"closed":true}"#);
    let human = BoardPost { source: SenderKind::Human, ..post("tanaka", "人から") };
    o.office.publish(&general, human).await.unwrap();
    meta(r#"{"members":[]}"#);
    assert_eq!(o.office.board(&general, &o.yuki, None, 2).await.unwrap().len(), 2);
    assert_eq!(o.office.boards(&o.yuki).await.unwrap(), [general]);
}

#[tokio::test]
async fn a_board_of_another_version_opens() {
    let o = town();
    let ops = BoardName::new("ops").unwrap();
    let lines = "{\"ts\":\"2026-03-31T10:00:00\",\"from\":\"taro\",\"text\":\"a\",\"source\":\"slack\",\"k\":1}\r\n{\"ts\":\"2026";
    put(&o.data.board(&ops), lines);
    let posts = o.office.board(&ops, &o.yuki, None, 20).await.unwrap();
    assert_eq!((posts.len(), &posts[0].extra["platform"], &posts[0].extra["k"]), (1, &json!("slack"), &json!(1)));
}

#[test]
fn two_remember_what_they_wrote_each_other() {
    let o = town();
    let home = AnimaHome::open(o.data.anima(&o.yuki), chrono_tz::Asia::Tokyo, Arc::new(o.clock.clone()));
    put(
        &o.data.shared().join("dm_logs/sakura-yuki.jsonl"),
        "{\"ts\":\"2026-03-01T09:20:00+09:00\",\"from\":\"sakura\",\"to\":\"yuki\",\"text\":\"昔\"}\n",
    );
    home.log(Activity::new("message_received").from("sakura").meta("from_type", "anima").content("見た？")).unwrap();
    home.log(Activity::new("message_received").from("sakura").meta("from_type", "human").content("人")).unwrap();
    home.log(Activity::new("message_sent").to("sakura").content("見た")).unwrap();
    let words = |query: &DmQuery| {
        let letters = home.dm_history("sakura", query).unwrap();
        letters.iter().map(|letter| format!("{}→{}:{}", letter.from, letter.to, letter.text)).collect::<Vec<_>>()
    };
    assert_eq!(words(&DmQuery::default()), ["sakura→yuki:昔", "sakura→yuki:見た？", "yuki→sakura:見た"]);
    assert_eq!(words(&DmQuery { sent: Some(true), ..DmQuery::default() }), ["yuki→sakura:見た"]);
    assert_eq!(words(&DmQuery { keyword: Some("？".into()), ..DmQuery::default() }), ["sakura→yuki:見た？"]);
    assert_eq!(home.dm_history("../x", &DmQuery::default()).unwrap(), []);
}
