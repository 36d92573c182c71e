//! Opening the database: made when missing, set aside when it is broken or of another version.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use sqlx::{
    Connection, Row, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use animaworks_core::{MemoryError, fs};

use super::failed;

/// The version of everything in the file, terms and chunk borders included.
const VERSION: i64 = 3;

const TABLES: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE chunks(id INTEGER PRIMARY KEY, file INTEGER NOT NULL, facts BLOB NOT NULL);
CREATE TABLE embedded(id INTEGER PRIMARY KEY);
CREATE TABLE names(kind TEXT NOT NULL, id INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY(kind, id)) WITHOUT ROWID;
CREATE TABLE postings(term TEXT NOT NULL, block INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(term, block)) WITHOUT ROWID;
INSERT INTO meta VALUES('generation', x'0000000000000000');
";

/// An open database: one writer, two readers.
#[derive(Debug)]
pub(crate) struct Database {
    /// The one connection that writes.
    pub(crate) writer: tokio::sync::Mutex<SqliteConnection>,
    /// Those that only read.
    pub(crate) readers: SqlitePool,
}

impl Database {
    /// Gives back the pages that its connections keep.
    ///
    /// # Errors
    ///
    /// When a connection is broken.
    pub(crate) async fn shrink(&self) -> Result<(), sqlx::Error> {
        const SHRINK: &str = "PRAGMA shrink_memory";
        sqlx::raw_sql(SHRINK).execute(&mut *self.writer.lock().await).await?;
        // whoever is reading keeps what it reads with
        let mut idle = Vec::new();
        while let Some(reader) = self.readers.try_acquire() {
            idle.push(reader);
        }
        for reader in &mut idle {
            sqlx::raw_sql(SHRINK).execute(&mut **reader).await?;
        }
        Ok(())
    }
}

/// Where the database of an index directory is.
pub(crate) fn file_in(directory: &Path) -> PathBuf {
    directory.join("memory.sqlite")
}

/// Opens the database; whether it had to be made, and is empty.
///
/// # Errors
///
/// [`MemoryError::Index`] when even a fresh one cannot be made.
pub(crate) async fn open(directory: &Path, stamp: &str) -> Result<(Database, bool), MemoryError> {
    fs::create_dir(directory)?;
    let path = file_in(directory);
    match connect(&path).await {
        Ok((database, fresh)) => Ok((database, fresh)),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "the index is set aside and built again");
            set_aside(&path, stamp)?;
            let (database, _) = connect(&path).await.map_err(failed("make a new index"))?;
            Ok((database, true))
        }
    }
}

/// Moves the database files away under a dated name.
///
/// # Errors
///
/// [`MemoryError::File`] when they cannot be moved.
pub(crate) fn set_aside(path: &Path, stamp: &str) -> Result<(), MemoryError> {
    for suffix in ["", "-wal", "-shm"] {
        let from = with_suffix(path, suffix);
        if !from.exists() {
            continue;
        }
        if suffix == "-shm" {
            // it only mirrors the other two
            fs::remove_if_exists(&from)?;
            continue;
        }
        let mut to = with_suffix(path, &format!(".corrupt.{stamp}{suffix}"));
        let mut n = 0;
        while to.exists() {
            n += 1;
            to = with_suffix(path, &format!(".corrupt.{stamp}.{n}{suffix}"));
        }
        fs::move_file(&from, &to)?;
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

async fn connect(path: &Path) -> Result<(Database, bool), sqlx::Error> {
    let options = SqliteConnectOptions::from_str("sqlite::memory:")?
        .in_memory(false)
        .shared_cache(false)
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(10))
        .pragma("cache_size", "-1024")
        .pragma("mmap_size", "268435456")
        .statement_cache_capacity(32);
    let mut writer = SqliteConnection::connect_with(&options).await?;
    let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(&mut writer).await?.try_get(0)?;
    let fresh = version == 0;
    if fresh {
        let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        // another process may have been first
        let version: i64 = sqlx::query("PRAGMA user_version").fetch_one(&mut *transaction).await?.try_get(0)?;
        if version == 0 {
            sqlx::raw_sql(TABLES).execute(&mut *transaction).await?;
            sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA user_version = {VERSION}")))
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
    } else if version != VERSION {
        return Err(sqlx::Error::Protocol(format!("index version {version}, this program has {VERSION}")));
    }
    // a file that opens but cannot be read is found here, not in the middle of a search
    sqlx::query("SELECT count(*) FROM meta").fetch_one(&mut writer).await?;
    let readers = SqlitePoolOptions::new()
        .max_connections(2)
        .acquire_timeout(Duration::from_secs(5))
        .test_before_acquire(false)
        .connect_lazy_with(options.read_only(true).create_if_missing(false));
    Ok((Database { writer: tokio::sync::Mutex::new(writer), readers }, fresh))
}
