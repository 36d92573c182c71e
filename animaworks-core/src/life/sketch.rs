//! The prompt of a turn that is not run, for people who want to see what a model would read.

use std::sync::Arc;

use super::{Life, Parts, gather::Errand, host::offered};
use crate::{
    anima::AnimaError,
    error::ResultExt,
    executor::{PromptMessage, ResolvedModel},
    memory::Degraded,
    prompt::{self, PromptInput, SystemPrompt},
    tasks::Tasks,
    tool::ToolSpec,
    trigger::{Trigger, TriggerKind},
};

/// What a model would read.
#[derive(Debug, Clone)]
pub struct Sketch {
    /// The model.
    pub model: ResolvedModel,
    /// Why the turn would run.
    pub trigger: TriggerKind,
    /// The system prompt with its sections.
    pub system: SystemPrompt,
    /// What comes after it, oldest first.
    pub messages: Vec<PromptMessage>,
    /// The tools.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Parts of memory that did not answer.
    pub degraded: Vec<Degraded>,
}

/// Draws the prompt of a turn without running it: nobody is woken up, no letter is taken, nothing is
/// recorded.
///
/// # Errors
///
/// [`AnimaError::Home`] when its files or its settings cannot be read; an unknown task is refused.
///
/// # Cancel safety
///
/// Safe.
pub async fn sketch(parts: Parts, trigger: Trigger) -> Result<Sketch, AnimaError> {
    let tasks = Arc::new(Tasks::new("sketch"));
    let life = Life::new(parts, &tasks);
    let live = life.new_turn(life.parts.ids.turn(), trigger);
    let (choice, texts) = life.choose(&live).await?;
    // without its program the prompt is still worth seeing
    let engine = life.parts.engines.executor(&choice.model).log_err("make the engine of a prompt");
    let mode = engine.map_or(choice.model.mode, |engine| engine.mode());
    let errand = match &live.trigger {
        // letters stay where they are
        Trigger::Inbox { .. } => Errand::Inbox(Vec::new()),
        _ => life.errand(&live).await?.0,
    };
    let asked = errand.ask(&life.parts.home, &texts);
    let conversation = life.said_before(&live).await?;
    let priming = life.prime(&live, &choice, &errand, &conversation).await;
    let degraded = priming.degraded.clone();
    let tools = offered(&life.parts.gate, live.trigger.kind(), mode.is_child());
    let mut material = life.material(&live, &choice, &texts, tools.clone(), priming).await?;
    material.recent_results = super::cycle::recent_results(&conversation);
    let messages = life.messages(&live, &choice, mode, &conversation, &errand, &asked);
    let beside = messages.iter().map(super::cycle::cost).sum();
    let system = prompt::build(&PromptInput { beside, ..material });
    Ok(Sketch { model: choice.model, trigger: live.trigger.kind(), system, messages, tools, degraded })
}
