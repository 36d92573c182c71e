//! `credential add NAME`: a key goes in unseen and is never shown again.

use animaworks_core::{ErrorKind, config::ConfigFile, t};
use serde_json::{Map, Value, json};

use crate::{
    args::Credential,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Credential) -> CliResult {
    let Credential::Add { name } = command;
    cx.initialised()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(plain) {
        return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.credential.bad_name", name = name))
            .with_hint(t!(cx.locale, "cli.credential.bad_name_hint")));
    }
    let key = ui::prompt::secret(cx.locale, &t!(cx.locale, "cli.credential.ask", name = name))?;
    if key.trim().is_empty() {
        return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.credential.empty")));
    }
    ConfigFile::edit(&cx.data, |config| {
        let credentials = config.entry("credentials").or_insert_with(|| Value::Object(Map::new()));
        if let Some(credentials) = credentials.as_object_mut() {
            let entry = credentials.entry(name.as_str()).or_insert_with(|| Value::Object(Map::new()));
            if let Some(entry) = entry.as_object_mut() {
                entry.entry("type").or_insert_with(|| Value::from("api_key"));
                entry.insert("api_key".to_owned(), Value::from(key.trim()));
            }
        }
    })?;
    if cx.json {
        return ui::json(&json!({ "credential": name, "file": cx.data.config() }));
    }
    ui::note(t!(cx.locale, "cli.credential.saved", name = name, file = cx.data.config().display()));
    Ok(())
}
