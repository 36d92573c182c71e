//! What differs by trigger, in one table; everything else is the same path (exec spec §2.1).

use crate::{home::activity::Activity, trigger::TriggerKind};

/// What a lane's turns do besides answering.
#[derive(Debug, Clone, Copy)]
pub(super) struct LanePolicy {
    /// Whether it belongs to a conversation: history is read, and words are kept in it.
    pub(super) converses: bool,
    /// Whether a newcomer stops the one that runs.
    pub(super) newcomer_interrupts: bool,
    /// Whether the engine's own session goes on from turn to turn.
    pub(super) resumes: bool,
    /// Whether the answer is checked against the request before it ends (exec spec §2.9).
    pub(super) completion_gate: bool,
    /// Seconds that remembering may take.
    pub(super) prime_within: u64,
    /// What is logged when it begins.
    pub(super) begins: Option<&'static str>,
    /// What is logged when it ends.
    pub(super) ends: &'static str,
    /// The channel of those lines.
    pub(super) channel: &'static str,
}

impl LanePolicy {
    /// The row of a trigger.
    pub(super) fn of(kind: TriggerKind) -> Self {
        let background = Self {
            converses: false,
            newcomer_interrupts: false,
            resumes: false,
            completion_gate: false,
            prime_within: 10,
            begins: None,
            ends: "",
            channel: "",
        };
        match kind {
            TriggerKind::Chat => Self {
                converses: true,
                newcomer_interrupts: true,
                resumes: true,
                completion_gate: true,
                prime_within: 3,
                ends: Activity::RESPONSE_SENT,
                channel: "chat",
                ..background
            },
            TriggerKind::Inbox => Self {
                begins: Some(Activity::INBOX_PROCESSING_START),
                ends: Activity::INBOX_PROCESSING_END,
                channel: "inbox",
                prime_within: 5,
                ..background
            },
            TriggerKind::Heartbeat => {
                Self { begins: Some(Activity::HEARTBEAT_START), ends: Activity::HEARTBEAT_END, ..background }
            }
            TriggerKind::Cron => Self { completion_gate: true, ends: Activity::CRON_EXECUTED, ..background },
            TriggerKind::Task => Self {
                completion_gate: true,
                begins: Some(Activity::TASK_EXEC_START),
                ends: Activity::TASK_EXEC_END,
                ..background
            },
            TriggerKind::Consolidation => {
                Self { begins: Some(Activity::CONSOLIDATION_START), ends: Activity::CONSOLIDATION_END, ..background }
            }
        }
    }
}
