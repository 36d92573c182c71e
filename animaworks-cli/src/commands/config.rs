//! `config get | set | list | validate`.

use animaworks_core::{ErrorKind, config::ConfigFile, t};
use serde_json::{Value, json};

use crate::{
    args::Config,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Config) -> CliResult {
    cx.initialised()?;
    match command {
        Config::Get { key } => get(cx, &key),
        Config::Set { key, value } => set(cx, &key, &value),
        Config::List { section } => list(cx, section.as_deref()),
        Config::Validate => validate(cx),
    }
}

fn get(cx: &Cx, key: &str) -> CliResult {
    let entry = ConfigFile::load(&cx.data)?.value(key)?;
    if cx.json {
        return ui::json(&json!({ "key": entry.key, "value": entry.value, "written": entry.written }));
    }
    ui::line(plain(&entry.value))
}

fn set(cx: &Cx, key: &str, value: &str) -> CliResult {
    let file = ConfigFile::set(&cx.data, key, value)?;
    if cx.json {
        return ui::json(&json!({ "key": key, "file": file }));
    }
    ui::note(t!(cx.locale, "cli.config.written", key = key, file = file.display()));
    Ok(())
}

fn list(cx: &Cx, section: Option<&str>) -> CliResult {
    let mut entries = ConfigFile::load(&cx.data)?.list();
    if let Some(section) = section {
        let inside = format!("{section}.");
        entries.retain(|entry| entry.key == section || entry.key.starts_with(&inside));
    }
    if cx.json {
        let rows: Vec<_> = entries
            .iter()
            .map(|entry| json!({ "key": entry.key, "value": entry.value, "written": entry.written }))
            .collect();
        return ui::json(&rows);
    }
    let default = t!(cx.locale, "cli.config.default");
    let rows = entries
        .iter()
        .map(|entry| {
            let source = if entry.written { "config.json".to_owned() } else { default.clone() };
            vec![entry.key.clone(), plain(&entry.value), source]
        })
        .collect();
    ui::table::print(
        &[t!(cx.locale, "cli.column.key"), t!(cx.locale, "cli.column.value"), t!(cx.locale, "cli.column.source")],
        rows,
    )
}

fn validate(cx: &Cx) -> CliResult {
    let problems = ConfigFile::load(&cx.data)?.problems;
    if cx.json {
        let rows: Vec<_> =
            problems.iter().map(|problem| json!({ "key": problem.key, "problem": problem.text(cx.locale) })).collect();
        ui::json(&rows)?;
    } else {
        for problem in &problems {
            ui::line(format!("{}: {}", problem.key, problem.text(cx.locale)))?;
        }
    }
    if problems.is_empty() {
        ui::note(t!(cx.locale, "cli.config.valid"));
        return Ok(());
    }
    Err(CliError::said(ErrorKind::Corrupt, t!(cx.locale, "cli.config.invalid", count = problems.len())).with_hint(t!(
        cx.locale,
        "cli.config.invalid_hint",
        flag = cx.flag
    )))
}

/// A value as a person would write it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
