//! Two reports beside each other, question by question.

use std::path::Path;

use animaworks_core::fs::read_json;

use super::{
    BenchError,
    report::{COMPARED, Report},
    score::interval,
};

/// A figure of a set in two reports.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Compared {
    /// The data set.
    pub dataset: String,
    /// The figure.
    pub metric: String,
    /// Questions that both reports have.
    pub questions: usize,
    /// Its mean before.
    pub before: f64,
    /// Its mean now.
    pub now: f64,
    /// The 95 % interval of the difference.
    pub ci95: (f64, f64),
}

impl Compared {
    /// Whether it has fallen and chance does not explain it.
    pub fn is_worse(&self) -> bool {
        self.ci95.1 < 0.0
    }

    /// Whether it has risen and chance does not explain it.
    pub fn is_better(&self) -> bool {
        self.ci95.0 > 0.0
    }
}

/// Reads two reports and compares them.
///
/// # Errors
///
/// When a file cannot be read or is no report.
pub fn files(base: &Path, new: &Path) -> Result<Vec<Compared>, BenchError> {
    let (base, new): (Report, Report) = (read_json(base)?, read_json(new)?);
    Ok(reports(&base, &new))
}

/// Compares two reports in everything that both have measured.
pub fn reports(base: &Report, new: &Report) -> Vec<Compared> {
    let mut compared = Vec::new();
    for (dataset, now) in &new.per_query {
        let Some(before) = base.per_query.get(dataset) else { continue };
        for metric in COMPARED {
            let pairs: Vec<(f64, f64)> = now
                .iter()
                .filter_map(|(question, metrics)| Some((*before.get(question)?.get(metric)?, *metrics.get(metric)?)))
                .collect();
            let differences: Vec<f64> = pairs.iter().map(|(before, now)| now - before).collect();
            let Some(ci95) = interval(&differences, 1000) else { continue };
            let n = pairs.len() as f64;
            compared.push(Compared {
                dataset: dataset.clone(),
                metric: metric.to_owned(),
                questions: pairs.len(),
                before: pairs.iter().map(|(before, _)| before).sum::<f64>() / n,
                now: pairs.iter().map(|(_, now)| now).sum::<f64>() / n,
                ci95,
            });
        }
    }
    compared
}
