//! What an Anima remembers: Markdown is the truth, the index is its shadow.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use animaworks_core::{AnimaName, DataDir, MemoryStore, Query, SystemClock};
//! use animaworks_memory::{FileMemory, MemoryOptions};
//!
//! # async fn remember() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = DataDir::new("/home/yuki/.animaworks").anima(&AnimaName::new("sakura")?);
//! let memory = FileMemory::open(dir, chrono_tz::Asia::Tokyo, Arc::new(SystemClock::new()), MemoryOptions::default()).await?;
//! for hit in memory.search(&Query::new("鍵")).await?.hits {
//!     println!("{}:{}: {}", hit.path, hit.line, hit.text);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Map, in reading order
//!
//! [`FileMemory`] (`store`) is the whole; `chunk` cuts files into places, `text` makes
//! terms of words, `index` keeps the shadow, `lexical` finds by words, [`embed`] and
//! [`vector`] by meaning, `fuse` puts both together, `graph` follows links,
//! `retrieve` answers a question, `priming` is what comes to mind before a turn,
//! [`ledger`] counts what was used. [`pack`] is Markdown memory for a coding agent, on the same parts.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod mapped;

pub mod bench;
pub mod embed;
pub mod pack;
pub mod vector;

mod chunk;
mod front;
mod fuse;
mod graph;
mod index;
pub mod ledger;
mod lexical;
mod priming;
mod retrieve;
mod store;
mod text;

pub use chunk::Kind;
#[cfg(feature = "embed")]
pub use embed::{E5Embedder, E5Options};
pub use embed::{EmbedError, EmbedKind, Embedder, HashEmbedder};
pub use fuse::Fusion;
pub use ledger::{Ledger, Usage, Use};
pub use priming::{Budgets, MessageClass, classify};
pub use store::{FileMemory, MemoryOptions};
pub use vector::{EmbeddedIndex, VectorIndex};
