//! Memory in a map.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::{
    ids::MemoryPath,
    memory::{
        Changed, Cue, Etag, Hit, Indexed, MemoryError, MemoryFile, MemoryHealth, MemoryStore, MemoryWrite, Priming,
        Query, Recall, WriteMode, Written,
    },
    trust::{Origin, Trust},
    units::Score,
};

/// Finds lines that contain the question, and keeps what it is given.
#[derive(Debug, Default)]
pub struct FakeMemory {
    files: Mutex<BTreeMap<MemoryPath, (String, Origin)>>,
    priming: Mutex<Priming>,
}

impl FakeMemory {
    /// A memory that primes every turn with the same thing.
    pub fn priming_with(priming: Priming) -> Self {
        Self { priming: Mutex::new(priming), ..Self::default() }
    }

    fn files(&self) -> std::sync::MutexGuard<'_, BTreeMap<MemoryPath, (String, Origin)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl MemoryStore for FakeMemory {
    async fn search(&self, query: &Query) -> Result<Recall, MemoryError> {
        let wanted = query.text.to_lowercase();
        let mut hits = Vec::new();
        for (path, (text, origin)) in self.files().iter() {
            for (at, line) in text.lines().enumerate().filter(|(_, line)| line.to_lowercase().contains(&wanted)) {
                let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                hits.push(Hit {
                    path: path.clone(),
                    line: number,
                    end_line: number,
                    headings: Vec::new(),
                    text: line.to_owned(),
                    score: Score(1.0),
                    parts: BTreeMap::new(),
                    kind: path.root().to_owned(),
                    at: None,
                    origin: origin.clone(),
                    trust: origin.trust().min(Trust::Trusted),
                });
            }
        }
        let hits = hits.into_iter().skip(query.offset).take(query.limit).collect();
        Ok(Recall { hits, degraded: Vec::new() })
    }

    async fn prime(&self, _cue: &Cue) -> Result<Priming, MemoryError> {
        Ok(self.priming.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn read(&self, path: &MemoryPath) -> Result<MemoryFile, MemoryError> {
        match self.files().get(path) {
            Some((text, origin)) => Ok(MemoryFile {
                path: path.clone(),
                text: text.clone(),
                etag: Etag::of(text.as_bytes()),
                origin: origin.clone(),
            }),
            None => Err(MemoryError::NotFound { path: path.to_string(), near: Vec::new() }),
        }
    }

    async fn write(&self, write: MemoryWrite) -> Result<Written, MemoryError> {
        let mut files = self.files();
        let exists = files.contains_key(&write.path);
        let (text, _) = files.entry(write.path.clone()).or_insert_with(|| (String::new(), write.origin.clone()));
        let state = if exists { Etag::of(text.as_bytes()) } else { Etag::absent() };
        if write.expect.is_some_and(|expected| expected != state) {
            return Err(MemoryError::Changed { path: write.path, current: text.clone() });
        }
        match write.mode {
            WriteMode::Overwrite => *text = write.text,
            WriteMode::Append => text.push_str(&write.text),
        }
        let (etag, bytes) = (Etag::of(text.as_bytes()), text.len() as u64);
        Ok(Written { path: write.path, etag, bytes, notes: Vec::new() })
    }

    async fn archive(&self, path: &MemoryPath, _reason: &str) -> Result<(), MemoryError> {
        match self.files().remove(path) {
            Some(_) => Ok(()),
            None => Err(MemoryError::NotFound { path: path.to_string(), near: Vec::new() }),
        }
    }

    async fn refresh(&self, _changed: Changed) -> Result<Indexed, MemoryError> {
        Ok(Indexed::default())
    }

    async fn health(&self) -> MemoryHealth {
        MemoryHealth { chunks: self.files().len() as u64, ..MemoryHealth::default() }
    }
}
