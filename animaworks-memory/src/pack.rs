//! The memory pack: Markdown memory for a coding agent, with no model and no bill.
//!
//! Directories of Markdown are the truth; `.pack/memory_index.db` in each of them is a
//! shadow that can be deleted at any time. Nothing here opens a connection or asks a model.
//!
//! ```no_run
//! use animaworks_memory::pack::{Pack, Settings};
//!
//! # async fn recall(now: chrono::DateTime<chrono::FixedOffset>) -> Result<(), animaworks_core::MemoryError> {
//! let pack = Pack::over(vec!["/home/yuki/notes".into()], Settings::default(), now);
//! pack.reindex(false).await?;
//! for hit in pack.search("東京駅", 5).await? {
//!     println!("{}:{} {}", hit.path.display(), hit.line, hit.heading);
//! }
//! # Ok(())
//! # }
//! ```

mod adopt;
mod block;
mod board;
mod chunk;
mod context;
mod health;
mod import;
mod reindex;
mod relative;
mod report;
mod rotate;
mod search;
mod secrets;
mod sessions;
mod settings;
mod shadow;
mod similar;
mod terms;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use adopt::Adopted;
pub use board::{Board, BoardTask, board};
pub use health::DirState;
pub use import::{Imported, Left};
pub use reindex::Indexed;
pub use report::{Duplicate, Oversized, Place, Report};
pub use rotate::Rotated;
pub use search::Hit;
pub use secrets::{Leak, Secrets};
pub use sessions::{Call, Listing, Page, Said, Session, SessionError, SessionHit, SessionHits, SessionKey, Sessions};
pub use settings::{DashboardSettings, Settings};
pub use write::{Refusal, Written};

use std::path::{Path, PathBuf};

use animaworks_core::{MemoryError, config::Env, fs::Jail};
use chrono::{DateTime, FixedOffset, NaiveDate};

/// The name of the directory inside a memory that holds what is not memory: index, lock, configuration.
pub const OWN_DIR: &str = ".pack";
/// The name of the directory that makes a project have its own memory.
pub const PROJECT_DIR: &str = ".memory";
/// The file of the work at hand, newest block first.
pub const CONTEXT_FILE: &str = "CONTEXT.md";

/// Some directories of Markdown, and the limits they are kept within.
#[derive(Debug, Clone)]
pub struct Pack {
    dirs: Vec<PathBuf>,
    settings: Settings,
    now: DateTime<FixedOffset>,
}

impl Pack {
    /// A pack over these directories as of `now`; they need not exist yet.
    pub fn over(dirs: Vec<PathBuf>, settings: Settings, now: DateTime<FixedOffset>) -> Self {
        Self { dirs, settings, now }
    }

    /// The pack that belongs to where the program was started: `dirs` when given, else
    /// `MEMORY_DIRS`, else the project's `.memory` and the configured or global directories.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when the configuration cannot be read or a number in the environment is none.
    pub fn find(env: &Env, dirs: &[PathBuf], now: DateTime<FixedOffset>) -> Result<Self, MemoryError> {
        let settings = Settings::load(env)?;
        let dirs = if dirs.is_empty() {
            settings::directories(env, &settings)
        } else {
            dirs.iter().map(|dir| env.absolute(dir)).collect()
        };
        Ok(Self::over(dirs, settings, now))
    }

    /// The directories, the one that is written to first.
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// The files of the n-th directory, relative to it.
    pub fn sources(&self, at: usize) -> Vec<String> {
        let dir = self.dirs.get(at).filter(|dir| dir.is_dir());
        dir.map(|dir| walk::files(dir).into_iter().map(|file| file.source).collect()).unwrap_or_default()
    }

    /// The limits.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The day.
    pub fn today(&self) -> NaiveDate {
        self.now.date_naive()
    }

    /// The same with nothing but the directories that exist.
    fn existing(&self) -> impl Iterator<Item = &PathBuf> {
        self.dirs.iter().filter(|dir| dir.is_dir())
    }

    fn stamp(&self) -> String {
        self.now.format("%Y%m%d-%H%M%S").to_string()
    }

    /// The files of `CONTEXT.md` that exist, the configured one or one per directory.
    fn context_files(&self) -> Vec<PathBuf> {
        let files = match &self.settings.context {
            Some(file) => vec![file.clone()],
            None => self.dirs.iter().map(|dir| dir.join(CONTEXT_FILE)).collect(),
        };
        files.into_iter().filter(|file| file.is_file()).collect()
    }

    /// Finds a file of the memories by the name a person or an agent gave it: relative to one of the directories.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when the name leads out of the directories, [`MemoryError::NotFound`] when there is no such file.
    pub fn locate(&self, name: &str) -> Result<PathBuf, MemoryError> {
        for dir in self.existing() {
            let path = Jail::new(dir)?.resolve(name)?;
            if path.is_file() && is_memory(Path::new(name)) {
                return Ok(path);
            }
        }
        Err(MemoryError::NotFound { path: name.to_owned(), near: Vec::new() })
    }
}

/// Whether a relative path is one of a memory: Markdown, and nothing hidden on its way.
fn is_memory(path: &Path) -> bool {
    let hidden = path.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
    !hidden && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}
