//! `doctor`: looks at everything an organisation needs and says what to do about what is missing.

use animaworks_core::{
    AnimaName, ErrorKind, Fault,
    config::{AnimaSettings, ConfigFile, Models},
    organisation::{self, Organisation},
    seams::Enforced,
    t,
};
use serde_json::json;

use crate::{
    args::Doctor,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

/// How something is.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Good,
    Weak,
    Bad,
}

/// One thing that was looked at.
struct Finding {
    state: State,
    what: &'static str,
    text: String,
    remedy: Option<String>,
}

/// What was found so far.
struct Findings<'a> {
    cx: &'a Cx,
    all: Vec<Finding>,
}

impl Findings<'_> {
    fn good(&mut self, what: &'static str, text: impl Into<String>) {
        self.all.push(Finding { state: State::Good, what, text: text.into(), remedy: None });
    }

    fn weak(&mut self, what: &'static str, text: impl Into<String>, remedy: impl Into<String>) {
        self.all.push(Finding { state: State::Weak, what, text: text.into(), remedy: Some(remedy.into()) });
    }

    fn bad(&mut self, what: &'static str, text: impl Into<String>, remedy: impl Into<String>) {
        self.all.push(Finding { state: State::Bad, what, text: text.into(), remedy: Some(remedy.into()) });
    }

    fn fault(&mut self, what: &'static str, fault: &dyn Fault) {
        let said = fault.explain(self.cx.locale);
        let remedy = said.hint.unwrap_or_else(|| t!(self.cx.locale, "cli.doctor.see_file"));
        self.bad(what, said.message, remedy);
    }
}

pub(super) fn run(cx: &Cx, args: Doctor) -> CliResult {
    let mut found = Findings { cx, all: Vec::new() };
    if cx.data.config().is_file() {
        if args.fix {
            fix(&mut found)?;
        }
        data_dir(&mut found);
        configuration(&mut found);
        animas(&mut found)?;
        clock(&mut found);
        machine(&mut found);
    } else {
        let path = cx.data.root().display();
        let remedy = t!(cx.locale, "cli.not_initialised_hint", flag = cx.flag);
        found.bad("data", t!(cx.locale, "cli.not_initialised", path = path), remedy);
    }
    report(cx, &found.all)
}

fn report(cx: &Cx, all: &[Finding]) -> CliResult {
    let word = |state| match state {
        State::Good => "ok",
        State::Weak => "weak",
        State::Bad => "bad",
    };
    if cx.json {
        let rows: Vec<_> = all
            .iter()
            .map(|one| json!({ "check": one.what, "state": word(one.state), "text": one.text, "remedy": one.remedy }))
            .collect();
        ui::json(&rows)?;
    } else {
        let paint = ui::style::Paint::stdout();
        for one in all {
            let mark = match one.state {
                State::Good => paint.green("ok  "),
                State::Weak => paint.yellow("weak"),
                State::Bad => paint.red("bad "),
            };
            ui::line(format!("{mark}  {:<12} {}", one.what, one.text))?;
            if let Some(remedy) = &one.remedy {
                ui::line(format!("      {:<12} → {remedy}", ""))?;
            }
        }
    }
    let bad = all.iter().filter(|one| one.state == State::Bad).count();
    if bad == 0 {
        return Ok(());
    }
    Err(CliError::said(ErrorKind::Corrupt, t!(cx.locale, "cli.doctor.bad", count = bad)))
}

/// What can be mended without asking.
fn fix(found: &mut Findings<'_>) -> CliResult {
    let cx = found.cx;
    let shipped = animaworks_core::creation::Shipped { locale: cx.locale, directory: cx.env.templates_dir() };
    animaworks_core::creation::init(&cx.data, &shipped, true)?;
    organisation::sync(&cx.data)?;
    found.good("fix", t!(cx.locale, "cli.doctor.fixed"));
    Ok(())
}

fn data_dir(found: &mut Findings<'_>) {
    let cx = found.cx;
    let probe = cx.data.run().join(".doctor");
    let wrote = animaworks_core::fs::write_atomic(&probe, b"", animaworks_core::fs::Privacy::Normal)
        .and_then(|()| animaworks_core::fs::remove_if_exists(&probe));
    match wrote {
        Ok(_) => found.good("data", cx.data.root().display().to_string()),
        Err(error) => found.fault("data", &error),
    }
    if cx.is_python_home() {
        found.weak(
            "data",
            t!(cx.locale, "cli.python_home", flag = cx.flag),
            t!(cx.locale, "cli.doctor.python_remedy", flag = cx.flag),
        );
    }
}

