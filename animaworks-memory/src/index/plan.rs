//! What a changed file means for the index: which chunks stay, which are new. Reads files, touches no database.

use std::{collections::HashMap, io::Read, path::Path};

use animaworks_core::{AnimaDir, Origin, fs::FileError};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use sha2::{Digest, Sha256};

use super::{
    directory::{ChunkId, Directory, Doc, Source, Traits},
    sources::Found,
};
use crate::{
    chunk::{self, Chunk, Page, Setting, has_extension, turn},
    text::{
        dates::{Mention, day_term, is_dated, mentions, month_term},
        normalize::fold,
        subject::{asks, has_number},
        terms::TermCounts,
    },
};

/// How a file is read: whose it is and in which zone its times are.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// The Anima's directory.
    pub(crate) dir: AnimaDir,
    /// The zone of times without an offset.
    pub(crate) zone: Tz,
}

impl Reading {
    /// The setting of a file.
    pub(crate) fn setting<'a>(&'a self, found: &'a Found) -> Setting<'a> {
        Setting {
            kind: found.kind,
            path: &found.path,
            modified: DateTime::from_timestamp_nanos(found.mtime_ns),
            zone: self.zone,
            anima: self.dir.name().as_str(),
        }
    }
}

/// What has to be written for one file.
#[derive(Debug)]
pub(crate) struct Update {
    /// The file as it will be known; its chunks are filled in when they have numbers.
    pub(crate) source: Source,
    /// Its chunks, in order.
    pub(crate) docs: Vec<Planned>,
    /// Whether the chunks that were there stay as they are and these come after them.
    pub(crate) appended: bool,
}

/// One chunk to write.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Where it stands; file, speaker and origin are filled in when they have numbers.
    pub(crate) doc: Doc,
    /// Its number, when it is in the index already.
    pub(crate) kept: Option<ChunkId>,
    /// What it can be found by, when it is new.
    pub(crate) terms: Option<TermCounts>,
    /// Who speaks.
    pub(crate) speaker: Option<String>,
    /// Where its words come from.
    pub(crate) origin: Option<Origin>,
}

/// What became of looking at a file.
#[derive(Debug)]
pub(crate) enum Look {
    /// As it was; only its time of change is new.
    Same,
    /// Changed or new.
    Changed(Box<Update>),
}

/// Whether a file needs to be read at all. A change within the same moment it was read is not missed:
/// a file that had only just been written when it was read is read again.
pub(crate) fn looks_unchanged(known: &Source, found: &Found) -> bool {
    const SETTLED_NS: i64 = 2_000_000_000;
    known.mtime_ns == found.mtime_ns
        && known.size == found.size
        && known.checked_ns.saturating_sub(known.mtime_ns) > SETTLED_NS
        && known.kind == found.kind
}

/// Reads a file and compares it with what the index knows.
///
/// # Errors
///
/// [`FileError::Io`] names the file.
pub(crate) fn look(
    reading: &Reading,
    known: Option<&Source>,
    directory: &Directory,
    found: &Found,
    now_ns: i64,
) -> Result<Look, FileError> {
    let bytes = if found.kind.is_record(&found.path) {
        fs_err::read(&found.file).map_err(|error| FileError::io("read", &found.file, error))?
    } else {
        page_bytes(&found.file)?
    };
    let hash = hex(&Sha256::digest(&bytes), 16);
    let setting = reading.setting(found);
    if let Some(known) = known
        && known.hash == hash
        && known.kind == found.kind
    {
        return Ok(Look::Same);
    }
    let grown = known.and_then(|known| grown(known, directory, &bytes));
    let record = found.kind.is_record(&found.path);
    let page = match (record, grown) {
        (true, Some(tail)) => Page { chunks: turn::lines(setting, &bytes, tail), ..Page::default() },
        (true, None) if has_extension(&found.path, "json") => {
            Page { chunks: turn::document(setting, &text_of(&bytes)), ..Page::default() }
        }
        (true, None) => Page { chunks: turn::lines(setting, &bytes, turn::Tail::default()), ..Page::default() },
        (false, _) => chunk::cut(setting, &text_of(&bytes)),
    };
    let appended = record && grown.is_some();
    let offset = if appended { known.map_or(0, |known| known.docs.len()) } else { 0 };
    // each chunk that was there can be kept once
    let mut before: HashMap<u64, Vec<ChunkId>> = HashMap::new();
    if let Some(known) = known.filter(|known| !appended && known.kind == found.kind) {
        for seq in known.docs.iter().rev() {
            let id = ChunkId::new(known.kind, *seq);
            if let Some(doc) = directory.doc(id) {
                before.entry(doc.hash).or_default().push(id);
            }
        }
    }
    let docs = page.chunks.iter().enumerate().map(|(at, chunk)| {
        let mut planned = plan(chunk, reading.zone);
        planned.doc.ordinal = u32::try_from(offset + at).unwrap_or(u32::MAX);
        planned.kept = before.get_mut(&planned.doc.hash).and_then(Vec::pop);
        if planned.kept.is_none() {
            planned.terms = Some(terms_of(chunk, reading.zone));
        }
        planned
    });
    let docs = docs.collect();
    let lines = bytes.split(|byte| *byte == b'\n').count() - 1;
    let source = Source {
        path: found.path.clone(),
        kind: found.kind,
        mtime_ns: found.mtime_ns,
        size: if record { bytes.len() as u64 } else { found.size },
        checked_ns: now_ns,
        hash,
        tail: tail_of(&bytes, bytes.len()),
        lines: u32::try_from(lines).unwrap_or(u32::MAX),
        title: page.title,
        links: page.links,
        origin: page.origin,
        docs: Vec::new(),
    };
    Ok(Look::Changed(Box::new(Update { source, docs, appended })))
}

