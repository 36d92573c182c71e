//! Whether a memory and its shadow are as they should be.

use std::path::PathBuf;

use animaworks_core::MemoryError;
use serde::Serialize;

use super::{
    Pack,
    shadow::{Shadow, file_in},
    walk,
};

/// The state of one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DirState {
    /// The directory.
    pub dir: PathBuf,
    /// Whether it is there.
    pub exists: bool,
    /// Files of the memory.
    pub files: usize,
    /// Whether it has an index.
    pub indexed: bool,
    /// Whether the whole index can be read.
    pub sound: bool,
}

impl Pack {
    /// Looks at every directory; reads the whole index, so it is slow on large ones.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Index`] when an index cannot even be asked.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn health(&self) -> Result<Vec<DirState>, MemoryError> {
        let mut states = Vec::new();
        for dir in &self.dirs {
            let exists = dir.is_dir();
            let indexed = file_in(dir).is_file();
            let files = if exists { walk::files(dir).len() } else { 0 };
            let mut sound = false;
            if indexed {
                let mut shadow = Shadow::open(dir, &self.stamp()).await?;
                let checked = shadow.is_sound().await;
                shadow.close().await;
                sound = checked?;
            }
            states.push(DirState { dir: dir.clone(), exists, files, indexed, sound });
        }
        Ok(states)
    }
}
