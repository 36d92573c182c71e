//! Who offers models: a table of providers as data, and where a credential leads.

mod fault;
mod learned;
mod table;

use animaworks_core::config::{ModelCredential, Secret};
use http::{HeaderMap, HeaderName, HeaderValue, header};

pub(crate) use self::fault::from_wire;
pub use self::{
    fault::{classify, redact},
    learned::{Learned, Lesson},
    table::{PROVIDERS, find},
};
use crate::wire::Dialect;

/// A provider, as data. A new one is a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Its name, which is also the name of its credential.
    pub name: &'static str,
    /// What stands before the `/` of a model, or a pattern for the whole name when it holds `*`.
    pub prefixes: &'static [&'static str],
    /// Where it is, without the path of the call. Empty: only the credential knows.
    pub base_url: &'static str,
    /// The path of the call below the base. `{model}` and `{api_version}` are filled in.
    pub path: &'static str,
    /// What it speaks.
    pub dialect: Dialect,
    /// How the key is shown.
    pub auth: Auth,
    /// What is special about it.
    pub quirks: Quirks,
}

/// How a key is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer`.
    Bearer,
    /// A header of its own.
    Header(&'static str),
    /// As a bearer, when there is one at all.
    Optional,
}

/// What is special about a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// Which word limits the answer.
    pub max_tokens: MaxTokens,
    /// Whether it takes `stream_options`.
    pub stream_usage: bool,
    /// How thinking is asked for.
    pub thinking: Thinking,
    /// Call ids must have exactly this many ASCII letters and digits.
    pub call_id_length: Option<usize>,
    /// Schemas without the rarer words.
    pub plain_schema: bool,
    /// Models behind it may write tool calls and thoughts into the text.
    pub small_models: bool,
}

impl Quirks {
    /// Nothing is special.
    pub const NONE: Self = Self {
        max_tokens: MaxTokens::Older,
        stream_usage: true,
        thinking: Thinking::Unknown,
        call_id_length: None,
        plain_schema: false,
        small_models: false,
    };
}

/// Which word limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokens {
    /// `max_tokens`.
    Older,
    /// `max_completion_tokens`.
    Newer,
    /// As OpenAI's models want it.
    ByModel,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all.
    Unknown,
    /// `reasoning_effort`.
    Effort,
    /// `reasoning_effort`, which can be `none`.
    EffortOrNone,
    /// `reasoning: {effort}`.
    Nested,
    /// `chat_template_kwargs: {enable_thinking}`.
    Template,
}

/// A provider at an address, with a key: everything a call needs.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider.
    pub provider: Provider,
    /// The model as the provider calls it.
    pub model: String,
    /// The address of the call.
    pub url: http::Uri,
    headers: HeaderMap,
    key: Secret,
}

/// Why a provider cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEndpoint {
    /// Nobody offers such a model.
    #[error("no provider for {model}")]
    UnknownModel {
        /// The model.
        model: String,
    },
    /// There is no key.
    #[error("no key for {provider}")]
    NoKey {
        /// The provider.
        provider: &'static str,
    },
    /// The address cannot be used.
    #[error("{provider}: {problem}")]
    BadAddress {
        /// The provider.
        provider: &'static str,
        /// Why.
        problem: String,
    },
}

impl Endpoint {
    /// Puts a model, its provider and a credential together.
    ///
    /// # Errors
    ///
    /// [`NoEndpoint`] says what is missing.
    pub fn open(model: &str, credential: &ModelCredential) -> Result<Self, NoEndpoint> {
        let (provider, bare) = find(model).ok_or_else(|| NoEndpoint::UnknownModel { model: model.to_owned() })?;
        let mut provider = *provider;
        let own = credential.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty());
        if own.is_some() && provider.name == "openai" {
            // a compatible server under OpenAI's name: vLLM, LM Studio, llama.cpp, a gateway
            provider.quirks = table::COMPATIBLE;
        }
        // white space around a key was left by a copy
        let given = credential.key.as_ref().map_or("", |found| found.secret.expose().trim());
        let key = match (given.is_empty(), provider.auth) {
            (true, Auth::Optional) => Secret::default(),
            // servers without keys still want the header
            (true, _) if own.is_some() => Secret::new("dummy"),
            (true, _) => return Err(NoEndpoint::NoKey { provider: provider.name }),
            (false, _) => Secret::new(given),
        };
        let bad = |problem: String| NoEndpoint::BadAddress { provider: provider.name, problem };
        let url = address(&provider, own.unwrap_or(provider.base_url), bare, credential).map_err(bad)?;
        let url: http::Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(error.to_string()))?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
            return Err(bad("base_url must begin with http:// or https://".to_owned()));
        }
        let headers = headers(&provider, &key).map_err(bad)?;
        Ok(Self { provider, model: bare.to_owned(), url, headers, key })
    }

    /// The headers of a call; the key's is marked as sensitive.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// A text without this endpoint's key, for errors and logs.
    pub fn redact(&self, text: &str) -> String {
        redact(text, &self.key)
    }
}

