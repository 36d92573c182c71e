//! The `animaworks` command: arguments in, printing out, nothing else.

use clap::Parser;

/// Persons made of software.
#[derive(Debug, Parser)]
#[command(name = "animaworks", version)]
struct Arguments {}

fn main() {
    Arguments::parse();
}
