//! What an operator decides: the environment, `config.json`, `models.json`, `status.json` and the keys to outside services.
//!
//! Files are kept as they are: a rewrite changes the keys it was asked to change
//! and nothing else, unknown keys stay in place, and a file that cannot be parsed
//! is named with line and column and never overwritten (exec spec §11).
//!
//! [`Env`] is the process environment, taken once; [`Settings`] is `config.json`;
//! [`Models`] decides mode and context window of a model; [`Status`] is one Anima's
//! `status.json`; [`Auth`] is `auth.json`; [`AnimaSettings`] is all of it put together, each value with its source.

mod auth;
mod credentials;
mod edit;
mod env;
mod file;
mod models;
mod prices;
mod resolve;
mod sections;
mod settings;
mod shape;
mod status;

pub use auth::{Auth, AuthMode, Session, User, UserRole};
pub use credentials::{CredentialSource, Credentials, Found, ModelCredential, Secret};
pub use edit::{ConfigError, ConfigFile, Entry, UnknownKey};
pub use env::Env;
pub(crate) use models::usual_credential;
pub use models::{
    DEFAULT_WINDOW, LocalCard, ModeSource, ModelRow, Models, ResolvedMode, ResolvedWindow, ToolCalling, WindowSource,
    bare_model, claude_model, provider, scaled_threshold,
};
pub use prices::{Price, Prices};
pub use resolve::{AnimaSettings, Setting, Source, Sourced};
pub use sections::*;
pub use settings::Settings;
pub(crate) use shape::Shaped;
pub use shape::{Problem, Shape};
pub use status::{Status, StatusFields};
