//! Whole-system tests: the real binary, real files, and the kit at the very bottom.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it was skipped"
)]

mod architecture;
mod engines;
mod engines_cli;
mod first_conversation;
mod index_kill;
mod kill;
mod outside;
mod pack;
mod pack_acceptance;
mod pack_dashboard;
mod python_home;
mod wrong_on_purpose;
