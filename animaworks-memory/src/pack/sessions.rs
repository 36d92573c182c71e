//! The transcripts a coding agent keeps: listed, read, searched, and moved to an archive and back.
//!
//! Nothing is indexed and nothing is ever written into a transcript. A list looks at names and times
//! only and reads the two ends of those it shows; a search reads until its time is over and says where it stopped.

mod moves;
mod record;

use std::{
    collections::{BTreeSet, HashMap},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use animaworks_core::{
    ErrorKind, Fault, ResultExt,
    config::Env,
    fs::{self, FileError, Jail},
    process,
};
use chrono::{DateTime, Utc};
use rayon::prelude::*;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{OWN_DIR, Settings, settings::global_dir};
pub use record::{Call, Said};

/// What is read of the beginning of a transcript to list it.
const HEAD_BYTES: u64 = 256 << 10;
/// What is read of its end.
const TAIL_BYTES: u64 = 64 << 10;
/// Rows whose ends are remembered.
const REMEMBERED: usize = 5_000;
/// Transcripts that are searched at a time, before the time is looked at.
const AT_A_TIME: usize = 32;
/// Characters around a find.
const AROUND: usize = 80;
/// Bytes of a transcript that one page shows; at least one record is always shown.
const PAGE_BYTES: u64 = 400 << 10;

/// Where transcripts are and where they are moved.
#[derive(Debug)]
pub struct Sessions {
    projects: PathBuf,
    archive: PathBuf,
    registry: PathBuf,
    pins: PathBuf,
    ends: Mutex<HashMap<PathBuf, (i64, u64, Ends)>>,
}

/// One session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub session_id: String,
    /// The directory of its project, as the coding agent names it.
    pub project: String,
    /// Where it worked.
    pub cwd: String,
    /// When it was last written to.
    pub modified_at: DateTime<Utc>,
    /// Its size.
    pub size_bytes: u64,
    /// Whether a process is working in it.
    pub live: bool,
    /// Whether it stays at the top.
    pub pinned: bool,
    /// The first thing that was asked.
    pub first: String,
    /// What it is called.
    pub title: String,
    /// What to type to go on with it.
    pub resume_command: String,
}

/// A part of all sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The rows: pinned ones first, then the newest.
    pub sessions: Vec<Session>,
    /// How many there are.
    pub total: usize,
    /// The projects they belong to, with how many each has.
    pub projects: Vec<(String, usize)>,
}

/// A transcript that has the words, and where.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHit {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// The place in it, in bytes; a page can begin there.
    pub offset: u64,
    /// The text around it.
    pub snippet: String,
}

/// What a search found before its time was over.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHits {
    /// The finds, newest session first.
    pub hits: Vec<SessionHit>,
    /// Transcripts that were looked through, from the newest.
    pub searched: usize,
    /// How many there are.
    pub total: usize,
}

/// A part of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// What was said and done.
    pub said: Vec<Said>,
    /// Lines that could not be understood and were passed over.
    pub damaged: usize,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
    /// The size of the whole.
    pub size_bytes: u64,
}

/// Which transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKey {
    /// The directory of its project.
    pub project: String,
    /// Its id.
    pub id: String,
}

/// Why a session cannot be read or moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It is no id.
    #[error("not a session id: {id}")]
    BadId {
        /// What was given.
        id: String,
    },
    /// There is no such transcript.
    #[error("no session {id}")]
    Missing {
        /// Which.
        id: String,
    },
    /// A process is working in it.
    #[error("session {id} is live")]
    Live {
        /// Which.
        id: String,
    },
    /// The place it would be moved to is taken.
    #[error("there is a session {id} in the way")]
    InTheWay {
        /// Which.
        id: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Fault for SessionError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::BadId { .. } => ErrorKind::InvalidRequest,
            Self::Missing { .. } => ErrorKind::NotFound,
            Self::Live { .. } | Self::InTheWay { .. } => ErrorKind::Conflict,
            Self::File(error) => error.kind(),
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::BadId { .. } => "session_id",
            Self::Missing { .. } => "session_missing",
            Self::Live { .. } => "session_live",
            Self::InTheWay { .. } => "session_in_the_way",
            Self::File(error) => error.code(),
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::BadId { id } | Self::Missing { id } | Self::Live { id } | Self::InTheWay { id } => {
                vec![("id", id.chars().take(60).collect())]
            }
            Self::File(error) => error.fields(),
        }
    }
}

