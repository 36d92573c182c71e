//! Turning text into vectors: the trait, and what stands behind it.
//!
//! [`HashEmbedder`] needs no model and serves tests; with the feature `embed`, `E5Embedder` runs
//! multilingual-e5-small from weights that [`weights`] has imported.

#[cfg(feature = "embed")]
mod e5;
mod hash;
pub mod tokenizer;
pub mod weights;

#[cfg(feature = "embed")]
pub use e5::{E5Embedder, E5Options};
pub use hash::HashEmbedder;

use std::{fmt::Debug, path::PathBuf};

use animaworks_core::{ErrorKind, Fault, fs::FileError};
use async_trait::async_trait;

/// What a text is to the model: e5 was taught to tell a question from what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbedKind {
    /// Something that is looked for.
    Query,
    /// Something that is remembered.
    Passage,
}

/// Makes vectors of texts.
#[async_trait]
pub trait Embedder: Debug + Send + Sync {
    /// Names model, weights and treatment of text: vectors of different signatures cannot be compared, and a stored
    /// vector is of use only under its own.
    fn signature(&self) -> &str;

    /// How long every vector is.
    fn dimensions(&self) -> usize;

    /// One L2-normalised vector per text, in order. A text's vector depends on nothing but the text and `kind`: not on
    /// its neighbours, not on the number of threads. What is longer than the model reads is cut.
    ///
    /// # Errors
    ///
    /// [`EmbedError`]; then there are no vectors at all.
    ///
    /// # Cancel safety
    ///
    /// Safe; texts already begun are finished.
    async fn embed(&self, kind: EmbedKind, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// What can go wrong with an embedder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// There are no weights.
    #[error("no weights of {model} in {}", .path.display())]
    NoWeights {
        /// The model.
        model: String,
        /// Where they would be.
        path: PathBuf,
    },
    /// A file of the weights is broken; importing them again mends it.
    #[error("weights {}: {problem}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A model that we cannot run.
    #[error("{}: {problem}", .path.display())]
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// What it has and what would be right.
        problem: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The arithmetic failed.
    #[error("forward pass")]
    Compute(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Fault for EmbedError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoWeights { .. } => ErrorKind::NotInstalled,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Unsupported { .. } => ErrorKind::InvalidRequest,
            Self::File(error) => error.kind(),
            Self::Compute(_) => ErrorKind::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NoWeights { .. } => "weights_missing",
            Self::Corrupt { .. } => "weights_corrupt",
            Self::Unsupported { .. } => "weights_unsupported",
            Self::File(error) => error.code(),
            Self::Compute(_) => "embed_compute",
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NoWeights { model, path } => vec![("model", model.clone()), ("path", path.display().to_string())],
            Self::Corrupt { path, problem } | Self::Unsupported { path, problem } => {
                vec![("path", path.display().to_string()), ("problem", problem.clone())]
            }
            Self::File(error) => error.fields(),
            Self::Compute(source) => vec![("cause", source.to_string())],
        }
    }
}

/// Makes a vector as long as 1; a vector of zeros stays one.
pub(crate) fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
    if norm > 0.0 {
        for value in vector {
            *value = (f64::from(*value) / norm) as f32;
        }
    }
}
