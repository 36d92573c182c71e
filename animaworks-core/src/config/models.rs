//! What is known about a model: its mode, its context window, its longest answer (exec spec §1.2–1.7).

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{
    ModeSAuth, Problem, Settings, file,
    shape::{self, join, sections},
};
use crate::{
    fs::FileError,
    i18n::Locale,
    ids::ModelId,
    layout::DataDir,
    mode::{ExecutionMode, fnmatch, specificity},
    units::Tokens,
};

/// The window of a model that nobody knows.
pub const DEFAULT_WINDOW: Tokens = Tokens(128_000);

/// The window from which on the configured threshold holds as it is.
const FULL_WINDOW: f64 = 200_000.0;
/// The threshold that an ever smaller window goes to.
const SMALLEST_THRESHOLD: f64 = 0.98;

/// `models.json`, the maps of `config.json` and the built-in table, asked in that order.
#[derive(Debug, Clone, Default)]
pub struct Models {
    rows: BTreeMap<String, ModelRow>,
    modes: BTreeMap<String, ExecutionMode>,
    windows: BTreeMap<String, u32>,
    max_tokens: BTreeMap<String, u32>,
    cards: BTreeMap<ModelId, LocalCard>,
    /// Why `models.json` was not used.
    pub fault: Option<std::sync::Arc<FileError>>,
    /// What in `models.json` does not fit and is passed over.
    pub problems: Vec<Problem>,
}

sections! {
    /// One row of `models.json`.
    ModelRow {
        /// The mode.
        mode: Option<ExecutionMode> = None;
        /// The context window, in tokens.
        context_window: Option<u32> = None, shape::int(1, 100_000_000);
        /// How tools are offered.
        tool_calling: ToolCalling = ToolCalling::default();
        /// How the model marks what it thinks.
        thinking_format: Option<String> = None;
        /// From how many tokens on its own context is compacted.
        compaction_threshold_tokens: Option<u32> = None;
        /// Passed on to the provider.
        frequency_penalty: Option<f64> = None;
        /// Passed on to the provider.
        presence_penalty: Option<f64> = None;
    }

    /// `tool_calling` of a row of `models.json`.
    ToolCalling {
        /// Whether answers are streamed when tools are offered; some local servers cannot.
        stream: bool = true;
        /// More parameters of the request.
        extra_params: BTreeMap<String, Value> = BTreeMap::new();
    }
}

/// What the file of a local model says about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalCard {
    /// Its context window.
    pub window: Option<Tokens>,
    /// Whether its chat template knows tools.
    pub tools: bool,
}

/// A mode and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedMode {
    /// The mode.
    pub mode: ExecutionMode,
    /// What decided.
    pub source: ModeSource,
}

/// What decided about a mode. Patterns are those that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeSource {
    /// `execution_mode` of the Anima.
    Explicit,
    /// A row of `models.json`.
    ModelsFile(String),
    /// `model_modes` of `config.json`.
    Config(String),
    /// The card of a local model.
    Card,
    /// The built-in table.
    BuiltIn(&'static str),
    /// Nothing matched: the safe mode.
    Fallback,
}

/// A context window and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedWindow {
    /// The window.
    pub window: Tokens,
    /// What decided.
    pub source: WindowSource,
}

/// What decided about a window. Patterns are those that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowSource {
    /// A row of `models.json`.
    ModelsFile(String),
    /// `model_context_windows` of `config.json`.
    Config(String),
    /// The card of a local model.
    Card,
    /// The built-in table.
    BuiltIn(&'static str),
    /// Nothing matched.
    Fallback,
}

impl Models {
    /// Reads `models.json`. A missing or malformed one counts as empty, never stops anybody and is never overwritten.
    pub fn load(data: &DataDir, settings: &Settings) -> Self {
        let mut models = Self {
            modes: settings.model_modes.clone(),
            windows: settings.model_context_windows.clone(),
            max_tokens: settings.model_max_tokens.clone(),
            ..Self::default()
        };
        match file::read_object(&data.models()) {
            Ok(object) => {
                for (pattern, row) in object.unwrap_or_default() {
                    let row = shape::read(&row, &join("", &pattern), &mut models.problems);
                    models.rows.insert(pattern, row);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "models.json cannot be read and is passed over");
                models.fault = Some(std::sync::Arc::new(error));
            }
        }
        for problem in &models.problems {
            tracing::warn!(key = problem.key, problem = %problem.text(Locale::En), "models.json: value is passed over");
        }
        models
    }

