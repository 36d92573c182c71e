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
    /// The best score there is.
    pub(crate) top: f32,
    /// The score of a chunk that has every term very often.
    pub(crate) most: f32,
    /// The information of each term, and of all that are no names of speakers.
    idf: Vec<f32>,
    content_idf: f32,
    wanted: f32,
    /// The terms of each chunk by block, a bit each.
    masks: BTreeMap<i64, Vec<u128>>,
    /// Terms that occur at all, a bit each.
    occurring: u128,
    /// Terms that say something, a bit each; of them, those that are no names of speakers, and how each looks as written.
    telling: u128,
    content: u128,
    exact: Vec<(u32, u32)>,
}

impl Lexical {
    /// Scores every chunk of some kinds. Terms marked in `names` name a speaker: who speaks is no word of what is said.
    pub(crate) fn score(
        directory: &Directory,
        terms: &[QueryTerm],
        names: u128,
        rows: &PostingRows,
        kinds: &[Kind],
    ) -> Self {
        let extent = directory.extent(kinds);
        let mut lexical = Self { asked: extent.live, ..Self::default() };
        let average = (extent.length as f32 / extent.live.max(1) as f32).max(1.0);
        let mut order: Vec<usize> = (0..rows.rows.len()).collect();
        order.sort_by_key(|at| rows.rows.get(*at).map(|(term, block, _)| (*term, *block)));
        let mut at = 0;
        lexical.idf = vec![0.0; terms.len()];
        for (number, term) in (0_u32..).zip(terms) {
            if is_telling(term.kind) {
                lexical.telling |= bit(number);
                let written = terms.get(number as usize + 1).filter(|next| next.kind == TermKind::Surface);
                lexical.exact.push((number, if written.is_some() { number + 1 } else { number }));
            }
        }
        // a question of nothing but a name is about the name
        let names = if lexical.telling & !names == 0 { 0 } else { names };
        lexical.content = lexical.telling & !names;
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
            let own = u32::try_from(number).map_or(0, bit);
            let scored = own & names == 0;
            if !matches.is_empty() {
                lexical.occurring |= own;
            }
            for (id, ..) in &matches {
                let block = lexical.masks.entry(id.block()).or_insert_with(|| vec![0; BLOCK]);
                if let Some(mask) = block.get_mut(id.local()) {
                    *mask |= own;
                }
            }
            for &(id, frequency, length) in matches.iter().filter(|_| scored) {
                let frequency = frequency as f32;
                let norm = K1 * (1.0 - B + B * f32::from(length) / average);
                let gain = term.weight * idf * frequency * (K1 + 1.0) / (frequency + norm);
                let block = lexical.blocks.entry(id.block()).or_insert_with(|| vec![0.0; BLOCK]);
                if let Some(score) = block.get_mut(id.local()) {
                    *score += gain;
                }
            }
            if scored {
                lexical.most += term.weight * idf * (K1 + 1.0);
            }
            if is_telling(term.kind) {
                lexical.wanted += idf;
            }
            if own & lexical.content != 0 {
                lexical.content_idf += idf;
            }
        }
        for score in lexical.blocks.values().flatten().filter(|score| **score > 0.0) {
            let fixed = (score * UNIT) as u128;
            lexical.sum += fixed;
            lexical.squares += fixed * fixed;
            lexical.top = lexical.top.max(*score);
        }
        lexical
    }

    /// The terms a chunk has, a bit each.
    pub(crate) fn mask(&self, id: ChunkId) -> u128 {
        self.masks.get(&id.block()).and_then(|block| block.get(id.local())).copied().unwrap_or(0)
    }

    /// Whether any chunk has a term.
    pub(crate) fn occurs(&self, term: u32) -> bool {
        self.occurring & bit(term) != 0
    }

    /// The chunks that have every term of a mask; none when they are very many.
    pub(crate) fn having(&self, mask: u128, at_most: usize) -> Vec<ChunkId> {
        let mut having = Vec::new();
        for (block, masks) in &self.masks {
            for (local, _) in masks.iter().enumerate().filter(|(_, of)| **of & mask == mask) {
                if having.len() >= at_most {
                    return Vec::new();
                }
                having.push(ChunkId::at(*block, local));
            }
        }
        having
    }

    /// How much of what was asked is in a mask of terms, names of speakers aside: 0 to 1, by the information of the terms.
    pub(crate) fn content_in(&self, mask: u128) -> f32 {
        self.share(mask & self.content)
    }

    /// The same, counting only words as they were written.
    pub(crate) fn exactly_in(&self, mask: u128) -> f32 {
        let written = self.exact.iter().filter(|(_, written)| mask & bit(*written) != 0);
        let has = written.fold(0, |has, (number, _)| has | bit(*number));
        self.share(has & self.content)
    }

    fn share(&self, part: u128) -> f32 {
        if self.content_idf > 0.0 { self.information(part) / self.content_idf } else { 0.0 }
    }

    fn information(&self, mut mask: u128) -> f32 {
        let mut sum = 0.0;
        while mask != 0 {
            sum += self.idf.get(mask.trailing_zeros() as usize).copied().unwrap_or_default();
            mask &= mask - 1;
        }
        sum
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
        if self.wanted <= 0.0 { 0.0 } else { self.information(self.mask(id) & self.telling) / self.wanted }
    }

    /// How many telling terms the question has.
    pub(crate) fn telling(terms: &[QueryTerm]) -> usize {
        terms.iter().filter(|term| is_telling(term.kind)).count()
    }
}

/// The bit of a term; a question has no more terms than bits.
pub(crate) fn bit(number: u32) -> u128 {
    1_u128.checked_shl(number).unwrap_or(0)
}

fn is_telling(kind: TermKind) -> bool {
    matches!(kind, TermKind::Word | TermKind::Bigram | TermKind::Single)
}

fn shorten(directory: &Directory, all: &mut Vec<(ChunkId, f32)>, count: usize) {
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| directory.place_of(a.0).cmp(&directory.place_of(b.0))));
    all.truncate(count);
}
