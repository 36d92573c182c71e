//! What was learned about a model by asking it; kept as long as the process lives.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

/// Something a model or its server cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lesson {
    /// It refuses to be told how hard to think.
    NoThinkingParameter,
    /// It cannot stream, at least not with tools.
    NoStreaming,
    /// It closes thoughts that it never opened.
    OrphanThoughts,
    /// It does not take `stream_options`.
    NoStreamUsage,
}

/// Lessons by address and model.
#[derive(Debug, Default)]
pub struct Learned(Mutex<BTreeMap<String, BTreeSet<Lesson>>>);

impl Learned {
    /// Whether this was learned.
    pub fn knows(&self, model: &str, lesson: Lesson) -> bool {
        let lessons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.get(model).is_some_and(|known| known.contains(&lesson))
    }

    /// Remembers; whether it was news.
    pub fn learn(&self, model: &str, lesson: Lesson) -> bool {
        let mut lessons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.entry(model.to_owned()).or_default().insert(lesson)
    }
}
