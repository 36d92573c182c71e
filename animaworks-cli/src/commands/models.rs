//! `models list | show | info`: which mode and window a model gets, and why.

use animaworks_core::{
    ErrorKind, ExecutionMode, Locale,
    config::{ModeSource, WindowSource, scaled_threshold},
    t,
};
use serde_json::json;

use crate::{
    args::Models,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Models) -> CliResult {
    match command {
        Models::List { mode } => list(cx, mode.as_deref()),
        Models::Show => show(cx),
        Models::Info { model } => info(cx, &model),
        Models::Fetch { model } => fetch(cx, &model).map(drop),
    }
}

/// The name of a mode for people.
pub(super) fn mode_label(mode: ExecutionMode, locale: Locale) -> String {
    let name = match mode {
        ExecutionMode::Sdk => t!(locale, "cli.mode.sdk"),
        ExecutionMode::Codex => t!(locale, "cli.mode.codex"),
        ExecutionMode::Cursor => t!(locale, "cli.mode.cursor"),
        ExecutionMode::Gemini => t!(locale, "cli.mode.gemini"),
        ExecutionMode::Autonomous => t!(locale, "cli.mode.autonomous"),
        ExecutionMode::Basic => t!(locale, "cli.mode.basic"),
    };
    format!("{mode} ({name})")
}

fn list(cx: &Cx, only: Option<&str>) -> CliResult {
    let only = match only {
        Some(letter) => Some(ExecutionMode::parse(letter).ok_or_else(|| {
            CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.models.unknown_mode", mode = letter))
        })?),
        None => None,
    };
    let settings = cx.settings()?;
    let models = cx.models(&settings);
    let known: Vec<_> = KNOWN
        .iter()
        .map(|model| (*model, models.mode(model, None).mode, models.window(model).window))
        .filter(|(_, mode, _)| only.is_none_or(|only| only == *mode))
        .collect();
    if cx.json {
        let rows: Vec<_> = known
            .iter()
            .map(|(model, mode, window)| json!({ "model": model, "mode": mode, "context_window": window }))
            .collect();
        return ui::json(&rows);
    }
    let rows = known
        .into_iter()
        .map(|(model, mode, window)| vec![model.to_owned(), mode_label(mode, cx.locale), window.0.to_string()])
        .collect();
    ui::table::print(
        &[t!(cx.locale, "cli.column.model"), t!(cx.locale, "cli.column.mode"), t!(cx.locale, "cli.column.window")],
        rows,
    )
}

/// A model of each family we know of; any other can be written, too.
const KNOWN: &[&str] = &[
    "local/recall",
    "claude-opus-4-6",
    "claude-sonnet-4-6",
    "codex/gpt-5.4",
    "cursor/composer-2",
    "gemini/gemini-2.5-pro",
    "openai/gpt-4.1",
    "openai/gpt-4o",
    "openai/glm-4.7-flash",
    "google/gemini-2.5-flash",
    "vertex_ai/gemini-2.5-flash",
    "azure/gpt-4.1",
    "mistral/mistral-large",
    "xai/grok-4",
    "ollama/qwen3:14b",
    "ollama/gemma3:12b",
];

fn show(cx: &Cx) -> CliResult {
    let settings = cx.settings()?;
    let models = cx.models(&settings);
    if let Some(fault) = &models.fault {
        let said = (fault.as_ref() as &dyn animaworks_core::Fault).explain(cx.locale);
        return Err(CliError::said(ErrorKind::Corrupt, said.message).with_hint(said.hint.unwrap_or_default()));
    }
    if cx.json {
        let rows: serde_json::Map<_, _> = models
            .rows()
            .iter()
            .map(|(pattern, row)| (pattern.clone(), json!({ "mode": row.mode, "context_window": row.context_window })))
            .collect();
        return ui::json(&rows);
    }
    let rows = models
        .rows()
        .iter()
        .map(|(pattern, row)| {
            let mode = row.mode.map(|mode| mode_label(mode, cx.locale)).unwrap_or_default();
            vec![pattern.clone(), mode, row.context_window.map(|window| window.to_string()).unwrap_or_default()]
        })
        .collect();
    ui::table::print(
        &[t!(cx.locale, "cli.column.pattern"), t!(cx.locale, "cli.column.mode"), t!(cx.locale, "cli.column.window")],
        rows,
    )
}

fn info(cx: &Cx, model: &str) -> CliResult {
    let settings = cx.settings()?;
    let models = cx.models(&settings);
    let (mode, window) = (models.mode(model, None), models.window(model));
    let configured = settings.anima_defaults.context_threshold.unwrap_or(0.5);
    let threshold = scaled_threshold(configured, window.window);
    let (mode_source, window_source) = (mode_source(&mode.source), window_source(&window.source));
    if cx.json {
        return ui::json(&json!({
            "model": model, "mode": mode.mode, "mode_source": mode_source,
            "context_window": window.window, "context_window_source": window_source, "threshold": threshold,
        }));
    }
    let row = |label: String, value: String, source: String| vec![label, value, source];
    ui::table::print(
        &[model.to_owned(), t!(cx.locale, "cli.column.value"), t!(cx.locale, "cli.column.source")],
        vec![
            row(t!(cx.locale, "cli.column.mode"), mode_label(mode.mode, cx.locale), mode_source),
            row(t!(cx.locale, "cli.column.window"), window.window.0.to_string(), window_source),
            row(t!(cx.locale, "cli.column.threshold"), format!("{threshold:.4}"), "anima_defaults".to_owned()),
        ],
    )
}

/// What decided, as a person finds it again.
pub(super) fn mode_source(source: &ModeSource) -> String {
    match source {
        ModeSource::Explicit => "status.json execution_mode".to_owned(),
        ModeSource::ModelsFile(pattern) => format!("models.json {pattern}"),
        ModeSource::Config(pattern) => format!("config.json model_modes.{pattern}"),
        ModeSource::Card => "GGUF".to_owned(),
        ModeSource::BuiltIn(pattern) => format!("built in: {pattern}"),
        ModeSource::Fallback => "built in: *".to_owned(),
    }
}

pub(super) fn window_source(source: &WindowSource) -> String {
    match source {
        WindowSource::ModelsFile(pattern) => format!("models.json {pattern}"),
        WindowSource::Config(pattern) => format!("config.json model_context_windows.{pattern}"),
        WindowSource::Card => "GGUF".to_owned(),
        WindowSource::BuiltIn(pattern) => format!("built in: {pattern}"),
        WindowSource::Fallback => "built in: *".to_owned(),
    }
}

/// Fetches a local model by its hub id, with a progress bar.
#[cfg(feature = "hub")]
pub(super) fn fetch(cx: &Cx, model: &str) -> CliResult<std::path::PathBuf> {
    let bar = ui::progress::bytes(&t!(cx.locale, "cli.models.fetching", model = model));
    let fetched = animaworks_exec::local::Hub::new(&cx.data.weights()).fetch(model, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let place = fetched?;
    if cx.json {
        ui::json(&json!({ "model": model, "file": place }))?;
    } else {
        ui::note(t!(cx.locale, "cli.models.fetched", model = model, file = place.display()));
    }
    Ok(place)
}

#[cfg(not(feature = "hub"))]
pub(super) fn fetch(cx: &Cx, model: &str) -> CliResult<std::path::PathBuf> {
    Err(CliError::said(ErrorKind::NotInstalled, t!(cx.locale, "cli.models.no_hub", model = model)))
}
