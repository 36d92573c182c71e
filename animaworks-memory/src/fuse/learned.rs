//! The learned sum: one weight for each sign, another set of weights where there is no model of meaning.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    features::{COUNT, NAMES},
    weights,
};

/// What is subtracted from a score and what each sign adds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// The score of a place that has nothing to do with the question.
    pub(crate) usual: f32,
    /// One for each feature.
    pub(crate) weights: Vec<f32>,
}

impl Line {
    /// The score of a row.
    pub(crate) fn score(&self, row: &[f32]) -> f32 {
        row.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum::<f32>() - self.usual
    }

    /// What a score is made of, in a few words.
    pub(crate) fn parts(&self, row: &[f32]) -> BTreeMap<&'static str, f32> {
        let mut parts = BTreeMap::from([("usual", -self.usual)]);
        for ((name, value), weight) in NAMES.iter().zip(row).zip(&self.weights) {
            *parts.entry(part_of(name)).or_insert(0.0) += value * weight;
        }
        parts
    }
}

/// The few words for a feature.
fn part_of(name: &str) -> &'static str {
    let is_around =
        ["-1", "-2", "+1", "+2", " max", " mean", " with ", "after "].iter().any(|mark| name.contains(mark));
    match name.split([' ', '-', '+']).next().unwrap_or_default() {
        "names" => "names",
        _ if is_around => "context",
        "words" | "covers" | "exact" | "whole" => "words",
        "meaning" => "meaning",
        "speaker" => "speaker",
        "page" => "page",
        "by" => "together",
        "important" => "important",
        _ => "form",
    }
}

/// The weights of both situations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weights {
    /// With a model of meaning.
    pub(crate) meaning: Line,
    /// Words alone.
    pub(crate) words: Line,
}

impl Weights {
    /// Those this program was built with.
    pub(crate) fn shipped() -> &'static Self {
        static SHIPPED: LazyLock<Weights> = LazyLock::new(|| Weights {
            meaning: Line { usual: weights::MEANING_USUAL, weights: weights::MEANING.to_vec() },
            words: Line { usual: weights::WORDS_USUAL, weights: weights::WORDS.to_vec() },
        });
        &SHIPPED
    }

    /// Those of a situation.
    pub(crate) fn of(&self, has_meaning: bool) -> &Line {
        if has_meaning { &self.meaning } else { &self.words }
    }
}

const _: () = assert!(weights::MEANING.len() == COUNT && weights::WORDS.len() == COUNT);
