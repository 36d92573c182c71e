//! Bringing the shadow to where the files are: only what changed is read, only what is new is written.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use animaworks_core::{MemoryError, fs};
use chrono::NaiveDate;
use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use super::{
    Pack,
    chunk::{Piece, pieces},
    shadow::Shadow,
    terms,
    walk::{self, Found},
};
use crate::index::{failed, is_corrupt};

/// One transaction has about this much text.
const BATCH_BYTES: i64 = 32 << 20;
/// Rows of one insert; the statement is prepared once for this many.
const ROWS: usize = 32;
/// A file that changed this short a time before it was read may have changed again within the same tick.
const TICK_NS: i64 = 2_000_000_000;
/// The bits of an id below its day: newer days have larger ids, so the newest matches come first.
const DAY_BITS: u32 = 20;

/// What a re-index did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// Files there are.
    pub files: usize,
    /// Files that were read.
    pub changed_files: usize,
    /// Pieces that are new.
    pub added: usize,
    /// Pieces that are gone.
    pub removed: usize,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<String>,
}

impl Pack {
    /// Brings the index of every directory up to date; `full` builds it again from nothing.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Index`] and [`MemoryError::File`]. A file that cannot be read is no error, it is in the result.
    ///
    /// # Cancel safety
    ///
    /// Safe: each batch of files is one transaction, and the next run does the rest.
    pub async fn reindex(&self, full: bool) -> Result<Indexed, MemoryError> {
        let mut total = Indexed::default();
        for dir in self.existing() {
            if full {
                let mut shadow = Shadow::open(dir, &self.stamp()).await?;
                empty(&mut shadow.db).await.map_err(failed("empty"))?;
                shadow.close().await;
            }
            let done = self.reindex_dir(dir).await?;
            total.files += done.files;
            total.changed_files += done.changed_files;
            total.added += done.added;
            total.removed += done.removed;
            total.unreadable.extend(done.unreadable);
        }
        Ok(total)
    }

    /// Brings one directory up to date, building its shadow again when it turns out to be broken.
    pub(super) async fn reindex_dir(&self, dir: &Path) -> Result<Indexed, MemoryError> {
        let now_ns = self.now.timestamp_nanos_opt().unwrap_or_default();
        let mut shadow = Shadow::open(dir, &self.stamp()).await?;
        let mut done = sweep(&mut shadow.db, dir, now_ns).await;
        shadow.close().await;
        if let Err(error) = &done
            && is_corrupt(error)
        {
            Shadow::discard(dir, &self.stamp(), error)?;
            let mut shadow = Shadow::open(dir, &self.stamp()).await?;
            done = sweep(&mut shadow.db, dir, now_ns).await;
            shadow.close().await;
        }
        done
    }
}

/// A file as the shadow knows it.
#[derive(Debug)]
struct Known {
    mtime_ns: i64,
    size: i64,
    hash: String,
    checked_ns: i64,
}

/// A file that was read.
#[derive(Debug)]
struct Fresh {
    found: Found,
    hash: String,
    /// Nothing when the text is as it was.
    rows: Option<Vec<Prepared>>,
}

/// A piece with what the tables hold of it.
#[derive(Debug)]
struct Prepared {
    piece: Piece,
    ordinal: i64,
    heading: String,
    terms: terms::Indexed,
}

async fn sweep(db: &mut SqliteConnection, dir: &Path, now_ns: i64) -> Result<Indexed, MemoryError> {
    let found = walk::files(dir);
    let mut known = known(db).await?;
    let mut done = Indexed { files: found.len(), ..Indexed::default() };
    let mut changed: Vec<(Found, Option<String>)> = Vec::new();
    for file in found {
        let before = known.remove(&file.source);
        let same = before.as_ref().is_some_and(|before| {
            let settled = before.checked_ns.saturating_sub(before.mtime_ns) > TICK_NS;
            (before.mtime_ns, before.size) == (file.mtime_ns, file.size) && settled
        });
        if !same {
            changed.push((file, before.map(|before| before.hash)));
        }
    }
    let mut gone: Vec<String> = known.into_keys().collect();
    gone.sort_unstable();
    let mut batches = batches(changed).into_iter();
    let mut batch = batches.next();
    if batch.is_none() && gone.is_empty() {
        return Ok(done);
    }
    let mut ready = read_all(batch.take().unwrap_or_default()).await?;
    loop {
        let mut fresh = Vec::new();
        for file in ready {
            match file {
                Ok(file) => fresh.push(file),
                Err(error) => done.unreadable.push(animaworks_core::error::chain(&error)),
            }
        }
        done.changed_files += fresh.iter().filter(|file| file.rows.is_some()).count();
        let following = batches.next();
        let is_last = following.is_none();
        // the next batch is read while this one is written
        let (written, read) =
            tokio::join!(write(db, fresh, std::mem::take(&mut gone), now_ns), read_all(following.unwrap_or_default()));
        let (added, removed) = written.map_err(failed("write"))?;
        done.added += added;
        done.removed += removed;
        if is_last {
            return Ok(done);
        }
        ready = read?;
    }
}

