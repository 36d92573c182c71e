//! The memory of one Anima over its files.

mod access;
mod index;
mod meaning;
mod rules;
mod write;

use std::{
    borrow::Cow,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use meaning::Meaning;

use animaworks_core::{
    AnimaDir, Clock, Cue, Degraded, Indexed, Locale, MemoryError, MemoryFile, MemoryHealth, MemoryPath, MemoryStore,
    MemoryWrite, Priming, Query, Recall, ResultExt, Written, fs, home::AnimaHome, memory::Changed, tasks::Tasks,
};
use async_trait::async_trait;
use chrono_tz::Tz;
use tokio_util::sync::CancellationToken;

use crate::{
    embed::Embedder,
    front::Front,
    fuse::{Dense, Fusion, learned::Weights},
    graph::build::PageGraph,
    index::{directory::Directory, plan::Reading, reader, schema::Database, sources::Ignored},
    ledger::{Ledger, Use},
    priming::Budgets,
    retrieve::{Answer, Asked, Search, scan},
};

/// A question waits this long for its vector where nobody is in a hurry.
const PATIENCE: Duration = Duration::from_secs(3);

/// How a memory is set up.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// How lists of answers are put together.
    pub fusion: Fusion,
    /// How much may come to mind (config `priming`).
    pub budgets: Budgets,
    /// The language of notes to a writer.
    pub locale: Locale,
    /// The model of meaning; without one everything is found by its words.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Why there is no model although one was wanted; [`MemoryStore::health`] says it.
    pub words_only: Option<String>,
}

/// What an Anima remembers, in Markdown and JSON lines, with an index beside them.
///
/// Opening reads the index; the first question, or [`MemoryStore::refresh`], brings it up to date.
#[derive(Debug)]
pub struct FileMemory {
    inner: Arc<Inner>,
    tasks: Tasks,
}

/// What background work shares with the store.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) reading: Reading,
    pub(crate) home: AnimaHome,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: MemoryOptions,
    pub(crate) ledger: Ledger,
    /// The model and its vectors, when there is one.
    meaning: Option<Meaning>,
    /// `None` while the database cannot be used; files are scanned then.
    database: RwLock<Option<Arc<Database>>>,
    /// Held while a search computes, which is a millisecond and no wait; written once a batch.
    pub(crate) directory: RwLock<Directory>,
    graph: RwLock<(u64, Arc<PageGraph>)>,
    /// One refresh at a time.
    refreshing: tokio::sync::Mutex<()>,
    /// When the files were last swept, in time since the clock's start.
    swept: RwLock<Option<Duration>>,
    /// One write at a time, so that what was checked still holds when it is written.
    writing: tokio::sync::Mutex<()>,
    trouble: RwLock<Option<String>>,
    /// Weights other than those shipped, while some are being measured.
    weights: RwLock<Option<Arc<Weights>>>,
    /// Ends long background work between two steps.
    closing: CancellationToken,
}

impl FileMemory {
    /// Opens the memory of an Anima. The index is made when there is none.
    ///
    /// # Errors
    ///
    /// When the Anima's directory cannot be used. A broken index is no error: it is set aside and built again.
    pub async fn open(
        dir: AnimaDir,
        zone: Tz,
        clock: Arc<dyn Clock>,
        options: MemoryOptions,
    ) -> Result<Self, MemoryError> {
        let home = AnimaHome::open(dir.clone(), zone, Arc::clone(&clock)).with_locale(options.locale);
        let inner = Inner {
            meaning: options.embedder.clone().map(Meaning::new),
            ledger: Ledger::new(dir.state("memory_usage.jsonl")),
            reading: Reading { dir, zone },
            home,
            clock,
            options,
            database: RwLock::default(),
            directory: RwLock::default(),
            graph: RwLock::default(),
            refreshing: tokio::sync::Mutex::default(),
            swept: RwLock::default(),
            writing: tokio::sync::Mutex::default(),
            trouble: RwLock::default(),
            weights: RwLock::default(),
            closing: CancellationToken::new(),
        };
        inner.open_index().await;
        inner.open_vectors().await;
        Ok(Self { inner: Arc::new(inner), tasks: Tasks::new("memory") })
    }

    /// How often a file was found and read, for forgetting and for people.
    ///
    /// # Errors
    ///
    /// When the ledger cannot be read.
    pub async fn usage(&self) -> Result<std::collections::BTreeMap<String, crate::ledger::Usage>, MemoryError> {
        let ledger = self.inner.ledger.clone();
        fs::blocking(move || ledger.counts().map_err(MemoryError::from)).await
    }

    /// Ends background work and closes the index. Vectors that are missing are made after the next opening.
    ///
    /// # Cancel safety
    ///
    /// Safe; what was committed stays.
    pub async fn close(&self) {
        self.inner.closing.cancel();
        self.tasks.finished().await;
        let database = self.inner.take_database();
        if let Some(database) = database {
            database.readers.close().await;
            if let Some(database) = Arc::into_inner(database) {
                let writer = database.writer.into_inner();
                sqlx::Connection::close(writer).await.log_err("close the index");
            }
        }
    }

