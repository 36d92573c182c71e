//! Making an Anima: from a character sheet, from a template, or from nothing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    CreateError, Shipped,
    bootstrap::is_defined,
    sheet::{Named, Sheet},
};
use crate::{
    config::{AnimaFields, Problem, Shaped},
    fs::{self, FileError, Lock, Privacy},
    i18n::fill,
    ids::{AnimaName, ModelId},
    layout::DataDir,
    organisation::{self, Organisation},
};

/// The role of an Anima for which nobody names one.
const DEFAULT_ROLE: &str = "general";
/// The template that all others build on.
const BLANK: &str = "_blank";

/// What an Anima is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The text of a character sheet.
    Sheet(String),
    /// A shipped template, such as `leader`.
    Template(String),
    /// Nothing; it asks the first person who it should be.
    Blank,
}

/// An Anima to be made. What is named here wins over the sheet, the sheet over the role.
#[derive(Debug, Clone)]
pub struct NewAnima {
    /// From what.
    pub origin: Origin,
    /// Its name; a sheet may say it too.
    pub name: Option<String>,
    /// Its role; `general` when nobody says one.
    pub role: Option<String>,
    /// Who it reports to.
    pub supervisor: Option<String>,
    /// The Anima that hires it, which is then its supervisor unless somebody says otherwise. What a sheet says about
    /// permissions is not granted then: only people grant.
    pub hired_by: Option<AnimaName>,
    /// Its model.
    pub model: Option<ModelId>,
    /// The entry of `credentials` for the model.
    pub credential: Option<String>,
}

impl NewAnima {
    /// An Anima about which only its origin is known.
    pub fn new(origin: Origin) -> Self {
        Self { origin, name: None, role: None, supervisor: None, hired_by: None, model: None, credential: None }
    }
}

/// An Anima that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its name.
    pub name: AnimaName,
    /// Its role.
    pub role: String,
    /// Who it reports to.
    pub supervisor: Option<AnimaName>,
    /// Its model, when somebody decided about it.
    pub model: Option<String>,
    /// Its directory.
    pub path: PathBuf,
    /// Whether its first run is still to come.
    pub needs_bootstrap: bool,
    /// Whether the sheet asked for permissions that were not granted.
    pub permissions_withheld: bool,
}

/// Makes an Anima: whole or not at all.
///
/// # Errors
///
/// [`CreateError`]; nothing is left behind then.
pub fn create(data: &DataDir, shipped: &Shipped, new: &NewAnima) -> Result<Created, CreateError> {
    if !super::is_initialised(data) {
        return Err(CreateError::NotInitialised(data.root().to_owned()));
    }
    // two at once must not take the same name
    let _lock = Lock::wait(&data.run().join("create.lock"))?;
    let sheet = match &new.origin {
        Origin::Sheet(text) => Some(Sheet::parse(text)?),
        Origin::Template(_) | Origin::Blank => None,
    };
    let sheet = sheet.as_ref();
    let name = name(new, sheet)?;
    let home = data.anima(&name);
    if fs_err::symlink_metadata(home.root()).is_ok() {
        return Err(CreateError::Exists(name.to_string()));
    }
    let supervisor = supervisor(data, new, sheet)?;
    let files = Files { data, shipped, name: &name };
    let mut parts = files.template(BLANK)?;
    if let Origin::Template(template) = &new.origin {
        let own = files.template(template)?;
        if own.is_empty() || template == BLANK {
            let known = shipped.directories("anima_templates")?.into_iter().filter(|name| name != BLANK).collect();
            return Err(CreateError::UnknownTemplate { template: template.clone(), known });
        }
        parts.extend(own);
    }
    let mut status = template_status(&mut parts);
    let of_template = status.get("role").and_then(Value::as_str).map(str::to_owned);
    let named_role = new.role.clone().or_else(|| sheet.and_then(|sheet| sheet.role.clone())).or(of_template);
    let role = named_role.clone().unwrap_or_else(|| DEFAULT_ROLE.to_owned());
    files.role(&role, named_role.is_some(), &mut parts)?;
    let mut permissions_withheld = false;
    if let (Some(sheet), Origin::Sheet(text)) = (sheet, &new.origin) {
        permissions_withheld = files.sheet(sheet, text, new.hired_by.is_none(), &mut parts);
    }
    let undefined = |file: &str| parts.get(file).is_none_or(|text| !is_defined(text));
    let needs_bootstrap = sheet.is_some() || undefined("identity.md") || undefined("injection.md");
    if needs_bootstrap {
        let text = shipped.find("bootstrap.md")?.unwrap_or_default();
        parts.insert("bootstrap.md".into(), files.filled(&text));
    }
    fill_status(&mut status, &role, supervisor.as_ref(), new, sheet, shipped)?;
    let model = status.get("model").and_then(Value::as_str).map(str::to_owned);
    files.write(&parts, &status)?;
    organisation::sync(data)?;
    Ok(Created { path: home.root().to_owned(), name, role, supervisor, model, needs_bootstrap, permissions_withheld })
}

