//! From rankings to figures.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    SEED,
    data::{Record, Store},
    gold::{Gold, Key},
    random::Random,
};

/// Every figure by its name, such as `recall@10` or `all@1100t`.
pub type Metrics = BTreeMap<String, f64>;

/// Depths of a ranking.
const DEPTHS: [usize; 5] = [1, 5, 10, 20, 50];
/// Budgets in tokens; the plot is drawn over all of them.
pub const BUDGETS: [u32; 7] = [100, 200, 400, 700, 1100, 1500, 2000];
/// Questions that have evidence but must be refused are apart from the headline.
pub const ADVERSARIAL: &str = "adversarial";
/// The headline: every question that has an answer, without the adversarial ones.
pub const ALL: &str = "ALL(excl.adv)";
/// The same with the adversarial ones.
pub const WITH_ADVERSARIAL: &str = "ALL(incl.adv)";
/// A current fact has to be among this many.
const FRESH_DEPTH: usize = 20;

/// What one question scored.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// The question.
    pub question: String,
    /// The store.
    pub group: String,
    /// What sort of question it is.
    pub category: String,
    /// Its figures.
    pub metrics: Metrics,
}

/// Tokens of a text without a tokeniser: one for each character of Chinese or Japanese, one for four others.
pub fn tokens(text: &str) -> f64 {
    let (mut dense, mut other) = (0_u32, 0_u32);
    for c in text.chars() {
        match c {
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' => {
                dense += 1;
            }
            _ => other += 1,
        }
    }
    f64::from(dense) + f64::from(other) / 4.0
}

/// A record as a peer would inject it.
pub fn rendered(record: &Record) -> String {
    let day = record.at.map(|at| format!("[{}]", at.format("%Y-%m-%d"))).unwrap_or_default();
    let speaker = if record.speaker.is_empty() { String::new() } else { format!("{}:", record.speaker) };
    let head = [day, speaker].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    format!("- {head} {}\n", record.text)
}

/// The scorer of one store.
#[derive(Debug)]
pub struct Scorer<'a> {
    store: &'a Store,
    gold: &'a Gold,
    places: HashMap<&'a str, usize>,
    costs: Vec<f64>,
    original: bool,
}

impl<'a> Scorer<'a> {
    /// Scores against `gold`; with `original`, against what its authors said before the audit.
    pub fn new(store: &'a Store, gold: &'a Gold, original: bool) -> Self {
        Self {
            store,
            gold,
            places: store.records.iter().enumerate().map(|(at, record)| (record.id.as_str(), at)).collect(),
            costs: store.records.iter().map(|record| tokens(&rendered(record))).collect(),
            original,
        }
    }

    fn found(&self, ids: &[String]) -> BTreeSet<usize> {
        ids.iter().filter_map(|id| self.places.get(id.as_str()).copied()).collect()
    }

    /// What is right for a question.
    pub fn key(&self, question: &str) -> Option<&Key> {
        self.gold.keys.get(question)
    }

    /// The records that answer a question.
    pub fn evidence(&self, question: &str) -> BTreeSet<usize> {
        self.key(question)
            .map(|key| self.found(if self.original { &key.original } else { &key.evidence }))
            .unwrap_or_default()
    }

    /// The records that answered it once.
    pub fn stale(&self, question: &str) -> BTreeSet<usize> {
        self.key(question).map(|key| self.found(&key.stale)).unwrap_or_default()
    }

    /// Scores rankings, one per question in order; a question without evidence is no question of ranking.
    pub fn rankings(&self, rankings: &[Vec<usize>]) -> Vec<Scored> {
        let mut scored = Vec::new();
        for (question, ranking) in self.store.questions.iter().zip(rankings) {
            let Some(key) = self.key(&question.id) else { continue };
            let evidence = self.evidence(&question.id);
            if evidence.is_empty() {
                continue;
            }
            let mut metrics = ranked(ranking, &evidence, &self.costs);
            let stale = self.found(&key.stale);
            if !stale.is_empty() {
                metrics.insert("fresh_first".to_owned(), is(fresh_first(ranking, &evidence, &stale)));
            }
            self.by_session(ranking, &evidence, &mut metrics);
            scored.push(self.scored(&question.id, key, metrics));
        }
        scored
    }

    /// Scores texts as they would be injected, one per question in order: a record counts when its words stand inside.
    pub fn texts(&self, texts: &[String]) -> Vec<Scored> {
        let mut scored = Vec::new();
        for (question, text) in self.store.questions.iter().zip(texts) {
            let Some(key) = self.key(&question.id) else { continue };
            let evidence = self.evidence(&question.id);
            let spent = tokens(text);
            let mut metrics = Metrics::new();
            if evidence.is_empty() {
                metrics.insert("noise_tokens".to_owned(), spent);
                metrics.insert("noise_share".to_owned(), is(!text.trim().is_empty()));
                scored.push(self.scored(&question.id, key, metrics));
                continue;
            }
            let inside = squeezed(&cut(text, 1100.0));
            let hits = evidence.iter().filter(|at| {
                self.store.records.get(**at).is_some_and(|record| inside.contains(&squeezed(&record.text)))
            });
            shares(&mut metrics, "prime_", "1100t", hits.count(), evidence.len());
            metrics.insert("prime_tokens".to_owned(), spent);
            scored.push(self.scored(&question.id, key, metrics));
        }
        scored
    }

