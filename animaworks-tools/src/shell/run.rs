//! The Bash tool: permission, judgement, walls, and then the command (exec spec §4.5).

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use animaworks_core::{
    AnimaDir, Clock, Locale, Origin, Tool, ToolContext, ToolError, ToolOutput, Trust, Typed, TypedTool,
    error::{ResultExt, chain},
    fs::{self, FileError},
    process::{Captured, End, Finished, OutputLimits, Spec},
    seams::Sandbox,
    t,
    tasks::Tasks,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Judged, Walls, judge};
use crate::{
    files::{host, off_worker, pinned},
    permission::{FileAccess, OwnerPermissions},
    sandbox::{CANNOT_CONFINE, policy},
};

/// How long a command may take, in seconds, when nobody says.
const TIMEOUT: u64 = 120;
/// How long at most.
const MAX_TIMEOUT: u64 = 600;
/// The same for a command in the background.
const BACKGROUND_TIMEOUT: u64 = 1_800;
/// Output up to this many bytes is shown whole.
const SHOWN_WHOLE: usize = 10_000;
/// Of longer output this much of its beginning is shown …
const SHOWN_HEAD: usize = 5_000;
/// … and this much of its end.
const SHOWN_TAIL: usize = 3_000;
/// At most this much of each stream is kept.
const KEPT: usize = 10 << 20;
/// Where a command's own things go: `HOME`.
const HOME: &str = "run/tmp/home";
/// Where a command may make new files beside the memory.
const WORK: &str = "work";

/// What the shell tool stands on.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Whose rules.
    pub permissions: Arc<OwnerPermissions>,
    /// The walls.
    pub sandbox: Arc<dyn Sandbox>,
    /// The environment of the program, of which commands are given only what is harmless.
    pub env: BTreeMap<OsString, OsString>,
    /// Whether harmless commands run on a kernel without walls.
    pub allow_unenforced: bool,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

/// The Bash tool of one Anima.
pub fn bash_tool(surroundings: Surroundings, locale: Locale) -> Arc<dyn Tool> {
    Arc::new(Typed::localized(Bash::new(surroundings), locale))
}

/// What `Bash` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct BashArgs {
    command: String,
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    background: bool,
}

/// Runs commands. Cancelling or dropping a call ends the whole process group.
#[derive(Debug)]
pub struct Bash {
    on: Surroundings,
    background: Tasks,
}

impl Bash {
    /// The tool.
    pub fn new(on: Surroundings) -> Self {
        Self { on, background: Tasks::new("background commands") }
    }

    /// A judged command as the process to start, inside its walls. Blocks.
    ///
    /// # Errors
    ///
    /// [`ToolError::Denied`] when it is not allowed, [`ToolError::Failed`] when it cannot be confined.
    pub fn prepare(&self, command: &str, cx: &ToolContext) -> Result<Spec, ToolError> {
        prepare(&self.on, command, cx.locale)
    }
}

impl TypedTool for Bash {
    const NAME: &'static str = "Bash";
    const EFFECT: Effect = Effect::Acts;
    const RETURNS: Trust = Trust::Medium;
    type Args = BashArgs;

    async fn run(&self, args: BashArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (on, command, locale) = (self.on.clone(), args.command.clone(), cx.locale);
        let spec = off_worker(move || prepare(&on, &command, locale)).await?;
        let dir = self.on.permissions.files().dir().clone();
        if args.background {
            return self.in_background(spec, &args, &dir, cx).await;
        }
        let timeout = Duration::from_secs(args.timeout.unwrap_or(TIMEOUT).clamp(1, MAX_TIMEOUT));
        let limits = OutputLimits { timeout, max_bytes: KEPT, ..OutputLimits::default() };
        let finished =
            spec.output(limits, &cx.cancel).await.map_err(|error| ToolError::failed("ToolError", chain(&error)))?;
        if finished.end == End::Cancelled {
            return Err(ToolError::Cancelled);
        }
        confined(&finished, cx.locale)?;
        let locale = cx.locale;
        off_worker(move || shown(&dir, &finished, timeout, locale)).await
    }
}