/// Takes everything out, so that the next sweep reads every file again.
async fn empty(db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = db.begin_with("BEGIN IMMEDIATE").await?;
    let statements = "
        INSERT INTO chunks_fts(chunks_fts) VALUES('delete-all');
        INSERT INTO chunks_fts_trigram(chunks_fts_trigram) VALUES('delete-all');
        DELETE FROM chunks;
        DELETE FROM files;";
    sqlx::raw_sql(statements).execute(&mut *transaction).await?;
    transaction.commit().await
}

async fn known(db: &mut SqliteConnection) -> Result<HashMap<String, Known>, MemoryError> {
    let rows = sqlx::query("SELECT source, mtime_ns, size, hash, checked_ns FROM files").fetch_all(db).await;
    let mut known = HashMap::new();
    for row in rows.map_err(failed("read the files"))? {
        let fields = (|| -> Result<(String, Known), sqlx::Error> {
            Ok((
                row.try_get(0)?,
                Known {
                    mtime_ns: row.try_get(1)?,
                    size: row.try_get(2)?,
                    hash: row.try_get(3)?,
                    checked_ns: row.try_get(4)?,
                },
            ))
        })();
        let (source, file) = fields.map_err(failed("read the files"))?;
        known.insert(source, file);
    }
    Ok(known)
}

fn batches(changed: Vec<(Found, Option<String>)>) -> Vec<Vec<(Found, Option<String>)>> {
    let mut batches: Vec<Vec<_>> = Vec::new();
    let mut bytes = 0;
    for file in changed {
        if batches.is_empty() || bytes > BATCH_BYTES {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += file.0.size;
        if let Some(batch) = batches.last_mut() {
            batch.push(file);
        }
    }
    batches
}

type Read = Vec<Result<Fresh, fs::FileError>>;

async fn read_all(batch: Vec<(Found, Option<String>)>) -> Result<Read, MemoryError> {
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let work = move || Ok(batch.into_par_iter().map(|(found, hash)| read(found, hash.as_deref())).collect());
    fs::blocking::<_, MemoryError, _>(work).await
}

fn read(found: Found, before: Option<&str>) -> Result<Fresh, fs::FileError> {
    let text = fs::read_text(&found.path)?;
    let hash: String = Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    if before == Some(hash.as_str()) {
        return Ok(Fresh { found, hash, rows: None });
    }
    let mut seen: HashMap<String, i64> = HashMap::new();
    let rows = pieces(&found.source, &text)
        .into_iter()
        .map(|piece| {
            let count = seen.entry(piece.hash.clone()).or_insert(0);
            *count += 1;
            let heading = terms::indexed(&piece.heading).words;
            let terms = terms::indexed(&piece.content);
            Prepared { ordinal: *count - 1, heading, terms, piece }
        })
        .collect();
    Ok(Fresh { found, hash, rows: Some(rows) })
}

/// One transaction: rows of pieces that are gone are deleted, those of new ones inserted, the rest stays.
async fn write(
    db: &mut SqliteConnection,
    fresh: Vec<Fresh>,
    gone: Vec<String>,
    now_ns: i64,
) -> Result<(usize, usize), sqlx::Error> {
    let mut transaction = db.begin_with("BEGIN IMMEDIATE").await?;
    let db = &mut *transaction;
    let mut dead: BTreeSet<i64> = BTreeSet::new();
    for source in &gone {
        dead.extend(ids(db, source).await?.into_values().map(|(id, _, _)| id));
        sqlx::query("DELETE FROM files WHERE source = ?").bind(source).execute(&mut *db).await?;
    }
    let mut new: BTreeMap<i64, (String, Prepared)> = BTreeMap::new();
    let mut next: HashMap<i64, i64> = HashMap::new();
    for file in fresh {
        if let Some(rows) = file.rows {
            // read inside the transaction: another process may have written this very file
            let mut standing = ids(db, &file.found.source).await?;
            for row in rows {
                let place = (row.piece.start_line, row.piece.end_line);
                match standing.remove(&(row.piece.hash.clone(), row.ordinal)) {
                    Some((_, start, end)) if (start, end) == place => {}
                    Some((id, _, _)) => {
                        sqlx::query("UPDATE chunks SET start_line = ?, end_line = ? WHERE id = ?")
                            .bind(place.0)
                            .bind(place.1)
                            .bind(id)
                            .execute(&mut *db)
                            .await?;
                    }
                    None => {
                        let id = free_id(db, &mut next, row.piece.date).await?;
                        new.insert(id, (file.found.source.clone(), row));
                    }
                }
            }
            dead.extend(standing.into_values().map(|(id, _, _)| id));
        }
        sqlx::query("INSERT OR REPLACE INTO files VALUES(?, ?, ?, ?, ?)")
            .bind(&file.found.source)
            .bind(file.found.mtime_ns)
            .bind(file.found.size)
            .bind(&file.hash)
            .bind(now_ns)
            .execute(&mut *db)
            .await?;
    }
    for id in &dead {
        for table in ["chunks_fts WHERE rowid", "chunks_fts_trigram WHERE rowid", "chunks WHERE id"] {
            sqlx::query(AssertSqlSafe(format!("DELETE FROM {table} = ?"))).bind(id).execute(&mut *db).await?;
        }
    }
    let counts = (new.len(), dead.len());
    insert(db, new).await?;
    transaction.commit().await?;
    Ok(counts)
}

type Standing = HashMap<(String, i64), (i64, i64, i64)>;

async fn ids(db: &mut SqliteConnection, source: &str) -> Result<Standing, sqlx::Error> {
    let rows = sqlx::query("SELECT chunk_hash, ordinal, id, start_line, end_line FROM chunks WHERE source = ?")
        .bind(source)
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| -> Result<_, sqlx::Error> {
            Ok(((row.try_get(0)?, row.try_get(1)?), (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?)))
        })
        .collect()
}

