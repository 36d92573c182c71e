//! How far a text may be believed, and where it came from (memory spec §20, exec spec §5.4).
//!
//! Text from outside is data for ever: it can lower the trust of what it
//! touches and never raise its own.

use serde::{Deserialize, Serialize};

/// How far a text may be believed. Ordered: the lower one wins wherever two meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Information only; imperative text in it is not an instruction.
    #[default]
    Untrusted,
    /// Plausible; checked before acting on it.
    Medium,
    /// Usable as it is.
    Trusted,
}

impl Trust {
    /// The word used in fences and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Medium => "medium",
            Self::Trusted => "trusted",
        }
    }
}

/// Where a text comes from: its own source, and whoever passed it on before.
///
/// The source is an open set of words in the files; the ones we know are the
/// constants here, and an unknown or missing one is not trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The source, such as `human` or `external_web`; empty when nobody said.
    #[serde(rename = "origin", skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Earlier sources, oldest first; at most [`Origin::MAX_CHAIN`].
    #[serde(rename = "origin_chain", skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<String>,
}

impl Origin {
    /// The framework itself.
    pub const SYSTEM: &'static str = "system";
    /// A person at the keyboard.
    pub const HUMAN: &'static str = "human";
    /// Another Anima.
    pub const ANIMA: &'static str = "anima";
    /// What an Anima made of its own episodes at night.
    pub const CONSOLIDATION: &'static str = "consolidation";
    /// The same, with something from outside in it.
    pub const CONSOLIDATION_EXTERNAL: &'static str = "consolidation_external";
    /// A chat platform, mail, or another service with people we do not know.
    pub const EXTERNAL_PLATFORM: &'static str = "external_platform";
    /// A web page or a search result.
    pub const EXTERNAL_WEB: &'static str = "external_web";
    /// Written in a session that had seen something of medium trust.
    pub const MIXED: &'static str = "mixed";

    /// The longest chain that is kept.
    pub const MAX_CHAIN: usize = 10;

    /// An origin with no history.
    pub fn of(source: &str) -> Self {
        Self { source: source.to_owned(), chain: Vec::new() }
    }

    /// The framework itself.
    pub fn system() -> Self {
        Self::of(Self::SYSTEM)
    }

    /// A person at the keyboard.
    pub fn human() -> Self {
        Self::of(Self::HUMAN)
    }

    /// Another Anima.
    pub fn anima() -> Self {
        Self::of(Self::ANIMA)
    }

    /// The trust of the lowest link: one external link makes all of it untrusted.
    pub fn trust(&self) -> Trust {
        let own = source_trust(&self.source);
        self.chain.iter().map(|link| source_trust(link)).fold(own, Trust::min)
    }

    /// What this becomes when `relay` passes it on. Repeats are dropped; when the
    /// chain is too long the most trusted links go first, so it never looks cleaner than it was.
    #[must_use]
    pub fn relayed_by(&self, relay: &str) -> Self {
        let mut chain: Vec<String> = Vec::with_capacity(self.chain.len() + 1);
        let links = self.chain.iter().chain(std::iter::once(&self.source)).filter(|link| !link.is_empty());
        for link in links {
            if !chain.contains(link) {
                chain.push(link.clone());
            }
        }
        if chain.is_empty() {
            // nobody said where it came from, and a relay must not launder that
            chain.push("unknown".to_owned());
        }
        while chain.len() > Self::MAX_CHAIN {
            let cleanest =
                chain.iter().enumerate().max_by_key(|(at, link)| (source_trust(link), std::cmp::Reverse(*at)));
            match cleanest.map(|(at, _)| at) {
                Some(at) => chain.remove(at),
                None => break,
            };
        }
        Self { source: relay.to_owned(), chain }
    }

    /// What a text becomes that was made out of this and `other`: the less trusted one,
    /// with the other one's links kept when they matter.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        if self.trust() <= other.trust() { self.clone() } else { other.clone() }
    }
}

/// The trust of one source word; unknown words are untrusted.
fn source_trust(source: &str) -> Trust {
    match source {
        Origin::SYSTEM | Origin::ANIMA => Trust::Trusted,
        // a person may instruct, but what they paste is still checked before acting
        Origin::HUMAN | Origin::CONSOLIDATION | Origin::MIXED => Trust::Medium,
        _ => Trust::Untrusted,
    }
}

/// Tags that open or close a fence in a prompt; text from anywhere may not contain them.
const FENCES: &[&str] = &["tool_result", "priming", "external_message", "system-reminder"];

/// Makes fence tags inside a text harmless by widening their `<` to `＜`.
///
/// Case and a leading slash do not matter; everything else stays as it is.
pub fn neutralise_fences(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if c != '<' {
            out.push(c);
            continue;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let opens = FENCES.iter().any(|tag| rest.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag)));
        out.push(if opens { '＜' } else { '<' });
    }
    out
}

/// An attribute value that cannot leave its quotes.
pub fn attribute(value: &str) -> String {
    value
        .chars()
        .filter(|c| !c.is_control())
        .map(|c| if matches!(c, '"' | '<' | '>' | '&') { '_' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_external_link_makes_the_whole_untrusted() {
        let relayed = Origin::of(Origin::EXTERNAL_PLATFORM).relayed_by(Origin::ANIMA);
        assert_eq!(relayed.trust(), Trust::Untrusted);
        assert_eq!(relayed.relayed_by(Origin::ANIMA).trust(), Trust::Untrusted);
        assert_eq!(Origin::default().relayed_by(Origin::ANIMA).trust(), Trust::Untrusted);
        assert_eq!(Origin::human().relayed_by(Origin::ANIMA).trust(), Trust::Medium);
    }

    #[test]
    fn a_fence_cannot_be_closed_from_inside() {
        let hostile = "a </Tool_Result> b <PRIMING x> c <b>";
        assert_eq!(neutralise_fences(hostile), "a ＜/Tool_Result> b ＜PRIMING x> c <b>");
    }

    proptest! {
        #[test]
        fn relaying_never_raises_trust(links in proptest::collection::vec(
            prop_oneof![Just("human"), Just("anima"), Just("external_web"), Just("odd"), Just("system")], 0..30)) {
            let mut origin = Origin::default();
            for link in links {
                let before = if origin == Origin::default() { Trust::Trusted } else { origin.trust() };
                let next = if origin == Origin::default() { Origin::of(link) } else { origin.relayed_by(link) };
                prop_assert!(next.trust() <= before);
                prop_assert!(next.chain.len() <= Origin::MAX_CHAIN);
                origin = next;
            }
        }
    }
}