impl Bash {
    async fn in_background(
        &self,
        spec: Spec,
        args: &BashArgs,
        dir: &AnimaDir,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let timeout = Duration::from_secs(args.timeout.unwrap_or(BACKGROUND_TIMEOUT).clamp(1, BACKGROUND_TIMEOUT * 4));
        let started = self.on.clock.now();
        let header = format!("$ {}\n# start: {}\n", args.command, started.to_rfc3339());
        let (at, first) = (dir.clone(), header.clone());
        let (number, relative) = off_worker(move || {
            let (number, relative) = next_output(&at);
            let path = real_root(&at).map_err(host)?.join(&relative);
            pinned::write(&path, first.as_bytes()).map_err(host)?;
            Ok::<_, ToolError>((number, relative))
        })
        .await?;
        let (path, clock) = (relative.clone(), self.on.clock.clone());
        let (root, token) = (dir.clone(), self.background.token().clone());
        self.background.spawn("command", async move {
            let limits = OutputLimits { timeout, max_bytes: KEPT, ..OutputLimits::default() };
            let (body, end) = match spec.output(limits, &token).await {
                Ok(finished) => (both(&finished), end_word(finished.end)),
                Err(error) => (chain(&error), "not started".to_owned()),
            };
            let seconds = (clock.now() - started).num_seconds();
            let text = format!("{header}{body}\n# end: {end}, {seconds} s\n");
            let written = fs::blocking(move || {
                let root =
                    fs_err::canonicalize(root.root()).map_err(|error| FileError::io("open", root.root(), error))?;
                pinned::write(&root.join(&path), text.as_bytes())
            });
            written.await.log_err("the output of a background command");
        });
        let output = ToolOutput::text(t!(cx.locale, "tools.bash.background", id = number, path = relative.display()))
            .with_data(json!({ "command_id": number, "output": relative }));
        Ok(output)
    }
}

fn real_root(dir: &AnimaDir) -> Result<PathBuf, FileError> {
    fs_err::canonicalize(dir.root()).map_err(|error| FileError::io("open", dir.root(), error))
}

fn prepare(on: &Surroundings, command: &str, locale: Locale) -> Result<Spec, ToolError> {
    let files = on.permissions.files();
    let judged = judge(command, &Walls::new(&files, on.permissions.held()))
        .map_err(|refusal| refusal.for_model(Bash::NAME, locale))?;
    make_places(&files).map_err(host)?;
    let path = programs(&on.env);
    let policy = policy::for_commands(&files, &path, on.allow_unenforced);
    let spec = spec(on, &files, judged, command, &path);
    let confined = on.sandbox.confine(spec, &policy);
    let (spec, _) = confined.map_err(|error| ToolError::failed("NotConfigured", chain(&error)))?;
    Ok(spec)
}

fn make_places(files: &FileAccess) -> Result<(), FileError> {
    for place in [HOME, WORK] {
        pinned::directory(&files.own().join(place))?;
    }
    Ok(())
}

/// The directories of `PATH` that exist and are absolute.
fn programs(env: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let path = env.get(std::ffi::OsStr::new("PATH")).cloned().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).filter(|path| path.is_absolute() && path.is_dir()).collect()
}

fn spec(on: &Surroundings, files: &FileAccess, judged: Judged, command: &str, path: &[PathBuf]) -> Spec {
    let own = files.own();
    let spec = match judged.plain {
        Some(words) => {
            let mut words = words.into_iter();
            Spec::new(words.next().unwrap_or_default(), own).args(words)
        }
        None => {
            let bash =
                ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].into_iter().find(|bash| Path::new(bash).exists());
            match bash {
                Some(bash) => Spec::new(bash, own).args(["--noprofile", "--norc", "-c", command]),
                None => Spec::new("/bin/sh", own).args(["-c", command]),
            }
        }
    };
    let name = files.dir().name();
    let mut spec = spec
        .harmless_env(&on.env)
        .env("HOME", own.join(HOME))
        .env("TMPDIR", own.join("run/tmp"))
        .env("TERM", "dumb")
        .env("PAGER", "cat")
        .env("GIT_PAGER", "cat")
        .env("GIT_EDITOR", "true")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("ANIMAWORKS_ANIMA_DIR", own)
        .env("USER", name.as_str());
    for who in ["AUTHOR", "COMMITTER"] {
        spec = spec
            .env(format!("GIT_{who}_NAME"), name.as_str())
            .env(format!("GIT_{who}_EMAIL"), format!("{name}@animaworks.invalid"));
    }
    spec.env.remove(std::ffi::OsStr::new("SHELL"));
    if let Ok(joined) = std::env::join_paths(path) {
        spec = spec.env("PATH", joined);
    }
    // rustup's programs ask where their tool chains are
    if let Some(chain) = path.iter().find(|path| path.ends_with(".cargo/bin")).and_then(|path| path.parent()?.parent())
    {
        spec = spec.env("RUSTUP_HOME", chain.join(".rustup"));
    }
    spec
}

