//! How much fits a window (exec spec §3.2, memory spec §18.6). Every tier remembers.

use serde::{Deserialize, Serialize};

use crate::{
    memory::{Priming, PrimingChannel},
    units::Tokens,
};

/// What size of window a prompt is built for. Ordered from small to large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// T4: below 16,000 tokens.
    Minimal,
    /// T3: from 16,000.
    Light,
    /// T2: from 32,000.
    Standard,
    /// T1: from 128,000.
    Full,
}

/// The most that T2 primes with, in characters.
const STANDARD_PRIMING_CHARS: usize = 4000;

impl Tier {
    /// The tier of a window.
    pub fn of(window: Tokens) -> Self {
        match window.0 {
            128_000.. => Self::Full,
            32_000.. => Self::Standard,
            16_000.. => Self::Light,
            _ => Self::Minimal,
        }
    }

    /// Priming as this tier has room for it, times `share`. Channels shrink; what was found is never dropped as a whole.
    pub fn priming(self, priming: &Priming, window: Tokens, share: f32) -> Priming {
        let mut kept = priming.clone();
        let total: u32 = kept.sections.iter().map(|section| Tokens::estimate(&section.body).0).sum();
        let allowed = match self {
            Self::Full => total,
            Self::Standard => {
                let chars: usize = kept.sections.iter().map(|section| section.body.chars().count()).sum();
                scale(total, STANDARD_PRIMING_CHARS as f32 / chars.max(1) as f32)
            }
            Self::Light => total / 2,
            Self::Minimal => {
                kept.sections.retain(|section| {
                    !matches!(section.channel, PrimingChannel::RecentActivity | PrimingChannel::RecentOutbound)
                });
                total.min(window.0 * 15 / 100)
            }
        };
        let left: u32 = kept.sections.iter().map(|section| Tokens::estimate(&section.body).0).sum();
        let ratio = (allowed as f32 / left.max(1) as f32).min(1.0) * share;
        if ratio < 1.0 {
            for section in &mut kept.sections {
                let budget = Tokens(scale(Tokens::estimate(&section.body).0, ratio).max(20));
                cut_lines(&mut section.body, budget);
            }
        }
        kept
    }
}

fn scale(tokens: u32, by: f32) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small count")]
    let scaled = (tokens as f32 * by.clamp(0.0, 1.0)) as u32;
    scaled
}

/// Cuts a text to a budget, at a line end when one is near, and says so with `…`.
fn cut_lines(text: &mut String, budget: Tokens) {
    let head = budget.head(text);
    if head.len() == text.len() {
        return;
    }
    let cut = match head.rfind('\n') {
        Some(at) if at * 5 > head.len() * 4 => at,
        _ => head.len(),
    };
    text.truncate(cut);
    text.push('…');
}
