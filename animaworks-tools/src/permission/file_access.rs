//! Which files an Anima may read and write (exec spec §5.3).

use std::{
    fmt::Debug,
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use animaworks_core::{AnimaDir, AnimaName, DataDir, error::ResultExt, organisation::Organisation};

use super::{Access, EffectiveTable, Reason, Refusal};

/// Who works for whom, asked at every call so that a change counts at once.
pub trait Descendants: Debug + Send + Sync {
    /// Everybody below an Anima, at any depth. Whoever is part of a circle is below nobody.
    fn descendants(&self, of: &AnimaName) -> Vec<AnimaName>;
}

/// Nobody works for anybody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDescendants;

impl Descendants for NoDescendants {
    fn descendants(&self, _: &AnimaName) -> Vec<AnimaName> {
        Vec::new()
    }
}

/// The organisation as its files say at this moment.
#[derive(Debug, Clone)]
pub struct OrganisationFiles(pub DataDir);

impl Descendants for OrganisationFiles {
    /// Blocks. Files that cannot be read show nobody below.
    fn descendants(&self, of: &AnimaName) -> Vec<AnimaName> {
        let organisation = Organisation::load(&self.0).log_err("who works for whom");
        organisation.iter().flat_map(|all| all.descendants(of)).cloned().collect()
    }
}

/// What a call wants with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Its content, or the names in a directory.
    Read,
    /// To change, make or remove it.
    Write,
}

/// The rule over one Anima's files.
#[derive(Debug, Clone)]
pub struct FileAccess {
    dir: AnimaDir,
    own: PathBuf,
    data: PathBuf,
    table: Arc<EffectiveTable>,
    org: Arc<dyn Descendants>,
}

/// Files directly in an Anima's directory that only its owner and the framework write.
pub(super) const PROTECTED: &[&str] =
    &["permissions.md", "permissions.json", "identity.md", "bootstrap.md", "status.json"];

/// Directories in an Anima's directory that only the framework writes: the record of what happened, what
/// sessions share about trust, and the index.
pub(super) const PROTECTED_DIRS: &[&str] = &["activity_log", "run", "index", "token_usage"];

/// The one place under `run/` that is the Anima's: its temporary files.
pub(crate) const PRIVATE: &str = "run/tmp";

/// Places of the organisation that everybody reads.
const SHARED: &[&str] = &["shared", "common_knowledge", "common_skills", "reference", "company"];

/// Places of the organisation that everybody writes.
const SHARED_WRITABLE: &[&str] = &["shared/common_knowledge", "shared/users"];

/// What a supervisor reads of a descendant.
const BELOW_READ: &[&str] = &[
    "activity_log",
    "state/current_state.md",
    "state/pending.md",
    "state/task_queue.jsonl",
    "state/pending",
    "state/plans",
    "identity.md",
];

/// What a supervisor reads and writes of a descendant.
const BELOW_WRITE: &[&str] = &["cron.md", "heartbeat.md", "status.json", "injection.md"];

impl FileAccess {
    /// The rule of one Anima. Blocks, to find its real directory.
    pub fn new(dir: AnimaDir, table: Arc<EffectiveTable>, org: Arc<dyn Descendants>) -> Self {
        let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (own, data) = (real(dir.root()), real(dir.data().root()));
        Self { dir, own, data, table, org }
    }

    /// The Anima's directory, without links.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// The organisation's directory, without links.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The directory's words.
    pub fn dir(&self) -> &AnimaDir {
        &self.dir
    }

    pub(crate) fn table(&self) -> &EffectiveTable {
        &self.table
    }

    /// The real path of what a tool was given, when the Anima may do that with it. Blocks.
    ///
    /// Relative paths start at the own directory; `animas/…`, `common_knowledge/…`, `shared/…` and
    /// the like at the organisation's.
    ///
    /// # Errors
    ///
    /// [`Refusal`] says which rule.
    pub fn check(&self, given: &str, want: Want) -> Result<PathBuf, Refusal> {
        self.check_from(&self.own, given, want)
    }

    /// The same for a relative path that starts somewhere else.
    pub(crate) fn check_from(&self, base: &Path, given: &str, want: Want) -> Result<PathBuf, Refusal> {
        if given.contains('\0') || given.chars().any(crate::shell::is_hidden) {
            return Err(Refusal::new(Reason::Hidden, given.escape_debug().to_string()));
        }
        let real = real_path(&self.place(base, given))
            .map_err(|error| Refusal::new(Reason::BadPath, format!("{given} ({})", error.kind())))?;
        self.rule(&real, want).map_err(|reason| Refusal::new(reason, given))?;
        Ok(real)
    }

    fn place(&self, base: &Path, given: &str) -> PathBuf {
        let path = Path::new(given);
        let first = path.components().next();
        let shared = match first {
            Some(Component::Normal(name)) => {
                name == "animas" || SHARED.iter().any(|shared| name == std::ffi::OsStr::new(shared))
            }
            _ => false,
        };
        // a directory of that name in the own directory comes first
        if shared && !base.join(first.map_or(Path::new("").as_ref(), Component::as_os_str)).exists() {
            self.data.join(path)
        } else {
            base.join(path)
        }
    }

