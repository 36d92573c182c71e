//! Cutting text into the model's tokens: a Unigram tokeniser over a mapped file.
//!
//! It does what the `tokenizers` crate does for XLM-R models, token for token (a test says so on every bench text and
//! on generated ones), but opens in a millisecond and keeps nothing in memory: vocabulary and normalisation are tries
//! in one mapped file, built once when weights are imported. Names of control tokens such as `<s>` in a text are
//! text, never control.

mod build;
mod trie;

pub(crate) use build::TokenizerParts;

use std::path::{Path, PathBuf};

use unicode_segmentation::UnicodeSegmentation;

use super::EmbedError;
use crate::mapped::Mapped;
use trie::{Trie, u32_at};

const MAGIC: &[u8; 8] = b"AWTOK001";
/// Magic, min score, bos, eos, unk, flags, and four section lengths.
const HEADER: usize = 8 + 8 + 4 * 4 + 4 * 8;
/// Marks the beginning of a word.
const META: char = '\u{2581}';
/// What an unknown character costs beyond the rarest piece.
const UNKNOWN_PENALTY: f64 = 10.0;
/// A grapheme of at most this many bytes is looked up as a whole before its characters are.
const GRAPHEME_BYTES: usize = 5;

/// A mapped Unigram tokeniser.
#[derive(Debug)]
pub struct Tokenizer {
    map: Mapped,
    path: PathBuf,
    sections: [(usize, usize); 4],
    min_score: f64,
    bos: u32,
    eos: u32,
    unknown: u32,
    flags: Flags,
}

/// How words are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Text is cut at white space, which then is gone; otherwise spaces stay and begin words.
    pub(crate) split_whitespace: bool,
    /// Runs of spaces count as one.
    pub(crate) collapse_spaces: bool,
}

// the sections of the file, in order
const VOCABULARY: usize = 0;
const SCORES: usize = 1;
const CHARSMAP: usize = 2;
const REPLACEMENTS: usize = 3;