/// A transcript as the file system shows it.
#[derive(Debug, Clone)]
struct Transcript {
    key: SessionKey,
    path: PathBuf,
    mtime_ns: i64,
    size: u64,
}

/// What the two ends of a transcript say.
#[derive(Debug, Clone, Default)]
struct Ends {
    cwd: String,
    first: String,
    title: String,
}

impl Sessions {
    /// The transcripts of this user.
    pub fn of(env: &Env, settings: &Settings) -> Self {
        let claude = env.home().join(".claude");
        let given = |path: &Option<PathBuf>, usual: &str| match path {
            Some(path) => env.absolute(path),
            None => claude.join(usual),
        };
        Self {
            projects: given(&settings.dashboard.transcripts, "projects"),
            archive: given(&settings.dashboard.archive, "projects-archive"),
            registry: claude.join("sessions"),
            pins: global_dir(env).join(OWN_DIR).join("pins.json"),
            ends: Mutex::default(),
        }
    }

    /// A part of the sessions, or of the archived ones, of one project or of all.
    pub fn list(&self, archived: bool, project: Option<&str>, offset: usize, limit: usize) -> Listing {
        let mut all = transcripts(self.root(archived));
        let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for one in &all {
            *counts.entry(one.key.project.clone()).or_default() += 1;
        }
        if let Some(project) = project {
            all.retain(|one| one.key.project == project);
        }
        let (pins, live) = (self.pins(), self.live());
        all.sort_by_key(|one| (!pins.contains(&one.key.id), -one.mtime_ns));
        let total = all.len();
        let shown = all.into_iter().skip(offset).take(limit);
        let sessions = shown.map(|one| self.row(&one, &pins, &live)).collect();
        Listing { sessions, total, projects: counts.into_iter().collect() }
    }

    /// Looks for all words of a question in what was said, from the `from`-th newest transcript on, until there are
    /// `most` finds, nothing is left, or `may_go_on` says no.
    pub fn search(&self, question: &str, from: usize, most: usize, may_go_on: &dyn Fn() -> bool) -> SessionHits {
        let mut all = transcripts(&self.projects);
        all.sort_by_key(|one| -one.mtime_ns);
        let words: Vec<Regex> = question.split_whitespace().take(8).filter_map(word).collect();
        let mut found = SessionHits { hits: Vec::new(), searched: from.min(all.len()), total: all.len() };
        if words.is_empty() {
            return found;
        }
        let (pins, live) = (self.pins(), self.live());
        for part in all.get(found.searched..).unwrap_or_default().chunks(AT_A_TIME) {
            let finds: Vec<_> = part.par_iter().filter_map(|one| Some((one, find(one, &words)?))).collect();
            for (one, (offset, snippet)) in finds {
                found.hits.push(SessionHit { session: self.row(one, &pins, &live), offset, snippet });
            }
            found.searched += part.len();
            if found.hits.len() >= most || !may_go_on() {
                break;
            }
        }
        found
    }

