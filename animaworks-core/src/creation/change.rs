//! Changing an Anima from outside, and putting one away.

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeZone};
use serde_json::{Value, json};

use super::CreateError;
use crate::{
    clock::timestamp,
    config::{ConfigError, Status, usual_credential},
    fs::{self, FileError, Privacy},
    ids::{AnimaName, ModelId},
    layout::{AnimaDir, DataDir},
    organisation::{self, Organisation},
};

/// What a change of model took with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelChange {
    /// Fields of `status.json` that belonged to the model before and were taken out: `execution_mode`, `credential`, …
    pub cleared: Vec<&'static str>,
}

/// An Anima that was put away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Where it is now.
    pub path: PathBuf,
    /// Who reported to it; they are at the top now, until somebody says otherwise.
    pub orphans: Vec<AnimaName>,
}

/// Gives an Anima another model. Mode, login and credential of a model of another provider go with it.
///
/// # Errors
///
/// [`CreateError`]; nothing is changed then.
pub fn set_model(
    data: &DataDir,
    name: &AnimaName,
    model: &ModelId,
    credential: Option<&str>,
) -> Result<ModelChange, CreateError> {
    let anima = existing(data, name)?;
    let mut change = ModelChange::default();
    Status::edit(&anima, |status| {
        let before = status.get("model").and_then(Value::as_str).unwrap_or_default();
        if usual_credential(before) != usual_credential(model.as_str()) {
            for field in ["execution_mode", "mode_s_auth", "credential"] {
                if status.shift_remove(field).is_some_and(|value| !value.is_null()) {
                    change.cleared.push(field);
                }
            }
        }
        status.insert("model".into(), model.as_str().into());
        if let Some(credential) = credential {
            status.insert("credential".into(), credential.into());
        }
    })?;
    Ok(change)
}

/// Gives an Anima another background model; `None` lets the main model do that work too.
///
/// # Errors
///
/// [`CreateError`]; nothing is changed then.
pub fn set_background_model(
    data: &DataDir,
    name: &AnimaName,
    model: Option<&ModelId>,
    credential: Option<&str>,
) -> Result<(), CreateError> {
    let anima = existing(data, name)?;
    Status::edit(&anima, |status| {
        status.shift_remove("background_credential");
        status.shift_remove("background_model");
        if let Some(model) = model {
            status.insert("background_model".into(), model.as_str().into());
            if let Some(credential) = credential {
                status.insert("background_credential".into(), credential.into());
            }
        }
    })?;
    Ok(())
}

/// Lets an Anima work, or not.
///
/// # Errors
///
/// [`CreateError`]; nothing is changed then.
pub fn set_enabled(data: &DataDir, name: &AnimaName, enabled: bool) -> Result<(), CreateError> {
    Status::set(&existing(data, name)?, "enabled", Some(enabled.into()))?;
    Ok(())
}

/// Puts an Anima under another one, or at the top.
///
/// # Errors
///
/// [`CreateError`]; nothing is changed then. Circles are refused.
pub fn set_supervisor(data: &DataDir, name: &AnimaName, supervisor: Option<&AnimaName>) -> Result<(), CreateError> {
    let anima = existing(data, name)?;
    if let Some(supervisor) = supervisor {
        let organisation = Organisation::load(data)?;
        if organisation.member(supervisor).is_none() {
            let near = organisation.near(supervisor.as_str());
            return Err(CreateError::UnknownSupervisor { name: supervisor.to_string(), near });
        }
        if organisation.would_be_circle(name, supervisor) {
            return Err(CreateError::Circle { name: name.to_string(), supervisor: supervisor.to_string() });
        }
    }
    Status::set(&anima, "supervisor", Some(supervisor.map(|name| name.as_str().into()).unwrap_or_default()))?;
    organisation::sync(data)?;
    Ok(())
}

/// Puts an Anima away: its directory moves to `archive/animas/` with the reason beside it, and can come back. It must
/// not be running.
///
/// # Errors
///
/// [`CreateError`]; it is then still there.
pub fn delete<Z: TimeZone>(
    data: &DataDir,
    name: &AnimaName,
    reason: &str,
    at: &DateTime<Z>,
) -> Result<Deleted, CreateError>
where
    Z::Offset: std::fmt::Display,
{
    let anima = existing(data, name)?;
    let orphans = Organisation::load(data)?.subordinates(name).into_iter().cloned().collect();
    let stamp = format!("{name}-{}", at.format("%Y%m%d-%H%M%S"));
    let place = data.archive().join("animas").join(stamp);
    let note = json!({"name": name, "reason": reason, "archived_at": timestamp(at), "from": format!("animas/{name}")});
    fs::move_file(anima.root(), &place)?;
    fs::write_json(&place.with_extension("json"), &note, Privacy::Normal)?;
    organisation::sync(data)?;
    Ok(Deleted { path: place, orphans })
}

/// Brings an Anima back that was put away.
///
/// # Errors
///
/// [`CreateError::Exists`] when its name is taken by now; [`CreateError::File`].
pub fn restore(data: &DataDir, archived: &Path) -> Result<AnimaName, CreateError> {
    let note = archived.with_extension("json");
    let said: Value = fs::read_json(&note)?;
    let name = AnimaName::new(said.get("name").and_then(Value::as_str).unwrap_or_default())?;
    let anima = data.anima(&name);
    if fs_err::symlink_metadata(anima.root()).is_ok() {
        return Err(CreateError::Exists(name.to_string()));
    }
    fs::move_file(archived, anima.root())?;
    fs::remove_if_exists(&note)?;
    organisation::sync(data)?;
    Ok(name)
}

fn existing(data: &DataDir, name: &AnimaName) -> Result<AnimaDir, CreateError> {
    let anima = data.anima(name);
    if anima.root().is_dir() {
        return Ok(anima);
    }
    let names: Vec<AnimaName> = organisation::names(data).map_err(|error: FileError| CreateError::File(error))?;
    let near = crate::gate::near(name.as_str(), names.iter().map(AnimaName::as_str), 3);
    Err(CreateError::Config(ConfigError::UnknownAnima { name: name.to_string(), near }))
}

#[cfg(test)]
mod tests;
