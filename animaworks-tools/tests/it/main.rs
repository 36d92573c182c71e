//! The tools against the real kernel: one binary, a module per kind of test.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests: a failure is the message, and the rates are printed"
)]

mod attack;
mod everyday;
mod house;
mod mcp;