/// So much of a page is searched: nobody writes more, and a file that is more was put there by mistake.
pub(crate) const MAX_PAGE: u64 = 4 << 20;

/// The bytes of a page, of a very long one the lines of its beginning; the same rule as when it is read for a hit.
///
/// # Errors
///
/// [`FileError::Io`] names the file.
pub(crate) fn page_bytes(file: &Path) -> Result<Vec<u8>, FileError> {
    let failed = |error| FileError::io("read", file, error);
    let mut bytes = Vec::new();
    fs_err::File::open(file).map_err(failed)?.take(MAX_PAGE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_PAGE {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        bytes.truncate(end);
    }
    Ok(bytes)
}

/// The text of a file whatever an editor did to it; the same rule as when it is read for a hit.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

/// Where a log that has only grown goes on.
fn grown(known: &Source, directory: &Directory, bytes: &[u8]) -> Option<turn::Tail> {
    let size = usize::try_from(known.size).ok()?;
    if !has_extension(&known.path, "jsonl") || size == 0 || bytes.len() <= size || bytes.get(size - 1) != Some(&b'\n') {
        return None;
    }
    if tail_of(bytes, size) != known.tail {
        return None;
    }
    let last = known.docs.last().and_then(|seq| directory.doc(ChunkId::new(known.kind, *seq)));
    Some(turn::Tail {
        from: size,
        lines: known.lines,
        group: last.map_or(0, |doc| doc.group),
        last: last.and_then(|doc| DateTime::<Utc>::from_timestamp(doc.at, 0)),
    })
}

/// A hash of the last kilobyte before `end`.
fn tail_of(bytes: &[u8], end: usize) -> String {
    let from = end.saturating_sub(1024);
    hex(&Sha256::digest(bytes.get(from..end).unwrap_or_default()), 8)
}

fn hex(bytes: &[u8], count: usize) -> String {
    bytes.iter().take(count).map(|byte| format!("{byte:02x}")).collect()
}

fn plan(chunk: &Chunk, zone: Tz) -> Planned {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let doc = Doc {
        source: 0,
        ordinal: 0,
        start: number(chunk.start),
        bytes: number(chunk.bytes),
        line: chunk.line,
        end_line: chunk.end_line,
        hash: identity(chunk, zone),
        words: words(&chunk.text),
        at: chunk.at.map_or(0, |at| at.timestamp()),
        speaker: 0,
        origin: 0,
        group: chunk.group,
        length: 0,
        traits: traits(chunk, zone),
    };
    Planned { doc, kept: None, terms: None, speaker: chunk.speaker.clone(), origin: chunk.origin.clone() }
}

/// What sort of words a chunk has.
fn traits(chunk: &Chunk, zone: Tz) -> Traits {
    let said = chunk.said();
    let day = chunk.at.map(|at| at.with_timezone(&zone).date_naive());
    Traits::default()
        .with(Traits::IMPORTANT, chunk.important)
        .with(Traits::ASKS, asks(said))
        .with(Traits::NUMBER, has_number(said))
        .with(Traits::DATED, is_dated(said) || !mentions(said, day).is_empty())
}

/// A hash of everything a chunk is found by. Where it stands is not part of it.
fn identity(chunk: &Chunk, zone: Tz) -> u64 {
    let mut hash = Sha256::new();
    // only the day becomes a term, and a touched file is not a changed one
    let day = chunk.at.map_or(String::new(), |at| at.with_timezone(&zone).date_naive().to_string());
    for part in [chunk.text.as_str(), &chunk.context, chunk.speaker.as_deref().unwrap_or_default(), &day] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    leading(&hash.finalize())
}

fn leading(digest: &[u8]) -> u64 {
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A hash of the words of a text, spelling and spacing aside.
pub(crate) fn words(text: &str) -> u32 {
    let folded: String = fold(text).chars().filter(|c| c.is_alphanumeric()).collect();
    (leading(&Sha256::digest(folded.as_bytes())) & 0xFFFF_FFFF) as u32
}

/// Whether a text is what a chunk with this hash of its words said.
pub(crate) fn is_same_words(text: &str, hash: u32) -> bool {
    words(text) == hash
}

/// Everything a chunk can be found by.
fn terms_of(chunk: &Chunk, zone: Tz) -> TermCounts {
    let mut counts = TermCounts::default();
    counts.add(chunk.said());
    let mut context = TermCounts::default();
    context.add(&chunk.context);
    if let Some(speaker) = &chunk.speaker {
        context.add(speaker);
    }
    // a heading is part of what is found, but a long one does not make every section longer
    for (term, count) in context.counts {
        *counts.counts.entry(term).or_insert(0) += count;
    }
    counts.length += context.length.min(8);
    let day = chunk.at.map(|at| at.with_timezone(&zone).date_naive());
    if let Some(day) = day {
        counts.add_date(&day_term(day));
        counts.add_date(&month_term(day));
    }
    for mention in mentions(chunk.said(), day) {
        counts.add_date(&mention.term());
        if let Mention::Day(day) = mention {
            counts.add_date(&month_term(day));
        }
    }
    counts
}
