//! What tokens cost, as data: a shipped table, and `pricing.json` of the organisation over it (exec spec, appendix J).

use std::{collections::BTreeMap, sync::OnceLock};

use serde::{Deserialize, Serialize};

use crate::{
    error::ResultExt,
    fs::{self, FileError},
    layout::DataDir,
    units::{MicroDollars, Usage},
};

const SHIPPED: &str = include_str!("prices.json");

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the provider's cache.
    pub cache_read: f64,
    /// Tokens written to it.
    pub cache_write: f64,
}

/// Prices by the beginning of a model's name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// The shipped table.
    pub fn shipped() -> Self {
        static TABLE: OnceLock<BTreeMap<String, Price>> = OnceLock::new();
        let read = || serde_json::from_str(SHIPPED).log_err("read the shipped prices").unwrap_or_default();
        Self(TABLE.get_or_init(read).clone())
    }

    /// The shipped table with `pricing.json` over it.
    ///
    /// # Errors
    ///
    /// [`FileError`] names the file when it is there and cannot be read.
    pub fn load(data: &DataDir) -> Result<Self, FileError> {
        let Self(mut table) = Self::shipped();
        let path = data.root().join("pricing.json");
        if path.exists() {
            table.extend(fs::read_json::<BTreeMap<String, Price>>(&path)?);
        }
        Ok(Self(table))
    }

    /// The price of a model: that of the longest beginning of its name. Models of this machine cost nothing.
    pub fn of(&self, model: &str) -> Option<Price> {
        if model.starts_with("local/") || model.starts_with("ollama/") {
            return Some(Price::default());
        }
        let bare = model.rsplit('/').next().unwrap_or(model);
        // a region and a maker before the name: `us.anthropic.claude-…`
        let bare = bare.rsplit_once("anthropic.").map_or(bare, |(_, name)| name);
        let fitting = self.0.iter().filter(|(name, _)| bare.starts_with(name.as_str()));
        fitting.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }

    /// What a run cost; `None` when the price of its model is not known.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<MicroDollars> {
        let price = self.of(model)?;
        #[allow(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
        let part = |tokens: u64, price: f64| tokens as f64 * price;
        // a dollar per million tokens is a millionth of a dollar per token
        let sum = part(usage.input_tokens, price.input)
            + part(usage.output_tokens, price.output)
            + part(usage.cache_read_tokens, price.cache_read)
            + part(usage.cache_write_tokens, price.cache_write);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of positive parts, rounded")]
        Some(MicroDollars(sum.round().max(0.0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_sets_the_price() {
        let prices = Prices::shipped();
        let output = |model: &str| prices.of(model).map(|price| price.output);
        assert_eq!(output("claude-opus-4-6"), Some(25.0));
        assert_eq!(output("claude-opus-4-1-20250805"), Some(75.0));
        assert_eq!(output("bedrock/us.anthropic.claude-sonnet-4-5-v1:0"), Some(15.0));
        assert_eq!(output("openai/gpt-4o-mini"), Some(0.6));
        assert_eq!(output("local/recall"), Some(0.0));
        assert_eq!(output("openai/some-model"), None, "nobody invents a price");
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 100_000,
            cache_read_tokens: 1_000_000,
            cache_write_tokens: 1000,
            estimated: false,
        };
        let cost = Prices::shipped().cost("claude-sonnet-4-6", &usage);
        assert_eq!(cost, Some(MicroDollars(3_000_000 + 1_500_000 + 300_000 + 3_750)));
    }

    #[test]
    fn an_organisation_has_its_own_prices() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::new(dir.path());
        fs_err::write(data.root().join("pricing.json"), r#"{"gpt-4o": {"input": 1}, "our-model": {"output": 2}}"#)
            .unwrap();
        let prices = Prices::load(&data).unwrap();
        assert_eq!(prices.of("gpt-4o").map(|price| (price.input, price.output)), Some((1.0, 0.0)));
        assert_eq!(prices.of("vllm/our-model-7b").map(|price| price.output), Some(2.0));
        assert_eq!(prices.of("gpt-4.1-mini").map(|price| price.input), Some(0.4));
        fs_err::write(data.root().join("pricing.json"), "{").unwrap();
        assert!(Prices::load(&data).is_err());
    }
}
