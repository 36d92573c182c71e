//! Picks the next word: the likely ones, not always the likeliest, and the same ones for the same seed.

use std::collections::BTreeSet;

/// How to pick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// How daring: 0 always takes the likeliest.
    pub temperature: f32,
    /// Only the so many likeliest.
    pub top_k: usize,
    /// Only the likeliest that make up this share together, from 0 to 1.
    pub top_p: f32,
    /// What was just said becomes less likely by this factor; 1 does nothing.
    pub repeat_penalty: f32,
    /// The same seed picks the same words.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.7, top_k: 40, top_p: 0.95, repeat_penalty: 1.1, seed: 42 }
    }
}

/// So many of the last words count as just said.
const RECENT: usize = 64;

/// The picker of one answer.
#[derive(Debug)]
pub(crate) struct Sampler {
    how: Sampling,
    state: u64,
}

impl Sampler {
    pub(crate) fn new(how: Sampling) -> Self {
        Self { how, state: how.seed }
    }

    /// Picks from the likelihoods of all words; `None` when there are none.
    pub(crate) fn pick(&mut self, mut logits: Vec<f32>, said: &[u32]) -> Option<u32> {
        let recent: BTreeSet<u32> = said.iter().rev().take(RECENT).copied().collect();
        for word in recent {
            if let Some(logit) = logits.get_mut(word as usize) {
                *logit = if *logit > 0.0 { *logit / self.how.repeat_penalty } else { *logit * self.how.repeat_penalty };
            }
        }
        let mut words: Vec<(u32, f32)> = (0_u32..).zip(logits).filter(|(_, logit)| !logit.is_nan()).collect();
        let likelier = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.how.temperature <= 0.0 {
            return words.into_iter().min_by(likelier).map(|(word, _)| word);
        }
        let keep = self.how.top_k.max(1);
        if words.len() > keep {
            words.select_nth_unstable_by(keep, likelier);
            words.truncate(keep);
        }
        words.sort_by(likelier);
        let most = words.first()?.1;
        let mut shares: Vec<f32> =
            words.iter().map(|(_, logit)| ((logit - most) / self.how.temperature).exp()).collect();
        let whole: f32 = shares.iter().sum();
        let mut together = 0.0;
        let within = shares.iter().position(|share| {
            together += share / whole;
            together >= self.how.top_p
        });
        shares.truncate(within.map_or(shares.len(), |at| at + 1));
        let mut left = self.chance() * shares.iter().sum::<f32>();
        for ((word, _), share) in words.iter().zip(&shares) {
            left -= share;
            if left <= 0.0 {
                return Some(*word);
            }
        }
        words.first().map(|(word, _)| *word)
    }

    /// The next number of a fixed sequence, from 0 up to 1.
    fn chance(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 40) as f32 / (1_u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_picks_the_same_words() {
        let picks = |seed| {
            let mut sampler = Sampler::new(Sampling { temperature: 1.5, seed, ..Sampling::default() });
            (0..20).map(|_| sampler.pick(vec![1.0, 1.1, 0.9, 1.0], &[]).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(picks(1), picks(1));
        assert_ne!(picks(1), picks(2));
    }

    #[test]
    fn without_daring_the_likeliest_that_was_not_just_said() {
        let mut sampler = Sampler::new(Sampling { temperature: 0.0, repeat_penalty: 2.0, ..Sampling::default() });
        assert_eq!(sampler.pick(vec![1.0, 3.0, 2.0, f32::NAN], &[]), Some(1));
        assert_eq!(sampler.pick(vec![1.0, 3.0, 2.0], &[1]), Some(2));
        assert_eq!(sampler.pick(Vec::new(), &[]), None);
    }

    #[test]
    fn the_unlikely_is_never_picked() {
        let mut sampler = Sampler::new(Sampling { temperature: 1.0, top_k: 2, top_p: 1.0, ..Sampling::default() });
        assert!((0..200).all(|_| sampler.pick(vec![1.0, 1.0, -9.0], &[]).unwrap() < 2));
    }
}
