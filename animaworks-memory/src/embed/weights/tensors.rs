//! A mapped safetensors file: a length, a JSON header, and the tensors.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use half::{
    f16,
    slice::{HalfBitsSliceExt, HalfFloatSliceExt},
};
use pulp::bytemuck;
use serde::Deserialize;

use crate::{embed::EmbedError, mapped::Mapped};

/// How the numbers of a tensor are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F32,
    F16,
}

impl Kind {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// Tensors of a mapped file, by name.
#[derive(Debug)]
pub(crate) struct Tensors {
    path: PathBuf,
    map: Mapped,
    entries: BTreeMap<String, Entry>,
    data: usize,
}

impl Tensors {
    pub(crate) fn open(path: &Path) -> Result<Self, EmbedError> {
        let map = Mapped::open(path)?;
        let corrupt = |problem: String| EmbedError::Corrupt { path: path.to_owned(), problem };
        let len = map.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        let len = len.and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= map.len() - 8);
        let len = len.ok_or_else(|| corrupt("its header is cut short".to_owned()))?;
        let header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&map[8..8 + len]).map_err(|error| corrupt(format!("header: {error}")))?;
        let mut entries = BTreeMap::new();
        for (name, value) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
            let entry: Entry =
                serde_json::from_value(value).map_err(|error| corrupt(format!("header: {name}: {error}")))?;
            let (start, end) = entry.data_offsets;
            if start > end || end > map.len() - 8 - len {
                return Err(corrupt(format!("{name} lies outside the file")));
            }
            entries.insert(name, entry);
        }
        Ok(Self { path: path.to_owned(), data: 8 + len, map, entries })
    }

    /// The bytes of a tensor of a given number of values.
    pub(crate) fn tensor(&self, name: &str, values: usize) -> Result<(Kind, &[u8]), EmbedError> {
        let corrupt = |problem: String| EmbedError::Corrupt { path: self.path.clone(), problem };
        let entry = self.entries.get(name).ok_or_else(|| corrupt(format!("it has no {name}")))?;
        let kind = match entry.dtype.as_str() {
            "F32" => Kind::F32,
            "F16" => Kind::F16,
            other => {
                let problem = format!("{name} is {other}; F32 and F16 are understood");
                return Err(EmbedError::Unsupported { path: self.path.clone(), problem });
            }
        };
        let (start, end) = entry.data_offsets;
        if end - start != values * kind.bytes() {
            return Err(corrupt(format!("{name} has shape {:?}, {values} values expected", entry.shape)));
        }
        Ok((kind, &self.map[self.data + start..self.data + end]))
    }

    /// Whether there is a tensor of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    #[cfg(feature = "embed")]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the pages back.
    #[cfg(feature = "embed")]
    pub(crate) fn release(&self) -> std::io::Result<()> {
        self.map.release()
    }
}

/// Numbers of a tensor as f32.
pub(crate) fn f32s(kind: Kind, bytes: &[u8]) -> Vec<f32> {
    match kind {
        Kind::F32 => bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        Kind::F16 => {
            let mut values = vec![0.0; bytes.len() / 2];
            f16s(bytes, &mut values);
            values
        }
    }
}

/// f16 numbers as f32, as many as there is room for.
pub(crate) fn f16s(bytes: &[u8], values: &mut [f32]) {
    // data in our files is aligned, so this is one call into the library's conversion
    if cfg!(target_endian = "little")
        && let Ok(words) = bytemuck::try_cast_slice::<u8, u16>(bytes)
    {
        words.reinterpret_cast::<f16>().convert_to_f32_slice(values);
        return;
    }
    for (bytes, value) in bytes.as_chunks::<2>().0.iter().zip(values) {
        *value = f16::from_le_bytes(*bytes).to_f32();
    }
}

/// A quick sum that a changed bit or a swapped word changes.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let mut lanes = [0x9e37_79b9_7f4a_7c15_u64; 8];
    for chunk in bytes.chunks(64) {
        for (lane, word) in lanes.iter_mut().zip(chunk.chunks(8)) {
            let mut full = [0; 8];
            full[..word.len()].copy_from_slice(word);
            *lane = (lane.rotate_left(5) ^ u64::from_le_bytes(full)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
    lanes.into_iter().fold(0, |sum, lane| (sum ^ lane).wrapping_mul(0x0100_0000_01b3))
}
