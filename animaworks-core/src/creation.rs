//! How an organisation and its Animas come into being, change and go (exec spec §10, server-cli-ui §8).
//!
//! [`init`] makes a data directory; [`create`] makes an Anima from a character sheet,
//! from a template or from nothing; [`delete`] puts one away. Everything happens whole or not at all.

mod anima;
mod bootstrap;
mod change;
mod init;
mod sheet;
mod shipped;

pub use anima::{Created, NewAnima, Origin, create};
pub use bootstrap::{Bootstrap, finish_bootstrap, is_defined};
pub use change::{Deleted, ModelChange, delete, restore, set_background_model, set_enabled, set_model, set_supervisor};
pub use init::{InitReport, Synced, init, is_initialised, sync_templates};
pub(crate) use sheet::supervisor_in;
pub use sheet::{Named, Part, Sheet};
pub use shipped::Shipped;

use std::path::PathBuf;

use crate::{
    config::{ConfigError, Problem},
    error::{ErrorKind, Fault},
    fs::FileError,
    i18n::Locale,
    ids::BadId,
    t,
};

/// Why an Anima could not be made or changed. Nothing was left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The configuration says no.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no organisation here yet.
    #[error("{} is not initialised", .0.display())]
    NotInitialised(PathBuf),
    /// The name is none.
    #[error(transparent)]
    BadName(#[from] BadId),
    /// Neither the caller nor the sheet says a name that can be used.
    #[error("no usable name is given")]
    NoName,
    /// Somebody has that name already.
    #[error("{0} exists already")]
    Exists(String),
    /// There is no such role.
    #[error("unknown role {role}; known: {}", .known.join(", "))]
    UnknownRole {
        /// The role.
        role: String,
        /// All roles.
        known: Vec<String>,
    },
    /// There is no such template.
    #[error("unknown template {template}; known: {}", .known.join(", "))]
    UnknownTemplate {
        /// The template.
        template: String,
        /// All templates.
        known: Vec<String>,
    },
    /// There is no such supervisor.
    #[error("unknown supervisor {name}")]
    UnknownSupervisor {
        /// The name.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// It would report to itself, directly or over others.
    #[error("{name} would report to itself over {supervisor}")]
    Circle {
        /// Who.
        name: String,
        /// To whom.
        supervisor: String,
    },
    /// The character sheet is not complete.
    #[error("the character sheet lacks {}", Part::words(.0, Locale::En))]
    Incomplete(Vec<Part>),
    /// A value of the character sheet does not fit.
    #[error("character sheet: {}: {}", .0.key, .0.text(Locale::En))]
    Unfit(Problem),
}

impl Fault for CreateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::File(error) => error.kind(),
            Self::Config(error) => error.kind(),
            Self::NotInitialised(_) | Self::UnknownSupervisor { .. } | Self::UnknownTemplate { .. } => {
                ErrorKind::NotFound
            }
            Self::Exists(_) => ErrorKind::Conflict,
            Self::BadName(_)
            | Self::NoName
            | Self::UnknownRole { .. }
            | Self::Circle { .. }
            | Self::Incomplete(_)
            | Self::Unfit(_) => ErrorKind::InvalidRequest,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Config(error) => error.code(),
            Self::NotInitialised(_) => "not_initialised",
            Self::BadName(error) => error.code(),
            Self::NoName => "create_no_name",
            Self::Exists(_) => "create_exists",
            Self::UnknownRole { .. } => "create_unknown_role",
            Self::UnknownTemplate { .. } => "create_unknown_template",
            Self::UnknownSupervisor { near, .. } if near.is_empty() => "create_unknown_supervisor",
            Self::UnknownSupervisor { .. } => "create_unknown_supervisor_near",
            Self::Circle { .. } => "create_circle",
            Self::Incomplete(_) => "create_incomplete",
            Self::Unfit(problem) => problem.code(),
        }
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::File(error) => error.fields(),
            Self::Config(error) => error.fields(),
            Self::NotInitialised(path) => vec![("path", path.display().to_string())],
            Self::BadName(error) => error.fields(),
            Self::NoName => Vec::new(),
            Self::Exists(name) => vec![("name", name.clone())],
            Self::UnknownRole { role, known } => vec![("role", role.clone()), ("known", known.join(", "))],
            Self::UnknownTemplate { template, known } => {
                vec![("template", template.clone()), ("known", known.join(", "))]
            }
            Self::UnknownSupervisor { name, near } => vec![("name", name.clone()), ("near", near.join(", "))],
            Self::Circle { name, supervisor } => vec![("name", name.clone()), ("supervisor", supervisor.clone())],
            // the headings are the same in both languages' sheets, so both are said
            Self::Incomplete(parts) => vec![("missing", Part::words(parts, Locale::En))],
            Self::Unfit(problem) => problem.fields(),
        }
    }
}

impl Part {
    /// The headings of some parts, for a sentence.
    fn words(parts: &[Self], locale: Locale) -> String {
        let headings: Vec<String> = parts
            .iter()
            .map(|part| match part {
                Self::Basic => t!(locale, "core.sheet.basic"),
                Self::Personality => t!(locale, "core.sheet.personality"),
                Self::Role => t!(locale, "core.sheet.role"),
            })
            .collect();
        headings.join(", ")
    }
}
