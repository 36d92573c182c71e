//! What a person can ask of the conversation itself: `/help`, `/who`, `/why`, `/where`, `/memory`, `/engine`, `/quit`.

use animaworks_core::{
    ModelId, Query,
    config::{AnimaSettings, ModeSource, Status},
    t,
};
use animaworks_server::{InProcess, Resident};

use super::super::{conversation::Conversation, models::mode_label};
use crate::{context::Cx, error::CliResult, ui};

/// How to go on.
pub(super) enum Then {
    GoOn,
    Leave,
}

pub(super) async fn run(
    cx: &Cx,
    host: &InProcess,
    resident: &Resident,
    conversation: &Conversation,
    line: &str,
) -> CliResult<Then> {
    let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match command {
        "quit" | "exit" | "q" => return Ok(Then::Leave),
        "help" | "?" => ui::note(t!(cx.locale, "cli.chat.help")),
        "who" => who(host, resident)?,
        "why" => why(cx, conversation),
        "where" => ui::note(resident.dir.root().display().to_string()),
        "memory" => memory(cx, resident, rest).await?,
        "engine" => engine(cx, resident, rest)?,
        other => ui::note(t!(cx.locale, "cli.chat.unknown_command", command = format!("/{other}"))),
    }
    Ok(Then::GoOn)
}

fn who(host: &InProcess, resident: &Resident) -> CliResult {
    let identity = animaworks_core::fs::read_text_if_exists(&resident.dir.file("identity.md"))?.unwrap_or_default();
    for line in identity.lines().filter(|line| !line.trim().is_empty()).take(6) {
        ui::note(line);
    }
    for name in host.names()? {
        let mark = if &name == resident.anima.name() { "*" } else { " " };
        ui::note(format!("{mark} {name}"));
    }
    Ok(())
}

fn why(cx: &Cx, conversation: &Conversation) {
    let Some(turn) = &conversation.last else {
        ui::note(t!(cx.locale, "cli.chat.nothing_yet"));
        return;
    };
    if turn.sources.is_empty() {
        ui::note(t!(cx.locale, "cli.chat.why_nothing"));
    }
    for source in &turn.sources {
        let text = source.text.lines().next().unwrap_or_default();
        let score = format!("{:.2}", source.score);
        ui::note(t!(
            cx.locale,
            "cli.chat.why_source",
            path = source.path,
            line = source.line,
            score = score,
            text = text
        ));
    }
    let report = &turn.report;
    if !report.tools.is_empty() {
        let tools: Vec<&str> = report.tools.iter().map(|tool| tool.tool_name.as_str()).collect();
        ui::note(t!(cx.locale, "cli.chat.why_tools", tools = tools.join(", ")));
    }
    let model = report.model.as_ref().map(ModelId::as_str).unwrap_or_default();
    ui::note(t!(
        cx.locale,
        "cli.chat.why_cost",
        model = model,
        seconds = format!("{:.1}", report.duration_ms as f64 / 1000.0),
        recall = turn.recall_ms,
        input = report.usage.context_tokens(),
        output = report.usage.output_tokens,
    ));
    for note in &report.notes {
        ui::note(note);
    }
}

async fn memory(cx: &Cx, resident: &Resident, words: &str) -> CliResult {
    if !words.is_empty() {
        let recall = resident.memory.search(&Query::new(words).top(5)).await?;
        return super::super::memory::show(cx, &recall);
    }
    let health = resident.memory.health().await;
    ui::note(t!(
        cx.locale,
        "cli.memory.health",
        chunks = health.chunks,
        vectors = health.vectors,
        embedder = health.embedder.unwrap_or_else(|| t!(cx.locale, "cli.memory.no_embedder")),
    ));
    for part in health.degraded {
        ui::note(t!(cx.locale, "cli.chat.degraded", part = part.part, why = part.why));
    }
    Ok(())
}

fn engine(cx: &Cx, resident: &Resident, wanted: &str) -> CliResult {
    if !wanted.is_empty() {
        Status::set(&resident.dir, "model", Some(ModelId::new(wanted)?.as_str().into()))?;
    }
    let settings = cx.settings()?;
    let models = cx.models(&settings);
    let anima = AnimaSettings::load(&cx.data, resident.anima.name(), &settings, &models)?;
    let mode = anima.mode_of(&anima.model.value);
    if !wanted.is_empty() && mode.source == ModeSource::Fallback {
        ui::note(t!(cx.locale, "cli.anima.unknown_model", model = anima.model.value));
    }
    ui::note(format!("{}  {}  {}", anima.model.value, mode_label(mode.mode, cx.locale), anima.model.source));
    Ok(())
}
