//! What an Anima can do, and the walls around it.
//!
//! Every tool here is a [`Tool`](animaworks_core::Tool); who may call which is decided
//! by the one gate in `animaworks_core::gate`.

pub mod external;
mod fault;
pub mod files;
pub mod human;
pub mod mcp;
mod memory;
pub mod messages;
mod outcomes;
pub mod permission;
mod reference;
pub mod sandbox;
mod session;
pub mod shell;
mod skills;
pub mod tasks;

pub use external::{Outside, external_tools};
pub use files::file_tools;
pub use human::human_tools;
pub use memory::memory_tools;
pub use messages::{MessageServices, SendingLimits, message_tools};
pub use outcomes::outcome_tools;
pub use permission::{EffectiveTable, FileAccess, OwnerPermissions};
pub use reference::reference;
pub use sandbox::KernelSandbox;
pub use session::session_tools;
pub use shell::bash_tool;
pub use skills::skill_tools;
pub use tasks::{TaskServices, delegation_tools, task_tools};

#[cfg(test)]
mod tests;
