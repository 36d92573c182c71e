//! The product over a set: written through the public way in, asked through the public way out.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
    time::Duration,
};

use animaworks_core::{
    AnimaName, Clock, Cue, DataDir, Locale, MemoryPath, MemoryStore, MemoryWrite, Origin, Query, SearchScope, Tokens,
    fs::{self, FileError},
    memory::{Changed, PrimingChannel, WriteMode},
    trigger::TriggerKind,
};
use chrono::TimeZone;
use chrono_tz::Tz;

use super::{
    BenchError,
    data::{DataSet, Record, Store},
    learn::Folds,
    score::{Scored, Scorer},
};
use crate::{FileMemory, MemoryOptions, fuse::learned::Weights};

/// So many places are asked for where quality is measured.
const DEPTH: usize = 100;
/// So many where time is.
const TIMED_DEPTH: usize = 50;
/// Questions asked before any is timed.
const WARM_UP: usize = 200;
/// A question may take this long; the figure says how long it took.
const PATIENCE: Duration = Duration::from_secs(10);
/// Records that are added one by one to see what adding costs.
const ADDED: usize = 20;

/// What the product did over a set.
#[derive(Debug, Clone, Default)]
pub struct ProductRun {
    /// What every question scored.
    pub scored: Vec<Scored>,
    /// How long things took and how much room they take.
    pub speed: Speed,
}

/// Times and sizes.
#[derive(Debug, Clone, Default)]
pub struct Speed {
    /// Records.
    pub records: usize,
    /// Seconds to build the index of all stores from nothing, vectors included.
    pub index_s: f64,
    /// Milliseconds of a write that is searchable when it returns.
    pub add_ms: Vec<f64>,
    /// Milliseconds of every search.
    pub search_ms: Vec<f64>,
    /// Milliseconds of every priming.
    pub prime_ms: Vec<f64>,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of what is remembered.
    pub corpus_bytes: u64,
}

/// How a set is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct How<'a> {
    /// Against the evidence as published, before its audit.
    pub original: bool,
    /// By weights that were not learned from what is measured, instead of those shipped.
    pub folds: Option<&'a Folds>,
    /// Also how fast it is.
    pub timed: bool,
}

/// Measures the product over a set, and when it is `timed` also how fast it is; without, the pages are put there as files,
/// which spares the disk a thousand careful writes. `told` hears of every store that is done.
///
/// # Errors
///
/// When a directory cannot be made or the memory fails.
///
/// # Cancel safety
///
/// Safe; temporary directories are removed.
pub async fn run(
    set: &DataSet,
    options: &MemoryOptions,
    clock: &Arc<dyn Clock>,
    how: How<'_>,
    mut told: impl FnMut(&str),
) -> Result<ProductRun, BenchError> {
    let mut run = ProductRun::default();
    for (at, (store, gold)) in set.stores.iter().zip(&set.gold).enumerate() {
        let scorer = Scorer::new(store, gold, how.original);
        let way = if how.timed { Way::Api } else { Way::Files };
        let filled = Filled::new(store, options, clock, way).await?;
        let unseen = |question: usize| how.folds.and_then(|folds| folds.weights(set.stores.len(), at, question));
        let rankings = filled.rankings(store, unseen).await?;
        let texts = filled.texts(store, unseen, &mut run.speed).await?;
        run.scored.extend(joined(scorer.rankings(&rankings), scorer.texts(&texts)));
        if how.timed {
            filled.time(store, &mut run.speed).await?;
        }
        filled.close(&mut run.speed).await?;
        told(&store.group);
    }
    Ok(run)
}

/// The figures of rankings and of injected texts, question by question.
fn joined(rankings: Vec<Scored>, texts: Vec<Scored>) -> Vec<Scored> {
    let mut by_question: BTreeMap<String, Scored> =
        rankings.into_iter().map(|scored| (scored.question.clone(), scored)).collect();
    for scored in texts {
        match by_question.get_mut(&scored.question) {
            Some(known) => known.metrics.extend(scored.metrics),
            None => {
                by_question.insert(scored.question.clone(), scored);
            }
        }
    }
    by_question.into_values().collect()
}

/// How the pages come into the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One by one through the public way to write.
    Api,
    /// As files that somebody put there, for very many of them.
    Files,
}

/// A page of Markdown and the records on it.
struct Page {
    path: String,
    text: String,
    /// The line of each record, in order.
    records: Vec<(usize, String)>,
}

impl Page {
    /// Notes the line of every record in the page as it stands in its file.
    fn find(&self, text: &str, lines: &mut HashMap<(String, u32), usize>) {
        let mut wanted = self.records.iter().peekable();
        for (line, number) in text.lines().zip(1_u32..) {
            if let Some((record, _)) = wanted.next_if(|(_, wanted)| wanted == line) {
                lines.insert((self.path.clone(), number), *record);
            }
        }
    }
}

