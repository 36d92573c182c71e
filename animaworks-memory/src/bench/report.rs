//! What a run found: as JSON for programs, as Markdown for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use animaworks_core::fs::{FileError, read_text_if_exists};
use serde::{Deserialize, Serialize};

use super::{
    data::DataSet,
    peers::Peers,
    run::{ProductRun, Speed},
    score::{ALL, Metrics, Scored, column, interval, percentile, summary},
};

/// The version of the JSON.
pub const SCHEMA: &str = "membench-1";
/// The name of what is measured among its peers.
pub const PRODUCT: &str = "animaworks";
/// Figures that have an interval, and that two runs are compared by.
pub const COMPARED: [&str; 5] = ["recall@10", "recall@700t", "any@1100t", "all@1100t", "fresh_first"];
/// Resamples of an interval.
const RESAMPLES: usize = 1000;
/// The columns of the table.
const COLUMNS: [&str; 9] =
    ["recall@5", "recall@10", "recall@20", "ndcg@10", "mrr", "recall@700t", "any@1100t", "all@1100t", "fresh_first"];

/// All of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// The machine.
    pub host: Host,
    /// What was measured, in words of its configuration.
    pub system: BTreeMap<String, String>,
    /// The files that were read.
    pub data: Vec<DataFile>,
    /// The product's figures: data set, category, figure.
    pub metrics: BTreeMap<String, BTreeMap<String, Metrics>>,
    /// 95 % intervals of the headline: data set, figure.
    pub ci95: BTreeMap<String, BTreeMap<String, (f64, f64)>>,
    /// The figures two runs are compared by: data set, question, figure.
    pub per_query: BTreeMap<String, BTreeMap<String, Metrics>>,
    /// Times and sizes of the product, by data set.
    pub speed: BTreeMap<String, SpeedSummary>,
    /// The peers: data set, name.
    pub peers: BTreeMap<String, BTreeMap<String, PeerSummary>>,
    /// What was not measured, and why.
    pub skipped: Vec<Skipped>,
    /// The figures that have a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<super::targets::Verdict>,
    /// Runs over very many records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scale: Vec<super::scale::ScaleResult>,
}

/// The machine and how busy it was.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Host {
    /// The processor.
    pub cpu: String,
    /// How many of it.
    pub cores: usize,
    /// Processes that wanted to run, over the last minute.
    pub load1: f64,
}

impl Host {
    /// This machine, as far as it says.
    ///
    /// # Errors
    ///
    /// When a file of the system cannot be read.
    pub fn here() -> Result<Self, FileError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cpu = read_text_if_exists(Path::new("/proc/cpuinfo"))?.unwrap_or_default();
        let load = read_text_if_exists(Path::new("/proc/loadavg"))?.unwrap_or_default();
        let model = cpu.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
        Ok(Self {
            cpu: model.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
            cores,
            load1: load.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default(),
        })
    }

    /// Whether others were at work, so that times say little.
    pub fn is_loaded(&self) -> bool {
        self.load1 > self.cores as f64
    }
}

/// A file that was read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DataFile {
    /// Its name.
    pub file: String,
    /// Its checksum.
    pub sha256: String,
}

/// Something that was not measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Skipped {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A peer's figures.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PeerSummary {
    /// By category.
    pub metrics: BTreeMap<String, Metrics>,
    /// How the product differs from it in each compared figure: question by question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub product_minus_peer: BTreeMap<String, Difference>,
    /// Milliseconds of a search: median and 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_ms: Option<(f64, f64)>,
    /// Seconds to build what it searches.
    pub index_s: f64,
}

/// A paired difference.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Its mean.
    pub mean: f64,
    /// The 95 % interval of it.
    pub ci95: (f64, f64),
    /// Stores in which it is above zero.
    pub better_in: usize,
    /// Stores.
    pub of: usize,
}

/// Times and sizes, summed up.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SpeedSummary {
    /// Records.
    pub records: usize,
    /// Seconds to build the index from nothing.
    pub index_s: f64,
    /// Milliseconds of a search: median, 95th and 99th percentile.
    pub search_ms: (f64, f64, f64),
    /// Milliseconds of a priming: median and 95th percentile.
    pub prime_ms: (f64, f64),
    /// Milliseconds of a write that is searchable when it returns: 95th percentile.
    pub add_ms_p95: f64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of what is remembered.
    pub corpus_bytes: u64,
}

