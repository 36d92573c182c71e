//! What a model reads before it answers: six groups, few sections, equal bytes for equal inputs (exec spec §3).
//!
//! [`build`] is a pure function of its inputs and never reads a log: what happened
//! lately reaches it only as [`Priming`]. Which section appears for which trigger and
//! window is one table ([`sections::TABLE`]); how much of each fits is [`fit`]'s business.

mod ask;
mod fit;
mod history;
mod sections;
mod texts;
mod tiers;

#[cfg(test)]
mod tests;

pub use ask::{Ask, TaskBrief, brief, retry, said};
pub use fit::build;
pub use history::{Past, history, history_as_text};
pub use sections::{EMOTIONS, Row, TABLE, Use};
pub use texts::Texts;
pub use tiers::Tier;

use std::sync::Arc;

use chrono::DateTime;
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::{
    i18n::Locale,
    ids::AnimaName,
    memory::{Priming, PrimingSection},
    mode::ExecutionMode,
    t,
    tool::ToolSpec,
    trigger::TriggerKind,
    trust::{attribute, neutralise_fences},
    units::Tokens,
};

/// The six groups, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Where it is and how one behaves there.
    Environment,
    /// Who it is.
    Yourself,
    /// How things stand.
    Situation,
    /// What it can do.
    Abilities,
    /// Who else is there.
    Organisation,
    /// How to answer.
    Meta,
}

/// One section of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Its id, such as `identity`.
    pub id: &'static str,
    /// Its group.
    pub group: Group,
    /// Where its text comes from, for the picture of a prompt.
    pub source: String,
    /// Its text.
    pub text: String,
}

impl Section {
    /// A section; blank ones are left out of the prompt.
    pub fn new(id: &'static str, group: Group, source: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id, group, source: source.into(), text: text.into() }
    }
}

/// A system prompt and what it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemPrompt {
    /// The text.
    pub text: Arc<str>,
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// Sections that are not there, and why.
    pub omitted: Vec<Omitted>,
    /// What it costs.
    pub tokens: Tokens,
    /// The tier of the window it was built for.
    pub tier: Tier,
}

/// A section that is not in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// Its id.
    pub id: &'static str,
    /// Why.
    pub why: Why,
}

/// Why a section is not in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The trigger does not want it.
    Trigger,
    /// The window is too small for its tier.
    Tier,
    /// There is nothing to say.
    Empty,
    /// No room was left.
    Budget,
}

/// Everything a system prompt is made of. Data only: the same input gives the same bytes.
#[derive(Debug, Clone)]
pub struct PromptInput {
    /// The language.
    pub locale: Locale,
    /// Whose prompt it is.
    pub anima: AnimaName,
    /// The organisation's directory, as the Anima should name it.
    pub data_dir: String,
    /// Its own directory.
    pub anima_dir: String,
    /// Why the turn runs.
    pub trigger: TriggerKind,
    /// The engine's mode.
    pub mode: ExecutionMode,
    /// The model's window.
    pub window: Tokens,
    /// Now, in the organisation's zone.
    pub now: DateTime<Tz>,
    /// The shipped prompts with the operator's changes.
    pub texts: Texts,
    /// Its own files.
    pub own: OwnFiles,
    /// What came to mind.
    pub priming: Priming,
    /// What it can call.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Who else is there.
    pub around: Surroundings,
    /// What lies in its shelves.
    pub shelves: Shelves,
    /// Notes about finished background work, each one text.
    pub notifications: Vec<String>,
    /// Problems the organisation has solved lately, newest first.
    pub resolutions: Vec<String>,
    /// What its tools answered lately, for engines that keep no structured history.
    pub recent_results: Vec<String>,
    /// The notes of the session this one continues.
    pub continues: Option<String>,
    /// What the conversation and the message cost, so that all of it fits together.
    pub beside: Tokens,
}

