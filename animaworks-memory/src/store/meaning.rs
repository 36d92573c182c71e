//! Finding by meaning: vectors of chunks are made in the background, those of questions when they are asked.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use animaworks_core::{MemoryError, ResultExt, error::chain, fs};
use sqlx::{Connection, Row, SqliteConnection};

use super::Inner;
use crate::{
    chunk::Kind,
    embed::{EmbedKind, Embedder},
    fuse::{Dense, POOL},
    index::{directory::ChunkId, failed, schema::Database},
    retrieve::{Asked, Files},
    text::subject,
    vector::{EmbeddedIndex, Position, Precision, RowSet, VectorChange, VectorIndex, VectorRow},
};

/// Texts of one call of the embedder, and rows of one transaction.
const BATCH: usize = 64;
/// Vectors of questions that are kept.
const CACHED: usize = 256;
/// Chunks whose likeness to a question says what is usual for it.
const SAMPLE: usize = 128;
/// A list is as long as this, so that a candidate of the words usually has its likeness too.
const NEAREST: usize = 10 * POOL;

/// The model, the vectors, and what is known of both.
#[derive(Debug)]
pub(crate) struct Meaning {
    pub(crate) embedder: Arc<dyn Embedder>,
    index: RwLock<Option<Arc<dyn VectorIndex>>>,
    /// Chunks that have a vector.
    embedded: RwLock<BTreeSet<ChunkId>>,
    questions: Mutex<VecDeque<(String, Arc<Vec<f32>>)>>,
    /// Vectors of some chunks chosen by what they say, and the state they were chosen in.
    sample: Mutex<(u64, Arc<Vec<Vec<f32>>>)>,
    /// One pass at a time.
    passing: tokio::sync::Mutex<()>,
    trouble: RwLock<Option<String>>,
}

fn index_error(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> MemoryError {
    MemoryError::Index { what: what.to_owned(), source: Box::new(error) }
}

impl Meaning {
    /// A model without vectors yet.
    pub(crate) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            index: RwLock::default(),
            embedded: RwLock::default(),
            questions: Mutex::default(),
            sample: Mutex::default(),
            passing: tokio::sync::Mutex::default(),
            trouble: RwLock::default(),
        }
    }

    /// How many chunks can be found by their meaning.
    pub(crate) fn count(&self) -> u64 {
        self.embedded.read().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Why it does not work, when it does not.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, trouble: Option<String>) {
        if let Some(why) = &trouble {
            tracing::warn!(why, "searching by words only");
        }
        *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn index(&self) -> Option<Arc<dyn VectorIndex>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The vector of a question, from the last ones where it is among them.
    async fn question(&self, text: &str) -> Result<Arc<Vec<f32>>, MemoryError> {
        let known = {
            let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
            questions.iter().find(|(known, _)| known == text).map(|(_, vector)| Arc::clone(vector))
        };
        if let Some(vector) = known {
            return Ok(vector);
        }
        let made = self.embedder.embed(EmbedKind::Query, vec![text.to_owned()]).await;
        let vector =
            made.map_err(|error| index_error("embed the question", error))?.into_iter().next().unwrap_or_default();
        let vector = Arc::new(vector);
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.len() >= CACHED {
            questions.pop_front();
        }
        questions.push_back((text.to_owned(), Arc::clone(&vector)));
        Ok(vector)
    }
}

impl Inner {
    /// Opens the vectors as of the position the database has; vectors of another model are left behind.
    pub(super) async fn open_vectors(&self) {
        let Some(meaning) = &self.meaning else { return };
        let Some(database) = self.database() else { return };
        match self.try_open_vectors(meaning, &database).await {
            Ok(()) => meaning.note(None),
            Err(error) => meaning.note(Some(chain(&error))),
        }
    }

