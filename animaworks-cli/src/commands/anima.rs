//! `anima create | list | info | set-model | set-background-model | enable | disable | delete`.

use std::path::Path;

use animaworks_core::{
    AnimaName, ErrorKind, ModelId,
    config::{AnimaSettings, ModeSource},
    creation::{self, NewAnima, Origin},
    t,
};
use serde_json::{Value, json};

use super::{config::plain, models::mode_label};
use crate::{
    args::{Anima, AnimaCreate},
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Anima) -> CliResult {
    match command {
        Anima::Create(args) => create(cx, args),
        // there is no server to ask yet, so both look at the files
        Anima::List { local: _ } => list(cx),
        Anima::Info { anima } => info(cx, &cx.anima(&anima)?),
        Anima::Permissions { anima } => permissions(cx, &cx.anima(&anima)?),
        Anima::SetModel { anima, model, credential } => set_model(cx, &cx.anima(&anima)?, &model, credential),
        Anima::SetBackgroundModel { anima, model, credential, clear: _ } => {
            set_background_model(cx, &cx.anima(&anima)?, model.as_deref(), credential)
        }
        Anima::Enable { anima } => set_enabled(cx, &cx.anima(&anima)?, true),
        Anima::Disable { anima } => set_enabled(cx, &cx.anima(&anima)?, false),
        Anima::Delete { anima, force } => delete(cx, &cx.anima(&anima)?, force),
    }
}

/// The settings of one Anima; a broken `status.json` is an error that names it.
pub(super) fn settings_of(cx: &Cx, name: &AnimaName) -> CliResult<AnimaSettings> {
    let settings = cx.settings()?;
    let models = cx.models(&settings);
    Ok(AnimaSettings::load(&cx.data, name, &settings, &models)?)
}

fn list(cx: &Cx) -> CliResult {
    cx.initialised()?;
    let settings = cx.settings()?;
    let models = cx.models(&settings);
    let names = cx.names()?;
    let mut rows = Vec::new();
    for name in &names {
        rows.push(match AnimaSettings::load(&cx.data, name, &settings, &models) {
            Ok(anima) => json!({
                "name": name, "enabled": anima.enabled(), "role": anima.role.value, "model": anima.model.value,
                "supervisor": anima.status.fields.supervisor, "problem": Value::Null,
            }),
            // one broken file must not hide the others
            Err(error) => {
                let said = (&error as &dyn animaworks_core::Fault).explain(cx.locale).message;
                json!({ "name": name, "enabled": false, "role": "", "model": "", "supervisor": Value::Null, "problem": said })
            }
        });
    }
    if cx.json {
        return ui::json(&rows);
    }
    if rows.is_empty() {
        ui::note(t!(cx.locale, "cli.anima.none", flag = cx.flag));
        return Ok(());
    }
    let yes_no = |value: &Value| {
        if value.as_bool() == Some(true) { t!(cx.locale, "cli.yes") } else { t!(cx.locale, "cli.no") }
    };
    let cells = |row: &Value| {
        vec![
            plain(&row["name"]),
            yes_no(&row["enabled"]),
            plain(&row["role"]),
            plain(&row["model"]),
            plain(&row["supervisor"]),
            plain(&row["problem"]),
        ]
    };
    let headings = [
        t!(cx.locale, "cli.column.name"),
        t!(cx.locale, "cli.column.enabled"),
        t!(cx.locale, "cli.column.role"),
        t!(cx.locale, "cli.column.model"),
        t!(cx.locale, "cli.column.supervisor"),
        t!(cx.locale, "cli.column.problem"),
    ];
    ui::table::print(&headings, rows.iter().map(cells).collect())
}

fn info(cx: &Cx, name: &AnimaName) -> CliResult {
    let anima = settings_of(cx, name)?;
    let mode = anima.mode_of(&anima.model.value);
    let window = anima.window_of(&anima.model.value);
    let listing = anima.list();
    if cx.json {
        let settings: serde_json::Map<_, _> = listing
            .iter()
            .map(|row| (row.key.to_owned(), json!({ "value": row.value, "source": row.source.to_string() })))
            .collect();
        return ui::json(&json!({
            "name": name, "directory": cx.data.anima(name).root(), "mode": mode.mode,
            "context_window": window.window, "settings": settings,
        }));
    }
    let mut rows = vec![
        vec![
            t!(cx.locale, "cli.column.mode"),
            mode_label(mode.mode, cx.locale),
            super::models::mode_source(&mode.source),
        ],
        vec![
            t!(cx.locale, "cli.column.window"),
            window.window.0.to_string(),
            super::models::window_source(&window.source),
        ],
    ];
    rows.extend(listing.iter().map(|row| vec![row.key.to_owned(), plain(&row.value), row.source.to_string()]));
    ui::table::print(&[name.to_string(), t!(cx.locale, "cli.column.value"), t!(cx.locale, "cli.column.source")], rows)?;
    ui::note(cx.data.anima(name).root().display().to_string());
    Ok(())
}

