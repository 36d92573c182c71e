//! The way to a person (exec spec §9).

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::PostError;
use crate::ids::AnimaName;

/// Reaches a person over whatever channels they have set up.
#[async_trait]
pub trait HumanLine: Debug + Send + Sync {
    /// Tells. One receipt per channel; a channel that fails does not stop the others.
    ///
    /// # Errors
    ///
    /// When there is no channel at all.
    ///
    /// # Cancel safety
    ///
    /// It may have been told.
    async fn notify(&self, notice: Notice) -> Result<Vec<ChannelReceipt>, PostError>;

    /// Asks and waits for the answer.
    ///
    /// # Errors
    ///
    /// When there is no channel that can answer.
    ///
    /// # Cancel safety
    ///
    /// The question stays open and can be answered later.
    async fn ask(&self, question: Question, cancel: CancellationToken) -> Result<Answer, PostError>;
}

/// How much it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Priority {
    /// When there is time.
    Low,
    /// Today.
    #[default]
    Normal,
    /// Soon.
    High,
    /// Now.
    Urgent,
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Who tells.
    pub from: AnimaName,
    /// In one line.
    pub subject: String,
    /// In full.
    pub body: String,
    /// How much it matters.
    pub priority: Priority,
}

/// What a channel did with a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelReceipt {
    /// The channel.
    pub channel: String,
    /// Why it failed, when it did; safe to show.
    pub error: Option<String>,
}

/// Something to ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// As a notice.
    pub notice: Notice,
    /// What can be answered.
    pub options: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// One of the options.
    pub choice: String,
    /// What was said with it.
    pub comment: String,
    /// Who answered.
    pub by: String,
}
