//! Learning what each sign says: a linear score under which what answers a question stands above what does not.
//!
//! For every question the candidates of the product are listed with their features; a conditional logit
//! (which of these is the answer?) is fitted by Newton steps. Everything is counted in a fixed order, so that
//! two runs over the same data give the same weights. [`Folds`] leaves each memory out once, so that what is
//! measured was never seen; sets of one memory are cut by their questions instead.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use animaworks_core::Clock;

use super::{
    BenchError, SEED,
    data::DataSet,
    random::Random,
    run::{Filled, Way},
    score::Scorer,
};
use crate::{
    MemoryOptions,
    fuse::{
        features::{COUNT, NAMES},
        learned::{Line, Weights},
    },
};

/// How many parts the data is cut into.
pub const FOLDS: usize = 7;
/// The best wrong candidates that are learned from, and others beside them.
const HARD: usize = 45;
const OTHERS: usize = 20;
/// Questions of a set that are learned from, at most; chosen evenly.
const QUESTIONS: usize = 1300;
/// How strongly weights are kept small.
const RIDGE: f64 = 100.0;
/// How much of the score made by hand is added to what was learned: it keeps what stands together together.
const BY_HAND: f64 = 0.45;
/// Steps at most.
const STEPS: usize = 14;

/// How much each set counts.
fn share_of(dataset: &str) -> f64 {
    // pages ask little of a fusion; conversations are what is remembered
    match dataset {
        "locomo" => 1.0,
        "animem" => 0.5,
        _ => 0.35,
    }
}

/// One question: its candidates, and which of them answer.
#[derive(Debug)]
struct Lesson {
    dataset: String,
    fold: usize,
    rows: Vec<f32>,
    right: Vec<bool>,
}

/// What there is to learn from.
#[derive(Debug, Default)]
pub struct Lessons {
    meaning: Vec<Lesson>,
    words: Vec<Lesson>,
}

/// The part a question belongs to.
fn fold_of(stores: usize, store: usize, question: usize) -> usize {
    if stores > 1 { store % FOLDS } else { question % FOLDS }
}

impl Lessons {
    /// Asks every question of a set and notes what speaks for each candidate, with the model of `options` and without.
    ///
    /// # Errors
    ///
    /// When a directory cannot be made or the memory fails.
    pub async fn add(
        &mut self,
        set: &DataSet,
        options: &MemoryOptions,
        clock: &Arc<dyn Clock>,
        mut told: impl FnMut(&str),
    ) -> Result<(), BenchError> {
        let mut situations = vec![(MemoryOptions { embedder: None, ..options.clone() }, &mut self.words)];
        if options.embedder.is_some() {
            situations.push((options.clone(), &mut self.meaning));
        }
        for (at, (store, gold)) in set.stores.iter().zip(&set.gold).enumerate() {
            let scorer = Scorer::new(store, gold, false);
            let every = set.stores.iter().map(|store| store.questions.len()).sum::<usize>().div_ceil(QUESTIONS);
            for (options, lessons) in &mut situations {
                let filled = Filled::new(store, options, clock, Way::Files).await?;
                for (number, question) in store.questions.iter().enumerate().filter(|(number, _)| number % every == 0) {
                    let evidence = scorer.evidence(&question.id);
                    if evidence.is_empty() {
                        continue;
                    }
                    let table = filled.features(store, &question.text).await?;
                    let fold = fold_of(set.stores.len(), at, number);
                    // what was replaced answers the question, only not any more: versions are put in order elsewhere
                    let stale = scorer.stale(&question.id);
                    let table: Vec<_> = table
                        .into_iter()
                        .filter(|(record, _)| record.is_none_or(|record| !stale.contains(&record)))
                        .collect();
                    lessons.extend(lesson(&set.name, fold, &table, &evidence));
                }
                filled.close(&mut super::run::Speed::default()).await?;
            }
            told(&store.group);
        }
        Ok(())
    }

    /// How many questions there are to learn from.
    pub fn len(&self) -> usize {
        self.meaning.len().max(self.words.len())
    }

    /// Whether there is nothing to learn from.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn fit(&self, without: Option<usize>, from: Option<&Weights>) -> Weights {
        let shipped = Weights::shipped();
        let line = |lessons: &[Lesson], from: Option<&Line>, shipped: &Line| {
            let kept: Vec<&Lesson> = lessons.iter().filter(|lesson| Some(lesson.fold) != without).collect();
            if kept.is_empty() { shipped.clone() } else { fit(&kept, from) }
        };
        Weights {
            meaning: line(&self.meaning, from.map(|from| &from.meaning), &shipped.meaning),
            words: line(&self.words, from.map(|from| &from.words), &shipped.words),
        }
    }
}

