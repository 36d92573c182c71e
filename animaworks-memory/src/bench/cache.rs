//! Vectors of a benchmark kept from one run to the next: an experiment asks for the same texts again and again.
//!
//! One file for each signature of a model, rows of a hash and its vector, only ever appended to. A row that was cut
//! off by an end in the middle is dropped when the file is read.

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use animaworks_core::fs::FileError;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::embed::{EmbedError, EmbedKind, Embedder};

/// The bytes of a text's hash.
const KEY: usize = 16;
type Key = [u8; KEY];

/// An embedder that remembers what it was asked.
#[derive(Debug)]
pub struct CachedEmbedder {
    inner: Arc<dyn Embedder>,
    file: PathBuf,
    known: Mutex<HashMap<Key, Vec<f32>>>,
}

impl CachedEmbedder {
    /// Keeps the vectors of `inner` in a file of a directory.
    ///
    /// # Errors
    ///
    /// When the directory or the file cannot be used.
    pub fn open(inner: Arc<dyn Embedder>, directory: &Path) -> Result<Self, FileError> {
        fs_err::create_dir_all(directory).map_err(|error| FileError::io("make", directory, error))?;
        let name: String = digest(inner.signature().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let file = directory.join(format!("{name}.vectors"));
        let bytes = match fs_err::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(FileError::io("read", &file, error)),
        };
        let row = KEY + 4 * inner.dimensions();
        let whole = bytes.len() / row * row;
        if whole < bytes.len() {
            let opened = fs_err::OpenOptions::new().write(true).open(&file);
            opened.and_then(|file| file.set_len(whole as u64)).map_err(|error| FileError::io("mend", &file, error))?;
        }
        let known = bytes.chunks_exact(row).filter_map(|row| {
            let (key, vector) = row.split_at_checked(KEY)?;
            let vector = vector.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            Some((key.try_into().ok()?, vector))
        });
        Ok(Self { known: Mutex::new(known.collect()), inner, file })
    }

    /// How many vectors are known.
    pub fn len(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is known yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn keep(&self, rows: Vec<(Key, Vec<f32>)>) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        for (key, vector) in &rows {
            bytes.extend_from_slice(key);
            bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = fs_err::OpenOptions::new().create(true).append(true).open(&self.file);
        opened
            .and_then(|mut file| file.write_all(&bytes))
            .map_err(|error| FileError::io("write", &self.file, error))?;
        known.extend(rows);
        Ok(())
    }
}

#[async_trait]
impl Embedder for CachedEmbedder {
    fn signature(&self) -> &str {
        self.inner.signature()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    async fn embed(&self, kind: EmbedKind, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let keys: Vec<Key> = texts.iter().map(|text| key(kind, text)).collect();
        let (missing, wanted): (Vec<Key>, Vec<String>) = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            keys.iter().zip(texts).filter(|(key, _)| !known.contains_key(*key)).map(|(key, text)| (*key, text)).unzip()
        };
        if !wanted.is_empty() {
            let made = self.inner.embed(kind, wanted).await?;
            self.keep(missing.into_iter().zip(made).collect())?;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(keys.iter().map(|key| known.get(key).cloned().unwrap_or_default()).collect())
    }
}

fn key(kind: EmbedKind, text: &str) -> Key {
    let kind = match kind {
        EmbedKind::Query => "query",
        EmbedKind::Passage => "passage",
    };
    digest(format!("{kind}\0{text}").as_bytes())
}

fn digest(bytes: &[u8]) -> Key {
    let mut key = Key::default();
    key.copy_from_slice(Sha256::digest(bytes).get(..KEY).unwrap_or(&[0; KEY]));
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashEmbedder;

    #[tokio::test]
    async fn a_vector_is_made_once_and_read_back_after_a_cut() {
        let dir = tempfile::tempdir().unwrap();
        let texts = || vec!["鍵".to_owned(), "kettle".to_owned()];
        let plain = HashEmbedder::new();
        let expected = plain.embed(EmbedKind::Passage, texts()).await.unwrap();
        let cached = CachedEmbedder::open(Arc::new(HashEmbedder::new()), dir.path()).unwrap();
        assert!(cached.is_empty());
        assert_eq!(cached.embed(EmbedKind::Passage, texts()).await.unwrap(), expected);
        assert_eq!(cached.embed(EmbedKind::Passage, texts()).await.unwrap(), expected);
        assert_eq!(cached.len(), 2);
        fs_err::OpenOptions::new().append(true).open(&cached.file).unwrap().write_all(b"cut off").unwrap();
        let again = CachedEmbedder::open(Arc::new(HashEmbedder::new()), dir.path()).unwrap();
        assert_eq!(again.len(), 2);
        assert_eq!(again.embed(EmbedKind::Passage, texts()).await.unwrap(), expected);
        again.embed(EmbedKind::Query, texts()).await.unwrap();
        assert_eq!(CachedEmbedder::open(Arc::new(HashEmbedder::new()), dir.path()).unwrap().len(), 4);
    }
}