    async fn try_open_vectors(&self, meaning: &Meaning, database: &Database) -> Result<(), MemoryError> {
        let (signature, position, embedded) = {
            let mut writer = database.writer.lock().await;
            recorded(&mut writer).await.map_err(failed("read the state of the vectors"))?
        };
        let directory = self.reading.dir.index().join("vectors");
        let dimensions = meaning.embedder.dimensions();
        let same = signature.as_deref() == Some(meaning.embedder.signature());
        let opened = fs::blocking::<_, MemoryError, _>(move || {
            let precision = Precision::default();
            let opened = position
                .filter(|_| same)
                .map(|position| EmbeddedIndex::open(&directory, dimensions, precision, Some(position)));
            match opened {
                Some(Ok(index)) => return Ok((index, true)),
                Some(Err(error)) => tracing::warn!(error = %chain(&error), "the vectors are made again"),
                None => {}
            }
            let fresh = EmbeddedIndex::fresh(&directory, dimensions, precision, position);
            Ok((fresh.map_err(|error| index_error("start the vectors", error))?, false))
        })
        .await?;
        let (index, kept) = opened;
        let index: Arc<dyn VectorIndex> = Arc::new(index);
        if !kept {
            let mut writer = database.writer.lock().await;
            forget(&mut writer, meaning.embedder.signature()).await.map_err(failed("forget the vectors"))?;
        }
        *meaning.embedded.write().unwrap_or_else(PoisonError::into_inner) =
            if kept { embedded } else { BTreeSet::new() };
        *meaning.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index);
        Ok(())
    }

    /// Makes the vectors that are missing and removes those of chunks that are gone; how many were made.
    pub(crate) async fn embed_missing(&self) -> Result<u64, MemoryError> {
        let (Some(meaning), Some(database)) = (&self.meaning, self.database()) else { return Ok(0) };
        let Some(index) = meaning.index() else { return Ok(0) };
        let _one = meaning.passing.lock().await;
        let mut made = 0;
        loop {
            let (missing, gone) = self.difference(meaning);
            if missing.is_empty() && gone.is_empty() {
                return Ok(made);
            }
            let (ids, texts) = self.texts(missing);
            let vectors = if texts.is_empty() {
                Vec::new()
            } else {
                tokio::select! {
                    made = meaning.embedder.embed(EmbedKind::Passage, texts) => {
                        made.map_err(|error| index_error("embed memory", error))?
                    }
                    // whoever closes does not wait for a whole memory to be read
                    () = self.closing.cancelled() => return Ok(made),
                }
            };
            let mut changes: Vec<VectorChange> = gone.iter().map(|id| VectorChange::Remove(id.0 as u64)).collect();
            let rows = ids.iter().zip(vectors).map(|(id, vector)| VectorRow { id: id.0 as u64, vector });
            changes.extend(rows.map(VectorChange::Put));
            if changes.is_empty() {
                return Ok(made);
            }
            let position = index.stage(changes).await.map_err(|error| index_error("write vectors", error))?;
            let recorded = {
                let mut writer = database.writer.lock().await;
                record(&mut writer, position, &ids, &gone).await
            };
            if let Err(error) = recorded {
                index.discard().await.log_err("take back vectors");
                return Err(failed("record vectors")(error));
            }
            index.publish(position).await.map_err(|error| index_error("publish vectors", error))?;
            made += ids.len() as u64;
            let mut embedded = meaning.embedded.write().unwrap_or_else(PoisonError::into_inner);
            embedded.extend(ids);
            for id in &gone {
                embedded.remove(id);
            }
        }
    }

    /// Some chunks without a vector, and all vectors without a chunk.
    fn difference(&self, meaning: &Meaning) -> (Vec<ChunkId>, Vec<ChunkId>) {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let embedded = meaning.embedded.read().unwrap_or_else(PoisonError::into_inner);
        let gone = embedded.iter().filter(|id| directory.doc(**id).is_none()).copied().collect();
        let all =
            directory.files().flat_map(|(_, source)| source.docs.iter().map(|seq| ChunkId::new(source.kind, *seq)));
        let missing =
            all.filter(|id| id.kind() != Some(Kind::ActivityLog) && !embedded.contains(id)).take(BATCH).collect();
        (missing, gone)
    }

    /// The texts of some chunks as they are embedded; a place that has just changed is left for the next pass.
    fn texts(&self, ids: Vec<ChunkId>) -> (Vec<ChunkId>, Vec<String>) {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let mut files = Files::new(&self.reading);
        let texts = ids.into_iter().filter_map(|id| Some((id, files.passage(&directory, id)?)));
        texts.unzip()
    }

    /// The nearest chunks to a question, and what is usual for it; `None` without a model or without vectors.
    pub(super) async fn dense(&self, asked: &Asked) -> Result<Option<Dense>, MemoryError> {
        let Some(meaning) = &self.meaning else { return Ok(None) };
        let Some(index) = meaning.index().filter(|_| meaning.count() > 0) else { return Ok(None) };
        let vector = meaning.question(&asked.text).await?;
        let allow = allowed(meaning, asked.kinds);
        let nearest = index.search(vector.as_ref().clone(), NEAREST, allow).await;
        let nearest = nearest.map_err(|error| index_error("search by meaning", error))?;
        let sample = self.sample(meaning, index.as_ref()).await?;
        let likeness = |other: &Vec<f32>| vector.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
        let usual: Vec<f32> = sample.iter().map(likeness).collect();
        let count = usual.len().max(1) as f32;
        let mean = usual.iter().sum::<f32>() / count;
        let variance = usual.iter().map(|cosine| (cosine - mean) * (cosine - mean)).sum::<f32>() / count;
        let mut dense = Dense { cosine: HashMap::new(), mean, deviation: variance.sqrt(), ..Dense::default() };
        for hit in nearest {
            let id = ChunkId(hit.id as i64);
            dense.cosine.insert(id, hit.cosine);
            dense.order.push(id);
        }
        if !subject::names(&asked.text).is_empty() {
            let first: Vec<ChunkId> = dense.order.iter().take(POOL).copied().collect();
            let ids = first.iter().map(|id| id.0 as u64).collect();
            let vectors = index.vectors(ids).await.map_err(|error| index_error("read vectors", error))?;
            let known = first.into_iter().zip(vectors).filter_map(|(id, vector)| Some((id, Arc::from(vector?))));
            dense.vectors = known.collect();
        }
        Ok(Some(dense))
    }

    /// Vectors of chunks chosen by their content, so that the choice is the same after building the index again.
    async fn sample(&self, meaning: &Meaning, index: &dyn VectorIndex) -> Result<Arc<Vec<Vec<f32>>>, MemoryError> {
        let state = meaning.count();
        let known = {
            let sample = meaning.sample.lock().unwrap_or_else(PoisonError::into_inner);
            // what is usual changes slowly
            (sample.0 > 0 && state.abs_diff(sample.0) * 20 <= state).then(|| Arc::clone(&sample.1))
        };
        if let Some(sample) = known {
            return Ok(sample);
        }
        let ids: Vec<u64> = {
            let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
            let embedded = meaning.embedded.read().unwrap_or_else(PoisonError::into_inner);
            let mut by_hash: Vec<(u64, i64)> =
                embedded.iter().filter_map(|id| Some((directory.doc(*id)?.hash, id.0))).collect();
            by_hash.sort_unstable();
            by_hash.into_iter().take(SAMPLE).map(|(_, id)| id as u64).collect()
        };
        let vectors = index.vectors(ids).await.map_err(|error| index_error("read vectors", error))?;
        let sample = Arc::new(vectors.into_iter().flatten().collect::<Vec<_>>());
        *meaning.sample.lock().unwrap_or_else(PoisonError::into_inner) = (state, Arc::clone(&sample));
        Ok(sample)
    }
}

