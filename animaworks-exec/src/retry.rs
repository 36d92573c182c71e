//! When to try again, in one place.

use std::time::Duration;

use animaworks_core::{ExecError, Fault, Retry};

/// How often and how patiently a model call is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many times after the first (`llm_num_retries`).
    pub retries: u32,
    /// The shortest wait.
    pub base: Duration,
    /// The longest wait. A provider that asks for more is left to the caller, who has other models.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 3, base: Duration::from_secs(5), cap: Duration::from_secs(120) }
    }
}

/// The waits of one call: each is drawn between the base and three times the one before.
#[derive(Debug)]
pub struct Backoff {
    policy: RetryPolicy,
    previous: Duration,
    attempt: u32,
    random: u64,
}

impl Backoff {
    /// Waits drawn from a seed; any but the same for two processes will do.
    pub fn new(policy: RetryPolicy, seed: u64) -> Self {
        Self { policy, previous: policy.base, attempt: 0, random: seed | 1 }
    }

    /// Which retry was granted last, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How long to wait before trying again after this error; `None` when that is no use.
    pub fn next(&mut self, error: &ExecError) -> Option<Duration> {
        if self.attempt >= self.policy.retries {
            return None;
        }
        let wait = match error.retry() {
            Retry::Never => return None,
            Retry::After(asked) if asked > self.policy.cap => return None,
            Retry::After(asked) => asked,
            Retry::Now => {
                let widest = (self.previous * 3).min(self.policy.cap);
                let wait = self.policy.base + widest.saturating_sub(self.policy.base).mul_f64(self.draw());
                self.previous = wait;
                wait
            }
        };
        self.attempt += 1;
        Some(wait)
    }

    /// A number from 0 up to 1 (xorshift64*).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn busy(retry_after: Option<Duration>) -> ExecError {
        ExecError::Busy { engine: "x".into(), detail: String::new(), retry_after }
    }

    proptest! {
        #[test]
        fn every_wait_is_within_its_bounds(seed in any::<u64>()) {
            let policy = RetryPolicy { retries: 8, ..RetryPolicy::default() };
            let mut backoff = Backoff::new(policy, seed);
            let mut before = policy.base;
            while let Some(wait) = backoff.next(&busy(None)) {
                prop_assert!(wait >= policy.base && wait <= policy.cap && wait <= before * 3);
                before = wait;
            }
            prop_assert_eq!(backoff.attempt(), 8);
        }
    }

    #[test]
    fn what_the_provider_asks_for_wins_up_to_the_cap() {
        let mut backoff = Backoff::new(RetryPolicy::default(), 7);
        assert_eq!(backoff.next(&busy(Some(Duration::from_secs(2)))), Some(Duration::from_secs(2)));
        assert_eq!(backoff.next(&busy(Some(Duration::from_secs(3600)))), None);
        assert_eq!(backoff.next(&ExecError::Cancelled), None);
    }
}
