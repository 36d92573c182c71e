//! Markdown cut at its second-level headings.

use super::{Chunk, Line, lines, pack};

/// The sections of a body. Text before the first heading is one of them; a lone title is not.
pub(crate) fn chunks(text: &str, body: usize) -> Vec<Chunk> {
    let all: Vec<Line<'_>> = lines(text, body).collect();
    let starts = section_starts(&all);
    let mut chunks = Vec::new();
    let first = starts.first().copied().unwrap_or(all.len());
    let preamble = all.get(..first).unwrap_or_default();
    let says_something = preamble.iter().any(|line| !line.text.trim().is_empty() && heading(line.text).is_none());
    if says_something || starts.is_empty() {
        pack(text, preamble, 0, "", &mut chunks);
    }
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(all.len());
        let section = all.get(start..end).unwrap_or_default();
        let context = section.first().and_then(|line| heading(line.text)).map_or("", |(_, title)| title);
        let group = u32::try_from(at + 1).unwrap_or(u32::MAX);
        pack(text, section, group, context, &mut chunks);
    }
    chunks
}

/// The lines that open a section, outside code fences.
pub(crate) fn section_starts(lines: &[Line<'_>]) -> Vec<usize> {
    let mut fence = Fence::default();
    let mut starts = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !fence.inside(line.text) && matches!(heading(line.text), Some((2, _))) {
            starts.push(at);
        }
    }
    starts
}

/// Keeps track of code fences.
#[derive(Debug, Default)]
pub(crate) struct Fence(Option<char>);

impl Fence {
    /// Whether a line belongs to a fenced block; to be asked for every line in order.
    pub(crate) fn inside(&mut self, line: &str) -> bool {
        let start = line.trim_start();
        let mark = ['`', '~'].into_iter().find(|mark| start.chars().take_while(|c| c == mark).count() >= 3);
        match (self.0, mark) {
            (None, Some(mark)) => {
                self.0 = Some(mark);
                true
            }
            (Some(open), Some(mark)) if open == mark => {
                self.0 = None;
                true
            }
            (open, _) => open.is_some(),
        }
    }
}

/// The level and the words of a heading.
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let rest = line.get(level..)?;
    let title = rest.trim();
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t', '\u{3000}']) && !title.is_empty())
        .then_some((level, title))
}

/// The words of the first heading of the first level.
pub(crate) fn first_heading(text: &str, body: usize) -> Option<String> {
    let mut fence = Fence::default();
    lines(text, body).find_map(|line| match heading(line.text) {
        Some((1, title)) if !fence.inside(line.text) => Some(title.to_owned()),
        _ => {
            fence.inside(line.text);
            None
        }
    })
}

/// The headings of a page: where each begins, its level and its words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headings(Vec<(usize, usize, String)>);

impl Headings {
    /// Those of a text, outside code fences.
    pub(crate) fn of(text: &str) -> Self {
        let mut fence = Fence::default();
        let found = lines(text, 0).filter_map(|line| {
            if fence.inside(line.text) {
                return None;
            }
            heading(line.text).map(|(level, title)| (line.start, level, title.to_owned()))
        });
        Self(found.collect())
    }

    /// The headings a byte of the text stands under, outermost first.
    pub(crate) fn above(&self, at: usize) -> Vec<String> {
        let mut open: Vec<(usize, &str)> = Vec::new();
        for (_, level, title) in self.0.iter().take_while(|(start, ..)| *start < at) {
            open.retain(|(above, _)| above < level);
            open.push((*level, title));
        }
        open.into_iter().map(|(_, title)| title.to_owned()).collect()
    }
}

/// What `[[name]]` and `[[name|label]]` point at.
pub(crate) fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("[[") {
        let Some((inner, behind)) = after.split_once("]]") else { break };
        rest = behind;
        let target = inner.split('|').next().unwrap_or_default().trim();
        let target = target.strip_suffix(".md").unwrap_or(target);
        if !target.is_empty() && !target.contains('\n') && !found.iter().any(|known| known == target) {
            found.push(target.to_owned());
        }
    }
    found
}
