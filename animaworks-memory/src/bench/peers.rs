//! Retrievers from textbooks over the same records, so that every figure has its measure beside it.

mod bm25;
mod fts5;

use std::{collections::BTreeMap, sync::Arc};

use animaworks_core::Clock;

use super::{
    BenchError, SEED,
    data::{DataSet, Record, Store},
    random::Random,
    score::{Scored, Scorer},
};
use crate::embed::{EmbedKind, Embedder};
use bm25::{Bm25, Words};

/// How long a peer's ranking is.
const DEPTH: usize = 200;
/// Texts of one call of the model.
const BATCH: usize = 256;
/// The constant of reciprocal ranks.
const RRF_K: f64 = 60.0;

/// What a peer did over a set.
#[derive(Debug, Clone, Default)]
pub struct PeerRun {
    /// What every question scored.
    pub scored: Vec<Scored>,
    /// Milliseconds of every search; empty where a peer is made of others.
    pub search_ms: Vec<f64>,
    /// Seconds to build what it searches.
    pub index_s: f64,
}

/// The names of the peers and what each of them did.
pub type Peers = BTreeMap<String, PeerRun>;

/// Runs every peer over a set, those of meaning only with a model.
///
/// # Errors
///
/// When a peer's database or the model fails.
///
/// # Cancel safety
///
/// Safe.
pub async fn run(
    set: &DataSet,
    embedder: Option<&dyn Embedder>,
    clock: &Arc<dyn Clock>,
    original: bool,
) -> Result<Peers, BenchError> {
    let mut peers = Peers::new();
    for (store, gold) in set.stores.iter().zip(&set.gold) {
        let scorer = Scorer::new(store, gold, original);
        for (name, ranked) in rank(store, &scorer, embedder, clock).await? {
            let peer = peers.entry(name).or_default();
            peer.scored.extend(scorer.rankings(&ranked.rankings));
            peer.search_ms.extend(ranked.search_ms);
            peer.index_s += ranked.index_s;
        }
    }
    Ok(peers)
}

/// One peer over one store.
#[derive(Debug, Default)]
struct Ranked {
    rankings: Vec<Vec<usize>>,
    search_ms: Vec<f64>,
    index_s: f64,
}

