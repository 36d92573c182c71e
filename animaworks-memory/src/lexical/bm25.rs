//! BM25 over posting rows.

use std::collections::BTreeMap;

use crate::{
    chunk::Kind,
    index::{
        directory::{BLOCK, ChunkId, Directory},
        reader::PostingRows,
    },
    lexical::postings::entries,
    text::terms::{QueryTerm, TermKind},
};

/// How soon repeating a term stops counting.
const K1: f32 = 1.2;
/// How much longer chunks have to repeat themselves.
const B: f32 = 0.75;

/// One in the fixed-point sums.
const UNIT: f32 = 65536.0;

/// How well each chunk answers by its words.
#[derive(Debug, Default)]
pub(crate) struct Lexical {
    /// Scores by block; chunks that share nothing with the question have none.
    blocks: BTreeMap<i64, Vec<f32>>,
    /// How many chunks were asked.
    pub(crate) asked: u64,
    // in fixed point: a sum that does not depend on the order chunks were numbered in
    sum: u128,
    squares: u128,
    /// The information of each term, and of the whole question.
    idf: Vec<f32>,
    wanted: f32,
    lists: Vec<Vec<ChunkId>>,
}

impl Lexical {
    /// Scores every chunk of some kinds.
    pub(crate) fn score(directory: &Directory, terms: &[QueryTerm], rows: &PostingRows, kinds: &[Kind]) -> Self {
        let extent = directory.extent(kinds);
        let mut lexical = Self { asked: extent.live, ..Self::default() };
        let average = (extent.length as f32 / extent.live.max(1) as f32).max(1.0);
        let mut order: Vec<usize> = (0..rows.rows.len()).collect();
        order.sort_by_key(|at| rows.rows.get(*at).map(|(term, block, _)| (*term, *block)));
        let mut at = 0;
        lexical.lists = vec![Vec::new(); terms.len()];
        lexical.idf = vec![0.0; terms.len()];
        let mut matches: Vec<(ChunkId, u32, u16)> = Vec::new();
        for (number, term) in terms.iter().enumerate() {
            matches.clear();
            while let Some((of, block, data)) =
                order.get(at).and_then(|at| rows.rows.get(*at)).filter(|(of, ..)| *of == number)
            {
                debug_assert_eq!(*of, number);
                let kind = ChunkId::at(*block, 0).kind();
                if kind.is_some_and(|kind| kinds.contains(&kind)) {
                    for (local, frequency) in entries(data) {
                        let id = ChunkId::at(*block, local);
                        if let Some(doc) = directory.doc(id) {
                            matches.push((id, frequency, doc.length));
                        }
                    }
                }
                at += 1;
            }
            let found = matches.len() as f32;
            let idf = (1.0 + (extent.live as f32 - found + 0.5) / (found + 0.5)).ln().max(0.0);
            if let Some(place) = lexical.idf.get_mut(number) {
                *place = idf;
            }
            for &(id, frequency, length) in &matches {
                let frequency = frequency as f32;
                let norm = K1 * (1.0 - B + B * f32::from(length) / average);
                let gain = term.weight * idf * frequency * (K1 + 1.0) / (frequency + norm);
                let block = lexical.blocks.entry(id.block()).or_insert_with(|| vec![0.0; BLOCK]);
                if let Some(score) = block.get_mut(id.local()) {
                    *score += gain;
                }
            }
            if is_telling(term.kind) {
                lexical.wanted += idf;
                if let Some(list) = lexical.lists.get_mut(number) {
                    list.extend(matches.iter().map(|(id, ..)| *id));
                }
            }
        }
        for score in lexical.blocks.values().flatten().filter(|score| **score > 0.0) {
            let fixed = (score * UNIT) as u128;
            lexical.sum += fixed;
            lexical.squares += fixed * fixed;
        }
        lexical
    }

    /// The score of a chunk; 0 when it shares nothing with the question.
    pub(crate) fn of(&self, id: ChunkId) -> f32 {
        self.blocks.get(&id.block()).and_then(|block| block.get(id.local())).copied().unwrap_or(0.0)
    }

    /// The score in standard deviations above what is usual for this question.
    pub(crate) fn z(&self, id: ChunkId) -> f32 {
        let (mean, deviation) = self.spread();
        ((f64::from(self.of(id)) - mean) / deviation) as f32
    }

    fn spread(&self) -> (f64, f64) {
        let count = (self.asked.max(1)) as f64;
        let unit = f64::from(UNIT);
        let mean = self.sum as f64 / unit / count;
        let variance = (self.squares as f64 / unit / unit / count - mean * mean).max(0.0);
        // where few places are asked they hardly differ, and a hair's breadth is not a distance
        (mean, variance.sqrt().max(0.1))
    }

    /// The best chunks with a score, best first; equal scores by path and place.
    pub(crate) fn best(&self, directory: &Directory, count: usize) -> Vec<(ChunkId, f32)> {
        let mut all: Vec<(ChunkId, f32)> = Vec::new();
        let mut floor = 0.0_f32;
        for (block, scores) in &self.blocks {
            for (local, score) in scores.iter().enumerate() {
                if *score <= 0.0 || *score < floor {
                    continue;
                }
                all.push((ChunkId::at(*block, local), *score));
                // keep what could still matter, not everything
                if all.len() >= 8 * count.max(64) {
                    shorten(directory, &mut all, count);
                    floor = all.last().map_or(0.0, |(_, score)| *score);
                }
            }
        }
        shorten(directory, &mut all, count);
        all
    }

    /// How much of what was asked a chunk speaks of: 0 to 1, by the information of the terms.
    pub(crate) fn coverage(&self, id: ChunkId) -> f32 {
        if self.wanted <= 0.0 {
            return 0.0;
        }
        let covered: f32 = self
            .lists
            .iter()
            .zip(&self.idf)
            .filter(|(list, _)| list.binary_search(&id).is_ok())
            .map(|(_, idf)| *idf)
            .sum();
        covered / self.wanted
    }

    /// How many telling terms the question has.
    pub(crate) fn telling(terms: &[QueryTerm]) -> usize {
        terms.iter().filter(|term| is_telling(term.kind)).count()
    }
}

fn is_telling(kind: TermKind) -> bool {
    matches!(kind, TermKind::Word | TermKind::Bigram | TermKind::Single)
}

fn shorten(directory: &Directory, all: &mut Vec<(ChunkId, f32)>, count: usize) {
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| directory.place_of(a.0).cmp(&directory.place_of(b.0))));
    all.truncate(count);
}