fn address(provider: &Provider, base: &str, model: &str, credential: &ModelCredential) -> Result<String, String> {
    if base.is_empty() {
        return Err("base_url is missing in the credential".to_owned());
    }
    let base = base.trim_end_matches('/');
    // people write the address with and without the last part
    let base = base.strip_suffix(provider.path.trim_start_matches("/v1")).unwrap_or(base);
    let path = if base.ends_with("/v1") { provider.path.trim_start_matches("/v1") } else { provider.path };
    let version = credential.keys.get("api_version").map_or("2024-12-01-preview", Secret::expose);
    Ok(format!("{base}{}", path.replace("{model}", model).replace("{api_version}", version)))
}

fn headers(provider: &Provider, key: &Secret) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    let (name, shown) = match provider.auth {
        Auth::Header(name) => (HeaderName::from_static(name), key.expose().to_owned()),
        Auth::Bearer | Auth::Optional => (header::AUTHORIZATION, format!("Bearer {}", key.expose())),
    };
    if !key.is_empty() {
        let mut value =
            HeaderValue::try_from(shown).map_err(|_hidden| "the key holds characters no header can".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if provider.dialect == Dialect::Anthropic {
        let version = HeaderValue::from_static(crate::wire::anthropic::VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    Ok(headers)
}

#[cfg(test)]
pub(crate) mod tests {
    use animaworks_core::config::{CredentialSource, Found};

    use super::*;

    pub(crate) fn credential(key: &str, base: Option<&str>) -> ModelCredential {
        let source = CredentialSource::Env("KEY".to_owned());
        let key = (!key.is_empty()).then(|| Found { secret: Secret::new(key), source });
        ModelCredential { key, base_url: base.map(str::to_owned), ..ModelCredential::default() }
    }

    #[test]
    fn every_prefix_leads_to_its_address() {
        for (model, base, expected) in [
            ("openai/gpt-4.1", None, "https://api.openai.com/v1/chat/completions"),
            ("openai/qwen3", Some("http://127.0.0.1:8000/v1/"), "http://127.0.0.1:8000/v1/chat/completions"),
            ("openai/x", Some("http://h/v1/chat/completions"), "http://h/v1/chat/completions"),
            ("openai/x", Some("http://h"), "http://h/v1/chat/completions"),
            ("claude-sonnet-4-6", None, "https://api.anthropic.com/v1/messages"),
            ("anthropic/claude-x", Some("http://127.0.0.1:9/v1"), "http://127.0.0.1:9/v1/messages"),
            ("mistral/m", None, "https://api.mistral.ai/v1/chat/completions"),
            ("xai/grok", None, "https://api.x.ai/v1/chat/completions"),
            ("deepseek/d", None, "https://api.deepseek.com/v1/chat/completions"),
            ("openrouter/a/b", None, "https://openrouter.ai/api/v1/chat/completions"),
            ("google/g", None, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
            ("ollama/qwen3:8b", None, "http://localhost:11434/v1/chat/completions"),
            ("ollama/q", Some("http://10.0.0.2:11434"), "http://10.0.0.2:11434/v1/chat/completions"),
            (
                "azure/dep",
                Some("https://x.example"),
                "https://x.example/openai/deployments/dep/chat/completions?api-version=2024-12-01-preview",
            ),
        ] {
            let endpoint = Endpoint::open(model, &credential(" k\n", base)).unwrap();
            assert_eq!(endpoint.url.to_string(), expected, "{model} {base:?}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = credential("", None);
        assert_eq!(Endpoint::open("openai/x", &none).unwrap_err(), NoEndpoint::NoKey { provider: "openai" });
        assert!(matches!(Endpoint::open("nobody/x", &none), Err(NoEndpoint::UnknownModel { .. })));
        assert!(Endpoint::open("ollama/x", &none).unwrap().headers().get(header::AUTHORIZATION).is_none());
        assert!(matches!(
            Endpoint::open("openai/x", &credential("", Some("ftp://h"))),
            Err(NoEndpoint::BadAddress { .. })
        ));
        let endpoint = Endpoint::open("openai/x", &credential("", Some("http://127.0.0.1:1/v1"))).unwrap();
        assert_eq!(endpoint.headers().get(header::AUTHORIZATION).unwrap(), "Bearer dummy");
    }
}
