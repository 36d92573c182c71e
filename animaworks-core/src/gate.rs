//! The one gate: every tool call of every engine goes through it (DESIGN §7).
//!
//! known → permitted → run (arguments, limits, sandbox inside the tool) → cap → label.
//! Who logs is the caller: the life records calls in journal and activity log.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use serde_json::Value;

use crate::{
    error::chain,
    executor::HostFault,
    i18n::Locale,
    ids::ToolName,
    t,
    tool::{DurationClass, Effect, Tool, ToolCall, ToolContext, ToolError, ToolOutput, ToolSpec},
    trigger::TriggerKind,
    trust::Trust,
};

/// The longest result a model is given, in bytes (exec spec §4.4).
pub const MAX_RESULT_BYTES: usize = 50_000;

/// What an Anima may do, as its owner wrote it.
pub trait Permissions: Debug + Send + Sync {
    /// Decides about one call.
    fn decide(&self, ask: &Ask<'_>) -> Decision;

    /// Whether a tool is shown at all; one that is always refused need not be.
    fn offers(&self, _tool: &ToolSpec) -> bool {
        true
    }
}

/// A call to be decided about.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// What it would be called with.
    pub args: &'a Value,
    /// Why the turn runs.
    pub trigger: TriggerKind,
    /// The least trusted thing this session has seen.
    pub floor: Trust,
    /// The language of reasons.
    pub locale: Locale,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// No; `reason` and `instead` are for the model, in its organisation's language.
    Deny {
        /// Why.
        reason: String,
        /// What is allowed instead.
        instead: Option<String>,
    },
}

/// Deny by default: own memory and talking, nothing that acts on the machine or leaves it.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnMemoryOnly;

impl Permissions for OwnMemoryOnly {
    fn decide(&self, ask: &Ask<'_>) -> Decision {
        match ask.tool.effect {
            Effect::Reads | Effect::Remembers | Effect::Communicates => Decision::Allow,
            Effect::Acts | Effect::External => Decision::Deny {
                reason: t!(ask.locale, "core.gate.not_granted", tool = ask.tool.name),
                instead: Some(t!(ask.locale, "core.gate.not_granted_instead")),
            },
        }
    }
}

/// The effects each trigger may have. A heartbeat and a night plan and note; they do not act (RULINGS 11).
pub fn trigger_allows(trigger: TriggerKind, effect: Effect) -> bool {
    match trigger {
        TriggerKind::Chat | TriggerKind::Inbox | TriggerKind::Cron | TriggerKind::Task => true,
        TriggerKind::Heartbeat => effect <= Effect::Communicates,
        TriggerKind::Consolidation => effect <= Effect::Remembers,
    }
}

/// Whether a trigger is offered a tool: its effect, and for the last look before the end whether there is one
/// (exec spec §2.9).
fn trigger_offers(trigger: TriggerKind, spec: &ToolSpec) -> bool {
    let has_last_look = matches!(trigger, TriggerKind::Chat | TriggerKind::Cron | TriggerKind::Task);
    trigger_allows(trigger, spec.effect) && (has_last_look || spec.name.as_str() != COMPLETION_GATE)
}

/// The tool that asks for a last look before the end.
pub const COMPLETION_GATE: &str = "completion_gate";

/// The tools of an Anima and the rules they are used under.
#[derive(Debug, Clone)]
pub struct Gate {
    tools: BTreeMap<ToolName, Arc<dyn Tool>>,
    permissions: Arc<dyn Permissions>,
}

