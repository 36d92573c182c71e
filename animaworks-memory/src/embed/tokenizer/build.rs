//! Building the tokeniser file from what a model's own tokeniser says.

use std::path::Path;

use base64::Engine as _;
use serde::Deserialize;

use super::{Flags, HEADER, MAGIC, META, trie};
use crate::embed::EmbedError;

/// Everything a tokeniser is made of.
#[derive(Debug)]
pub(crate) struct TokenizerParts {
    /// Pieces by id with their scores; control tokens and unused ids are `None`.
    pub(crate) pieces: Vec<Option<(Vec<u8>, f64)>>,
    /// The lowest score of the model.
    pub(crate) min_score: f64,
    /// What stands for which bytes.
    pub(crate) charsmap: Vec<(Vec<u8>, String)>,
    pub(crate) bos: u32,
    pub(crate) eos: u32,
    pub(crate) unknown: u32,
    pub(crate) flags: Flags,
}

impl TokenizerParts {
    /// The bytes of the file.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut scores = Vec::with_capacity(self.pieces.len() * 8);
        let mut vocabulary = Vec::with_capacity(self.pieces.len());
        for (id, piece) in self.pieces.into_iter().enumerate() {
            let score = piece.as_ref().map_or(0.0, |(_, score)| *score);
            scores.extend_from_slice(&score.to_bits().to_le_bytes());
            vocabulary.extend(piece.map(|(text, _)| (text, id as u32)));
        }
        let mut replacements = Vec::new();
        let mut charsmap = Vec::with_capacity(self.charsmap.len());
        for (key, replacement) in self.charsmap {
            // the longest of Unicode, U+FDFA, has 33 bytes
            let len = replacement.len().min(0xff);
            charsmap.push((key, (replacements.len() as u32) << 8 | len as u32));
            replacements.extend_from_slice(&replacement.as_bytes()[..len]);
        }
        let sections = [trie::build(vocabulary), scores, trie::build(charsmap), replacements];
        let mut bytes = Vec::with_capacity(HEADER + sections.iter().map(Vec::len).sum::<usize>());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.min_score.to_bits().to_le_bytes());
        let flags = u32::from(self.flags.split_whitespace) | u32::from(self.flags.collapse_spaces) << 1;
        for word in [self.bos, self.eos, self.unknown, flags] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for section in &sections {
            bytes.extend_from_slice(&(section.len() as u64).to_le_bytes());
        }
        for section in &sections {
            bytes.extend_from_slice(section);
        }
        bytes
    }

    /// Reads a `tokenizer.json` of the `tokenizers` crate.
    pub(crate) fn from_json(path: &Path) -> Result<Self, EmbedError> {
        let json: Json = animaworks_core::fs::read_json(path)?;
        json.parts().map_err(|problem| EmbedError::Unsupported { path: path.to_owned(), problem })
    }
}