impl SpeedSummary {
    /// Sums up.
    pub fn of(speed: &Speed) -> Self {
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values
        };
        let (search, prime, add) = (sorted(&speed.search_ms), sorted(&speed.prime_ms), sorted(&speed.add_ms));
        Self {
            records: speed.records,
            index_s: speed.index_s,
            search_ms: (percentile(&search, 0.5), percentile(&search, 0.95), percentile(&search, 0.99)),
            prime_ms: (percentile(&prime, 0.5), percentile(&prime, 0.95)),
            add_ms_p95: percentile(&add, 0.95),
            index_bytes: speed.index_bytes,
            corpus_bytes: speed.corpus_bytes,
        }
    }
}

impl Report {
    /// An empty one of this machine.
    ///
    /// # Errors
    ///
    /// When a file of the system cannot be read.
    pub fn new(system: BTreeMap<String, String>) -> Result<Self, FileError> {
        Ok(Self {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: Host::here()?,
            system,
            ..Self::default()
        })
    }

    /// Notes what was not measured.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.skipped.push(Skipped { what: what.into(), why: why.into() });
    }

    /// Takes in the figures over a set.
    pub fn add(&mut self, set: &DataSet, product: Option<&ProductRun>, peers: &Peers) {
        let file = set.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.data.push(DataFile { file, sha256: set.sha256.clone() });
        if let Some(product) = product {
            self.metrics.insert(set.name.clone(), summary(&product.scored));
            let intervals = COMPARED.iter().filter_map(|metric| {
                Some(((*metric).to_owned(), interval(&column(&product.scored, metric), RESAMPLES)?))
            });
            self.ci95.insert(set.name.clone(), intervals.collect());
            self.per_query.insert(set.name.clone(), per_question(&product.scored));
            self.speed.insert(set.name.clone(), SpeedSummary::of(&product.speed));
        }
        let summed = peers.iter().map(|(name, peer)| {
            let mut times = peer.search_ms.clone();
            times.sort_by(f64::total_cmp);
            let product_minus_peer = product
                .map(|product| {
                    let compared = COMPARED.iter().filter_map(|metric| {
                        Some(((*metric).to_owned(), difference(&product.scored, &peer.scored, metric)?))
                    });
                    compared.collect()
                })
                .unwrap_or_default();
            let summed = PeerSummary {
                metrics: summary(&peer.scored),
                product_minus_peer,
                search_ms: (!times.is_empty()).then(|| (percentile(&times, 0.5), percentile(&times, 0.95))),
                index_s: peer.index_s,
            };
            (name.clone(), summed)
        });
        self.peers.insert(set.name.clone(), summed.collect());
    }

    /// The tables: the headline of every set with the worst row first, then the product by category, then speed.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let sets: BTreeSet<&String> = self.peers.keys().chain(self.metrics.keys()).collect();
        for set in sets {
            let mut rows: Vec<(&str, &Metrics)> = self
                .peers
                .get(set)
                .into_iter()
                .flatten()
                .filter_map(|(name, peer)| Some((name.as_str(), peer.metrics.get(ALL)?)))
                .collect();
            rows.extend(self.metrics.get(set).and_then(|metrics| Some((PRODUCT, metrics.get(ALL)?))));
            let order = |metrics: &Metrics| metrics.get("recall@10").copied().unwrap_or_default();
            rows.sort_by(|a, b| order(a.1).total_cmp(&order(b.1)).then(a.0.cmp(b.0)));
            let columns: Vec<&str> =
                COLUMNS.into_iter().filter(|name| rows.iter().any(|row| row.1.contains_key(*name))).collect();
            text.push_str(&format!("\n### {set}\n\n"));
            table(&mut text, "system", &columns, &rows);
            let Some(metrics) = self.metrics.get(set) else { continue };
            let mut columns = columns;
            columns.insert(0, "n");
            columns.extend(["prime_any@1100t", "prime_all@1100t", "prime_tokens", "noise_tokens", "noise_share"]);
            columns.retain(|name| metrics.values().any(|metrics| metrics.contains_key(*name)));
            let rows: Vec<(&str, &Metrics)> = metrics.iter().map(|(name, metrics)| (name.as_str(), metrics)).collect();
            text.push('\n');
            table(&mut text, PRODUCT, &columns, &rows);
        }
        if !self.speed.is_empty() {
            let loaded = if self.host.is_loaded() { "loaded" } else { "idle" };
            text.push_str(&format!("\n### {loaded}, {} × {}\n\n", self.host.cores, self.host.cpu));
            text.push_str("| | records | index s | search ms p50/p95/p99 | prime ms p50/p95 | add ms p95 | index/corpus |\n|---|---|---|---|---|---|---|\n");
            for (set, speed) in &self.speed {
                let (p50, p95, p99) = speed.search_ms;
                text.push_str(&format!(
                    "| {set} | {} | {:.2} | {p50:.2} / {p95:.2} / {p99:.2} | {:.2} / {:.2} | {:.2} | {:.2} |\n",
                    speed.records,
                    speed.index_s,
                    speed.prime_ms.0,
                    speed.prime_ms.1,
                    speed.add_ms_p95,
                    speed.index_bytes as f64 / speed.corpus_bytes.max(1) as f64,
                ));
            }
        }
        if !self.verdicts.is_empty() {
            text.push_str("\n| target | | figure | limit | |\n|---|---|---|---|---|\n");
        }
        for one in &self.verdicts {
            let (sign, mark) = (if one.at_most { "≤" } else { "≥" }, if one.passed { "passed" } else { "failed" });
            text.push_str(&format!(
                "| {} {} | {} | {:.3} | {sign} {} | {mark} |\n",
                one.dataset, one.category, one.metric, one.value, one.limit
            ));
        }
        for result in &self.scale {
            text.push_str(&format!("\n{result}\n"));
        }
        for skipped in &self.skipped {
            text.push_str(&format!("\n- {}: {}", skipped.what, skipped.why));
        }
        text
    }
}

