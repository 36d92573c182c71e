//! Engines that are programs of their own, as far as this machine has them.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use animaworks_core::{
    AnimaName, DataDir, ExecError, ExecutionMode, Executor, ResolvedModel, ResultExt, ToolBridge,
    config::{AnimaSettings, Env, ModeSAuth, Models, Settings},
    fs::FileError,
    gate::trigger_allows,
    seams::Sandbox,
    tool::Effect,
};
use animaworks_exec::{
    child::{
        Surroundings, Walls,
        claude::{self, Claude, Login},
        codex, cursor, gemini,
        home::{Homes, find},
    },
    resolve::{Engines, Maker},
};
use animaworks_tools::{KernelSandbox, mcp::SocketBridge, sandbox::policy};

use super::Hands;

/// What a socket's path may take of the 107 bytes there are, beside the name of the socket.
const LONGEST_DIRECTORY: usize = 88;

/// Makes the engine of a model whose mode is a program, each time it is asked, so that a program that is installed
/// meanwhile is found. `program` is `animaworks` itself: it confines the programs and carries our tools to them.
pub(super) fn programs(env: &Env, data: &DataDir, hands: &Hands, program: PathBuf, engines: &Engines) -> Maker {
    let (keys, clock, ids) = (engines.keys.clone(), engines.line.clock.clone(), engines.line.ids.clone());
    let path: Option<OsString> = env.vars().get(OsStr::new("PATH")).cloned();
    let walls = walls(data, hands, path.as_deref(), &program);
    let sandbox: Arc<dyn Sandbox> = Arc::new(KernelSandbox::new(program.clone()));
    let sockets = sockets(env, data);
    let bridge: Arc<dyn ToolBridge> = Arc::new(SocketBridge::new(program, &["mcp"], sockets.clone(), ids.clone()));
    let homes = Homes::new(data.clone(), env.home()).with_sockets(sockets);
    let login = login(data);
    let env = env.harmless();
    Arc::new(move |model: &ResolvedModel| {
        let names = match model.mode {
            ExecutionMode::Codex => codex::NAMES,
            ExecutionMode::Cursor => cursor::NAMES,
            ExecutionMode::Gemini => gemini::NAMES,
            _ => claude::NAMES,
        };
        let program = find(names, path.as_deref()).ok_or_else(|| missing(names))?;
        let around = Surroundings {
            program,
            env: env.clone(),
            sandbox: sandbox.clone(),
            walls: walls.clone(),
            bridge: bridge.clone(),
            clock: clock.clone(),
            homes: homes.clone(),
            credential: keys(&model.credential),
        };
        let engine: Arc<dyn Executor> = match model.mode {
            ExecutionMode::Codex => Arc::new(codex::codex(around)),
            ExecutionMode::Cursor => Arc::new(cursor::cursor(around)),
            ExecutionMode::Gemini => Arc::new(gemini::gemini(around)),
            _ => Arc::new(Claude::new(around, login.clone(), ids.clone())),
        };
        Ok(engine)
    })
}

fn missing(names: &[&str]) -> ExecError {
    let engine = names.first().copied().unwrap_or_default().to_owned();
    ExecError::NotInstalled { detail: format!("no {} in PATH", names.join(" or ")), engine }
}

/// What an Anima's programs may touch: what its owner allows its commands, and `animaworks`, which carries our tools.
fn walls(data: &DataDir, hands: &Hands, path: Option<&OsStr>, program: &Path) -> Walls {
    let (data, hands, program) = (data.clone(), hands.clone(), program.to_owned());
    let path: Vec<PathBuf> =
        std::env::split_paths(path.unwrap_or_default()).filter(|path| path.is_absolute() && path.is_dir()).collect();
    Arc::new(move |request| {
        let files = hands.permissions(&data.anima(&request.anima)).files();
        // without a kernel that holds them: Claude Code asks about each tool, and Codex builds walls of its own
        let holds_itself = matches!(request.model.mode, ExecutionMode::Sdk | ExecutionMode::Codex);
        let mut policy = policy::for_commands(&files, &path, holds_itself);
        policy.read.push(program.clone());
        if !trigger_allows(request.trigger, Effect::Acts) {
            // not every program asks before it uses a shell of its own, so the walls hold a turn that only plans
            policy.write.retain(|place| place.starts_with("/dev"));
        }
        policy
    })
}

/// How an Anima's Claude Code logs in, as `status.json` and `config.json` say now.
fn login(data: &DataDir) -> Login {
    let data = data.clone();
    let read = move |anima: &AnimaName| -> Result<Option<ModeSAuth>, FileError> {
        let settings = Settings::load(&data)?;
        let models = Models::load(&data, &settings);
        Ok(AnimaSettings::load(&data, anima, &settings, &models)?.mode_s_auth.value)
    };
    Arc::new(move |anima| read(anima).log_err("read how an Anima logs in").flatten())
}

/// A place only the user can open, with a short path: the user's runtime directory, the organisation's, or a temporary one.
fn sockets(env: &Env, data: &DataDir) -> PathBuf {
    let runtime = env.var("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|directory| directory.is_dir());
    let user = nix::unistd::Uid::effective();
    let temporary = Path::new("/tmp").join(format!("animaworks-{user}"));
    [runtime.map(|directory| directory.join("animaworks")), Some(data.run())]
        .into_iter()
        .flatten()
        .map(|directory| directory.join("mcp"))
        .find(|directory| directory.as_os_str().len() <= LONGEST_DIRECTORY)
        .unwrap_or(temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_where_their_path_is_short_enough() {
        let place = tempfile::tempdir().unwrap();
        let runtime = place.path().to_str().unwrap();
        let (short, long) = (DataDir::new("/srv/anima"), DataDir::new(format!("/srv/{}", "long/".repeat(30))));
        let none = Env::default();
        let some = Env::of([("XDG_RUNTIME_DIR", runtime)]);
        assert_eq!(sockets(&none, &short), Path::new("/srv/anima/run/mcp"));
        assert_eq!(sockets(&some, &long), place.path().join("animaworks/mcp"));
        assert!(sockets(&none, &long).starts_with("/tmp"), "{:?}", sockets(&none, &long));
        let gone = Env::of([("XDG_RUNTIME_DIR", "/run/user/nobody")]);
        assert_eq!(sockets(&gone, &short), Path::new("/srv/anima/run/mcp"));
    }
}
