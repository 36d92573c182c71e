//! The hooks of Codex: entries in one list that all its extensions share, so ours come and go and the others stay.

use std::path::{Path, PathBuf};

use animaworks_core::{
    config::Env,
    fs::{self, Privacy},
};
use serde_json::{Map, Value, json};

use super::install::NAME;
use crate::error::CliResult;

/// What the list of hooks is called, in the file and in our template.
const HOOKS: &str = "hooks";
/// What stands in the template for the directory of the plugin.
const ROOT: &str = "${CLAUDE_PLUGIN_ROOT}";

/// The directory of Codex.
pub(super) fn home(env: &Env) -> PathBuf {
    env.var("CODEX_HOME").map_or_else(|| env.home().join(".codex"), |home| env.absolute(Path::new(home)))
}

/// Where Codex keeps its hooks.
pub(super) fn list(env: &Env) -> PathBuf {
    home(env).join("hooks.json")
}

/// Puts our hooks into the list, in the place of older ones of ours.
pub(super) fn register(file: &Path, template: &str, root: &Path) -> CliResult {
    let mut all = read(file)?;
    remove_ours(&mut all);
    let ours: Value = serde_json::from_str(template).unwrap_or_default();
    let root = root.display().to_string();
    if let (Some(ours), Some(list)) = (ours.get(HOOKS).and_then(Value::as_object), events(&mut all)) {
        for (event, entries) in ours {
            let entries = entries.as_array().into_iter().flatten().map(|entry| placed(entry, &root));
            match list.entry(event.clone()).or_insert_with(|| json!([])) {
                Value::Array(there) => there.extend(entries),
                other => *other = entries.collect(),
            }
        }
    }
    Ok(fs::write_json(file, &all, Privacy::Normal)?)
}

/// Takes our hooks out again; a list that had nothing else goes away. Whether there were any.
pub(super) fn withdraw(file: &Path) -> CliResult<bool> {
    if !file.is_file() {
        return Ok(false);
    }
    let mut all = read(file)?;
    if !remove_ours(&mut all) {
        return Ok(false);
    }
    if all.is_empty() {
        fs::remove_if_exists(file)?;
    } else {
        fs::write_json(file, &all, Privacy::Normal)?;
    }
    Ok(true)
}

/// Whether our hooks stand in the list.
pub(super) fn is_registered(file: &Path) -> bool {
    read(file).is_ok_and(|mut all| remove_ours(&mut all))
}

fn read(file: &Path) -> CliResult<Map<String, Value>> {
    if file.is_file() { Ok(fs::read_json(file)?) } else { Ok(Map::new()) }
}

fn events(all: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    all.entry(HOOKS).or_insert_with(|| json!({})).as_object_mut()
}

/// Ours are those that run something of our directory.
fn remove_ours(all: &mut Map<String, Value>) -> bool {
    let mark = format!("/{NAME}/hooks/");
    let Some(list) = all.get_mut(HOOKS).and_then(Value::as_object_mut) else { return false };
    let mut found = false;
    for entries in list.values_mut().filter_map(Value::as_array_mut) {
        entries.retain(|entry| {
            let ours = entry.to_string().contains(&mark);
            found |= ours;
            !ours
        });
    }
    list.retain(|_, entries| entries.as_array().is_none_or(|entries| !entries.is_empty()));
    if found && list.is_empty() {
        all.remove(HOOKS);
    }
    found
}

/// An entry of the template for this place.
fn placed(entry: &Value, root: &str) -> Value {
    match entry {
        Value::String(text) => Value::String(text.replace(ROOT, root)),
        Value::Array(items) => items.iter().map(|item| placed(item, root)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), placed(value, root))).collect())
        }
        other => other.clone(),
    }
}
