//! The layout of the organisation in `config.json`, kept equal to the `status.json` files.

use serde_json::{Map, Value};

use super::{OrgProblem, Organisation};
use crate::{config::ConfigFile, fs::FileError, layout::DataDir};

/// What was brought in line.
#[derive(Debug, Clone, Default)]
pub struct Synced {
    /// Entries of `animas` that were added or changed.
    pub changed: Vec<String>,
    /// Entries that were taken out, because there is no such Anima any more.
    pub removed: Vec<String>,
    /// What is wrong with the organisation; the entries concerned were left alone.
    pub problems: Vec<OrgProblem>,
}

/// Writes supervisor and speciality of every Anima into `config.json`, where they differ. Other keys of an entry
/// stay; so do entries of Animas in a circle or with a broken `status.json`.
///
/// # Errors
///
/// [`FileError`] when a file cannot be read or written; without a `config.json` nothing is done.
pub fn sync(data: &DataDir) -> Result<Synced, FileError> {
    let organisation = Organisation::load(data)?;
    let mut synced = Synced { problems: organisation.problems().to_vec(), ..Synced::default() };
    if !data.config().exists() {
        return Ok(synced);
    }
    let untouched = |name: &str| {
        synced.problems.iter().any(|problem| match problem {
            OrgProblem::Cycle(animas) => animas.iter().any(|anima| anima.as_str() == name),
            OrgProblem::Broken { anima, .. } => anima.as_str() == name,
            OrgProblem::UnknownSupervisor { .. } => false,
        })
    };
    let (changed, removed) = ConfigFile::edit(data, |object| {
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        let entries = object.entry("animas").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(entries) = entries else {
            // somebody's mistake to be reported by validation, not to be written over
            return (changed, removed);
        };
        entries.retain(|name, _| {
            let stays = organisation.names().any(|anima| anima.as_str() == name);
            if !stays {
                removed.push(name.clone());
            }
            stays
        });
        for member in organisation.members().filter(|member| !untouched(member.name.as_str())) {
            let entry = entries.entry(member.name.as_str()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(entry) = entry else { continue };
            let wanted = [("supervisor", &member.says), ("speciality", &member.speciality)];
            let mut differs = entry.is_empty();
            for (key, value) in wanted {
                let value = Value::from(value.clone());
                if entry.get(key).unwrap_or(&Value::Null) != &value || !entry.contains_key(key) {
                    differs = true;
                    entry.insert(key.to_owned(), value);
                }
            }
            if differs {
                changed.push(member.name.to_string());
            }
        }
        (changed, removed)
    })?;
    synced.changed = changed;
    synced.removed = removed;
    Ok(synced)
}
