//! The Markdown files of a directory, in the order of their names.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use animaworks_core::ResultExt;

/// A file as the file system shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The path from the directory, with `/`.
    pub(super) source: String,
    pub(super) path: PathBuf,
    pub(super) mtime_ns: i64,
    pub(super) size: i64,
}

/// Every memory file. Hidden entries, other people's packages and links to directories are passed over;
/// of `.claude` itself only the files at its top are memory.
pub(super) fn files(dir: &Path) -> Vec<Found> {
    let deep = dir.file_name().is_none_or(|name| name != ".claude");
    let mut found = Vec::new();
    visit(dir, "", deep, &mut found);
    found.sort_unstable_by(|a, b| a.source.cmp(&b.source));
    found
}

fn visit(dir: &Path, above: &str, deep: bool, found: &mut Vec<Found>) {
    let Some(entries) = fs_err::read_dir(dir).log_err("list a memory directory") else { return };
    for entry in entries {
        let Some(entry) = entry.log_err("list a memory directory") else { continue };
        let name = entry.file_name();
        // a name that is not UTF-8 could not be told to anybody
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let Some(kind) = entry.file_type().log_err("look at a memory file") else { continue };
        let source = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        if kind.is_dir() {
            if deep && !matches!(name, "node_modules" | "target") {
                visit(&entry.path(), &source, deep, found);
            }
            continue;
        }
        if !super::is_memory(Path::new(name)) {
            continue;
        }
        // the target of a link is read, so its times count
        let data = if kind.is_symlink() { fs_err::metadata(entry.path()) } else { entry.metadata() };
        let Some(data) = data.log_err("look at a memory file") else { continue };
        if data.is_file() {
            let mtime_ns = data.mtime().saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec());
            let size = i64::try_from(data.len()).unwrap_or(i64::MAX);
            found.push(Found { source, path: entry.path(), mtime_ns, size });
        }
    }
}
