//! Search by words: our own posting lists and our own BM25.

pub(crate) mod bm25;
pub(crate) mod postings;
