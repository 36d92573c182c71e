//! The owner's table in front of the gate.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use animaworks_core::{
    AnimaDir, Locale, ToolName, ToolSpec,
    gate::{Ask, Decision, Permissions},
    seams::Enforced,
    tool::Effect,
};
use serde_json::Value;

use super::{Descendants, EffectiveTable, FileAccess, Reason, Refusal, Want, parse};
use crate::{
    external::GATED,
    shell::{Walls, judge},
};

/// An Anima's permissions as its owner wrote them. A change of the file counts from the next call on.
#[derive(Debug)]
pub struct OwnerPermissions {
    dir: AnimaDir,
    home: Option<PathBuf>,
    org: Arc<dyn Descendants>,
    held: Enforced,
    loaded: Mutex<Option<(Stamp, Arc<FileAccess>)>>,
}

/// When the files last changed, and how long they are.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl OwnerPermissions {
    /// The permissions of an Anima. `home` is what `~` means in its file; `held` is how far the
    /// kernel holds a command ([`Sandbox::strength`](animaworks_core::seams::Sandbox::strength)).
    pub fn new(dir: AnimaDir, home: Option<PathBuf>, org: Arc<dyn Descendants>, held: Enforced) -> Self {
        Self { dir, home, org, held, loaded: Mutex::new(None) }
    }

    /// The rule over files that is in force now. Blocks for a moment.
    pub fn files(&self) -> Arc<FileAccess> {
        let stamp = [parse::MARKDOWN, parse::JSON].map(|name| stamp(&self.dir.file(name)));
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        match &*loaded {
            Some((at, access)) if *at == stamp => access.clone(),
            _ => {
                let table = EffectiveTable::load(&self.dir, self.home.as_deref());
                let access = Arc::new(FileAccess::new(self.dir.clone(), Arc::new(table), self.org.clone()));
                *loaded = Some((stamp, access.clone()));
                access
            }
        }
    }

    /// The table that is in force now. Blocks for a moment.
    pub fn table(&self) -> EffectiveTable {
        self.files().table().clone()
    }

    /// How far the kernel holds a command.
    pub fn held(&self) -> Enforced {
        self.held
    }
}

impl Permissions for OwnerPermissions {
    fn offers(&self, tool: &ToolSpec) -> bool {
        // a service that is not granted would only cost the prompt its description
        tool.effect != Effect::External
            || check_call(&self.files(), self.held, &tool.name, Some(tool.effect), &Value::Null).is_ok()
    }

    fn decide(&self, ask: &Ask<'_>) -> Decision {
        match check_call(&self.files(), self.held, &ask.tool.name, Some(ask.tool.effect), ask.args) {
            Ok(()) => Decision::Allow,
            Err(refusal) => deny(&refusal, ask.locale),
        }
    }
}

fn deny(refusal: &Refusal, locale: Locale) -> Decision {
    Decision::Deny { reason: refusal.say(locale), instead: refusal.instead(locale) }
}

/// Decides about one call by the table alone; what a trigger may do is the gate's.
///
/// `effect` is `None` for a tool that is not known here: it is then judged as an outside service. Blocks.
///
/// # Errors
///
/// [`Refusal`] says which rule.
pub fn check_call(
    files: &FileAccess,
    held: Enforced,
    tool: &ToolName,
    effect: Option<Effect>,
    args: &Value,
) -> Result<(), Refusal> {
    let table = files.table();
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let broken = || match &table.broken {
        Some(error) => Err(Refusal::new(Reason::Broken, error.to_string())),
        None => Ok(()),
    };
    match canonical(tool.as_str()) {
        "Read" | "Grep" | "Glob" | "list_directory" => {
            broken()?;
            files.check(text("path").unwrap_or("."), Want::Read).map(drop)
        }
        "Write" | "Edit" => {
            broken()?;
            files.check(text("path").unwrap_or_default(), Want::Write).map(drop)
        }
        "Bash" => {
            broken()?;
            judge(text("command").unwrap_or_default(), &Walls::new(files, held)).map(drop)
        }
        "use_tool" => {
            let service = text("tool_name").unwrap_or_default();
            let operation = format!("{service}_{}", text("action").unwrap_or_default());
            broken().and_then(|()| external(table, service, &operation))
        }
        name => match (service(name), effect) {
            (Some(service), _) => broken().and_then(|()| external(table, service, name)),
            (None, Some(Effect::Reads | Effect::Remembers | Effect::Communicates)) => Ok(()),
            // what the organisation lets a supervisor do is decided by who is offered the tool
            (None, Some(Effect::Acts)) if ORGANISATION.contains(&name) => broken(),
            (None, _) => broken().and_then(|()| external(table, name, name)),
        },
    }
}

fn external(table: &EffectiveTable, service: &str, operation: &str) -> Result<(), Refusal> {
    if GATED.contains(&operation) && !table.external.iter().any(|rule| rule.name == operation) {
        return Err(Refusal::new(Reason::NotGranted, operation));
    }
    match table.external(service, operation) {
        Ok(_) => Ok(()),
        Err(Some(source)) => Err(Refusal::new(Reason::Denied, format!("{operation} ({source})"))),
        Err(None) => Err(Refusal::new(Reason::NotGranted, operation)),
    }
}

/// The name of a file or shell tool, whichever of its names was used.
fn canonical(name: &str) -> &str {
    match name {
        "read_file" => "Read",
        "write_file" => "Write",
        "edit_file" => "Edit",
        "execute_command" => "Bash",
        "search_code" => "Grep",
        other => other,
    }
}

/// Tools that act inside the organisation.
const ORGANISATION: &[&str] = &[
    "create_anima",
    "create_skill",
    "disable_subordinate",
    "enable_subordinate",
    "set_subordinate_model",
    "set_subordinate_background_model",
    "restart_subordinate",
];

/// The outside services that `permissions.md` speaks of.
const SERVICES: &[&str] = &[
    "web_search",
    "x_search",
    "slack",
    "chatwork",
    "gmail",
    "github",
    "aws_collector",
    "image_gen",
    "transcribe",
    "local_llm",
    "google_calendar",
    "google_tasks",
    "notion",
    "discord",
];

/// The service a tool's name belongs to: itself, or what comes before its operation.
fn service(name: &str) -> Option<&'static str> {
    match name {
        "WebSearch" => return Some("web_search"),
        // who may search may also read what is found
        "WebFetch" | "web_fetch" => return Some("web_search"),
        _ => {}
    }
    SERVICES
        .iter()
        .copied()
        .find(|service| name.strip_prefix(service).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '-'])))
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs_err::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests;
