//! Which files are memory, and where they are.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use animaworks_core::{AnimaDir, MemoryPath, ResultExt, fs::FileError};
use chrono::{Days, NaiveDate};

use crate::chunk::{Kind, has_extension};

/// A file that is, or should be, in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its memory path.
    pub(crate) path: String,
    /// Where it is.
    pub(crate) file: PathBuf,
    /// What sort of memory it is.
    pub(crate) kind: Kind,
    /// Its time of change, in nanoseconds since 1970.
    pub(crate) mtime_ns: i64,
    /// Its size.
    pub(crate) size: u64,
}

/// The trees of memory: where each is, under which prefix, and what its files are.
fn trees(dir: &AnimaDir) -> Vec<(PathBuf, &'static str, Kind)> {
    let own = |name: &str| dir.root().join(name);
    let data = dir.data();
    vec![
        (own("knowledge"), "knowledge", Kind::Knowledge),
        (own("episodes"), "episodes", Kind::Episodes),
        (own("procedures"), "procedures", Kind::Procedures),
        (own("skills"), "skills", Kind::Skills),
        (own("state"), "state", Kind::State),
        (own("transcripts"), "transcripts", Kind::Conversation),
        (own("activity_log"), "activity_log", Kind::ActivityLog),
        (data.common_knowledge(), "common_knowledge", Kind::CommonKnowledge),
        (data.shared_common_knowledge(), "shared/common_knowledge", Kind::CommonKnowledge),
        (data.common_skills(), "common_skills", Kind::Skills),
        (data.users(), "shared/users", Kind::Users),
    ]
}

/// Where the file of a memory path is: shared prefixes lead to the shared trees, everything else to the Anima's own.
pub(crate) fn locate(dir: &AnimaDir, path: &str) -> (PathBuf, String) {
    let data = dir.data();
    let shared: [(&str, PathBuf); 5] = [
        ("common_knowledge", data.common_knowledge()),
        ("shared/common_knowledge", data.shared_common_knowledge()),
        ("common_skills", data.common_skills()),
        ("shared/users", data.users()),
        ("reference", data.root().join("reference")),
    ];
    for (prefix, root) in shared {
        if let Some(rest) = path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')) {
            return (root, rest.to_owned());
        }
    }
    (dir.root().to_owned(), path.to_owned())
}

/// The kind of a memory path, when it is indexed at all.
pub(crate) fn kind_of(path: &str, activity_from: NaiveDate) -> Option<Kind> {
    let mut parts = path.split('/');
    let name = path.rsplit('/').next().unwrap_or_default();
    if path.split('/').any(|part| part == "archive" || part.starts_with('.')) {
        return None;
    }
    let markdown = has_extension(name, "md");
    let record = has_extension(name, "jsonl");
    let kind = match (parts.next()?, parts.next()) {
        ("knowledge", Some(_)) if markdown => Kind::Knowledge,
        ("episodes", Some(_)) if markdown => Kind::Episodes,
        ("procedures", Some(_)) if markdown => Kind::Procedures,
        ("skills" | "common_skills", Some(_)) if name == "SKILL.md" => Kind::Skills,
        ("common_knowledge", Some(_)) if markdown => Kind::CommonKnowledge,
        ("shared", Some("common_knowledge")) if markdown => Kind::CommonKnowledge,
        ("shared", Some("users")) if markdown => Kind::Users,
        ("state", Some("conversation.json")) => Kind::Conversation,
        ("state", Some("conversations")) if has_extension(name, "json") => Kind::Conversation,
        ("state", Some("current_state.md" | "pending.md" | "plans")) if markdown => Kind::State,
        ("transcripts", Some(_)) if record => Kind::Conversation,
        // a day of the log leaves the index after three days; it lives on in episodes and transcripts
        ("activity_log", Some(_)) if record => {
            let day = name.strip_suffix(".jsonl").and_then(|stem| NaiveDate::parse_from_str(stem, "%Y-%m-%d").ok())?;
            (day >= activity_from).then_some(Kind::ActivityLog)?
        }
        _ => return None,
    };
    Some(kind)
}

