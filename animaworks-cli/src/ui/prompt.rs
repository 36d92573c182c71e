//! Questions to the person at the terminal.

use std::io::{BufRead, Write};

use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use super::note;
use crate::error::{CliError, CliResult};

/// Asks for one line.
pub(crate) fn ask(question: &str) -> CliResult<String> {
    let mut out = std::io::stderr().lock();
    write!(out, "{question} ").and_then(|()| out.flush()).map_err(CliError::Output)?;
    read()
}

/// Asks yes or no; an empty answer is `default`.
pub(crate) fn confirm(question: &str, default: bool) -> CliResult<bool> {
    let answer = ask(&format!("{question} [{}]", if default { "Y/n" } else { "y/N" }))?;
    Ok(match answer.trim().to_lowercase().as_str() {
        "" => default,
        "y" | "yes" | "はい" => true,
        _ => false,
    })
}

/// Asks for a secret without showing it; from a pipe it is one line.
pub(crate) fn secret(question: &str) -> CliResult<String> {
    let stdin = std::io::stdin();
    let Ok(shown) = tcgetattr(&stdin) else {
        return read();
    };
    let mut hidden = shown.clone();
    hidden.local_flags.remove(LocalFlags::ECHO);
    let failed = |error: nix::Error| CliError::Output(error.into());
    tcsetattr(&stdin, SetArg::TCSANOW, &hidden).map_err(failed)?;
    let answer = ask(question);
    tcsetattr(&stdin, SetArg::TCSANOW, &shown).map_err(failed)?;
    note("");
    answer
}

fn read() -> CliResult<String> {
    let mut line = Vec::new();
    std::io::stdin().lock().read_until(b'\n', &mut line).map_err(CliError::Output)?;
    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())
}
