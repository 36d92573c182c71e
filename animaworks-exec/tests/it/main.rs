//! What the engines do from outside: prompts in, events out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod anthropic;
mod basic;
mod fallback;
mod faults;
mod kit;
mod limits;
mod memory_host;
mod recall;
mod tools;
mod turns;
mod wire;
