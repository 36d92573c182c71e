//! Writing files: what was there is not lost, what is said about a file is kept, and trust only sinks.

use animaworks_core::{
    MemoryError, MemoryPath, MemoryWrite, Origin, Trust, Written,
    frontmatter::Document,
    fs::{self, FileError, Lock, Privacy},
    memory::{Etag, WriteMode},
    t,
};
use serde_json::json;

use super::{Inner, access::Located, rules};

/// A writer that did not look is shown this much of what is there, in characters.
const SHOWN: usize = 2000;
/// So many files with a similar name are named.
const SIMILAR: usize = 10;

impl Inner {
    /// Writes a file.
    pub(super) fn write_file(&self, write: MemoryWrite) -> Result<Written, MemoryError> {
        let located = self.locate(&write.path)?;
        rules::check_write(&write.path, &located)?;
        if located.file.is_dir() {
            return Err(MemoryError::Invalid { path: write.path.to_string(), problem: "is a directory".to_owned() });
        }
        // the day's page is also appended to by the framework, under this lock
        let _page = match write.path.root() {
            "episodes" => Some(Lock::wait(&self.reading.dir.run().join("episodes.lock"))?),
            _ => None,
        };
        let before = match fs_err::read(&located.file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(FileError::io("read", &located.file, error).into()),
        };
        if let Some(expected) = &write.expect
            && before.as_deref().map_or_else(Etag::absent, Etag::of) != *expected
        {
            let current = crate::index::plan::text_of(before.as_deref().unwrap_or_default());
            return Err(MemoryError::Changed { path: write.path, current: current.chars().take(SHOWN).collect() });
        }
        let mut notes = Vec::new();
        self.note_names(&write.path, before.is_some(), &mut notes);
        if let Some(bytes) = &before {
            self.keep_old(&write, &located, bytes)?;
        }
        let old = before.as_deref().map(crate::index::plan::text_of);
        let text = match write.mode {
            WriteMode::Overwrite => self.overwritten(&write, old.as_deref(), &mut notes),
            WriteMode::Append => self.appended(&write, old.as_deref(), &mut notes),
        };
        fs::write_atomic(&located.file, text.as_bytes(), Privacy::Normal)?;
        let etag = Etag::of(text.as_bytes());
        Ok(Written { path: write.path, etag, bytes: text.len() as u64, notes })
    }

    /// The whole file as it will be.
    fn overwritten(&self, write: &MemoryWrite, old: Option<&str>, notes: &mut Vec<String>) -> String {
        let mut page = Document::parse(&write.text);
        if let Some(problem) = page.problem() {
            notes.push(t!(self.options.locale, "memory.note.broken_head", problem = problem));
            page = Document::new(page.body.clone());
        }
        // a head that was put before a head: the outer one counts
        let inner = Document::parse(&page.body);
        if page.has_head() && inner.has_head() && inner.problem().is_none() {
            for (key, value) in inner.fields().clone() {
                page.set_default(&key, value);
            }
            page.body = inner.body;
        }
        let old = old.map(Document::parse);
        let has_head = matches!(write.path.root(), "knowledge" | "procedures") || is_shared_knowledge(&write.path);
        if has_head {
            self.complete(&mut page, old.as_ref(), write);
        } else if write.path.root() == "skills" {
            // what a model says about where a skill comes from is not what decides
            page.remove("origin");
            page.remove("origin_chain");
        }
        let floor = floor(old.as_ref(), &write.origin);
        if has_head
            || write.path.root() == "skills" && page.has_head()
            || (takes_head(&write.path) && floor.trust() == Trust::Untrusted)
        {
            mark(&mut page, &floor);
        }
        page.to_string()
    }

