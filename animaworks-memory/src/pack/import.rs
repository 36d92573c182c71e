//! Taking over what another memory holds: every block once, the originals untouched, and a list of what was left.
//!
//! What was taken is written down in `imported/.taken.jsonl` beside it. A block that somebody has
//! merged or thrown away since is therefore not brought back by the next import.

mod claude_mem;
mod notes;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use animaworks_core::{
    MemoryError, ResultExt,
    config::Env,
    fs::{self, Lock, Privacy},
};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Pack,
    block::{Block, Note},
    relative,
    secrets::Secrets,
    shadow::own_dir,
    walk,
};

/// Where everything that was imported stands, below the memory.
const PLACE: &str = "imported";
/// What was imported, one line for each block.
const TAKEN: &str = ".taken.jsonl";
/// Room that a heading and the number of a part need, in characters.
const MARGIN: usize = 400;

/// What an import did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Where it looked.
    pub sources: Vec<PathBuf>,
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// Blocks that are new.
    pub taken: usize,
    /// Blocks that were taken before, or stand in the memory anyway.
    pub known: usize,
    /// What was not taken.
    pub left: Vec<Left>,
    /// What was taken and should be looked at.
    pub doubtful: Vec<Left>,
}

/// Something of a source, with why it is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The file it stands in.
    pub from: PathBuf,
    /// Its line, from 1; or the number of its record.
    pub line: Option<usize>,
    /// Its heading, or how many there are.
    pub what: String,
    /// Why; a word the catalogue knows.
    pub reason: &'static str,
}

/// A block on its way into the memory.
#[derive(Debug, Clone)]
struct Draft {
    /// Where it goes, below [`PLACE`] and without `.md`.
    to: String,
    heading: String,
    body: String,
    from: PathBuf,
    line: usize,
}

/// What a source holds.
#[derive(Debug, Default)]
struct Found {
    drafts: Vec<Draft>,
    left: Vec<Left>,
}

/// One line of the list of what was imported.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    hash: String,
    to: String,
    from: PathBuf,
}

impl Found {
    fn leave(&mut self, from: &Path, line: Option<usize>, what: impl Into<String>, reason: &'static str) {
        self.left.push(Left { from: from.to_owned(), line, what: what.into(), reason });
    }
}

impl Pack {
    /// Where other memories usually are: those of Claude Code and of claude-mem, and notes in the start directory.
    pub fn usual_sources(env: &Env) -> Vec<PathBuf> {
        let claude = env.home().join(".claude");
        let here = env.start_dir();
        let mut sources = vec![claude.join("CLAUDE.md")];
        sources.extend(notes::project_memories(&claude));
        sources.push(env.home().join(".claude-mem/claude-mem.db"));
        sources.extend(["CLAUDE.md", "CLAUDE.local.md", "MEMORY.md", "memory"].map(|name| here.join(name)));
        sources.retain(|source| source.exists());
        sources.dedup();
        sources
    }

    /// Takes over what these files and directories hold; `dry` only looks.
    ///
    /// A Markdown file is taken by its `## ` blocks, a directory by its Markdown files, a claude-mem database or
    /// export by its records. The limits of a memory hold: no secrets, no file that is too long.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`] when the memory cannot be written or a source cannot be read at all.
    ///
    /// # Cancel safety
    ///
    /// Each file is the old or the new one; the next import does the rest.
    pub async fn import(&self, sources: &[PathBuf], dry: bool) -> Result<Imported, MemoryError> {
        let Some(dir) = self.dirs.first() else {
            return Err(MemoryError::NotFound { path: "memory".to_owned(), near: Vec::new() });
        };
        let mut done = Imported { sources: sources.to_vec(), ..Imported::default() };
        let mut found = Found::default();
        for source in sources {
            if claude_mem::is_one(source) {
                claude_mem::read(source, &mut found).await?;
            } else {
                notes::read(source, self.now, dir, &mut found)?;
            }
        }
        done.left = std::mem::take(&mut found.left);
        let _lock = if dry { None } else { Some(Lock::wait(&own_dir(dir)?.join("write.lock"))?) };
        let mut known = Self::known(dir)?;
        let secrets = Secrets::new(&self.settings.secret_names);
        let mut targets: BTreeMap<String, Vec<(Block, Line)>> = BTreeMap::new();
        for draft in found.drafts {
            let note = |reason, list: &mut Vec<Left>| {
                let (from, line, what) = (draft.from.clone(), Some(draft.line), draft.heading.clone());
                list.push(Left { from, line, what, reason });
            };
            if draft.body.trim().is_empty() {
                note("empty", &mut done.left);
                continue;
            }
            if let Some(kind) = secrets.first(&draft.heading).or_else(|| secrets.first(&draft.body)) {
                tracing::debug!(kind, "a block with a secret is not imported");
                note("secret", &mut done.left);
                continue;
            }
            if relative::first(&draft.body, self.today()).is_some() {
                note("relative_date", &mut done.doubtful);
            }
            for block in self.fitting(&draft) {
                let hash = hash(&block);
                if !known.insert(hash.clone()) {
                    done.known += 1;
                    continue;
                }
                done.taken += 1;
                let line = Line { hash, to: draft.to.clone(), from: draft.from.clone() };
                targets.entry(draft.to.clone()).or_default().push((block, line));
            }
        }
        if !dry {
            for (to, blocks) in targets {
                done.files.extend(self.append(dir, &to, blocks)?);
            }
            self.reindex_dir(dir).await?;
        }
        Ok(done)
    }

