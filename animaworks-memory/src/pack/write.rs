//! Writing a memory: update rather than append, and refuse what would make it worse.

use std::path::{Path, PathBuf};

use animaworks_core::{
    MemoryError,
    fs::{self, FileError, Jail, Lock, Privacy},
};
use chrono::NaiveDate;
use serde::Serialize;

use super::{
    CONTEXT_FILE, Pack,
    block::{Block, Note},
    relative,
    secrets::Secrets,
    shadow::own_dir,
    similar::Shape,
};

/// Blocks at least this alike are worth a warning.
const NEAR: f64 = 0.9;

/// What a write did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
pub enum Written {
    /// A new block.
    Saved {
        /// The file.
        file: PathBuf,
        /// The heading as it stands there.
        heading: String,
        /// Blocks that say nearly the same.
        near: Vec<String>,
    },
    /// A block in the place of another one.
    Replaced {
        /// The file.
        file: PathBuf,
        /// The heading as it stands there.
        heading: String,
        /// The heading that stood there before.
        was: String,
    },
    /// Nothing.
    Refused {
        /// Why.
        reason: Refusal,
        /// The blocks that are there, to be merged or replaced.
        headings: Vec<String>,
    },
}

/// Why a write is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "code")]
pub enum Refusal {
    /// The heading has no `YYYY-MM-DD`.
    NoDate,
    /// A day is named from today.
    RelativeDate {
        /// The word.
        word: &'static str,
        /// The day it means today.
        means: Option<NaiveDate>,
    },
    /// There is nothing to remember.
    EmptyBody,
    /// The very same block is there already.
    Duplicate {
        /// Its heading.
        heading: String,
    },
    /// The file would be longer than its limit.
    TooLong {
        /// Characters it would have.
        chars: usize,
        /// Characters it may have.
        limit: usize,
    },
    /// No heading, or more than one, has the wanted text.
    NoSingleMatch {
        /// The text.
        wanted: String,
        /// How many have it.
        found: usize,
    },
    /// It looks like a key or a token.
    Secret {
        /// What kind.
        kind: &'static str,
    },
    /// The body would make several blocks.
    HeadingInBody,
    /// Not a Markdown file.
    NotMarkdown,
}

impl Refusal {
    /// The word by which the catalogue and programs know it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDate => "no_date",
            Self::RelativeDate { means: Some(_), .. } => "relative_date",
            Self::RelativeDate { means: None, .. } => "relative_span",
            Self::EmptyBody => "empty_body",
            Self::Duplicate { .. } => "duplicate",
            Self::TooLong { .. } => "too_long",
            Self::NoSingleMatch { .. } => "no_single_match",
            Self::Secret { .. } => "secret",
            Self::HeadingInBody => "heading_in_body",
            Self::NotMarkdown => "not_markdown",
        }
    }

    /// What the catalogue's sentence needs.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::RelativeDate { word, means } => {
                vec![("word", (*word).to_owned()), ("date", means.map(|date| date.to_string()).unwrap_or_default())]
            }
            Self::Duplicate { heading } => vec![("heading", heading.clone())],
            Self::TooLong { chars, limit } => vec![("chars", chars.to_string()), ("limit", limit.to_string())],
            Self::NoSingleMatch { wanted, found } => {
                vec![("wanted", wanted.clone()), ("count", found.to_string())]
            }
            Self::Secret { kind } => vec![("kind", (*kind).to_owned())],
            Self::NoDate | Self::EmptyBody | Self::HeadingInBody | Self::NotMarkdown => Vec::new(),
        }
    }
}

