//! What the engines do from outside: prompts in, events out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking and say what they skip"
)]

mod anthropic;
mod basic;
mod child;
mod fallback;
mod faults;
#[cfg(feature = "local-llm")]
mod gguf;
mod kit;
mod limits;
mod memory_host;
mod recall;
mod tools;
mod turns;
mod wire;