    /// The hashes of every block that is there or was taken before.
    fn known(dir: &Path) -> Result<HashSet<String>, MemoryError> {
        let list = dir.join(PLACE).join(TAKEN);
        let mut known = HashSet::new();
        if list.is_file() {
            known.extend(fs::read_records::<Line>(&list)?.into_iter().map(|line| line.hash));
        }
        if dir.is_dir() {
            for file in walk::files(dir) {
                let Some(text) = fs::read_text(&file.path).log_err("read a memory") else { continue };
                known.extend(Note::parse(&text).blocks.iter().map(hash));
            }
        }
        Ok(known)
    }

    /// A draft as a block, or as several when it is longer than a file may be.
    fn fitting(&self, draft: &Draft) -> Vec<Block> {
        let room = self.settings.file_max_chars.saturating_sub(MARGIN).max(MARGIN);
        if draft.body.chars().count() <= room {
            return vec![Block::new(&draft.heading, &draft.body)];
        }
        let mut parts = vec![String::new()];
        let mut length = 0;
        for line in draft.body.split_inclusive('\n') {
            for piece in pieces(line, room) {
                let more = piece.chars().count();
                if length + more > room {
                    parts.push(String::new());
                    length = 0;
                }
                length += more;
                if let Some(part) = parts.last_mut() {
                    part.push_str(&piece);
                }
            }
        }
        parts.retain(|part| !part.trim().is_empty());
        let of = parts.len();
        let numbered = parts.iter().enumerate();
        numbered.map(|(at, part)| Block::new(&format!("{} ({}/{of})", draft.heading, at + 1), part)).collect()
    }

    /// Appends blocks to a file and, when that is full, to the next one of its name. The list follows each file.
    fn append(&self, dir: &Path, to: &str, blocks: Vec<(Block, Line)>) -> Result<Vec<PathBuf>, MemoryError> {
        let mut written = Vec::new();
        let mut blocks = blocks.into_iter().peekable();
        let mut number = 1;
        while blocks.peek().is_some() {
            let name = if number == 1 { format!("{to}.md") } else { format!("{to}-{number}.md") };
            number += 1;
            let path = dir.join(PLACE).join(&name);
            let mut note = Note::parse(&fs::read_text_if_exists(&path)?.unwrap_or_default());
            let mut chars = note.render().chars().count();
            let mut lines = Vec::new();
            while let Some((block, line)) =
                blocks.next_if(|(block, _)| chars + block.text.chars().count() < self.settings.file_max_chars)
            {
                chars += block.text.chars().count() + 1;
                lines.push(fs::json_line(&path, &Line { to: name.clone(), ..line })?);
                note.blocks.push(block);
            }
            if lines.is_empty() {
                continue;
            }
            fs::write_atomic(&path, note.render().as_bytes(), Privacy::Normal)?;
            fs::append_lines(&dir.join(PLACE).join(TAKEN), lines.iter().map(String::as_str))?;
            written.push(path);
        }
        Ok(written)
    }
}

/// A heading with its day in front, unless it names one.
fn dated(heading: &str, day: NaiveDate) -> String {
    let heading = heading.split_whitespace().collect::<Vec<_>>().join(" ");
    let heading: String = heading.chars().take(200).collect();
    if super::block::date_in(&heading).is_some() {
        return heading;
    }
    format!("{day} {heading}").trim_end().to_owned()
}

/// A name that is a good file name everywhere; never hidden, never a way out.
fn file_name(text: &str) -> String {
    let mapped: String =
        text.chars().map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).take(80).collect();
    let name = mapped.trim_matches('-');
    if name.is_empty() { "notes".to_owned() } else { name.to_owned() }
}

fn hash(block: &Block) -> String {
    Sha256::digest(block.normal().as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A line in pieces of at most so many characters.
fn pieces(line: &str, room: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    letters.chunks(room).map(|part| part.iter().collect()).collect()
}

#[cfg(test)]
mod tests;
