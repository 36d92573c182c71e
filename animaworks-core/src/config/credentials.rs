//! Keys to models and services, and where each of them was found (exec spec §6.2).

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Env, Settings, file, provider, sections::Credential};
use crate::{executor::ResolvedModel, fs::FileError, ids::AnimaName, layout::DataDir};

/// A key. It is never shown: `Debug`, `Display` and serialisation write `***`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Hides a key.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(Arc::from(key.as_ref()))
    }

    /// The key itself, for the request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "" } else { "***" })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({self})")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Where a key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialSource {
    /// An entry of `credentials` in `config.json`.
    Config(String),
    /// `shared/credentials.json`, under this name.
    Shared(String),
    /// The environment, under this name.
    Env(String),
}

impl fmt::Display for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(name) => write!(f, "config.json credentials.{name}"),
            Self::Shared(name) => write!(f, "shared/credentials.json {name}"),
            Self::Env(name) => write!(f, "${name}"),
        }
    }
}

/// A key and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The key.
    pub secret: Secret,
    /// Where.
    pub source: CredentialSource,
}

/// What is needed to talk to a model's provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelCredential {
    /// The key, when there is one.
    pub key: Option<Found>,
    /// Where the provider is, when it is not at its usual place.
    pub base_url: Option<String>,
    /// More keys of the same entry, such as `vertex_project`.
    pub keys: BTreeMap<String, Secret>,
}

/// All keys an organisation has.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    entries: BTreeMap<String, Credential>,
    shared: BTreeMap<String, Secret>,
    shared_path: PathBuf,
    env: Env,
}

impl Credentials {
    /// Reads `shared/credentials.json` beside what `settings` and `env` have.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the file is there but cannot be read.
    pub fn load(data: &DataDir, settings: &Settings, env: &Env) -> Result<Self, FileError> {
        let shared_path = data.shared().join("credentials.json");
        let object = file::read_object(&shared_path)?.unwrap_or_default();
        let shared = object.into_iter().filter_map(|(name, value)| match value {
            Value::String(key) if !key.is_empty() => Some((name, Secret::new(key))),
            _ => None,
        });
        Ok(Self { entries: settings.credentials.clone(), shared: shared.collect(), shared_path, env: env.clone() })
    }

    /// What is known under the name of a credential: the entry of `config.json`, else `{NAME}_API_KEY`.
    pub fn model(&self, name: &str) -> ModelCredential {
        let entry = self.entries.get(name);
        let configured = entry
            .filter(|entry| !entry.api_key.is_empty())
            .map(|entry| Found { secret: entry.api_key.clone(), source: CredentialSource::Config(name.to_owned()) });
        ModelCredential {
            key: configured.or_else(|| usual_variables(name).iter().find_map(|variable| self.variable(variable))),
            base_url: entry.and_then(|entry| entry.base_url.clone()),
            keys: entry.map(|entry| entry.keys.clone()).unwrap_or_default(),
        }
    }

    /// Whether a model has what it needs to be asked: a key, or a place of its own that may need none. Engines that log
    /// in by themselves, and models that run here, need nothing from us.
    pub fn suffice(&self, model: &ResolvedModel) -> bool {
        let runs_here = matches!(provider(model.id.as_str()), Some("local" | "ollama"));
        let logs_in_itself = model.mode.is_child();
        let known = self.model(&model.credential);
        runs_here || logs_in_itself || known.key.is_some() || known.base_url.is_some()
    }

    /// The key of a service for one Anima: its own (`{VARIABLE}__{anima}`), then `credentials.{name}` (`keys.{key}`,
    /// or `api_key` when `key` is empty), then the organisation's `{VARIABLE}`.
    pub fn service(&self, name: &str, key: &str, variable: &str, anima: Option<&AnimaName>) -> Option<Found> {
        let own = anima.and_then(|anima| self.variable(&format!("{variable}__{anima}")));
        let configured = || {
            let entry = self.entries.get(name)?;
            let secret = if key.is_empty() { &entry.api_key } else { entry.keys.get(key)? };
            (!secret.is_empty())
                .then(|| Found { secret: secret.clone(), source: CredentialSource::Config(name.to_owned()) })
        };
        own.or_else(configured).or_else(|| self.variable(variable))
    }

    /// The file in which an organisation keeps the keys of services.
    pub fn shared_path(&self) -> &std::path::Path {
        &self.shared_path
    }

