//! A memory file as it is kept: an optional preamble, then blocks that each begin with a `## ` heading.

use chrono::NaiveDate;

use crate::chunk::markdown::{Fence, heading};

/// A file in parts. Lines end with `\n` here, whatever the file has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) preamble: String,
    pub(super) blocks: Vec<Block>,
    crlf: bool,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The heading without its mark.
    pub(super) heading: String,
    /// The whole text, heading and blank lines included.
    pub(super) text: String,
    /// The line of the heading, from 1.
    pub(super) line: usize,
}

impl Note {
    pub(super) fn parse(text: &str) -> Self {
        let crlf = text.contains("\r\n");
        let text = text.replace("\r\n", "\n");
        let mut note = Self { crlf, ..Self::default() };
        let mut fence = Fence::default();
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let opens = !fence.inside(line) && line.starts_with("## ");
            match heading(line.trim_end()) {
                Some((2, title)) if opens => {
                    note.blocks.push(Block { heading: title.to_owned(), text: line.to_owned(), line: at + 1 });
                }
                _ => note.blocks.last_mut().map_or(&mut note.preamble, |block| &mut block.text).push_str(line),
            }
        }
        note
    }

    /// The file as it is written, with the line ends it had.
    pub(super) fn render(&self) -> String {
        let mut text = self.preamble.clone();
        for block in &self.blocks {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&block.text);
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.crlf { text.replace('\n', "\r\n") } else { text }
    }

    pub(super) fn headings(&self) -> Vec<String> {
        self.blocks.iter().map(|block| block.heading.clone()).collect()
    }
}

impl Block {
    /// A block as it is written: heading, body, blank line.
    pub(super) fn new(heading: &str, body: &str) -> Self {
        let heading = heading.trim().trim_start_matches("## ").trim();
        let body = body.replace("\r\n", "\n");
        let body = body.trim_matches('\n').trim_end();
        let text = format!("## {heading}\n{body}\n{}\n", closing(body));
        Self { heading: heading.to_owned(), text, line: 0 }
    }

    /// The text without the heading.
    pub(super) fn body(&self) -> &str {
        self.text.split_once('\n').map_or("", |(_, body)| body)
    }

    /// The text with every run of white space as one space: what makes two blocks the same.
    pub(super) fn normal(&self) -> String {
        let words: Vec<&str> = self.text.split_whitespace().collect();
        words.join(" ")
    }

    pub(super) fn date(&self) -> Option<NaiveDate> {
        date_in(&self.heading)
    }
}

/// The line that closes what a body left open: code without an end would swallow every block behind it.
fn closing(body: &str) -> &'static str {
    let mut fence = Fence::default();
    for line in body.lines() {
        fence.inside(line);
    }
    if !fence.inside("") {
        return "";
    }
    fence.inside("```");
    if fence.inside("") { "~~~\n" } else { "```\n" }
}

/// The first `YYYY-MM-DD` in a text.
pub(super) fn date_in(text: &str) -> Option<NaiveDate> {
    let letters: Vec<char> = text.chars().collect();
    letters.windows(10).enumerate().find_map(|(at, window)| {
        let joined = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
        if joined(at.checked_sub(1).and_then(|before| letters.get(before))) || joined(letters.get(at + 10)) {
            return None;
        }
        let text: String = window.iter().collect();
        let shaped = text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
        if shaped { text.parse().ok() } else { None }
    })
}
