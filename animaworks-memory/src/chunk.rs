//! Chunks: the places of a file that can be found one by one.
//!
//! A chunk is a range of its file and nothing else; its text is read from the file
//! again when it is found, so that what is quoted always stands there.

pub(crate) mod episode;
pub(crate) mod markdown;
pub(crate) mod turn;
pub(crate) mod whole;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;

use animaworks_core::{Origin, SearchScope, Trust};

use crate::front::Front;

/// The longest chunk, in characters; a longer section is cut at paragraphs, lines or sentences.
pub(crate) const MAX_CHARS: usize = 1500;

/// What sort of memory a file is; its number is part of the ids of its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// What was learned.
    Knowledge = 0,
    /// What was lived through.
    Episodes = 1,
    /// How things are done.
    Procedures = 2,
    /// What everybody shares: both trees.
    CommonKnowledge = 3,
    /// What it can do, and what everybody can.
    Skills = 4,
    /// Notes about the present.
    State = 5,
    /// What was said.
    Conversation = 6,
    /// What happened in the last days.
    ActivityLog = 7,
    /// Profiles of people.
    Users = 8,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Knowledge,
        Self::Episodes,
        Self::Procedures,
        Self::CommonKnowledge,
        Self::Skills,
        Self::State,
        Self::Conversation,
        Self::ActivityLog,
        Self::Users,
    ];

    /// The word used in hits.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Knowledge => "knowledge",
            Self::Episodes => "episodes",
            Self::Procedures => "procedures",
            Self::CommonKnowledge => "common_knowledge",
            Self::Skills => "skills",
            Self::State => "state",
            Self::Conversation => "conversation",
            Self::ActivityLog => "activity_log",
            Self::Users => "users",
        }
    }

    /// The kind with a number.
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|at| Self::ALL.get(at)).copied()
    }

    /// The kinds a scope looks at.
    pub(crate) fn of_scope(scope: SearchScope) -> &'static [Self] {
        match scope {
            SearchScope::Knowledge => &[Self::Knowledge],
            SearchScope::Episodes => &[Self::Episodes],
            SearchScope::Procedures => &[Self::Procedures],
            SearchScope::CommonKnowledge => &[Self::CommonKnowledge],
            SearchScope::Skills => &[Self::Skills],
            SearchScope::ActivityLog => &[Self::ActivityLog],
            SearchScope::All => &Self::ALL,
        }
    }

    /// Whether its files are JSON, one record a line or one document.
    pub(crate) fn is_record(self, path: &str) -> bool {
        matches!(self, Self::Conversation | Self::ActivityLog) && !has_extension(path, "md")
    }
}

pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case(extension))
}

/// One place of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunk {
    /// Its first byte in the file.
    pub(crate) start: usize,
    /// Its length in bytes.
    pub(crate) bytes: usize,
    /// Its first line, from 1.
    pub(crate) line: u32,
    /// Its last line.
    pub(crate) end_line: u32,
    /// What it says.
    pub(crate) text: String,
    /// Title and headings: searched with it, but not part of it.
    pub(crate) context: String,
    /// Who says it.
    pub(crate) speaker: Option<String>,
    /// When.
    pub(crate) at: Option<DateTime<Utc>>,
    /// Neighbouring chunks of one group are one conversation or one text.
    pub(crate) group: u32,
    /// Marked by its writer as important, and believable enough to mark anything.
    pub(crate) important: bool,
    /// Where its words come from, where the record says so itself.
    pub(crate) origin: Option<Origin>,
}

impl Chunk {
    /// What it says of itself: a turn without its head, a section without its heading, which is in the context.
    pub(crate) fn said(&self) -> &str {
        said(&self.text, self.speaker.is_some())
    }
}