    /// The same, knowing the card of a local model.
    #[must_use]
    pub fn with_card(mut self, model: ModelId, card: LocalCard) -> Self {
        self.cards.insert(model, card);
        self
    }

    /// The rows of `models.json`, by pattern.
    pub fn rows(&self) -> &BTreeMap<String, ModelRow> {
        &self.rows
    }

    /// The most specific row of `models.json` for a model.
    pub fn row(&self, model: &str) -> Option<(&str, &ModelRow)> {
        best(&self.rows, model, Some)
    }

    /// The mode of a model. `explicit` is what the Anima's `status.json` says.
    pub fn mode(&self, model: &str, explicit: Option<ExecutionMode>) -> ResolvedMode {
        let found = |mode, source| ResolvedMode { mode, source };
        if let Some(mode) = explicit {
            return found(mode, ModeSource::Explicit);
        }
        if let Some((pattern, mode)) = best(&self.rows, model, |row| row.mode) {
            return found(mode, ModeSource::ModelsFile(pattern.to_owned()));
        }
        if let Some((pattern, mode)) = best(&self.modes, model, |mode| Some(*mode)) {
            return found(mode, ModeSource::Config(pattern.to_owned()));
        }
        if self.card(model).is_some_and(|card| card.tools) {
            return found(ExecutionMode::Autonomous, ModeSource::Card);
        }
        let row =
            MODES.iter().filter(|(pattern, _)| fnmatch(pattern, model)).max_by_key(|(pattern, _)| specificity(pattern));
        match row {
            Some((pattern, mode)) => found(*mode, ModeSource::BuiltIn(pattern)),
            None => found(ExecutionMode::Basic, ModeSource::Fallback),
        }
    }

    /// The context window of a model.
    pub fn window(&self, model: &str) -> ResolvedWindow {
        let found = |window, source| ResolvedWindow { window: Tokens(window), source };
        if let Some((pattern, window)) = best(&self.rows, model, |row| row.context_window) {
            return found(window, WindowSource::ModelsFile(pattern.to_owned()));
        }
        if let Some((pattern, window)) = best(&self.windows, model, |window| Some(*window)) {
            return found(window, WindowSource::Config(pattern.to_owned()));
        }
        if let Some(window) = self.card(model).and_then(|card| card.window) {
            return found(window.0, WindowSource::Card);
        }
        let bare = bare_model(model);
        match WINDOWS.iter().filter(|(prefix, _)| bare.starts_with(prefix)).max_by_key(|(prefix, _)| prefix.len()) {
            Some((prefix, window)) => found(*window, WindowSource::BuiltIn(prefix)),
            None => found(DEFAULT_WINDOW.0, WindowSource::Fallback),
        }
    }

    /// The longest answer that `model_max_tokens` of `config.json` allows a model.
    pub fn max_tokens(&self, model: &str) -> Option<(&str, Tokens)> {
        best(&self.max_tokens, model, |tokens| Some(Tokens(*tokens)))
    }

    fn card(&self, model: &str) -> Option<LocalCard> {
        // the engine that needs no model has no card
        let id = ModelId::new(model).ok().filter(|id| id.as_str() != "local/recall")?;
        self.cards.get(&id).copied()
    }
}

/// Of the patterns that match and say something, the most specific one.
fn best<'a, V, T>(
    rows: &'a BTreeMap<String, V>,
    model: &str,
    says: impl Fn(&'a V) -> Option<T>,
) -> Option<(&'a str, T)> {
    rows.iter()
        .filter(|(pattern, _)| fnmatch(pattern, model))
        .filter_map(|(pattern, row)| Some((pattern.as_str(), says(row)?)))
        .max_by_key(|(pattern, _)| specificity(pattern))
}

/// The share of a window at which a session ends: as configured for large windows, later and later for small
/// ones, because they need their room (exec spec §1.5).
pub fn scaled_threshold(configured: f64, window: Tokens) -> f64 {
    let window = f64::from(window.0);
    if window >= FULL_WINDOW || configured >= SMALLEST_THRESHOLD {
        return configured;
    }
    let scaled = SMALLEST_THRESHOLD - (SMALLEST_THRESHOLD - configured) * window / FULL_WINDOW;
    (scaled * 10_000.0).round() / 10_000.0
}

