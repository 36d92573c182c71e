//! Versions of one fact: the current one comes before the ones it replaced.
//!
//! Two places state versions of the same fact when they name the same entity, which
//! the question names too, and the same attribute, at different times. Both show in
//! the words: versions differ in the value and in little else. Recency acts only
//! between versions, never on the whole ranking.

use std::collections::BTreeSet;

use crate::text::terms::each_term;

/// How much of their words two versions have in common at least.
const ALIKE: f32 = 0.5;

/// A place that may state a fact.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    terms: BTreeSet<String>,
    /// When it was said, in seconds since 1970.
    pub(crate) at: i64,
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
        Self { terms, at }
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
}

/// The order in which statements should stand: each group of versions keeps the places it has, the
/// newest first. With `as_of`, what came later is no answer and goes last in its group.
pub(crate) fn order(statements: &[Statement], question: &str, as_of: Option<i64>) -> Vec<usize> {
    let asked = Statement::of(question, 0).terms;
    let mut order: Vec<usize> = (0..statements.len()).collect();
    let mut settled = BTreeSet::new();
    for (first, leader) in statements.iter().enumerate() {
        if settled.contains(&first) {
            continue;
        }
        let places: Vec<usize> = statements
            .iter()
            .enumerate()
            .skip(first)
            .filter(|(at, other)| {
                *at == first
                    || (!settled.contains(at) && other.likeness(leader) >= ALIKE && other.share_subject(leader, &asked))
            })
            .map(|(at, _)| at)
            .collect();
        settled.extend(places.iter().copied());
        let mut members = places.clone();
        members.sort_by_key(|at| {
            let when = statements.get(*at).map_or(i64::MIN, |statement| statement.at);
            (as_of.is_some_and(|limit| when > limit), std::cmp::Reverse(when))
        });
        for (place, member) in places.iter().zip(members) {
            if let Some(slot) = order.get_mut(*place) {
                *slot = member;
            }
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
        assert_eq!(order(&statements, "Where is Mariko's desk?", None), [2, 1, 0]);
        assert_eq!(order(&statements, "Where was Mariko's desk?", Some(15)), [0, 1, 2]);
        assert_eq!(order(&statements, "tea", None), [0, 1, 2]);
    }
}
