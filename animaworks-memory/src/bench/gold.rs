//! What answers a question. Only the scorer reads this; no system under test is given it.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The answers of one store, by the name of the question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gold {
    /// What is right for each question.
    pub keys: BTreeMap<String, Key>,
}

/// What is right for a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Key {
    /// What sort of question it is.
    pub category: String,
    /// Records that answer it; none when nothing does.
    pub evidence: Vec<String>,
    /// What its authors said answers it, before it was audited.
    pub original: Vec<String>,
    /// Records that say what is not so any more.
    pub stale: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    queries: Vec<LineKey>,
}

#[derive(Deserialize)]
struct LineKey {
    id: String,
    #[serde(default)]
    cat: String,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    evidence_orig: Vec<String>,
    #[serde(default)]
    stale: Vec<String>,
}

impl Gold {
    /// The answers in a line of a data set.
    pub(crate) fn read(line: &str) -> Result<Self, serde_json::Error> {
        let line: Line = serde_json::from_str(line)?;
        let keys = line.queries.into_iter().map(|key| {
            let original = if key.evidence_orig.is_empty() { key.evidence.clone() } else { key.evidence_orig };
            (key.id, Key { category: key.cat, evidence: key.evidence, original, stale: key.stale })
        });
        Ok(Self { keys: keys.collect() })
    }

    /// Takes in another store's answers, whose records have new names.
    pub(crate) fn absorb(&mut self, other: Self, name: impl Fn(&str) -> String) {
        let renamed = |ids: Vec<String>| ids.iter().map(|id| name(id)).collect();
        self.keys.extend(other.keys.into_iter().map(|(question, key)| {
            let key = Key {
                category: key.category,
                evidence: renamed(key.evidence),
                original: renamed(key.original),
                stale: renamed(key.stale),
            };
            (question, key)
        }));
    }
}
