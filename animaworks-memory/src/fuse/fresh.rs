//! Versions of one fact: the current one comes before the ones it replaced.
//!
//! Two places state versions of the same fact when they are about the same entity, which
//! the question names too, and about the same attribute, at different times. The attribute
//! shows in the words, for versions differ in the value and in little else. Where the same thing
//! is said in other words it shows in the meaning, once what all that is said of the entity has in
//! common is taken away: what is left is the attribute. Without vectors, two that answer the same
//! question about the same entity equally well are versions. Recency acts only between versions,
//! never on the whole ranking.

use std::{collections::BTreeSet, sync::Arc};

use crate::text::{normalize::fold, terms::each_term};

/// How much of their words two versions have in common at least.
const ALIKE: f32 = 0.5;

/// How much two statements about one entity have in common beyond what all of them have.
const SAME_ATTRIBUTE: f32 = 0.06;
/// So many statements about an entity say what they have in common.
const ENOUGH: usize = 5;
/// How near two statements are when too few others say what is usual.
const VERY_NEAR: f32 = 0.93;

/// A place that may state a fact.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    terms: BTreeSet<String>,
    /// When it was said, in seconds since 1970.
    pub(crate) at: i64,
    /// How well it answers.
    pub(crate) score: f32,
    /// Whether it names all that the question names, and was said at a moment rather than written on a page.
    pub(crate) names_it: bool,
    /// What it means, where that is known.
    pub(crate) vector: Option<Arc<[f32]>>,
}

impl Statement {
    /// What a text states.
    pub(crate) fn of(text: &str, at: i64) -> Self {
        let mut terms = BTreeSet::new();
        each_term(text, &mut |term, kind| {
            if kind.counts() {
                terms.insert(term.to_owned());
            }
        });
        Self { terms, at, score: 0.0, names_it: false, vector: None }
    }

    /// How much two statements have in common: 0 to 1.
    fn likeness(&self, other: &Self) -> f32 {
        let shared = self.terms.intersection(&other.terms).count();
        let all = self.terms.len() + other.terms.len() - shared;
        if all == 0 { 0.0 } else { shared as f32 / all as f32 }
    }

    /// Whether both speak of something the question names.
    fn share_subject(&self, other: &Self, asked: &BTreeSet<String>) -> bool {
        self.terms.iter().any(|term| other.terms.contains(term) && asked.contains(term))
    }

    /// Whether both are about the same attribute of the same entity, in whatever words.
    fn answers_like(&self, leader: &Self, usual: Option<&[f32]>, band: f32) -> bool {
        if !self.names_it || !leader.names_it {
            return false;
        }
        match (&self.vector, &leader.vector, usual) {
            (Some(one), Some(other), Some(usual)) => cosine(one, other, usual) >= SAME_ATTRIBUTE,
            (Some(one), Some(other), None) => cosine(one, other, &[]) >= VERY_NEAR,
            _ => (leader.score - self.score).abs() <= band,
        }
    }
}

/// What the vectors of all statements about the entity have in common; `None` when there are too few.
fn usual(statements: &[Statement]) -> Option<Vec<f32>> {
    let vectors: Vec<&Arc<[f32]>> =
        statements.iter().filter(|one| one.names_it).filter_map(|one| one.vector.as_ref()).collect();
    let first = vectors.first().filter(|_| vectors.len() >= ENOUGH)?;
    let mut sum = vec![0.0; first.len()];
    for vector in &vectors {
        for (sum, value) in sum.iter_mut().zip(vector.iter()) {
            *sum += value / vectors.len() as f32;
        }
    }
    Some(sum)
}

/// The cosine of two vectors seen from a third point.
fn cosine(one: &[f32], other: &[f32], from: &[f32]) -> f32 {
    let (mut dot, mut a, mut b) = (0.0, 0.0, 0.0);
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        let from = from.get(at).copied().unwrap_or_default();
        let (one, other) = (one - from, other - from);
        dot += one * other;
        a += one * one;
        b += other * other;
    }
    if a > 0.0 && b > 0.0 { dot / (a * b).sqrt() } else { 0.0 }
}