    /// The head of knowledge and procedures, completed; nothing that was known is lost (memory spec §7, §8).
    fn complete(&self, page: &mut Document, old: Option<&Document>, write: &MemoryWrite) {
        page.remove("origin");
        page.remove("origin_chain");
        let now = self.home.stamp();
        if let Some(old) = old {
            for (key, value) in old.fields() {
                if !matches!(key.as_str(), "origin" | "origin_chain" | "updated_at") {
                    page.set_default(key, value.clone());
                }
            }
            if let Some(created) = old.field("created_at") {
                page.set("created_at", created.clone());
            }
            page.set("updated_at", now.as_str());
        }
        page.set_default("created_at", now.as_str());
        page.set_default("confidence", 0.5);
        page.set_default("version", 1);
        page.set_default("success_count", 0);
        page.set_default("failure_count", 0);
        if write.path.root() == "procedures" {
            let heading = page.body.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim);
            let stem = write.path.file_name().trim_end_matches(".md").replace(['_', '-'], " ");
            let description = heading.map_or(stem, str::to_owned);
            page.set_default("description", description);
        } else {
            page.set_default("source_episodes", 0);
            page.set_default("auto_consolidated", false);
        }
    }

    /// The file with something added to its end.
    fn appended(&self, write: &MemoryWrite, old: Option<&str>, notes: &mut Vec<String>) -> String {
        let Some(old) = old else { return self.overwritten(write, None, notes) };
        let mut text = old.to_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&write.text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let mut page = Document::parse(&text);
        let known = Document::parse(old);
        let floor = floor(Some(&known), &write.origin);
        // only ever downwards: a cleaner addition does not clean what is there
        if takes_head(&write.path)
            && page.problem().is_none()
            && floor.trust() < stored(&known).map_or(Trust::Trusted, |origin| origin.trust())
        {
            mark(&mut page, &floor);
            return page.to_string();
        }
        text
    }

    /// Copies what an overwrite would lose: the page of a day always, and anything that is not text.
    fn keep_old(&self, write: &MemoryWrite, located: &Located, bytes: &[u8]) -> Result<(), MemoryError> {
        let is_day = write.path.root() == "episodes" && write.mode == WriteMode::Overwrite;
        if !is_day && std::str::from_utf8(bytes).is_ok() {
            return Ok(());
        }
        let stem = write.path.file_name().trim_end_matches(".md").to_owned();
        let stamp = self.home.now().format("%Y%m%dT%H%M%S%z").to_string();
        let tree = located.real.split('/').next().unwrap_or_default();
        let archive = self.reading.dir.archive().join(tree);
        let free = free_name(|n| {
            archive.join(if n == 0 { format!("{stem}_{stamp}.md") } else { format!("{stem}_{stamp}_{n}.md") })
        });
        fs::write_atomic(&free, bytes, Privacy::Normal)?;
        Ok(())
    }

    /// What a writer should know about the name.
    fn note_names(&self, path: &MemoryPath, exists: bool, notes: &mut Vec<String>) {
        let locale = self.options.locale;
        let stem = path.file_name().trim_end_matches(".md");
        if path.root() == "episodes" && chrono::NaiveDate::parse_from_str(stem, "%Y-%m-%d").is_err() {
            notes.push(t!(locale, "memory.note.episode_name", path = path, today = self.home.today()));
        }
        if exists || !matches!(path.root(), "knowledge" | "procedures") {
            return;
        }
        let words = name_words(stem);
        let directory = self.directory.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let similar: Vec<&str> = directory
            .files()
            .map(|(_, source)| source.path.as_str())
            .filter(|other| other.split('/').next() == Some(path.root()) && *other != path.as_str())
            .filter(|other| {
                let name = other.rsplit('/').next().unwrap_or_default();
                name_words(name.trim_end_matches(".md")).intersection(&words).count() >= 2
            })
            .take(SIMILAR)
            .collect();
        if !similar.is_empty() {
            notes.push(t!(locale, "memory.note.similar", files = similar.join(", ")));
        }
    }

    /// Puts a file away and writes down why.
    pub(super) fn archive_file(&self, path: &MemoryPath, reason: &str) -> Result<(), MemoryError> {
        let located = self.locate(path)?;
        rules::check_archive(path, &located, reason)?;
        if !located.file.is_file() {
            // the error with similar names is the same as when reading
            return self.read_file(path).map(drop);
        }
        let archive = self.reading.dir.archive();
        let base = archive.join("superseded").join(&located.real);
        let to = free_name(|n| {
            if n == 0 {
                return base.clone();
            }
            let stem = base.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            base.with_file_name(format!("{stem}_{n}.md"))
        });
        fs::move_file(&located.file, &to)?;
        let to = to.strip_prefix(self.reading.dir.root()).unwrap_or(&to).to_string_lossy().into_owned();
        let line = json!({"ts": self.home.stamp(), "path": located.real, "to": to, "reason": reason.trim()});
        fs::append_line(&archive.join("reasons.jsonl"), &line.to_string())?;
        Ok(())
    }
}

/// The words of a file name.
fn name_words(stem: &str) -> std::collections::BTreeSet<String> {
    stem.split(['_', '-']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The first name nobody has.
fn free_name(name: impl Fn(u32) -> std::path::PathBuf) -> std::path::PathBuf {
    let mut n = 0;
    loop {
        let path = name(n);
        if fs_err::symlink_metadata(&path).is_err() {
            return path;
        }
        n += 1;
    }
}

fn is_shared_knowledge(path: &MemoryPath) -> bool {
    path.as_str().starts_with("shared/common_knowledge/")
}

/// Whether a head may be put before a file: not before those that other parts of the framework parse.
fn takes_head(path: &MemoryPath) -> bool {
    matches!(path.root(), "knowledge" | "procedures" | "skills" | "episodes")
        || is_shared_knowledge(path)
        || path.as_str().starts_with("shared/users/")
}

/// Where a page says its words come from, if it says so.
fn stored(page: &Document) -> Option<Origin> {
    page.field("origin")?;
    let chain = page.field("origin_chain").and_then(serde_json::Value::as_array);
    let chain = chain.map(|links| links.iter().filter_map(serde_json::Value::as_str).map(str::to_owned).collect());
    Some(Origin { source: page.text("origin"), chain: chain.unwrap_or_default() })
}

/// The lower of what is there and what comes.
fn floor(old: Option<&Document>, new: &Origin) -> Origin {
    match old.and_then(stored) {
        Some(known) => known.joined(new),
        None => new.clone(),
    }
}

/// Writes an origin into the head; a text cannot write it itself.
fn mark(page: &mut Document, origin: &Origin) {
    let source = if origin.source.is_empty() { "unknown" } else { origin.source.as_str() };
    page.set("origin", source);
    if origin.chain.is_empty() {
        page.remove("origin_chain");
    } else {
        page.set("origin_chain", origin.chain.clone());
    }
}
