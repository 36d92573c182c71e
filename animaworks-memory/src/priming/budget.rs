//! How much may come to mind (memory spec §18.3, §18.4).

use animaworks_core::{Cue, Tokens};
use serde::{Deserialize, Serialize};

use super::MessageClass;

/// Budgets in tokens (config `priming`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Budgets {
    /// Whether the whole depends on what was said; 2,000 otherwise.
    pub dynamic: bool,
    /// For a greeting.
    pub greeting: u32,
    /// For a question.
    pub question: u32,
    /// For a request.
    pub request: u32,
    /// For a heartbeat, at least.
    pub heartbeat: u32,
    /// The share of the context window for a heartbeat, when that is more.
    pub heartbeat_share: f32,
    /// Channel A, of a whole of 2,000.
    pub sender: u32,
    /// Channel B, of a whole of 2,000.
    pub activity: u32,
    /// Channel C, of a whole of 2,000.
    pub knowledge: u32,
    /// Channel E, of a whole of 2,000.
    pub tasks: u32,
    /// Channel F, of a whole of 2,000.
    pub episodes: u32,
}

/// The whole that the budgets of the channels are stated for.
const WHOLE: f32 = 2000.0;
/// Channel B keeps this much whatever was said.
const ACTIVITY_LEAST: u32 = 400;

impl Default for Budgets {
    fn default() -> Self {
        Self {
            dynamic: true,
            greeting: 500,
            question: 2000,
            request: 3000,
            heartbeat: 200,
            heartbeat_share: 0.05,
            sender: 500,
            activity: 1300,
            knowledge: 700,
            tasks: 300,
            episodes: 400,
        }
    }
}

/// The room of each channel for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) sender: Tokens,
    pub(crate) activity: Tokens,
    pub(crate) knowledge: Tokens,
    pub(crate) tasks: Tokens,
    pub(crate) episodes: Tokens,
}

impl Room {
    /// The room there is for what was said.
    pub(crate) fn of(budgets: &Budgets, class: MessageClass, cue: &Cue) -> Self {
        let total = total(budgets, class, cue.window);
        let ratio = total as f32 / WHOLE;
        let share = |of: u32| Tokens((of as f32 * ratio) as u32);
        let activity = share(budgets.activity).0;
        let least = if total == 0 { 0 } else { ACTIVITY_LEAST.min(budgets.activity) };
        Self {
            sender: share(budgets.sender),
            activity: Tokens(activity.max(least)),
            knowledge: share(budgets.knowledge),
            tasks: share(budgets.tasks),
            episodes: share(budgets.episodes),
        }
    }
}

/// The whole for a class of message.
fn total(budgets: &Budgets, class: MessageClass, window: Tokens) -> u32 {
    if !budgets.dynamic {
        return WHOLE as u32;
    }
    match class {
        MessageClass::Greeting => budgets.greeting,
        MessageClass::Question => budgets.question,
        MessageClass::Request => budgets.request,
        // in whole numbers, so that a window of 200,000 is exactly 10,000
        MessageClass::Heartbeat => {
            let share = (f64::from(window.0) * f64::from(budgets.heartbeat_share) + 0.5) as u32;
            budgets.heartbeat.max(share)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_follows_what_was_said() {
        let budgets = Budgets::default();
        let window = Tokens(200_000);
        assert_eq!(total(&budgets, MessageClass::Heartbeat, window), 10_000);
        assert_eq!(total(&budgets, MessageClass::Heartbeat, Tokens(100)), 200);
        assert_eq!(total(&budgets, MessageClass::Greeting, window), 500);
        assert_eq!(total(&Budgets { dynamic: false, ..budgets }, MessageClass::Greeting, window), 2000);
    }
}
