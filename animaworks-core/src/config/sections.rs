//! The sections of `config.json` (exec spec §11.2), each key with its default and range.

mod life;
mod memory;
mod organisation;
mod outside;

pub use life::*;
pub use memory::*;
pub use organisation::*;
pub use outside::*;
