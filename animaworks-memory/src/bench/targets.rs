//! What a run has to reach, and whether it did.

use serde::{Deserialize, Serialize};

use super::{report::Report, score::ALL};

/// One figure that has to be reached.
#[derive(Debug, Clone, Copy)]
struct Target {
    dataset: &'static str,
    category: &'static str,
    metric: &'static str,
    limit: f64,
    at_most: bool,
}

const fn least(dataset: &'static str, category: &'static str, metric: &'static str, limit: f64) -> Target {
    Target { dataset, category, metric, limit, at_most: false }
}

/// What this memory with its model of meaning is held to.
const TARGETS: [Target; 11] = [
    least("locomo", ALL, "recall@10", 0.785),
    least("locomo", ALL, "recall@700t", 0.805),
    least("locomo", ALL, "any@1100t", 0.914),
    least("locomo", ALL, "all@1100t", 0.78),
    least("locomo", "multi-hop", "all@1100t", 0.35),
    least("jsquad", ALL, "recall@10", 0.988),
    least("jaquad", ALL, "recall@10", 0.988),
    least("jaquad", ALL, "recall@700t", 0.89),
    least("animem", ALL, "any@1100t", 0.95),
    least("animem", ALL, "fresh_first", 0.90),
    Target { dataset: "animem", category: "no-answer", metric: "noise_tokens", limit: 400.0, at_most: true },
];

/// A figure beside what it should be.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The data set.
    pub dataset: String,
    /// The sort of question.
    pub category: String,
    /// The figure.
    pub metric: String,
    /// What it is.
    pub value: f64,
    /// What it should be.
    pub limit: f64,
    /// Whether it should be at most that, and not at least.
    pub at_most: bool,
    /// Whether it is reached.
    pub passed: bool,
}

/// Every figure of a report that has a target.
pub fn verdicts(report: &Report) -> Vec<Verdict> {
    let measured = |target: &Target| {
        let value = *report.metrics.get(target.dataset)?.get(target.category)?.get(target.metric)?;
        let passed = if target.at_most { value <= target.limit } else { value >= target.limit };
        Some(Verdict {
            dataset: target.dataset.to_owned(),
            category: target.category.to_owned(),
            metric: target.metric.to_owned(),
            value,
            limit: target.limit,
            at_most: target.at_most,
            passed,
        })
    };
    TARGETS.iter().filter_map(measured).collect()
}
