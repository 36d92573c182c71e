//! `bench`: figures instead of claims.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    #[command(subcommand)]
    Memory(BenchMemory),
    Pack(BenchPack),
}

#[derive(Debug, Args)]
pub(crate) struct BenchPack {
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) files: usize,
    #[arg(long, value_name = "M", default_value_t = 100)]
    pub(crate) megabytes: usize,
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchMemory {
    Run(BenchRun),
    Peers(BenchPeers),
    Score {
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        #[arg(long, value_name = "FILE")]
        hits: PathBuf,
        #[arg(long)]
        original: bool,
    },
    Compare {
        base: PathBuf,
        new: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BenchRun {
    #[command(flatten)]
    pub(crate) data: BenchData,
    #[arg(long, value_enum, default_value = "score")]
    pub(crate) fusion: BenchFusion,
    #[arg(long)]
    pub(crate) no_peers: bool,
    #[arg(long, value_name = "N")]
    pub(crate) scale: Vec<usize>,
    #[arg(long, value_name = "FILE")]
    pub(crate) longmemeval: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchPeers {
    #[command(flatten)]
    pub(crate) data: BenchData,
}

/// What `run` and `peers` have in common.
#[derive(Debug, Args)]
pub(crate) struct BenchData {
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub(crate) split: String,
    #[arg(long = "set", value_name = "NAME")]
    pub(crate) sets: Vec<String>,
    #[arg(long)]
    pub(crate) merged: bool,
    #[arg(long)]
    pub(crate) original: bool,
    #[arg(long, value_name = "N")]
    pub(crate) stores: Option<usize>,
    #[arg(long, value_name = "N")]
    pub(crate) questions: Option<usize>,
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BenchFusion {
    Score,
    Rrf,
}