    /// The decision about a real path: the first rule that speaks of it counts.
    pub(crate) fn rule(&self, real: &Path, want: Want) -> Result<(), Reason> {
        if self.table.broken.is_some() {
            return Err(Reason::Broken);
        }
        let denied = |path: &Path| {
            self.table.files.iter().any(|rule| rule.access == Access::Denied && path.starts_with(&rule.path))
        };
        if denied(real) {
            return Err(Reason::Denied);
        }
        if let Ok(inside) = real.strip_prefix(&self.own) {
            return self.own_rule(inside, want);
        }
        if let Ok(inside) = real.strip_prefix(&self.data) {
            return self.organisation_rule(inside, want);
        }
        let granted = self
            .table
            .files
            .iter()
            .filter(|rule| real.starts_with(&rule.path))
            // the rule nearest to the file counts, and of two for one place the narrower
            .max_by_key(|rule| (rule.path.components().count(), std::cmp::Reverse(rule.access)));
        match (granted.map(|rule| rule.access), want) {
            (Some(Access::ReadWrite), _) | (Some(Access::ReadOnly), Want::Read) => Ok(()),
            (Some(Access::ReadOnly), Want::Write) => Err(Reason::ReadOnly),
            (Some(Access::Denied) | None, _) => Err(Reason::Outside),
        }
    }

    fn own_rule(&self, inside: &Path, want: Want) -> Result<(), Reason> {
        if want == Want::Read {
            return Ok(());
        }
        if inside.as_os_str().is_empty() {
            return Err(Reason::Protected);
        }
        let inside = folded(inside);
        if is(&inside, "identity.md") && self.own.join("bootstrap.md").exists() {
            return Ok(());
        }
        if below(&inside, PRIVATE) && !is(&inside, PRIVATE) {
            return Ok(());
        }
        let protected = PROTECTED.iter().any(|file| is(&inside, file))
            || PROTECTED_DIRS.iter().any(|directory| below(&inside, directory));
        if protected { Err(Reason::Protected) } else { Ok(()) }
    }

    fn organisation_rule(&self, inside: &Path, want: Want) -> Result<(), Reason> {
        let folded = folded(inside);
        if is_secret(&folded) {
            return Err(Reason::Secret);
        }
        let mut parts = inside.components();
        let first = parts.next().map(|part| part.as_os_str().to_string_lossy().to_lowercase());
        match first.as_deref() {
            None => Err(Reason::Outside),
            Some("animas") => self.colleague_rule(parts.as_path(), want),
            Some(_) if below(&folded, "shared/inbox") => {
                let own = format!("shared/inbox/{}", self.dir.name());
                if want == Want::Read && below(&folded, &own) { Ok(()) } else { Err(Reason::OtherAnima) }
            }
            Some(first) if SHARED.contains(&first) => {
                let writable = SHARED_WRITABLE.iter().any(|place| below(&folded, place) && !is(&folded, place));
                if want == Want::Read || writable { Ok(()) } else { Err(Reason::ReadOnly) }
            }
            Some(_) => Err(Reason::Outside),
        }
    }

