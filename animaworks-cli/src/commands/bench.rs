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
    Embedder, Fusion, MemoryOptions,
    bench::{
        cache::CachedEmbedder,
        compare,
        data::{DataSet, KNOWN, file_of},
        learn::{Folds, Learned, Lessons},
        longmemeval, peers, plot,
        report::Report,
        run, scale, score, targets,
    },
    embed::weights,
};
use serde::Deserialize;

use crate::{
    args::{Bench, BenchData, BenchEmbed, BenchFusion, BenchLearn, BenchMemory, BenchModel, BenchRun, BenchSystem},
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

/// Where the sets are when nobody says.
const DATA_VARIABLE: &str = "ANIMAWORKS_BENCH_DATA";
/// The one model of meaning.
const MODEL: &str = "multilingual-e5-small";
/// The row of the shipped weights on what they were learned from.
const IN_SAMPLE: &str = "animaworks-in-sample";

pub(super) fn run(cx: &Cx, command: Bench) -> CliResult {
    let command = match command {
        Bench::Memory(command) => command,
        Bench::Pack(args) => return super::pack::bench::run(cx, &args),
    };
    match *command {
        BenchMemory::Run(args) => measure(cx, args),
        BenchMemory::Peers(args) => {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            let embedder = model(cx, &args.model)?;
            block_on(async {
                let mut report = Report::new(BTreeMap::new())?;
                for set in sets(cx, &args.data, &mut report)? {
                    let peers = peers::run(&set, embedder.as_deref(), &clock, args.data.original).await?;
                    report.add(&set, None, &peers);
                }
                show(cx, &args.data, &report)
            })
        }
        BenchMemory::Learn(args) => learn(cx, &args),
        BenchMemory::Score { data, hits, original } => others(cx, &data, &hits, original),
        BenchMemory::Compare { base, new } => compared(cx, &base, &new),
    }
}

/// The model of meaning, its vectors kept where `--cache` says; `None` when none is wanted or there are no weights.
fn model(cx: &Cx, args: &BenchModel) -> CliResult<Option<Arc<dyn Embedder>>> {
    if args.embed == BenchEmbed::None {
        return Ok(None);
    }
    let chosen = args.weights.as_deref().map(|place| cx.env.absolute(place));
    let place = match weights::find(&cx.data.weights(), MODEL, chosen.as_deref()) {
        Ok(place) => place,
        // weights that were named have to be there
        Err(error) if args.weights.is_some() => return Err(error.into()),
        Err(_) => {
            ui::note(t!(cx.locale, "memory.no_weights"));
            return Ok(None);
        }
    };
    let Some(model) = open(cx, &place)? else { return Ok(None) };
    let Some(cache) = &args.cache else { return Ok(Some(model)) };
    Ok(Some(Arc::new(CachedEmbedder::open(model, &cx.env.absolute(cache))?)))
}

#[cfg(feature = "embed")]
fn open(_cx: &Cx, place: &Path) -> CliResult<Option<Arc<dyn Embedder>>> {
    Ok(Some(Arc::new(animaworks_memory::E5Embedder::open(place, animaworks_memory::E5Options::default())?)))
}

#[cfg(not(feature = "embed"))]
#[allow(clippy::unnecessary_wraps, reason = "with the feature opening can fail")]
fn open(cx: &Cx, _place: &Path) -> CliResult<Option<Arc<dyn Embedder>>> {
    ui::note(t!(cx.locale, "memory.no_model"));
    Ok(None)
}

/// What every question of the sets teaches.
async fn lessons(sets: &[DataSet], options: &MemoryOptions, clock: &Arc<dyn Clock>) -> CliResult<Lessons> {
    let mut lessons = Lessons::default();
    for set in sets {
        let bar = ui::progress::bar(set.stores.len() as u64, &set.name);
        lessons.add(set, options, clock, |_| bar.inc(1)).await?;
        bar.finish_and_clear();
    }
    Ok(lessons)
}

fn learn(cx: &Cx, args: &BenchLearn) -> CliResult {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut options = MemoryOptions::default();
    options.embedder = model(cx, &args.model)?;
    block_on(async {
        let mut report = Report::new(BTreeMap::new())?;
        let sets = sets(cx, &args.data, &mut report)?;
        let lessons = lessons(&sets, &options, &clock).await?;
        if lessons.is_empty() {
            return Err(CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.bench.nothing_to_learn")));
        }
        let names: Vec<(String, String)> =
            sets.iter().map(|set| (format!("{}.{}", set.name, args.data.split), set.sha256.clone())).collect();
        let source = Learned::of(&lessons).source(&names);
        match &args.data.out {
            Some(out) => write_atomic(out, source.as_bytes(), Privacy::Normal)?,
            None => ui::line(source.trim_end())?,
        }
        Ok(())
    })
}

fn measure(cx: &Cx, args: BenchRun) -> CliResult {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut options = MemoryOptions::default();
    options.fusion = match args.fusion {
        BenchFusion::Learned => Fusion::Learned,
        BenchFusion::Score => Fusion::Score,
        BenchFusion::Rrf => Fusion::Rrf,
    };
    if args.system != BenchSystem::Lexical {
        options.embedder = model(cx, &args.model)?;
    }
    if args.system == BenchSystem::Hybrid && options.embedder.is_none() {
        return Err(CliError::said(ErrorKind::NotInstalled, t!(cx.locale, "memory.no_weights")));
    }
    let mut system = BTreeMap::new();
    system.insert("fusion".to_owned(), format!("{:?}", options.fusion).to_lowercase());
    let signature = options.embedder.as_ref().map_or("none", |model| model.signature());
    system.insert("embed".to_owned(), signature.to_owned());
    system.insert("merged".to_owned(), args.data.merged.to_string());
    system.insert("cv".to_owned(), args.cv.to_string());
    system.insert("seed".to_owned(), args.seed.to_string());
    system.insert("evidence".to_owned(), if args.data.original { "original" } else { "audited" }.to_owned());
    block_on(async {
        let mut report = Report::new(system)?;
        let mut found = sets(cx, &args.data, &mut report)?;
        let folds = if args.cv {
            let lessons = lessons(&found, &options, &clock).await?;
            Some(Folds::of(&lessons, &Learned::of(&lessons)))
        } else {
            None
        };
        if let Some(file) = &args.longmemeval {
            found.push(longmemeval::read(file)?);
        }
        let how = run::How { original: args.data.original, folds: folds.as_ref(), timed: true };
        for set in &found {
            let bar = ui::progress::bar(set.stores.len() as u64, &set.name);
            let product = run::run(set, &options, &clock, how, |_| bar.inc(1)).await?;
            bar.finish_and_clear();
            let mut beside = if args.no_peers {
                peers::Peers::new()
            } else {
                peers::run(set, options.embedder.as_deref(), &clock, args.data.original).await?
            };
            if folds.is_some() {
                // what the shipped weights do on the questions they were learned from, beside what they do on others
                let scored = run::run(set, &options, &clock, run::How { folds: None, timed: false, ..how }, |_| {})
                    .await?
                    .scored;
                beside.insert(IN_SAMPLE.to_owned(), peers::PeerRun { scored, ..peers::PeerRun::default() });
            }
            report.add(set, Some(&product), &beside);
        }
        if let Some(set) = found.first() {
            for count in &args.scale {
                report.scale.extend(scale::run(set, *count, args.seed, &options, &clock).await?);
            }
        }
        if options.embedder.is_some() && !args.data.merged && !args.data.original {
            report.verdicts = targets::verdicts(&report);
        }
        show(cx, &args.data, &report)?;
        if !cx.json && !report.verdicts.is_empty() {
            let passed = report.verdicts.iter().filter(|one| one.passed).count();
            let failed = report.verdicts.len() - passed;
            ui::line(t!(cx.locale, "cli.bench.verdict", passed = passed, failed = failed))?;
        }
        Ok(())
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
