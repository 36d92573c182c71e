//! The file tools: Read, Write, Edit, Grep, Glob, list_directory (exec spec §4.5, §5.3).
//!
//! They and the shell follow one rule, [`FileAccess`]. What has been
//! checked is what is opened: files are reached without following links, so that a
//! link put in between cannot lead elsewhere.

mod edit;
mod glob;
mod grep;
mod list;
pub(crate) mod pinned;
mod read;
mod write;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use animaworks_core::{
    Locale, Origin, ThreadId, Tool, ToolContext, ToolError, ToolOutput, Trust, Typed,
    error::{ErrorKind, Fault, ResultExt},
    fs::FileError,
    t,
};

use crate::permission::{FileAccess, OwnerPermissions, Refusal, Want};

/// The largest file that is read or changed as a whole.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The file tools of one Anima.
pub fn file_tools(permissions: &Arc<OwnerPermissions>, locale: Locale) -> Vec<Arc<dyn Tool>> {
    let on = Desk { permissions: permissions.clone(), seen: Arc::default() };
    vec![
        Arc::new(Typed::localized(read::Read(on.clone()), locale)),
        Arc::new(Typed::localized(write::Write(on.clone()), locale)),
        Arc::new(Typed::localized(edit::Edit(on.clone()), locale)),
        Arc::new(Typed::localized(grep::Grep(on.clone()), locale)),
        Arc::new(Typed::localized(glob::Glob(on.clone()), locale)),
        Arc::new(Typed::localized(list::ListDirectory(on), locale)),
    ]
}

/// What the file tools share: the rules, and what has been read.
#[derive(Debug, Clone)]
struct Desk {
    permissions: Arc<OwnerPermissions>,
    seen: Arc<Mutex<BTreeMap<(ThreadId, PathBuf), u64>>>,
}

impl Desk {
    /// Does blocking work under the rules in force now.
    async fn at<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FileAccess) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let permissions = self.permissions.clone();
        off_worker(move || work(&permissions.files())).await
    }

    /// Remembers what a conversation has seen of a file.
    fn note(&self, thread: &ThreadId, path: &Path, bytes: &[u8]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert((thread.clone(), path.to_owned()), fingerprint(bytes));
    }

    /// Whether a conversation has seen a file as it is now.
    fn knows(&self, thread: &ThreadId, path: &Path, bytes: &[u8]) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&(thread.clone(), path.to_owned())) == Some(&fingerprint(bytes))
    }
}

/// The real path of an argument, when it may be used so.
fn allowed(
    files: &FileAccess,
    path: &str,
    want: Want,
    tool: &'static str,
    locale: Locale,
) -> Result<PathBuf, ToolError> {
    files.check(path, want).map_err(|refusal: Refusal| refusal.for_model(tool, locale))
}

/// The bytes of a file, or `None` when there is none.
fn bytes_of(real: &Path, given: &str, locale: Locale) -> Result<Option<Vec<u8>>, ToolError> {
    match pinned::read(real, MAX_FILE_BYTES) {
        Ok(pinned::Content::File(bytes)) => Ok(Some(bytes)),
        Ok(pinned::Content::TooLarge(bytes)) => {
            Err(ToolError::failed("InvalidArguments", t!(locale, "tools.file.too_large", path = given, bytes = bytes)))
        }
        Ok(pinned::Content::NoFile) => {
            Err(ToolError::failed("InvalidArguments", t!(locale, "tools.file.not_a_file", path = given)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(for_model(error, given, locale)),
    }
}

/// A file trouble in the model's words; what is the machine's fault ends the turn.
fn for_model(error: FileError, given: &str, locale: Locale) -> ToolError {
    match error.kind() {
        ErrorKind::NotFound => ToolError::failed("FileNotFound", t!(locale, "tools.file.not_found", path = given)),
        ErrorKind::Permission | ErrorKind::Corrupt => {
            ToolError::failed("PermissionDenied", t!(locale, "tools.file.system_refused", path = given))
        }
        _ => host(error),
    }
}

pub(crate) fn host(error: FileError) -> ToolError {
    ToolError::Host(Box::new(error))
}

/// What a file says is checked before acting on it, or only information when it says it comes from outside.
fn labelled(output: ToolOutput, text: &str) -> ToolOutput {
    let said = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---")).and_then(|(head, _)| {
        head.lines().find_map(|line| line.strip_prefix("origin:")).map(|value| value.trim().trim_matches(['"', '\'']))
    });
    let marked = said.map(Origin::of).filter(|origin| origin.trust() < Trust::Medium);
    output.from_origin(marked.unwrap_or_else(|| Origin::of(Origin::MIXED)))
}

fn fingerprint(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Text with the line ends of the file it goes into.
fn with_line_ends(text: &str, crlf: bool) -> String {
    if crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() }
}

/// Whether most lines of a text end as on Windows.
fn is_crlf(text: &str) -> bool {
    let windows = text.matches("\r\n").count();
    windows > 0 && windows * 2 >= text.matches('\n').count()
}

/// Runs blocking work off the async workers.
pub(crate) async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ToolError::Host(Box::new(error))),
    }
}

/// Where a search starts, with what is shown instead of the long real path.
struct Start {
    real: PathBuf,
    shown: String,
}

impl Start {
    fn new(files: &FileAccess, path: Option<&str>, tool: &'static str, cx: Locale) -> Result<Self, ToolError> {
        let given = path.unwrap_or(".");
        let real = allowed(files, given, Want::Read, tool, cx)?;
        let shown = match given.trim_end_matches('/') {
            "." | "" => String::new(),
            given => format!("{given}/"),
        };
        Ok(Self { real, shown })
    }

    /// The readable files below, in the order of names; links are not followed.
    fn files(&self, access: &FileAccess, respect_ignored: bool) -> Vec<(PathBuf, String)> {
        let walk = ignore::WalkBuilder::new(&self.real)
            .hidden(false)
            .git_ignore(respect_ignored)
            .git_exclude(respect_ignored)
            .git_global(false)
            .ignore(respect_ignored)
            .parents(false)
            .require_git(false)
            .follow_links(false)
            .max_depth(Some(40))
            .filter_entry(|entry| entry.file_name() != ".git")
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .build();
        walk.filter_map(|entry| entry.ignore("what cannot be read is not found"))
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .filter(|entry| access.rule(entry.path(), Want::Read).is_ok())
            .map(|entry| {
                let inside = entry.path().strip_prefix(&self.real).unwrap_or(entry.path());
                let shown = if inside.as_os_str().is_empty() {
                    self.shown.trim_end_matches('/').to_owned()
                } else {
                    format!("{}{}", self.shown, inside.display())
                };
                (entry.into_path(), shown)
            })
            .collect()
    }
}

/// The thread and language of a call, for work on another thread.
fn surroundings(cx: &ToolContext) -> (ThreadId, Locale) {
    (cx.thread.clone(), cx.locale)
}

#[cfg(test)]
mod tests;