/// Records as an Anima would keep them: what was said on the page of its day, an entry for each conversation and a
/// line for each turn; what has no moment as knowledge, a page for each title and a section for each paragraph.
fn pages(records: &[Record]) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut sessions: HashMap<usize, String> = HashMap::new();
    let mut titles: HashMap<&str, usize> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let count = titles.len();
        let path = match record.at {
            Some(at) => format!("episodes/{}.md", at.format("%Y-%m-%d")),
            None => format!("knowledge/page-{}.md", titles.entry(record.session.as_str()).or_insert(count)),
        };
        let place = *known.entry(path.clone()).or_insert_with(|| {
            let title = if record.at.is_some() { "" } else { record.speaker.as_str() };
            let text = if title.is_empty() { String::new() } else { format!("# {title}\n") };
            pages.push(Page { path, text, records: Vec::new() });
            pages.len() - 1
        });
        let Some(page) = pages.get_mut(place) else { continue };
        let line = match record.at {
            Some(at) => {
                let time = at.format("%H:%M");
                if sessions.insert(place, record.session.clone()).as_ref() != Some(&record.session) {
                    page.text.push_str(&format!("\n## {time}\n\n"));
                }
                format!("- [{time}] {}: {}", record.speaker, record.text)
            }
            None => {
                page.text.push_str(&format!("\n## {}\n\n", page.records.len() + 1));
                record.text.clone()
            }
        };
        page.text.push_str(&line);
        page.text.push('\n');
        page.records.push((at, line));
    }
    pages
}

/// A memory that holds a store.
#[derive(Debug)]
pub(crate) struct Filled {
    memory: FileMemory,
    clock: Arc<dyn Clock>,
    zone: Tz,
    locale: Locale,
    /// Which record stands on which line of which page.
    lines: HashMap<(String, u32), usize>,
    root: tempfile::TempDir,
    index: std::path::PathBuf,
    index_s: f64,
    records: usize,
    corpus_bytes: u64,
}

impl Filled {
    /// Writes the records as pages into a fresh directory and builds the index.
    pub(crate) async fn new(
        store: &Store,
        options: &MemoryOptions,
        clock: &Arc<dyn Clock>,
        way: Way,
    ) -> Result<Self, BenchError> {
        let root = tempfile::tempdir().map_err(|error| FileError::io("make", Path::new("tmp"), error))?;
        let locale = if store.language == "ja" { Locale::Ja } else { Locale::En };
        let zone = chrono_tz::UTC;
        let name = AnimaName::new("sakura").map_err(|error| super::data_error(root.path(), error))?;
        let dir = DataDir::new(root.path()).anima(&name);
        let mut options = options.clone();
        options.locale = locale;
        // the message alone decides what comes to mind: 700 tokens of knowledge and 400 of what was lived through
        options.budgets.dynamic = false;
        let pages = pages(&store.records);
        let mut lines = HashMap::new();
        match way {
            Way::Api => {
                // written without a model, so that what is timed below is made from nothing
                let words = MemoryOptions { embedder: None, ..options.clone() };
                let memory = FileMemory::open(dir.clone(), zone, Arc::clone(clock), words).await?;
                for page in &pages {
                    let path = MemoryPath::new(&page.path).map_err(|error| super::data_error(root.path(), error))?;
                    let write = MemoryWrite {
                        path: path.clone(),
                        text: page.text.clone(),
                        mode: WriteMode::Overwrite,
                        expect: None,
                        origin: Origin::human(),
                    };
                    memory.write(write).await?;
                    page.find(&memory.read(&path).await?.text, &mut lines);
                }
                memory.close().await;
                fs_err::remove_dir_all(dir.index()).map_err(|error| FileError::io("remove", &dir.index(), error))?;
            }
            Way::Files => {
                for page in &pages {
                    let file = dir.root().join(&page.path);
                    fs::write_atomic(&file, page.text.as_bytes(), fs::Privacy::Normal)?;
                    page.find(&page.text, &mut lines);
                }
            }
        }
        let memory = FileMemory::open(dir.clone(), zone, Arc::clone(clock), options).await?;
        let begun = clock.elapsed();
        memory.refresh(Changed::Sweep).await?;
        let index_s = clock.elapsed().saturating_sub(begun).as_secs_f64();
        let corpus_bytes = store.records.iter().map(|record| record.text.len() as u64).sum();
        Ok(Self {
            memory,
            clock: Arc::clone(clock),
            zone,
            locale,
            lines,
            index: dir.index(),
            root,
            index_s,
            records: store.records.len(),
            corpus_bytes,
        })
    }

    fn query(store: &Store, text: &str, limit: usize) -> Query {
        Query { today: store.now.map(|now| now.date()), ..Query::new(text).within(SearchScope::All).top(limit) }
    }

