//! The arguments of `pack`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Pack {
    Reindex {
        #[command(flatten)]
        place: Place,
        #[arg(long)]
        full: bool,
    },
    Search {
        #[command(flatten)]
        place: Place,
        query: String,
        #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
        limit: usize,
    },
    Write {
        #[command(flatten)]
        place: Place,
        #[arg(long, value_name = "FILE")]
        file: String,
        #[arg(long, value_name = "HEADING")]
        heading: String,
        #[arg(long, value_name = "TEXT")]
        body: Option<String>,
        #[arg(long, value_name = "HEADING")]
        replace: Option<String>,
    },
    Rotate {
        #[command(flatten)]
        place: Place,
        #[arg(long)]
        detach: bool,
    },
    Context {
        #[command(flatten)]
        place: Place,
        #[arg(long)]
        brief: bool,
        #[arg(long)]
        hook: bool,
    },
    Report {
        #[command(flatten)]
        place: Place,
        #[arg(long, value_name = "N")]
        stale_days: Option<u32>,
    },
    Import {
        #[command(flatten)]
        place: Place,
        sources: Vec<PathBuf>,
        #[arg(long)]
        dry_run: bool,
    },
    Adopt {
        #[arg(long, value_name = "NAME")]
        anima: String,
        dir: PathBuf,
    },
    Give {
        #[arg(long, value_name = "NAME")]
        anima: String,
        dir: PathBuf,
        #[arg(long)]
        dry_run: bool,
    },
    Install {
        #[arg(long, value_name = "claude|codex|gemini", default_value = "claude")]
        agent: Vec<String>,
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        #[arg(long)]
        project: bool,
    },
    Uninstall {
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    Doctor {
        #[command(flatten)]
        place: Place,
    },
    Dashboard {
        #[arg(long, value_name = "N", default_value_t = 0)]
        port: u16,
        #[arg(long)]
        open: bool,
    },
    CheckSecrets {
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
}

/// Where the memory is, when it is not where it usually is.
#[derive(Debug, Args)]
pub(crate) struct Place {
    #[arg(long = "dir", value_name = "DIR")]
    pub(crate) dirs: Vec<PathBuf>,
}
