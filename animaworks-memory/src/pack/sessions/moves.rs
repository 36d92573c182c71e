//! The three things that can be done with a transcript: archive it, bring it back, pin it. Its contents stay as they are.

use std::{collections::BTreeSet, io, path::Path};

use animaworks_core::{
    ResultExt,
    fs::{self, FileError, Lock, Privacy},
};
use serde::{Deserialize, Serialize};

use super::{SessionError, SessionKey, Sessions};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Pins {
    pinned: BTreeSet<String>,
}

impl Sessions {
    /// Moves a transcript to the archive.
    ///
    /// # Errors
    ///
    /// [`SessionError::Live`] when somebody works in it; [`SessionError`] otherwise. It is then where it was.
    pub fn archive(&self, key: &SessionKey) -> Result<(), SessionError> {
        let from = Self::locate(&self.projects, key)?;
        if self.live().contains(&key.id) {
            return Err(SessionError::Live { id: key.id.clone() });
        }
        shift(&from, &self.archive, key)
    }

    /// Moves a transcript back to where it was.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; it is then where it was.
    pub fn restore(&self, key: &SessionKey) -> Result<(), SessionError> {
        let from = Self::locate(&self.archive, key)?;
        shift(&from, &self.projects, key)
    }

    /// Keeps a session at the top of the list, or no longer.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; nothing has changed then.
    pub fn pin(&self, key: &SessionKey, pinned: bool) -> Result<(), SessionError> {
        Self::locate(&self.projects, key)?;
        let _lock = Lock::wait(&self.pins.with_extension("lock"))?;
        let mut pins = self.pins();
        let changed = if pinned { pins.insert(key.id.clone()) } else { pins.remove(&key.id) };
        if changed {
            fs::write_json(&self.pins, &Pins { pinned: pins }, Privacy::Normal)?;
        }
        Ok(())
    }

    /// The ids that are pinned.
    pub(super) fn pins(&self) -> BTreeSet<String> {
        if !self.pins.is_file() {
            return BTreeSet::new();
        }
        fs::read_json::<Pins>(&self.pins).log_err("read the pins").unwrap_or_default().pinned
    }
}

fn shift(from: &Path, root: &Path, key: &SessionKey) -> Result<(), SessionError> {
    fs::create_dir(root)?;
    let to = fs::Jail::new(root)?.resolve(&format!("{}/{}.jsonl", key.project, key.id))?;
    if to.exists() {
        return Err(SessionError::InTheWay { id: key.id.clone() });
    }
    match fs::move_file(from, &to) {
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::CrossesDevices => copy_over(from, &to)?,
        moved => moved?,
    }
    Ok(())
}

/// Moves to another file system: a whole and durable copy first, then the original goes.
fn copy_over(from: &Path, to: &Path) -> Result<(), FileError> {
    let bytes = fs_err::read(from).map_err(|error| FileError::io("read", from, error))?;
    let data = fs_err::metadata(from).map_err(|error| FileError::io("look at", from, error))?;
    fs::write_atomic(to, &bytes, Privacy::Normal)?;
    // the time of the last word is what the list is sorted by
    let kept =
        data.modified().and_then(|time| fs_err::OpenOptions::new().write(true).open(to)?.file().set_modified(time));
    kept.map_err(|error| FileError::io("keep the time of", to, error))?;
    fs::remove_if_exists(from)?;
    Ok(())
}