impl Gate {
    /// A gate in front of some tools. Of two tools with one name the later one counts.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>, permissions: Arc<dyn Permissions>) -> Self {
        let tools = tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect();
        Self { tools, permissions }
    }

    /// What a turn may be offered, in the order of names.
    pub fn offered(&self, trigger: TriggerKind) -> Vec<Arc<ToolSpec>> {
        let specs = self.tools.values().map(|tool| tool.spec());
        let offered = specs.filter(|spec| trigger_offers(trigger, spec) && self.permissions.offers(spec));
        offered.cloned().collect()
    }

    /// Decides about a call without making it.
    pub fn decide(&self, name: &ToolName, args: &Value, cx: &ToolContext) -> Decision {
        match self.tools.get(name) {
            Some(tool) => self.rule(tool.spec(), args, cx),
            None => Decision::Deny { reason: self.unknown(name, cx.locale), instead: None },
        }
    }

    /// Makes a call. Whatever the model can mend comes back as an output with `is_error`.
    ///
    /// # Errors
    ///
    /// [`HostFault`] when the machine or a service of ours failed.
    ///
    /// # Cancel safety
    ///
    /// As the tool's own.
    pub async fn call(&self, call: ToolCall, cx: &ToolContext) -> Result<ToolOutput, HostFault> {
        let Some(tool) = self.tools.get(&call.name) else {
            return Ok(ToolOutput::error("UnknownTool", &self.unknown(&call.name, cx.locale), None));
        };
        let spec = tool.spec();
        if let Decision::Deny { reason, instead } = self.rule(spec, &call.args, cx) {
            tracing::info!(anima = %cx.anima, tool = %spec.name, reason, "tool call refused");
            return denied(ToolError::Denied { tool: spec.name.clone(), reason, instead }, cx);
        }
        match tool.call(call.args, cx).await {
            Ok(mut output) => {
                output.trust = output.trust.min(spec.returns);
                output.text = cap(output.text, cx.locale);
                Ok(output)
            }
            Err(error) => denied(error, cx),
        }
    }

    fn rule(&self, spec: &ToolSpec, args: &Value, cx: &ToolContext) -> Decision {
        if !trigger_offers(cx.trigger, spec) {
            return Decision::Deny {
                reason: t!(cx.locale, "core.gate.plans_only", tool = spec.name),
                instead: Some(t!(cx.locale, "core.gate.plans_only_instead")),
            };
        }
        if spec.duration == DurationClass::Long {
            return Decision::Deny {
                reason: t!(cx.locale, "core.gate.long_running", tool = spec.name),
                instead: Some(t!(cx.locale, "core.gate.long_running_instead", tool = spec.name)),
            };
        }
        let ask = Ask { tool: spec, args, trigger: cx.trigger, floor: cx.floor.trust(), locale: cx.locale };
        self.permissions.decide(&ask)
    }

    fn unknown(&self, name: &ToolName, locale: Locale) -> String {
        let near = near(name.as_str(), self.tools.keys().map(ToolName::as_str), 5);
        t!(locale, "core.gate.unknown_tool", tool = name, near = near.join(", "))
    }
}

fn denied(error: ToolError, cx: &ToolContext) -> Result<ToolOutput, HostFault> {
    error.for_model(cx.locale).map_err(|fault| HostFault::new(chain(&fault)))
}

/// Cuts a result that is too long for a prompt, and says how long it was.
fn cap(mut text: String, locale: Locale) -> String {
    let bytes = text.len();
    if bytes > MAX_RESULT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_RESULT_BYTES));
        text.push('\n');
        text.push_str(&t!(locale, "core.gate.truncated", bytes = bytes));
    }
    text
}

/// The `max` candidates that look most like `wanted`, nearest first; none that share little with it.
pub fn near<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>, max: usize) -> Vec<String> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().collect();
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase().chars().collect::<Vec<_>>()), candidate))
        .filter(|(distance, candidate)| *distance <= wanted.len().max(candidate.chars().count()) / 2)
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(max).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Levenshtein distance, one row at a time.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let (left, above) = (row.get(j).copied().unwrap_or(0), row.get(j + 1).copied().unwrap_or(0));
            let cost = (diagonal + usize::from(x != y)).min(left + 1).min(above + 1);
            diagonal = above;
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = cost;
            }
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{FakeTool, context};

    fn gate(tools: Vec<FakeTool>) -> Gate {
        Gate::new(tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>), Arc::new(OwnMemoryOnly))
    }

    fn call(name: &str) -> ToolCall {
        ToolCall { id: crate::CallId::new("c1").unwrap(), name: ToolName::new(name).unwrap(), args: Value::Null }
    }

    #[tokio::test]
    async fn what_is_not_granted_is_refused_with_a_way_out() {
        let tool = FakeTool::new("Bash", Effect::Acts);
        let output = gate(vec![tool.clone()]).call(call("Bash"), &context(TriggerKind::Chat)).await.unwrap();
        assert!(output.is_error && output.text.contains("PermissionDenied"), "{}", output.text);
        assert_eq!(tool.calls(), 0);
    }

    #[tokio::test]
    async fn a_heartbeat_plans_and_does_not_act() {
        let gate = Gate::new([Arc::new(FakeTool::new("Bash", Effect::Acts)) as Arc<dyn Tool>], Arc::new(Everything));
        let output = gate.call(call("Bash"), &context(TriggerKind::Heartbeat)).await.unwrap();
        assert!(output.is_error, "{}", output.text);
        assert!(gate.offered(TriggerKind::Heartbeat).is_empty());
        assert!(!gate.call(call("Bash"), &context(TriggerKind::Task)).await.unwrap().is_error);
    }

    #[tokio::test]
    async fn an_unknown_tool_names_its_neighbours() {
        let gate = gate(vec![FakeTool::new("search_memory", Effect::Reads)]);
        let output = gate.call(call("serch_memory"), &context(TriggerKind::Chat)).await.unwrap();
        assert!(output.is_error && output.text.contains("search_memory"), "{}", output.text);
    }

    #[derive(Debug)]
    struct Everything;

    impl Permissions for Everything {
        fn decide(&self, _: &Ask<'_>) -> Decision {
            Decision::Allow
        }
    }
}
