//! Writing the index: one transaction for everything a batch of files changes.

use std::collections::{BTreeMap, BTreeSet};

use animaworks_core::{MemoryError, Origin};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection, SqliteTransaction};

use super::{
    directory::{ChunkId, Directory, Doc, Names, Source},
    failed,
    plan::Update,
};
use crate::{chunk::Kind, lexical::postings};

/// Rows of one insert; the statement is prepared once for this many.
const ROWS: usize = 64;

/// The facts of a file as they stand in its row.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileFacts {
    pub(crate) kind: u8,
    pub(crate) mtime_ns: i64,
    pub(crate) size: u64,
    pub(crate) checked_ns: i64,
    pub(crate) hash: String,
    pub(crate) tail: String,
    pub(crate) lines: u32,
    pub(crate) title: String,
    pub(crate) links: Vec<String>,
    #[serde(flatten)]
    pub(crate) origin: Origin,
}

/// What a batch changes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Files that are new or changed.
    pub(crate) updates: Vec<Update>,
    /// Files that are gone.
    pub(crate) removed: Vec<u32>,
    /// Files that are as they were, with their time of change and the time they were compared.
    pub(crate) checked: Vec<(u32, i64, i64)>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.removed.is_empty() && self.checked.is_empty()
    }
}

/// What became of a batch, to be done to the memory once it is durable.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    generation: u64,
    sources: Vec<(u32, Source)>,
    gone_sources: Vec<u32>,
    docs: Vec<(ChunkId, Doc)>,
    gone_docs: Vec<ChunkId>,
    checked: Vec<(u32, i64, i64)>,
    speakers: Vec<String>,
    origins: Vec<Origin>,
    /// Chunks that are new.
    pub(crate) added: Vec<ChunkId>,
}

impl Outcome {
    /// Chunks that are gone.
    pub(crate) fn removed(&self) -> &[ChunkId] {
        &self.gone_docs
    }

    /// Brings the memory to where the database is.
    pub(crate) fn apply(&self, directory: &mut Directory) {
        for speaker in &self.speakers {
            directory.speakers.intern(speaker, speaker);
        }
        for origin in &self.origins {
            directory.origins.intern(&origin_key(origin), origin);
        }
        for number in &self.gone_sources {
            directory.take_source(*number);
        }
        for id in &self.gone_docs {
            directory.take(*id);
        }
        for (id, doc) in &self.docs {
            directory.put(*id, *doc);
        }
        for (number, source) in &self.sources {
            directory.put_source(*number, source.clone());
        }
        for (number, mtime_ns, checked_ns) in &self.checked {
            directory.note_checked(*number, *mtime_ns, *checked_ns);
        }
        directory.generation = self.generation;
    }
}

/// The key origins are interned by.
pub(crate) fn origin_key(origin: &Origin) -> String {
    format!("{}\n{}", origin.source, origin.chain.join("\n"))
}

/// Writes a batch. `None` when the database is not where the memory thinks it is:
/// another process has written, and the memory has to be read again first.
///
/// # Errors
///
/// [`MemoryError::Index`]; nothing is written then.
pub(crate) async fn commit(
    connection: &mut SqliteConnection,
    directory: &std::sync::RwLock<Directory>,
    batch: Batch,
) -> Result<Option<Outcome>, MemoryError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed("begin writing"))?;
    let generation = generation_of(&mut transaction).await?;
    let planned = {
        let directory = directory.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if directory.generation != generation { None } else { Some(number(&directory, batch, generation + 1)) }
    };
    let Some((outcome, rows)) = planned else { return Ok(None) };
    write_rows(&mut transaction, &rows).await.map_err(failed("write the index"))?;
    transaction.commit().await.map_err(failed("finish writing"))?;
    Ok(Some(outcome))
}

async fn generation_of(transaction: &mut SqliteTransaction<'_>) -> Result<u64, MemoryError> {
    let row = sqlx::query("SELECT value FROM meta WHERE key = 'generation'")
        .fetch_one(&mut **transaction)
        .await
        .map_err(failed("read the state of the index"))?;
    Ok(generation_from(row.try_get::<&[u8], _>(0).map_err(failed("read the state of the index"))?))
}

