//! What may reach a terminal: words, and our own colours.
//!
//! A memory, an answer or a file name can hold the control characters of a terminal, which clear
//! the screen, hide words or rename the window. People see a mark in their place; a program that
//! reads a pipe gets the text as it is.

use std::borrow::Cow;

use super::style;

/// A text for whoever reads it.
pub(super) fn for_reader(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if !is_terminal || !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match style::ours(rest) {
            Some(code) => {
                shown.push_str(code);
                code.len()
            }
            None => {
                shown.push(if steers(c) { char::REPLACEMENT_CHARACTER } else { c });
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(shown)
}

/// Whether a character steers the terminal instead of being shown, or turns the direction of what is shown.
fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_our_colours_steers_the_terminal() {
        let hostile = "a\x1b]0;title\x07 \x1b[2J\x1b[8mhidden\u{9b}2J \u{202e}txt\rb\0";
        let shown = for_reader(hostile, true);
        assert_eq!(
            shown,
            "a\u{fffd}]0;title\u{fffd} \u{fffd}[2J\u{fffd}[8mhidden\u{fffd}2J \u{fffd}txt\u{fffd}b\u{fffd}"
        );
        assert_eq!(for_reader("\x1b[1;31merror:\x1b[0m 鍵\t1\n", true), "\x1b[1;31merror:\x1b[0m 鍵\t1\n");
    }

    #[test]
    fn a_pipe_gets_the_text_as_it_is() {
        assert_eq!(for_reader("a\x1b[2J\0", false), "a\x1b[2J\0");
    }
}