    /// The candidates for a question with what speaks for each, and the record each of them is.
    pub(crate) async fn features(
        &self,
        store: &Store,
        question: &str,
    ) -> Result<Vec<(Option<usize>, Vec<f32>)>, BenchError> {
        let table = self.memory.features(&Self::query(store, question, DEPTH)).await?;
        let named = table.into_iter().map(|(path, line, end_line, row)| {
            let record = (line..=end_line).find_map(|line| self.lines.get(&(path.clone(), line)).copied());
            (record, row)
        });
        Ok(named.collect())
    }

    /// The records found for every question, best first.
    pub(crate) async fn rankings(
        &self,
        store: &Store,
        weights: impl Fn(usize) -> Option<Arc<Weights>>,
    ) -> Result<Vec<Vec<usize>>, BenchError> {
        let mut rankings = Vec::with_capacity(store.questions.len());
        for (number, question) in store.questions.iter().enumerate() {
            if let Some(weights) = weights(number) {
                self.memory.use_weights(weights);
            }
            let recall = self.memory.search(&Self::query(store, &question.text, DEPTH)).await?;
            if let Some(part) = recall.degraded.first() {
                tracing::warn!(part = part.part, why = part.why, "measured without a part");
            }
            let mut ranking: Vec<usize> = Vec::new();
            for hit in recall.hits {
                let path = hit.path.to_string();
                for line in hit.line..=hit.end_line {
                    if let Some(record) = self.lines.get(&(path.clone(), line))
                        && !ranking.contains(record)
                    {
                        ranking.push(*record);
                    }
                }
            }
            rankings.push(ranking);
        }
        Ok(rankings)
    }

    /// What comes to mind for every question: the text that would be injected.
    async fn texts(
        &self,
        store: &Store,
        weights: impl Fn(usize) -> Option<Arc<Weights>>,
        speed: &mut Speed,
    ) -> Result<Vec<String>, BenchError> {
        let now = store.now.map_or_else(|| self.clock.now_in(self.zone), |now| self.zone.from_utc_datetime(&now));
        let mut texts = Vec::with_capacity(store.questions.len());
        for (number, question) in store.questions.iter().enumerate() {
            if let Some(weights) = weights(number) {
                self.memory.use_weights(weights);
            }
            let cue = Cue {
                trigger: TriggerKind::Chat,
                message: question.text.clone(),
                sender: "human".to_owned(),
                intent: None,
                recent: Vec::new(),
                window: Tokens(128_000),
                within: PATIENCE,
                now,
                locale: self.locale,
            };
            let begun = self.clock.elapsed();
            let priming = self.memory.prime(&cue).await?;
            speed.prime_ms.push(self.clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0);
            let related =
                [PrimingChannel::RelatedKnowledge, PrimingChannel::RelatedKnowledgeExternal, PrimingChannel::Episodes];
            let parts: Vec<&str> =
                related.into_iter().filter_map(|channel| Some(priming.section(channel)?.body.as_str())).collect();
            texts.push(parts.join("\n"));
        }
        Ok(texts)
    }

    /// Times searches after a warm-up, each question once.
    pub(crate) async fn time(&self, store: &Store, speed: &mut Speed) -> Result<(), BenchError> {
        for question in store.questions.iter().cycle().take(WARM_UP.min(store.questions.len())) {
            self.memory.search(&Self::query(store, &question.text, TIMED_DEPTH)).await?;
        }
        for question in &store.questions {
            let begun = self.clock.elapsed();
            self.memory.search(&Self::query(store, &question.text, TIMED_DEPTH)).await?;
            speed.search_ms.push(self.clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0);
        }
        for (at, record) in store.records.iter().take(ADDED).enumerate() {
            let path = format!("knowledge/added-{at}.md");
            let write = MemoryWrite {
                path: MemoryPath::new(&path).map_err(|error| super::data_error(self.root.path(), error))?,
                text: format!("# {at}\n\n{}\n", record.text),
                mode: WriteMode::Overwrite,
                expect: None,
                origin: Origin::human(),
            };
            let begun = self.clock.elapsed();
            self.memory.write(write).await?;
            speed.add_ms.push(self.clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0);
        }
        Ok(())
    }

    /// Adds up sizes and times, and ends.
    pub(crate) async fn close(self, speed: &mut Speed) -> Result<(), BenchError> {
        self.memory.close().await;
        speed.records += self.records;
        speed.index_s += self.index_s;
        speed.corpus_bytes += self.corpus_bytes;
        speed.index_bytes += size_of(&self.index)?;
        Ok(())
    }
}

/// The bytes of the files in a directory and below.
fn size_of(directory: &Path) -> Result<u64, FileError> {
    let failed = |error| FileError::io("look at", directory, error);
    let mut bytes = 0;
    for entry in fs_err::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let facts = match entry.metadata() {
            Ok(facts) => facts,
            // a write-ahead log goes away when its database is closed
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(error)),
        };
        bytes += if facts.is_dir() { size_of(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}
