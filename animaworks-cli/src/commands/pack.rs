//! `pack …`: Markdown memory for a coding agent. No command here opens a connection or asks a model.

pub(super) mod bench;
mod codex;
mod dashboard;
mod import;
mod install;
mod secrets;

use std::io::{IsTerminal, Read};

use animaworks_core::{Clock, ErrorKind, ResultExt, SystemClock, process::Spec, t};
use animaworks_memory::pack::{Pack as Memory, Place as Spot, Refusal, Report, Written};
use serde_json::json;

use crate::{
    args::pack::{Pack, Place},
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

/// Characters of a hit's text that are shown.
const SNIPPET: usize = 120;

pub(super) fn run(cx: &Cx, command: Pack) -> CliResult {
    match command {
        Pack::Reindex { place, full } => reindex(cx, &place, full),
        Pack::Search { place, query, limit } => search(cx, &place, &query, limit),
        Pack::Write { place, file, heading, body, replace } => {
            write(cx, &place, &file, &heading, body, replace.as_deref())
        }
        Pack::Rotate { place, detach: true } => detached(cx, &place),
        Pack::Rotate { place, detach: false } => rotate(cx, &place),
        Pack::Context { place, brief, hook } => context(cx, &place, brief, hook),
        Pack::Report { place, stale_days } => report(cx, &place, stale_days),
        Pack::Import { place, sources, dry_run } => import::import(cx, &place, &sources, dry_run),
        Pack::Adopt { anima, dir } => import::adopt(cx, &anima, &dir),
        Pack::Give { anima, dir, dry_run } => import::give(cx, &anima, &dir, dry_run),
        Pack::Install { agent, dir, project } => install::install(cx, &agent, dir.as_deref(), project),
        Pack::Uninstall { dir } => install::uninstall(cx, dir.as_deref()),
        Pack::Doctor { place } => install::doctor(cx, &place),
        Pack::Dashboard { port, open } => dashboard::run(cx, port, open),
        Pack::CheckSecrets { dir } => secrets::run(cx, &dir),
    }
}

/// The memory of where the program was started, or of the directories that were given.
fn memory(cx: &Cx, place: &Place) -> CliResult<Memory> {
    let now = SystemClock::new().now().with_timezone(&chrono::Local).fixed_offset();
    Ok(Memory::find(&cx.env, &place.dirs, now)?)
}

/// Runs work of the database on this thread alone: a hook cannot wait for a pool of threads.
fn block_on<T>(work: impl Future<Output = CliResult<T>>) -> CliResult<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(CliError::Output)?.block_on(work)
}

fn reindex(cx: &Cx, place: &Place, full: bool) -> CliResult {
    let memory = memory(cx, place)?;
    let done = block_on(async { Ok(memory.reindex(full).await?) })?;
    for problem in &done.unreadable {
        ui::note(problem);
    }
    if cx.json {
        return ui::json(&done);
    }
    ui::line(t!(cx.locale, "pack.reindexed", files = done.files, added = done.added, removed = done.removed))
}

fn search(cx: &Cx, place: &Place, query: &str, limit: usize) -> CliResult {
    let memory = memory(cx, place)?;
    let hits = block_on(async {
        // an index that cannot be brought up to date still answers
        if let Err(error) = memory.reindex(false).await {
            ui::note(t!(cx.locale, "pack.search.old", why = animaworks_core::error::chain(&error)));
        }
        Ok(memory.search(query, limit).await?)
    })?;
    if cx.json {
        return ui::json(&hits);
    }
    if hits.is_empty() {
        ui::note(t!(cx.locale, "pack.search.nothing"));
    }
    let paint = ui::style::Paint::stdout();
    for hit in hits {
        let place = format!("{}:{}", hit.path.display(), hit.line);
        ui::line(format!("{}  {}", paint.cyan(&place), paint.bold(&hit.heading)))?;
        let body = hit.content.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join(" ");
        ui::line(format!("  {}", body.chars().take(SNIPPET).collect::<String>().trim()))?;
    }
    Ok(())
}

