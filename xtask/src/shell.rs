//! Runs the steps of CI, each with its time.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A step of CI.
type Step = fn() -> Result<(), String>;

/// What CI runs, cheapest first.
pub fn ci() -> Result<(), String> {
    let mut times = Vec::new();
    let steps: &[(&str, Step)] =
        &[("fmt", fmt), ("tidy", crate::tidy::run), ("clippy", clippy), ("docs", docs), ("test", test)];
    for (name, step) in steps {
        let start = Instant::now();
        let result = step();
        times.push((*name, start.elapsed()));
        if result.is_err() {
            table(&times);
            return result;
        }
    }
    table(&times);
    Ok(())
}

/// Where cargo builds.
pub fn target() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    Ok(env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from))
}

fn table(times: &[(&str, Duration)]) {
    eprintln!("\nstep     minutes");
    for (name, time) in times {
        eprintln!("{name:<8} {:>7.1}", time.as_secs_f64() / 60.0);
    }
}

fn fmt() -> Result<(), String> {
    run("cargo", &["fmt", "--all", "--check"])
}

fn clippy() -> Result<(), String> {
    run("cargo", &["clippy", "--profile", "ci", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn docs() -> Result<(), String> {
    let mut command = cargo(&["doc", "--profile", "ci", "--locked", "--no-deps", "--workspace"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    finish(command)
}

/// Every test there is, and a plain total line at the end.
pub fn test() -> Result<(), String> {
    crate::weights::fetch();
    crate::npm::fetch();
    let gguf = crate::gguf::fetch().map_err(|problem| eprintln!("gguf: {problem}; tests that need it are skipped"));
    // the whole-system tests drive the real program
    run("cargo", &["build", "--profile", "ci", "--locked", "--workspace", "--bins", "--examples"])?;
    let mut total = Total { gguf: gguf.ok(), ..Total::default() };
    total.run(&["test", "--profile", "ci", "--locked", "--workspace", "--doc"])?;
    let nextest = Command::new("cargo").args(["nextest", "--version"]).output().is_ok_and(|out| out.status.success());
    if nextest {
        total.run(&["nextest", "run", "--cargo-profile", "ci", "--profile", "ci", "--locked", "--workspace"])?;
        total.set_apart_what_was_skipped()?;
    } else {
        let kinds = ["--lib", "--bins", "--tests", "--examples", "--no-fail-fast"];
        total.run(&[&["test", "--profile", "ci", "--locked", "--workspace"], kinds.as_slice()].concat())?;
    }
    total.step("examples", examples);
    total.step("embedding", crate::embedding::run);
    total.close()
}

/// Every example runs to its end.
fn examples() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    let dir = root.join("examples/examples");
    let entries = fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    for name in names {
        run(
            "cargo",
            &["run", "--quiet", "--profile", "ci", "--locked", "-p", "animaworks-examples", "--example", &name],
        )?;
    }
    Ok(())
}

/// The tests of several runs, counted from what the runners print.
#[derive(Default)]
struct Total {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// The small language model, when it could be fetched.
    gguf: Option<PathBuf>,
}

impl Total {
    /// Runs cargo, shows what it prints and counts. Failing tests are counted; a run that counts nothing and fails is an error.
    fn run(&mut self, args: &[&str]) -> Result<(), String> {
        let mut command = cargo(args);
        if let Some(gguf) = &self.gguf {
            command.env("ANIMAWORKS_TEST_GGUF", gguf);
        }
        eprintln!("$ {command:?}");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let before = self.failed;
        thread::scope(|scope| {
            let out = scope.spawn(|| echo(stdout));
            let err = scope.spawn(|| echo(stderr));
            for lines in [out, err] {
                lines.join().unwrap_or_default().iter().for_each(|line| self.count(line));
            }
        });
        let status = child.wait().map_err(|error| format!("{command:?}: {error}"))?;
        if status.success() || self.failed > before {
            return Ok(());
        }
        Err(format!("{command:?} failed: {status}"))
    }

    /// A test that misses what it needs says `skipped: why` and ends well; the runner counts it as passed.
    fn set_apart_what_was_skipped(&mut self) -> Result<(), String> {
        // the runner keeps its reports beside the sources, wherever cargo builds
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
        let report = root.join("target/nextest/ci/junit.xml");
        let report = fs::read_to_string(&report).map_err(|error| format!("{}: {error}", report.display()))?;
        for (at, line) in report.match_indices("skipped: ").map(|(at, _)| (at, report[at..].lines().next())) {
            // only a line of its own, not a word inside one
            if report[..at].ends_with(['\n', '>']) {
                eprintln!("{}", line.unwrap_or_default());
                self.passed = self.passed.saturating_sub(1);
                self.skipped += 1;
            }
        }
        Ok(())
    }

    /// A step that is one test of its own.
    fn step(&mut self, name: &str, work: fn() -> Result<(), String>) {
        match work() {
            Ok(()) => self.passed += 1,
            Err(problem) => {
                eprintln!("{name} failed: {problem}");
                self.failed += 1;
            }
        }
    }

    /// Reads the closing line of libtest or nextest.
    fn count(&mut self, line: &str) {
        let closing = line.trim_start().starts_with("test result:") || line.trim_start().starts_with("Summary [");
        if !closing {
            return;
        }
        let words: Vec<&str> = line.split([' ', ',', ';', '(', ')']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "skipped" | "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }

    fn close(self) -> Result<(), String> {
        println!("total: {} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        if self.failed > 0 { Err(format!("{} tests failed", self.failed)) } else { Ok(()) }
    }
}

/// Shows lines as they come and keeps them.
fn echo(from: Option<impl Read>) -> Vec<String> {
    let Some(from) = from else { return Vec::new() };
    let mut lines = Vec::new();
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        eprintln!("{line}");
        lines.push(line);
    }
    lines
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args);
    finish(command)
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args).envs(crate::weights::environment()).envs(crate::npm::environment());
    command
}

fn finish(mut command: Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
