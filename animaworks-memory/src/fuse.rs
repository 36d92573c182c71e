//! Putting together what speaks for a place: its words, its meaning, what stands around it, who speaks, and when.
//!
//! Scores are added, not ranks, because a score also says by how much (measured:
//! rank fusion loses to words alone on conversations). How much each of them says is
//! learned ([`Fusion::Learned`]); sums made by hand and rank fusion are still there.

pub(crate) mod features;
pub(crate) mod fresh;
pub(crate) mod learned;
mod weights;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    chunk::Kind,
    index::directory::{ChunkId, Directory, Traits},
    lexical::bm25::Lexical,
};
use learned::Weights;

/// How lists are put together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fusion {
    /// Many small signs are added, each with a weight that was learned from open data.
    #[default]
    Learned,
    /// Standardised scores are added.
    Score,
    /// Reciprocal ranks are added, with `k` = 60.
    Rrf,
}

/// How many candidates each list sends.
pub(crate) const POOL: usize = 200;
/// Shares of what stands one and two places away.
const NEIGHBOURS: [(i64, f32); 4] = [(-1, 0.5), (1, 0.5), (-2, 0.25), (2, 0.25)];
/// How much neighbours count altogether.
const CONTEXT: f32 = 0.4;
/// A question about one speaker is answered by that speaker, mostly.
const SPEAKER: f32 = 1.0;
/// What its writer marked is a little more likely to be asked for.
const IMPORTANT: f32 = 0.2;
/// The constant of reciprocal ranks.
const RRF_K: f32 = 60.0;
/// Of so many places it is said what their score is made of.
const EXPLAINED: usize = 100;

/// How near each chunk is in meaning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dense {
    /// Cosines of the nearest.
    pub(crate) cosine: HashMap<ChunkId, f32>,
    /// What cosine is usual for this question.
    pub(crate) mean: f32,
    /// How much it varies.
    pub(crate) deviation: f32,
    /// The nearest, nearest first.
    pub(crate) order: Vec<ChunkId>,
    /// The vectors of the nearest, where the question names somebody and versions may have to be told apart.
    pub(crate) vectors: HashMap<ChunkId, Arc<[f32]>>,
}

impl Dense {
    /// The cosine in standard deviations above what is usual; those that are not among the nearest are just behind them.
    pub(crate) fn z(&self, id: ChunkId) -> f32 {
        let cosine = self.cosine.get(&id).copied().unwrap_or_else(|| {
            let last = self.order.last().and_then(|id| self.cosine.get(id)).copied().unwrap_or(self.mean);
            last.min(self.mean)
        });
        (cosine - self.mean) / self.deviation.max(1e-4)
    }
}

/// A chunk and why it is where it is.
#[derive(Debug, Clone)]
pub(crate) struct Ranked {
    /// Which.
    pub(crate) id: ChunkId,
    /// How well it fits.
    pub(crate) score: f32,
    /// What that is made of; only of the first ones.
    pub(crate) parts: BTreeMap<&'static str, f32>,
}

/// Something a question names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    /// The terms of its name, a bit each.
    pub(crate) terms: u128,
}

/// What is asked of the fusion.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// The facts about chunks.
    pub(crate) directory: &'a Directory,
    /// Scores by words.
    pub(crate) lexical: &'a Lexical,
    /// Scores by meaning, when there is a model.
    pub(crate) dense: Option<&'a Dense>,
    /// Where to look.
    pub(crate) kinds: &'a [Kind],
    /// The one speaker the question names.
    pub(crate) speaker: Option<u32>,
    /// Whom and what it names.
    pub(crate) names: Vec<Named>,
    /// Its days and months, a bit for each of its terms.
    pub(crate) days: u128,
    /// Whether it wants to know when.
    pub(crate) asks_when: bool,
    /// Whether it wants to know how many.
    pub(crate) asks_how_many: bool,
    /// What each sign says, as it was learned.
    pub(crate) weights: &'a Weights,
    /// How many telling terms it has.
    pub(crate) terms: usize,
    /// Seconds since 1970: from, up to (exclusive).
    pub(crate) period: (i64, i64),
    /// Which way to put lists together.
    pub(crate) fusion: Fusion,
}

