//! The files of one Anima, with types: the contract every version of the program shares (memory spec §1–§12).
//!
//! [`AnimaHome`] is cheap to clone and blocks; async callers wrap it with
//! [`fs::blocking`]. Each group of files has its own module and adds its methods to the home.
//! Unknown fields, unknown event types and files of other versions are kept as they are.

pub mod activity;
mod bell;
mod claims;
pub mod conversation;
pub mod episode;
pub mod journal;
pub mod post_office;
pub mod resolution;
pub mod shortterm;
mod skills;
pub mod state;
pub mod task_book;
pub mod text;
pub mod transcript;
pub mod usage;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use chrono::{DateTime, FixedOffset, NaiveDate, Offset, TimeZone, Utc};
use chrono_tz::Tz;

use crate::{
    clock::{Clock, parse_timestamp, timestamp},
    fs::{self, FileError},
    i18n::Locale,
    ids::AnimaName,
    layout::AnimaDir,
};

/// Typed access to the directory of one Anima.
///
/// ```
/// use std::sync::Arc;
///
/// use animaworks_core::{AnimaName, DataDir, SystemClock, home::{AnimaHome, activity::Activity}};
///
/// let directory = tempfile::tempdir()?;
/// let data = DataDir::new(directory.path());
/// let home = AnimaHome::open(data.anima(&AnimaName::new("sakura")?), chrono_tz::Asia::Tokyo, Arc::new(SystemClock::new()));
/// home.log(Activity::new(Activity::MESSAGE_RECEIVED).from("tanaka").content("見積書は送った？"))?;
/// assert_eq!(home.recent(1, 10)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct AnimaHome {
    dir: AnimaDir,
    zone: Tz,
    clock: Arc<dyn Clock>,
    locale: Locale,
}

impl AnimaHome {
    /// Opens the home; nothing is read or made yet.
    pub fn open(dir: AnimaDir, zone: Tz, clock: Arc<dyn Clock>) -> Self {
        Self { dir, zone, clock, locale: Locale::default() }
    }

    /// The same home, which writes its own words (headings, markers) in `locale`.
    #[must_use]
    pub fn with_locale(mut self, locale: Locale) -> Self {
        self.locale = locale;
        self
    }

    /// Where the files are.
    pub fn dir(&self) -> &AnimaDir {
        &self.dir
    }

    /// Whose home it is.
    pub fn name(&self) -> &AnimaName {
        self.dir.name()
    }

    /// The zone of the organisation: what a day is, and what a time without an offset means.
    pub fn zone(&self) -> Tz {
        self.zone
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The language of headings and markers.
    pub fn locale(&self) -> Locale {
        self.locale
    }

    /// Now, in the zone of the organisation.
    pub fn now(&self) -> DateTime<Tz> {
        self.clock.now().with_timezone(&self.zone)
    }

    /// The local date.
    pub fn today(&self) -> NaiveDate {
        self.now().date_naive()
    }

    /// Now as the files have it, with microseconds.
    pub fn stamp(&self) -> String {
        timestamp(&self.now())
    }

    /// Now as the files have it, to the second.
    pub fn stamp_seconds(&self) -> String {
        self.now().format("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// Now as file names have it: `YYYYMMDD_HHMMSS`.
    pub fn stamp_name(&self) -> String {
        self.now().format("%Y%m%d_%H%M%S").to_string()
    }

    /// Reads a time as any version wrote it; one without an offset is meant in this zone.
    pub fn parse_time(&self, text: &str) -> Option<DateTime<FixedOffset>> {
        parse_in(self.zone, text)
    }

    /// Reads a JSON file; one that cannot be understood is renamed to `….corrupt.{ts}`, never overwritten.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`]; a missing file is `Ok((None, None))`. The second value is where a broken one went.
    fn read_or_set_aside<T: serde::de::DeserializeOwned>(
        &self,
        path: &Path,
    ) -> Result<(Option<T>, Option<std::path::PathBuf>), FileError> {
        match fs::read_json::<T>(path) {
            Ok(value) => Ok((Some(value), None)),
            Err(error) if error.is_not_found() => Ok((None, None)),
            Err(error @ (FileError::Syntax { .. } | FileError::Value { .. })) => {
                let aside = text::free_name(path, &format!("corrupt.{}", self.stamp_name()));
                tracing::warn!(%error, aside = %aside.display(), "set a broken file aside");
                fs::move_file(path, &aside)?;
                Ok((None, Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Keeps a copy of a file that is about to be replaced and holds bytes that are no text.
    fn keep_if_not_text(&self, path: &Path) -> Result<(), FileError> {
        let bytes = match fs_err::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(FileError::io("read", path, error)),
        };
        if std::str::from_utf8(&bytes).is_ok() {
            return Ok(());
        }
        let copy = text::free_name(path, &format!("bak.{}", self.stamp_name()));
        fs::write_atomic(&copy, &bytes, fs::Privacy::Normal)
    }
}

/// Reads a time; one without an offset is meant in `zone`.
pub fn parse_in(zone: Tz, text: &str) -> Option<DateTime<FixedOffset>> {
    let utc = Utc.fix();
    let read = parse_timestamp(text, utc)?;
    let elsewhere = parse_timestamp(text, FixedOffset::east_opt(3600)?)?;
    if read == elsewhere {
        return Some(read);
    }
    // no offset: the hour that a clock change skips is taken as UTC rather than lost
    Some(zone.from_local_datetime(&read.naive_utc()).earliest().map_or(read, |at| at.fixed_offset()))
}

/// The daily files of a directory, by date; other names are left out.
fn daily_files(directory: &Path, extension: &str) -> Result<BTreeMap<NaiveDate, std::path::PathBuf>, FileError> {
    let mut files = BTreeMap::new();
    for path in list(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let date = name.strip_suffix(extension).and_then(|stem| stem.strip_suffix('.'));
        if let Some(date) = date.filter(|date| date.len() == 10).and_then(|date| date.parse().ok()) {
            files.insert(date, path);
        }
    }
    Ok(files)
}

/// What a directory holds, by name; a missing one holds nothing.
fn list(directory: &Path) -> Result<Vec<std::path::PathBuf>, FileError> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io("list", directory, error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|error| FileError::io("list", directory, error))?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod compat;
#[cfg(test)]
mod tests;
