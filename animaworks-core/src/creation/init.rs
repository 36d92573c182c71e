//! Making a data directory, and keeping its shipped texts up to date (server-cli-ui §8.1).

use std::{collections::BTreeMap, path::Path};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::Shipped;
use crate::{
    fs::{self, FileError, Lock, Privacy},
    layout::DataDir,
};

/// The groups of shipped texts that live in the data directory.
const GROUPS: &[&str] = &["prompts", "company", "common_skills", "common_knowledge"];
/// The boards everybody begins with.
const BOARDS: &[&str] = &["general", "ops"];

/// What [`init`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitReport {
    /// Whether there was an organisation already.
    pub existed: bool,
    /// What became of the shipped texts.
    pub texts: Synced,
}

/// What became of the shipped texts, by path below the data directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// Were not there yet.
    pub added: Vec<String>,
    /// Nobody had changed them, so they are now as the program ships them.
    pub updated: Vec<String>,
    /// Somebody changed or removed them; they were left alone.
    pub kept: Vec<String>,
    /// Somebody had changed them; that version is in `archive/templates/` now.
    pub replaced: Vec<String>,
}

/// Whether a data directory is finished: `config.json` is written last.
pub fn is_initialised(data: &DataDir) -> bool {
    data.config().is_file()
}

/// Makes a data directory, or finishes one that was begun. What is there already stays as it is: with `force` the
/// shipped texts are put back, and what somebody made of them goes to the archive.
///
/// # Errors
///
/// [`FileError`]; running it again finishes the work.
pub fn init(data: &DataDir, shipped: &Shipped, force: bool) -> Result<InitReport, FileError> {
    let existed = is_initialised(data);
    fs::create_private_dir(data.root())?;
    let _lock = Lock::wait(&data.run().join("init.lock"))?;
    for directory in [
        data.animas(),
        data.users(),
        data.shared().join("channels"),
        data.shared().join("dm_logs"),
        data.shared_common_knowledge(),
        data.common_knowledge(),
        data.common_skills(),
        data.prompts(),
        data.root().join("company"),
        data.root().join("tmp").join("attachments"),
        data.root().join("logs"),
        data.run(),
        data.cache(),
        data.weights(),
        data.archive(),
    ] {
        fs::create_dir(&directory)?;
    }
    fs::create_private_dir(&data.shared().join("inbox"))?;
    let texts = sync_templates(data, shipped, force)?;
    if let Some(text) = shipped.find("config_defaults/models.json")? {
        write_new(&data.models(), text.as_bytes(), Privacy::Normal)?;
    }
    if let Some(text) = shipped.find(".ragignore")? {
        write_new(&data.root().join(".ragignore"), text.as_bytes(), Privacy::Normal)?;
    }
    for board in BOARDS {
        write_new(&data.shared().join("channels").join(format!("{board}.jsonl")), b"", Privacy::Normal)?;
    }
    if !existed {
        let config = json!({
            "version": 1,
            "setup_complete": false,
            "locale": shipped.locale.as_str(),
            "system": {"gateway": {"host": "127.0.0.1", "port": 18500}},
            "credentials": {},
            "anima_defaults": {},
            "animas": {},
        });
        fs::write_json(&data.config(), &config, Privacy::Secret)?;
    }
    Ok(InitReport { existed, texts })
}

/// Brings new and corrected shipped texts into the data directory. A text that somebody changed or removed is left
/// alone and named, unless `force` asks for ours.
///
/// # Errors
///
/// [`FileError`] when a file cannot be read or written.
pub fn sync_templates(data: &DataDir, shipped: &Shipped, force: bool) -> Result<Synced, FileError> {
    let manifest_path = data.root().join(".templates.json");
    let mut manifest: BTreeMap<String, String> = match fs::read_json(&manifest_path) {
        Ok(manifest) => manifest,
        Err(error) if error.is_not_found() => BTreeMap::new(),
        // it only remembers what nobody changed: without it everything counts as changed
        Err(error @ FileError::Syntax { .. }) => {
            tracing::warn!(%error, "the list of shipped texts cannot be read and is made anew");
            BTreeMap::new()
        }
        Err(error) => return Err(error),
    };
    let mut synced = Synced::default();
    for group in GROUPS {
        for (name, text) in shipped.list(group)? {
            let path = format!("{group}/{name}");
            let place = data.root().join(&path);
            let ours = hash(text.as_bytes());
            let remembered = manifest.get(&path);
            let there = match fs_err::read(&place) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(FileError::io("read", &place, error)),
            };
            let theirs = there.as_deref().map(hash);
            let list = match &theirs {
                Some(theirs) if *theirs == ours => {
                    manifest.insert(path, ours);
                    continue;
                }
                None if remembered.is_none() || force => &mut synced.added,
                Some(theirs) if remembered == Some(theirs) => &mut synced.updated,
                Some(theirs) if force => {
                    let aside = format!("{path}.{}", theirs.chars().take(12).collect::<String>());
                    let aside = data.archive().join("templates").join(aside);
                    if !aside.exists() {
                        fs::write_atomic(&aside, &there.unwrap_or_default(), Privacy::Normal)?;
                    }
                    &mut synced.replaced
                }
                _ => {
                    synced.kept.push(path);
                    continue;
                }
            };
            fs::write_atomic(&place, text.as_bytes(), Privacy::Normal)?;
            list.push(path.clone());
            manifest.insert(path, ours);
        }
    }
    fs::write_json(&manifest_path, &manifest, Privacy::Normal)?;
    Ok(synced)
}

fn write_new(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), FileError> {
    if path.exists() { Ok(()) } else { fs::write_atomic(path, bytes, privacy) }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
