//! `pack install | uninstall | doctor`: the plugin of a coding agent, written, removed and looked at.

use std::path::{Path, PathBuf};

use animaworks_core::{
    ErrorKind, ResultExt,
    config::Env,
    fs::{self, FileError, Privacy},
    i18n::fill,
    t, templates,
};
use animaworks_memory::pack::{PROJECT_DIR, Settings};
use serde_json::json;

use super::codex;
use crate::{
    args::pack::Place,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

/// The name of the plugin and of its directory: nothing else is ever removed.
pub(super) const NAME: &str = "animaworks-pack";
const SKILLS: [&str; 3] = ["recall", "remember", "memory-gc"];
const AGENTS: [&str; 3] = ["claude", "codex", "gemini"];

/// One file of a plugin.
struct Piece {
    path: PathBuf,
    text: String,
    runs: bool,
}

pub(super) fn install(cx: &Cx, agents: &[String], dir: Option<&Path>, project: bool) -> CliResult {
    if project {
        let memory = cx.env.start_dir().join(PROJECT_DIR);
        fs::create_dir(&memory)?;
        ui::line(t!(cx.locale, "pack.install.project", path = memory.display()))?;
    }
    for agent in agents {
        if !AGENTS.contains(&agent.as_str()) {
            let known = AGENTS.join(", ");
            return Err(CliError::said(
                ErrorKind::InvalidRequest,
                t!(cx.locale, "pack.install.unknown_agent", agent = agent, known = known),
            ));
        }
        let root = write(cx, &cx.env, agent, dir)?;
        ui::line(t!(cx.locale, "pack.install.done", agent = agent, path = root.display()))?;
        if agent == "codex" {
            ui::note(t!(cx.locale, "pack.install.codex_trust"));
        }
    }
    Ok(())
}

/// Writes the plugin of an agent; says where.
pub(super) fn write(cx: &Cx, env: &Env, agent: &str, dir: Option<&Path>) -> CliResult<PathBuf> {
    let root = home_of(env, agent, dir);
    for piece in pieces(cx, agent) {
        let path = root.join(&piece.path);
        fs::write_atomic(&path, piece.text.as_bytes(), Privacy::Normal)?;
        if piece.runs {
            make_runnable(&path)?;
        }
    }
    if agent == "codex" && dir.is_none() {
        let template = templates::find(cx.locale, "pack/hooks/hooks.json").unwrap_or_default();
        codex::register(&codex::list(env), template, &root)?;
    }
    Ok(root)
}

/// Where an agent looks for plugins.
fn home_of(env: &Env, agent: &str, dir: Option<&Path>) -> PathBuf {
    if let Some(dir) = dir {
        return env.absolute(dir).join(NAME);
    }
    let place = match agent {
        "codex" => codex::home(env).join("skills"),
        "gemini" => env.home().join(".gemini/extensions"),
        _ => env.home().join(".claude/skills"),
    };
    place.join(NAME)
}

/// The files of the plugin of an agent.
fn pieces(cx: &Cx, agent: &str) -> Vec<Piece> {
    let shipped = |template: &str, path: &str, runs: bool| {
        let text = templates::find(cx.locale, &format!("pack/{template}")).unwrap_or_default();
        let text = fill(text, &[("version", env!("CARGO_PKG_VERSION"))]);
        Piece { path: PathBuf::from(path), text, runs }
    };
    let mut pieces: Vec<Piece> = SKILLS
        .iter()
        .map(|skill| {
            let inside = format!("skills/{skill}/SKILL.md");
            let path = if agent == "codex" { format!("{skill}/SKILL.md") } else { inside.clone() };
            shipped(&inside, &path, false)
        })
        .collect();
    match agent {
        "gemini" => {
            pieces.push(shipped("gemini-extension.json", "gemini-extension.json", false));
            pieces.push(shipped("hooks/gemini.json", "hooks/hooks.json", false));
        }
        "claude" => {
            pieces.push(shipped("plugin.json", ".claude-plugin/plugin.json", false));
            pieces.push(shipped("hooks/hooks.json", "hooks/hooks.json", false));
        }
        // the hooks of the other one are entries in a list of its own
        _ => {}
    }
    pieces.push(shipped("hooks/memory_start.sh", "hooks/memory_start.sh", true));
    pieces.push(shipped("hooks/memory_stop.sh", "hooks/memory_stop.sh", true));
    // what belongs to this machine stands in one file that is never committed
    if let Some(program) = std::env::current_exe().log_err("find this program") {
        let text = format!("program='{}'\n", program.display().to_string().replace('\'', "'\\''"));
        pieces.push(Piece { path: PathBuf::from("local.conf"), text, runs: false });
    }
    let ignored = "local.conf\nhook.log\n".to_owned();
    pieces.push(Piece { path: PathBuf::from(".gitignore"), text: ignored, runs: false });
    pieces
}

fn make_runnable(path: &Path) -> CliResult {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    Ok(fs_err::set_permissions(path, mode).map_err(|error| FileError::io("make runnable", path, error))?)
}

pub(super) fn uninstall(cx: &Cx, dir: Option<&Path>) -> CliResult {
    let mut homes: Vec<PathBuf> = AGENTS.iter().map(|agent| home_of(&cx.env, agent, dir)).collect();
    homes.dedup();
    let mut removed = 0;
    for home in homes.iter().filter(|home| home.is_dir()) {
        fs_err::remove_dir_all(home).map_err(|error| FileError::io("remove", home, error))?;
        ui::line(t!(cx.locale, "pack.uninstall.done", path = home.display()))?;
        removed += 1;
    }
    if dir.is_none() && codex::withdraw(&codex::list(&cx.env))? {
        ui::line(t!(cx.locale, "pack.uninstall.done", path = codex::list(&cx.env).display()))?;
        removed += 1;
    }
    if removed == 0 {
        ui::note(t!(cx.locale, "pack.uninstall.nothing"));
    }
    Ok(())
}

pub(super) fn doctor(cx: &Cx, place: &Place) -> CliResult {
    let memory = super::memory(cx, place)?;
    let states = super::block_on(async { Ok(memory.health().await?) })?;
    let plugins: Vec<(&str, PathBuf, bool)> = AGENTS
        .iter()
        .map(|agent| {
            let home = home_of(&cx.env, agent, None);
            let whole = pieces(cx, agent).iter().all(|piece| home.join(&piece.path).is_file());
            let whole = whole && (*agent != "codex" || codex::is_registered(&codex::list(&cx.env)));
            (*agent, home, whole)
        })
        .collect();
    let settings = Settings::file(&cx.env);
    if cx.json {
        let plugins: Vec<_> = plugins
            .iter()
            .map(|(agent, path, whole)| json!({ "agent": agent, "path": path, "installed": whole }))
            .collect();
        return ui::json(&json!({ "memories": states, "plugins": plugins, "config": settings }));
    }
    for state in &states {
        let key = match (state.exists, state.indexed, state.sound) {
            (false, ..) => "pack.doctor.no_dir",
            (true, false, _) => "pack.doctor.no_index",
            (true, true, true) => "pack.doctor.sound",
            (true, true, false) => "pack.doctor.broken",
        };
        let fields = [("path", state.dir.display().to_string()), ("files", state.files.to_string())];
        ui::line(cx.locale.text(key, &fields))?;
    }
    for (agent, path, whole) in plugins {
        let key = if whole { "pack.doctor.plugin" } else { "pack.doctor.no_plugin" };
        let fields = [("agent", agent.to_owned()), ("path", path.display().to_string())];
        ui::line(cx.locale.text(key, &fields))?;
    }
    ui::line(t!(cx.locale, "pack.doctor.config", path = settings.display()))
}
