//! What a model reads before it answers: six groups, few sections, equal bytes for equal inputs (exec spec §3).
//!
//! The builder is a pure function of its inputs and never reads a log: what happened
//! lately reaches it only as [`Priming`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    i18n::Locale,
    memory::{Priming, PrimingSection},
    t,
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
    /// What it costs.
    pub tokens: Tokens,
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
    SystemPrompt { text: text.into(), sections, tokens }
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
