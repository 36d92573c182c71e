//! `init`: the data of an organisation, and its first Anima when somebody names one.

use animaworks_core::{
    ErrorKind,
    creation::{self, NewAnima, Origin},
    t,
};
use serde_json::json;

use crate::{
    args::Init,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, args: Init) -> CliResult {
    let wants_anima = args.blank.is_some() || args.template.is_some() || args.from_md.is_some();
    if creation::is_initialised(&cx.data) && !args.force && !wants_anima {
        let said = t!(cx.locale, "cli.init.exists", path = cx.data.root().display());
        return Err(CliError::said(ErrorKind::Conflict, said).with_hint(t!(
            cx.locale,
            "cli.init.exists_hint",
            flag = cx.flag
        )));
    }
    let report = creation::init(&cx.data, &cx.shipped(), args.force)?;
    if !cx.json {
        ui::note(t!(cx.locale, "cli.init.done", path = cx.data.root().display()));
        for path in &report.texts.kept {
            ui::note(t!(cx.locale, "cli.init.kept", path = path));
        }
    }
    match first(cx, &args)? {
        Some(new) => super::anima::make(cx, &new),
        None if cx.json => ui::json(&json!({
            "path": cx.data.root(), "existed": report.existed, "added": report.texts.added,
            "updated": report.texts.updated, "kept": report.texts.kept,
        })),
        None => {
            ui::note(t!(cx.locale, "cli.init.next_create", flag = cx.flag));
            Ok(())
        }
    }
}

/// The first Anima, as the arguments or the person at the terminal want it.
fn first(cx: &Cx, args: &Init) -> CliResult<Option<NewAnima>> {
    if let Some(name) = &args.blank {
        return Ok(Some(NewAnima { name: Some(name.clone()), ..NewAnima::new(Origin::Blank) }));
    }
    if args.from_md.is_some() || args.template.is_some() {
        let origin = super::anima::origin(cx, args.from_md.as_deref(), args.template.clone())?;
        return Ok(Some(NewAnima { name: args.name.clone(), ..NewAnima::new(origin) }));
    }
    if args.skip_anima || args.force || cx.json || !ui::is_interactive() {
        return Ok(None);
    }
    let name = ui::prompt::ask(&t!(cx.locale, "cli.init.ask_name"))?;
    let name = name.trim();
    Ok((!name.is_empty()).then(|| NewAnima { name: Some(name.to_owned()), ..NewAnima::new(Origin::Blank) }))
}
