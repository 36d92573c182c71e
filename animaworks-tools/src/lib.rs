//! What an Anima can do, and the walls around it.
//!
//! Every tool here is a [`Tool`](animaworks_core::Tool); who may call which is decided
//! by the one gate in `animaworks_core::gate`.

mod memory;

pub use memory::memory_tools;
