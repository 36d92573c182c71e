//! `bench memory run | peers | score | compare`: recall, measured.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use animaworks_core::{
    Clock, ErrorKind, SystemClock,
    fs::{Privacy, write_atomic, write_json},
    t,
};
use animaworks_memory::{
    Fusion, MemoryOptions,
    bench::{
        SEED, compare,
        data::{DataSet, KNOWN, file_of},
        longmemeval, peers, plot,
        report::Report,
        run, scale, score,
    },
};
use serde::Deserialize;

use crate::{
    args::{Bench, BenchData, BenchFusion, BenchMemory, BenchRun},
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

/// Where the sets are when nobody says.
const DATA_VARIABLE: &str = "ANIMAWORKS_BENCH_DATA";

pub(super) fn run(cx: &Cx, command: Bench) -> CliResult {
    let command = match command {
        Bench::Memory(command) => command,
        Bench::Pack(args) => return super::pack::bench::run(cx, &args),
    };
    match command {
        BenchMemory::Run(args) => measure(cx, args),
        BenchMemory::Peers(args) => {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            block_on(async {
                let mut report = Report::new(BTreeMap::new())?;
                for set in sets(cx, &args.data, &mut report)? {
                    let peers = peers::run(&set, None, &clock, args.data.original).await?;
                    report.add(&set, None, &peers);
                }
                show(cx, &args.data, &report)
            })
        }
        BenchMemory::Score { data, hits, original } => others(cx, &data, &hits, original),
        BenchMemory::Compare { base, new } => compared(cx, &base, &new),
    }
}

fn measure(cx: &Cx, args: BenchRun) -> CliResult {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut options = MemoryOptions::default();
    options.fusion = match args.fusion {
        BenchFusion::Score => Fusion::Score,
        BenchFusion::Rrf => Fusion::Rrf,
    };
    let mut system = BTreeMap::new();
    system.insert("fusion".to_owned(), format!("{:?}", options.fusion).to_lowercase());
    system.insert("merged".to_owned(), args.data.merged.to_string());
    system.insert("evidence".to_owned(), if args.data.original { "original" } else { "audited" }.to_owned());
    block_on(async {
        let mut report = Report::new(system)?;
        let mut found = sets(cx, &args.data, &mut report)?;
        if let Some(file) = &args.longmemeval {
            found.push(longmemeval::read(file)?);
        }
        for set in &found {
            let bar = ui::progress::bar(set.stores.len() as u64, &set.name);
            let product = run::run(set, &options, &clock, args.data.original, |_| bar.inc(1)).await?;
            bar.finish_and_clear();
            let beside = if args.no_peers {
                peers::Peers::new()
            } else {
                peers::run(set, None, &clock, args.data.original).await?
            };
            report.add(set, Some(&product), &beside);
        }
        if let Some(set) = found.first() {
            for count in &args.scale {
                report.scale.extend(scale::run(set, *count, SEED, &options, &clock).await?);
            }
        }
        show(cx, &args.data, &report)
    })
}

/// The sets that are there; what is not is noted with its reason.
fn sets(cx: &Cx, args: &BenchData, report: &mut Report) -> CliResult<Vec<DataSet>> {
    let Some(directory) = args.data.clone().or_else(|| cx.env.var(DATA_VARIABLE).map(PathBuf::from)) else {
        return Err(CliError::said(
            ErrorKind::InvalidRequest,
            t!(cx.locale, "cli.bench.no_data", variable = DATA_VARIABLE),
        ));
    };
    let directory = cx.env.absolute(&directory);
    let wanted: Vec<&str> = match args.sets.as_slice() {
        [] => KNOWN.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let mut found = Vec::new();
    for name in wanted {
        let file = file_of(&directory, name, &args.split);
        if !file.is_file() {
            report.skip(name, t!(cx.locale, "cli.bench.missing", path = file.display()));
            continue;
        }
        let set = DataSet::read(&file)?;
        let set = set.limited(args.stores.unwrap_or(usize::MAX), args.questions.unwrap_or(usize::MAX));
        found.push(if args.merged { set.merged() } else { set });
    }
    Ok(found)
}

fn show(cx: &Cx, args: &BenchData, report: &Report) -> CliResult {
    if let Some(out) = &args.out {
        write_json(out, report, Privacy::Normal)?;
    }
    if let Some(file) = &args.plot {
        let labels = plot::Labels {
            tokens: t!(cx.locale, "cli.bench.plot_tokens"),
            recall: t!(cx.locale, "cli.bench.plot_recall"),
        };
        write_atomic(file, plot::svg(report, &labels).as_bytes(), Privacy::Normal)?;
    }
    if cx.json { ui::json(report) } else { ui::line(report.markdown().trim()) }
}

/// One line of another program's hits.
#[derive(Deserialize)]
struct Hits {
    id: String,
    hits: Vec<String>,
}

fn others(cx: &Cx, data: &Path, hits: &Path, original: bool) -> CliResult {
    let set = DataSet::read(data)?;
    let lines: Vec<Hits> = animaworks_core::fs::read_records(hits)?;
    let mut by_question: BTreeMap<String, Vec<String>> = lines.into_iter().map(|line| (line.id, line.hits)).collect();
    let mut scored = Vec::new();
    for (store, gold) in set.stores.iter().zip(&set.gold) {
        let places: BTreeMap<&str, usize> =
            store.records.iter().enumerate().map(|(at, record)| (record.id.as_str(), at)).collect();
        let rankings: Vec<Vec<usize>> = store
            .questions
            .iter()
            .map(|question| {
                let hits = by_question.remove(&question.id).unwrap_or_default();
                let mut ranking: Vec<usize> = Vec::new();
                for place in hits.iter().filter_map(|id| places.get(id.as_str())) {
                    if !ranking.contains(place) {
                        ranking.push(*place);
                    }
                }
                ranking
            })
            .collect();
        scored.extend(score::Scorer::new(store, gold, original).rankings(&rankings));
    }
    for question in by_question.keys() {
        ui::note(t!(cx.locale, "cli.bench.unknown_question", id = question));
    }
    let mut report = Report::new(BTreeMap::new())?;
    report.add(&set, Some(&run::ProductRun { scored, ..run::ProductRun::default() }), &peers::Peers::new());
    // nothing of ours was timed
    report.speed.clear();
    if cx.json { ui::json(&report) } else { ui::line(report.markdown().trim()) }
}

fn compared(cx: &Cx, base: &Path, new: &Path) -> CliResult {
    let rows = compare::files(base, new)?;
    let failed = rows.iter().filter(|row| row.is_worse()).count();
    if cx.json {
        ui::json(&rows)?;
    } else {
        let headings = ["", "", "n", "base", "new", "Δ", "95 %"].map(str::to_owned);
        let cells = rows.iter().map(|row| {
            let mark = if row.is_worse() {
                "−"
            } else if row.is_better() {
                "+"
            } else {
                "="
            };
            vec![
                format!("{mark} {}", row.dataset),
                row.metric.clone(),
                row.questions.to_string(),
                format!("{:.3}", row.before),
                format!("{:.3}", row.now),
                format!("{:+.3}", row.now - row.before),
                format!("{:+.3} … {:+.3}", row.ci95.0, row.ci95.1),
            ]
        });
        ui::table::print(&headings, cells.collect())?;
        ui::line(t!(cx.locale, "cli.bench.verdict", passed = rows.len() - failed, failed = failed))?;
    }
    if rows.is_empty() {
        return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.bench.nothing_common")));
    }
    if failed > 0 {
        return Err(CliError::said(ErrorKind::Conflict, t!(cx.locale, "cli.bench.fallen", count = failed)));
    }
    Ok(())
}