impl Question<'_> {
    fn admits(&self, id: ChunkId) -> bool {
        self.directory.doc(id).is_some_and(|doc| (self.period.0..self.period.1).contains(&doc.at))
            && id.kind().is_some_and(|kind| self.kinds.contains(&kind))
    }

    /// Ranks everything that could be an answer, best first; equal scores by path and place.
    pub(crate) fn rank(&self) -> Vec<Ranked> {
        // a period may leave little of what the words find, so more is looked at
        let pool = if self.period == (i64::MIN, i64::MAX) { POOL } else { 20 * POOL };
        let words: Vec<(ChunkId, f32)> = self.lexical.best(self.directory, pool);
        let mut ranked = match self.fusion {
            Fusion::Learned => self.by_weights(&words),
            Fusion::Score => self.by_score(&words),
            Fusion::Rrf => self.by_rank(&words),
        };
        ranked.sort_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| self.directory.place_of(a.id).cmp(&self.directory.place_of(b.id)))
        });
        ranked
    }

    fn by_weights(&self, words: &[(ChunkId, f32)]) -> Vec<Ranked> {
        let table = features::table(self, words);
        let weights = self.weights.of(self.dense.is_some());
        let mut ranked: Vec<(Ranked, usize)> = Vec::with_capacity(table.ids.len());
        for (at, id) in table.ids.iter().enumerate() {
            let score = weights.score(table.row(at));
            ranked.push((Ranked { id: *id, score, parts: BTreeMap::new() }, at));
        }
        // what only stands beside an answer is worth showing for a real question, not for a word that was looked up
        let is_question = self.terms >= 3;
        ranked.retain(|(one, _)| table.direct.contains(&one.id) || (is_question && one.score > 0.0));
        ranked.sort_by(|a, b| b.0.score.total_cmp(&a.0.score));
        for (one, at) in ranked.iter_mut().take(EXPLAINED) {
            one.parts = weights.parts(table.row(*at));
        }
        ranked.into_iter().map(|(one, _)| one).collect()
    }

    fn by_score(&self, words: &[(ChunkId, f32)]) -> Vec<Ranked> {
        let mut candidates: BTreeSet<ChunkId> = words.iter().map(|(id, _)| *id).collect();
        candidates.extend(self.dense.iter().flat_map(|dense| dense.order.iter().take(POOL)).copied());
        let direct = candidates.clone();
        for id in &direct {
            candidates.extend(NEIGHBOURS.iter().filter_map(|(by, _)| self.directory.neighbour(*id, *by)));
        }
        let (w_words, w_meaning) = self.weights(words);
        let own = |id: ChunkId| {
            let words = w_words * self.lexical.z(id);
            words + self.dense.map_or(0.0, |dense| w_meaning * dense.z(id))
        };
        let mut ranked = Vec::with_capacity(candidates.len());
        for id in candidates.into_iter().filter(|id| self.admits(*id)) {
            let Some(doc) = self.directory.doc(id) else { continue };
            let mut parts = BTreeMap::new();
            parts.insert("words", w_words * self.lexical.z(id));
            if let Some(dense) = self.dense {
                parts.insert("meaning", w_meaning * dense.z(id));
            }
            let around: f32 = NEIGHBOURS
                .iter()
                .filter_map(|(by, share)| Some(share * own(self.directory.neighbour(id, *by)?).max(0.0)))
                .sum();
            if around > 0.0 {
                parts.insert("context", CONTEXT * around);
            }
            if self.speaker == Some(doc.speaker) && doc.speaker > 0 {
                parts.insert("speaker", SPEAKER);
            }
            if doc.traits.has(Traits::IMPORTANT) {
                parts.insert("important", IMPORTANT);
            }
            let score = parts.values().sum();
            ranked.push(Ranked { id, score, parts });
        }
        let top = ranked.iter().map(|one| one.score).fold(0.0_f32, f32::max);
        // what only stands beside an answer is worth showing for a real question, not for a word that was looked up
        let beside = if self.terms >= 3 { 0.3 * top } else { f32::INFINITY };
        ranked.retain(|one| direct.contains(&one.id) || one.score >= beside);
        ranked
    }

    fn by_rank(&self, words: &[(ChunkId, f32)]) -> Vec<Ranked> {
        let mut all: BTreeMap<ChunkId, BTreeMap<&'static str, f32>> = BTreeMap::new();
        let mut list = |name: &'static str, ids: &mut dyn Iterator<Item = ChunkId>| {
            for (rank, id) in (1_u16..).zip(ids) {
                all.entry(id).or_default().insert(name, 1.0 / (RRF_K + f32::from(rank)));
            }
        };
        let admitted = || words.iter().map(|(id, _)| *id).filter(|id| self.admits(*id));
        // the activity of the last days is a list of its own, so that it is not drowned by years of notes
        list("words", &mut admitted().filter(|id| id.kind() != Some(Kind::ActivityLog)).take(POOL));
        list("activity", &mut admitted().filter(|id| id.kind() == Some(Kind::ActivityLog)).take(POOL));
        if let Some(dense) = self.dense {
            list("meaning", &mut dense.order.iter().copied().filter(|id| self.admits(*id)).take(POOL));
        }
        all.into_iter().map(|(id, parts)| Ranked { id, score: parts.values().sum(), parts }).collect()
    }

    /// How much words and meaning count: where no place speaks of much that was asked, meaning is the better guide.
    fn weights(&self, words: &[(ChunkId, f32)]) -> (f32, f32) {
        if self.dense.is_none() {
            return (1.0, 0.0);
        }
        let best = words.iter().take(3).map(|(id, _)| self.lexical.coverage(*id)).fold(0.0_f32, f32::max);
        (0.35 + 0.65 * (best / 0.6).min(1.0), 1.0)
    }
}
