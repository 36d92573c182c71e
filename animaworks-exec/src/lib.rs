//! Engines: one prompt in, one finished turn out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`autonomous`] | mode A: any API that can call tools, the loop is ours |
//! | [`basic`] | mode B: anything that can only write text |
//! | [`child`] | engines that are programs of their own |
//! | [`local`] | engines of this machine, without an account |
//! | [`provider`] | who offers models, as a table |
//! | [`wire`] | the dialects, from bytes to meaning |
//! | [`transport`] | the one place that opens connections |
//! | [`retry`] | when to try again |
//! | [`fallback`] | other models for when a provider refuses |
//! | [`resolve`] | which engine for which model |

pub mod autonomous;
pub mod basic;
pub mod child;
pub mod fallback;
mod live;
pub mod local;
pub mod provider;
pub mod resolve;
pub mod retry;
pub mod transport;
pub mod wire;
