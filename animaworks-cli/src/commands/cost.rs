//! `cost [ANIMA]`: what was consumed, by Anima, day and model, and what it cost as far as the price is known.

use std::collections::BTreeMap;

use animaworks_core::{
    AnimaDir, MicroDollars, Usage,
    config::Prices,
    home::{AnimaHome, usage::UsageRecord},
    t,
};
use chrono::{Days, NaiveDate};
use serde::Serialize;

use crate::{args::Cost, context::Cx, error::CliResult, ui};

/// What one Anima consumed on one day with one model.
#[derive(Debug, Default, Serialize)]
struct Sum {
    runs: u64,
    #[serde(flatten)]
    usage: Usage,
    /// `None` when the price of a run is not known.
    cost_usd: Option<f64>,
    #[serde(skip)]
    cost: MicroDollars,
    #[serde(skip)]
    unpriced: u64,
}

/// One line of the table.
#[derive(Debug, Serialize)]
struct Row {
    anima: String,
    date: NaiveDate,
    model: String,
    #[serde(flatten)]
    sum: Sum,
}

impl Sum {
    fn add(&mut self, usage: Usage, cost: Option<MicroDollars>) {
        self.runs += 1;
        self.usage += usage;
        match cost {
            Some(MicroDollars(cost)) => self.cost.0 += cost,
            None => self.unpriced += 1,
        }
        self.cost_usd = (self.unpriced == 0).then(|| dollars(self.cost));
    }
}

pub(super) fn run(cx: &Cx, args: Cost) -> CliResult {
    let names = match &args.anima {
        Some(anima) => vec![cx.anima(anima)?],
        None => cx.names()?,
    };
    let prices = Prices::load(&cx.data)?;
    let today = cx.now()?.date_naive();
    let days = if args.today { 1 } else { args.days.max(1) };
    let dates: Vec<NaiveDate> = (0..days).rev().filter_map(|back| today.checked_sub_days(Days::new(back))).collect();
    let mut sums: BTreeMap<(String, NaiveDate, String), Sum> = BTreeMap::new();
    let mut total = Sum::default();
    for name in names {
        let home = home(cx, cx.data.anima(&name))?;
        for date in &dates {
            for record in home.usage(*date)? {
                let (usage, cost) = (used(&record), cost(&record, &prices));
                sums.entry((name.to_string(), *date, record.model.clone())).or_default().add(usage, cost);
                total.add(usage, cost);
            }
        }
    }
    let rows: Vec<Row> = sums.into_iter().map(|((anima, date, model), sum)| Row { anima, date, model, sum }).collect();
    if cx.json {
        return ui::json(&serde_json::json!({"rows": rows, "total": total}));
    }
    print(cx, rows, &total)
}

fn home(cx: &Cx, dir: AnimaDir) -> CliResult<AnimaHome> {
    let clock = std::sync::Arc::new(animaworks_core::SystemClock::new());
    Ok(AnimaHome::open(dir, cx.settings()?.system.zone(), clock))
}

fn used(record: &UsageRecord) -> Usage {
    Usage {
        input_tokens: record.input_tokens,
        output_tokens: record.output_tokens,
        cache_read_tokens: record.cache_read_tokens,
        cache_write_tokens: record.cache_write_tokens,
        estimated: record.estimated,
    }
}

/// What was written down then, else what it costs now.
fn cost(record: &UsageRecord, prices: &Prices) -> Option<MicroDollars> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of money, rounded")]
    let noted = record.estimated_cost_usd.map(|usd| MicroDollars((usd * 1e6).round().max(0.0) as u64));
    noted.or_else(|| prices.cost(&record.model, &used(record)))
}

#[allow(clippy::cast_precision_loss, reason = "sums of money far below 2^52 millionths")]
fn dollars(MicroDollars(micro): MicroDollars) -> f64 {
    micro as f64 / 1e6
}

fn print(cx: &Cx, rows: Vec<Row>, total: &Sum) -> CliResult {
    if rows.is_empty() {
        ui::note(t!(cx.locale, "cli.cost.nothing"));
        return Ok(());
    }
    let cells = |sum: &Sum| {
        let usage = &sum.usage;
        let counts =
            [sum.runs, usage.input_tokens, usage.output_tokens, usage.cache_read_tokens + usage.cache_write_tokens];
        let money = match (sum.cost_usd, sum.cost.0) {
            (Some(usd), _) => format!("{usd:.4}"),
            (None, 0) => t!(cx.locale, "cli.cost.unknown"),
            (None, _) => t!(cx.locale, "cli.cost.at_least", usd = format!("{:.4}", dollars(sum.cost))),
        };
        counts.iter().map(u64::to_string).chain([money]).collect::<Vec<_>>()
    };
    let mut table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| [vec![row.anima.clone(), row.date.to_string(), row.model.clone()], cells(&row.sum)].concat())
        .collect();
    table.push([vec![t!(cx.locale, "cli.cost.total"), String::new(), String::new()], cells(total)].concat());
    let headings = [
        t!(cx.locale, "cli.column.name"),
        t!(cx.locale, "cli.cost.day"),
        t!(cx.locale, "cli.column.model"),
        t!(cx.locale, "cli.cost.runs"),
        t!(cx.locale, "cli.cost.input"),
        t!(cx.locale, "cli.cost.output"),
        t!(cx.locale, "cli.cost.cache"),
        t!(cx.locale, "cli.cost.usd"),
    ];
    ui::table::print(&headings, table)
}