fn set_model(cx: &Cx, name: &AnimaName, model: &str, credential: Option<String>) -> CliResult {
    let model = ModelId::new(model)?;
    creation::set_model(&cx.data, name, &model, credential.as_deref())?;
    tell_unknown_credential(cx, credential.as_deref())?;
    let mode = settings_of(cx, name)?.mode_of(&model);
    if mode.source == ModeSource::Fallback {
        ui::note(t!(cx.locale, "cli.anima.unknown_model", model = model));
    }
    if cx.json {
        return ui::json(&json!({ "name": name, "model": model, "mode": mode.mode }));
    }
    ui::note(t!(cx.locale, "cli.anima.model_set", name = name, model = model, mode = mode.mode));
    Ok(())
}

/// A credential may be added later, but a slip of the pen is said at once.
fn tell_unknown_credential(cx: &Cx, name: Option<&str>) -> CliResult {
    let Some(name) = name else { return Ok(()) };
    if !cx.settings()?.credentials.contains_key(name) {
        ui::note(t!(cx.locale, "cli.anima.unknown_credential", name = name, flag = cx.flag));
    }
    Ok(())
}

fn set_background_model(cx: &Cx, name: &AnimaName, model: Option<&str>, credential: Option<String>) -> CliResult {
    let model = model.map(ModelId::new).transpose()?;
    creation::set_background_model(&cx.data, name, model.as_ref(), credential.as_deref())?;
    tell_unknown_credential(cx, credential.as_deref())?;
    if cx.json {
        return ui::json(&json!({ "name": name, "background_model": model }));
    }
    ui::note(match model {
        Some(model) => t!(cx.locale, "cli.anima.background_set", name = name, model = model),
        None => t!(cx.locale, "cli.anima.background_cleared", name = name),
    });
    Ok(())
}

/// What `--from-md` and `--template` say an Anima is made from.
pub(super) fn origin(cx: &Cx, from_md: Option<&Path>, template: Option<String>) -> CliResult<Origin> {
    Ok(match (from_md, template) {
        (Some(file), _) => Origin::Sheet(animaworks_core::fs::read_text(&cx.env.absolute(file))?),
        (None, Some(template)) => Origin::Template(template),
        (None, None) => Origin::Blank,
    })
}

fn create(cx: &Cx, args: AnimaCreate) -> CliResult {
    cx.initialised()?;
    let new = NewAnima {
        name: args.name,
        role: args.role,
        supervisor: args.supervisor,
        ..NewAnima::new(origin(cx, args.from_md.as_deref(), args.template)?)
    };
    make(cx, &new)
}

/// Makes an Anima and says how to talk to it.
pub(super) fn make(cx: &Cx, new: &NewAnima) -> CliResult {
    let created = creation::create(&cx.data, &cx.shipped(), new)?;
    if cx.json {
        return ui::json(&json!({
            "name": created.name, "role": created.role, "supervisor": created.supervisor, "model": created.model,
            "path": created.path, "needs_bootstrap": created.needs_bootstrap,
        }));
    }
    let path = created.path.display();
    ui::note(t!(cx.locale, "cli.anima.created", name = created.name, path = path, flag = cx.flag));
    Ok(())
}

fn delete(cx: &Cx, name: &AnimaName, force: bool) -> CliResult {
    if !force {
        if !ui::is_interactive() {
            return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.anima.needs_force")));
        }
        if !ui::prompt::confirm(&t!(cx.locale, "cli.anima.confirm_delete", name = name), false)? {
            return Ok(());
        }
    }
    let deleted = creation::delete(&cx.data, name, "animaworks anima delete", &cx.now()?)?;
    if cx.json {
        return ui::json(&json!({ "name": name, "path": deleted.path, "orphans": deleted.orphans }));
    }
    ui::note(t!(cx.locale, "cli.anima.deleted", name = name, path = deleted.path.display()));
    if !deleted.orphans.is_empty() {
        let names: Vec<&str> = deleted.orphans.iter().map(AnimaName::as_str).collect();
        ui::note(t!(cx.locale, "cli.anima.orphans", names = names.join(", ")));
    }
    Ok(())
}

fn set_enabled(cx: &Cx, name: &AnimaName, on: bool) -> CliResult {
    creation::set_enabled(&cx.data, name, on)?;
    if cx.json {
        return ui::json(&json!({ "name": name, "enabled": on }));
    }
    ui::note(if on {
        t!(cx.locale, "cli.anima.enabled", name = name)
    } else {
        t!(cx.locale, "cli.anima.disabled", name = name)
    });
    Ok(())
}

fn permissions(cx: &Cx, name: &AnimaName) -> CliResult {
    let table = cx.host()?.permissions(name)?;
    let rows = table.describe(cx.locale);
    if cx.json {
        ui::json(&table)?;
    } else {
        let headings = [t!(cx.locale, "cli.column.rule"), t!(cx.locale, "cli.column.source")];
        ui::table::print(&headings, rows.into_iter().map(|(rule, source)| vec![rule, source]).collect())?;
    }
    match &table.broken {
        Some(problem) => Err(CliError::said(ErrorKind::Corrupt, problem.to_string())
            .with_hint(t!(cx.locale, "cli.anima.permissions_hint"))),
        None => Ok(()),
    }
}
