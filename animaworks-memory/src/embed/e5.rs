//! multilingual-e5-small over candle-core, made for one small machine.
//!
//! Weights are mapped: the vocabulary is never loaded, its rows are gathered from the map; the twelve layers are
//! converted to f32 when the first text comes (about 85 MB) and given back when nothing has come for a while. Each text
//! has a forward pass of its own, so that its vector depends on nothing but itself; several texts run side by side on
//! a bounded number of threads, one core each, questions before what is merely being indexed.

mod kernels;
mod model;
mod pool;

use std::{path::Path, sync::Arc, time::Duration};

use animaworks_core::ResultExt as _;
use async_trait::async_trait;

use super::{EmbedError, EmbedKind, Embedder, weights::Weights};
use model::Model;
use pool::Pool;

/// How an [`E5Embedder`] uses the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct E5Options {
    /// Texts computed at the same time, one core each.
    pub threads: usize,
    /// After this long without a text the layers are given back.
    pub idle: Duration,
}

impl Default for E5Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { threads: threads.min(4), idle: Duration::from_secs(60) }
    }
}

/// multilingual-e5-small from imported weights.
#[derive(Debug)]
pub struct E5Embedder {
    weights: Arc<Weights>,
    pool: Pool,
}

impl E5Embedder {
    /// Opens imported weights; nothing is loaded yet.
    ///
    /// # Errors
    ///
    /// [`EmbedError`] names a file that is missing, broken or of another version.
    pub fn open(dir: &Path, options: E5Options) -> Result<Self, EmbedError> {
        let weights = Arc::new(Weights::open(dir)?);
        let pool = Pool::new(Arc::clone(&weights), options)?;
        Ok(Self { weights, pool })
    }

    /// Whether the layers are in memory.
    pub fn is_loaded(&self) -> bool {
        self.pool.is_loaded()
    }

    /// Gives the layers and the mapped pages back now; the next text brings them again.
    pub fn release(&self) {
        self.pool.unload();
        release_pages(&self.weights);
    }

    /// How many tokens the model sees of a text, its kind's prefix and the two control tokens included.
    pub fn tokens(&self, kind: EmbedKind, text: &str) -> usize {
        tokens(&self.weights, kind, text).len()
    }
}

#[async_trait]
impl Embedder for E5Embedder {
    fn signature(&self) -> &str {
        &self.weights.meta.signature
    }

    fn dimensions(&self) -> usize {
        self.weights.meta.shape.hidden
    }

    async fn embed(&self, kind: EmbedKind, texts: Vec<String>) -> Result<Vec<Vec<f32>>, EmbedError> {
        let answers: Vec<_> = texts.into_iter().map(|text| self.pool.submit(kind, text)).collect();
        let mut vectors = Vec::with_capacity(answers.len());
        for answer in answers {
            vectors.push(answer.await.map_err(|error| EmbedError::Compute(Box::new(error)))??);
        }
        Ok(vectors)
    }
}

/// What e5 was taught to see before a text.
fn prefix(kind: EmbedKind) -> &'static str {
    match kind {
        EmbedKind::Query => "query: ",
        EmbedKind::Passage => "passage: ",
    }
}

fn tokens(weights: &Weights, kind: EmbedKind, text: &str) -> Vec<u32> {
    weights.tokenizer.encode(&format!("{}{text}", prefix(kind)), weights.meta.shape.positions)
}

/// One text, start to end.
fn vector(weights: &Weights, model: &Model, kind: EmbedKind, text: &str) -> Result<Vec<f32>, EmbedError> {
    let mut vector = model.forward(weights, &tokens(weights, kind, text))?;
    super::normalise(&mut vector);
    Ok(vector)
}

fn release_pages(weights: &Weights) {
    weights.tensors.release().ignore("pages that stay only cost memory");
}

#[cfg(test)]
mod tests;
