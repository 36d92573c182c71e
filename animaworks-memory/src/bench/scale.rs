//! The same questions among very many records: does recall hold, does time?

use std::{fmt, sync::Arc};

use animaworks_core::Clock;
use chrono::Days;
use serde::{Deserialize, Serialize};

use super::{
    BenchError,
    data::{DataSet, Record, Store},
    random::Random,
    report::SpeedSummary,
    run::{Filled, Speed, Way},
    score::{ALL, Scorer, summary},
};
use crate::MemoryOptions;

/// Questions that are asked among very many records.
const QUESTIONS: usize = 200;
/// One word in so many is another one in a copy.
const SWAPPED: usize = 3;

/// What a run among very many records found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ScaleResult {
    /// The data set.
    pub dataset: String,
    /// Records.
    pub records: usize,
    /// Recall at 10 of the original questions among the original records.
    pub recall_alone: f64,
    /// The same among all of them.
    pub recall: f64,
    /// Times and sizes.
    pub speed: SpeedSummary,
}

impl fmt::Display for ScaleResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p95, p99) = self.speed.search_ms;
        write!(
            f,
            "{} × {}: recall@10 {:.3} → {:.3}, search {p50:.2} / {p95:.2} / {p99:.2} ms, index {:.1} s, {:.2} × text",
            self.dataset,
            self.records,
            self.recall_alone,
            self.recall,
            self.speed.index_s,
            self.speed.index_bytes as f64 / self.speed.corpus_bytes.max(1) as f64
        )
    }
}

/// Asks the questions of a set's first store among `count` records.
///
/// # Errors
///
/// When a directory cannot be made or the memory fails.
///
/// # Cancel safety
///
/// Safe; temporary directories are removed.
pub async fn run(
    set: &DataSet,
    count: usize,
    seed: u64,
    options: &MemoryOptions,
    clock: &Arc<dyn Clock>,
) -> Result<Option<ScaleResult>, BenchError> {
    let (Some(store), Some(gold)) = (set.stores.first(), set.gold.first()) else { return Ok(None) };
    let mut store = store.clone();
    store.questions.truncate(QUESTIONS);
    let recall = async |store: &Store, speed: &mut Speed, timed: bool| {
        let filled = Filled::new(store, options, clock, Way::Files).await?;
        let scored = Scorer::new(store, gold, false).rankings(&filled.rankings(store, |_| None).await?);
        if timed {
            filled.time(store, speed).await?;
        }
        filled.close(speed).await?;
        let value = summary(&scored).get(ALL).and_then(|metrics| metrics.get("recall@10").copied());
        Ok::<f64, BenchError>(value.unwrap_or_default())
    };
    let recall_alone = recall(&store, &mut Speed::default(), false).await?;
    grow(&mut store, count, seed);
    let mut speed = Speed::default();
    let among = recall(&store, &mut speed, true).await?;
    Ok(Some(ScaleResult {
        dataset: set.name.clone(),
        records: store.records.len(),
        recall_alone,
        recall: among,
        speed: SpeedSummary::of(&speed),
    }))
}

/// Adds copies in which one word in three is another one of the same set, said by other people on other days.
fn grow(store: &mut Store, count: usize, seed: u64) {
    let original = store.records.clone();
    let vocabulary: Vec<&str> = original.iter().flat_map(|record| record.text.split(' ')).collect();
    let mut random = Random::new(seed);
    let mut copy = 0_u64;
    while store.records.len() < count && !original.is_empty() {
        copy += 1;
        for record in original.iter().take(count - store.records.len()) {
            let words: Vec<&str> = record
                .text
                .split(' ')
                .map(|word| {
                    let swapped = (random.below(SWAPPED) == 0).then(|| random.below(vocabulary.len()));
                    swapped.and_then(|at| vocabulary.get(at).copied()).unwrap_or(word)
                })
                .collect();
            store.records.push(Record {
                id: format!("{}~{copy}", record.id),
                session: format!("{}~{copy}", record.session),
                // a year further back each time, so that the original is the newest
                at: record.at.and_then(|at| at.checked_sub_days(Days::new(370 * copy))),
                speaker: if record.speaker.is_empty() { String::new() } else { format!("{}{copy}", record.speaker) },
                text: words.join(" "),
            });
        }
    }
}
