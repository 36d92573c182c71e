//! Keeping the work at hand small: old blocks move to an archive, each of them once.

use std::path::{Path, PathBuf};

use animaworks_core::{
    MemoryError,
    fs::{self, Lock, Privacy},
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Pack, block::Note, shadow::own_dir};

/// What a rotation did with one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// The file.
    pub file: PathBuf,
    /// Blocks that were moved.
    pub moved: usize,
    /// Blocks that stayed.
    pub kept: usize,
}

impl Pack {
    /// Moves all but the newest blocks of each `CONTEXT.md` into `archive/context_archive.md` beside it.
    ///
    /// The archive is durable before the file is cut, and every block in it carries a mark:
    /// a rotation that died in between goes on without writing a block twice.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`]; nothing is lost then.
    pub fn rotate(&self) -> Result<Vec<Rotated>, MemoryError> {
        self.context_files().iter().map(|file| self.rotate_file(file)).collect()
    }

    fn rotate_file(&self, file: &Path) -> Result<Rotated, MemoryError> {
        let dir = file.parent().unwrap_or(Path::new("."));
        let _lock = Lock::wait(&own_dir(dir)?.join("write.lock"))?;
        let mut note = Note::parse(&fs::read_text(file)?);
        let keep = self.settings.keep_blocks.min(note.blocks.len());
        let old = note.blocks.split_off(keep);
        let result = Rotated { file: file.to_owned(), moved: old.len(), kept: keep };
        if old.is_empty() {
            return Ok(result);
        }
        let archive = dir.join("archive").join("context_archive.md");
        let mut text = fs::read_text_if_exists(&archive)?.unwrap_or_default();
        let before = text.len();
        for block in &old {
            let hash: String =
                Sha256::digest(block.normal().as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let mark = format!("<!-- pack:{hash} -->");
            if text.contains(&mark) {
                continue;
            }
            if !text.is_empty() && !text.ends_with("\n\n") {
                text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
            }
            text.push_str(&format!("{}\n{mark}\n", block.text.trim_end()));
        }
        if text.len() > before {
            fs::write_atomic(&archive, text.as_bytes(), Privacy::Normal)?;
        }
        fs::write_atomic(file, note.render().as_bytes(), Privacy::Normal)?;
        Ok(result)
    }
}
