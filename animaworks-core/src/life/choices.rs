//! What the owner decided for a turn, read again at every one.

use std::{fmt::Debug, time::Duration};

use crate::{
    anima::AnimaError,
    config::{AnimaSettings, Models, Settings},
    executor::{Limits, ResolvedModel},
    ids::AnimaName,
    layout::DataDir,
    organisation::Organisation,
    prompt::{Member, Surroundings},
    trigger::Trigger,
};

/// Where the decisions come from: the configuration files, or a program that embeds an Anima.
pub trait Choices: Debug + Send + Sync {
    /// What holds for a turn that begins now. Blocks.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or no model is named; the turn then ends with that error.
    fn choose(&self, trigger: &Trigger) -> Result<Choice, AnimaError>;

    /// The Anima's place in its organisation. Blocks.
    ///
    /// # Errors
    ///
    /// When the organisation cannot be read.
    fn surroundings(&self) -> Result<Surroundings, AnimaError>;

    /// Whether it takes part in the working day. Blocks.
    ///
    /// # Errors
    ///
    /// When `status.json` cannot be read.
    fn is_enabled(&self) -> Result<bool, AnimaError>;
}

/// The decisions for one turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The model.
    pub model: ResolvedModel,
    /// Models to take when the first one has no quota or login, in order.
    pub fallbacks: Vec<ResolvedModel>,
    /// When to give up.
    pub limits: Limits,
    /// The share of the window at which another session takes over.
    pub context_threshold: f64,
    /// The share of the window that the conversation may take before it is summarised.
    pub history_threshold: f64,
    /// The most sessions that one turn may be chained over.
    pub max_chains: u32,
    /// How often a broken stream is taken up again.
    pub stream_retries: u32,
    /// How long to wait before that.
    pub retry_delay: Duration,
    /// Whether the answer is checked against the request before it ends, and from how many tool calls on.
    pub completion_gate: Option<u32>,
}

impl Choice {
    /// The shipped defaults with one model.
    pub fn of(model: ResolvedModel) -> Self {
        Self {
            model,
            fallbacks: Vec::new(),
            limits: Limits::default(),
            context_threshold: 0.5,
            history_threshold: 0.3,
            max_chains: 2,
            stream_retries: 3,
            retry_delay: Duration::from_secs(5),
            completion_gate: Some(0),
        }
    }
}

/// One decision for every turn and nobody around: for a program that embeds an Anima by itself.
#[derive(Debug, Clone)]
pub struct Always(pub Choice);

impl Choices for Always {
    fn choose(&self, _: &Trigger) -> Result<Choice, AnimaError> {
        Ok(self.0.clone())
    }

    fn surroundings(&self) -> Result<Surroundings, AnimaError> {
        Ok(Surroundings::default())
    }

    fn is_enabled(&self) -> Result<bool, AnimaError> {
        Ok(true)
    }
}

/// Decisions as they stand in the files of the organisation: `config.json`, `models.json`, `status.json`.
#[derive(Debug, Clone)]
pub struct FileChoices {
    data: DataDir,
    name: AnimaName,
}

impl FileChoices {
    /// The decisions about one Anima.
    pub fn new(data: DataDir, name: AnimaName) -> Self {
        Self { data, name }
    }

    fn read(&self) -> Result<(Settings, AnimaSettings), AnimaError> {
        let settings = Settings::load(&self.data)?;
        let models = Models::load(&self.data, &settings);
        let anima = AnimaSettings::load(&self.data, &self.name, &settings, &models)?;
        Ok((settings, anima))
    }
}

impl Choices for FileChoices {
    fn choose(&self, trigger: &Trigger) -> Result<Choice, AnimaError> {
        let (settings, anima) = self.read()?;
        let model = anima.model_for(trigger);
        let gate = &settings.completion_gate;
        Ok(Choice {
            fallbacks: anima.fallbacks(),
            limits: anima.limits(&settings),
            context_threshold: anima.threshold_of(&model),
            history_threshold: anima.conversation_history_threshold.value,
            max_chains: anima.max_chains.value,
            stream_retries: settings.server.stream_retry_max,
            retry_delay: Duration::try_from_secs_f64(settings.server.stream_retry_delay_s).unwrap_or_default(),
            completion_gate: gate.enabled.then_some(gate.min_tool_calls),
            model,
        })
    }

    fn surroundings(&self) -> Result<Surroundings, AnimaError> {
        let settings = Settings::load(&self.data)?;
        let organisation = Organisation::load(&self.data)?;
        let speciality = |name: &AnimaName| {
            let member = organisation.member(name);
            member.and_then(|member| member.speciality.clone()).unwrap_or_default()
        };
        let member = |name: &AnimaName| Member { name: name.clone(), speciality: speciality(name) };
        let supervisor = organisation.supervisor(&self.name);
        let subordinates = organisation.subordinates(&self.name);
        let below = organisation.descendants(&self.name).len();
        Ok(Surroundings {
            calls_people: settings.human_notification.enabled && supervisor.is_none(),
            supervisor: supervisor.map(member),
            further_below: below.saturating_sub(subordinates.len()),
            subordinates: subordinates.into_iter().map(member).collect(),
            peers: organisation.peers(&self.name).into_iter().map(member).collect(),
            everybody: organisation.names().filter(|name| **name != self.name).cloned().collect(),
            speciality: speciality(&self.name),
        })
    }

    fn is_enabled(&self) -> Result<bool, AnimaError> {
        Ok(self.read()?.1.enabled())
    }
}