/// The number in a generation row.
pub(crate) fn generation_from(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Everything a batch writes.
#[derive(Debug, Default)]
struct Rows {
    generation: u64,
    files: Vec<(u32, String, String)>,
    gone_files: Vec<u32>,
    chunks: Vec<(ChunkId, u32, Vec<u8>)>,
    gone_chunks: Vec<ChunkId>,
    names: Vec<(u32, &'static str, String)>,
    postings: BTreeMap<(Box<str>, i64), Vec<u8>>,
    next: BTreeMap<Kind, u32>,
}

/// Gives numbers to files and chunks and turns them into rows.
fn number(directory: &Directory, batch: Batch, generation: u64) -> (Outcome, Rows) {
    let mut outcome = Outcome { generation, ..Outcome::default() };
    let mut rows = Rows { generation, ..Rows::default() };
    let mut next: BTreeMap<Kind, u32> = BTreeMap::new();
    let mut next_source = directory.next_source();
    // numbers of speakers and origins as they will be once the new ones are interned in this order
    let mut speakers = Overlay::over(&directory.speakers);
    let mut origins = Overlay::over(&directory.origins);
    for number in batch.removed {
        if let Some(source) = directory.source(number) {
            outcome.gone_docs.extend(source.docs.iter().map(|seq| ChunkId::new(source.kind, *seq)));
            outcome.gone_sources.push(number);
            rows.gone_files.push(number);
        }
    }
    for update in batch.updates {
        let known = directory.number_of(&update.source.path);
        let file = known.unwrap_or_else(|| {
            next_source += 1;
            next_source - 1
        });
        let before = known.and_then(|number| directory.source(number));
        let mut source = update.source;
        let kind = source.kind;
        let mut kept: BTreeSet<ChunkId> = BTreeSet::new();
        if update.appended
            && let Some(before) = before
        {
            source.docs.clone_from(&before.docs);
            kept.extend(before.docs.iter().map(|seq| ChunkId::new(kind, *seq)));
        }
        let next = next.entry(kind).or_insert_with(|| directory.next_seq(kind));
        for planned in update.docs {
            let mut doc = planned.doc;
            doc.source = file;
            doc.speaker = planned.speaker.as_ref().map_or(0, |speaker| speakers.number(speaker, speaker));
            doc.origin = planned.origin.as_ref().map_or(0, |origin| origins.number(&origin_key(origin), origin));
            let id = planned.kept.unwrap_or_else(|| {
                *next += 1;
                ChunkId::new(kind, *next - 1)
            });
            doc.length = match &planned.terms {
                Some(terms) => u16::try_from(terms.length).unwrap_or(u16::MAX),
                None => directory.doc(id).map_or(0, |old| old.length),
            };
            kept.insert(id);
            source.docs.push(u32::try_from(id.seq()).unwrap_or(u32::MAX));
            if planned.kept.is_none() {
                outcome.added.push(id);
            }
            if let Some(terms) = planned.terms {
                for (term, count) in terms.counts {
                    postings::push(rows.postings.entry((term, id.block())).or_default(), id.local(), count);
                }
            }
            outcome.docs.push((id, doc));
        }
        if let Some(before) = before {
            let gone = before.docs.iter().map(|seq| ChunkId::new(before.kind, *seq)).filter(|id| !kept.contains(id));
            outcome.gone_docs.extend(gone);
        }
        outcome.sources.push((file, source));
    }
    for (number, mtime_ns, checked_ns) in &batch.checked {
        if let Some(source) = directory.source(*number) {
            let source = Source { mtime_ns: *mtime_ns, checked_ns: *checked_ns, docs: Vec::new(), ..source.clone() };
            rows.files.push((*number, source.path.clone(), facts(&source)));
        }
    }
    outcome.checked = batch.checked;
    rows.gone_chunks.clone_from(&outcome.gone_docs);
    rows.chunks = outcome.docs.iter().map(|(id, doc)| (*id, doc.source, doc.pack())).collect();
    rows.files.extend(outcome.sources.iter().map(|(number, source)| (*number, source.path.clone(), facts(source))));
    rows.names = speakers.fresh.iter().map(|(number, name)| (*number, SPEAKER, name.clone())).collect();
    for (number, origin) in &origins.fresh {
        rows.names.push((*number, ORIGIN, serde_json::to_string(origin).unwrap_or_default()));
    }
    outcome.speakers = speakers.fresh.into_iter().map(|(_, name)| name).collect();
    outcome.origins = origins.fresh.into_iter().map(|(_, origin)| origin).collect();
    rows.next = next;
    (outcome, rows)
}

/// The word for speakers in the table of names.
pub(crate) const SPEAKER: &str = "speaker";
/// The word for origins in the table of names.
pub(crate) const ORIGIN: &str = "origin";

/// Numbers of known values, and of new ones that come after them.
struct Overlay<'a, T> {
    known: &'a Names<T>,
    fresh: Vec<(u32, T)>,
    numbers: BTreeMap<String, u32>,
}

impl<'a, T: Clone> Overlay<'a, T> {
    fn over(known: &'a Names<T>) -> Self {
        Self { known, fresh: Vec::new(), numbers: BTreeMap::new() }
    }

    fn number(&mut self, key: &str, value: &T) -> u32 {
        if let Some(number) = self.known.number(key).or_else(|| self.numbers.get(key).copied()) {
            return number;
        }
        let number = u32::try_from(self.known.len() + self.fresh.len() + 1).unwrap_or(u32::MAX);
        self.fresh.push((number, value.clone()));
        self.numbers.insert(key.to_owned(), number);
        number
    }
}

fn facts(source: &Source) -> String {
    let facts = FileFacts {
        kind: source.kind as u8,
        mtime_ns: source.mtime_ns,
        size: source.size,
        checked_ns: source.checked_ns,
        hash: source.hash.clone(),
        tail: source.tail.clone(),
        lines: source.lines,
        title: source.title.clone(),
        links: source.links.clone(),
        origin: source.origin.clone(),
    };
    // strings and numbers always become JSON
    serde_json::to_string(&facts).unwrap_or_default()
}

async fn write_rows(transaction: &mut SqliteTransaction<'_>, rows: &Rows) -> Result<(), sqlx::Error> {
    let connection: &mut SqliteConnection = transaction;
    for number in &rows.gone_files {
        sqlx::query("DELETE FROM files WHERE id = ?").bind(i64::from(*number)).execute(&mut *connection).await?;
    }
    for id in &rows.gone_chunks {
        sqlx::query("DELETE FROM chunks WHERE id = ?").bind(id.0).execute(&mut *connection).await?;
    }
    for (number, path, facts) in &rows.files {
        sqlx::query("INSERT OR REPLACE INTO files(id, path, facts) VALUES(?, ?, ?)")
            .bind(i64::from(*number))
            .bind(path)
            .bind(facts)
            .execute(&mut *connection)
            .await?;
    }
    for (number, kind, value) in &rows.names {
        sqlx::query("INSERT OR REPLACE INTO names(kind, id, value) VALUES(?, ?, ?)")
            .bind(*kind)
            .bind(i64::from(*number))
            .bind(value)
            .execute(&mut *connection)
            .await?;
    }
    for rows in rows.chunks.chunks(ROWS) {
        let sql = many("INSERT OR REPLACE INTO chunks(id, file, facts) VALUES", rows.len(), "");
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for (id, file, facts) in rows {
            query = query.bind(id.0).bind(i64::from(*file)).bind(facts.as_slice());
        }
        query.execute(&mut *connection).await?;
    }
    // in the order of the table, so that its pages are written once
    let postings: Vec<_> = rows.postings.iter().collect();
    for rows in postings.chunks(ROWS) {
        let sql = many(
            "INSERT INTO postings(term, block, data) VALUES",
            rows.len(),
            " ON CONFLICT(term, block) DO UPDATE SET data = CAST(data || excluded.data AS BLOB)",
        );
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for ((term, block), data) in rows {
            query = query.bind(&**term).bind(*block).bind(data.as_slice());
        }
        query.execute(&mut *connection).await?;
    }
    for (kind, next) in &rows.next {
        sqlx::query("INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)")
            .bind(format!("next.{}", kind.as_str()))
            .bind(u64::from(*next).to_le_bytes().to_vec())
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query("UPDATE meta SET value = ? WHERE key = 'generation'")
        .bind(rows.generation.to_le_bytes().to_vec())
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// A statement with this many rows of three values.
fn many(head: &str, rows: usize, tail: &str) -> String {
    let mut sql = String::with_capacity(head.len() + rows * 8 + tail.len());
    sql.push_str(head);
    for row in 0..rows {
        sql.push_str(if row == 0 { " (?,?,?)" } else { ",(?,?,?)" });
    }
    sql.push_str(tail);
    sql
}

/// Postings of chunks that are gone stay until they are worth a pass over all rows.
pub(crate) fn wants_compaction(directory: &Directory) -> bool {
    let dead = directory.dead();
    let live = directory.extent(&Kind::ALL).live;
    dead > 2000 && dead * 3 > live
}

/// Drops the postings of chunks that are gone.
///
/// # Errors
///
/// [`MemoryError::Index`]; everything is as it was then.
pub(crate) async fn compact(
    connection: &mut SqliteConnection,
    directory: &std::sync::RwLock<Directory>,
) -> Result<(), MemoryError> {
    let what = "compact the index";
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed(what))?;
    let generation = generation_of(&mut transaction).await?;
    let rows = sqlx::query("SELECT term, block, data FROM postings")
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(what))?;
    let mut changed: Vec<(String, i64, Vec<u8>)> = Vec::new();
    {
        let directory = directory.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if directory.generation != generation {
            return Ok(());
        }
        for row in &rows {
            let term: &str = row.try_get(0).map_err(failed(what))?;
            let block: i64 = row.try_get(1).map_err(failed(what))?;
            let data: &[u8] = row.try_get(2).map_err(failed(what))?;
            let kept = postings::retain(data, |local| directory.doc(ChunkId::at(block, local)).is_some());
            if kept.len() != data.len() {
                changed.push((term.to_owned(), block, kept));
            }
        }
    }
    for (term, block, data) in changed {
        let query = if data.is_empty() {
            sqlx::query("DELETE FROM postings WHERE term = ?1 AND block = ?2").bind(term).bind(block)
        } else {
            sqlx::query("UPDATE postings SET data = ?3 WHERE term = ?1 AND block = ?2")
                .bind(term)
                .bind(block)
                .bind(data)
        };
        query.execute(&mut *transaction).await.map_err(failed(what))?;
    }
    transaction.commit().await.map_err(failed(what))
}