/// The rows of a scope; `None` when it is everything.
fn allowed(meaning: &Meaning, kinds: &[Kind]) -> Option<Arc<RowSet>> {
    if kinds.len() == Kind::ALL.len() {
        return None;
    }
    let embedded = meaning.embedded.read().unwrap_or_else(PoisonError::into_inner);
    let mut set = RowSet::new();
    for id in embedded.iter().filter(|id| id.kind().is_some_and(|kind| kinds.contains(&kind))) {
        set.insert(id.0 as u64);
    }
    Some(Arc::new(set))
}

/// What the database knows of the vectors.
async fn recorded(
    connection: &mut SqliteConnection,
) -> Result<(Option<String>, Option<Position>, BTreeSet<ChunkId>), sqlx::Error> {
    let mut signature = None;
    let mut position = None;
    for row in
        sqlx::query("SELECT key, CAST(value AS TEXT) FROM meta WHERE key IN ('vectors.signature', 'vectors.position')")
            .fetch_all(&mut *connection)
            .await?
    {
        let value: String = row.try_get(1)?;
        match row.try_get::<&str, _>(0)? {
            "vectors.signature" => signature = Some(value),
            _ => position = value.parse().ok(),
        }
    }
    let rows = sqlx::query("SELECT id FROM embedded").fetch_all(&mut *connection).await?;
    let embedded = rows.iter().map(|row| row.try_get(0).map(ChunkId)).collect::<Result<_, _>>()?;
    Ok((signature, position, embedded))
}

/// Records where the vectors stand, in one transaction with which chunks have one.
async fn record(
    connection: &mut SqliteConnection,
    position: Position,
    made: &[ChunkId],
    gone: &[ChunkId],
) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for id in made {
        sqlx::query("INSERT OR REPLACE INTO embedded(id) VALUES(?)").bind(id.0).execute(&mut *transaction).await?;
    }
    for id in gone {
        sqlx::query("DELETE FROM embedded WHERE id = ?").bind(id.0).execute(&mut *transaction).await?;
    }
    sqlx::query("INSERT OR REPLACE INTO meta(key, value) VALUES('vectors.position', ?)")
        .bind(position.to_string().into_bytes())
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}

/// Starts over with a model.
async fn forget(connection: &mut SqliteConnection, signature: &str) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("DELETE FROM embedded").execute(&mut *transaction).await?;
    sqlx::query("DELETE FROM meta WHERE key = 'vectors.position'").execute(&mut *transaction).await?;
    sqlx::query("INSERT OR REPLACE INTO meta(key, value) VALUES('vectors.signature', ?)")
        .bind(signature.as_bytes())
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}