fn lesson(
    dataset: &str,
    fold: usize,
    table: &[(Option<usize>, Vec<f32>)],
    evidence: &BTreeSet<usize>,
) -> Option<Lesson> {
    let is_right = |record: &Option<usize>| record.is_some_and(|record| evidence.contains(&record));
    let mut wrong: Vec<&Vec<f32>> = table.iter().filter(|(record, _)| !is_right(record)).map(|(_, row)| row).collect();
    let right: Vec<&Vec<f32>> = table.iter().filter(|(record, _)| is_right(record)).map(|(_, row)| row).collect();
    if right.is_empty() || wrong.is_empty() {
        return None;
    }
    let by_hand = |row: &Vec<f32>| row.last().copied().unwrap_or_default();
    wrong.sort_by(|a, b| by_hand(b).total_cmp(&by_hand(a)));
    let others = wrong.split_off(HARD.min(wrong.len()));
    let mut random = Random::new(SEED);
    let chosen = random.sample(others.len(), OTHERS);
    let others = chosen.into_iter().filter_map(|at| others.get(at).copied());
    let mut lesson = Lesson { dataset: dataset.to_owned(), fold, rows: Vec::new(), right: Vec::new() };
    for (row, right) in
        right.into_iter().map(|row| (row, true)).chain(wrong.into_iter().chain(others).map(|row| (row, false)))
    {
        lesson.rows.extend(row);
        lesson.right.push(right);
    }
    Some(lesson)
}

/// Weights for measuring: for each part, learned from the others.
#[derive(Debug)]
pub struct Folds {
    parts: Vec<Arc<Weights>>,
}

impl Folds {
    /// Learns as often as there are parts.
    pub fn of(lessons: &Lessons, all: &Learned) -> Self {
        Self { parts: (0..FOLDS).map(|part| Arc::new(lessons.fit(Some(part), Some(&all.weights)))).collect() }
    }

    pub(crate) fn weights(&self, stores: usize, store: usize, question: usize) -> Option<Arc<Weights>> {
        self.parts.get(fold_of(stores, store, question)).cloned()
    }
}

/// Weights learned from everything there was.
#[derive(Debug)]
pub struct Learned {
    weights: Weights,
}

impl Learned {
    /// Learns.
    pub fn of(lessons: &Lessons) -> Self {
        Self { weights: lessons.fit(None, None) }
    }

    /// The weights as the source of `fuse/weights.rs`.
    pub fn source(&self, sets: &[(String, String)]) -> String {
        let mut text =
            "//! What each sign says. Written by `animaworks bench memory learn`; not to be edited.\n//!\n".to_owned();
        for (name, sha256) in sets {
            text.push_str(&format!("//! Learned from {name}, {sha256}.\n"));
        }
        text.push_str("\n#![allow(clippy::unreadable_literal, reason = \"written by a program\")]\n");
        text.push_str("\nuse super::features::COUNT;\n");
        for (name, line, about) in [
            ("MEANING", &self.weights.meaning, "With a model of meaning"),
            ("WORDS", &self.weights.words, "Words alone"),
        ] {
            text.push_str(&format!(
                "\n/// {about}: what is subtracted.\npub(crate) const {name}_USUAL: f32 = {:?};\n",
                line.usual
            ));
            text.push_str(&format!(
                "/// {about}: what each feature adds.\npub(crate) const {name}: [f32; COUNT] = [\n"
            ));
            for (feature, weight) in NAMES.iter().zip(&line.weights) {
                text.push_str(&format!("    {weight:?}, // {feature}\n"));
            }
            text.push_str("];\n");
        }
        text
    }
}

/// Fits a line; `from` is where the search for it begins.
fn fit(lessons: &[&Lesson], from: Option<&Line>) -> Line {
    let problem = Problem::of(lessons);
    let mut weights = from.map_or_else(|| vec![0.0; COUNT], |line| problem.scaled(line));
    let (mut value, mut chances) = problem.value(&weights);
    for _ in 0..STEPS {
        let (slope, bend) = problem.slope(&weights, &chances);
        let Some(step) = solve(bend, &slope) else { break };
        let mut size = 1.0;
        let mut better = None;
        while size > 1e-3 {
            let tried: Vec<f64> = weights.iter().zip(&step).map(|(weight, step)| weight - size * step).collect();
            let (there, chances) = problem.value(&tried);
            if there < value {
                better = Some((tried, there, chances));
                break;
            }
            size /= 2.0;
        }
        let Some((tried, there, new)) = better else { break };
        let gain = value - there;
        (weights, value, chances) = (tried, there, new);
        if gain < 1e-5 * value.abs() {
            break;
        }
    }
    problem.line(&weights, lessons)
}

