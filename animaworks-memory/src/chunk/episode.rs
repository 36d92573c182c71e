//! Episodes cut into entries, and entries into what was said where they are a conversation.
//!
//! An entry is a section `## 14:05 — title`. Lines such as `- [14:06] tanaka: …` or
//! `**[14:06] tanaka:** …` are turns of their own: which turn it was decides recall.

use super::{Chunk, Line, Setting, lines, markdown, pack, place};

/// The entries and turns of a day.
pub(crate) fn chunks(setting: Setting<'_>, text: &str, body: usize) -> Vec<Chunk> {
    let all: Vec<Line<'_>> = lines(text, body).collect();
    let mut starts = markdown::section_starts(&all);
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let day = setting.day();
    let mut chunks = Vec::new();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(all.len());
        let section = all.get(start..end).unwrap_or_default();
        let head = section.first().and_then(|line| markdown::heading(line.text));
        let says_something =
            section.iter().any(|line| !line.text.trim().is_empty() && markdown::heading(line.text).is_none());
        if !says_something && !matches!(head, Some((2, _))) {
            continue;
        }
        let (time, context) = match head {
            Some((2, title)) => {
                entry_time(title).map_or((None, title), |(hour, minute, rest)| (Some((hour, minute)), rest))
            }
            _ => (None, ""),
        };
        let group = u32::try_from(at).unwrap_or(u32::MAX);
        let before = chunks.len();
        entry(text, section, group, context, &mut chunks);
        for chunk in chunks.iter_mut().skip(before) {
            let own =
                chunk.speaker.is_some().then(|| turn_head(chunk.text.lines().next().unwrap_or_default())).flatten();
            let own = own.and_then(|turn| turn.time).or(time);
            chunk.at = day.zip(own).and_then(|(day, (hour, minute))| setting.moment(day, hour, minute));
        }
    }
    chunks
}

/// One entry: its turns, or itself.
fn entry(text: &str, section: &[Line<'_>], group: u32, context: &str, chunks: &mut Vec<Chunk>) {
    let turns: Vec<usize> =
        section.iter().enumerate().filter(|(_, line)| turn_head(line.text).is_some()).map(|(at, _)| at).collect();
    let Some(&first) = turns.first() else {
        pack(text, section, group, context, chunks);
        return;
    };
    let before = section.get(..first).unwrap_or_default();
    if before.iter().any(|line| !line.text.trim().is_empty() && markdown::heading(line.text).is_none()) {
        pack(text, before, group, context, chunks);
    }
    for (at, &start) in turns.iter().enumerate() {
        let end = turns.get(at + 1).copied().unwrap_or(section.len());
        let lines = section.get(start..end).unwrap_or_default();
        let speaker = lines.first().and_then(|line| turn_head(line.text)).map(|turn| turn.speaker.to_owned());
        let from = chunks.len();
        let lines = match lines.iter().rposition(|line| !line.text.trim().is_empty()) {
            Some(last) => lines.get(..=last).unwrap_or_default(),
            None => continue,
        };
        if let (Some(head), Some(tail)) = (lines.first(), lines.last())
            && tail.end - head.start <= super::MAX_CHARS
        {
            chunks.push(place(text, (head.start, tail.end), (head.number, tail.number), group, context));
        } else {
            pack(text, lines, group, context, chunks);
        }
        for chunk in chunks.iter_mut().skip(from) {
            chunk.speaker.clone_from(&speaker);
        }
    }
}

/// `14:05 — title` as hour, minute and title.
fn entry_time(title: &str) -> Option<(u32, u32, &str)> {
    let (hour, rest) = title.split_once(':')?;
    let minute = rest.get(..2)?;
    let (hour, minute) = (hour.trim().parse().ok()?, minute.parse().ok()?);
    let rest = rest.get(2..)?.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '—' | '–' | '-' | ':'));
    (hour < 24 && minute < 60).then_some((hour, minute, rest))
}

/// What a turn says, without its mark, its moment and its speaker; other texts are what they are.
pub(crate) fn said(text: &str) -> &str {
    let head = turn_head(text.lines().next().unwrap_or_default()).map_or(0, |turn| turn.words);
    text.get(head..).unwrap_or(text).trim()
}

/// How a turn begins.
struct Turn<'a> {
    time: Option<(u32, u32)>,
    speaker: &'a str,
    /// The byte of the line its words begin at.
    words: usize,
}

/// Reads `- [14:06] tanaka: …`, `[14:06] tanaka: …` and `**[14:06] tanaka:** …`.
fn turn_head(line: &str) -> Option<Turn<'_>> {
    let whole = line.len();
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let line = line.trim_start_matches("**");
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    let digits = stamp.chars().filter(char::is_ascii_digit).count();
    if digits < 3 || stamp.chars().count() > 32 {
        return None;
    }
    let colon = rest.find([':', '：'])?;
    let words = rest.get(colon..)?.trim_start_matches([':', '：']).trim_start_matches("**").len();
    let speaker = rest.get(..colon)?.trim().trim_end_matches("**").trim();
    let short = (1..=40).contains(&speaker.chars().count());
    let clock = stamp.rsplit([' ', 'T']).next().unwrap_or(stamp);
    let time = entry_time(clock).map(|(hour, minute, _)| (hour, minute));
    short.then_some(Turn { time, speaker, words: whole - words })
}