fn write(cx: &Cx, place: &Place, file: &str, heading: &str, body: Option<String>, replace: Option<&str>) -> CliResult {
    let memory = memory(cx, place)?;
    let body = match body {
        Some(body) => body,
        None if std::io::stdin().is_terminal() => String::new(),
        None => {
            let mut body = String::new();
            std::io::stdin().read_to_string(&mut body).map_err(CliError::Output)?;
            body
        }
    };
    let written = block_on(async { Ok(memory.write(file, heading, &body, replace).await?) })?;
    if cx.json {
        ui::json(&written)?;
    }
    match written {
        Written::Saved { file, heading, near } => {
            if !cx.json {
                ui::line(t!(cx.locale, "pack.write.saved", file = file.display(), heading = heading))?;
            }
            for near in near {
                ui::note(t!(cx.locale, "pack.write.near", heading = near));
            }
            Ok(())
        }
        Written::Replaced { file, heading, was } if !cx.json => {
            ui::line(t!(cx.locale, "pack.write.replaced", file = file.display(), heading = heading, was = was))
        }
        Written::Replaced { .. } => Ok(()),
        Written::Refused { reason, headings } => Err(refused(cx, &reason, &headings)),
    }
}

/// A refusal with the blocks that are there: what the writer needs in order to merge them and save again.
fn refused(cx: &Cx, reason: &Refusal, headings: &[String]) -> CliError {
    let fields = reason.fields();
    let why = cx.locale.text(&format!("pack.refused.{}", reason.code()), &fields);
    let error = CliError::said(ErrorKind::Permission, t!(cx.locale, "pack.refused", reason = why));
    if headings.is_empty() {
        return error;
    }
    let list: Vec<String> = headings.iter().map(|heading| format!("  - {heading}")).collect();
    error.with_hint(t!(cx.locale, "pack.refused.headings", headings = list.join("\n")))
}

/// Leaves the rotation to a process of its own and returns at once: whoever ends the caller's whole group does not end it.
fn detached(cx: &Cx, place: &Place) -> CliResult {
    let program = std::env::current_exe().map_err(CliError::Output)?;
    let mut spec = Spec::new(program, cx.env.start_dir()).args(["pack", "rotate"]);
    for dir in &place.dirs {
        spec = spec.arg("--dir").arg(dir);
    }
    // the same program in the same place: it has to see the same memory
    spec.env = cx.env.vars().clone();
    spec.detach()?;
    Ok(())
}

fn rotate(cx: &Cx, place: &Place) -> CliResult {
    let memory = memory(cx, place)?;
    let rotated = memory.rotate()?;
    block_on(async { Ok(memory.reindex(false).await?) })?;
    if cx.json {
        return ui::json(&rotated);
    }
    for one in rotated.iter().filter(|one| one.moved > 0) {
        ui::line(t!(cx.locale, "pack.rotated", file = one.file.display(), moved = one.moved, kept = one.kept))?;
    }
    Ok(())
}

fn context(cx: &Cx, place: &Place, brief: bool, hook: bool) -> CliResult {
    let memory = memory(cx, place)?;
    if !brief {
        // what the end of the last session did not get to is done now
        memory.rotate().log_err("rotate the work at hand");
        // a session begins with an index that knows what happened since the last one
        block_on(async { Ok(memory.reindex(false).await.log_err("bring the index up to date")) })?;
    }
    let text = memory.context(brief, cx.locale)?;
    if hook {
        // the shape in which a hook hands text to a session where plain text would be shown to the person
        let output = json!({ "hookEventName": "SessionStart", "additionalContext": text });
        return ui::json(&json!({ "hookSpecificOutput": output }));
    }
    if cx.json { ui::json(&json!({ "context": text })) } else { ui::piece(&text) }
}

fn report(cx: &Cx, place: &Place, stale_days: Option<u32>) -> CliResult {
    let memory = memory(cx, place)?;
    let report = memory.report(stale_days.unwrap_or(memory.settings().stale_days))?;
    if cx.json {
        return ui::json(&report);
    }
    let Report { files, blocks_total, stale, duplicates, oversized } = report;
    ui::line(t!(cx.locale, "pack.report.total", files = files, blocks = blocks_total))?;
    let spot = |place: &Spot| format!("{}:{} {}", place.file.display(), place.line, place.heading);
    if !duplicates.is_empty() {
        ui::line(t!(cx.locale, "pack.report.duplicates", count = duplicates.len()))?;
    }
    for pair in duplicates {
        ui::line(format!("  {:.2}  {}", pair.likeness, spot(&pair.first)))?;
        ui::line(format!("        {}", spot(&pair.second)))?;
    }
    if !stale.is_empty() {
        ui::line(t!(cx.locale, "pack.report.stale", count = stale.len()))?;
    }
    for place in stale {
        ui::line(format!("  {}", spot(&place)))?;
    }
    if !oversized.is_empty() {
        ui::line(t!(cx.locale, "pack.report.oversized", count = oversized.len()))?;
    }
    for file in oversized {
        ui::line(format!("  {} ({})", file.file.display(), file.chars))?;
    }
    Ok(())
}
