//! What speaks for each candidate, as numbers that do not depend on how much else is remembered.

use std::collections::{BTreeSet, HashMap};

use super::{CONTEXT, NEIGHBOURS, POOL, Question, SPEAKER};
use crate::index::directory::{ChunkId, Doc, Traits};

/// The features, in the order of a row.
pub(crate) const NAMES: [&str; 66] = [
    "words",
    "words-2",
    "words-1",
    "words+1",
    "words+2",
    "words max",
    "words mean",
    "words rank",
    "words whole",
    "meaning",
    "meaning-2",
    "meaning-1",
    "meaning+1",
    "meaning+2",
    "meaning max",
    "meaning mean",
    "meaning rank",
    "meaning behind",
    "covers",
    "covers-2",
    "covers-1",
    "covers+1",
    "covers+2",
    "covers max",
    "covers mean",
    "covers with 1",
    "covers with 2",
    "exact",
    "exact-1",
    "exact+1",
    "exact max",
    "speaker",
    "length",
    "asks",
    "after asking",
    "words after asking",
    "meaning after asking",
    "number",
    "dated",
    "first",
    "dated when",
    "number many",
    "asks when",
    "important",
    "words known",
    "meaning known",
    "covers known",
    "meaning speaker",
    "words speaker",
    "words meaning",
    "meaning length",
    "names",
    "names meaning",
    "names words",
    "names unknown",
    "names-1",
    "page",
    "page words",
    "page meaning",
    "page covers",
    "page exact",
    "page rank",
    "day",
    "day-1",
    "whole known",
    "by hand",
];
/// How many there are.
pub(crate) const COUNT: usize = NAMES.len();

/// How much words count beside meaning where the score is made by hand.
const WORDS: f32 = 5.0;
/// A long conversation is looked at this far around a candidate.
const GROUP: usize = 400;
/// Chunks that name what is asked about join the candidates when they are at most this many.
const NAMING: usize = 600;

/// The candidates and a row for each.
#[derive(Debug)]
pub(crate) struct Table {
    /// The candidates, in the order of their numbers.
    pub(crate) ids: Vec<ChunkId>,
    rows: Vec<f32>,
    /// Those that have something of the question themselves.
    pub(crate) direct: BTreeSet<ChunkId>,
}

impl Table {
    /// The row of the candidate at a place.
    pub(crate) fn row(&self, at: usize) -> &[f32] {
        self.rows.get(at * COUNT..(at + 1) * COUNT).unwrap_or_default()
    }
}

/// What is known of one chunk for a question.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    words: f32,
    meaning: f32,
    covers: f32,
    exact: f32,
    mask: u128,
}

/// The most and the mean of a conversation.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    most: Own,
    mean: Own,
}

#[derive(Debug)]
struct Scene<'a> {
    question: &'a Question<'a>,
    own: HashMap<ChunkId, Own>,
    groups: HashMap<(u32, u32), Around>,
}

impl Scene<'_> {
    fn own(&mut self, id: ChunkId) -> Own {
        if let Some(own) = self.own.get(&id) {
            return *own;
        }
        let lexical = self.question.lexical;
        let mask = lexical.mask(id);
        let own = Own {
            words: if lexical.top > 0.0 { lexical.of(id) / lexical.top } else { 0.0 },
            meaning: self.question.dense.map_or(0.0, |dense| dense.z(id)),
            covers: lexical.content_in(mask),
            exact: lexical.exactly_in(mask),
            mask,
        };
        self.own.insert(id, own);
        own
    }

    fn around(&mut self, id: ChunkId, doc: &Doc) -> Around {
        let key = (doc.source, doc.group);
        if let Some(known) = self.groups.get(&key) {
            return *known;
        }
        let mut around = Around { most: self.own(id), mean: Own::default() };
        let mut count = 0.0;
        let directory = self.question.directory;
        let one_way =
            |by: i64| std::iter::successors(directory.neighbour(id, by), move |id| directory.neighbour(*id, by));
        let members: Vec<ChunkId> =
            std::iter::once(id).chain(one_way(-1).take(GROUP)).chain(one_way(1).take(GROUP)).collect();
        for member in members {
            let own = self.own(member);
            let most = &mut around.most;
            most.words = most.words.max(own.words);
            most.meaning = most.meaning.max(own.meaning);
            most.covers = most.covers.max(own.covers);
            most.exact = most.exact.max(own.exact);
            around.mean.words += own.words;
            around.mean.meaning += own.meaning;
            around.mean.covers += own.covers;
            count += 1.0;
        }
        around.mean.words /= count;
        around.mean.meaning /= count;
        around.mean.covers /= count;
        self.groups.insert(key, around);
        around
    }
}

fn is(yes: bool) -> f32 {
    f32::from(u8::from(yes))
}

