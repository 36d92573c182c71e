//! Engines: one prompt in, one finished turn out.

pub mod basic;
pub mod local;
