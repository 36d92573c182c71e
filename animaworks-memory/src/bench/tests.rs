//! The bench checks itself, and guards recall on our own data.

#![allow(clippy::float_cmp, reason = "shares of small counts are exact")]
#![allow(clippy::disallowed_methods, reason = "a test is its own edge and reads where the data sets are")]

use std::{path::Path, sync::Arc};

use animaworks_core::{Clock, SystemClock};

use super::{
    compare,
    data::{self, DataSet, Question, Record, Store},
    gold::{Gold, Key},
    longmemeval, peers, plot, report, run,
    score::{self, Scorer},
};
use crate::MemoryOptions;

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

fn animem() -> DataSet {
    DataSet::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/animem.dev.jsonl.gz")).unwrap()
}

fn small() -> (Store, Gold) {
    let record = |id: &str, session: &str, text: &str| Record {
        id: id.to_owned(),
        session: session.to_owned(),
        at: Some("2026-03-01T09:00:00".parse().unwrap()),
        speaker: "Mika".to_owned(),
        text: text.to_owned(),
    };
    let store = Store {
        dataset: "small".to_owned(),
        language: "en".to_owned(),
        group: "one".to_owned(),
        now: None,
        records: vec![
            record("a", "1", "The kettle is in the blue cupboard"),
            record("b", "1", "Rain again"),
            record("c", "2", "The kettle moved to the shelf"),
        ],
        questions: vec![Question { id: "q".to_owned(), text: "Where is the kettle?".to_owned() }],
    };
    let key = Key {
        category: "update".to_owned(),
        evidence: vec!["c".to_owned()],
        original: vec!["a".to_owned(), "c".to_owned()],
        stale: vec!["a".to_owned()],
    };
    (store, Gold { keys: [("q".to_owned(), key)].into() })
}

#[test]
fn a_ranking_is_scored_by_depth_tokens_and_order_of_versions() {
    let (store, gold) = small();
    let scored = Scorer::new(&store, &gold, false).rankings(&[vec![0, 2, 1]]);
    let figures = &scored.first().unwrap().metrics;
    assert_eq!(figures["recall@1"], 0.0);
    assert_eq!(figures["recall@5"], 1.0);
    assert_eq!(figures["mrr"], 0.5);
    assert!((figures["ndcg@10"] - 0.630_929_75).abs() < 1e-6);
    assert_eq!(figures["fresh_first"], 0.0);
    assert_eq!(figures["all@100t"], 1.0);
    let audited_away = Scorer::new(&store, &gold, true).rankings(&[vec![0]]);
    assert_eq!(audited_away.first().unwrap().metrics["recall@5"], 0.5);
}

#[test]
fn a_record_counts_in_a_text_only_whole_and_inside_the_budget() {
    let (store, gold) = small();
    let scorer = Scorer::new(&store, &gold, false);
    let any = |text: &str| scorer.texts(&[text.to_owned()]).first().unwrap().metrics["prime_any@1100t"];
    assert_eq!(any("- [2026-03-01] Mika: The kettle moved to  the shelf (episodes/x.md:4)"), 1.0);
    assert_eq!(any("The kettle moved to"), 0.0);
    assert_eq!(any(&format!("{}The kettle moved to the shelf", "x".repeat(4400))), 0.0);
}

#[test]
fn tokens_are_counted_without_a_tokeniser() {
    assert!((score::tokens("鍵abcd") - 2.0).abs() < 1e-9);
}

#[tokio::test]
async fn peers_find_what_they_should_and_the_floor_does_not() {
    let (store, gold) = small();
    let set = DataSet {
        name: "small".to_owned(),
        path: "small".into(),
        sha256: String::new(),
        stores: vec![store],
        gold: vec![gold],
    };
    let peers = peers::run(&set, Some(&crate::HashEmbedder::new()), &clock(), false).await.unwrap();
    let recall = |name: &str| peers[name].scored.first().unwrap().metrics["recall@5"];
    for name in ["bm25", "bm25-nostem", "bm25-bigrams", "fts5-unicode61", "fts5-porter", "fts5-trigram", "oracle"] {
        assert!((recall(name) - 1.0).abs() < 1e-9, "{name}");
    }
    for name in ["dense", "rrf(bm25,dense)", "zsum(bm25,dense)", "zsum+context", "floor-random", "floor-recency"] {
        assert!(peers.contains_key(name), "{name}");
    }
}

/// The data and the scorer are those the reference figures were measured with.
#[tokio::test]
async fn textbook_figures_on_our_own_data_are_reproduced() {
    let set = animem();
    let peers = peers::run(&set, None, &clock(), false).await.unwrap();
    let figure = |name: &str, metric: &str| score::summary(&peers[name].scored)[score::ALL][metric];
    for (name, metric, reference) in [
        ("bm25", "recall@10", 0.212),
        ("bm25", "all@1100t", 0.656),
        ("bm25-nostem", "recall@10", 0.282),
        ("bm25-nostem", "fresh_first", 0.210),
        ("fts5-trigram", "recall@10", 0.210),
        ("fts5-unicode61", "recall@10", 0.105),
    ] {
        let measured = figure(name, metric);
        assert!((measured - reference).abs() <= 0.005, "{name} {metric}: {measured} is not {reference}");
    }
    assert!((figure("oracle", "recall@700t") - 1.0).abs() < 1e-9);
}

