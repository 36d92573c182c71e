//! `bench pack`: the memory pack over very many notes, as its library, its processes and its hooks.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use animaworks_core::{
    Clock, ErrorKind, SystemClock,
    config::Env,
    fs::{Privacy, read_text, write_atomic},
    process::{End, OutputLimits, Spec},
    t,
};
use animaworks_memory::{
    bench::{
        SEED,
        pack::{Notes, SETTLED, Wanted, generate, percentile, run as measure},
    },
    pack::CONTEXT_FILE,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::install;
use crate::{
    args::BenchPack,
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

/// Notes of the memory that the hooks are measured over.
const HOOK_FILES: usize = 500;
/// Times a process is started.
const STARTS: usize = 40;

/// One row: what was measured, how often, and what it must not exceed. Milliseconds.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    times: usize,
    p50: f64,
    p95: f64,
    /// The figure that counts: the 95th of a hundred where the limit is one of the tail, else the middle.
    value: f64,
    limit: Option<f64>,
    within: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Outcome {
    files: usize,
    bytes: u64,
    pieces: usize,
    shadow_bytes: u64,
    questions: usize,
    answered: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(cx: &Cx, args: &BenchPack) -> CliResult {
    let outcome = super::block_on(all(cx, args))?;
    if cx.json {
        return ui::json(&outcome);
    }
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let files = outcome.files;
    let (bytes, shadow) = (megabytes(outcome.bytes), megabytes(outcome.shadow_bytes));
    ui::line(t!(cx.locale, "cli.bench.pack_notes", files = files, megabytes = bytes, shadow = shadow))?;
    let headings = ["", "n", "p50 ms", "p95 ms", "≤", ""].map(str::to_owned);
    let cells = outcome.rows.iter().map(|row| {
        let mark = row.within.map_or("", |within| if within { "+" } else { "−" });
        vec![
            cx.locale.text(&format!("cli.bench.pack.{}", row.name), &[]),
            row.times.to_string(),
            format!("{:.1}", row.p50),
            format!("{:.1}", row.p95),
            row.limit.map(|limit| limit.to_string()).unwrap_or_default(),
            mark.to_owned(),
        ]
    });
    ui::table::print(&headings, cells.collect())
}

async fn all(cx: &Cx, args: &BenchPack) -> CliResult<Outcome> {
    let clock = SystemClock::new();
    let clock: &dyn Clock = &clock;
    let scratch = Scratch::new(cx, args)?;
    let bar = ui::progress::bar(args.files as u64, &t!(cx.locale, "cli.bench.pack_writing"));
    let wanted = Wanted { files: args.files, bytes: args.megabytes * 1_000_000, seed: SEED };
    let notes = generate(&scratch.dir.join("notes"), wanted, |_| bar.inc(1))?;
    bar.finish_and_clear();
    clock.sleep(SETTLED).await;
    let figures = measure(&scratch.dir.join("notes"), &notes, clock).await?;
    let middle = percentile(&figures.unchanged_ms, 50);
    let over: Vec<f64> = figures.one_change_ms.iter().map(|time| (time - middle).max(0.0)).collect();
    let mut rows = vec![
        row("first_index", &[figures.first_index_ms], 50, Some(30_000.0)),
        row("unchanged", &figures.unchanged_ms, 50, Some(300.0)),
        row("one_change", &over, 50, Some(50.0)),
        row("search", &figures.search_ms, 95, Some(10.0)),
    ];
    rows.extend(processes(&scratch, &notes, clock).await?);
    rows.extend(hooks(cx, &scratch, clock).await?);
    let (questions, answered) = (notes.questions.len(), figures.answered);
    let (pieces, shadow_bytes) = (figures.pieces, figures.shadow_bytes);
    Ok(Outcome { files: notes.files, bytes: notes.bytes, pieces, shadow_bytes, questions, answered, rows })
}

fn row(name: &'static str, values: &[f64], of_hundred: usize, limit: Option<f64>) -> Row {
    let value = percentile(values, of_hundred);
    let (p50, p95) = (percentile(values, 50), percentile(values, 95));
    Row { name, times: values.len(), p50, p95, value, limit, within: limit.map(|limit| value <= limit) }
}

/// Where the notes are made; it goes away again unless somebody named it.
#[derive(Debug)]
struct Scratch {
    dir: PathBuf,
    program: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Scratch {
    fn new(cx: &Cx, args: &BenchPack) -> CliResult<Self> {
        let program = std::env::current_exe().map_err(CliError::Output)?;
        if let Some(dir) = &args.dir {
            let dir = cx.env.absolute(dir);
            animaworks_core::fs::create_dir(&dir)?;
            return Ok(Self { dir, program, _temporary: None });
        }
        let temporary = tempfile::tempdir().map_err(CliError::Output)?;
        Ok(Self { dir: temporary.path().to_owned(), program, _temporary: Some(temporary) })
    }

    fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// A command in a home of its own, with nothing of the caller's environment.
    fn spec(&self, program: &Path) -> Spec {
        Spec::new(program, &self.home()).env("HOME", self.home()).env("PATH", "/usr/bin:/bin").env("LANG", "C")
    }

    async fn time(&self, spec: Spec, clock: &dyn Clock) -> CliResult<f64> {
        let name = spec.program.display().to_string();
        let limits = OutputLimits { timeout: Duration::from_secs(60), ..OutputLimits::default() };
        let begun = clock.elapsed();
        let done = spec.output(limits, &CancellationToken::new()).await?;
        let time = clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0;
        if done.end == End::Code(0) {
            return Ok(time);
        }
        Err(CliError::said(ErrorKind::Internal, format!("{name}: {}", done.stderr.text().trim())))
    }
}

/// The start of a process, and a question as a whole process over all notes.
async fn processes(scratch: &Scratch, notes: &Notes, clock: &dyn Clock) -> CliResult<Vec<Row>> {
    animaworks_core::fs::create_dir(&scratch.home())?;
    let (mut start, mut search) = (Vec::new(), Vec::new());
    for at in 0..STARTS {
        start.push(scratch.time(scratch.spec(&scratch.program).arg("--version"), clock).await?);
        if let Some(question) = notes.questions.get(at) {
            let spec = scratch.spec(&scratch.program).args(["pack", "search", "--dir"]);
            let spec = spec.arg(scratch.dir.join("notes")).arg("--").arg(question);
            search.push(scratch.time(spec, clock).await?);
        }
    }
    Ok(vec![row("start", &start, 50, Some(15.0)), row("search_process", &search, 50, None)])
}

/// The hooks as a coding agent runs them.
async fn hooks(cx: &Cx, scratch: &Scratch, clock: &dyn Clock) -> CliResult<Vec<Row>> {
    let memory = scratch.home().join(".claude/memory");
    let wanted = Wanted { files: HOOK_FILES, bytes: HOOK_FILES * 10_000, seed: SEED };
    generate(&memory, wanted, |_| {})?;
    let plugin = scratch.home().join("plugin");
    let quiet = Env::of([("HOME", scratch.home())]).started_in(scratch.home());
    install::write(cx, &quiet, "claude", Some(&plugin))?;
    let hook = |name: &str| plugin.join(install::NAME).join("hooks").join(name);
    clock.sleep(SETTLED).await;
    // the first one makes the index
    scratch.time(scratch.spec(&hook("memory_start.sh")), clock).await?;
    let blocks: String = (1..=6).rev().map(|n| format!("## 2026-06-{n:02} step {n}\nDid step {n}.\n\n")).collect();
    let context = memory.join(CONTEXT_FILE);
    let (mut start, mut stop, mut rotated) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..STARTS {
        start.push(scratch.time(scratch.spec(&hook("memory_start.sh")), clock).await?);
        write_atomic(&context, format!("## 2026-06-07 turn {at}\nWork.\n\n{blocks}").as_bytes(), Privacy::Normal)?;
        let begun = clock.elapsed();
        stop.push(scratch.time(scratch.spec(&hook("memory_stop.sh")), clock).await?);
        while read_text(&context)?.matches("## ").count() > 5 {
            if clock.elapsed().saturating_sub(begun) > Duration::from_secs(60) {
                return Err(CliError::said(ErrorKind::Internal, t!(cx.locale, "cli.bench.pack_not_rotated")));
            }
            clock.sleep(Duration::from_millis(1)).await;
        }
        rotated.push(clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0);
    }
    Ok(vec![
        row("hook_start", &start, 50, Some(50.0)),
        row("hook_stop", &stop, 50, Some(150.0)),
        row("hook_rotated", &rotated, 50, None),
    ])
}