fn table(text: &mut String, first: &str, columns: &[&str], rows: &[(&str, &Metrics)]) {
    text.push_str(&format!("| {first} | {} |\n|---|{}\n", columns.join(" | "), "---|".repeat(columns.len())));
    for (name, metrics) in rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| match metrics.get(*column) {
                Some(value) if *column == "n" || column.ends_with("tokens") => format!("{value:.0}"),
                Some(value) => format!("{value:.3}"),
                None => "–".to_owned(),
            })
            .collect();
        text.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
}

/// The compared figures of every question of the headline.
fn per_question(scored: &[Scored]) -> BTreeMap<String, Metrics> {
    scored
        .iter()
        .filter(|one| one.category != super::score::ADVERSARIAL)
        .map(|one| {
            let kept = one.metrics.iter().filter(|(name, _)| COMPARED.contains(&name.as_str()));
            (one.question.clone(), kept.map(|(name, value)| (name.clone(), *value)).collect::<Metrics>())
        })
        .filter(|(_, metrics)| !metrics.is_empty())
        .collect()
}

/// How one run differs from another in a figure, question by question.
pub fn difference(new: &[Scored], base: &[Scored], metric: &str) -> Option<Difference> {
    let before: BTreeMap<&str, f64> = base
        .iter()
        .filter(|one| one.category != super::score::ADVERSARIAL)
        .filter_map(|one| Some((one.question.as_str(), *one.metrics.get(metric)?)))
        .collect();
    let mut groups: BTreeMap<&str, f64> = BTreeMap::new();
    let mut differences = Vec::new();
    for one in new {
        if let (Some(now), Some(before)) = (one.metrics.get(metric), before.get(one.question.as_str())) {
            differences.push(now - before);
            *groups.entry(one.group.as_str()).or_default() += now - before;
        }
    }
    let ci95 = interval(&differences, RESAMPLES)?;
    Some(Difference {
        mean: differences.iter().sum::<f64>() / differences.len() as f64,
        ci95,
        better_in: groups.values().filter(|sum| **sum > 0.0).count(),
        of: groups.len(),
    })
}