/// The first day of the activity log that is searched.
pub(crate) fn activity_from(today: NaiveDate) -> NaiveDate {
    // "the last three days" and today
    today.checked_sub_days(Days::new(3)).unwrap_or(today)
}

/// Every file that belongs in the index, in the order of their paths.
///
/// # Errors
///
/// A tree that cannot be read is logged and passed over; so is what lies in it.
pub(crate) fn walk(dir: &AnimaDir, ignored: &Ignored, today: NaiveDate) -> Vec<Found> {
    let from = activity_from(today);
    let mut found = BTreeMap::new();
    for (root, prefix, _) in trees(dir) {
        descend(&root, prefix, 0, &mut |path, file| {
            if let Some(kind) = kind_of(&path, from)
                && !ignored.matches(&path, &file)
                && let Some(Some((mtime_ns, size))) = stat(&file).log_err("look at a memory file")
            {
                found.insert(path.clone(), Found { path, file, kind, mtime_ns, size });
            }
        });
    }
    found.into_values().collect()
}

/// One file, as it is now; `None` when it is gone or not memory.
pub(crate) fn look(dir: &AnimaDir, ignored: &Ignored, path: &MemoryPath, today: NaiveDate) -> Option<Found> {
    let kind = kind_of(path.as_str(), activity_from(today))?;
    let (root, rest) = locate(dir, path.as_str());
    let file = root.join(rest);
    if ignored.matches(path.as_str(), &file) {
        return None;
    }
    let (mtime_ns, size) = stat(&file).log_err("look at a memory file")??;
    Some(Found { path: path.as_str().to_owned(), file, kind, mtime_ns, size })
}

/// Deeper trees than this are a loop or a mistake.
const MAX_DEPTH: usize = 16;

fn descend(root: &Path, prefix: &str, depth: usize, each: &mut dyn FnMut(String, PathBuf)) {
    let entries = match fs_err::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            tracing::warn!(%error, "a directory of memory cannot be read");
            return;
        }
    };
    for entry in entries {
        let Some(entry) = entry.log_err("read a directory of memory") else { continue };
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || name == "archive" || name.contains('\\') {
            continue;
        }
        let path = format!("{prefix}/{name}");
        let Some(kind) = entry.file_type().log_err("read a directory of memory") else { continue };
        if kind.is_dir() {
            if depth < MAX_DEPTH {
                descend(&entry.path(), &path, depth + 1, each);
            }
        } else if kind.is_file() {
            each(path, entry.path());
        }
    }
}

/// Time of change and size of a regular file.
fn stat(file: &Path) -> Result<Option<(i64, u64)>, FileError> {
    match fs_err::metadata(file) {
        Ok(facts) if facts.is_file() => {
            let modified = facts.modified().map_err(|error| FileError::io("look at", file, error))?;
            let mtime = modified
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
            Ok(Some((mtime, facts.len())))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::io("look at", file, error)),
    }
}

/// The patterns of `.ragignore`: one a line, `*` and `?` as in a shell but crossing `/`, `#` for comments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ignored {
    patterns: Vec<String>,
}

impl Ignored {
    /// Reads them; a file that cannot be read ignores nothing and is logged.
    pub(crate) fn read(dir: &AnimaDir) -> Self {
        let file = dir.data().root().join(".ragignore");
        let text =
            animaworks_core::fs::read_text_if_exists(&file).log_err("read .ragignore").flatten().unwrap_or_default();
        let patterns = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self { patterns: patterns.map(str::to_owned).collect() }
    }

    fn matches(&self, path: &str, file: &Path) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let full = file.to_string_lossy();
        let name = path.rsplit('/').next().unwrap_or_default();
        self.patterns.iter().any(|pattern| [name, path, &full].into_iter().any(|text| wild(pattern, text)))
    }
}

/// Whether a pattern with `*`, `?` and `[…]` fits a whole text.
fn wild(pattern: &str, text: &str) -> bool {
    animaworks_core::mode::fnmatch(pattern, text)
}
