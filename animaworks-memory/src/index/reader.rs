//! Reading the index: the directory at the start, posting rows for every question.

use animaworks_core::{MemoryError, Origin};
use sqlx::{AssertSqlSafe, Row, SqliteConnection, SqlitePool};

use super::{
    directory::{ChunkId, Directory, Doc, Source, blocks_of},
    failed,
    writer::{FileFacts, ORIGIN, SPEAKER, generation_from, origin_key},
};
use crate::{chunk::Kind, text::terms::QueryTerm};

/// Reads everything that is kept in memory.
///
/// # Errors
///
/// [`MemoryError::Index`]; a row that makes no sense counts as a broken database.
pub(crate) async fn load(connection: &mut SqliteConnection) -> Result<Directory, MemoryError> {
    read_all(connection).await.map_err(failed("read the index"))
}

async fn read_all(connection: &mut SqliteConnection) -> Result<Directory, sqlx::Error> {
    use sqlx::Connection;
    let nonsense = |what: &str| sqlx::Error::Protocol(format!("a row of {what} makes no sense"));
    let mut transaction = connection.begin().await?;
    let mut directory = Directory::default();
    for row in sqlx::query("SELECT kind, value FROM names ORDER BY kind, id").fetch_all(&mut *transaction).await? {
        let value: &str = row.try_get(1)?;
        match row.try_get::<&str, _>(0)? {
            SPEAKER => {
                directory.speakers.intern(value, &value.to_owned());
            }
            ORIGIN => {
                let origin: Origin = serde_json::from_str(value).map_err(|error| sqlx::Error::Decode(error.into()))?;
                directory.origins.intern(&origin_key(&origin), &origin);
            }
            _ => return Err(nonsense("names")),
        }
    }
    let mut kinds = std::collections::HashMap::new();
    for row in sqlx::query("SELECT id, path, facts FROM files ORDER BY id").fetch_all(&mut *transaction).await? {
        let number = u32::try_from(row.try_get::<i64, _>(0)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
        let facts: FileFacts =
            serde_json::from_str(row.try_get(2)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
        let kind = Kind::from_number(i64::from(facts.kind)).ok_or_else(|| nonsense("files"))?;
        kinds.insert(number, kind);
        let source = Source {
            path: row.try_get(1)?,
            kind,
            mtime_ns: facts.mtime_ns,
            size: facts.size,
            checked_ns: facts.checked_ns,
            hash: facts.hash,
            tail: facts.tail,
            lines: facts.lines,
            title: facts.title,
            links: facts.links,
            origin: facts.origin,
            docs: Vec::new(),
        };
        directory.put_source(number, source);
    }
    for row in sqlx::query("SELECT id, file, facts FROM chunks ORDER BY id").fetch_all(&mut *transaction).await? {
        let id = ChunkId(row.try_get(0)?);
        let file = u32::try_from(row.try_get::<i64, _>(1)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
        let doc = Doc::unpack(file, row.try_get(2)?).ok_or_else(|| nonsense("chunks"))?;
        if id.kind() != kinds.get(&file).copied() {
            return Err(nonsense("chunks"));
        }
        directory.put(id, doc);
        if let Some(Some(source)) = directory.sources.get_mut(file as usize) {
            source.docs.push(u32::try_from(id.seq()).unwrap_or(u32::MAX));
        }
    }
    directory.order_docs();
    for row in sqlx::query("SELECT key, value FROM meta").fetch_all(&mut *transaction).await? {
        let value = generation_from(row.try_get(1)?);
        match row.try_get::<&str, _>(0)? {
            "generation" => directory.generation = value,
            key => {
                let kind = Kind::ALL.into_iter().find(|kind| key.strip_prefix("next.") == Some(kind.as_str()));
                if let Some(kind) = kind {
                    directory.reserve(kind, u32::try_from(value).unwrap_or(u32::MAX));
                }
            }
        }
    }
    transaction.commit().await?;
    Ok(directory)
}

/// The posting rows of a question.
#[derive(Debug, Default)]
pub(crate) struct PostingRows {
    /// The state of the database they were read from.
    pub(crate) generation: u64,
    /// Number of the term, block, data.
    pub(crate) rows: Vec<(usize, i64, Vec<u8>)>,
}

/// Reads the posting rows of some terms, in one statement.
///
/// # Errors
///
/// [`MemoryError::Index`].
///
/// # Cancel safety
///
/// Safe.
pub(crate) async fn postings(
    readers: &SqlitePool,
    terms: &[QueryTerm],
    kinds: &[Kind],
) -> Result<PostingRows, MemoryError> {
    fetch(readers, terms, kinds).await.map_err(failed("search the index"))
}

async fn fetch(readers: &SqlitePool, terms: &[QueryTerm], kinds: &[Kind]) -> Result<PostingRows, sqlx::Error> {
    // a few sizes only, so that the statements stay prepared; the rest is filled with a term nobody has
    let size =
        [4, 8, 16, 32, 64].into_iter().find(|size| *size >= terms.len()).unwrap_or(crate::text::terms::MAX_QUERY_TERMS);
    let (first, last) = match kinds {
        [kind] => blocks_of(*kind),
        _ => (0, i64::MAX),
    };
    let marks = vec!["?"; size].join(",");
    let sql = format!(
        "SELECT '', 0, value FROM meta WHERE key = 'generation' UNION ALL \
         SELECT term, block, data FROM postings WHERE term IN ({marks}) AND block >= ? AND block < ?"
    );
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for at in 0..size {
        query = query.bind(terms.get(at).map(|term| term.key.as_str()));
    }
    let found = query.bind(first).bind(last).fetch_all(readers).await?;
    let numbers: std::collections::HashMap<&str, usize> =
        terms.iter().enumerate().map(|(at, term)| (term.key.as_str(), at)).collect();
    let mut rows = PostingRows { generation: 0, rows: Vec::with_capacity(found.len()) };
    for row in &found {
        let term: &str = row.try_get(0)?;
        let data: &[u8] = row.try_get(2)?;
        if term.is_empty() {
            rows.generation = generation_from(data);
        } else if let Some(number) = numbers.get(term) {
            rows.rows.push((*number, row.try_get(1)?, data.to_owned()));
        }
    }
    Ok(rows)
}
