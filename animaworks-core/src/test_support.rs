//! In-memory fakes of the traits, and a clock that is turned by hand.
//!
//! A fake here keeps the contract it stands in for; it never pretends to be a
//! model, a provider or a person.

mod anima;
mod clock;
mod executor;
mod memory;
mod tool;

pub use anima::FakeAnima;
pub use clock::ManualClock;
pub use executor::{RecordingHost, ScriptedExecutor};
pub use memory::FakeMemory;
pub use tool::{FakeTool, context};

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::ids::IdSource;

/// Identifiers that count up: the same run makes the same ones.
#[derive(Debug, Default)]
pub struct SerialIds(AtomicU64);

impl IdSource for SerialIds {
    fn fresh(&self) -> Arc<str> {
        let n = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        // the changing digits come first, so that shortened ids differ too
        Arc::from(format!("{n:012x}{:020x}", 0))
    }
}
