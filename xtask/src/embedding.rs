//! Proof that the crates can be embedded: a program outside the workspace, built from what would be published.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The crates that others depend on.
const CRATES: &[&str] =
    &["animaworks-core", "animaworks-memory", "animaworks-exec", "animaworks-tools", "animaworks-server"];

/// Packages the crates, unpacks them elsewhere, builds a program over them and talks to its Anima.
pub fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    let place = std::env::temp_dir().join(format!("animaworks-embedding-{}", std::process::id()));
    let proved = prove(root, &place);
    let cleaned = fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()));
    proved.and(cleaned)
}

fn prove(root: &Path, place: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", place.display());
    fs::create_dir_all(place.join("src")).map_err(said)?;
    let packages = package(root)?;
    let mut manifest = String::from(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         tokio = { version = \"1\", features = [\"rt\", \"macros\"] }\n",
    );
    let mut patches = String::from("\n[patch.crates-io]\n");
    for name in CRATES {
        let archive = packages.join(format!("{name}-{}.crate", version(root)?));
        step(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(place))?;
        let path = archive.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        manifest.push_str(&format!("{name} = {{ path = \"{path}\" }}\n"));
        patches.push_str(&format!("{name} = {{ path = \"{path}\" }}\n"));
    }
    fs::write(place.join("Cargo.toml"), manifest + &patches).map_err(said)?;
    fs::copy(root.join("Cargo.lock"), place.join("Cargo.lock")).map_err(said)?;
    fs::copy(root.join("tests/embedding/main.rs"), place.join("src/main.rs")).map_err(said)?;

    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--offline", "--"]).arg(place.join("organisation")).current_dir(place);
    command.env("CARGO_TARGET_DIR", crate::shell::target()?);
    eprintln!("$ {command:?}");
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !answer.contains("blue pot") {
        return Err(format!("the outside program failed:\n{answer}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    eprintln!("{answer}");
    Ok(())
}

/// Packages every crate at once, so that they find each other; returns where the archives are.
fn package(root: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new("cargo");
    command.args(["package", "--no-verify", "--allow-dirty", "--quiet"]).current_dir(root);
    for name in CRATES {
        command.args(["-p", name]);
    }
    step(&mut command)?;
    Ok(crate::shell::target()?.join("package"))
}

/// The version of the workspace.
fn version(root: &Path) -> Result<String, String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|line| line.split('"').next()).ok_or("Cargo.toml names no version")?;
    Ok(version.to_owned())
}

fn step(command: &mut Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
