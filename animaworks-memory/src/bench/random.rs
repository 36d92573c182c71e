//! Numbers that are the same in every run.

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `end`, exclusive; 0 when there is none.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    /// `wanted` different numbers below `end`, in random order.
    pub(crate) fn sample(&mut self, end: usize, wanted: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..end).collect();
        let wanted = wanted.min(end);
        for at in 0..wanted {
            let other = at + self.below(end - at);
            all.swap(at, other);
        }
        all.truncate(wanted);
        all
    }
}
