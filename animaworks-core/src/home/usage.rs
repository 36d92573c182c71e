//! What the model calls consumed, a line for each run (exec spec, appendix J).

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AnimaHome,
    text::{lenient, lenient_count},
};
use crate::{
    fs::{self, FileError},
    units::Usage,
};

/// One run. A field that is `None` was not known and is not written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// When; filled when it is written.
    #[serde(default, deserialize_with = "lenient")]
    pub ts: String,
    /// The model.
    #[serde(default, deserialize_with = "lenient")]
    pub model: String,
    /// Why it ran.
    #[serde(default, deserialize_with = "lenient")]
    pub trigger: String,
    /// The letter of the mode.
    #[serde(default, deserialize_with = "lenient")]
    pub mode: String,
    /// How it was paid for.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "String::is_empty")]
    pub auth: String,
    /// Tokens read, without cached ones.
    #[serde(default, deserialize_with = "lenient_count")]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(default, deserialize_with = "lenient_count")]
    pub output_tokens: u64,
    /// Both.
    #[serde(default, deserialize_with = "lenient_count")]
    pub total_tokens: u64,
    /// Tokens read from the provider's cache.
    #[serde(default, deserialize_with = "lenient_count", skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Tokens written to it.
    #[serde(default, deserialize_with = "lenient_count", skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Whether the numbers are our own estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Model calls.
    #[serde(default, deserialize_with = "lenient_count")]
    pub turns: u64,
    /// Sessions beyond the first.
    #[serde(default, deserialize_with = "lenient_count", skip_serializing_if = "is_zero")]
    pub chains: u64,
    /// How long it took.
    #[serde(default, deserialize_with = "lenient_count")]
    pub duration_ms: u64,
    /// What it cost; null when the price is not known.
    #[serde(default)]
    pub estimated_cost_usd: Option<f64>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl UsageRecord {
    /// The record of a run.
    pub fn new(model: impl Into<String>, trigger: impl Into<String>, mode: impl Into<String>, usage: Usage) -> Self {
        Self {
            model: model.into(),
            trigger: trigger.into(),
            mode: mode.into(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.input_tokens + usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            estimated: usage.estimated,
            ..Self::default()
        }
    }
}

impl AnimaHome {
    /// Appends to today's file.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file.
    pub fn record_usage(&self, mut record: UsageRecord) -> Result<(), FileError> {
        if record.ts.is_empty() {
            record.ts = self.stamp();
        }
        let path = self.dir().token_usage(self.today());
        fs::append_line(&path, &fs::json_line(&path, &record)?)
    }

    /// The runs of a day.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] names the file; a day without one is empty.
    pub fn usage(&self, date: NaiveDate) -> Result<Vec<UsageRecord>, FileError> {
        fs::read_records(&self.dir().token_usage(date))
    }
}
