//! The shadow of one directory: `.pack/memory_index.db`, made when missing, set aside when broken.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use animaworks_core::{
    MemoryError, ResultExt,
    fs::{self, Privacy},
};
use sqlx::{
    AssertSqlSafe, Connection, Row,
    sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous},
};

use super::OWN_DIR;
use crate::index::{failed, is_corrupt, schema::set_aside};

/// The version of everything in the file, borders of pieces and terms included.
const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    source TEXT PRIMARY KEY, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    hash TEXT NOT NULL, checked_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, chunk_hash TEXT NOT NULL, ordinal INTEGER NOT NULL,
    heading TEXT NOT NULL, content TEXT NOT NULL, start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, date TEXT,
    UNIQUE(source, chunk_hash, ordinal)
);
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    heading, content, tokenize = 'porter unicode61 remove_diacritics 2',
    content = '', contentless_delete = 1, detail = column
);
CREATE VIRTUAL TABLE chunks_fts_trigram USING fts5(
    content, tokenize = 'trigram', content = '', contentless_delete = 1, detail = none
);
INSERT INTO meta VALUES('schema_version', '1');
INSERT INTO chunks_fts(chunks_fts, rank) VALUES('hashsize', 33554432);
INSERT INTO chunks_fts_trigram(chunks_fts_trigram, rank) VALUES('hashsize', 33554432);
";

/// An open shadow.
#[derive(Debug)]
pub(super) struct Shadow {
    pub(super) db: SqliteConnection,
}

/// Where the database of a directory is.
pub(super) fn file_in(dir: &Path) -> PathBuf {
    dir.join(OWN_DIR).join("memory_index.db")
}

/// Makes the directory of what is not memory, with the rule that keeps it out of repositories.
pub(super) fn own_dir(dir: &Path) -> Result<PathBuf, MemoryError> {
    let own = dir.join(OWN_DIR);
    let rule = own.join(".gitignore");
    if !rule.is_file() {
        fs::write_atomic(&rule, b"*\n", Privacy::Normal)?;
    }
    Ok(own)
}

impl Shadow {
    /// Opens the shadow of a directory; one that cannot be opened is set aside under `stamp` and made anew.
    pub(super) async fn open(dir: &Path, stamp: &str) -> Result<Self, MemoryError> {
        own_dir(dir)?;
        let path = file_in(dir);
        match Self::connect(&path).await {
            Ok(shadow) => Ok(shadow),
            Err(error) if is_of_another_version(&error) || is_corrupt(&error) => {
                Self::discard(dir, stamp, &error)?;
                Self::connect(&path).await
            }
            Err(error) => Err(error),
        }
    }

    /// Sets a broken shadow aside, so that the next opening makes a new one.
    pub(super) fn discard(dir: &Path, stamp: &str, why: &MemoryError) -> Result<(), MemoryError> {
        tracing::warn!(error = %why, dir = %dir.display(), "the index is set aside and built again");
        set_aside(&file_in(dir), stamp)
    }

    async fn connect(path: &Path) -> Result<Self, MemoryError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(5))
            .pragma("cache_size", "-16384")
            .pragma("mmap_size", "268435456")
            .statement_cache_capacity(32);
        let mut db = SqliteConnection::connect_with(&options).await.map_err(failed("open"))?;
        match version(&mut db).await.map_err(failed("read the version"))? {
            0 => create(&mut db).await.map_err(failed("make the tables"))?,
            VERSION => {}
            other => {
                let text = format!("index version {other}, this program has {VERSION}");
                return Err(failed("open")(sqlx::Error::Protocol(text)));
            }
        }
        Ok(Self { db })
    }

    /// Closes it, so that nothing of it is written later; the last one to close leaves one file.
    pub(super) async fn close(self) {
        self.db.close().await.log_err("close the index");
    }

    /// Whether the whole file is sound; slow on large ones.
    pub(super) async fn is_sound(&mut self) -> Result<bool, MemoryError> {
        let row = sqlx::query("PRAGMA quick_check(1)").fetch_one(&mut self.db).await.map_err(failed("check"))?;
        Ok(row.try_get::<&str, _>(0).map_err(failed("check"))? == "ok")
    }
}

fn is_of_another_version(error: &MemoryError) -> bool {
    let MemoryError::Index { source, .. } = error else { return false };
    matches!(source.downcast_ref::<sqlx::Error>(), Some(sqlx::Error::Protocol(_)))
}

async fn version(db: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query("PRAGMA user_version").fetch_one(db).await?.try_get(0)
}

async fn create(db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut transaction = db.begin_with("BEGIN IMMEDIATE").await?;
    // another process may have been first
    if version(&mut transaction).await? == 0 {
        sqlx::raw_sql(TABLES).execute(&mut *transaction).await?;
        let stamp = format!("PRAGMA user_version = {VERSION}");
        sqlx::raw_sql(AssertSqlSafe(stamp)).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}
