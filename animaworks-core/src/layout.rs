//! Where everything lives on disk (memory spec §1): paths only, nothing is read or written here.

use std::path::{Path, PathBuf};

use chrono::NaiveDate;

use crate::{
    ids::{AnimaName, BoardName, TaskId, ThreadId},
    trigger::SessionKind,
};

/// The data directory of one organisation, `~/.animaworks` unless somebody says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataDir {
    root: PathBuf,
}

impl DataDir {
    /// The organisation at an absolute path.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.json`; it exists once the directory has been initialised.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.json")
    }

    /// `models.json`.
    pub fn models(&self) -> PathBuf {
        self.root.join("models.json")
    }

    /// `auth.json`.
    pub fn auth(&self) -> PathBuf {
        self.root.join("auth.json")
    }

    /// `animas/`.
    pub fn animas(&self) -> PathBuf {
        self.root.join("animas")
    }

    /// The directory of one Anima.
    pub fn anima(&self, name: &AnimaName) -> AnimaDir {
        AnimaDir { root: self.animas().join(name.as_str()), name: name.clone(), data: self.clone() }
    }

    /// `shared/`.
    pub fn shared(&self) -> PathBuf {
        self.root.join("shared")
    }

    /// `shared/users/`.
    pub fn users(&self) -> PathBuf {
        self.shared().join("users")
    }

    /// `shared/channels/{board}.jsonl`.
    pub fn board(&self, board: &BoardName) -> PathBuf {
        self.shared().join("channels").join(format!("{board}.jsonl"))
    }

    /// `shared/channels/{board}.meta.json`.
    pub fn board_meta(&self, board: &BoardName) -> PathBuf {
        self.shared().join("channels").join(format!("{board}.meta.json"))
    }

    /// `shared/inbox/{name}/`.
    pub fn inbox(&self, name: &AnimaName) -> PathBuf {
        self.shared().join("inbox").join(name.as_str())
    }

    /// `common_knowledge/`, shipped with the program.
    pub fn common_knowledge(&self) -> PathBuf {
        self.root.join("common_knowledge")
    }

    /// `shared/common_knowledge/`, written by the organisation.
    pub fn shared_common_knowledge(&self) -> PathBuf {
        self.shared().join("common_knowledge")
    }

    /// `common_skills/`.
    pub fn common_skills(&self) -> PathBuf {
        self.root.join("common_skills")
    }

    /// `prompts/`, what an operator changed of the shipped prompts.
    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    /// `company/vision.md`.
    pub fn vision(&self) -> PathBuf {
        self.root.join("company").join("vision.md")
    }

    /// `run/`: locks, sockets, what lives only while a process does.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// `models/`: weights.
    pub fn weights(&self) -> PathBuf {
        self.root.join("models")
    }

    /// `cache/`: shadows that can be deleted at any time.
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// `archive/`: what was put away.
    pub fn archive(&self) -> PathBuf {
        self.root.join("archive")
    }
}

/// The directory of one Anima.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnimaDir {
    root: PathBuf,
    name: AnimaName,
    data: DataDir,
}

impl AnimaDir {
    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whose it is.
    pub fn name(&self) -> &AnimaName {
        &self.name
    }

    /// The organisation it belongs to.
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    /// A file directly in it, such as `identity.md`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// `status.json`.
    pub fn status(&self) -> PathBuf {
        self.file("status.json")
    }

    /// `activity_log/{date}.jsonl`.
    pub fn activity_log(&self, date: NaiveDate) -> PathBuf {
        self.root.join("activity_log").join(format!("{date}.jsonl"))
    }

    /// The streaming journal of a session (memory spec §3.1).
    pub fn journal(&self, kind: SessionKind, thread: &ThreadId) -> PathBuf {
        let shortterm = self.root.join("shortterm");
        if thread.is_main() {
            shortterm.join(format!("streaming_journal_{}.jsonl", kind.as_str()))
        } else {
            shortterm.join(kind.as_str()).join(thread.as_str()).join("streaming_journal.jsonl")
        }
    }

    /// The short-term directory of a session (memory spec §4.1).
    pub fn shortterm(&self, kind: SessionKind, thread: &ThreadId) -> PathBuf {
        let base = self.root.join("shortterm").join(kind.as_str());
        if thread.is_main() { base } else { base.join(thread.as_str()) }
    }

    /// The conversation of a thread (memory spec §5.1).
    pub fn conversation(&self, thread: &ThreadId) -> PathBuf {
        if thread.is_main() {
            self.state("conversation.json")
        } else {
            self.state("conversations").join(format!("{thread}.json"))
        }
    }

    /// The engine's session id of a thread (memory spec §4.4).
    pub fn current_session(&self, kind: SessionKind, thread: &ThreadId) -> PathBuf {
        let kind = kind.as_str();
        if thread.is_main() {
            self.state(&format!("current_session_{kind}.json"))
        } else {
            self.state(&format!("current_session_{kind}_{thread}.json"))
        }
    }

    /// `transcripts/{date}.jsonl`.
    pub fn transcript(&self, date: NaiveDate) -> PathBuf {
        self.root.join("transcripts").join(format!("{date}.jsonl"))
    }

    /// `episodes/{date}.md`.
    pub fn episode(&self, date: NaiveDate) -> PathBuf {
        self.root.join("episodes").join(format!("{date}.md"))
    }

    /// A file or directory under `state/`.
    pub fn state(&self, name: &str) -> PathBuf {
        self.root.join("state").join(name)
    }

    /// `state/task_queue.jsonl`.
    pub fn task_queue(&self) -> PathBuf {
        self.state("task_queue.jsonl")
    }

    /// `state/pending/{task}.json`.
    pub fn pending_task(&self, task: &TaskId) -> PathBuf {
        self.state("pending").join(format!("{task}.json"))
    }

    /// `token_usage/{date}.jsonl`.
    pub fn token_usage(&self, date: NaiveDate) -> PathBuf {
        self.root.join("token_usage").join(format!("{date}.jsonl"))
    }

    /// `archive/`: what was put away.
    pub fn archive(&self) -> PathBuf {
        self.root.join("archive")
    }

    /// `run/`: what lives only while a session does.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// `index/`: the shadow of the memory, which can be deleted at any time.
    pub fn index(&self) -> PathBuf {
        self.root.join("index")
    }
}
