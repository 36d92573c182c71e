//! Taking a file for handling: a rename into `processing/`, and a note beside it of who has it until when.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{list, text::free_name};
use crate::{
    fs::{self, FileError, Privacy},
    ids::LeaseId,
};

/// The note beside a claimed file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The claim; empty while the file waits for another try.
    #[serde(default)]
    pub(super) lease: String,
    /// Until when it is claimed, or before when it must not be tried again.
    #[serde(default)]
    pub(super) until: DateTime<Utc>,
    /// How often it was claimed.
    #[serde(default)]
    pub(super) attempts: u32,
    /// How often a claim ran out without a word.
    #[serde(default)]
    pub(super) crashes: u32,
}

/// A directory with its `processing/` and the place for what failed.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) waiting: PathBuf,
    failed: &'static str,
}

impl Desk {
    pub(super) fn new(waiting: PathBuf, failed: &'static str) -> Self {
        Self { waiting, failed }
    }

    pub(super) fn processing(&self) -> PathBuf {
        self.waiting.join("processing")
    }

    pub(super) fn failed(&self) -> PathBuf {
        self.waiting.join(self.failed)
    }

    /// The JSON files that wait, by name. One whose name somebody is busy with waits for that one's end.
    pub(super) fn waiting_files(&self) -> Result<Vec<PathBuf>, FileError> {
        let processing = self.processing();
        let mut files = json_files(&self.waiting)?;
        files.retain(|path| !processing.join(file_name(path)).exists());
        Ok(files)
    }

    /// The JSON files that somebody has taken, by name.
    pub(super) fn taken_files(&self) -> Result<Vec<PathBuf>, FileError> {
        json_files(&self.processing())
    }

    fn note_path(&self, name: &str) -> PathBuf {
        self.processing().join(format!("{name}.lease"))
    }

    /// The note of a file; one that cannot be read counts as none.
    pub(super) fn note(&self, name: &str) -> Result<Option<Note>, FileError> {
        match fs::read_json(&self.note_path(name)) {
            Ok(note) => Ok(Some(note)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(FileError::Syntax { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write_note(&self, name: &str, note: &Note) -> Result<(), FileError> {
        fs::write_json(&self.note_path(name), note, Privacy::Normal)
    }

    /// Takes a file. The note is there before the file moves, so that a crash in between loses neither.
    pub(super) fn take(&self, name: &str, note: &Note) -> Result<(), FileError> {
        self.write_note(name, note)?;
        let (from, to) = (self.waiting.join(name), self.processing().join(name));
        if from.exists() { fs::move_file(&from, &to) } else { Ok(()) }
    }

    /// Lets a file wait again, with its note. When another one of its name waits by now, that one takes its place.
    pub(super) fn put_back(&self, name: &str, note: &Note) -> Result<(), FileError> {
        if self.waiting.join(name).exists() {
            return self.retire(name, &self.failed(), Some("replaced by a newer one of the same name"));
        }
        self.write_note(name, note)?;
        fs::move_file(&self.processing().join(name), &self.waiting.join(name))
    }

    /// Moves a file away for good, wherever it is, and forgets its note.
    pub(super) fn retire(&self, name: &str, place: &Path, reason: Option<&str>) -> Result<(), FileError> {
        let target = place.join(name);
        let target = if target.exists() { free_name(&target, "again") } else { target };
        for from in [self.processing().join(name), self.waiting.join(name)] {
            if from.exists() {
                if let Some(reason) = reason {
                    let error = target.with_file_name(format!("{name}.error"));
                    fs::write_atomic(&error, format!("{reason}\n").as_bytes(), Privacy::Normal)?;
                }
                fs::move_file(&from, &target)?;
                break;
            }
        }
        fs::remove_if_exists(&self.note_path(name)).map(drop)
    }

    /// Removes a file that is done, and its note.
    pub(super) fn discard(&self, name: &str) -> Result<(), FileError> {
        fs::remove_if_exists(&self.processing().join(name))?;
        fs::remove_if_exists(&self.note_path(name)).map(drop)
    }

    /// Ends all claims: whoever had them is gone.
    pub(super) fn release_all(&self) -> Result<usize, FileError> {
        let taken = self.taken_files()?;
        for path in &taken {
            let name = file_name(path);
            let note = self.note(&name)?.unwrap_or_default();
            self.write_note(&name, &Note { until: DateTime::UNIX_EPOCH, ..note })?;
        }
        Ok(taken.len())
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn json_files(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut files = list(directory)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json") && path.is_file());
    Ok(files)
}

/// Which file a claim of this process is about.
#[derive(Debug)]
pub(super) struct Leases<T>(Mutex<BTreeMap<LeaseId, (T, String)>>);

impl<T> Default for Leases<T> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<T> Leases<T> {
    pub(super) fn remember(&self, lease: LeaseId, owner: T, file: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(lease, (owner, file));
    }

    pub(super) fn forget(&self, lease: &LeaseId) -> Option<(T, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(lease)
    }
}

/// A moment this long after another.
pub(super) fn later(now: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    chrono::Duration::from_std(span)
        .map_or(DateTime::<Utc>::MAX_UTC, |span| now.checked_add_signed(span).unwrap_or(DateTime::<Utc>::MAX_UTC))
}
