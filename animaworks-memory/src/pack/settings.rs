//! The limits and everything that belongs to one machine: one file that is never committed, and the environment.

use std::path::{Path, PathBuf};

use animaworks_core::{
    MemoryError,
    config::Env,
    fs::{self, FileError},
};
use serde::{Deserialize, Serialize};

use super::{OWN_DIR, PROJECT_DIR};

/// More than this is never put into a session by itself.
const MOST_INJECTED: usize = 4_000;

/// The limits of a memory and the values of one machine (`.pack/config.json` of the global memory).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Directories to use instead of the global one. Also `MEMORY_DIRS`.
    pub memory_dirs: Vec<PathBuf>,
    /// The file that is rotated instead of `CONTEXT.md` of each directory. Also `MEMORY_CONTEXT`.
    pub context: Option<PathBuf>,
    /// Blocks that rotation keeps; 5. Also `MEMORY_KEEP_N`.
    pub keep_blocks: usize,
    /// The most characters a file may have after a write; 10,000. Also `MEMORY_FILE_MAX_CHARS`.
    pub file_max_chars: usize,
    /// The most characters put into a session; at most 4,000. Also `MEMORY_INJECT_MAX_CHARS`.
    pub inject_max_chars: usize,
    /// Newest blocks of `CONTEXT.md` put into a session; 1. Also `MEMORY_INJECT_BLOCKS`.
    pub inject_blocks: usize,
    /// Blocks older than this many days are reported as stale; 90.
    pub stale_days: u32,
    /// Names that `check-secrets` must not find.
    pub secret_names: Vec<String>,
    /// The values of the dashboard.
    pub dashboard: DashboardSettings,
}

/// What the dashboard shows; none of it is ever run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DashboardSettings {
    /// The name of the team.
    pub team_name: String,
    /// How the team is started; shown as text.
    pub start_command: String,
    /// The tmux session whose panes are listed.
    pub tmux_session: String,
    /// Where transcripts are; `~/.claude/projects` when empty.
    pub transcripts: Option<PathBuf>,
    /// Where archived transcripts are moved; `~/.claude/projects-archive` when empty.
    pub archive: Option<PathBuf>,
    /// Files or directories with tasks.
    pub tasks: Vec<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_dirs: Vec::new(),
            context: None,
            keep_blocks: 5,
            file_max_chars: 10_000,
            inject_max_chars: MOST_INJECTED,
            inject_blocks: 1,
            stale_days: 90,
            secret_names: Vec::new(),
            dashboard: DashboardSettings::default(),
        }
    }
}

impl Settings {
    /// Where the settings of this user are.
    pub fn file(env: &Env) -> PathBuf {
        match env.var("ANIMAWORKS_PACK_CONFIG") {
            Some(file) => env.absolute(Path::new(file)),
            None => global_dir(env).join(OWN_DIR).join("config.json"),
        }
    }

    /// The settings of this user; a missing file means the defaults, and the environment is asked last.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when the file is broken or a number in the environment is none.
    pub fn load(env: &Env) -> Result<Self, MemoryError> {
        let file = Self::file(env);
        let mut settings: Self = match fs::read_json(&file) {
            Ok(settings) => settings,
            Err(error) if error.is_not_found() => Self::default(),
            Err(error) => return Err(error.into()),
        };
        for (name, value) in [
            ("MEMORY_KEEP_N", &mut settings.keep_blocks),
            ("MEMORY_FILE_MAX_CHARS", &mut settings.file_max_chars),
            ("MEMORY_INJECT_MAX_CHARS", &mut settings.inject_max_chars),
            ("MEMORY_INJECT_BLOCKS", &mut settings.inject_blocks),
        ] {
            if let Some(text) = env.var(name) {
                *value = text.parse::<usize>().map_err(|error| FileError::Value {
                    path: PathBuf::from("environment"),
                    key: name.to_owned(),
                    problem: format!("{text:?}: {error}"),
                })?;
            }
        }
        if let Some(context) = env.var("MEMORY_CONTEXT") {
            settings.context = Some(PathBuf::from(context));
        }
        settings.context = settings.context.map(|file| env.absolute(&file));
        settings.inject_max_chars = settings.inject_max_chars.min(MOST_INJECTED);
        Ok(settings)
    }
}

/// The memory of this user, over all projects.
pub(super) fn global_dir(env: &Env) -> PathBuf {
    env.home().join(".claude").join("memory")
}

/// Where the memories are, the one that is written to first.
pub(super) fn directories(env: &Env, settings: &Settings) -> Vec<PathBuf> {
    if let Some(list) = env.var("MEMORY_DIRS") {
        return list.split(':').filter(|dir| !dir.is_empty()).map(|dir| env.absolute(Path::new(dir))).collect();
    }
    let mut dirs: Vec<PathBuf> = project_dir(env).into_iter().collect();
    if settings.memory_dirs.is_empty() {
        dirs.push(global_dir(env));
    } else {
        dirs.extend(settings.memory_dirs.iter().map(|dir| env.absolute(dir)));
    }
    dirs.dedup();
    dirs
}

/// The memory of the project around the start directory.
fn project_dir(env: &Env) -> Option<PathBuf> {
    env.start_dir()
        .ancestors()
        .take_while(|dir| *dir != env.home())
        .map(|dir| dir.join(PROJECT_DIR))
        .find(|dir| dir.is_dir())
}
