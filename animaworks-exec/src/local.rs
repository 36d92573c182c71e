//! Engines that live in this process: no key, no network.

mod engines;
#[cfg(feature = "local-llm")]
mod gguf;
mod recall;

pub use engines::LocalEngines;
#[cfg(feature = "local-llm")]
pub use gguf::{GgufCard, GgufModel, LocalModels, Sampling, locate};
pub use recall::{LocalRecall, REMEMBERED};
