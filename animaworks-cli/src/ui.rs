//! The only place that prints. Data goes to standard output, everything else to standard error.

pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod repl;
mod screen;
pub(crate) mod style;
pub(crate) mod table;

use std::io::{IsTerminal, Write};

use animaworks_core::{Locale, t};
use serde::Serialize;

use crate::error::{CliError, CliResult};

/// Prints a line of data.
pub(crate) fn line(text: impl AsRef<str>) -> CliResult {
    let mut out = std::io::stdout().lock();
    let text = screen::for_reader(text.as_ref(), out.is_terminal());
    writeln!(out, "{text}").map_err(CliError::Output)
}

/// Prints a piece of data at once, without ending the line.
pub(crate) fn piece(text: &str) -> CliResult {
    let mut out = std::io::stdout().lock();
    let text = screen::for_reader(text, out.is_terminal());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Prints data for programs.
pub(crate) fn json<T: Serialize>(value: &T) -> CliResult {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::Output(std::io::Error::other(error)))?;
    line(text)
}

/// Says something beside the data.
pub(crate) fn note(text: impl AsRef<str>) {
    let mut out = std::io::stderr().lock();
    let text = screen::for_reader(text.as_ref(), out.is_terminal());
    // nobody can be told that standard error is closed
    if let Err(error) = writeln!(out, "{text}") {
        tracing::debug!(%error, "standard error is closed");
    }
}

/// Prints an error and its hint.
pub(crate) fn complain(locale: Locale, json: bool, code: &str, message: &str, hint: Option<&str>) {
    if json {
        let body = serde_json::json!({"error": {"code": code, "message": message, "hint": hint}});
        note(body.to_string());
        return;
    }
    let paint = style::Paint::stderr();
    note(format!("{} {message}", paint.red(&t!(locale, "cli.error_label"))));
    if let Some(hint) = hint {
        note(format!("{} {hint}", paint.bold(&t!(locale, "cli.hint_label"))));
    }
}

/// Whether a person sits at both ends.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}