    /// What is seen of another Anima: of a descendant the seed's table, of everybody else nothing.
    fn colleague_rule(&self, inside: &Path, want: Want) -> Result<(), Reason> {
        let mut parts = inside.components();
        let Some(name) = parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned()) else {
            return Err(Reason::OtherAnima);
        };
        if !self.org.descendants(self.dir.name()).iter().any(|below| below.as_str() == name) {
            return Err(Reason::OtherAnima);
        }
        let rest = folded(parts.as_path());
        let within = |places: &[&str]| places.iter().any(|place| below(&rest, place));
        match want {
            Want::Read if rest.is_empty() || within(BELOW_READ) || within(BELOW_WRITE) => Ok(()),
            Want::Write if BELOW_WRITE.iter().any(|file| is(&rest, file)) => Ok(()),
            Want::Write if within(BELOW_READ) => Err(Reason::ReadOnly),
            _ => Err(Reason::OtherAnima),
        }
    }

    /// Whether a real path is the status of somebody who works for this Anima: written key by key only.
    pub(crate) fn is_colleague_status(&self, real: &Path) -> bool {
        real.strip_prefix(self.data.join("animas")).is_ok_and(|inside| {
            inside.components().count() == 2
                && is(&folded(inside.strip_prefix(first(inside)).unwrap_or(inside)), "status.json")
        }) && !real.starts_with(&self.own)
    }

    /// What the kernel lets a command read and write: the same rule as a list of real places. Blocks.
    ///
    /// A file directly in the own directory can be written when it is there; new ones cannot be
    /// made there by a command, since the kernel cannot let a directory be changed all but one file of it.
    pub(crate) fn places(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut read, mut write) = (vec![self.own.clone()], vec![self.own.join(PRIVATE)]);
        for (entry, is_dir) in entries(&self.own) {
            let name = entry.file_name().map(Path::new).map(folded).unwrap_or_default();
            let inside_only = is_dir && PROTECTED_DIRS.iter().any(|directory| is(&name, directory));
            if !inside_only && self.rule(&entry, Want::Write).is_ok() {
                write.push(entry);
            }
        }
        for place in SHARED {
            for (entry, _) in entries(&self.data.join(place)) {
                let name = entry.strip_prefix(&self.data).map(folded).unwrap_or_default();
                if name == "shared/inbox" {
                    read.push(entry.join(self.dir.name().as_str()));
                } else if self.rule(&entry, Want::Read).is_ok() {
                    read.push(entry);
                }
            }
        }
        write.extend(SHARED_WRITABLE.iter().map(|place| self.data.join(place)));
        for name in self.org.descendants(self.dir.name()) {
            let theirs = self.data.join("animas").join(name.as_str());
            read.extend(BELOW_READ.iter().chain(BELOW_WRITE).map(|place| theirs.join(place)));
        }
        let shut: Vec<PathBuf> = self
            .table
            .files
            .iter()
            .filter(|rule| rule.access == Access::Denied)
            .map(|rule| rule.path.clone())
            .chain([self.data.clone()])
            .chain(["/proc", "/sys", "/dev", "/run", "/boot"].map(PathBuf::from))
            .collect();
        for rule in &self.table.files {
            if rule.access == Access::Denied {
                continue;
            }
            let Ok(root) = fs_err::canonicalize(&rule.path) else { continue };
            let narrower = self.table.files.iter().filter(|other| {
                other.access == Access::ReadOnly && other.path != rule.path && other.path.starts_with(&rule.path)
            });
            if rule.access == Access::ReadWrite {
                let shut: Vec<PathBuf> = shut.iter().cloned().chain(narrower.map(|rule| rule.path.clone())).collect();
                carve(&root, &shut, &mut write);
            }
            carve(&root, &shut, &mut read);
        }
        let denied = |path: &PathBuf| shut.iter().take(shut.len().saturating_sub(6)).any(|rule| path.starts_with(rule));
        read.retain(|path| !denied(path));
        write.retain(|path| !denied(path));
        (read, write)
    }
}

/// What of a tree stays when some places in it are shut: the tree, or its parts around them.
fn carve(root: &Path, shut: &[PathBuf], into: &mut Vec<PathBuf>) {
    if shut.iter().any(|place| root.starts_with(place)) {
        return;
    }
    if !shut.iter().any(|place| place.starts_with(root)) {
        into.push(root.to_owned());
        return;
    }
    for (entry, _) in entries(root) {
        carve(&entry, shut, into);
    }
}

/// What is in a directory, links left out; whether each is a directory.
fn entries(directory: &Path) -> Vec<(PathBuf, bool)> {
    let Ok(entries) = fs_err::read_dir(directory) else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            (kind.is_dir() || kind.is_file()).then(|| (entry.path(), kind.is_dir()))
        })
        .collect()
}

/// Names of files that hold keys, anywhere in the organisation's directory.
fn is_secret(folded: &str) -> bool {
    let name = folded.rsplit('/').next().unwrap_or_default();
    matches!(name, "auth.json" | "credentials.json" | "config.json" | "permissions.global.json" | ".env")
        || name.starts_with("vault.")
}

fn first(path: &Path) -> &Path {
    path.components().next().map_or(Path::new(""), |part| Path::new(part.as_os_str()))
}

/// A path as its names read on a file system that folds case and composes letters.
fn folded(path: &Path) -> String {
    use unicode_normalization::UnicodeNormalization;
    path.to_string_lossy().nfkc().collect::<String>().to_lowercase()
}

fn is(folded: &str, place: &str) -> bool {
    folded == place
}

fn below(folded: &str, place: &str) -> bool {
    folded.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Where a path really leads: links followed, `..` taken after them as the kernel does, names found in
/// whichever Unicode form they have on disk. What does not exist yet stays as written. Blocks.
///
/// # Errors
///
/// A link that leads nowhere, a link in a circle, `..` behind something that does not exist.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut real = PathBuf::from("/");
    let mut missing = false;
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir if missing => return Err(io::ErrorKind::NotFound.into()),
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) if missing => real.push(name),
            Component::Normal(name) => {
                let next = existing_form(&real, &name.to_string_lossy());
                match fs_err::symlink_metadata(&next) {
                    Ok(entry) if entry.is_symlink() => real = fs_err::canonicalize(&next)?,
                    Ok(_) => real = next,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        missing = true;
                        real = next;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(real)
}

/// A name in a directory as it is on disk, or in NFC when it is not there in any form.
pub fn existing_form(directory: &Path, name: &str) -> PathBuf {
    use unicode_normalization::UnicodeNormalization;
    if name.is_ascii() {
        return directory.join(name);
    }
    let nfc: String = name.nfc().collect();
    let nfd: String = name.nfd().collect();
    [name, &nfc, &nfd]
        .into_iter()
        .map(|form| directory.join(form))
        .find(|path| fs_err::symlink_metadata(path).is_ok())
        .unwrap_or_else(|| directory.join(&nfc))
}

#[cfg(test)]
mod tests;