/// What a place says, as it is searched and embedded.
pub(crate) fn said(text: &str, is_turn: bool) -> &str {
    if is_turn {
        return episode::said(text);
    }
    let headings = text.lines().take_while(|line| line.trim().is_empty() || markdown::heading(line).is_some());
    let body = headings
        .fold(text, |rest, line| rest.strip_prefix(line).map_or(rest, |rest| rest.trim_start_matches(['\r', '\n'])));
    // a heading alone is all it says
    if body.trim().is_empty() { text } else { body }
}

/// What is known about a file before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    /// What sort of memory it is.
    pub(crate) kind: Kind,
    /// Its memory path.
    pub(crate) path: &'a str,
    /// When it was last changed.
    pub(crate) modified: DateTime<Utc>,
    /// The zone of times without an offset.
    pub(crate) zone: Tz,
    /// Whose memory it is.
    pub(crate) anima: &'a str,
}

impl Setting<'_> {
    /// The file name without its extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// The day its name begins with.
    pub(crate) fn day(&self) -> Option<NaiveDate> {
        let stem = self.stem();
        let head = stem.get(..10)?;
        NaiveDate::parse_from_str(head, "%Y-%m-%d").ok()
    }

    /// A local time of day.
    pub(crate) fn moment(&self, day: NaiveDate, hour: u32, minute: u32) -> Option<DateTime<Utc>> {
        let local = day.and_hms_opt(hour, minute, 0)?;
        local.and_local_timezone(self.zone).earliest().map(|at| at.with_timezone(&Utc))
    }
}

/// A file, cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Page {
    /// Its places, in order.
    pub(crate) chunks: Vec<Chunk>,
    /// Its title.
    pub(crate) title: String,
    /// What it links to, as written.
    pub(crate) links: Vec<String>,
    /// Where its words come from.
    pub(crate) origin: Origin,
}

/// Cuts a Markdown file. Superseded knowledge (a non-empty `valid_until`) has no places: it is kept but not found.
pub(crate) fn cut(setting: Setting<'_>, text: &str) -> Page {
    let front = Front::read(text);
    if front.superseded() {
        return Page::default();
    }
    let origin = front.origin();
    let title = front
        .title()
        .or_else(|| markdown::first_heading(text, front.body_start))
        .unwrap_or_else(|| setting.stem().replace(['_', '-'], " "));
    let at = front.moment(setting.zone).or_else(|| setting.moment(setting.day()?, 0, 0)).unwrap_or(setting.modified);
    let mut chunks = match setting.kind {
        Kind::Episodes => episode::chunks(setting, text, front.body_start),
        Kind::Procedures | Kind::Skills | Kind::Users => whole::chunks(text, front.body_start),
        _ => markdown::chunks(text, front.body_start),
    };
    let believed = origin.trust() > Trust::Untrusted || origin.source.is_empty();
    for chunk in &mut chunks {
        chunk.at = chunk.at.or(Some(at));
        chunk.important = believed && ["[IMPORTANT]", "[重要]"].iter().any(|mark| chunk.text.contains(mark));
        chunk.context = match (chunk.context.is_empty(), front.summary()) {
            (true, None) => title.clone(),
            (true, Some(summary)) => format!("{title} > {summary}"),
            (false, _) => format!("{title} > {}", chunk.context),
        };
    }
    let links = markdown::links(text.get(front.body_start..).unwrap_or_default());
    Page { chunks, title, links, origin }
}

/// A line of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Its first byte.
    pub(crate) start: usize,
    /// One past its last byte, without the line break.
    pub(crate) end: usize,
    /// From 1.
    pub(crate) number: u32,
    /// What stands in it.
    pub(crate) text: &'a str,
}

/// The lines of a text from a byte on, numbered from its beginning.
pub(crate) fn lines(text: &str, from: usize) -> impl Iterator<Item = Line<'_>> {
    let before = text.get(..from).unwrap_or_default();
    let mut number = u32::try_from(before.matches('\n').count()).unwrap_or(u32::MAX);
    let mut start = from;
    text.get(from..).unwrap_or_default().split_inclusive('\n').map(move |raw| {
        number = number.saturating_add(1);
        let content = raw.strip_suffix('\n').unwrap_or(raw);
        let content = content.strip_suffix('\r').unwrap_or(content);
        let line = Line { start, end: start + content.len(), number, text: content };
        start += raw.len();
        line
    })
}

