//! What an Anima may do, as its owner wrote it in `permissions.md` (exec spec §5.1).
//!
//! Deny by default: a missing section grants nothing, a missing file grants the own
//! directory, shared reading and commands without network (RULINGS 20, 40), and a file
//! that cannot be understood grants no tool at all until somebody mends the line it names.
//!
//! ```markdown
//! # Permissions: sakura
//! ## File Operations
//! - /srv/app: read and write
//! - /var/log: read only
//! ## Executable Commands
//! - git, cargo
//! ## Denied Commands
//! rm -r
//! ## Network
//! - all
//! ## External Tools
//! - web_search: OK
//! ## Tool Creation
//! - personal: yes
//! ```

mod check;
mod file_access;
mod parse;

pub use check::{OwnerPermissions, check_call};
pub use file_access::{Descendants, FileAccess, NoDescendants, OrganisationFiles, Want, existing_form, real_path};
pub use parse::{PermissionError, Problem, parse, parse_json};

use std::{fmt, path::PathBuf};

use animaworks_core::{AnimaDir, Locale, ToolError, ToolName, fs, t};
use serde::Serialize;

/// Where a line of the table comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// A line somebody wrote.
    Line {
        /// `permissions.md` or `permissions.json`.
        file: &'static str,
        /// From 1; 0 when the format does not say.
        line: usize,
    },
    /// There is no `permissions.md`, and this is what then holds (RULINGS 40).
    NoFile,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line: 0 } => f.write_str(file),
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::NoFile => f.write_str("default"),
        }
    }
}

/// How far a root of `permissions.md` opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Not at all, also inside a root that is open.
    Denied,
    /// For reading.
    ReadOnly,
    /// For reading and writing.
    ReadWrite,
}

/// A directory or file outside the Anima's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileRule {
    /// Absolute.
    pub path: PathBuf,
    /// How far.
    pub access: Access,
    /// Who said so.
    pub source: Source,
}

/// A command, by the words it begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandRule {
    /// The program, then the words that must follow it; at least one.
    pub words: Vec<String>,
    /// Who said so.
    pub source: Source,
}

/// Something that has only a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NameRule {
    /// The name, with `-` written as `_`.
    pub name: String,
    /// Who said so.
    pub source: Source,
}

/// The whole table in force, every line with its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EffectiveTable {
    /// Roots outside the Anima's own directory.
    pub files: Vec<FileRule>,
    /// All commands but the dangerous ones.
    pub all_commands: Option<Source>,
    /// These commands.
    pub commands: Vec<CommandRule>,
    /// Never these.
    pub denied_commands: Vec<CommandRule>,
    /// All outside services.
    pub all_external: Option<Source>,
    /// These services, or single operations of theirs.
    pub external: Vec<NameRule>,
    /// Never these.
    pub denied_external: Vec<NameRule>,
    /// Commands may connect anywhere.
    pub network: Option<Source>,
    /// Commands may connect to these TCP ports.
    pub ports: Vec<(u16, Source)>,
    /// May make tools for itself.
    pub personal_tools: Option<Source>,
    /// May make tools for everybody.
    pub shared_tools: Option<Source>,
    /// Why no tool can be used at present.
    pub broken: Option<PermissionError>,
}

impl EffectiveTable {
    /// What holds when nobody has written anything (RULINGS 40).
    pub fn without_file() -> Self {
        Self { all_commands: Some(Source::NoFile), ..Self::default() }
    }

    /// Reads the table of an Anima; `home` is what `~` means in it. Blocks.
    ///
    /// Never fails: a table that cannot be read or understood grants nothing and says why.
    pub fn load(dir: &AnimaDir, home: Option<&std::path::Path>) -> Self {
        let broken = |error: PermissionError| {
            tracing::warn!(anima = %dir.name(), %error, "permissions cannot be understood; tools are off");
            Self { broken: Some(error), ..Self::default() }
        };
        let text = match fs::read_text_if_exists(&dir.file(parse::MARKDOWN)) {
            Ok(None) => return Self::without_file(),
            Ok(Some(text)) => text,
            Err(error) => return broken(PermissionError::unreadable(parse::MARKDOWN, &error)),
        };
        let parsed = parse(&text, home).and_then(|(table, inherits)| {
            if !inherits {
                return Ok(table);
            }
            let json = fs::read_text(&dir.file(parse::JSON))
                .map_err(|error| PermissionError::unreadable(parse::JSON, &error))?;
            Ok(table.joined(parse_json(&json)?))
        });
        parsed.unwrap_or_else(broken)
    }

    /// What either table grants and neither denies.
    fn joined(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        self.all_commands = self.all_commands.or(other.all_commands);
        self.commands.extend(other.commands);
        self.denied_commands.extend(other.denied_commands);
        self.all_external = self.all_external.or(other.all_external);
        self.external.extend(other.external);
        self.denied_external.extend(other.denied_external);
        self.personal_tools = self.personal_tools.or(other.personal_tools);
        self.shared_tools = self.shared_tools.or(other.shared_tools);
        self
    }

    /// Whether a service, or one operation of it, may be used; the source of the deciding line.
    ///
    /// # Errors
    ///
    /// The line that denies it, or `None` when no line speaks of it.
    pub fn external(&self, service: &str, operation: &str) -> Result<&Source, Option<&Source>> {
        let about = |rules: &'_ [NameRule], name: &str| rules.iter().position(|rule| rule.name == name);
        let (service, operation) = (service.replace('-', "_"), operation.replace('-', "_"));
        for name in [&operation, &service] {
            if let Some(rule) = about(&self.denied_external, name).and_then(|at| self.denied_external.get(at)) {
                return Err(Some(&rule.source));
            }
        }
        let granted = [&operation, &service]
            .into_iter()
            .find_map(|name| about(&self.external, name).and_then(|at| self.external.get(at)))
            .map(|rule| &rule.source)
            .or(self.all_external.as_ref());
        granted.ok_or(None)
    }

