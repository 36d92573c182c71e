//! What an Anima remembers: Markdown is the truth, the index is its shadow.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod mapped;

pub mod embed;
pub mod vector;

#[cfg(feature = "embed")]
pub use embed::{E5Embedder, E5Options};
pub use embed::{EmbedError, EmbedKind, Embedder, HashEmbedder};
pub use vector::{EmbeddedIndex, VectorIndex};
