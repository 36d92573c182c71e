//! The embedded index: an exact scan over append-only, memory-mapped segments of 8-bit rows.
//!
//! There is no build step and nothing to tune: an append costs a write, a removal a bit, and a search compares the
//! query with every live row. Figures are in `docs/adr/0002-own-embedder.md`.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use animaworks_core::fs::blocking;
use async_trait::async_trait;

use super::{
    Position, RowSet, VectorChange, VectorError, VectorHealth, VectorHit, VectorIndex, VectorRow,
    scan::Ranked,
    segment::{Shape, Slots, Snapshot},
};

/// How exactly rows are kept. On e5 vectors, against exact f32 search:
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Precision {
    /// 8 bits per value: recall@10 0.99, one byte per dimension.
    #[default]
    Coarse = 0,
    /// 12 bits, the lower four read only to re-rank the best: recall@10 above 0.999, half as much again on disk.
    Fine = 1,
}

/// An exact index in a directory of its own.
#[derive(Debug)]
pub struct EmbeddedIndex {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shape: Shape,
    // the order of locks: writer, then published
    writer: Mutex<Writer>,
    published: Mutex<Published>,
}

#[derive(Debug)]
struct Published {
    snapshot: Arc<Snapshot>,
    slots: Slots,
}

/// What is staged.
#[derive(Debug)]
struct Writer {
    staged: Position,
    /// Rows written since the last publish: id to place, or `None` for removed.
    overlay: HashMap<u64, Option<u64>>,
    gone: Vec<u64>,
    swept: bool,
}

impl Writer {
    fn reset(&mut self, at: Position) {
        self.staged = at;
        self.overlay = HashMap::new();
        self.gone = Vec::new();
    }
}

impl EmbeddedIndex {
    /// Opens the index as of the position that the caller has recorded; `None` for one that was never written.
    /// Blocks for about a millisecond per 100,000 rows.
    ///
    /// # Errors
    ///
    /// [`VectorError::Corrupt`] when the files do not hold what was recorded: rebuild with a
    /// [`fresh`](Self::fresh) one.
    pub fn open(
        dir: &Path,
        dimensions: usize,
        precision: Precision,
        committed: Option<Position>,
    ) -> Result<Self, VectorError> {
        let shape = Shape { dir: dir.to_owned(), dimensions, precision };
        let position = committed.unwrap_or_default();
        let (snapshot, slots) = Snapshot::open(&shape, position)?;
        let writer = Writer { staged: position, overlay: HashMap::new(), gone: Vec::new(), swept: false };
        let published = Published { snapshot: Arc::new(snapshot), slots };
        Ok(Self { inner: Arc::new(Inner { shape, writer: Mutex::new(writer), published: Mutex::new(published) }) })
    }

    /// Starts over: an empty index whose files do not touch those of any older position, so that the old one stays
    /// usable until the new position is recorded.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn fresh(
        dir: &Path,
        dimensions: usize,
        precision: Precision,
        old: Option<Position>,
    ) -> Result<Self, VectorError> {
        let generation = old.map_or(0, |old| old.generation + 1);
        Self::open(dir, dimensions, precision, Some(Position { generation, ..Position::default() }))
    }

    /// Gives the mapped pages back to the machine; the next search reads them again.
    ///
    /// # Errors
    ///
    /// What the kernel says; nothing is lost by it.
    pub fn release(&self) -> std::io::Result<()> {
        self.inner.snapshot().release()
    }

    fn check(&self, vector: &[f32]) -> Result<(), VectorError> {
        let expected = self.inner.shape.dimensions;
        if vector.len() == expected { Ok(()) } else { Err(VectorError::Dimensions { expected, got: vector.len() }) }
    }
}

