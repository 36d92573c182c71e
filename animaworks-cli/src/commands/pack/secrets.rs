//! `pack check-secrets`: nothing that git tracks may hold a key, a token or a listed name.

use std::path::{Path, PathBuf};

use animaworks_core::{
    ErrorKind,
    process::{End, OutputLimits, Spec},
    t,
};
use animaworks_memory::pack::{Secrets, Settings};
use tokio_util::sync::CancellationToken;

use crate::{
    context::Cx,
    error::{CliError, CliResult},
    ui,
};

/// The longest list of names that git may answer with.
const MOST_BYTES: usize = 64 << 20;

pub(super) fn run(cx: &Cx, dir: &Path) -> CliResult {
    let dir = cx.env.absolute(dir);
    let files = tracked(cx, &dir)?;
    let settings = Settings::load(&cx.env)?;
    let leaks = Secrets::new(&settings.secret_names).scan(files.iter().map(PathBuf::as_path));
    if cx.json {
        ui::json(&leaks)?;
    } else {
        for leak in &leaks {
            let kind = cx.locale.text(&format!("pack.secret.{}", leak.kind), &[]);
            ui::line(format!("{}:{}: {kind}", leak.file.display(), leak.line))?;
        }
    }
    if leaks.is_empty() {
        if !cx.json {
            ui::line(t!(cx.locale, "pack.secrets.none", files = files.len()))?;
        }
        return Ok(());
    }
    Err(CliError::said(ErrorKind::Permission, t!(cx.locale, "pack.secrets.found", count = leaks.len()))
        .with_hint(t!(cx.locale, "pack.secrets.hint")))
}

/// The files that git tracks below a directory.
fn tracked(cx: &Cx, dir: &Path) -> CliResult<Vec<PathBuf>> {
    let git = Spec::new("git", dir).args(["ls-files", "-z"]).harmless_env(cx.env.vars());
    let limits = OutputLimits { max_bytes: MOST_BYTES, ..OutputLimits::default() };
    let done = super::block_on(async { Ok(git.output(limits, &CancellationToken::new()).await?) })?;
    if done.end != End::Code(0) {
        let why = done.stderr.text();
        return Err(CliError::said(ErrorKind::NotFound, t!(cx.locale, "pack.secrets.no_git", why = why.trim())));
    }
    let names = done.stdout.text();
    let files = names.split('\0').filter(|name| !name.is_empty()).map(|name| dir.join(name));
    Ok(files.filter(|file| file.is_file()).collect())
}