/// Makes chunks of neighbouring lines: one where they fit, else cut at blank lines, lines and sentences.
///
/// Blank lines at either end are left out. Nothing is made of nothing.
pub(crate) fn pack(text: &str, section: &[Line<'_>], group: u32, context: &str, chunks: &mut Vec<Chunk>) {
    let mut open: Option<(usize, usize)> = None;
    let mut size = 0_usize;
    for (at, line) in section.iter().enumerate() {
        let length = line.text.chars().count() + 1;
        // what is left behind a cut may still be too much with this line
        while let Some((first, last)) = open
            && size + length > MAX_CHARS
        {
            // back to the last blank line, unless that would leave a crumb
            let blank =
                (first + 1..=last).rev().find(|at| section.get(*at).is_some_and(|line| line.text.trim().is_empty()));
            let cut = blank.filter(|blank| (blank - first) * 2 > last - first).unwrap_or(last + 1);
            push(text, section.get(first..cut).unwrap_or_default(), group, context, chunks);
            open = (cut < at).then_some((cut, at - 1));
            size = section.get(cut..at).unwrap_or_default().iter().map(|line| line.text.chars().count() + 1).sum();
        }
        if length > MAX_CHARS {
            if let Some((first, last)) = open.take() {
                push(text, section.get(first..=last).unwrap_or_default(), group, context, chunks);
            }
            size = 0;
            cut_line(text, *line, group, context, chunks);
            continue;
        }
        open = Some((open.map_or(at, |(first, _)| first), at));
        size += length;
    }
    if let Some((first, last)) = open {
        push(text, section.get(first..=last).unwrap_or_default(), group, context, chunks);
    }
}

fn push(text: &str, lines: &[Line<'_>], group: u32, context: &str, chunks: &mut Vec<Chunk>) {
    let blank = |line: &&Line<'_>| line.text.trim().is_empty();
    let skip = lines.iter().take_while(blank).count();
    let keep = lines.len() - lines.iter().rev().take_while(blank).count();
    let Some(kept) = lines.get(skip..keep) else { return };
    if let (Some(first), Some(last)) = (kept.first(), kept.last()) {
        let lines = (first.number, last.number);
        chunks.push(place(text, (first.start, last.end), lines, group, context));
    }
}

/// A line that is longer than a chunk, cut behind sentences.
fn cut_line(text: &str, line: Line<'_>, group: u32, context: &str, chunks: &mut Vec<Chunk>) {
    let mut start = line.start;
    let mut size = 0_usize;
    let mut sentence: Option<usize> = None;
    let mut previous = ' ';
    for (offset, c) in line.text.char_indices() {
        let at = line.start + offset;
        if size >= MAX_CHARS {
            let cut = sentence.take().unwrap_or(at);
            chunks.push(place(text, (start, cut), (line.number, line.number), group, context));
            size = text.get(cut..at).map_or(0, |rest| rest.chars().count());
            start = cut;
        }
        size += 1;
        let after = at + c.len_utf8();
        if matches!(c, '。' | '！' | '？' | '!' | '?') || (c == ' ' && previous == '.') {
            sentence = Some(after);
        }
        previous = c;
    }
    if start < line.end {
        chunks.push(place(text, (start, line.end), (line.number, line.number), group, context));
    }
}

/// A chunk of a range.
pub(crate) fn place(text: &str, range: (usize, usize), lines: (u32, u32), group: u32, context: &str) -> Chunk {
    let (start, end) = range;
    Chunk {
        start,
        bytes: end - start,
        line: lines.0,
        end_line: lines.1,
        text: text.get(start..end).unwrap_or_default().to_owned(),
        context: context.to_owned(),
        speaker: None,
        at: None,
        group,
        important: false,
        origin: None,
    }
}

#[cfg(test)]
mod tests;