/// Everything a fit counts over, features in standard deviations from their mean.
struct Problem {
    rows: Vec<f64>,
    right: Vec<f64>,
    /// The first row of each question, and one past the last.
    bounds: Vec<usize>,
    /// How much each question counts.
    shares: Vec<f64>,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Problem {
    fn of(lessons: &[&Lesson]) -> Self {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for lesson in lessons {
            *counts.entry(lesson.dataset.as_str()).or_default() += 1.0;
        }
        let most = counts.values().copied().fold(0.0, f64::max);
        let mut problem = Self {
            rows: Vec::new(),
            right: Vec::new(),
            bounds: vec![0],
            shares: Vec::new(),
            mean: vec![0.0; COUNT],
            deviation: vec![0.0; COUNT],
        };
        for lesson in lessons {
            problem.rows.extend(lesson.rows.iter().map(|value| f64::from(*value)));
            problem.right.extend(lesson.right.iter().map(|right| f64::from(u8::from(*right))));
            problem.bounds.push(problem.right.len());
            let of_set = counts.get(lesson.dataset.as_str()).copied().unwrap_or(1.0);
            let right = lesson.right.iter().filter(|right| **right).count() as f64;
            problem.shares.push(share_of(&lesson.dataset) * most / of_set / right.sqrt());
        }
        let n = problem.right.len().max(1) as f64;
        for row in problem.rows.chunks_exact(COUNT) {
            for (mean, value) in problem.mean.iter_mut().zip(row) {
                *mean += value / n;
            }
        }
        for row in problem.rows.chunks_exact(COUNT) {
            for ((deviation, mean), value) in problem.deviation.iter_mut().zip(&problem.mean).zip(row) {
                *deviation += (value - mean) * (value - mean) / n;
            }
        }
        for deviation in &mut problem.deviation {
            *deviation = deviation.sqrt();
        }
        for row in problem.rows.chunks_exact_mut(COUNT) {
            for ((value, mean), deviation) in row.iter_mut().zip(&problem.mean).zip(&problem.deviation) {
                // what is always the same says nothing
                *value = if *deviation > 1e-9 { (*value - mean) / deviation } else { 0.0 };
            }
        }
        problem
    }

    fn questions(&self) -> impl Iterator<Item = (std::ops::Range<usize>, f64)> {
        self.bounds
            .iter()
            .zip(self.bounds.iter().skip(1))
            .zip(&self.shares)
            .map(|((from, to), share)| (*from..*to, *share))
    }

    fn row(&self, at: usize) -> &[f64] {
        self.rows.get(at * COUNT..(at + 1) * COUNT).unwrap_or_default()
    }

    fn right(&self, at: usize) -> f64 {
        self.right.get(at).copied().unwrap_or_default()
    }

    /// How badly weights explain the answers, and how likely each candidate is under them.
    fn value(&self, weights: &[f64]) -> (f64, Vec<f64>) {
        let mut value = 0.5 * RIDGE * weights.iter().map(|weight| weight * weight).sum::<f64>();
        let mut chances = Vec::with_capacity(self.right.len());
        for (rows, share) in self.questions() {
            let scores: Vec<f64> = rows
                .clone()
                .map(|at| self.row(at).iter().zip(weights).map(|(value, weight)| value * weight).sum())
                .collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let whole: f64 = scores.iter().map(|score| (score - top).exp()).sum();
            let right: f64 = rows.clone().map(|at| self.right(at)).sum();
            let said: f64 = rows.zip(&scores).map(|(at, score)| self.right(at) * score).sum();
            value += share * (right * (top + whole.ln()) - said);
            chances.extend(scores.iter().map(|score| (score - top).exp() / whole));
        }
        (value, chances)
    }

    /// The first and second derivatives.
    fn slope(&self, weights: &[f64], chances: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut slope: Vec<f64> = weights.iter().map(|weight| RIDGE * weight).collect();
        let mut bend = vec![vec![0.0; COUNT]; COUNT];
        for (at, row) in bend.iter_mut().enumerate() {
            if let Some(value) = row.get_mut(at) {
                *value = RIDGE;
            }
        }
        let mut expected = vec![0.0; COUNT];
        for (rows, share) in self.questions() {
            let right: f64 = rows.clone().map(|at| self.right(at)).sum();
            expected.fill(0.0);
            for at in rows {
                let row = self.row(at);
                let chance = chances.get(at).copied().unwrap_or_default();
                let push = share * (right * chance - self.right(at));
                for ((slope, expected), value) in slope.iter_mut().zip(&mut expected).zip(row) {
                    *slope += push * value;
                    *expected += chance * value;
                }
                add_outer(&mut bend, row, share * right * chance);
            }
            add_outer(&mut bend, &expected, -share * right);
        }
        (slope, bend)
    }

    fn scaled(&self, line: &Line) -> Vec<f64> {
        let by_hand = |at: usize| if at + 1 == COUNT { BY_HAND } else { 0.0 };
        let weights = line.weights.iter().zip(&self.deviation).enumerate();
        weights.map(|(at, (weight, deviation))| (f64::from(*weight) - by_hand(at)) * deviation).collect()
    }

    /// The weights of features as they are, with the share of the hand-made score, and what is usual.
    fn line(&self, weights: &[f64], lessons: &[&Lesson]) -> Line {
        let mut plain: Vec<f32> = weights
            .iter()
            .zip(&self.deviation)
            .map(|(weight, deviation)| if *deviation > 1e-9 { (weight / deviation) as f32 } else { 0.0 })
            .collect();
        if let Some(last) = plain.last_mut() {
            *last += BY_HAND as f32;
        }
        let mut line = Line { usual: 0.0, weights: plain };
        // half of the candidates that do not answer are below zero
        let mut wrong: Vec<f32> = lessons
            .iter()
            .flat_map(|lesson| {
                let rows = lesson.rows.chunks_exact(COUNT).zip(&lesson.right);
                rows.filter(|(_, right)| !**right).map(|(row, _)| line.score(row))
            })
            .collect();
        wrong.sort_by(f32::total_cmp);
        line.usual = wrong.get(wrong.len() / 2).copied().unwrap_or_default();
        line
    }
}

/// Adds `share` times the outer product, in the lower half.
fn add_outer(to: &mut [Vec<f64>], row: &[f64], share: f64) {
    if share == 0.0 {
        return;
    }
    for ((at, line), one) in to.iter_mut().enumerate().zip(row) {
        let factor = share * one;
        for (place, other) in line.iter_mut().zip(row).take(at + 1) {
            *place += factor * other;
        }
    }
}

/// Solves a symmetric positive system, given in its lower half; `None` when it is not positive.
fn solve(mut lower: Vec<Vec<f64>>, right: &[f64]) -> Option<Vec<f64>> {
    let n = right.len();
    for at in 0..n {
        for column in 0..=at {
            let dot: f64 = {
                let (a, b) = (lower.get(at)?.get(..column)?, lower.get(column)?.get(..column)?);
                a.iter().zip(b).map(|(a, b)| a * b).sum()
            };
            let value = *lower.get(at)?.get(column)? - dot;
            let value = if column == at {
                if value <= 0.0 {
                    return None;
                }
                value.sqrt()
            } else {
                value / lower.get(column)?.get(column)?
            };
            *lower.get_mut(at)?.get_mut(column)? = value;
        }
    }
    let mut solved = right.to_vec();
    for at in 0..n {
        let dot: f64 = lower.get(at)?.iter().zip(&solved).take(at).map(|(a, b)| a * b).sum();
        let value = (solved.get(at)? - dot) / lower.get(at)?.get(at)?;
        *solved.get_mut(at)? = value;
    }
    for at in (0..n).rev() {
        let mut value = *solved.get(at)?;
        for below in at + 1..n {
            value -= lower.get(below)?.get(at)? * solved.get(below)?;
        }
        *solved.get_mut(at)? = value / lower.get(at)?.get(at)?;
    }
    Some(solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let solved = solve(vec![vec![4.0, 0.0], vec![2.0, 3.0]], &[2.0, 5.0]).unwrap();
        assert!((solved[0] + 0.5).abs() < 1e-12 && (solved[1] - 2.0).abs() < 1e-12);
        assert!(solve(vec![vec![-1.0]], &[1.0]).is_none());
    }

    #[test]
    fn what_tells_answers_apart_gets_the_weight() {
        let lesson = |seed: u64| {
            let mut random = Random::new(seed);
            let mut lesson = Lesson { dataset: "locomo".to_owned(), fold: 0, rows: Vec::new(), right: Vec::new() };
            for at in 0..20 {
                let mut row: Vec<f32> = (0..COUNT).map(|_| random.below(100) as f32 / 100.0).collect();
                row[3] = if at == 0 { 1.0 } else { 0.0 };
                lesson.rows.extend(row);
                lesson.right.push(at == 0);
            }
            lesson
        };
        let lessons: Vec<Lesson> = (0..200).map(lesson).collect();
        let lessons: Vec<&Lesson> = lessons.iter().collect();
        let line = fit(&lessons, None);
        let others = line.weights.iter().enumerate().filter(|(at, _)| *at != 3 && *at + 1 != COUNT);
        assert!(others.into_iter().all(|(_, weight)| weight.abs() * 3.0 < line.weights[3]), "{line:?}");
        assert_eq!(fit(&lessons, None), line);
    }
}