impl Inner {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published().snapshot)
    }

    fn stage(&self, changes: Vec<VectorChange>) -> Result<Position, VectorError> {
        let mut writer = self.writer();
        let at = self.snapshot().position;
        if writer.staged.generation != at.generation {
            // a compaction waits to be published; rows behind it would not be in it
            return Err(VectorError::Position { at: writer.staged, given: at });
        }
        if !writer.swept {
            self.shape.sweep(at.generation)?;
            writer.swept = true;
        }
        let (mut rows, mut gone): (Vec<VectorRow>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut overlay = HashMap::new();
        for change in changes {
            match change {
                VectorChange::Put(row) => {
                    overlay.insert(row.id, Some(writer.staged.rows + rows.len() as u64));
                    rows.push(row);
                }
                VectorChange::Remove(id) => {
                    let staged = overlay.get(&id).or_else(|| writer.overlay.get(&id)).copied();
                    let slot = match staged {
                        Some(slot) => slot,
                        None => self.published().slots.get(&id).copied().map(u64::from),
                    };
                    if let Some(slot) = slot {
                        gone.push(slot);
                        overlay.insert(id, None);
                    }
                }
            }
        }
        writer.staged = self.shape.append(writer.staged, &rows, &gone)?;
        writer.overlay.extend(overlay);
        writer.gone.extend(gone);
        Ok(writer.staged)
    }

    fn publish(&self, position: Position) -> Result<(), VectorError> {
        let mut writer = self.writer();
        if position != writer.staged {
            return Err(VectorError::Position { at: writer.staged, given: position });
        }
        let current = self.snapshot();
        if position.generation == current.position.generation {
            let mut published = self.published();
            let published = &mut *published;
            published.snapshot = Arc::new(current.grown(position, &writer.gone, &mut published.slots)?);
        } else {
            let (snapshot, slots) = Snapshot::open(&self.shape, position)?;
            *self.published() = Published { snapshot: Arc::new(snapshot), slots };
            self.shape.sweep(position.generation)?;
        }
        writer.reset(position);
        Ok(())
    }

    fn discard(&self) -> Result<(), VectorError> {
        let mut writer = self.writer();
        let at = self.snapshot().position;
        if writer.staged.generation != at.generation {
            self.shape.sweep(at.generation)?;
        }
        writer.reset(at);
        Ok(())
    }

    fn compact(&self) -> Result<Option<Position>, VectorError> {
        let mut writer = self.writer();
        let snapshot = self.snapshot();
        if writer.staged != snapshot.position {
            return Err(VectorError::Position { at: writer.staged, given: snapshot.position });
        }
        if snapshot.live == snapshot.position.rows && snapshot.position.removed == 0 {
            return Ok(None);
        }
        let position = snapshot.copy_live(snapshot.position.generation + 1)?;
        writer.staged = position;
        Ok(Some(position))
    }

    fn vectors(&self, ids: &[u64]) -> Vec<Option<Vec<f32>>> {
        let (snapshot, slots): (_, Vec<Option<u32>>) = {
            let published = self.published();
            let slots = ids.iter().map(|id| published.slots.get(id).copied()).collect();
            (Arc::clone(&published.snapshot), slots)
        };
        slots.into_iter().map(|slot| snapshot.vector(slot?)).collect()
    }

    fn health(&self) -> VectorHealth {
        let snapshot = self.snapshot();
        VectorHealth {
            live: snapshot.live,
            dead: snapshot.position.rows - snapshot.live,
            bytes: self.shape.bytes(snapshot.position.generation),
            position: snapshot.position,
            problem: None,
        }
    }
}

#[async_trait]
impl VectorIndex for EmbeddedIndex {
    fn dimensions(&self) -> usize {
        self.inner.shape.dimensions
    }

    async fn stage(&self, changes: Vec<VectorChange>) -> Result<Position, VectorError> {
        for change in &changes {
            if let VectorChange::Put(row) = change {
                self.check(&row.vector)?;
            }
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.stage(changes)).await
    }

    async fn publish(&self, position: Position) -> Result<(), VectorError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.publish(position)).await
    }

    async fn discard(&self) -> Result<(), VectorError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.discard()).await
    }

    async fn search(
        &self,
        query: Vec<f32>,
        k: usize,
        allow: Option<Arc<RowSet>>,
    ) -> Result<Vec<VectorHit>, VectorError> {
        self.check(&query)?;
        let snapshot = self.inner.snapshot();
        blocking(move || Ok(snapshot.search(&query, k, allow.as_deref()).into_iter().map(Ranked::hit).collect())).await
    }

    async fn vectors(&self, ids: Vec<u64>) -> Result<Vec<Option<Vec<f32>>>, VectorError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || Ok(inner.vectors(&ids))).await
    }

    async fn compact(&self) -> Result<Option<Position>, VectorError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.compact()).await
    }

    async fn health(&self) -> VectorHealth {
        self.inner.health()
    }
}

#[cfg(test)]
mod tests;