fn configuration(found: &mut Findings<'_>) {
    let cx = found.cx;
    match ConfigFile::load(&cx.data) {
        Ok(file) if file.problems.is_empty() => found.good("config", cx.data.config().display().to_string()),
        Ok(file) => {
            for problem in &file.problems {
                let remedy = t!(cx.locale, "cli.doctor.config_remedy", flag = cx.flag, key = problem.key);
                found.weak("config", format!("{}: {}", problem.key, problem.text(cx.locale)), remedy);
            }
        }
        Err(error) => found.fault("config", &error),
    }
    if let Ok(settings) = animaworks_core::config::Settings::load(&cx.data) {
        match Models::load(&cx.data, &settings).fault {
            Some(fault) => found.fault("models", fault.as_ref()),
            None => found.good("models", cx.data.models().display().to_string()),
        }
    }
}

fn animas(found: &mut Findings<'_>) -> CliResult {
    let cx = found.cx;
    match Organisation::load(&cx.data) {
        Ok(chart) => {
            for problem in chart.problems() {
                found.weak("organisation", problem.text(cx.locale), t!(cx.locale, "cli.doctor.org_remedy"));
            }
        }
        Err(error) => found.fault("organisation", &error),
    }
    let Ok(settings) = animaworks_core::config::Settings::load(&cx.data) else { return Ok(()) };
    let models = cx.models(&settings);
    for name in cx.names()? {
        match AnimaSettings::load(&cx.data, &name, &settings, &models) {
            Ok(anima) => engine(found, &name, &anima),
            Err(error) => found.fault("anima", &error),
        }
        if let Some(problem) = cx.host()?.permissions(&name)?.broken {
            found.bad("permissions", problem.to_string(), t!(cx.locale, "cli.anima.permissions_hint"));
        }
    }
    Ok(())
}

/// Whether the model of an Anima can run here.
fn engine(found: &mut Findings<'_>, name: &AnimaName, anima: &AnimaSettings) {
    let cx = found.cx;
    let model = anima.model.value.clone();
    match cx.host().map(|host| host.can_run(anima)) {
        Ok(Ok(())) => found.good("anima", format!("{name}: {model}")),
        Ok(Err(error)) => {
            let said = (&error as &dyn Fault).explain(cx.locale);
            let remedy = t!(cx.locale, "cli.doctor.engine_remedy", flag = cx.flag, name = name);
            found.weak("anima", format!("{name}: {}", said.message), remedy);
        }
        Err(_) => {}
    }
}

fn clock(found: &mut Findings<'_>) {
    let cx = found.cx;
    match cx.now() {
        Ok(now) => found.good("clock", now.format("%Y-%m-%d %H:%M %Z").to_string()),
        Err(_) => found.weak(
            "clock",
            t!(cx.locale, "cli.doctor.no_zone"),
            t!(cx.locale, "cli.doctor.zone_remedy", flag = cx.flag),
        ),
    }
}

fn machine(found: &mut Findings<'_>) {
    let cx = found.cx;
    let Ok(host) = cx.host() else { return };
    match (host.weights(), host.words_only()) {
        (Some(place), None) => found.good("weights", place.display().to_string()),
        (Some(_), Some(why)) => {
            let remedy = t!(cx.locale, "cli.doctor.weights_remedy", flag = cx.flag);
            found.weak("weights", why, remedy);
        }
        (None, _) => {
            let remedy = t!(cx.locale, "cli.doctor.weights_remedy", flag = cx.flag);
            found.weak("weights", t!(cx.locale, "cli.doctor.no_weights"), remedy);
        }
    }
    let remedy = || t!(cx.locale, "cli.doctor.sandbox_remedy");
    match host.sandbox_strength() {
        Enforced::Kernel => found.good("sandbox", t!(cx.locale, "cli.doctor.sandbox")),
        Enforced::Partly => found.weak("sandbox", t!(cx.locale, "cli.doctor.sandbox_partly"), remedy()),
        Enforced::Not => found.weak("sandbox", t!(cx.locale, "cli.doctor.sandbox_not"), remedy()),
    }
}