/// Four stores, one of them asked in the other language; figures below these mean that something broke.
#[tokio::test]
async fn recall_on_our_own_data_does_not_fall() {
    let set = animem();
    let four = DataSet { stores: set.stores[..4].to_vec(), gold: set.gold[..4].to_vec(), ..set };
    let product = run::run(&four, &MemoryOptions::default(), &clock(), run::How::default(), |_| {}).await.unwrap();
    let figures = score::summary(&product.scored);
    for (metric, least) in FLOORS {
        let measured = figures[score::ALL][metric];
        assert!(measured >= least, "{metric}: {measured} < {least}");
    }
    assert_eq!(product.speed.records, four.stores.iter().map(|store| store.records.len()).sum::<usize>());
}

/// What words alone reach, less a little.
const FLOORS: [(&str, f64); 4] =
    [("recall@10", 0.49), ("recall@700t", 0.92), ("any@1100t", 0.975), ("fresh_first", 0.61)];

#[test]
fn a_report_is_read_back_and_compared() {
    let (store, gold) = small();
    let scorer = Scorer::new(&store, &gold, false);
    let run = |ranking: Vec<usize>| {
        let product = run::ProductRun { scored: scorer.rankings(&[ranking]), ..run::ProductRun::default() };
        let set = DataSet {
            name: "small".to_owned(),
            path: "small".into(),
            sha256: String::new(),
            stores: vec![store.clone()],
            gold: vec![gold.clone()],
        };
        let mut report = report::Report::new(std::collections::BTreeMap::new()).unwrap();
        report.add(&set, Some(&product), &peers::Peers::new());
        let text = serde_json::to_string(&report).unwrap();
        serde_json::from_str::<report::Report>(&text).unwrap()
    };
    let (good, bad) = (run(vec![2, 0]), run(vec![1]));
    let worse = compare::reports(&good, &bad);
    assert!(worse.iter().any(|one| one.metric == "recall@10" && one.is_worse()));
    assert!(compare::reports(&bad, &good).iter().all(|one| !one.is_worse()));
    assert!(compare::reports(&good, &good).iter().all(|one| !one.is_worse() && !one.is_better()));
    let labels = plot::Labels { tokens: "tokens".to_owned(), recall: "recall".to_owned() };
    assert!(plot::svg(&good, &labels).contains(report::PRODUCT));
    assert!(good.markdown().contains("| animaworks | 1.000"));
}

#[test]
fn many_memories_become_one_without_mixing_names_of_records() {
    let set = animem().merged();
    let store = set.stores.first().unwrap();
    let mut ids: Vec<&str> = store.records.iter().map(|record| record.id.as_str()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    let scorer = Scorer::new(store, set.gold.first().unwrap(), false);
    assert_eq!(store.questions.iter().filter(|question| !scorer.evidence(&question.id).is_empty()).count(), 372);
}

#[test]
fn a_file_of_longmemeval_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.json");
    fs_err::write(
        &file,
        r#"[{"question_id":"q1","question_type":"single-session-user","question":"Which tea?","question_date":"2023/05/30 (Tue) 10:00",
            "haystack_session_ids":["s1","s2"],"haystack_dates":["2023/05/20 (Sat) 02:21","2023/05/21 (Sun) 09:00"],
            "haystack_sessions":[[{"role":"user","content":"Hello\nthere"}],[{"role":"user","content":"I like sencha","has_answer":true}]],
            "answer_session_ids":["s2"],"answer":"sencha"}]"#,
    )
    .unwrap();
    let set = longmemeval::read(&file).unwrap();
    let store = set.stores.first().unwrap();
    assert_eq!(store.records.first().unwrap().text, "Hello there");
    assert_eq!(store.records.first().unwrap().at, Some("2023-05-20T02:21:00".parse().unwrap()));
    let scored = Scorer::new(store, set.gold.first().unwrap(), false).rankings(&[vec![1]]);
    assert_eq!(scored.first().unwrap().metrics["sess_hit@5"], 1.0);
    assert!(longmemeval::read(&dir.path().join("none.json")).is_err());
}

/// Sets of others, where `ANIMAWORKS_BENCH_DATA` says they are; prints the report.
#[tokio::test]
async fn sets_of_others_are_measured_where_they_are() {
    let Ok(directory) = std::env::var("ANIMAWORKS_BENCH_DATA") else {
        eprintln!("skipped: ANIMAWORKS_BENCH_DATA is not set");
        return;
    };
    let mut report = report::Report::new(std::collections::BTreeMap::new()).unwrap();
    for (name, bm25) in [("locomo", 0.610), ("jsquad", 0.980), ("jaquad", 0.984), ("animem", 0.212)] {
        let file = data::file_of(Path::new(&directory), name, "dev");
        if !file.is_file() {
            report.skip(name, "there is no such file");
            continue;
        }
        let set = DataSet::read(&file).unwrap();
        let peers = peers::run(&set, None, &clock(), false).await.unwrap();
        let product = run::run(&set, &MemoryOptions::default(), &clock(), run::How::default(), |_| {}).await.unwrap();
        report.add(&set, Some(&product), &peers);
        // another figure means that the data or the scorer has changed
        let measured = report.peers[name]["bm25"].metrics[score::ALL]["recall@10"];
        assert!((measured - bm25).abs() <= 0.005, "{name}: {measured} is not {bm25}");
    }
    println!("{}", report.markdown());
}
