//! `pack import | adopt | give`: what other memories hold, and what an Anima knows.

use std::path::{Path, PathBuf};

use animaworks_core::{ErrorKind, t};
use animaworks_memory::pack::{Imported, Left, Pack as Memory};

use crate::{
    args::pack::Place,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

pub(super) fn import(cx: &Cx, place: &Place, sources: &[PathBuf], dry: bool) -> CliResult {
    let memory = super::memory(cx, place)?;
    let sources = match sources {
        [] => Memory::usual_sources(&cx.env),
        named => named.iter().map(|source| cx.env.absolute(source)).collect(),
    };
    if sources.is_empty() {
        return Err(CliError::said(ErrorKind::NotFound, t!(cx.locale, "pack.import.none")));
    }
    let done = super::block_on(async { Ok(memory.import(&sources, dry).await?) })?;
    show(cx, &done, dry)
}

pub(super) fn adopt(cx: &Cx, anima: &str, dir: &Path) -> CliResult {
    let anima = cx.anima(anima)?;
    let dir = cx.env.absolute(dir);
    if !dir.is_dir() {
        return Err(CliError::said(ErrorKind::NotFound, t!(cx.locale, "pack.adopt.no_memory", path = dir.display())));
    }
    let memory = super::memory(cx, &Place { dirs: vec![dir] })?;
    let done = memory.adopt_into(&knowledge(cx, &anima))?;
    if cx.json {
        return ui::json(&done);
    }
    for path in &done.changed {
        ui::note(t!(cx.locale, "pack.adopt.changed", path = path.display(), anima = anima));
    }
    ui::line(t!(cx.locale, "pack.adopt.done", written = done.written.len(), anima = anima, known = done.known))
}

pub(super) fn give(cx: &Cx, anima: &str, dir: &Path, dry: bool) -> CliResult {
    let knowledge = knowledge(cx, &cx.anima(anima)?);
    if !knowledge.is_dir() {
        return Err(CliError::said(
            ErrorKind::NotFound,
            t!(cx.locale, "pack.adopt.no_memory", path = knowledge.display()),
        ));
    }
    let memory = super::memory(cx, &Place { dirs: vec![cx.env.absolute(dir)] })?;
    let done = super::block_on(async { Ok(memory.take_from(&knowledge, dry).await?) })?;
    show(cx, &done, dry)
}

fn knowledge(cx: &Cx, anima: &animaworks_core::AnimaName) -> PathBuf {
    cx.data.anima(anima).root().join("knowledge")
}

fn show(cx: &Cx, done: &Imported, dry: bool) -> CliResult {
    if cx.json {
        return ui::json(done);
    }
    let (taken, known, files) = (done.taken, done.known, done.files.len());
    if dry {
        ui::line(t!(cx.locale, "pack.import.would", taken = taken, known = known))?;
    } else {
        ui::line(t!(cx.locale, "pack.import.done", taken = taken, files = files, known = known))?;
    }
    if !done.left.is_empty() {
        ui::line(t!(cx.locale, "pack.import.left", count = done.left.len()))?;
        list(cx, &done.left)?;
    }
    if !done.doubtful.is_empty() {
        ui::line(t!(cx.locale, "pack.import.doubtful", count = done.doubtful.len()))?;
        list(cx, &done.doubtful)?;
    }
    Ok(())
}

fn list(cx: &Cx, lines: &[Left]) -> CliResult {
    for left in lines {
        let why = cx.locale.text(&format!("pack.left.{}", left.reason), &[]);
        let place = match left.line {
            Some(line) => format!("{}:{line}", left.from.display()),
            None => left.from.display().to_string(),
        };
        ui::line(format!("  {place} {}: {why}", left.what))?;
    }
    Ok(())
}