/// The provider in front of a model: `openai` of `openai/gpt-4.1`.
pub fn provider(model: &str) -> Option<&str> {
    model.split_once('/').map(|(provider, _)| provider)
}

/// A model without its provider.
pub fn bare_model(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, bare)| bare)
}

/// A Claude model as the Claude Code child wants to hear it (exec spec §1.7).
pub fn claude_model(model: &str, auth: Option<ModeSAuth>) -> Cow<'_, str> {
    let bare =
        ["anthropic/", "bedrock/", "vertex_ai/"].iter().find_map(|prefix| model.strip_prefix(prefix)).unwrap_or(model);
    if matches!(auth, Some(ModeSAuth::Bedrock | ModeSAuth::Vertex)) {
        return Cow::Borrowed(bare);
    }
    match bare.split_once("anthropic.") {
        Some((region, name))
            if region.strip_suffix('.').is_none_or(|region| region.chars().all(char::is_alphanumeric)) =>
        {
            Cow::Borrowed(name)
        }
        _ => Cow::Borrowed(bare),
    }
}

/// The entry of `credentials` that goes with a model when nobody names one; none for models that run here.
pub(crate) fn usual_credential(model: &str) -> &str {
    match provider(model) {
        None => "anthropic",
        Some("local") => "",
        Some("codex" | "openai-codex") => "openai",
        Some("gemini") => "google",
        Some("vertex_ai") => "vertex",
        Some(provider) => provider,
    }
}

use ExecutionMode::{Autonomous, Basic, Codex, Cursor, Gemini, Sdk};

/// The built-in pattern table (exec spec §1.3).
const MODES: &[(&str, ExecutionMode)] = &[
    ("claude-*", Sdk),
    ("codex/*", Codex),
    ("openai-codex/*", Codex),
    ("cursor/*", Cursor),
    ("gemini/*", Gemini),
    ("openai/*", Autonomous),
    ("google/*", Autonomous),
    ("vertex_ai/*", Autonomous),
    ("azure/*", Autonomous),
    ("mistral/*", Autonomous),
    ("xai/*", Autonomous),
    ("bedrock/*", Autonomous),
    ("cohere/*", Autonomous),
    ("zai/*", Autonomous),
    ("nanogpt/*", Autonomous),
    ("minimax/*", Autonomous),
    ("moonshot/*", Autonomous),
    ("deepseek/deepseek-chat", Autonomous),
    ("anthropic/*", Autonomous),
    ("ollama/qwen3:14b", Autonomous),
    ("ollama/qwen3:30b", Autonomous),
    ("ollama/qwen3:32b", Autonomous),
    ("ollama/qwen3:235b", Autonomous),
    ("ollama/qwen3.5*", Autonomous),
    ("ollama/qwen3-coder:*", Autonomous),
    ("ollama/glm-4.7*", Autonomous),
    ("ollama/glm-5*", Autonomous),
    ("ollama/llama4:*", Autonomous),
    ("ollama/mistral-small3.2:*", Autonomous),
    ("ollama/devstral*", Autonomous),
    ("ollama/minimax*", Autonomous),
    ("ollama/gemma4*", Autonomous),
    ("ollama/kimi-k2*", Autonomous),
    ("ollama/gpt-oss*", Autonomous),
    ("ollama/gemma3*", Basic),
    ("ollama/deepseek-r1*", Basic),
    ("ollama/deepseek-v3*", Basic),
    ("ollama/phi4*", Basic),
    ("ollama/*", Basic),
    ("local/recall", Basic),
    ("local/*", Basic),
];

/// Context windows by the beginning of the bare name (exec spec §1.4).
const WINDOWS: &[(&str, u32)] = &[
    ("claude-", 200_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 272_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini-2.", 1_048_576),
    ("gemini-3", 1_048_576),
    ("grok", 256_000),
    ("glm-4", 131_072),
    ("qwen3.5", 64_000),
    ("gemma4", 8192),
    ("gemma3", 128_000),
    ("llama3", 128_000),
    ("qwen2.5", 128_000),
];

#[cfg(test)]
mod tests;