#[derive(Deserialize)]
struct Json {
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Normalizer {
    Sequence {
        normalizers: Vec<Normalizer>,
    },
    Precompiled {
        precompiled_charsmap: String,
    },
    Replace {
        pattern: serde_json::Value,
        content: String,
    },
    #[serde(untagged)]
    Other(serde_json::Value),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum PreTokenizer {
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
    WhitespaceSplit,
    Metaspace {
        replacement: char,
        add_prefix_space: Option<bool>,
        prepend_scheme: Option<String>,
        split: Option<bool>,
    },
    #[serde(untagged)]
    Other(serde_json::Value),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Model {
    Unigram {
        unk_id: Option<u32>,
        vocab: Vec<(String, f64)>,
        byte_fallback: Option<bool>,
    },
    #[serde(untagged)]
    Other(serde::de::IgnoredAny),
}

impl Json {
    fn parts(self) -> Result<TokenizerParts, String> {
        let Model::Unigram { unk_id: Some(unknown), vocab, byte_fallback: None | Some(false) } = self.model else {
            return Err("the tokeniser is not a plain Unigram model; multilingual-e5-small's is".to_owned());
        };
        let mut flags = Flags { split_whitespace: false, collapse_spaces: false };
        let mut metaspace = false;
        if let Some(step) = self.pre_tokenizer {
            step.apply(&mut flags, &mut metaspace)?;
        }
        if !metaspace {
            return Err("the tokeniser does not mark words with a meta space".to_owned());
        }
        let mut charsmap = Vec::new();
        if let Some(step) = self.normalizer {
            step.apply(&mut flags, &mut charsmap)?;
        }
        let control = |name: &str| {
            let added = self.added_tokens.iter().find(|token| token.content == name).map(|token| token.id);
            added.ok_or_else(|| format!("the tokeniser has no {name}"))
        };
        let (bos, eos) = (control("<s>")?, control("</s>")?);
        let min_score = vocab.iter().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
        let mut pieces: Vec<_> = vocab.into_iter().map(|(text, score)| Some((text.into_bytes(), score))).collect();
        for id in self.added_tokens.iter().map(|token| token.id).chain([unknown]) {
            if let Some(piece) = pieces.get_mut(id as usize) {
                *piece = None;
            }
        }
        Ok(TokenizerParts { pieces, min_score, charsmap, bos, eos, unknown, flags })
    }
}

impl Normalizer {
    fn apply(self, flags: &mut Flags, charsmap: &mut Vec<(Vec<u8>, String)>) -> Result<(), String> {
        match self {
            Self::Sequence { normalizers } => normalizers.into_iter().try_for_each(|step| step.apply(flags, charsmap)),
            Self::Precompiled { precompiled_charsmap } => {
                let blob = base64::engine::general_purpose::STANDARD.decode(precompiled_charsmap);
                *charsmap = read_charsmap(&blob.map_err(|error| format!("precompiled_charsmap: {error}"))?)?;
                Ok(())
            }
            Self::Replace { pattern, content }
                if content == " " && pattern.get("Regex").and_then(serde_json::Value::as_str) == Some(" {2,}") =>
            {
                flags.collapse_spaces = true;
                Ok(())
            }
            Self::Replace { pattern, .. } => Err(format!("a normaliser we do not know: Replace {pattern}")),
            Self::Other(other) => Err(format!("a normaliser we do not know: {}", kind(&other))),
        }
    }
}

impl PreTokenizer {
    fn apply(self, flags: &mut Flags, metaspace: &mut bool) -> Result<(), String> {
        match self {
            Self::Sequence { pretokenizers } => {
                pretokenizers.into_iter().try_for_each(|step| step.apply(flags, metaspace))
            }
            Self::WhitespaceSplit if !*metaspace => {
                flags.split_whitespace = true;
                Ok(())
            }
            Self::Metaspace { replacement: META, add_prefix_space, prepend_scheme, split }
                if add_prefix_space != Some(false)
                    && split != Some(false)
                    && prepend_scheme.as_deref().is_none_or(|scheme| scheme == "always") =>
            {
                *metaspace = true;
                Ok(())
            }
            Self::Other(other) => Err(format!("a pre-tokeniser we do not know: {}", kind(&other))),
            Self::WhitespaceSplit | Self::Metaspace { .. } => {
                Err("a pre-tokeniser with settings we do not know".to_owned())
            }
        }
    }
}

fn kind(value: &serde_json::Value) -> String {
    value.get("type").map_or_else(|| value.to_string(), ToString::to_string)
}

/// Reads the double-array trie of SentencePiece: its length in bytes, its units, then the replacements, each ended by
/// a zero byte.
fn read_charsmap(blob: &[u8]) -> Result<Vec<(Vec<u8>, String)>, String> {
    let cut = || "precompiled_charsmap is cut short".to_owned();
    let len = trie::u32_at(blob, 0) as usize;
    let units = blob.get(4..4 + len).ok_or_else(cut)?;
    let units: Vec<u32> = units.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let texts = blob.get(4 + len..).ok_or_else(cut)?;
    let mut found = Vec::new();
    let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
    let mut stack = vec![(units.first().copied().map(offset).ok_or_else(cut)?, Vec::new())];
    while let Some((base, key)) = stack.pop() {
        if key.len() > 64 {
            return Err("precompiled_charsmap runs in a circle".to_owned());
        }
        for label in 1..=u8::MAX {
            let at = base ^ usize::from(label);
            let Some(unit) = units.get(at).copied() else { continue };
            if unit & (1 << 31 | 0xff) != u32::from(label) {
                continue;
            }
            let mut longer = key.clone();
            longer.push(label);
            let below = at ^ offset(unit);
            if unit >> 8 & 1 == 1 {
                let value = (units.get(below).copied().ok_or_else(cut)? & 0x7fff_ffff) as usize;
                let text = texts.get(value..).ok_or_else(cut)?.split(|byte| *byte == 0).next().unwrap_or_default();
                let text = std::str::from_utf8(text).map_err(|error| format!("precompiled_charsmap: {error}"))?;
                found.push((longer.clone(), text.to_owned()));
            }
            stack.push((below, longer));
        }
    }
    Ok(found)
}
