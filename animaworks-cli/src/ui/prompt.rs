//! Questions to the person at the terminal.

use std::io::{BufRead, Read, Write};

use animaworks_core::Locale;
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
///
/// Keys arrive one by one, Ctrl-C among them, so that the terminal is given back as it was in every case.
pub(crate) fn secret(locale: Locale, question: &str) -> CliResult<String> {
    let stdin = std::io::stdin();
    let Ok(shown) = tcgetattr(&stdin) else {
        return read();
    };
    let mut hidden = shown.clone();
    hidden.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
    let failed = |error: nix::Error| CliError::Output(error.into());
    tcsetattr(&stdin, SetArg::TCSANOW, &hidden).map_err(failed)?;
    let mut out = std::io::stderr().lock();
    let asked = write!(out, "{question} ").and_then(|()| out.flush());
    let typed = asked.and_then(|()| typed_unseen(&mut stdin.lock()));
    tcsetattr(&stdin, SetArg::TCSANOW, &shown).map_err(failed)?;
    drop(out);
    note("");
    typed.map_err(CliError::Output)?.ok_or_else(|| CliError::cancelled(locale))
}

/// Reads keys up to Enter; `None` when Ctrl-C was among them.
fn typed_unseen(keys: &mut impl BufRead) -> std::io::Result<Option<String>> {
    const INTERRUPT: u8 = 0x03;
    const END: u8 = 0x04;
    const BACKSPACE: u8 = 0x08;
    const ERASE: u8 = 0x7f;
    let mut line = Vec::new();
    for key in keys.bytes() {
        match key? {
            INTERRUPT => return Ok(None),
            b'\n' | b'\r' | END => break,
            // the last character, which may be several bytes
            ERASE | BACKSPACE => while line.pop().is_some_and(|byte: u8| byte & 0xc0 == 0x80) {},
            other => line.push(other),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn read() -> CliResult<String> {
    let mut line = Vec::new();
    std::io::stdin().lock().read_until(b'\n', &mut line).map_err(CliError::Output)?;
    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_keys_can_be_taken_back_and_broken_off() {
        let typed = |keys: &str| typed_unseen(&mut keys.as_bytes()).unwrap();
        assert_eq!(typed("sk-1\nrest"), Some("sk-1".to_owned()));
        assert_eq!(typed("a鍵\u{7f}\u{8}b\r"), Some("b".to_owned()));
        assert_eq!(typed("\u{7f}x"), Some("x".to_owned()));
        assert_eq!(typed("half\u{3}"), None);
    }
}