/// Whether a question is about what once happened rather than about how something is.
fn is_of_the_past(question: &str) -> bool {
    const PAST: &[&str] = &["did", "was", "were", "had"];
    let folded = fold(question);
    let folded = folded.trim_end_matches(|c: char| !c.is_alphanumeric());
    folded.split(|c: char| !c.is_alphanumeric()).any(|word| PAST.contains(&word))
        || folded.ends_with('た')
        || folded.ends_with("たか")
        || folded.ends_with("たの")
}

/// The order in which statements should stand: a version that stands below one it replaced changes places with it, and
/// nothing else moves. With `as_of`, what came later is no answer and stands below. `band` is how far the scores of two
/// answers to one question lie apart at most, where there are no vectors.
pub(crate) fn order(statements: &[Statement], question: &str, as_of: Option<i64>, band: f32) -> Vec<usize> {
    let asked = Statement::of(question, 0).terms;
    let usual = usual(statements);
    let of_the_past = as_of.is_none() && is_of_the_past(question);
    let are_versions = |one: &Statement, other: &Statement| {
        (other.likeness(one) >= ALIKE && other.share_subject(one, &asked))
            || (!of_the_past && other.answers_like(one, usual.as_deref(), band))
    };
    let age = |one: &Statement| (as_of.is_some_and(|limit| one.at > limit), std::cmp::Reverse(one.at));
    let mut order: Vec<usize> = (0..statements.len()).collect();
    let replaces = |order: &[usize], below: usize, above: usize| {
        let pair =
            (order.get(below).and_then(|at| statements.get(*at)), order.get(above).and_then(|at| statements.get(*at)));
        matches!(pair, (Some(one), Some(other)) if age(one) < age(other) && are_versions(one, other))
    };
    for below in 0..order.len() {
        // what comes down from above may replace something further up itself
        for _ in 0..below {
            let Some(above) = (0..below).find(|above| replaces(&order, below, *above)) else { break };
            order.swap(below, above);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first_and_nothing_else_moves() {
        let statements = [
            Statement::of("Mariko's desk is in Osaka", 10),
            Statement::of("Mariko likes tea in the garden", 5),
            Statement::of("Mariko's desk is in Nagoya", 20),
        ];
        assert_eq!(order(&statements, "Where is Mariko's desk?", None, 0.0), [2, 1, 0]);
        assert_eq!(order(&statements, "Where was Mariko's desk?", Some(15), 0.0), [0, 1, 2]);
        assert_eq!(order(&statements, "tea", None, 0.0), [0, 1, 2]);
    }

    #[test]
    fn versions_in_other_words_are_known_by_what_they_answer() {
        let named = |text: &str, at: i64, score: f32| Statement { score, names_it: true, ..Statement::of(text, at) };
        let statements = [
            named("Mariko sits in Osaka", 10, 5.0),
            named("From next month it is the Nagoya office for Mariko", 20, 4.5),
            named("Mariko has a cat", 30, 1.0),
        ];
        assert_eq!(order(&statements, "Where is Mariko?", None, 1.0), [1, 0, 2]);
        assert_eq!(order(&statements, "Where is Mariko?", Some(15), 1.0), [0, 1, 2]);
        assert_eq!(order(&statements, "Where did Mariko sit?", None, 1.0), [0, 1, 2]);
        assert_eq!(order(&statements, "マリコはどこにいた？", None, 1.0), [0, 1, 2]);
    }

    #[test]
    fn versions_are_about_the_same_attribute_whatever_all_have_in_common() {
        let named = |at: i64, vector: [f32; 3]| Statement {
            names_it: true,
            vector: Some(Arc::from(vector)),
            ..Statement::of(&format!("said at {at}"), at)
        };
        let statements = [
            named(10, [9.0, 1.0, 0.0]),
            named(40, [9.0, -0.1, 1.0]),
            named(20, [9.0, 1.1, -0.1]),
            named(5, [9.0, -1.0, 0.0]),
            named(6, [9.0, -1.0, -1.0]),
        ];
        assert_eq!(order(&statements, "Where is it?", None, 100.0), [2, 1, 0, 4, 3]);
    }
}
