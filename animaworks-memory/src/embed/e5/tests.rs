//! The manners of the embedder.

#[cfg(feature = "oracle")]
mod oracle;

use super::*;
use crate::embed::weights::{import, tests::small};

const TEXTS: [&str; 8] = [
    "the server",
    "明日の会議は東京駅で十時から。資料は前日までに共有フォルダへ入れておくこと。",
    "Restart the server after the deploy, then tell the team on the board that it is back.",
    "鍵",
    "",
    "品川駅の南口に鍵を預けた",
    "a b c 🙂 か\u{3099} ＡＢＣ",
    "How many people came to the meeting in Osaka last Thursday, and who wrote the minutes?",
];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

fn options(threads: usize) -> E5Options {
    E5Options { threads, idle: Duration::from_secs(600) }
}

#[test]
fn a_vector_depends_on_its_text_alone() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = import(&small(from.path(), false), models.path(), &mut |_| {}).unwrap().dir;
    let texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    runtime().block_on(async {
        let one = E5Embedder::open(&dir, options(1)).unwrap();
        let many = E5Embedder::open(&dir, options(3)).unwrap();
        assert!(!one.is_loaded(), "opening loads nothing");
        let together = many.embed(EmbedKind::Passage, texts.clone()).await.unwrap();
        for (text, vector) in texts.iter().zip(&together) {
            let alone = one.embed(EmbedKind::Passage, vec![text.clone()]).await.unwrap();
            assert_eq!(&alone[0], vector, "{text}");
            assert_eq!(vector.len(), one.dimensions());
            assert!((vector.iter().map(|value| value * value).sum::<f32>() - 1.0).abs() < 1e-5);
        }
        assert_ne!(one.embed(EmbedKind::Query, texts.clone()).await.unwrap(), together, "the kind matters");
        assert_eq!(one.signature(), many.signature());
        assert!(one.is_loaded());
        one.release();
        assert!(!one.is_loaded());
        assert_eq!(one.embed(EmbedKind::Passage, texts.clone()).await.unwrap(), together, "it comes back by itself");
        assert_eq!(one.embed(EmbedKind::Passage, Vec::new()).await.unwrap(), Vec::<Vec<f32>>::new());
    });
}

#[test]
fn layers_are_given_back_when_nothing_comes() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = import(&small(from.path(), false), models.path(), &mut |_| {}).unwrap().dir;
    runtime().block_on(async {
        let options = E5Options { threads: 1, idle: Duration::from_millis(1) };
        let embedder = E5Embedder::open(&dir, options).unwrap();
        embedder.embed(EmbedKind::Query, vec!["a".to_owned()]).await.unwrap();
        // ends when the worker has waited once; the test runner's limit catches one that never does
        while embedder.is_loaded() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn what_nobody_waits_for_is_not_computed_and_blocks_nobody() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = import(&small(from.path(), false), models.path(), &mut |_| {}).unwrap().dir;
    runtime().block_on(async {
        let embedder = E5Embedder::open(&dir, options(1)).unwrap();
        let many = vec!["会議 ".repeat(60); 500];
        drop(embedder.embed(EmbedKind::Passage, many.clone()));
        futures_util::future::select(
            Box::pin(embedder.embed(EmbedKind::Passage, many)),
            Box::pin(std::future::ready(())),
        )
        .await;
        assert_eq!(embedder.embed(EmbedKind::Query, vec!["a".to_owned()]).await.unwrap().len(), 1);
    });
}

#[test]
fn a_broken_layer_is_an_error_that_names_the_file() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = import(&small(from.path(), false), models.path(), &mut |_| {}).unwrap().dir;
    let path = dir.join("weights.safetensors");
    let mut bytes = fs_err::read(&path).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    animaworks_core::fs::write_atomic(&path, &bytes, animaworks_core::fs::Privacy::Normal).unwrap();
    runtime().block_on(async {
        let embedder = E5Embedder::open(&dir, options(1)).unwrap();
        let error = embedder.embed(EmbedKind::Query, vec!["a".to_owned()]).await.unwrap_err();
        assert!(matches!(&error, EmbedError::Corrupt { path: named, .. } if *named == path), "{error}");
    });
}
