//! What is remembered and what is asked: all that a system under test ever sees of a data set.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use animaworks_core::fs::FileError;
use chrono::NaiveDateTime;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{BenchError, data_error, gold::Gold};

/// One thing to remember: a turn of a conversation or a paragraph of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its name in the data set.
    pub id: String,
    /// The conversation or page it belongs to.
    pub session: String,
    /// When it was said; a page has no such moment.
    pub at: Option<NaiveDateTime>,
    /// Who said it, or the title of the page; may be empty.
    pub speaker: String,
    /// Its words, on one line.
    pub text: String,
}

/// A question. What answers it is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name in the data set.
    pub id: String,
    /// Its words.
    pub text: String,
}

/// Everything one memory is built from, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The data set.
    pub dataset: String,
    /// Its language: `ja` or `en`.
    pub language: String,
    /// The name of this part of the set.
    pub group: String,
    /// The moment the questions are asked.
    pub now: Option<NaiveDateTime>,
    /// What is remembered, in order.
    pub records: Vec<Record>,
    /// What is asked.
    pub questions: Vec<Question>,
}

/// A file of a data set with its stores and, apart from them, their answers.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// Its name: the file's name up to the first dot.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The checksum of the file.
    pub sha256: String,
    /// One memory each.
    pub stores: Vec<Store>,
    /// The answers, in the order of `stores`.
    pub gold: Vec<Gold>,
}

/// The known sets, in the order of a report.
pub const KNOWN: [&str; 4] = ["locomo", "jsquad", "jaquad", "animem"];

#[derive(Deserialize)]
struct Line {
    dataset: String,
    #[serde(default)]
    lang: String,
    group: String,
    #[serde(default)]
    ref_time: Option<String>,
    docs: Vec<LineRecord>,
    queries: Vec<LineQuestion>,
}

#[derive(Deserialize)]
struct LineRecord {
    id: String,
    #[serde(default)]
    session: serde_json::Value,
    #[serde(default)]
    ts: Option<String>,
    #[serde(default)]
    speaker: Option<String>,
    text: String,
}

#[derive(Deserialize)]
struct LineQuestion {
    id: String,
    q: String,
}

impl DataSet {
    /// Reads a set: gzipped JSON lines, one store a line.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or a line of it is not a store.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let bytes = fs_err::read(path).map_err(|error| FileError::io("read", path, error))?;
        let mut set = Self {
            name: name_of(path),
            path: path.to_owned(),
            sha256: Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
            stores: Vec::new(),
            gold: Vec::new(),
        };
        for line in BufReader::new(MultiGzDecoder::new(bytes.as_slice())).lines() {
            let line = line.map_err(|error| FileError::io("unpack", path, error))?;
            if line.trim().is_empty() {
                continue;
            }
            let store: Line = serde_json::from_str(&line).map_err(|error| data_error(path, error))?;
            set.stores.push(store.into_store(path)?);
            set.gold.push(Gold::read(&line).map_err(|error| data_error(path, error))?);
        }
        if set.stores.is_empty() {
            return Err(data_error(path, "no store in it"));
        }
        Ok(set)
    }

    /// The same as one memory, as an Anima that knows all of these people would have it.
    pub fn merged(mut self) -> Self {
        let mut stores = std::mem::take(&mut self.stores).into_iter();
        let gold = std::mem::take(&mut self.gold);
        let mut all = Gold::default();
        if let Some(first) = stores.next() {
            let prefix = |group: &str, id: &str| format!("{group}/{id}");
            let mut one =
                Store { group: "merged".to_owned(), records: Vec::new(), questions: Vec::new(), ..first.clone() };
            for (store, gold) in std::iter::once(first).chain(stores).zip(gold) {
                one.now = one.now.max(store.now);
                all.absorb(gold, |id| prefix(&store.group, id));
                one.records.extend(store.records.into_iter().map(|record| Record {
                    id: prefix(&store.group, &record.id),
                    session: prefix(&store.group, &record.session),
                    ..record
                }));
                one.questions.extend(store.questions);
            }
            self.stores.push(one);
            self.gold.push(all);
        }
        self
    }

    /// Only the first `stores` memories and of each the first `questions` questions.
    pub fn limited(mut self, stores: usize, questions: usize) -> Self {
        self.stores.truncate(stores);
        self.gold.truncate(stores);
        for store in &mut self.stores {
            store.questions.truncate(questions);
        }
        self
    }
}

/// The set a file holds, by its name.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Where a set of a directory is: `NAME.SPLIT.jsonl.gz`.
pub fn file_of(directory: &Path, name: &str, split: &str) -> PathBuf {
    directory.join(format!("{name}.{split}.jsonl.gz"))
}

impl Line {
    fn into_store(self, path: &Path) -> Result<Store, BenchError> {
        let moment = |text: &str| {
            text.parse::<NaiveDateTime>().map_err(|error| data_error(path, format!("{text:?} is no moment: {error}")))
        };
        let records = self.docs.into_iter().map(|line| {
            Ok(Record {
                id: line.id,
                session: match line.session {
                    serde_json::Value::String(text) => text,
                    other => other.to_string(),
                },
                at: line.ts.as_deref().map(moment).transpose()?,
                speaker: one_line(&line.speaker.unwrap_or_default()),
                text: one_line(&line.text),
            })
        });
        Ok(Store {
            dataset: self.dataset,
            language: self.lang,
            group: self.group,
            now: self.ref_time.as_deref().map(moment).transpose()?,
            records: records.collect::<Result<_, BenchError>>()?,
            questions: self.queries.into_iter().map(|line| Question { id: line.id, text: line.q }).collect(),
        })
    }
}

/// A record is one line of a page, so its line breaks become spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
