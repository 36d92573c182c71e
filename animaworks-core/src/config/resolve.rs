//! Everything that was decided about one Anima, each value with its source (exec spec §11.1).

use std::{fmt, time::Duration};

use serde_json::Value;

use super::{
    ModelRow, Models, ResolvedMode, ResolvedWindow, Settings, Status,
    models::usual_credential,
    scaled_threshold,
    sections::{AnimaFields, HeartbeatSettings, ModeSAuth},
    shape,
    status::DEFAULT_ROLE,
};
use crate::{
    executor::{Limits, ResolvedModel},
    fs::FileError,
    i18n::Locale,
    ids::{AnimaName, ModelId},
    layout::DataDir,
    templates,
    trigger::Trigger,
    units::Tokens,
};

/// What decided about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The Anima's `status.json`.
    Status,
    /// This key of `config.json`.
    Config(String),
    /// The defaults of this role.
    Role(String),
    /// The value of something else that was decided, such as the main model for the background model.
    As(&'static str),
    /// Nobody; it is built in.
    BuiltIn,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => f.write_str("status.json"),
            Self::Config(key) => write!(f, "config.json {key}"),
            Self::Role(role) => write!(f, "role {role}"),
            Self::As(field) => write!(f, "as {field}"),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A value and what decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// What decided.
    pub source: Source,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The field, as in `status.json`.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
    /// What decided.
    pub source: Source,
}

/// Everything that was decided about one Anima. A running session keeps its own.
#[derive(Debug, Clone)]
pub struct AnimaSettings {
    /// Whose they are.
    pub name: AnimaName,
    /// Its `status.json`.
    pub status: Status,
    /// Its role.
    pub role: Sourced<String>,
    /// The model for people and tasks.
    pub model: Sourced<ModelId>,
    /// The model for everything it does by itself.
    pub background_model: Sourced<ModelId>,
    /// The models to fall back to.
    pub fallback_models: Sourced<Vec<ModelId>>,
    /// The entry of `credentials` for the model.
    pub credential: Sourced<String>,
    /// The entry of `credentials` for the background model.
    pub background_credential: Sourced<String>,
    /// How mode S logs in.
    pub mode_s_auth: Sourced<Option<ModeSAuth>>,
    /// The longest answer, in tokens.
    pub max_tokens: Sourced<u32>,
    /// Model calls within a turn.
    pub max_turns: Sourced<u32>,
    /// Sessions that may be joined.
    pub max_chains: Sourced<u32>,
    /// How full the context may get, before it is scaled to the window.
    pub context_threshold: Sourced<f64>,
    /// How much of the window the history may take.
    pub conversation_history_threshold: Sourced<f64>,
    /// How hard the model thinks; `None` when it does not.
    pub thinking: Sourced<Option<String>>,
    /// How hard the background model thinks.
    pub background_thinking: Sourced<Option<String>>,
    /// How long a model call may take.
    pub llm_timeout: Sourced<Duration>,
    /// Whether it looks around by itself.
    pub heartbeat_enabled: Sourced<bool>,
    /// Minutes between two rounds.
    pub heartbeat_interval_minutes: Sourced<u32>,
    /// Whether it sleeps on the day.
    pub consolidation_enabled: Sourced<bool>,
    /// Messages per hour.
    pub max_outbound_per_hour: Sourced<u32>,
    /// Messages per day.
    pub max_outbound_per_day: Sourced<u32>,
    /// Different recipients in one run.
    pub max_recipients_per_run: Sourced<u32>,
    /// Tokens it may spend in a month.
    pub token_budget_monthly: Sourced<Option<u64>>,
    /// The directory to work in, when a task names none.
    pub default_workspace: Sourced<Option<String>>,
    night_model: Option<ModelId>,
    night_credential: Option<String>,
    models: Models,
}

/// The three places that can decide, in order.
struct Layers<'a> {
    status: &'a AnimaFields,
    defaults: &'a AnimaFields,
    role: (&'a str, &'a AnimaFields),
}