impl Pack {
    /// Writes a block into a file of the first directory: a new one, or in the place of the one
    /// whose heading has `replace`. The index of that directory follows.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when the name leads out of the directory or the file cannot be written;
    /// the old file is then untouched. A refusal is no error.
    ///
    /// # Cancel safety
    ///
    /// The file is the old one or the new one.
    pub async fn write(
        &self,
        file: &str,
        heading: &str,
        body: &str,
        replace: Option<&str>,
    ) -> Result<Written, MemoryError> {
        let dir = self.dirs.first().ok_or_else(|| MemoryError::NotFound { path: file.to_owned(), near: Vec::new() })?;
        let written = self.write_in(dir, file, heading, body, replace)?;
        if !matches!(written, Written::Refused { .. }) {
            self.reindex_dir(dir).await?;
        }
        Ok(written)
    }

    fn write_in(
        &self,
        dir: &Path,
        file: &str,
        heading: &str,
        body: &str,
        replace: Option<&str>,
    ) -> Result<Written, MemoryError> {
        fs::create_dir(dir)?;
        let refused = |reason| Ok(Written::Refused { reason, headings: Vec::new() });
        if !super::is_memory(Path::new(file)) {
            return refused(Refusal::NotMarkdown);
        }
        let path = Jail::new(dir)?.resolve(file)?;
        let block = Block::new(heading, body);
        if let Some(reason) = self.unfit(&block) {
            return refused(reason);
        }
        let _lock = Lock::wait(&own_dir(dir)?.join("write.lock"))?;
        let mut note = Note::parse(&read_strictly(&path)?);
        let headings = note.headings();
        let refused = |reason| Ok(Written::Refused { reason, headings: headings.clone() });
        let normal = block.normal();
        if let Some(same) = note.blocks.iter().find(|other| other.normal() == normal) {
            return refused(Refusal::Duplicate { heading: same.heading.clone() });
        }
        let heading = block.heading.clone();
        let written = match replace {
            Some(wanted) => {
                let matching: Vec<usize> = (0..headings.len())
                    .filter(|at| headings.get(*at).is_some_and(|heading| heading.contains(wanted)))
                    .collect();
                let [at] = matching.as_slice() else {
                    return refused(Refusal::NoSingleMatch { wanted: wanted.to_owned(), found: matching.len() });
                };
                let was = headings.get(*at).cloned().unwrap_or_default();
                if let Some(place) = note.blocks.get_mut(*at) {
                    *place = block;
                }
                Written::Replaced { file: path.clone(), heading, was }
            }
            None => {
                let shape = Shape::of(block.body());
                let alike = |other: &&Block| shape.likeness(&Shape::of(other.body())) >= NEAR;
                let near = note.blocks.iter().filter(alike).map(|other| other.heading.clone()).collect();
                // the newest first where the work at hand is kept, the newest last everywhere else
                let first = path.file_name().is_some_and(|name| name == CONTEXT_FILE);
                note.blocks.insert(if first { 0 } else { note.blocks.len() }, block);
                Written::Saved { file: path.clone(), heading, near }
            }
        };
        let text = note.render();
        let chars = text.chars().count();
        if chars > self.settings.file_max_chars {
            return refused(Refusal::TooLong { chars, limit: self.settings.file_max_chars });
        }
        fs::write_atomic(&path, text.as_bytes(), Privacy::Normal)?;
        Ok(written)
    }

    /// What is wrong with a block wherever it goes.
    fn unfit(&self, block: &Block) -> Option<Refusal> {
        // the word is named first: it tells the writer what to put in its place
        if let Some((word, means)) = relative::first(&block.text, self.today()) {
            return Some(Refusal::RelativeDate { word, means });
        }
        if block.date().is_none() {
            return Some(Refusal::NoDate);
        }
        if block.body().trim().is_empty() {
            return Some(Refusal::EmptyBody);
        }
        if Note::parse(&block.text).blocks.len() != 1 {
            return Some(Refusal::HeadingInBody);
        }
        let leak = Secrets::new(&self.settings.secret_names).first(&block.text)?;
        Some(Refusal::Secret { kind: leak })
    }
}

/// Text that would not come back as it was is not rewritten.
fn read_strictly(path: &Path) -> Result<String, MemoryError> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(FileError::io("read", path, error).into()),
    }
}