/// A helper that could not build the walls has not started the command.
fn confined(finished: &Finished, locale: Locale) -> Result<(), ToolError> {
    let said = finished.stderr.text();
    if finished.end == End::Code(i32::from(CANNOT_CONFINE)) && said.starts_with("animaworks-confine:") {
        tracing::error!(%said, "a command could not be confined");
        return Err(ToolError::failed("NotConfigured", t!(locale, "tools.bash.no_walls", cause = said.trim())));
    }
    Ok(())
}

fn shown(dir: &AnimaDir, finished: &Finished, timeout: Duration, locale: Locale) -> Result<ToolOutput, ToolError> {
    let body = both(finished);
    let mut text = match finished.end {
        End::TimedOut => t!(locale, "tools.bash.timed_out", seconds = timeout.as_secs()),
        End::Signal(signal) => t!(locale, "tools.bash.signal", signal = signal),
        End::Code(code) => t!(locale, "tools.bash.exit", code = code),
        End::Cancelled => return Err(ToolError::Cancelled),
    };
    text.push('\n');
    let mut file = None;
    if body.len() > SHOWN_WHOLE {
        let (_, relative) = next_output(dir);
        pinned::write(&real_root(dir).map_err(host)?.join(&relative), body.as_bytes()).map_err(host)?;
        let head = body.get(..body.floor_char_boundary(SHOWN_HEAD)).unwrap_or_default();
        let tail = body.get(body.ceil_char_boundary(body.len() - SHOWN_TAIL)..).unwrap_or_default();
        let total = finished.stdout.total + finished.stderr.total;
        text.push_str(head);
        text.push_str(&format!("\n{}\n", t!(locale, "tools.bash.cut", bytes = total, path = relative.display())));
        text.push_str(tail);
        file = Some(relative);
    } else {
        text.push_str(&body);
    }
    if matches!(finished.end, End::Code(code) if code != 0) && body.contains("Permission denied") {
        text.push_str(&format!("\n{}", t!(locale, "tools.bash.wall_hint")));
    }
    let code = match finished.end {
        End::Code(code) => Some(code),
        _ => None,
    };
    let output = ToolOutput::text(text).with_data(json!({ "exit_code": code, "output": file }));
    let is_error = finished.end == End::TimedOut;
    Ok(ToolOutput { is_error, trust: Trust::Medium, origin: Origin::of(Origin::MIXED), ..output })
}

fn both(finished: &Finished) -> String {
    let cut = |stream: &Captured| {
        let left_out = stream.total.saturating_sub(stream.bytes.len() as u64);
        if left_out == 0 { stream.text() } else { format!("{}\n[+{left_out} bytes]", stream.text()) }
    };
    let (out, err) = (cut(&finished.stdout), cut(&finished.stderr));
    match (out.is_empty(), err.is_empty()) {
        (_, true) => out,
        (true, false) => format!("[stderr]\n{err}"),
        (false, false) => format!("{}\n[stderr]\n{err}", out.trim_end_matches('\n')),
    }
}

fn end_word(end: End) -> String {
    match end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("signal {signal}"),
        End::TimedOut => "timed out".to_owned(),
        End::Cancelled => "cancelled".to_owned(),
    }
}

/// The next free `state/cmd_output/cmd_N.txt`.
fn next_output(dir: &AnimaDir) -> (u64, PathBuf) {
    let folder = Path::new("state").join("cmd_output");
    let used = fs_err::read_dir(dir.root().join(&folder)).into_iter().flatten().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.strip_prefix("cmd_")?.strip_suffix(".txt")?.parse::<u64>().ok()
    });
    let number = used.max().unwrap_or(0) + 1;
    (number, folder.join(format!("cmd_{number}.txt")))
}
