//! Keys, and where they come from.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// A key. It never shows itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a key; white space around it, left by a copy, is dropped.
    pub fn new(key: &str) -> Self {
        Self(Arc::from(key.trim()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself, for the header of a call and nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Secret(none)" } else { "Secret(set)" })
    }
}

/// One entry under `credentials` of `config.json`, with its key found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credential {
    /// Its name.
    pub name: String,
    /// The key; empty when there is none.
    pub api_key: Secret,
    /// Where to go instead of the provider's own address.
    pub base_url: Option<String>,
    /// What else the provider needs, such as `api_version`.
    pub keys: BTreeMap<String, String>,
}

/// Finds credentials by name. Asked at every turn, so a changed key needs no restart.
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// The credential of a name; `None` when nothing is known under it.
    fn credential(&self, name: &str) -> Option<Credential>;
}

/// A fixed set, for programs that hold their keys themselves.
impl CredentialSource for Vec<Credential> {
    fn credential(&self, name: &str) -> Option<Credential> {
        self.iter().find(|credential| credential.name == name).cloned()
    }
}