fn name(new: &NewAnima, sheet: Option<&Sheet>) -> Result<AnimaName, CreateError> {
    if let Some(name) = &new.name {
        return Ok(AnimaName::new(name)?);
    }
    if let Origin::Template(template) = &new.origin {
        // without another name it is called what its template is called
        return AnimaName::new(template.as_str()).or(Err(CreateError::NoName));
    }
    let sheet = sheet.ok_or(CreateError::NoName)?;
    match (&sheet.name, &sheet.title) {
        (Some(name), _) => Ok(AnimaName::new(name)?),
        (None, Some(title)) => AnimaName::new(title.to_lowercase()).or(Err(CreateError::NoName)),
        (None, None) => Err(CreateError::NoName),
    }
}

/// Who it reports to: whoever is named, then the sheet, then whoever hires it.
fn supervisor(data: &DataDir, new: &NewAnima, sheet: Option<&Sheet>) -> Result<Option<AnimaName>, CreateError> {
    let wanted = match (&new.supervisor, sheet.map(|sheet| &sheet.supervisor)) {
        (Some(name), _) | (None, Some(Named::Is(name))) => name.clone(),
        (None, Some(Named::Nobody)) => return Ok(None),
        (None, Some(Named::Unsaid) | None) => match &new.hired_by {
            Some(name) => name.to_string(),
            None => return Ok(None),
        },
    };
    let organisation = Organisation::load(data)?;
    match organisation.names().find(|name| name.as_str() == wanted) {
        Some(name) => Ok(Some(name.clone())),
        None => Err(CreateError::UnknownSupervisor { near: organisation.near(&wanted), name: wanted }),
    }
}

/// The `status.json` of a template is where its status begins.
fn template_status(parts: &mut BTreeMap<String, String>) -> Map<String, Value> {
    match parts.remove("status.json").map(|text| serde_json::from_str(&text)) {
        Some(Ok(Value::Object(status))) => status,
        _ => Map::new(),
    }
}

fn fill_status(
    status: &mut Map<String, Value>,
    role: &str,
    supervisor: Option<&AnimaName>,
    new: &NewAnima,
    sheet: Option<&Sheet>,
    shipped: &Shipped,
) -> Result<(), CreateError> {
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            status.insert(key.to_owned(), value);
        }
    };
    set("enabled", Some(true.into()));
    set("role", Some(role.into()));
    set("supervisor", Some(supervisor.map(|name| Value::from(name.as_str())).unwrap_or_default()));
    let of_sheet = |key: &str, value: Option<&String>| match value {
        None => Ok(None),
        Some(value) => checked(key, value).map(Some),
    };
    let mut decided = Vec::new();
    if let Some(sheet) = sheet {
        decided.push(("speciality", sheet.speciality.clone().map(Value::from)));
        decided.push(("model", of_sheet("model", sheet.model.as_ref())?));
        decided.push(("execution_mode", of_sheet("execution_mode", sheet.execution_mode.as_ref())?));
        decided.push(("credential", sheet.credential.clone().map(Value::from)));
    }
    decided.push(("model", new.model.as_ref().map(|model| model.as_str().into())));
    decided.push(("credential", new.credential.clone().map(Value::from)));
    // a mode that the sheet names for its model says nothing about another model
    if new.model.is_some() {
        decided.retain(|(key, _)| *key != "execution_mode");
    }
    for (key, value) in decided {
        set(key, value);
    }
    let defaults = shipped.find(&format!("roles/{role}/defaults.json"))?.unwrap_or_default();
    if let Ok(Value::Object(defaults)) = serde_json::from_str(&defaults) {
        let own_model = status.contains_key("model");
        for (key, value) in defaults {
            // the background model of a role goes with its model
            if !(own_model && key == "background_model") {
                status.entry(key).or_insert(value);
            }
        }
    }
    Ok(())
}

