//! `bench`: figures instead of claims.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    #[command(subcommand)]
    Memory(Box<BenchMemory>),
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
    Learn(BenchLearn),
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
    #[command(flatten)]
    pub(crate) model: BenchModel,
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) system: BenchSystem,
    #[arg(long, value_enum, default_value = "learned")]
    pub(crate) fusion: BenchFusion,
    #[arg(long)]
    pub(crate) cv: bool,
    #[arg(long, value_name = "N", default_value_t = animaworks_memory::bench::SEED)]
    pub(crate) seed: u64,
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
    #[command(flatten)]
    pub(crate) model: BenchModel,
}

#[derive(Debug, Args)]
pub(crate) struct BenchLearn {
    #[command(flatten)]
    pub(crate) data: BenchData,
    #[command(flatten)]
    pub(crate) model: BenchModel,
}

/// The model of meaning, and where its vectors are kept between runs.
#[derive(Debug, Args)]
pub(crate) struct BenchModel {
    #[arg(long, value_enum, default_value = "e5")]
    pub(crate) embed: BenchEmbed,
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
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
    Learned,
    Score,
    Rrf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchSystem {
    /// Hybrid where there is a model.
    Auto,
    Lexical,
    Hybrid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchEmbed {
    E5,
    None,
}
