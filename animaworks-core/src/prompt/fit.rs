//! Makes the sections fit the window: what is rigid first, the rest in proportion (exec spec §3.4).

use super::{Omitted, PromptInput, Section, SystemPrompt, TABLE, Tier, Use, Why, assemble, sections::Row};
use crate::{t, units::Tokens};

/// The share of a window for the system prompt: what the answer, the history and a reserve leave.
const SYSTEM_SHARE: f64 = 0.65;
/// The share of a window that everything sent may fill.
const SENT_SHARE: f64 = 0.80;
/// A system prompt is never asked to be smaller than this.
const FLOOR: Tokens = Tokens(500);
/// A cut section smaller than this says nothing any more.
const LEAST: Tokens = Tokens(25);

/// Builds the system prompt. Equal inputs give equal bytes.
///
/// When prompt, tools and history together do not fit the window, it is built again with
/// three quarters, a half and a quarter of its budget; priming shrinks with it and stays.
pub fn build(input: &PromptInput) -> SystemPrompt {
    let tools: u32 = input
        .tools
        .iter()
        .map(|tool| Tokens::estimate(&tool.description).0 + Tokens::estimate(&tool.schema.to_string()).0)
        .sum();
    let beside = input.beside.0.saturating_add(tools);
    let allowed = share(input.window, SENT_SHARE);
    let mut built = None;
    for part in [1.0, 0.75, 0.5, 0.25] {
        let prompt = with_budget(input, part);
        let fits = prompt.tokens.0.saturating_add(beside) <= allowed.0;
        built = Some(prompt);
        if fits {
            break;
        }
    }
    built.unwrap_or_else(|| assemble(input.locale, Vec::new()))
}

/// One attempt within a part of the budget.
fn with_budget(input: &PromptInput, part: f32) -> SystemPrompt {
    let tier = Tier::of(input.window);
    let mut input = input.clone();
    input.priming = tier.priming(&input.priming, input.window, part);
    let budget = share(input.window, SYSTEM_SHARE * f64::from(part)).max(FLOOR);

    let mut omitted = Vec::new();
    let mut wanted: Vec<(&Row, String, Tokens)> = Vec::new();
    for row in TABLE {
        match candidate(&input, row, tier) {
            Ok(text) => {
                let cost = Tokens::estimate(&text);
                wanted.push((row, text, cost));
            }
            Err(why) => omitted.push(Omitted { id: row.id, why }),
        }
    }

    let mut left = budget;
    let mut chosen: Vec<(&Row, String)> = Vec::new();
    // rigid sections as a whole, the important ones in any case
    let mut by_priority: Vec<&(&Row, String, Tokens)> = wanted.iter().filter(|(row, ..)| !row.elastic).collect();
    by_priority.sort_by_key(|(row, ..)| row.priority);
    for (row, text, cost) in by_priority {
        if row.priority == 1 || cost.0 <= left.0 {
            left = left.saturating_sub(*cost);
            chosen.push((row, text.clone()));
        } else {
            omitted.push(Omitted { id: row.id, why: Why::Budget });
        }
    }
    // elastic ones share what is left, priority by priority, in proportion to their size
    for priority in 1..=4 {
        let level: Vec<_> = wanted.iter().filter(|(row, ..)| row.elastic && row.priority == priority).collect();
        let total: u32 = level.iter().map(|(.., cost)| cost.0).sum();
        let room = left;
        for (row, text, cost) in level {
            let mine = if total <= room.0 { *cost } else { Tokens(proportion(cost.0, room.0, total)) };
            // who it is comes through whatever happens
            let mine = if priority == 1 { mine.max(LEAST) } else { mine };
            if mine < LEAST && mine < *cost {
                omitted.push(Omitted { id: row.id, why: Why::Budget });
                continue;
            }
            left = left.saturating_sub(mine);
            chosen.push((row, cut(&input, row, text, mine)));
        }
    }

    let order = |id: &str| TABLE.iter().position(|row| row.id == id);
    chosen.sort_by_key(|(row, _)| order(row.id));
    omitted.sort_by_key(|omitted| order(omitted.id));
    let sections = chosen.into_iter().map(|(row, text)| Section::new(row.id, row.group, row.source, text)).collect();
    SystemPrompt { omitted, tier, ..assemble(input.locale, sections) }
}

/// The text of a section, or why it has none.
fn candidate(input: &PromptInput, row: &Row, tier: Tier) -> Result<String, Why> {
    let how = row.used_by(input.trigger);
    if how == Use::Off {
        return Err(Why::Trigger);
    }
    if tier < row.from {
        return Err(Why::Tier);
    }
    let text = (row.text)(input, how);
    if text.trim().is_empty() { Err(Why::Empty) } else { Ok(text) }
}

fn cut(input: &PromptInput, row: &Row, text: &str, budget: Tokens) -> String {
    let head = budget.head(text);
    if head.len() == text.len() {
        return text.to_owned();
    }
    format!("{}\n{}", head.trim_end(), t!(input.locale, "prompt.truncated", path = row.source))
}

fn proportion(mine: u32, room: u32, total: u32) -> u32 {
    u32::try_from(u64::from(mine) * u64::from(room) / u64::from(total.max(1))).unwrap_or(u32::MAX)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a window")]
fn share(window: Tokens, share: f64) -> Tokens {
    Tokens((f64::from(window.0) * share) as u32)
}