/// The next free id of a day; a day that is full goes on into the next one's.
async fn free_id(
    db: &mut SqliteConnection,
    next: &mut HashMap<i64, i64>,
    date: Option<NaiveDate>,
) -> Result<i64, sqlx::Error> {
    let epoch = NaiveDate::default();
    let day = date.map_or(0, |date| date.signed_duration_since(epoch).num_days().clamp(0, i64::from(u32::MAX)));
    let id = match next.get(&day) {
        Some(id) => *id,
        None => {
            let (from, to) = (day << DAY_BITS, (day + 1) << DAY_BITS);
            let row = sqlx::query("SELECT max(id) FROM chunks WHERE id >= ? AND id < ?").bind(from).bind(to);
            let last: Option<i64> = row.fetch_one(db).await?.try_get(0)?;
            last.map_or(from + 1, |last| last + 1)
        }
    };
    next.insert(day, id + 1);
    Ok(id)
}

/// Inserts rows in the order of their ids: the full-text tables keep what they have in memory only as long as ids grow.
async fn insert(db: &mut SqliteConnection, new: BTreeMap<i64, (String, Prepared)>) -> Result<(), sqlx::Error> {
    let rows: Vec<(i64, (String, Prepared))> = new.into_iter().collect();
    for part in rows.chunks(ROWS) {
        let values = |columns: usize| {
            let row = format!("({})", vec!["?"; columns].join(","));
            vec![row; part.len()].join(",")
        };
        let mut chunks = sqlx::query(AssertSqlSafe(format!("INSERT INTO chunks VALUES{}", values(9))));
        let mut words =
            sqlx::query(AssertSqlSafe(format!("INSERT INTO chunks_fts(rowid, heading, content) VALUES{}", values(3))));
        for (id, (source, row)) in part {
            let piece = &row.piece;
            chunks = chunks.bind(id).bind(source).bind(&piece.hash).bind(row.ordinal).bind(&piece.heading);
            chunks = chunks.bind(&piece.content).bind(piece.start_line).bind(piece.end_line);
            chunks = chunks.bind(piece.date.map(|date| date.to_string()));
            words = words.bind(id).bind(&row.heading).bind(&row.terms.words);
        }
        chunks.execute(&mut *db).await?;
        words.execute(&mut *db).await?;
    }
    let runs: Vec<(i64, &str)> =
        rows.iter().map(|(id, (_, row))| (*id, row.terms.runs.as_str())).filter(|(_, runs)| !runs.is_empty()).collect();
    for part in runs.chunks(ROWS) {
        let values = vec!["(?,?)"; part.len()].join(",");
        let insert = format!("INSERT INTO chunks_fts_trigram(rowid, content) VALUES{values}");
        let mut query = sqlx::query(AssertSqlSafe(insert));
        for (id, runs) in part {
            query = query.bind(id).bind(*runs);
        }
        query.execute(&mut *db).await?;
    }
    Ok(())
}