impl Layers<'_> {
    fn pick<T: Clone>(&self, key: &str, field: impl Fn(&AnimaFields) -> &Option<T>, built_in: T) -> Sourced<T> {
        self.find(key, &field).unwrap_or(Sourced { value: built_in, source: Source::BuiltIn })
    }

    fn find<T: Clone>(&self, key: &str, field: &impl Fn(&AnimaFields) -> &Option<T>) -> Option<Sourced<T>> {
        let (role, of_role) = self.role;
        self.decided(key, field).or_else(|| {
            let value = field(of_role).clone()?;
            Some(Sourced { value, source: Source::Role(role.to_owned()) })
        })
    }

    /// What a person decided: for this Anima, or for all.
    fn decided<T: Clone>(&self, key: &str, field: &impl Fn(&AnimaFields) -> &Option<T>) -> Option<Sourced<T>> {
        if let Some(value) = field(self.status).clone() {
            return Some(Sourced { value, source: Source::Status });
        }
        let value = field(self.defaults).clone()?;
        Some(Sourced { value, source: Source::Config(format!("anima_defaults.{key}")) })
    }
}

impl AnimaSettings {
    /// Puts together what decides about an Anima.
    ///
    /// # Errors
    ///
    /// [`FileError`] when its `status.json` cannot be read: it is then disabled.
    pub fn load(data: &DataDir, name: &AnimaName, settings: &Settings, models: &Models) -> Result<Self, FileError> {
        Ok(Self::resolve(name, Status::load(&data.anima(name))?, settings, models))
    }

    /// Puts together what decides about an Anima with this `status.json`.
    pub fn resolve(name: &AnimaName, status: Status, settings: &Settings, models: &Models) -> Self {
        let role = match &status.fields.role {
            Some(role) => Sourced { value: role.clone(), source: Source::Status },
            None => Sourced { value: DEFAULT_ROLE.to_owned(), source: Source::BuiltIn },
        };
        let of_role = role_defaults(&role.value).unwrap_or_default();
        let layers =
            Layers { status: &status.settings, defaults: &settings.anima_defaults, role: (&role.value, &of_role) };

        let model = layers
            .find("model", &|f| &f.model)
            .unwrap_or_else(|| Sourced { value: built_in_model(), source: Source::BuiltIn });
        let heartbeat_model = settings
            .heartbeat
            .default_model
            .clone()
            .map(|value| Sourced { value, source: Source::Config("heartbeat.default_model".into()) });
        // a cleared background model means the main one, whatever the role suggests
        let background_model = layers
            .decided("background_model", &|f| &f.background_model)
            .or(heartbeat_model)
            .unwrap_or_else(|| Sourced { value: model.value.clone(), source: Source::As("model") });
        let credential =
            layers.pick("credential", |f| &f.credential, usual_credential(model.value.as_str()).to_owned());
        let background_credential =
            layers.decided("background_credential", &|f| &f.background_credential).unwrap_or_else(|| {
                if usual_credential(model.value.as_str()) == usual_credential(background_model.value.as_str()) {
                    Sourced { value: credential.value.clone(), source: Source::As("credential") }
                } else {
                    let value = usual_credential(background_model.value.as_str()).to_owned();
                    Sourced { value, source: Source::BuiltIn }
                }
            });
        let fallback_models = layers.find("fallback_models", &|f| &f.fallback_models).unwrap_or_else(|| {
            match layers.find("fallback_model", &|f| &f.fallback_model) {
                Some(one) => Sourced { value: vec![one.value], source: one.source },
                None => Sourced { value: Vec::new(), source: Source::BuiltIn },
            }
        });
        let effort = layers.find("thinking_effort", &|f| &f.thinking_effort);
        let thinking = thinking(layers.find("thinking", &|f| &f.thinking), effort);
        let background_effort = layers.find("background_thinking_effort", &|f| &f.background_thinking_effort);
        let background_thinking = match background_effort {
            Some(effort) if thinking.value.is_some() => Sourced { value: Some(effort.value), source: effort.source },
            _ => Sourced { value: thinking.value.clone(), source: Source::As("thinking") },
        };
        let timeout = layers.pick("llm_timeout", |f| &f.llm_timeout, 600);
        let limits = &settings.heartbeat;
        let usual = HeartbeatSettings::default();
        let from_heartbeat = |key: &str, value: u32, usual: u32| {
            let source = if value == usual { Source::BuiltIn } else { Source::Config(format!("heartbeat.{key}")) };
            Sourced { value, source }
        };
        Self {
            name: name.clone(),
            fallback_models,
            mode_s_auth: optional(layers.find("mode_s_auth", &|f| &f.mode_s_auth)),
            max_tokens: layers.pick("max_tokens", |f| &f.max_tokens, 8192),
            max_turns: layers.pick("max_turns", |f| &f.max_turns, 20),
            max_chains: layers.pick("max_chains", |f| &f.max_chains, 2),
            context_threshold: layers.pick("context_threshold", |f| &f.context_threshold, 0.5),
            conversation_history_threshold: layers.pick(
                "conversation_history_threshold",
                |f| &f.conversation_history_threshold,
                0.3,
            ),
            thinking,
            background_thinking,
            llm_timeout: Sourced { value: Duration::from_secs(timeout.value), source: timeout.source },
            heartbeat_enabled: layers.pick("heartbeat_enabled", |f| &f.heartbeat_enabled, true),
            heartbeat_interval_minutes: layers
                .find("heartbeat_interval_minutes", &|f| &f.heartbeat_interval_minutes)
                .unwrap_or_else(|| from_heartbeat("interval_minutes", limits.interval_minutes, usual.interval_minutes)),
            consolidation_enabled: layers.pick("consolidation_enabled", |f| &f.consolidation_enabled, true),
            max_outbound_per_hour: layers.find("max_outbound_per_hour", &|f| &f.max_outbound_per_hour).unwrap_or_else(
                || from_heartbeat("max_messages_per_hour", limits.max_messages_per_hour, usual.max_messages_per_hour),
            ),
            max_outbound_per_day: layers.find("max_outbound_per_day", &|f| &f.max_outbound_per_day).unwrap_or_else(
                || from_heartbeat("max_messages_per_day", limits.max_messages_per_day, usual.max_messages_per_day),
            ),
            max_recipients_per_run: layers.pick("max_recipients_per_run", |f| &f.max_recipients_per_run, 2),
            token_budget_monthly: optional(layers.find("token_budget_monthly", &|f| &f.token_budget_monthly)),
            default_workspace: optional(layers.find("default_workspace", &|f| &f.default_workspace)),
            night_model: settings.consolidation.llm_model.clone(),
            night_credential: settings.consolidation.llm_credential.clone(),
            models: models.clone(),
            model,
            background_model,
            credential,
            background_credential,
            role,
            status,
        }
    }