async fn rank(
    store: &Store,
    scorer: &Scorer<'_>,
    embedder: Option<&dyn Embedder>,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<(String, Ranked)>, BenchError> {
    let texts: Vec<String> = store.records.iter().map(searched).collect();
    let count = texts.len();
    let mut done: Vec<(String, Ranked)> = Vec::new();
    for (name, tokenize) in
        [("fts5-unicode61", "unicode61"), ("fts5-porter", "porter unicode61"), ("fts5-trigram", "trigram")]
    {
        done.push((name.to_owned(), fts5::rank(&texts, tokenize, store, clock, DEPTH).await?));
    }
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for (name, words) in [("bm25", Words::Stemmed), ("bm25-nostem", Words::Plain), ("bm25-bigrams", Words::Bigrams)] {
        let begun = clock.elapsed();
        let index = Bm25::new(&texts, words);
        let mut ranked = Ranked { index_s: clock.elapsed().saturating_sub(begun).as_secs_f64(), ..Ranked::default() };
        for question in &store.questions {
            let begun = clock.elapsed();
            let found = index.scores(&question.text);
            ranked.search_ms.push(clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0);
            ranked.rankings.push(best(&found, |score| score > 0.0));
            if words == Words::Stemmed {
                scores.push(found);
            }
        }
        done.push((name.to_owned(), ranked));
    }
    let lexical: Vec<Vec<usize>> = scores.iter().map(|found| best(found, |score| score > 0.0)).collect();
    done.push(("bm25+recency".to_owned(), made(scores.iter().map(|found| best(&recent(found), |_| true)))));
    if let Some(embedder) = embedder {
        done.extend(by_meaning(store, &texts, embedder, &scores, &lexical).await?);
    }
    let mut random = Random::new(SEED);
    done.push(("floor-random".to_owned(), made(store.questions.iter().map(|_| random.sample(count, DEPTH)))));
    done.push((
        "floor-recency".to_owned(),
        made(store.questions.iter().map(|_| (0..count).rev().take(DEPTH).collect())),
    ));
    done.push((
        "oracle".to_owned(),
        made(store.questions.iter().map(|question| {
            let evidence = scorer.evidence(&question.id);
            let rest = (0..count).filter(|record| !evidence.contains(record)).take(DEPTH);
            evidence.iter().copied().chain(rest).collect()
        })),
    ));
    Ok(done)
}

fn made(rankings: impl Iterator<Item = Vec<usize>>) -> Ranked {
    Ranked { rankings: rankings.collect(), ..Ranked::default() }
}

/// What a peer reads of a record.
fn searched(record: &Record) -> String {
    if record.speaker.is_empty() { record.text.clone() } else { format!("{}: {}", record.speaker, record.text) }
}

/// The peers that need a model: meaning alone, both by ranks, both by scores, and that with its surroundings.
async fn by_meaning(
    store: &Store,
    texts: &[String],
    embedder: &dyn Embedder,
    words: &[Vec<f64>],
    lexical: &[Vec<usize>],
) -> Result<Vec<(String, Ranked)>, BenchError> {
    let passages = vectors(embedder, EmbedKind::Passage, texts).await?;
    let asked: Vec<String> = store.questions.iter().map(|question| question.text.clone()).collect();
    let questions = vectors(embedder, EmbedKind::Query, &asked).await?;
    let mut dense = Ranked::default();
    let mut rrf = Ranked::default();
    let mut sum = Ranked::default();
    let mut around = Ranked::default();
    for ((question, words), lexical) in questions.iter().zip(words).zip(lexical) {
        let near: Vec<f64> = passages.iter().map(|passage| dot(passage, question)).collect();
        let by_meaning = best(&near, |_| true);
        rrf.rankings.push(reciprocal(&[lexical, &by_meaning], texts.len()));
        dense.rankings.push(by_meaning);
        let both: Vec<f64> = standard(words).iter().zip(standard(&near)).map(|(a, b)| a + b).collect();
        sum.rankings.push(best(&both, |_| true));
        around.rankings.push(best(&with_context(&both, &store.records), |_| true));
    }
    Ok(vec![
        ("dense".to_owned(), dense),
        ("rrf(bm25,dense)".to_owned(), rrf),
        ("zsum(bm25,dense)".to_owned(), sum),
        ("zsum+context".to_owned(), around),
    ])
}

async fn vectors(embedder: &dyn Embedder, kind: EmbedKind, texts: &[String]) -> Result<Vec<Vec<f32>>, BenchError> {
    let mut all = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        all.extend(embedder.embed(kind, batch.to_vec()).await?);
    }
    Ok(all)
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// The best records, equal ones in their own order.
fn best(scores: &[f64], admits: impl Fn(f64) -> bool) -> Vec<usize> {
    let mut order: Vec<(usize, f64)> = scores.iter().copied().enumerate().filter(|(_, score)| admits(*score)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.truncate(DEPTH);
    order.into_iter().map(|(record, _)| record).collect()
}

/// Scores in standard deviations above their mean.
fn standard(scores: &[f64]) -> Vec<f64> {
    let n = scores.len().max(1) as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let deviation = (scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / n).sqrt();
    scores.iter().map(|score| (score - mean) / (deviation + 1e-9)).collect()
}

/// The newer the better, over the whole ranking: what update questions seem to want, and what costs the others.
fn recent(scores: &[f64]) -> Vec<f64> {
    let n = scores.len() as f64;
    let age = |record: usize| -(n - 1.0 - record as f64) / (n / 4.0);
    let recency: Vec<f64> = (0..scores.len()).map(|record| age(record).exp2()).collect();
    standard(scores).iter().zip(standard(&recency)).map(|(score, recency)| score + recency).collect()
}

/// Scores with a share of those one and two places away in the same session.
fn with_context(scores: &[f64], records: &[Record]) -> Vec<f64> {
    let session = |at: usize| records.get(at).map(|record| record.session.as_str());
    (0..scores.len())
        .map(|at| {
            let around: f64 = [(1, 0.5), (2, 0.25)]
                .into_iter()
                .flat_map(|(by, share)| [(at.checked_sub(by), share), (at.checked_add(by), share)])
                .filter_map(|(place, share)| {
                    let place = place.filter(|place| session(*place) == session(at))?;
                    Some(share * scores.get(place)?.max(0.0))
                })
                .sum();
            scores.get(at).copied().unwrap_or_default() + 0.4 * around
        })
        .collect()
}

fn reciprocal(rankings: &[&[usize]], count: usize) -> Vec<usize> {
    let mut scores = vec![0.0; count];
    for ranking in rankings {
        for (rank, record) in ranking.iter().enumerate() {
            if let Some(score) = scores.get_mut(*record) {
                *score += 1.0 / (RRF_K + rank as f64 + 1.0);
            }
        }
    }
    best(&scores, |score| score > 0.0)
}