    /// Looks a variable up in `shared/credentials.json`, then in the environment.
    fn variable(&self, name: &str) -> Option<Found> {
        if let Some(secret) = self.shared.get(name) {
            return Some(Found { secret: secret.clone(), source: CredentialSource::Shared(name.to_owned()) });
        }
        let secret = Secret::new(self.env.var(name)?);
        Some(Found { secret, source: CredentialSource::Env(name.to_owned()) })
    }
}

/// The variables in which people keep the key of a provider.
fn usual_variables(name: &str) -> Vec<String> {
    if name.is_empty() {
        return Vec::new();
    }
    let upper = name.to_uppercase().replace(['-', '.', '/'], "_");
    let mut names = vec![format!("{upper}_API_KEY")];
    if name == "google" {
        names.push("GEMINI_API_KEY".into());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(config: &str, shared: Option<&str>, env: Env) -> Credentials {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::new(dir.path());
        fs_err::create_dir(data.shared()).unwrap();
        fs_err::write(data.config(), config).unwrap();
        if let Some(shared) = shared {
            fs_err::write(data.shared().join("credentials.json"), shared).unwrap();
        }
        Credentials::load(&data, &Settings::load(&data).unwrap(), &env).unwrap()
    }

    #[test]
    fn a_key_is_never_shown() {
        let credential = Credential { api_key: Secret::new("sk-test-1"), ..Credential::default() };
        let shown = format!("{credential:?} {} {}", credential.api_key, serde_json::to_string(&credential).unwrap());
        assert!(!shown.contains("sk-test"), "{shown}");
        assert_eq!(Secret::new("sk-test-1").expose(), "sk-test-1");
    }

    #[test]
    fn a_model_key_comes_from_config_then_from_its_usual_variable() {
        let env = Env::of([("OPENAI_API_KEY", "from-env"), ("GEMINI_API_KEY", "g"), ("ANTHROPIC_API_KEY", "a")]);
        let all = credentials(
            r#"{"credentials": {"anthropic": {"api_key": "from-config"}, "vllm-local": {"base_url": "http://127.0.0.1:8000/v1"}}}"#,
            None,
            env,
        );
        let key =
            |name: &str| all.model(name).key.map(|found| (found.secret.expose().to_owned(), found.source.to_string()));
        assert_eq!(key("anthropic").unwrap(), ("from-config".into(), "config.json credentials.anthropic".into()));
        assert_eq!(key("openai").unwrap(), ("from-env".into(), "$OPENAI_API_KEY".into()));
        assert_eq!(key("google").unwrap().0, "g");
        assert_eq!(key("vllm-local"), None);
        assert_eq!(all.model("vllm-local").base_url.as_deref(), Some("http://127.0.0.1:8000/v1"));
        assert_eq!(key(""), None);
    }

    #[test]
    fn a_model_without_a_key_is_known_before_it_is_asked() {
        use crate::{ExecutionMode, ModelId, Tokens};
        let all =
            credentials(r#"{"credentials": {"vllm": {"base_url": "http://127.0.0.1:8000/v1"}}}"#, None, Env::default());
        for (model, mode, credential, enough) in [
            ("openai/x", ExecutionMode::Autonomous, "openai", false),
            ("openai/x", ExecutionMode::Autonomous, "vllm", true),
            ("claude-x", ExecutionMode::Sdk, "anthropic", true),
            ("local/recall", ExecutionMode::Basic, "", true),
            ("ollama/x", ExecutionMode::Basic, "ollama", true),
        ] {
            let model = ResolvedModel {
                id: ModelId::new(model).unwrap(),
                mode,
                window: Tokens(1),
                max_output: Tokens(1),
                credential: credential.into(),
                thinking: None,
            };
            assert_eq!(all.suffice(&model), enough, "{model:?}");
        }
    }

    #[test]
    fn an_anima_may_have_a_service_key_of_its_own() {
        let all = credentials(
            r#"{"credentials": {"slack": {"keys": {"bot": "configured"}}}}"#,
            Some(r#"{"SLACK_BOT_TOKEN__sakura": "hers", "SLACK_BOT_TOKEN": "everybodys", "count": 3}"#),
            Env::of([("SLACK_BOT_TOKEN", "env")]),
        );
        let sakura = AnimaName::new("sakura").unwrap();
        let rin = AnimaName::new("rin").unwrap();
        let key =
            |name, key, anima| all.service(name, key, "SLACK_BOT_TOKEN", anima).unwrap().secret.expose().to_owned();
        assert_eq!(key("slack", "bot", Some(&sakura)), "hers");
        assert_eq!(key("slack", "bot", Some(&rin)), "configured");
        assert_eq!(key("other", "", None), "everybodys");
        assert!(all.service("slack", "app", "SLACK_APP_TOKEN", None).is_none());
    }
}