    /// Whether the Anima works at all.
    pub fn enabled(&self) -> bool {
        self.status.fields.enabled.unwrap_or(true)
    }

    /// The model a trigger runs with: the main one for people and tasks, the background one for the rest,
    /// that of `consolidation.llm_model` for sleep.
    pub fn model_for(&self, trigger: &Trigger) -> ResolvedModel {
        let night = self.night_model.as_ref().filter(|_| matches!(trigger, Trigger::Consolidation(_)));
        if let Some(model) = night {
            let credential = self.night_credential.clone();
            let credential = credential.unwrap_or_else(|| usual_credential(model.as_str()).to_owned());
            return self.resolved(model, &credential, self.background_thinking.value.clone());
        }
        if trigger.is_foreground() {
            self.resolved(&self.model.value, &self.credential.value, self.thinking.value.clone())
        } else {
            let credential = &self.background_credential.value;
            self.resolved(&self.background_model.value, credential, self.background_thinking.value.clone())
        }
    }

    /// The models to fall back to, in order, each with its usual credential.
    pub fn fallbacks(&self) -> Vec<ResolvedModel> {
        let fallbacks = self.fallback_models.value.iter();
        fallbacks
            .map(|model| self.resolved(model, usual_credential(model.as_str()), self.thinking.value.clone()))
            .collect()
    }

    /// The mode of a model of this Anima. An explicit mode only speaks about the main model's kind.
    pub fn mode_of(&self, model: &ModelId) -> ResolvedMode {
        let same_kind = usual_credential(model.as_str()) == usual_credential(self.model.value.as_str());
        self.models.mode(model.as_str(), self.status.settings.execution_mode.filter(|_| same_kind))
    }

    /// The context window of a model.
    pub fn window_of(&self, model: &ModelId) -> ResolvedWindow {
        self.models.window(model.as_str())
    }

    /// The row of `models.json` about a model.
    pub fn row_of(&self, model: &ModelId) -> Option<&ModelRow> {
        self.models.row(model.as_str()).map(|(_, row)| row)
    }

    /// How full the context of a model may get before the session ends, scaled to its window.
    pub fn threshold_of(&self, model: &ResolvedModel) -> f64 {
        scaled_threshold(self.context_threshold.value, model.window)
    }