    /// Makes the process small while nobody asks anything: caches of the index and pages of code are given back.
    /// The next question is answered a millisecond later for it.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn rest(&self) {
        if let Some(database) = self.inner.database() {
            database.shrink().await.log_err("make the index small");
        }
        crate::mapped::release_code().log_err("give back pages of code");
    }

    /// Ranks by other weights from now on.
    pub(crate) fn use_weights(&self, weights: Arc<Weights>) {
        *self.inner.weights.write().unwrap_or_else(PoisonError::into_inner) = Some(weights);
    }

    /// What speaks for each candidate of a question: path, first and last line, features. To learn from.
    ///
    /// # Errors
    ///
    /// When the index or the model fails.
    pub(crate) async fn features(&self, query: &Query) -> Result<Vec<(String, u32, u32, Vec<f32>)>, MemoryError> {
        let asked = Asked::of(query, self.inner.reading.zone);
        let dense = self.inner.dense(&asked).await?;
        let Some(database) = self.inner.database() else { return Ok(Vec::new()) };
        let rows = reader::postings(&database.readers, &asked.terms, asked.kinds).await?;
        let inner = &self.inner;
        let (graph, weights) = (inner.graph(), inner.weights());
        let directory = inner.directory.read().unwrap_or_else(PoisonError::into_inner);
        let fusion = inner.options.fusion;
        let search =
            Search { directory: &directory, graph: &graph, reading: &inner.reading, fusion, weights: &weights };
        Ok(search.table(&asked, &rows, dense.as_ref()))
    }

    fn embed_in_background(&self) {
        if self.inner.meaning.is_some() {
            let inner = Arc::clone(&self.inner);
            self.tasks.spawn("make vectors", async move {
                inner.embed_missing().await.log_err("make vectors");
            });
        }
    }

    fn note_found(&self, answers: &[Answer]) {
        let found: Vec<String> =
            answers.iter().filter(|answer| !answer.indirect).map(|answer| answer.hit.path.to_string()).collect();
        self.note_use(Use::Retrieved, found);
    }

    fn note_use(&self, how: Use, paths: Vec<String>) {
        if paths.is_empty() {
            return;
        }
        let (ledger, stamp) = (self.inner.ledger.clone(), self.inner.home.stamp());
        self.tasks.spawn("note use", async move {
            fs::blocking(move || ledger.record(how, &paths, &stamp)).await.log_err("note the use of memory");
        });
    }
}

impl Inner {
    /// The answers to a question, and what did not take part. Not counted as use.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        query: &Query,
        wanted: usize,
        patience: Duration,
    ) -> Result<(Vec<Answer>, Vec<Degraded>), MemoryError> {
        let mut degraded = Vec::new();
        let mut query = query.clone();
        query.today = query.today.or_else(|| Some(self.home.today()));
        let mut asked = Asked::of(&query, self.reading.zone);
        asked.now = Some(self.clock.now().timestamp());
        if query.text.trim().is_empty() || (asked.terms.is_empty() && self.meaning.is_none()) {
            return Ok((Vec::new(), degraded));
        }
        let dense = match tokio::time::timeout(patience, self.dense(&asked)).await {
            Ok(Ok(dense)) => dense,
            Ok(Err(error)) => {
                degraded.push(Degraded::new("vectors", animaworks_core::error::chain(&error)));
                None
            }
            Err(_) => {
                degraded.push(Degraded::new("vectors", format!("no answer within {} ms", patience.as_millis())));
                None
            }
        };
        let dense = dense.map(Arc::new);
        for attempt in 0..2 {
            match self.indexed(&asked, dense.clone(), wanted).await {
                Ok(Some((answers, stale))) => {
                    if stale.is_empty() || attempt == 1 {
                        return Ok((answers, degraded));
                    }
                    // somebody edited a file a moment ago: look at it, then ask again
                    let paths = stale.into_iter().filter_map(|path| MemoryPath::new(path).ok()).collect();
                    self.refresh(Changed::Paths(paths)).await?;
                }
                Ok(None) => {
                    degraded
                        .push(Degraded::new("index", self.trouble().unwrap_or_else(|| "is being built".to_owned())));
                    break;
                }
                Err(error) => {
                    self.index_failed(&error).await;
                    degraded.push(Degraded::new("index", animaworks_core::error::chain(&error)));
                    break;
                }
            }
        }
        let this = Arc::clone(self);
        let answers = fs::blocking::<_, MemoryError, _>(move || {
            let ignored = Ignored::read(&this.reading.dir);
            Ok(scan(&this.reading, &ignored, &asked, this.home.today(), wanted))
        })
        .await?;
        Ok((answers, degraded))
    }

    /// Answers from the index; `None` when there is none to ask.
    async fn indexed(
        self: &Arc<Self>,
        asked: &Asked,
        dense: Option<Arc<Dense>>,
        wanted: usize,
    ) -> Result<Option<(Vec<Answer>, Vec<String>)>, MemoryError> {
        let Some(database) = self.database() else { return Ok(None) };
        let mut rows = reader::postings(&database.readers, &asked.terms, asked.kinds).await?;
        if rows.generation != self.generation() {
            // another process wrote; what is in memory follows
            self.reload(&database).await?;
            rows = reader::postings(&database.readers, &asked.terms, asked.kinds).await?;
        }
        let (this, asked) = (Arc::clone(self), asked.clone());
        fs::blocking(move || {
            let graph = this.graph();
            let directory = this.directory.read().unwrap_or_else(PoisonError::into_inner);
            let weights = this.weights();
            let search = Search {
                directory: &directory,
                graph: &graph,
                reading: &this.reading,
                fusion: this.options.fusion,
                weights: &weights,
            };
            Ok(Some(search.run(&asked, &rows, dense.as_deref(), wanted)))
        })
        .await
    }

    /// What each sign says: as shipped, or as a measurement wants it.
    fn weights(&self) -> Cow<'static, Weights> {
        match &*self.weights.read().unwrap_or_else(PoisonError::into_inner) {
            Some(weights) => Cow::Owned(weights.as_ref().clone()),
            None => Cow::Borrowed(Weights::shipped()),
        }
    }

    /// The links between pages as the index has them now.
    fn graph(&self) -> Arc<PageGraph> {
        let generation = self.generation();
        {
            let known = self.graph.read().unwrap_or_else(PoisonError::into_inner);
            if known.0 == generation && generation > 0 {
                return Arc::clone(&known.1);
            }
        }
        let graph = Arc::new(PageGraph::build(&self.directory.read().unwrap_or_else(PoisonError::into_inner)));
        *self.graph.write().unwrap_or_else(PoisonError::into_inner) = (generation, Arc::clone(&graph));
        graph
    }
}