    /// The table in words, one line per rule: what, how far, and its source.
    pub fn describe(&self, locale: Locale) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        let mut say = |text: String, source: &dyn fmt::Display| lines.push((text, source.to_string()));
        if let Some(broken) = &self.broken {
            say(t!(locale, "tools.table.broken", problem = broken), &broken.file);
        }
        say(t!(locale, "tools.table.own"), &"built-in");
        say(t!(locale, "tools.table.shared"), &"built-in");
        for FileRule { path, access, source } in &self.files {
            let path = path.display();
            say(
                match access {
                    Access::Denied => t!(locale, "tools.table.file_denied", path = path),
                    Access::ReadOnly => t!(locale, "tools.table.file_read", path = path),
                    Access::ReadWrite => t!(locale, "tools.table.file_write", path = path),
                },
                source,
            );
        }
        if let Some(source) = &self.all_commands {
            say(t!(locale, "tools.table.all_commands"), source);
        }
        for rule in &self.commands {
            say(t!(locale, "tools.table.command", name = rule.words.join(" ")), &rule.source);
        }
        for rule in &self.denied_commands {
            say(t!(locale, "tools.table.command_denied", name = rule.words.join(" ")), &rule.source);
        }
        match &self.network {
            Some(source) => say(t!(locale, "tools.table.network"), source),
            None if self.ports.is_empty() => say(t!(locale, "tools.table.no_network"), &"default"),
            None => {}
        }
        for (port, source) in &self.ports {
            say(t!(locale, "tools.table.port", port = port), source);
        }
        if let Some(source) = &self.all_external {
            say(t!(locale, "tools.table.all_external"), source);
        }
        for rule in &self.external {
            say(t!(locale, "tools.table.external", name = rule.name), &rule.source);
        }
        for rule in &self.denied_external {
            say(t!(locale, "tools.table.external_denied", name = rule.name), &rule.source);
        }
        if let Some(source) = &self.personal_tools {
            say(t!(locale, "tools.table.personal_tools"), source);
        }
        if let Some(source) = &self.shared_tools {
            say(t!(locale, "tools.table.shared_tools"), source);
        }
        lines
    }
}

/// Why something is refused; the words are in the catalogue under `tools.refuse.{code}`,
/// and what to do instead, where there is something, under `tools.instead.{code}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", .reason.code())]
pub struct Refusal {
    /// The kind.
    pub reason: Reason,
    /// The command, path or word it is about.
    pub what: String,
}

impl Refusal {
    /// A refusal about something.
    pub fn new(reason: Reason, what: impl AsRef<str>) -> Self {
        Self { reason, what: what.as_ref().chars().take(200).collect() }
    }

    /// The sentence for the model.
    pub fn say(&self, locale: Locale) -> String {
        locale.text(&format!("tools.refuse.{}", self.reason.code()), &[("what", self.what.clone())])
    }

    /// The same as the answer of a tool.
    pub(crate) fn for_model(&self, tool: &'static str, locale: Locale) -> ToolError {
        #[allow(clippy::expect_used, reason = "a constant of the program: the name of one of our tools")]
        let tool = ToolName::new(tool).expect("a tool's NAME is a valid tool name");
        tracing::info!(%tool, refusal = %self, "refused");
        ToolError::Denied { tool, reason: self.say(locale), instead: self.instead(locale) }
    }

    /// What is allowed instead.
    pub fn instead(&self, locale: Locale) -> Option<String> {
        let template = locale.find(&format!("tools.instead.{}", self.reason.code()))?;
        Some(animaworks_core::i18n::fill(template, &[("what", self.what.clone())]))
    }
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident => $code:literal,)*) => {
        /// The kinds of refusal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reason { $($(#[doc = $doc])* $name,)* }

        impl Reason {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in catalogue keys and in data.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

reasons! {
    /// The permission file cannot be understood.
    Broken => "broken",
    /// No line grants it.
    NotGranted => "not_granted",
    /// A line denies it.
    Denied => "denied",
    /// The path is outside every open place.
    Outside => "outside",
    /// The path may be read and not written.
    ReadOnly => "read_only",
    /// The file belongs to the framework or the owner.
    Protected => "protected",
    /// The file holds keys.
    Secret => "secret",
    /// Another Anima's.
    OtherAnima => "other_anima",
    /// The path cannot be followed.
    BadPath => "bad_path",
    /// The command is empty.
    Empty => "empty",
    /// The command is too long or too deep.
    TooLong => "too_long",
    /// The text holds characters nobody can see.
    Hidden => "hidden",
    /// The grammar does not understand it.
    NotUnderstood => "not_understood",
    /// The command's name is worked out while it runs.
    Computed => "computed",
    /// The command is not on the list.
    NotListed => "not_listed",
    /// Dangerous whatever the table says.
    Dangerous => "dangerous",
    /// It becomes somebody else.
    Privilege => "privilege",
    /// It runs text that was not there to be judged.
    Unjudged => "unjudged",
    /// It changes how the next commands run.
    Environment => "environment",
    /// It sends data out, or opens a line in.
    Upload => "upload",
    /// It can run code of its own, and the kernel does not hold it here.
    NeedsWalls => "needs_walls",
    /// It needs a person at a terminal.
    Interactive => "interactive",
}