/// Everything that could be an answer, with what speaks for it.
pub(crate) fn table(question: &Question<'_>, words: &[(ChunkId, f32)]) -> Table {
    let directory = question.directory;
    let mut direct: BTreeSet<ChunkId> = words.iter().map(|(id, _)| *id).collect();
    let near: Vec<ChunkId> = question.dense.iter().flat_map(|dense| dense.order.iter().take(POOL)).copied().collect();
    direct.extend(&near);
    for name in &question.names {
        direct.extend(question.lexical.having(name.terms, NAMING));
    }
    let mut ids = direct.clone();
    for id in &direct {
        ids.extend(NEIGHBOURS.iter().filter_map(|(by, _)| directory.neighbour(*id, *by)));
    }
    ids.retain(|id| question.admits(*id));
    let mut scene = Scene { question, own: HashMap::new(), groups: HashMap::new() };
    let rank_of = |list: &mut dyn Iterator<Item = ChunkId>| -> HashMap<ChunkId, f32> {
        (0_u16..).zip(list).map(|(rank, id)| (id, f32::from(rank).ln_1p())).collect()
    };
    let last = (POOL as f32).ln_1p();
    let words_rank = rank_of(&mut words.iter().map(|(id, _)| *id));
    let meaning_rank = rank_of(&mut near.iter().copied());
    let nearest = question.dense.and_then(|dense| Some(dense.z(*dense.order.first()?))).unwrap_or_default();
    // how much of the question the best places speak of
    let mut best = [0.0_f32; 3];
    for id in &ids {
        let covers = scene.own(*id).covers;
        if let Some(least) = best.iter_mut().min_by(|a, b| a.total_cmp(b)).filter(|least| **least < covers) {
            *least = covers;
        }
    }
    let known = best.iter().sum::<f32>() / 3.0;
    let whole = question.lexical.most.max(1e-3);
    let has_vectors = question.dense.is_some();
    let mut rows = Vec::with_capacity(ids.len() * COUNT);
    for id in &ids {
        let Some(doc) = directory.doc(*id) else { continue };
        let own = scene.own(*id);
        let [before2, before, after, after2] = [-2, -1, 1, 2].map(|by| directory.neighbour(*id, by));
        let mut of = |id: Option<ChunkId>| id.map(|id| scene.own(id)).unwrap_or_default();
        let (a, b, c, d) = (of(before2), of(before), of(after), of(after2));
        let around = scene.around(*id, doc);
        let asked_before = is(before.and_then(|id| directory.doc(id)).is_some_and(|doc| doc.traits.has(Traits::ASKS)));
        let speaker = match question.speaker {
            Some(speaker) => is(speaker == doc.speaker),
            None => 0.5,
        };
        let length = f32::from(doc.length).ln_1p();
        let (asks, number, dated) =
            (is(doc.traits.has(Traits::ASKS)), is(doc.traits.has(Traits::NUMBER)), is(doc.traits.has(Traits::DATED)));
        let (when, many) = (is(question.asks_when), is(question.asks_how_many));
        let naming = |mask: u128| {
            let count = question.names.len().max(1) as f32;
            question.names.iter().map(|name| is(mask & name.terms == name.terms)).sum::<f32>() / count
        };
        let names = naming(own.mask);
        let page = is(doc.speaker == 0);
        let whole_share = question.lexical.of(*id) / whole;
        let context = CONTEXT
            * (0.5 * (sum(b, has_vectors) + sum(c, has_vectors)) + 0.25 * (sum(a, has_vectors) + sum(d, has_vectors)));
        let hand = own.words * WORDS + own.meaning + context + SPEAKER * is(question.speaker.is_some()) * speaker;
        let behind = if has_vectors { own.meaning - nearest } else { 0.0 };
        let words_rank = words_rank.get(id).copied().unwrap_or(last);
        let meaning_rank = if has_vectors { meaning_rank.get(id).copied().unwrap_or(last) } else { 0.0 };
        let day = |mask: u128| is(mask & question.days != 0);
        rows.extend([
            own.words,
            a.words,
            b.words,
            c.words,
            d.words,
            around.most.words,
            around.mean.words,
            words_rank,
            whole_share,
            own.meaning,
            a.meaning,
            b.meaning,
            c.meaning,
            d.meaning,
            around.most.meaning,
            around.mean.meaning,
            meaning_rank,
            behind,
            own.covers,
            a.covers,
            b.covers,
            c.covers,
            d.covers,
            around.most.covers,
            around.mean.covers,
            question.lexical.content_in(own.mask | b.mask | c.mask),
            question.lexical.content_in(own.mask | a.mask | b.mask | c.mask | d.mask),
            own.exact,
            b.exact,
            c.exact,
            around.most.exact,
            speaker,
            length,
            asks,
            asked_before,
            asked_before * b.words,
            asked_before * b.meaning,
            number,
            dated,
            is(before.is_none()),
            dated * when,
            number * many,
            asks * when,
            is(doc.traits.has(Traits::IMPORTANT)),
            own.words * known,
            own.meaning * known,
            own.covers * known,
            speaker * own.meaning,
            speaker * own.words,
            own.words * own.meaning,
            length * own.meaning,
            names,
            names * own.meaning,
            names * own.words,
            names * (1.0 - known),
            naming(b.mask),
            page,
            page * own.words,
            page * own.meaning,
            page * own.covers,
            page * own.exact,
            page * meaning_rank,
            day(own.mask),
            day(b.mask),
            whole_share * known,
            hand,
        ]);
    }
    Table { ids: ids.into_iter().filter(|id| directory.doc(*id).is_some()).collect(), rows, direct }
}

/// What a neighbour lends.
fn sum(own: Own, has_vectors: bool) -> f32 {
    if has_vectors { (WORDS * own.words + own.meaning).max(0.0) } else { WORDS * own.words }
}