    /// What was said from a place on.
    ///
    /// # Errors
    ///
    /// [`SessionError`]; damaged lines are counted.
    pub fn read(&self, key: &SessionKey, archived: bool, from: u64) -> Result<Page, SessionError> {
        let path = Self::locate(self.root(archived), key)?;
        let mut file = open(&path)?;
        let size = file.metadata().map_err(|error| FileError::io("look at", &path, error))?.len();
        let read = |error| FileError::io("read", &path, error);
        file.seek(SeekFrom::Start(from.min(size))).map_err(read)?;
        let mut reader = std::io::BufReader::new(file);
        let mut page = Page { said: Vec::new(), damaged: 0, next: None, size_bytes: size };
        let mut at = from.min(size);
        let mut line = Vec::new();
        loop {
            line.clear();
            let n = std::io::BufRead::read_until(&mut reader, b'\n', &mut line).map_err(read)?;
            if n == 0 {
                return Ok(page);
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(record) => page.said.extend(record::said(&record, at)),
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => {
                    tracing::debug!(%error, "a line of a transcript is passed over");
                    page.damaged += 1;
                }
            }
            at += n as u64;
            if at - from >= PAGE_BYTES && !page.said.is_empty() && at < size {
                page.next = Some(at);
                return Ok(page);
            }
        }
    }

    fn root(&self, archived: bool) -> &Path {
        if archived { &self.archive } else { &self.projects }
    }

    /// The file of a transcript below a root.
    fn locate(root: &Path, key: &SessionKey) -> Result<PathBuf, SessionError> {
        if !is_id(&key.id) {
            return Err(SessionError::BadId { id: key.id.clone() });
        }
        let missing = || SessionError::Missing { id: key.id.clone() };
        let plain =
            !key.project.is_empty() && !key.project.starts_with('.') && !key.project.contains(['/', '\\', '\0']);
        if !plain || !root.is_dir() {
            return Err(missing());
        }
        let path = Jail::new(root)?.resolve(&format!("{}/{}.jsonl", key.project, key.id))?;
        if path.is_file() { Ok(path) } else { Err(missing()) }
    }

    fn row(&self, one: &Transcript, pins: &BTreeSet<String>, live: &BTreeSet<String>) -> Session {
        let ends = self.ends(one);
        let id = one.key.id.clone();
        let resume_command = if ends.cwd.is_empty() {
            format!("claude --resume {id}")
        } else {
            format!("cd {} && claude --resume {id}", quoted(&ends.cwd))
        };
        Session {
            pinned: pins.contains(&id),
            live: live.contains(&id),
            session_id: id,
            project: one.key.project.clone(),
            cwd: ends.cwd,
            modified_at: DateTime::from_timestamp_nanos(one.mtime_ns),
            size_bytes: one.size,
            title: if ends.title.is_empty() { ends.first.clone() } else { ends.title },
            first: ends.first,
            resume_command,
        }
    }

    /// What the ends of a transcript say; read again only when it has changed.
    fn ends(&self, one: &Transcript) -> Ends {
        let mut known = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((mtime, size, ends)) = known.get(&one.path)
            && (*mtime, *size) == (one.mtime_ns, one.size)
        {
            return ends.clone();
        }
        let ends = read_ends(one).log_err("read a transcript").unwrap_or_default();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(one.path.clone(), (one.mtime_ns, one.size, ends.clone()));
        ends
    }

    /// The ids of sessions whose process is running.
    fn live(&self) -> BTreeSet<String> {
        #[derive(Deserialize)]
        struct Entry {
            pid: i32,
            #[serde(alias = "sessionId")]
            session_id: String,
        }
        let Ok(entries) = fs_err::read_dir(&self.registry) else { return BTreeSet::new() };
        let entries = entries.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind == "json"));
        let read =
            entries.filter_map(|entry| fs::read_json::<Entry>(&entry.path()).ignore("a stale entry means nothing"));
        read.filter(|entry| process::is_running(entry.pid)).map(|entry| entry.session_id).collect()
    }
}

/// Every transcript below a root.
fn transcripts(root: &Path) -> Vec<Transcript> {
    let Ok(projects) = fs_err::read_dir(root) else { return Vec::new() };
    let mut dirs: Vec<PathBuf> = projects.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    dirs.retain(|dir| dir.file_name().is_some_and(|name| name.to_str().is_some_and(|name| !name.starts_with('.'))));
    dirs.par_iter().flat_map_iter(|dir| in_project(dir)).collect()
}

