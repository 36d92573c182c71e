//! Colour, where there is a terminal that wants it. Nothing is said by colour alone.

use std::io::IsTerminal;

/// Paints text, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn stdout() -> Self {
        Self { on: std::io::stdout().is_terminal() && wanted() }
    }

    pub(crate) fn stderr() -> Self {
        Self { on: std::io::stderr().is_terminal() && wanted() }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.code("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.code("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.code("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.code("36", text)
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The sequence of ours that a text begins with.
pub(super) fn ours(text: &str) -> Option<&str> {
    let numbers = text.strip_prefix("\x1b[")?.split('m').next()?;
    let known = ["0", "1", "2", "1;31", "32", "33", "36"].contains(&numbers);
    known.then(|| text.get(..numbers.len() + 3)).flatten()
}

#[allow(clippy::disallowed_methods, reason = "a terminal is painted before anything else is known")]
fn wanted() -> bool {
    // https://no-color.org: set and not empty means no colour
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
