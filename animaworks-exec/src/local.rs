//! Engines that live in this process: no key, no network.

mod engines;
#[cfg(feature = "local-llm")]
mod gguf;
#[cfg(feature = "hub")]
mod hub;
mod recall;

pub use engines::LocalEngines;
#[cfg(feature = "local-llm")]
pub use gguf::{GgufCard, GgufModel, LocalModels, Sampling, locate};
#[cfg(feature = "hub")]
pub use hub::{Hub, OnBytes};
pub use recall::{LocalRecall, REMEMBERED};
