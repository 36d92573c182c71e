//! Notes in Markdown: CLAUDE.md, the memory of Claude Code, MEMORY.md with daily notes, or any directory of them.

use std::path::{Path, PathBuf};

use animaworks_core::{
    MemoryError, ResultExt,
    frontmatter::Document,
    fs::FileError,
    trust::{Origin, Trust},
};
use chrono::{DateTime, FixedOffset, NaiveDate};
use serde_json::Value;

use super::{Draft, Found, dated, file_name};
use crate::pack::{
    block::{Note, date_in},
    walk,
};

/// What is not Markdown is named file by file up to so many.
const MOST_NAMED: usize = 20;

/// The memory directories of the projects of Claude Code.
pub(super) fn project_memories(claude: &Path) -> Vec<PathBuf> {
    let Ok(projects) = fs_err::read_dir(claude.join("projects")) else { return Vec::new() };
    let mut found: Vec<PathBuf> = projects.flatten().map(|entry| entry.path().join("memory")).collect();
    found.retain(|dir| dir.is_dir());
    found.sort();
    found
}

/// Reads a file or a directory of notes. What stands in `own`, the memory itself, is passed over.
pub(super) fn read(
    source: &Path,
    now: DateTime<FixedOffset>,
    own: &Path,
    found: &mut Found,
) -> Result<(), MemoryError> {
    let data = fs_err::metadata(source).map_err(|error| FileError::io("look at", source, error))?;
    if data.is_file() {
        let group = match source.file_stem().and_then(|stem| stem.to_str()) {
            Some("CLAUDE" | "MEMORY") | None => file_name(&parent_name(source)),
            Some(_) => "notes".to_owned(),
        };
        return file(source, &group, now, found);
    }
    let group = file_name(&place_of(source));
    for note in walk::files(source) {
        if note.path.starts_with(own) && !source.starts_with(own) {
            continue;
        }
        let inner = Path::new(&note.source).parent().map(|parent| parent.to_string_lossy().into_owned());
        let inner = inner.filter(|inner| !inner.is_empty()).map(|inner| format!("/{}", file_name(&inner)));
        file(&note.path, &format!("{group}{}", inner.unwrap_or_default()), now, found)?;
    }
    name_the_rest(source, found);
    Ok(())
}

/// The name of what a directory of notes belongs to: of `projects/-home-yuki-app/memory` the project, of
/// `animas/sakura/knowledge` the Anima.
fn place_of(dir: &Path) -> String {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if matches!(name.as_str(), "memory" | "knowledge") { parent_name(dir) } else { name }
}

fn parent_name(path: &Path) -> String {
    let parent = path.parent().and_then(Path::file_name);
    parent.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The blocks of a file. One without `## ` is one block; what stands above the first one is one, too.
fn file(path: &Path, group: &str, now: DateTime<FixedOffset>, found: &mut Found) -> Result<(), MemoryError> {
    let text = match fs_err::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            found.leave(path, None, "", "not_text");
            return Ok(());
        }
        Err(error) => return Err(FileError::io("read", path, error).into()),
    };
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let page = Document::parse(&text);
    let chain: Vec<String> = page
        .field("origin_chain")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let origin = Origin { source: page.text("origin"), chain };
    if !page.text("valid_until").is_empty() {
        found.leave(path, None, "", "superseded");
        return Ok(());
    }
    // nobody said where ordinary notes come from; where somebody did, it counts
    if page.field("origin").is_some() && origin.trust() == Trust::Untrusted {
        found.leave(path, None, "", "untrusted");
        return Ok(());
    }
    let head = text.lines().count() - page.body.lines().count();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let day = day_of(path, &page, &stem, now);
    let to = format!("{group}/{}", file_name(&stem));
    let note = Note::parse(&page.body);
    let mut draft = |heading: &str, body: &str, line: usize| {
        let (heading, body) = (dated(heading, day), body.trim_matches('\n').to_owned());
        found.drafts.push(Draft { to: to.clone(), heading, body, from: path.to_owned(), line });
    };
    let (title, rest) = titled(&note.preamble);
    let named = ["name", "title"].into_iter().map(|key| page.text(key)).find(|text| !text.is_empty());
    let name = named.or(title).unwrap_or(stem);
    let described = page.text("description");
    let has_text = !rest.trim().is_empty();
    if has_text && !only_links(&rest) {
        let body = if described.is_empty() { rest.clone() } else { format!("{described}\n\n{}", rest.trim_start()) };
        draft(&name, &body, head + 1);
    }
    for block in &note.blocks {
        draft(&block.heading, block.body(), head + block.line);
    }
    if has_text && only_links(&rest) {
        found.leave(path, None, name, "only_links");
    } else if !has_text && note.blocks.is_empty() {
        found.leave(path, None, name, "empty");
    }
    Ok(())
}

/// The day a note is about: its head says it, or its name, or the file system.
fn day_of(path: &Path, page: &Document, stem: &str, now: DateTime<FixedOffset>) -> NaiveDate {
    let said = ["date", "updated_at", "updated", "created_at", "created"].into_iter();
    let said = said.map(|key| page.text(key)).find_map(|text| date_in(&text)).or_else(|| date_in(stem));
    said.or_else(|| {
        let data = fs_err::metadata(path).log_err("look at a note")?;
        let changed: DateTime<chrono::Utc> = data.modified().log_err("look at a note")?.into();
        Some(changed.with_timezone(&now.timezone()).date_naive())
    })
    .unwrap_or_else(|| now.date_naive())
}

/// The `# ` title of a preamble, and the rest of it.
fn titled(preamble: &str) -> (Option<String>, String) {
    let trimmed = preamble.trim_start();
    let (first, rest) = trimmed.split_once('\n').unwrap_or((trimmed, ""));
    match first.strip_prefix("# ") {
        Some(title) => (Some(title.trim().to_owned()), rest.to_owned()),
        None => (None, preamble.to_owned()),
    }
}

/// Whether a text is nothing but a list of other files, as an index is.
fn only_links(text: &str) -> bool {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.into_iter().all(|line| {
        let entry = line.trim_start_matches(['-', '*', ' ']);
        entry.starts_with('[') && entry.contains("](") && entry.contains(".md)")
    })
}

/// Names the files of a directory that are no Markdown, and counts those that are too many to name.
fn name_the_rest(source: &Path, found: &mut Found) {
    let Some(entries) = fs_err::read_dir(source).log_err("list notes") else { return };
    let mut others: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .filter(|path| path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("md")))
        .filter(|path| path.file_name().is_none_or(|name| !name.to_string_lossy().starts_with('.')))
        .collect();
    others.sort();
    for path in others.iter().take(MOST_NAMED) {
        found.leave(path, None, "", "not_markdown");
    }
    if others.len() > MOST_NAMED {
        found.leave(source, None, (others.len() - MOST_NAMED).to_string(), "more_not_markdown");
    }
}
