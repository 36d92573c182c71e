//! How alike two texts are: the share of three-character sequences that both have.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use rayon::prelude::*;

use crate::text::normalize::fold;

/// Values of a signature; each pair of neighbours is one band.
const SIGNATURE: usize = 32;
/// Values of one band: two texts that share one are compared in full.
const BAND: usize = 2;
/// A band that more texts share than this is boiler-plate and says nothing.
const CROWDED: usize = 200;

/// The three-character sequences of a text, as numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape(HashSet<u64>);

impl Shape {
    pub(super) fn of(text: &str) -> Self {
        let letters: Vec<char> = fold(text).chars().filter(|c| c.is_alphanumeric()).collect();
        let mut parts: HashSet<u64> = letters.windows(3).map(number).collect();
        if parts.is_empty() && !letters.is_empty() {
            parts.insert(number(&letters));
        }
        Self(parts)
    }

    /// From 0 (nothing in common) to 1 (the same sequences).
    pub(super) fn likeness(&self, other: &Self) -> f64 {
        let both = self.0.intersection(&other.0).count();
        let either = self.0.len() + other.0.len() - both;
        if either == 0 { 0.0 } else { both as f64 / either as f64 }
    }

    /// The smallest values under different hash functions: alike texts have many of them in common.
    fn signature(&self) -> [u64; SIGNATURE] {
        let mut smallest = [u64::MAX; SIGNATURE];
        for part in &self.0 {
            for (at, least) in smallest.iter_mut().enumerate() {
                *least = (*least).min(mixed(part ^ mixed(at as u64 + 1)));
            }
        }
        smallest
    }
}

fn number(letters: &[char]) -> u64 {
    let mut hasher = DefaultHasher::new();
    letters.hash(&mut hasher);
    hasher.finish()
}

/// A full mixing of the bits of a number.
fn mixed(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// All pairs that are at least this alike, without comparing every text with every other.
pub(super) fn pairs(shapes: &[Shape], least: f64) -> Vec<(usize, usize, f64)> {
    let signatures: Vec<[u64; SIGNATURE]> = shapes.par_iter().map(Shape::signature).collect();
    let mut candidates: BTreeSet<(usize, usize)> = BTreeSet::new();
    for band in 0..SIGNATURE / BAND {
        let mut shared: HashMap<&[u64], Vec<usize>> = HashMap::new();
        for (at, signature) in signatures.iter().enumerate() {
            if let Some(values) = signature.get(band * BAND..(band + 1) * BAND) {
                shared.entry(values).or_default().push(at);
            }
        }
        for group in shared.into_values().filter(|group| (2..=CROWDED).contains(&group.len())) {
            for (n, a) in group.iter().enumerate() {
                candidates.extend(group.iter().skip(n + 1).map(|b| (*a, *b)));
            }
        }
    }
    let candidates: Vec<(usize, usize)> = candidates.into_iter().collect();
    let alike = |(a, b): &(usize, usize)| {
        let likeness = shapes.get(*a)?.likeness(shapes.get(*b)?);
        (likeness >= least).then_some((*a, *b, likeness))
    };
    candidates.par_iter().filter_map(alike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_duplicates_are_found_among_many() {
        let mut texts: Vec<String> = (0..300).map(|n| format!("議事録 {n} {}", n * 7919 % 1000)).collect();
        texts.push("請求は毎月25日に締める。理由は経理の処理日に合わせるため。担当は経理の係。".into());
        texts.push("請求は毎月25日に締める。理由は経理の処理日に合わせるため。担当は総務の係。".into());
        let shapes: Vec<Shape> = texts.iter().map(|text| Shape::of(text)).collect();
        assert!(pairs(&shapes, 0.7).iter().any(|(a, b, _)| (*a, *b) == (300, 301)));
        assert!(shapes[300].likeness(&shapes[0]) < 0.2);
    }
}
