//! Files cut into the pieces that are found: sections, and parts of long ones.

use chrono::NaiveDate;
use sha2::{Digest, Sha256};

use super::block::date_in;
use crate::chunk::markdown::{Fence, heading};

/// Longer sections are cut, in characters.
const MAX_CHARS: usize = 1_500;
/// Lines that two neighbouring parts share.
const OVERLAP: usize = 2;
/// A longer line is not repeated, in characters.
const OVERLAP_LINE: usize = 200;

/// One piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) heading: String,
    pub(super) content: String,
    pub(super) start_line: i64,
    pub(super) end_line: i64,
    pub(super) hash: String,
    pub(super) date: Option<NaiveDate>,
}

/// The pieces of a file. A piece without a date of its own has that of the file's name.
pub(super) fn pieces(source: &str, text: &str) -> Vec<Piece> {
    let named = date_in(source);
    let mut pieces = Vec::new();
    let mut fence = Fence::default();
    let mut section: Vec<(usize, &str)> = Vec::new();
    let mut title = String::new();
    for (at, line) in text.lines().enumerate() {
        if !fence.inside(line)
            && let Some((_, found)) = heading(line)
        {
            close(&title, &section, named, &mut pieces);
            section.clear();
            found.clone_into(&mut title);
        }
        section.push((at + 1, line));
    }
    close(&title, &section, named, &mut pieces);
    pieces
}

fn close(title: &str, section: &[(usize, &str)], named: Option<NaiveDate>, pieces: &mut Vec<Piece>) {
    let whole: Vec<&str> = section.iter().map(|(_, line)| *line).collect();
    let body = whole.get(usize::from(!title.is_empty())..).unwrap_or_default().join("\n");
    if without_comments(&body).trim().chars().count() < 2 {
        return;
    }
    let date = date_in(title).or(named);
    let mut push = |lines: &[(usize, &str)]| {
        let text: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
        let content = text.join("\n").trim_end().to_owned();
        if let (Some((first, _)), Some((last, _))) = (lines.first(), lines.last()) {
            let hash = Sha256::digest(content.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let (start_line, end_line) = (*first as i64, *last as i64);
            pieces.push(Piece { heading: title.to_owned(), content, start_line, end_line, hash, date });
        }
    };
    if whole.iter().map(|line| line.chars().count() + 1).sum::<usize>() <= MAX_CHARS {
        push(section);
        return;
    }
    for part in parts(section) {
        push(&part);
    }
}

/// A long section in parts: cut before a blank line if one is near, else between lines, else between sentences.
fn parts<'a>(section: &[(usize, &'a str)]) -> Vec<Vec<(usize, &'a str)>> {
    let lines: Vec<(usize, &str)> =
        section.iter().flat_map(|(at, line)| sentences(line).into_iter().map(|part| (*at, part))).collect();
    let mut parts = Vec::new();
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut length = 0;
    for line in lines {
        let more = line.1.chars().count() + 1;
        if length + more > MAX_CHARS && !open.is_empty() {
            let cut = open.iter().rposition(|(_, line)| line.trim().is_empty()).filter(|at| *at > open.len() / 2);
            let rest = open.split_off(cut.unwrap_or(open.len()));
            let overlap = if rest.is_empty() { open.get(open.len().saturating_sub(OVERLAP)..) } else { None };
            let mut next: Vec<_> = overlap.unwrap_or_default().to_vec();
            next.retain(|(_, line)| line.chars().count() <= OVERLAP_LINE);
            next.extend(rest);
            parts.push(std::mem::replace(&mut open, next));
            length = open.iter().map(|(_, line)| line.chars().count() + 1).sum();
        }
        open.push(line);
        length += more;
    }
    parts.push(open);
    parts
}

/// A line that is too long, cut after the ends of sentences, or anywhere.
fn sentences(line: &str) -> Vec<&str> {
    if line.chars().count() <= MAX_CHARS {
        return vec![line];
    }
    let mut parts = Vec::new();
    let mut rest = line;
    while rest.chars().count() > MAX_CHARS {
        let mut cut = None;
        let mut limit = rest.len();
        for (n, (at, c)) in rest.char_indices().enumerate() {
            if n == MAX_CHARS - 1 {
                limit = at;
                break;
            }
            let after = at + c.len_utf8();
            let ends = match c {
                '。' | '！' | '？' | '；' | '…' => true,
                '.' | '!' | '?' | ';' => {
                    rest.get(after..).is_some_and(|next| !next.starts_with(|c: char| c.is_ascii() && c != ' '))
                }
                _ => false,
            };
            if ends {
                cut = Some(after);
            }
        }
        let (part, behind) = rest.split_at(cut.unwrap_or(limit));
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    parts
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, behind)| behind);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_one_piece_and_a_long_one_several() {
        let text = "# 題\n\n## 2026-06-11 決定\n毎月25日締め。\n\n```\n## not a heading\n```\n## 空\n<!-- x -->\n";
        let found = pieces("a.md", text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].start_line, found[0].end_line), (3, 8));
        assert_eq!(found[0].date, "2026-06-11".parse().ok());
        assert_eq!(found[0].hash.len(), 16);
        let long = format!("# t\n{}", "会議は火曜に動かした。次の回は未定。\n".repeat(300));
        let found = pieces("2026-03-31.md", &long);
        assert!(found.len() > 3 && found.iter().all(|piece| piece.content.chars().count() <= MAX_CHARS));
        assert_eq!(found[0].date, "2026-03-31".parse().ok());
        let one_line = "鍵は棚。".repeat(1000);
        let found = pieces("a.md", &one_line);
        assert_eq!(found.iter().map(|piece| piece.content.chars().count()).sum::<usize>(), 4000);
    }
}
