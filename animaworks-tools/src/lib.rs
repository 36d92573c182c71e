//! What an Anima can do, and the walls around it.
//!
//! Every tool here is a [`Tool`](animaworks_core::Tool); who may call which is decided
//! by the one gate in `animaworks_core::gate`.

pub mod files;
mod memory;
pub mod permission;
pub mod sandbox;
pub mod shell;

pub use files::file_tools;
pub use memory::memory_tools;
pub use permission::{EffectiveTable, FileAccess, OwnerPermissions};
pub use sandbox::KernelSandbox;
pub use shell::bash_tool;
