//! Keeping the log from filling the disk (memory spec §2.8).

use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};

use crate::{
    fs::{self, FileError},
    home::{AnimaHome, daily_files, text::free_name},
};

/// By what the log is cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RotationMode {
    /// By its whole size.
    #[default]
    Size,
    /// By age.
    Time,
    /// By both.
    Both,
}

/// How far the log may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// By what it is cut.
    pub mode: RotationMode,
    /// The largest size of all days together.
    pub max_total_bytes: u64,
    /// The oldest day, in days.
    pub max_age_days: u32,
    /// A larger day is set aside whole and never read again; 0 switches that off.
    pub max_file_bytes: u64,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            mode: RotationMode::Size,
            max_total_bytes: 1024 * 1024 * 1024,
            max_age_days: 14,
            max_file_bytes: 100 * 1024 * 1024,
        }
    }
}

/// What a rotation did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotated {
    /// Days deleted.
    pub deleted: usize,
    /// Days set aside.
    pub set_aside: usize,
    /// Bytes freed.
    pub bytes: u64,
}

impl AnimaHome {
    /// Cuts the activity log. Today and files without a date for a name are never touched.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; what was done before stays done.
    pub fn rotate_activity(&self, rotation: &Rotation) -> Result<Rotated, FileError> {
        let today = self.today();
        let mut done = Rotated::default();
        let mut days: Vec<(NaiveDate, std::path::PathBuf, u64)> = Vec::new();
        for (date, path) in daily_files(&self.dir().file("activity_log"), "jsonl")? {
            let meta = fs_err::metadata(&path).map_err(|error| FileError::io("read", &path, error))?;
            if !meta.is_file() {
                continue;
            }
            if date != today && rotation.max_file_bytes > 0 && meta.len() > rotation.max_file_bytes {
                fs::move_file(&path, &free_name(&path, "bloated.bak"))?;
                done.set_aside += 1;
                continue;
            }
            days.push((date, path, meta.len()));
        }
        let mut total: u64 = days.iter().map(|(_, _, bytes)| bytes).sum();
        let oldest = today.checked_sub_days(Days::new(u64::from(rotation.max_age_days)));
        for (date, path, bytes) in days {
            let too_old = rotation.mode != RotationMode::Size && oldest.is_some_and(|oldest| date < oldest);
            let too_much = rotation.mode != RotationMode::Time && total > rotation.max_total_bytes;
            if date < today && (too_old || too_much) {
                fs::remove_if_exists(&path)?;
                total -= bytes;
                done.deleted += 1;
                done.bytes += bytes;
            }
        }
        Ok(done)
    }
}
