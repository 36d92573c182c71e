//! Keeping the index up to date with the files.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use animaworks_core::{Indexed, MemoryError, MemoryPath, ResultExt, error::chain, fs, memory::Changed, tasks::Tasks};

use super::Inner;
use crate::index::{
    directory::{Directory, Source},
    is_corrupt,
    plan::{self, Look, looks_unchanged},
    reader,
    schema::{self, Database},
    sources::{self, Found, Ignored},
    writer::{self, Batch},
};

/// So many chunks are written in one transaction.
const BATCH_CHUNKS: usize = 4096;
/// Files are looked over again when a question comes this long after the last time.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// A look over the files begins again at most this often because another process wrote.
const ATTEMPTS: usize = 5;
/// The first question waits this long for the first look over all files.
const FIRST_SWEEP_WAIT: Duration = Duration::from_secs(2);

impl Inner {
    /// Opens the database and reads the directory; what goes wrong is remembered as trouble.
    pub(super) async fn open_index(&self) {
        match self.try_open().await {
            Ok(()) => *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = None,
            Err(error) => {
                tracing::error!(error = %chain(&error), "the index cannot be used; files are searched instead");
                *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = Some(chain(&error));
            }
        }
    }

    async fn try_open(&self) -> Result<(), MemoryError> {
        let directory = self.reading.dir.index();
        let (database, _) = schema::open(&directory, &self.home.stamp_name()).await?;
        let loaded = {
            let mut writer = database.writer.lock().await;
            reader::load(&mut writer).await
        };
        let (database, loaded) = match loaded {
            Ok(loaded) => (database, loaded),
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the index cannot be read and is built again");
                database.readers.close().await;
                drop(database);
                schema::set_aside(&schema::file_in(&directory), &self.home.stamp_name())?;
                let (database, _) = schema::open(&directory, &self.home.stamp_name()).await?;
                (database, Directory::default())
            }
        };
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(database));
        Ok(())
    }

    pub(super) fn database(&self) -> Option<Arc<Database>> {
        self.database.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn take_database(&self) -> Option<Arc<Database>> {
        self.database.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn generation(&self) -> u64 {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).generation
    }

    pub(super) fn chunk_count(&self) -> u64 {
        self.directory.read().unwrap_or_else(PoisonError::into_inner).extent(&crate::chunk::Kind::ALL).live
    }

    /// Pages of which only the beginning is searched, with their sizes.
    pub(super) fn cut_pages(&self) -> Vec<(String, u64)> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let cut = directory
            .files()
            .filter(|(_, source)| source.size > plan::MAX_PAGE && !source.kind.is_record(&source.path))
            .map(|(_, source)| (source.path.clone(), source.size));
        cut.collect()
    }

    /// Follows what another process wrote.
    pub(super) async fn reload(&self, database: &Database) -> Result<(), MemoryError> {
        let mut writer = database.writer.lock().await;
        let loaded = reader::load(&mut writer).await?;
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// A search failed in the database: a broken file is set aside and built again.
    pub(super) async fn index_failed(&self, error: &MemoryError) {
        *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = Some(chain(error));
        if !is_corrupt(error) {
            return;
        }
        tracing::error!(error = %chain(error), "the index is broken; it is set aside and built again");
        if let Some(database) = self.take_database() {
            database.readers.close().await;
        }
        let aside = schema::set_aside(&schema::file_in(&self.reading.dir.index()), &self.home.stamp_name());
        if aside.log_err("set the broken index aside").is_some() {
            *self.directory.write().unwrap_or_else(PoisonError::into_inner) = Directory::default();
            *self.swept.write().unwrap_or_else(PoisonError::into_inner) = None;
            self.open_index().await;
            self.open_vectors().await;
        }
    }

    /// Sees to it that files were looked over lately. The first time it waits a little; later it only starts it.
    pub(crate) async fn catch_up(self: &Arc<Self>, tasks: &Tasks) {
        let swept = *self.swept.read().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.elapsed();
        if swept.is_some_and(|at| now.saturating_sub(at) < SWEEP_EVERY) {
            return;
        }
        if swept.is_some() {
            // marked at once, so that questions in quick succession start one look, not many
            *self.swept.write().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
        let (done, finished) = tokio::sync::oneshot::channel();
        let this = Arc::clone(self);
        tasks.spawn("catch up", async move {
            this.refresh(Changed::Sweep).await.log_err("bring the index up to date");
            done.send(()).map_err(|()| "nobody waits").ignore("the question was answered without it");
            this.embed_missing().await.log_err("make vectors");
        });
        if swept.is_none() {
            let waited = tokio::time::timeout(FIRST_SWEEP_WAIT, finished).await;
            if waited.is_err() {
                tracing::debug!("the first look over the files takes long; what is there is searched");
            }
        }
    }

    /// Makes a written file findable; when that fails the next look over the files finds it.
    pub(super) async fn refresh_after_write(&self, path: &MemoryPath) {
        self.refresh(Changed::Paths(vec![path.clone()])).await.log_err("index what was written");
    }

    /// Brings the index up to date.
    pub(crate) async fn refresh(&self, changed: Changed) -> Result<Indexed, MemoryError> {
        let _one = self.refreshing.lock().await;
        if changed == Changed::Everything {
            self.start_over().await?;
        }
        let Some(database) = self.database() else {
            return Err(MemoryError::Index {
                what: "open the index".to_owned(),
                source: self.trouble().unwrap_or_else(|| "it is closed".to_owned()).into(),
            });
        };
        let sweep = !matches!(changed, Changed::Paths(_));
        let mut done = Indexed::default();
        // another process may write in between; then what is left to do is looked up again
        for _ in 0..ATTEMPTS {
            if self.pass(&database, &changed, &mut done).await? {
                break;
            }
            self.reload(&database).await?;
        }
        if writer::wants_compaction(&self.directory.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut connection = database.writer.lock().await;
            writer::compact(&mut connection, &self.directory).await.log_err("compact the index");
        }
        if sweep {
            *self.swept.write().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.elapsed());
            *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(done)
    }

    /// Writes everything that differs; whether it came to its end without another process writing in between.
    async fn pass(&self, database: &Database, changed: &Changed, done: &mut Indexed) -> Result<bool, MemoryError> {
        let (found, gone) = self.compare(changed);
        done.files = found.len() as u64 + gone.len() as u64;
        let mut batch = Batch { removed: gone, ..Batch::default() };
        let mut chunks = 0;
        for found in found {
            self.look(&found, &mut batch, &mut chunks);
            if chunks >= BATCH_CHUNKS {
                chunks = 0;
                if !self.write(database, std::mem::take(&mut batch), done).await? {
                    return Ok(false);
                }
            }
        }
        self.write(database, batch, done).await
    }

    /// Forgets the index, to build it again from nothing.
    async fn start_over(&self) -> Result<(), MemoryError> {
        if let Some(database) = self.take_database() {
            database.readers.close().await;
        }
        let file = schema::file_in(&self.reading.dir.index());
        for suffix in ["", "-wal", "-shm"] {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            fs::remove_if_exists(std::path::Path::new(&name))?;
        }
        *self.directory.write().unwrap_or_else(PoisonError::into_inner) = Directory::default();
        self.open_index().await;
        self.open_vectors().await;
        Ok(())
    }

    /// Files that may have changed, and numbers of files that are gone.
    fn compare(&self, changed: &Changed) -> (Vec<Found>, Vec<u32>) {
        let ignored = Ignored::read(&self.reading.dir);
        let today = self.home.today();
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let differs =
            |found: &Found| directory.source_at(&found.path).is_none_or(|known| !looks_unchanged(known, found));
        match changed {
            Changed::Paths(paths) => {
                let mut seen = Vec::new();
                let mut gone = Vec::new();
                for path in paths {
                    match sources::look(&self.reading.dir, &ignored, path, today) {
                        Some(found) => seen.push(found),
                        None => gone.extend(directory.number_of(path.as_str())),
                    }
                }
                (seen, gone)
            }
            Changed::Sweep | Changed::Everything => {
                let all = sources::walk(&self.reading.dir, &ignored, today);
                let here: std::collections::BTreeSet<&str> = all.iter().map(|found| found.path.as_str()).collect();
                let gone = directory
                    .files()
                    .filter(|(_, source)| !here.contains(source.path.as_str()))
                    .map(|(number, _)| number);
                let gone = gone.collect();
                (all.into_iter().filter(differs).collect(), gone)
            }
        }
    }

    /// Reads one file into the batch. A file that cannot be read is logged and stays as it was.
    fn look(&self, found: &Found, batch: &mut Batch, chunks: &mut usize) {
        let now_ns = self.clock.now().timestamp_nanos_opt().unwrap_or(i64::MAX);
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let number = directory.number_of(&found.path);
        let known: Option<&Source> = number.and_then(|number| directory.source(number));
        match plan::look(&self.reading, known, &directory, found, now_ns).log_err("read a memory file") {
            Some(Look::Same) => batch.checked.extend(number.map(|number| (number, found.mtime_ns, now_ns))),
            Some(Look::Changed(update)) => {
                *chunks += update.docs.len();
                batch.updates.push(*update);
            }
            None => {}
        }
    }

    /// Writes a batch; `false` when another process was faster.
    async fn write(&self, database: &Database, batch: Batch, done: &mut Indexed) -> Result<bool, MemoryError> {
        if batch.is_empty() {
            return Ok(true);
        }
        let changed = batch.updates.len() as u64 + batch.removed.len() as u64;
        let written = {
            let mut connection = database.writer.lock().await;
            writer::commit(&mut connection, &self.directory, batch).await?
        };
        let Some(outcome) = written else { return Ok(false) };
        outcome.apply(&mut self.directory.write().unwrap_or_else(PoisonError::into_inner));
        done.changed_files += changed;
        done.added += outcome.added.len() as u64;
        done.removed += outcome.removed().len() as u64;
        Ok(true)
    }
}