/// A value of a sheet, if it fits what `status.json` may hold.
fn checked(key: &str, value: &str) -> Result<Value, CreateError> {
    let mut problems: Vec<Problem> = Vec::new();
    let shape = AnimaFields::shape();
    let cleaned = shape.child(key).and_then(|shape| shape.clean(&value.into(), key, &mut problems));
    match problems.into_iter().next() {
        Some(problem) => Err(CreateError::Unfit(problem)),
        None => Ok(cleaned.unwrap_or_default()),
    }
}

/// The files of an Anima in the making.
struct Files<'a> {
    data: &'a DataDir,
    shipped: &'a Shipped,
    name: &'a AnimaName,
}

impl Files<'_> {
    fn filled(&self, text: &str) -> String {
        let home = self.data.root().display().to_string();
        fill(text, &[("name", self.name.as_str()), ("animaworks_home", &home)])
    }

    fn template(&self, template: &str) -> Result<BTreeMap<String, String>, FileError> {
        if template.is_empty() || template.contains(['/', '\\', '.']) {
            return Ok(BTreeMap::new());
        }
        let files = self.shipped.list(&format!("anima_templates/{template}"))?;
        Ok(files.into_iter().map(|(path, text)| (path, self.filled(&text))).collect())
    }

    /// What a role brings: its speciality, and its permissions when somebody named it.
    fn role(&self, role: &str, named: bool, parts: &mut BTreeMap<String, String>) -> Result<(), CreateError> {
        let known = self.shipped.directories("roles")?;
        if !known.iter().any(|known| known == role) {
            return Err(CreateError::UnknownRole { role: role.to_owned(), known });
        }
        if let Some(text) = self.shipped.find(&format!("roles/{role}/specialty_prompt.md"))? {
            parts.insert("specialty_prompt.md".into(), self.filled(&text));
        }
        if let Some(text) = self.shipped.find(&format!("roles/{role}/permissions.md"))?.filter(|_| named) {
            parts.insert("permissions.md".into(), self.filled(&text));
        }
        Ok(())
    }

    /// What a sheet brings; whether it asked for permissions that were not granted.
    fn sheet(&self, sheet: &Sheet, text: &str, grant: bool, parts: &mut BTreeMap<String, String>) -> bool {
        let title = |body: &str| format!("# {}\n\n{body}\n", self.name);
        parts.insert("identity.md".into(), title(&sheet.identity));
        parts.insert("injection.md".into(), title(&sheet.injection));
        for (file, body) in [("heartbeat.md", &sheet.heartbeat), ("cron.md", &sheet.cron)] {
            if let Some(body) = body {
                parts.insert(file.into(), title(body));
            }
        }
        parts.insert("character_sheet.md".into(), text.trim_start_matches('\u{feff}').to_owned());
        if let (Some(body), true) = (&sheet.permissions, grant) {
            parts.insert("permissions.md".into(), title(body));
        }
        sheet.permissions.is_some() && !grant
    }

    /// Writes everything beside its place and moves it there.
    fn write(&self, parts: &BTreeMap<String, String>, status: &Map<String, Value>) -> Result<(), FileError> {
        let animas = self.data.animas();
        fs::create_dir(&animas)?;
        let temp = tempfile::Builder::new().prefix(&format!(".tmp-{}-", self.name)).tempdir_in(&animas);
        let temp = temp.map_err(|error| FileError::io("create directory", &animas, error))?;
        let root = temp.path();
        for directory in DIRECTORIES {
            fs::create_dir(&root.join(directory))?;
        }
        let write = |path: &Path, text: &str| fs::write_atomic(path, text.as_bytes(), Privacy::Normal);
        write(&root.join("state/current_state.md"), crate::home::state::IDLE)?;
        write(&root.join("state/pending.md"), "")?;
        for (path, text) in parts {
            write(&root.join(path), text)?;
        }
        fs::write_json(&root.join("status.json"), status, Privacy::Secret)?;
        let root = temp.keep();
        let moved = fs::move_file(&root, self.data.anima(self.name).root());
        if moved.is_err() {
            fs_err::remove_dir_all(&root).map_err(|error| FileError::io("remove", &root, error))?;
        }
        moved
    }
}

/// The directories of every Anima (exec spec §10.3).
const DIRECTORIES: &[&str] = &[
    "activity_log",
    "archive",
    "assets",
    "episodes",
    "knowledge",
    "procedures",
    "run",
    "shortterm/chat",
    "shortterm/heartbeat/archive",
    "shortterm/chat/archive",
    "skills",
    "state/background_notifications",
    "state/pending",
    "state/task_results",
    "transcripts",
];

#[cfg(test)]
mod tests;