fn in_project(dir: &Path) -> Vec<Transcript> {
    use std::os::unix::fs::MetadataExt;
    let project = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(entries) = fs_err::read_dir(dir).log_err("list transcripts") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")).filter(|id| is_id(id)) else {
            continue;
        };
        // a link could lead anywhere, and moving it would not be moving a transcript
        let Some(data) = entry.metadata().ignore("it may be gone already").filter(std::fs::Metadata::is_file) else {
            continue;
        };
        let mtime_ns = data.mtime().saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec());
        let key = SessionKey { project: project.clone(), id: id.to_owned() };
        found.push(Transcript { key, path: entry.path(), mtime_ns, size: data.len() });
    }
    found
}

/// Whether a text is a UUID in its usual form.
fn is_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn open(path: &Path) -> Result<std::fs::File, FileError> {
    let file = fs_err::File::open(path).map_err(|error| FileError::io("open", path, error))?;
    Ok(file.into_parts().0)
}

fn read_ends(one: &Transcript) -> Result<Ends, FileError> {
    let mut file = open(&one.path)?;
    let read = |error| FileError::io("read", &one.path, error);
    let mut head = Vec::new();
    (&mut file).take(HEAD_BYTES).read_to_end(&mut head).map_err(read)?;
    let mut tail = Vec::new();
    if one.size > HEAD_BYTES {
        file.seek(SeekFrom::Start(one.size.saturating_sub(TAIL_BYTES).max(HEAD_BYTES))).map_err(read)?;
        file.take(TAIL_BYTES).read_to_end(&mut tail).map_err(read)?;
    }
    let mut ends = Ends::default();
    let mut titles = record::Titles::default();
    for line in head.split(|byte| *byte == b'\n').chain(tail.split(|byte| *byte == b'\n')) {
        // the line that was cut is not whole, and a damaged one says nothing
        let Some(record) = serde_json::from_slice::<Value>(line).ignore("half a line") else { continue };
        titles.see(&record);
        if ends.cwd.is_empty() {
            record.get("cwd").and_then(Value::as_str).unwrap_or_default().clone_into(&mut ends.cwd);
        }
        if ends.first.is_empty() {
            ends.first = record::asked(&record).unwrap_or_default();
        }
    }
    ends.title = titles.best();
    Ok(ends)
}

/// A word as it is looked for; capital letters do not matter.
fn word(word: &str) -> Option<Regex> {
    RegexBuilder::new(&regex::escape(word)).case_insensitive(true).build().log_err("read a word of a question")
}

/// The first place of a transcript where the first word is said, if all words are said in it.
fn find(one: &Transcript, words: &[Regex]) -> Option<(u64, String)> {
    let bytes = fs_err::read(&one.path).log_err("read a transcript")?;
    // most transcripts do not have the words at all: no line is understood before all of them are there
    if !words.iter().all(|word| word.is_match(&bytes)) {
        return None;
    }
    let mut missing: Vec<&Regex> = words.iter().collect();
    let mut place = None;
    let mut at = 0_u64;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if missing.iter().any(|word| word.is_match(line))
            && let Some(record) = serde_json::from_slice::<Value>(line).ignore("a damaged line says nothing")
        {
            if let Some(said) = record::said(&record, at) {
                let text = said.text.as_bytes();
                if place.is_none()
                    && let Some(found) = missing.iter().find_map(|word| word.find(text))
                {
                    place = Some((at, around(&said.text, found.start())));
                }
                missing.retain(|word| !word.is_match(text));
            }
            if missing.is_empty() {
                return place;
            }
        }
        at += line.len() as u64;
    }
    None
}

/// The text around a byte.
fn around(text: &str, at: usize) -> String {
    let before: Vec<char> = text.get(..at).unwrap_or_default().chars().rev().take(AROUND).collect();
    let behind = text.get(at..).unwrap_or_default().chars().take(2 * AROUND);
    before.into_iter().rev().chain(behind).map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}

/// A path as it can be typed in a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests;