impl Tokenizer {
    /// Maps a tokeniser file.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Corrupt`] names the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<Self, EmbedError> {
        let corrupt = |problem: &str| EmbedError::Corrupt { path: path.to_owned(), problem: problem.to_owned() };
        let map = Mapped::open(path)?;
        if map.len() < HEADER || !map.starts_with(MAGIC) {
            return Err(corrupt("not a tokeniser of this version"));
        }
        let min_score = f64::from_bits(u64_at(&map, 8));
        let word = |at: usize| u32_at(&map[16..], at);
        let mut at = HEADER;
        let mut sections = [(0, 0); 4];
        for (number, section) in sections.iter_mut().enumerate() {
            let len = usize::try_from(u64_at(&map, 32 + number * 8)).unwrap_or(usize::MAX);
            let end = at.checked_add(len).filter(|end| *end <= map.len()).ok_or_else(|| corrupt("it is cut short"))?;
            *section = (at, end);
            at = end;
        }
        let bits = word(3);
        let flags = Flags { split_whitespace: bits & 1 == 1, collapse_spaces: bits & 2 == 2 };
        let (bos, eos, unknown) = (word(0), word(1), word(2));
        let tokenizer = Self { path: path.to_owned(), sections, min_score, bos, eos, unknown, flags, map };
        for section in [VOCABULARY, CHARSMAP] {
            if !tokenizer.trie(section).is_sound() {
                return Err(corrupt("its tries are broken"));
            }
        }
        Ok(tokenizer)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ids of the tokens of a text between the model's begin and end tokens, at most `limit` in all (at least 2).
    pub fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut ids = vec![self.bos];
        let normal = self.normalise(text);
        let mut lattice = Lattice::default();
        for_each_word(&normal, self.flags, |word| {
            if ids.len() < limit {
                self.segment(word, &mut lattice, &mut ids);
            }
        });
        ids.truncate(limit.saturating_sub(1).max(1));
        ids.push(self.eos);
        ids
    }

    fn section(&self, number: usize) -> &[u8] {
        let (start, end) = self.sections[number];
        &self.map[start..end]
    }

    fn trie(&self, section: usize) -> Trie<'_> {
        Trie::new(self.section(section))
    }

    /// The text as the model's normaliser leaves it.
    fn normalise(&self, text: &str) -> String {
        let charsmap = self.trie(CHARSMAP);
        let mut out = String::with_capacity(text.len() + 16);
        let mut push = |part: &str| {
            if self.flags.collapse_spaces {
                for letter in part.chars() {
                    if letter != ' ' || !out.ends_with(' ') {
                        out.push(letter);
                    }
                }
            } else {
                out.push_str(part);
            }
        };
        for grapheme in text.graphemes(true) {
            if grapheme.len() <= GRAPHEME_BYTES
                && let Some(replacement) = self.replacement(charsmap, grapheme)
            {
                push(replacement);
                continue;
            }
            let mut buffer = [0; 4];
            for letter in grapheme.chars() {
                let letter = &*letter.encode_utf8(&mut buffer);
                push(self.replacement(charsmap, letter).unwrap_or(letter));
            }
        }
        out
    }

    /// What stands for the shortest mapped beginning of `part`.
    fn replacement(&self, charsmap: Trie<'_>, part: &str) -> Option<&str> {
        let (_, value) = charsmap.prefixes(part.as_bytes()).next()?;
        let (start, len) = ((value >> 8) as usize, (value & 0xff) as usize);
        let bytes = self.section(REPLACEMENTS).get(start..start + len)?;
        std::str::from_utf8(bytes).ok()
    }

    /// The best path through one word.
    fn segment(&self, word: &str, lattice: &mut Lattice, ids: &mut Vec<u32>) {
        let vocabulary = self.trie(VOCABULARY);
        let scores = self.section(SCORES);
        let unknown_score = self.min_score - UNKNOWN_PENALTY;
        lattice.reset(word.len());
        for (start, letter) in word.char_indices() {
            let so_far = lattice.nodes[start].score;
            let mut has_single = false;
            for (len, id) in vocabulary.prefixes(&word.as_bytes()[start..]) {
                lattice.offer(start, start + len, id, so_far + f64::from_bits(u64_at(scores, id as usize * 8)));
                has_single |= len == letter.len_utf8();
            }
            if !has_single {
                lattice.offer(start, start + letter.len_utf8(), self.unknown, so_far + unknown_score);
            }
        }
        let begin = ids.len();
        let mut end = word.len();
        while end > 0 {
            let node = lattice.nodes[end];
            // neighbouring unknown characters are one token
            if node.id != self.unknown || ids.len() == begin || ids.last() != Some(&self.unknown) {
                ids.push(node.id);
            }
            // every position of a character can be reached, so this ends at 0
            end = node.start.unwrap_or(0);
        }
        ids[begin..].reverse();
    }
}

/// Finds the words of a normalised text: each begins with the mark and holds no other.
fn for_each_word(normal: &str, flags: Flags, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut begin = |part: &str| {
        if part.is_empty() {
            return;
        }
        if !part.starts_with(META) {
            word.push(META);
        }
        for letter in part.chars() {
            if letter == META && !word.is_empty() {
                each(&word);
                word.clear();
            }
            word.push(letter);
        }
        each(&word);
        word.clear();
    };
    if flags.split_whitespace {
        normal.split(char::is_whitespace).for_each(&mut begin);
    } else {
        begin(&normal.replace(' ', &META.to_string()));
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    score: f64,
    start: Option<usize>,
    id: u32,
}

#[derive(Debug, Default)]
struct Lattice {
    nodes: Vec<Node>,
}

impl Lattice {
    fn reset(&mut self, len: usize) {
        self.nodes.clear();
        self.nodes.resize(len + 1, Node::default());
    }

    fn offer(&mut self, start: usize, end: usize, id: u32, score: f64) {
        let node = &mut self.nodes[end];
        if node.start.is_none() || score > node.score {
            *node = Node { score, start: Some(start), id };
        }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|part| part.first_chunk()).map_or(0, |part| u64::from_le_bytes(*part))
}

#[cfg(test)]
mod tests;
