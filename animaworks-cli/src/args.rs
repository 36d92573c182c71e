//! The command line, as data. Its words come from the catalogue, by the path of each argument.

mod bench;
mod localize;
pub(crate) mod pack;

pub(crate) use bench::{
    Bench, BenchData, BenchEmbed, BenchFusion, BenchLearn, BenchMemory, BenchModel, BenchPack, BenchRun, BenchSystem,
};
pub(crate) use localize::{localized, usage_words};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(name = "animaworks", version, disable_help_subcommand = true, arg_required_else_help = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Accepted before and after the command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[arg(long, global = true, value_name = "ja|en")]
    pub(crate) lang: Option<String>,
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(Init),
    Demo(Demo),
    Chat(Chat),
    #[command(subcommand)]
    Anima(Anima),
    #[command(subcommand)]
    Models(Models),
    #[command(subcommand)]
    Config(Config),
    Index(Index),
    #[command(subcommand)]
    Memory(Memory),
    #[command(subcommand)]
    Prompt(Prompt),
    Cost(Cost),
    Mcp(Mcp),
    #[command(subcommand)]
    Tool(Tool),
    #[command(subcommand)]
    Weights(Weights),
    #[command(subcommand)]
    Credential(Credential),
    Doctor(Doctor),
    #[command(subcommand)]
    Pack(pack::Pack),
    #[command(subcommand)]
    Bench(Bench),
    Completions(Completions),
    #[command(subcommand, hide = true)]
    Internal(Internal),
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    #[arg(long)]
    pub(crate) force: bool,
    #[arg(long, conflicts_with_all = ["blank", "template", "from_md"])]
    pub(crate) skip_anima: bool,
    #[arg(long, value_name = "NAME", conflicts_with_all = ["template", "from_md"])]
    pub(crate) blank: Option<String>,
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "from_md")]
    pub(crate) template: Option<String>,
    #[arg(long, value_name = "FILE")]
    pub(crate) from_md: Option<PathBuf>,
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[arg(long, value_name = "QUESTION")]
    pub(crate) once: Option<String>,
    #[arg(long)]
    pub(crate) reset: bool,
    #[arg(long, value_name = "MODEL")]
    pub(crate) engine: Option<String>,
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Chat {
    pub(crate) anima: String,
    pub(crate) message: Option<String>,
    #[arg(long, value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Anima {
    Create(AnimaCreate),
    List {
        #[arg(long)]
        local: bool,
    },
    Info {
        anima: String,
    },
    Permissions {
        anima: String,
    },
    SetModel {
        anima: String,
        model: String,
        #[arg(long, value_name = "NAME")]
        credential: Option<String>,
    },
    SetBackgroundModel {
        anima: String,
        #[arg(required_unless_present = "clear")]
        model: Option<String>,
        #[arg(long, value_name = "NAME")]
        credential: Option<String>,
        #[arg(long, conflicts_with = "model")]
        clear: bool,
    },
    Enable {
        anima: String,
    },
    Disable {
        anima: String,
    },
    Delete {
        anima: String,
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AnimaCreate {
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    pub(crate) from_md: Option<PathBuf>,
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) template: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) supervisor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    List {
        #[arg(long, value_name = "LETTER")]
        mode: Option<String>,
    },
    Show,
    Info {
        model: String,
    },
    Fetch {
        model: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    Get {
        key: String,
    },
    Set {
        key: String,
        // a number below zero is a value to be judged, not an option
        #[arg(allow_negative_numbers = true)]
        value: String,
    },
    List {
        #[arg(long, value_name = "SECTION")]
        section: Option<String>,
    },
    Validate,
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    #[arg(long, value_name = "NAME")]
    pub(crate) anima: Option<String>,
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    Search {
        anima: String,
        query: String,
        #[arg(long, value_name = "SCOPE", default_value = "all")]
        scope: String,
        #[arg(long, value_name = "N", default_value_t = 10)]
        limit: usize,
    },
    Why {
        anima: String,
        message: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Prompt {
    Show(PromptShow),
}

#[derive(Debug, Args)]
pub(crate) struct PromptShow {
    pub(crate) anima: String,
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    #[arg(long, value_name = "TRIGGER", default_value = "chat")]
    pub(crate) trigger: String,
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "/tmp/prompt_debug_{anima}.html")]
    pub(crate) html: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Cost {
    pub(crate) anima: Option<String>,
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) days: u64,
    #[arg(long, conflicts_with = "days")]
    pub(crate) today: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    List {
        anima: String,
    },
    Call {
        anima: String,
        tool: String,
        #[arg(value_name = "--ARGUMENT VALUE | JSON", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[arg(long, value_name = "NAME", required_unless_present = "socket")]
    pub(crate) anima: Option<String>,
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',', requires = "anima")]
    pub(crate) tools: Vec<String>,
    #[arg(long, value_name = "PATH", hide = true, conflicts_with = "anima")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Weights {
    Import {
        #[arg(value_name = "DIR")]
        source: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Credential {
    Add { name: String },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[arg(long)]
    pub(crate) fix: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// What other programs and Animas call; people rarely do.
#[derive(Debug, Subcommand)]
pub(crate) enum Internal {
    CheckPermissions {
        #[arg(long)]
        anima: String,
        tool: String,
        #[arg(value_name = "JSON")]
        arguments: Option<String>,
    },
}
