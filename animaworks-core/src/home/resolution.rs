//! What the organisation has solved lately (memory spec §21).

use chrono::Duration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AnimaHome, text::lenient};
use crate::{
    fs::{self, FileError, Lock, Privacy},
    layout::DataDir,
};

/// Above this size old lines are dropped.
const MAX_BYTES: u64 = 1024 * 1024;
/// How long a line is kept then.
const KEEP_DAYS: i64 = 30;
/// How far back they are shown.
const SHOW_DAYS: i64 = 7;
/// How many are shown.
const SHOWN: usize = 10;

/// One thing solved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// When.
    #[serde(default, deserialize_with = "lenient")]
    pub ts: String,
    /// What it was.
    #[serde(default, deserialize_with = "lenient")]
    pub issue: String,
    /// Who solved it.
    #[serde(default, deserialize_with = "lenient")]
    pub resolver: String,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn path(data: &DataDir) -> std::path::PathBuf {
    data.shared().join("resolutions.jsonl")
}

impl AnimaHome {
    /// Tells the organisation that this Anima has solved something.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn note_resolution(&self, issue: &str) -> Result<(), FileError> {
        let path = path(self.dir().data());
        let _held = Lock::wait(&self.dir().data().run().join("resolutions.lock"))?;
        let size = fs_err::metadata(&path).map_or(0, |meta| meta.len());
        if size > MAX_BYTES {
            self.trim_resolutions(&path)?;
        }
        let line = Resolution {
            ts: self.stamp_seconds(),
            issue: issue.to_owned(),
            resolver: self.name().to_string(),
            extra: Map::new(),
        };
        fs::append_line(&path, &fs::json_line(&path, &line)?)
    }

    /// What anybody has solved in the last week: the newest of each issue, the last ten, oldest first.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn resolutions(&self) -> Result<Vec<Resolution>, FileError> {
        let since = self.now().fixed_offset() - Duration::days(SHOW_DAYS);
        let mut seen = std::collections::BTreeSet::new();
        let mut found: Vec<Resolution> = Vec::new();
        for line in fs::read_records::<Resolution>(&path(self.dir().data()))?.into_iter().rev() {
            let recent = self.parse_time(&line.ts).is_some_and(|at| at >= since);
            if recent && !line.issue.is_empty() && seen.insert(line.issue.clone()) {
                found.push(line);
            }
            if found.len() == SHOWN {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    fn trim_resolutions(&self, path: &std::path::Path) -> Result<(), FileError> {
        let since = self.now().fixed_offset() - Duration::days(KEEP_DAYS);
        let mut kept = String::new();
        for line in fs::read_records::<Resolution>(path)? {
            if self.parse_time(&line.ts).is_none_or(|at| at >= since) {
                kept.push_str(&fs::json_line(path, &line)?);
                kept.push('\n');
            }
        }
        fs::write_atomic(path, kept.as_bytes(), Privacy::Normal)
    }
}

impl Resolution {
    /// One line for a prompt: `- [2026-03-31T11:00] sakura: 版番号の取り違え`.
    pub fn line(&self) -> String {
        format!("- [{}] {}: {}", super::text::head(&self.ts, 16), self.resolver, super::text::one_line(&self.issue))
    }
}