    /// The limits of a turn.
    pub fn limits(&self, settings: &Settings) -> Limits {
        Limits {
            max_turns: self.max_turns.value,
            first_byte: self.llm_timeout.value,
            total: Duration::from_secs(settings.server.max_streaming_duration).max(self.llm_timeout.value),
            ..Limits::default()
        }
    }

    /// All of it as a listing, in the order of `status.json`.
    pub fn list(&self) -> Vec<Setting> {
        fn row<T: serde::Serialize>(key: &'static str, of: &Sourced<T>) -> Setting {
            let value = serde_json::to_value(&of.value).unwrap_or(Value::Null);
            Setting { key, value, source: of.source.clone() }
        }
        let status = |key, value: Value| {
            let source = if value.is_null() { Source::BuiltIn } else { Source::Status };
            Setting { key, value, source }
        };
        let fields = &self.status.fields;
        let enabled = fields.enabled.map_or(Source::BuiltIn, |_| Source::Status);
        vec![
            Setting { key: "enabled", value: self.enabled().into(), source: enabled },
            row("role", &self.role),
            status("supervisor", fields.supervisor.clone().into()),
            status("speciality", fields.speciality.clone().into()),
            row("model", &self.model),
            row("background_model", &self.background_model),
            row("fallback_models", &self.fallback_models),
            row("credential", &self.credential),
            row("background_credential", &self.background_credential),
            row("mode_s_auth", &self.mode_s_auth),
            row("max_tokens", &self.max_tokens),
            row("max_turns", &self.max_turns),
            row("max_chains", &self.max_chains),
            row("context_threshold", &self.context_threshold),
            row("conversation_history_threshold", &self.conversation_history_threshold),
            row("thinking", &self.thinking),
            row("background_thinking", &self.background_thinking),
            Setting {
                key: "llm_timeout",
                value: self.llm_timeout.value.as_secs().into(),
                source: self.llm_timeout.source.clone(),
            },
            row("heartbeat_enabled", &self.heartbeat_enabled),
            row("heartbeat_interval_minutes", &self.heartbeat_interval_minutes),
            row("consolidation_enabled", &self.consolidation_enabled),
            row("max_outbound_per_hour", &self.max_outbound_per_hour),
            row("max_outbound_per_day", &self.max_outbound_per_day),
            row("max_recipients_per_run", &self.max_recipients_per_run),
            row("token_budget_monthly", &self.token_budget_monthly),
            row("default_workspace", &self.default_workspace),
        ]
    }

    fn resolved(&self, model: &ModelId, credential: &str, thinking: Option<String>) -> ResolvedModel {
        let allowed = self.models.max_tokens(model.as_str()).map(|(_, tokens)| tokens);
        ResolvedModel {
            id: model.clone(),
            mode: self.mode_of(model).mode,
            window: self.models.window(model.as_str()).window,
            max_output: allowed.unwrap_or(Tokens(self.max_tokens.value)),
            credential: credential.to_owned(),
            thinking,
        }
    }
}

/// The defaults of a role, when there is such a role.
pub(crate) fn role_defaults(role: &str) -> Option<AnimaFields> {
    let text = templates::find(Locale::En, &format!("roles/{role}/defaults.json"))?;
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    Some(shape::read(&value, "", &mut Vec::new()))
}

fn thinking(whether: Option<Sourced<bool>>, effort: Option<Sourced<String>>) -> Sourced<Option<String>> {
    match (whether, effort) {
        (Some(Sourced { value: false, source }), _) => Sourced { value: None, source },
        (_, Some(effort)) => Sourced { value: Some(effort.value), source: effort.source },
        (Some(Sourced { source, .. }), None) => Sourced { value: Some("medium".into()), source },
        (None, None) => Sourced { value: None, source: Source::BuiltIn },
    }
}

fn optional<T>(found: Option<Sourced<T>>) -> Sourced<Option<T>> {
    match found {
        Some(Sourced { value, source }) => Sourced { value: Some(value), source },
        None => Sourced { value: None, source: Source::BuiltIn },
    }
}

/// The model of an Anima for which nobody decided anything.
#[allow(clippy::expect_used, reason = "a constant that a test reads")]
fn built_in_model() -> ModelId {
    ModelId::new("claude-sonnet-4-6").expect("a visible name")
}

#[cfg(test)]
mod tests;