    fn scored(&self, question: &str, key: &Key, metrics: Metrics) -> Scored {
        Scored {
            question: question.to_owned(),
            group: self.store.group.clone(),
            category: key.category.clone(),
            metrics,
        }
    }

    /// Whether the right conversation is found: only to be set beside what others publish, for it saturates.
    fn by_session(&self, ranking: &[usize], evidence: &BTreeSet<usize>, metrics: &mut Metrics) {
        let session = |at: &usize| self.store.records.get(*at).map(|record| record.session.as_str());
        let wanted: BTreeSet<&str> = evidence.iter().filter_map(session).collect();
        let mut seen: Vec<&str> = Vec::new();
        for name in ranking.iter().filter_map(session) {
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        for depth in [5, 10] {
            metrics.insert(format!("sess_hit@{depth}"), is(seen.iter().take(depth).any(|name| wanted.contains(name))));
        }
    }
}

fn is(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// Recall, any and all under one name.
fn shares(metrics: &mut Metrics, prefix: &str, at: &str, found: usize, of: usize) {
    metrics.insert(format!("{prefix}recall@{at}"), found as f64 / of as f64);
    metrics.insert(format!("{prefix}any@{at}"), is(found > 0));
    metrics.insert(format!("{prefix}all@{at}"), is(found == of));
}

/// The figures of one ranking.
fn ranked(ranking: &[usize], evidence: &BTreeSet<usize>, costs: &[f64]) -> Metrics {
    let mut metrics = Metrics::new();
    let places: Vec<usize> =
        evidence.iter().filter_map(|record| ranking.iter().position(|ranked| ranked == record)).collect();
    for depth in DEPTHS {
        let found = places.iter().filter(|place| **place < depth).count();
        shares(&mut metrics, "", &depth.to_string(), found, evidence.len());
    }
    let gain: f64 = places.iter().filter(|place| **place < 10).map(|place| gain_at(*place)).sum();
    let ideal: f64 = (0..evidence.len().min(10)).map(gain_at).sum();
    metrics.insert("ndcg@10".to_owned(), gain / ideal);
    metrics.insert("mrr".to_owned(), places.iter().min().map_or(0.0, |place| 1.0 / (*place as f64 + 1.0)));
    for budget in BUDGETS {
        let mut spent = 0.0;
        let mut found = 0;
        for record in ranking {
            spent += costs.get(*record).copied().unwrap_or_default();
            // what does not fit whole ends what is injected
            if spent > f64::from(budget) {
                break;
            }
            found += usize::from(evidence.contains(record));
        }
        shares(&mut metrics, "", &format!("{budget}t"), found, evidence.len());
    }
    metrics
}

fn gain_at(place: usize) -> f64 {
    1.0 / (place as f64 + 2.0).log2()
}

/// Whether what is so now, or was so then, is found and stands above everything that is not.
fn fresh_first(ranking: &[usize], evidence: &BTreeSet<usize>, stale: &BTreeSet<usize>) -> bool {
    let first = |wanted: &BTreeSet<usize>| ranking.iter().take(FRESH_DEPTH).position(|record| wanted.contains(record));
    match (first(evidence), first(stale)) {
        (Some(fresh), Some(stale)) => fresh < stale,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// A text without spaces, so that how a line is laid out does not matter.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// As much of a text as a budget has room for.
fn cut(text: &str, budget: f64) -> String {
    let mut spent = 0.0;
    let mut one = [0; 4];
    text.chars()
        .take_while(|c| {
            spent += tokens(c.encode_utf8(&mut one));
            spent <= budget
        })
        .collect()
}

/// Means per category with the headline first by name.
pub fn summary(scored: &[Scored]) -> BTreeMap<String, Metrics> {
    let mut groups: BTreeMap<String, Vec<&Metrics>> = BTreeMap::new();
    let adversarial = scored.iter().any(|one| one.category == ADVERSARIAL);
    for one in scored {
        groups.entry(one.category.clone()).or_default().push(&one.metrics);
        if one.category != ADVERSARIAL {
            groups.entry(ALL.to_owned()).or_default().push(&one.metrics);
        }
        if adversarial {
            groups.entry(WITH_ADVERSARIAL.to_owned()).or_default().push(&one.metrics);
        }
    }
    groups.into_iter().map(|(name, members)| (name, mean(&members))).collect()
}

fn mean(members: &[&Metrics]) -> Metrics {
    let mut sums: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for metrics in members {
        for (name, value) in *metrics {
            let sum = sums.entry(name).or_default();
            sum.0 += value;
            sum.1 += 1;
        }
    }
    // questions that nothing answers have figures of their own and do not count among the others
    let n = sums.values().map(|(_, n)| *n).max().unwrap_or_default();
    let mut means: Metrics = sums.into_iter().map(|(name, (sum, n))| (name.to_owned(), sum / f64::from(n))).collect();
    means.insert("n".to_owned(), f64::from(n));
    means
}

/// The 95 % interval of a mean by resampling.
pub fn interval(values: &[f64], resamples: usize) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let sum: f64 = (0..values.len()).filter_map(|_| values.get(random.below(values.len()))).sum();
            sum / values.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    Some((percentile(&means, 0.025), percentile(&means, 0.975)))
}

/// The value below which a share of sorted values lies.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// A figure of every question of the headline.
pub fn column(scored: &[Scored], metric: &str) -> Vec<f64> {
    scored.iter().filter(|one| one.category != ADVERSARIAL).filter_map(|one| one.metrics.get(metric).copied()).collect()
}
