//! How often memories were found and read. It cannot be made again from the files, so it has a file of its own.

use std::{collections::BTreeMap, path::PathBuf};

use animaworks_core::fs::{self, FileError};
use serde::{Deserialize, Serialize};

/// How a memory was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// It came up in a search or came to mind.
    Retrieved,
    /// It was read.
    Used,
}

/// How often a file was used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Times it came up.
    pub retrieved: u64,
    /// Times it was read.
    pub used: u64,
    /// The last time, as written.
    pub last: String,
}

/// `state/memory_usage.jsonl`: a line for every use.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

/// One line; other fields are kept by whoever wrote them.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    ts: String,
    #[serde(rename = "use")]
    how: Use,
    paths: Vec<String>,
}

impl Ledger {
    /// The ledger in a file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Notes a use of some files.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn record(&self, how: Use, paths: &[String], stamp: &str) -> Result<(), FileError> {
        let mut paths = paths.to_vec();
        paths.sort();
        paths.dedup();
        let line = Line { ts: stamp.to_owned(), how, paths };
        let line = serde_json::to_string(&line)
            .map_err(|error| FileError::io("encode", &self.path, std::io::Error::other(error)))?;
        fs::append_line(&self.path, &line)
    }

    /// How often each file was used.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn counts(&self) -> Result<BTreeMap<String, Usage>, FileError> {
        let mut counts: BTreeMap<String, Usage> = BTreeMap::new();
        for line in fs::read_lines(&self.path)?.0 {
            let Ok(line) = serde_json::from_value::<Line>(line.value) else { continue };
            for path in line.paths {
                let usage = counts.entry(path).or_default();
                match line.how {
                    Use::Retrieved => usage.retrieved += 1,
                    Use::Used => usage.used += 1,
                }
                usage.last.clone_from(&line.ts);
            }
        }
        Ok(counts)
    }
}
