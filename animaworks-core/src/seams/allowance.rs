//! Money: asked for before a model is called, settled after.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::{
    error::{ErrorKind, Fault},
    ids::{AnimaName, LeaseId},
    trigger::TriggerKind,
    units::{Tokens, Usage},
};

/// Decides whether a turn may be paid for.
#[async_trait]
pub trait Allowance: Debug + Send + Sync {
    /// Sets an estimate aside before the call.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the budget does not allow it.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn reserve(&self, who: &AnimaName, trigger: TriggerKind, estimate: Tokens) -> Result<LeaseId, Refused>;

    /// Replaces the estimate by what was used.
    ///
    /// # Errors
    ///
    /// When it cannot be recorded.
    ///
    /// # Cancel safety
    ///
    /// Resumable.
    async fn settle(&self, lease: LeaseId, used: Usage) -> Result<(), super::PostError>;
}

/// No budget is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("budget of {budget} tokens is spent ({used} used)")]
pub struct Refused {
    /// The budget in tokens for the month.
    pub budget: u64,
    /// What is used.
    pub used: u64,
}

impl Fault for Refused {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Quota
    }

    fn code(&self) -> &'static str {
        "budget_refused"
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![("budget", self.budget.to_string()), ("used", self.used.to_string())]
    }
}
