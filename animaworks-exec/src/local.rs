//! Engines that live in this process: no key, no network.

#[cfg(feature = "local-llm")]
mod gguf;
mod recall;

#[cfg(feature = "local-llm")]
pub use gguf::{GgufCard, GgufModel, LocalModels, Sampling, locate};
pub use recall::{LocalRecall, REMEMBERED};