#[async_trait]
impl MemoryStore for FileMemory {
    async fn search(&self, query: &Query) -> Result<Recall, MemoryError> {
        self.inner.catch_up(&self.tasks).await;
        // a page deeper than this is no question any more
        let offset = query.offset.min(50);
        let limit = query.limit.min(1000);
        let (answers, degraded) = self.inner.ask(query, offset + limit, PATIENCE).await?;
        let shown: Vec<Answer> = answers.into_iter().skip(offset).take(limit).collect();
        self.note_found(&shown);
        Ok(Recall { hits: shown.into_iter().map(|answer| answer.hit).collect(), degraded })
    }

    async fn prime(&self, cue: &Cue) -> Result<Priming, MemoryError> {
        let (priming, found) = crate::priming::prime(&self.inner, &self.tasks, cue).await?;
        self.note_use(Use::Retrieved, found);
        Ok(priming)
    }

    async fn read(&self, path: &MemoryPath) -> Result<MemoryFile, MemoryError> {
        let (inner, path) = (Arc::clone(&self.inner), path.clone());
        let file = fs::blocking(move || inner.read_file(&path)).await?;
        self.note_use(Use::Used, vec![file.path.to_string()]);
        Ok(file)
    }

    async fn write(&self, write: MemoryWrite) -> Result<Written, MemoryError> {
        let written = {
            let _one = self.inner.writing.lock().await;
            let inner = Arc::clone(&self.inner);
            fs::blocking(move || inner.write_file(write)).await?
        };
        self.inner.refresh_after_write(&written.path).await;
        self.embed_in_background();
        Ok(written)
    }

    async fn archive(&self, path: &MemoryPath, reason: &str) -> Result<(), MemoryError> {
        {
            let _one = self.inner.writing.lock().await;
            let (inner, path, reason) = (Arc::clone(&self.inner), path.clone(), reason.to_owned());
            fs::blocking(move || inner.archive_file(&path, &reason)).await?;
        }
        self.inner.refresh_after_write(path).await;
        Ok(())
    }

    async fn refresh(&self, changed: Changed) -> Result<Indexed, MemoryError> {
        let mut done = self.inner.refresh(changed).await?;
        done.embedded = self.inner.embed_missing().await.log_err("make vectors").unwrap_or_default();
        Ok(done)
    }

    async fn health(&self) -> MemoryHealth {
        let chunks = self.inner.chunk_count();
        let mut degraded: Vec<Degraded> =
            self.inner.trouble().map(|why| Degraded::new("index", why)).into_iter().collect();
        let meaning = self.inner.meaning.as_ref();
        let words_only = self.inner.options.words_only.clone();
        degraded.extend(words_only.map(|why| Degraded::new("vectors", why)));
        degraded.extend(meaning.and_then(Meaning::trouble).map(|why| Degraded::new("vectors", why)));
        degraded.extend(self.inner.cut_pages().into_iter().map(|(path, size)| {
            let (whole, kept) = (size >> 20, crate::index::plan::MAX_PAGE >> 20);
            Degraded::new("index", format!("{path} has {whole} MB; only its first {kept} MB are searched"))
        }));
        let embedder = meaning.map(|meaning| meaning.embedder.signature().to_owned());
        MemoryHealth { chunks, vectors: meaning.map_or(0, Meaning::count), embedder, degraded }
    }
}

/// What the head of a file says, for the origin of what is read.
pub(crate) fn origin_of(text: &str) -> animaworks_core::Origin {
    Front::read(text).origin()
}

#[cfg(test)]
mod tests;
