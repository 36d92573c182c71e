//! Quantities with a unit, so that no two of them can be mixed up.

use std::{
    iter::Sum,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

/// A number of budget tokens.
///
/// Budgets are counted by one estimator everywhere: a CJK character is a token,
/// four other characters are one, rounded up (memory spec, conventions).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u32);

impl Tokens {
    /// The cost of a text; linear in its length, allocates nothing.
    pub fn estimate(text: &str) -> Self {
        let (mut cjk, mut other) = (0_u32, 0_u32);
        for c in text.chars() {
            if is_cjk(c) {
                cjk = cjk.saturating_add(1);
            } else {
                other = other.saturating_add(1);
            }
        }
        Self(cjk.saturating_add(other.div_ceil(4)))
    }

    /// The longest prefix of `text` that costs at most this much.
    pub fn head(self, text: &str) -> &str {
        // counted in quarters, so that the running sum equals `estimate` of the prefix
        let limit = u64::from(self.0) * 4;
        let mut spent = 0_u64;
        for (at, c) in text.char_indices() {
            spent += if is_cjk(c) { 4 } else { 1 };
            if spent > limit {
                return text.get(..at).unwrap_or_default();
            }
        }
        text
    }

    /// This many tokens as a count.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// What is left after spending `other`; zero at the least.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Add::add)
    }
}

/// Whether a character is written without spaces between words and costs a token of its own.
///
/// Han, Hiragana, Katakana (half-width too), Hangul, CJK punctuation and full-width forms.
pub fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF | 0xF900..=0xFAFF
        | 0xFE30..=0xFE4F | 0xFF00..=0xFFEF | 0x1B000..=0x1B16F | 0x20000..=0x3FFFF)
}

/// How well something fits a question; higher is better, only comparable within one answer.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(pub f32);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The position of an event in its stream, from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Money, in millionths of a US dollar, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroDollars(pub u64);

/// What a model call consumed, in the provider's own tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, without those served from a cache.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from the provider's prompt cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's prompt cache.
    pub cache_write_tokens: u64,
    /// Whether the provider said nothing and the numbers are our own guess.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.estimated |= other.estimated;
    }
}

impl Usage {
    /// The real size of the context that was sent, cached or not.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens + self.cache_read_tokens + self.cache_write_tokens
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn japanese_costs_a_token_a_character() {
        assert_eq!(Tokens::estimate("会議は10時"), Tokens(5));
        assert_eq!(Tokens::estimate("deploy"), Tokens(2));
        assert_eq!(Tokens::estimate(""), Tokens(0));
    }

    proptest! {
        #[test]
        fn a_head_never_costs_more_than_asked(text in "\\PC{0,80}", budget in 0_u32..40) {
            let head = Tokens(budget).head(&text);
            prop_assert!(Tokens::estimate(head) <= Tokens(budget));
            prop_assert!(text.starts_with(head));
        }

        #[test]
        fn a_head_takes_all_that_fits(text in "\\PC{0,80}") {
            prop_assert_eq!(Tokens::estimate(&text).head(&text), text.as_str());
        }
    }
}