/// The files that say who an Anima is and how things stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// `identity.md`.
    pub identity: String,
    /// `injection.md`.
    pub injection: String,
    /// `specialty_prompt.md`.
    pub specialty: String,
    /// `permissions.md`.
    pub permissions: String,
    /// `bootstrap.md`, while it exists.
    pub bootstrap: String,
    /// `company/vision.md`.
    pub vision: String,
    /// `state/current_state.md`.
    pub current_state: String,
    /// `state/pending.md`.
    pub pending: String,
}

/// An Anima's place in its organisation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Who is above it.
    pub supervisor: Option<Member>,
    /// Who is directly below it.
    pub subordinates: Vec<Member>,
    /// How many are below those.
    pub further_below: usize,
    /// Who has the same supervisor.
    pub peers: Vec<Member>,
    /// Everybody's name, without its own.
    pub everybody: Vec<AnimaName>,
    /// What it is good at.
    pub speciality: String,
    /// Whether it may call people.
    pub calls_people: bool,
}

/// A colleague.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name.
    pub name: AnimaName,
    /// What it is good at.
    pub speciality: String,
}

/// What there is to look up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shelves {
    /// Titles of knowledge files, in a stable order.
    pub knowledge: Vec<String>,
    /// Titles of procedures.
    pub procedures: Vec<String>,
    /// People there is a profile of.
    pub users: Vec<String>,
    /// Skills and procedures with a description.
    pub skills: Vec<Skill>,
    /// Whether there is shared knowledge.
    pub common_knowledge: bool,
}

/// One line of the skill catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What it is called.
    pub name: String,
    /// Where its instructions are.
    pub path: String,
    /// What it is for.
    pub description: String,
}

/// Joins sections into a system prompt, group by group.
pub fn assemble(locale: Locale, mut sections: Vec<Section>) -> SystemPrompt {
    sections.retain(|section| !section.text.trim().is_empty());
    sections.sort_by_key(|section| section.group);
    let mut text = String::new();
    let mut open = None;
    for section in &sections {
        if open != Some(section.group) {
            if open.is_some() {
                text.push_str("\n---\n\n");
            }
            open = Some(section.group);
            text.push_str(&format!("# {}\n\n", locale.text(group_title(section.group), &[])));
        }
        text.push_str(section.text.trim());
        text.push_str("\n\n");
    }
    let tokens = Tokens::estimate(&text);
    SystemPrompt { text: text.into(), sections, omitted: Vec::new(), tokens, tier: Tier::Full }
}

fn group_title(group: Group) -> &'static str {
    match group {
        Group::Environment => "prompt.group.environment",
        Group::Yourself => "prompt.group.yourself",
        Group::Situation => "prompt.group.situation",
        Group::Abilities => "prompt.group.abilities",
        Group::Organisation => "prompt.group.organisation",
        Group::Meta => "prompt.group.meta",
    }
}

/// What came to mind, fenced channel by channel. No tier drops it (RULINGS 4).
pub fn priming_section(locale: Locale, trigger: TriggerKind, priming: &Priming) -> Section {
    let mut text = String::new();
    if trigger != TriggerKind::Task && priming.sections.iter().any(|section| !section.body.trim().is_empty()) {
        text.push_str(&t!(locale, "prompt.priming.intro"));
        for section in priming.sections.iter().filter(|section| !section.body.trim().is_empty()) {
            text.push_str("\n\n");
            text.push_str(&fence(section));
        }
    }
    Section::new("priming", Group::Situation, "memory", text)
}

/// One channel in its fence; its body cannot close it.
fn fence(section: &PrimingSection) -> String {
    let mut open = format!("<priming source=\"{}\" trust=\"{}\"", section.channel.as_str(), section.trust.as_str());
    if !section.origin.source.is_empty() {
        open.push_str(&format!(" origin=\"{}\"", attribute(&section.origin.source)));
    }
    if !section.origin.chain.is_empty() {
        open.push_str(&format!(" origin_chain=\"{}\"", attribute(&section.origin.chain.join(","))));
    }
    format!("{open}>\n{}\n</priming>", neutralise_fences(section.body.trim()))
}
