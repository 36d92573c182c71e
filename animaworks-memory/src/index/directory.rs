//! The facts about chunks that every search needs, in memory: some fifty bytes each.

use std::collections::{BTreeMap, HashMap};

use animaworks_core::Origin;

use crate::chunk::Kind;

/// A chunk's number: its kind in the upper half, a running number in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChunkId(pub(crate) i64);

/// Chunks of one posting row; their low bits are what a posting stores.
pub(crate) const BLOCK_BITS: u32 = 13;
/// How many chunks that is.
pub(crate) const BLOCK: usize = 1 << BLOCK_BITS;

impl ChunkId {
    /// The `seq`th chunk of a kind.
    pub(crate) fn new(kind: Kind, seq: u32) -> Self {
        Self((i64::from(kind as u8) << 32) | i64::from(seq))
    }

    /// Its kind, unless the number is not one of ours.
    pub(crate) fn kind(self) -> Option<Kind> {
        Kind::from_number(self.0 >> 32)
    }

    /// Its running number.
    pub(crate) fn seq(self) -> usize {
        (self.0 & 0xFFFF_FFFF) as usize
    }

    /// The posting row it is in.
    pub(crate) fn block(self) -> i64 {
        self.0 >> BLOCK_BITS
    }

    /// Its place in that row.
    pub(crate) fn local(self) -> usize {
        (self.0 as usize) & (BLOCK - 1)
    }

    /// The chunk at a place of a row.
    pub(crate) fn at(block: i64, local: usize) -> Self {
        Self((block << BLOCK_BITS) | local as i64)
    }
}

/// The blocks that hold the chunks of a kind: from, to (exclusive).
pub(crate) fn blocks_of(kind: Kind) -> (i64, i64) {
    let first = i64::from(kind as u8) << (32 - BLOCK_BITS);
    (first, first + (1 << (32 - BLOCK_BITS)))
}

/// Where a chunk stands and what is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Doc {
    /// Its file.
    pub(crate) source: u32,
    /// Its position among the chunks of the file.
    pub(crate) ordinal: u32,
    /// Its first byte.
    pub(crate) start: u32,
    /// Its length in bytes.
    pub(crate) bytes: u32,
    /// Its first line.
    pub(crate) line: u32,
    /// Its last line.
    pub(crate) end_line: u32,
    /// A hash of what it can be found by.
    pub(crate) hash: u64,
    /// A hash of its words alone, to know the same words elsewhere.
    pub(crate) words: u32,
    /// When, in seconds since 1970.
    pub(crate) at: i64,
    /// Who speaks; 0 is nobody.
    pub(crate) speaker: u32,
    /// Where its words come from; 0 is what the file says.
    pub(crate) origin: u32,
    /// The conversation or section within its file.
    pub(crate) group: u32,
    /// Its length in terms.
    pub(crate) length: u16,
    /// What sort of words it has: [`Traits`].
    pub(crate) traits: Traits,
}

/// What sort of words a chunk has, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traits(u8);

impl Traits {
    /// Marked by its writer as important.
    pub(crate) const IMPORTANT: Self = Self(1);
    /// It asks something.
    pub(crate) const ASKS: Self = Self(2);
    /// It has a number.
    pub(crate) const NUMBER: Self = Self(4);
    /// It names a day, or says how long ago.
    pub(crate) const DATED: Self = Self(8);

    /// Adds a trait where it holds.
    pub(crate) fn with(self, one: Self, holds: bool) -> Self {
        if holds { Self(self.0 | one.0) } else { self }
    }

    /// Whether it has a trait.
    pub(crate) fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }
}

/// The length of a packed [`Doc`].
const PACKED: usize = 57;

impl Doc {
    /// The row of the database, without the file.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PACKED);
        let numbers = [
            self.ordinal,
            self.start,
            self.bytes,
            self.line,
            self.end_line,
            self.words,
            self.speaker,
            self.origin,
            self.group,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.hash.to_le_bytes());
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&u32::from(self.length).to_le_bytes());
        out.push(self.traits.0);
        out
    }

    /// Reads a row of the database.
    pub(crate) fn unpack(source: u32, row: &[u8]) -> Option<Self> {
        let word = |at: usize| row.get(at * 4..at * 4 + 4)?.try_into().ok().map(u32::from_le_bytes);
        let long = |at: usize| row.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        Some(Self {
            source,
            ordinal: word(0)?,
            start: word(1)?,
            bytes: word(2)?,
            line: word(3)?,
            end_line: word(4)?,
            words: word(5)?,
            speaker: word(6)?,
            origin: word(7)?,
            group: word(8)?,
            hash: long(36)?,
            at: long(44)? as i64,
            length: u16::try_from(word(13)?).unwrap_or(u16::MAX),
            traits: Traits(*row.get(56)?),
        })
    }
}

/// What is known about a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    /// Its memory path.
    pub(crate) path: String,
    /// What sort of memory it is.
    pub(crate) kind: Kind,
    /// Its time of change, in nanoseconds since 1970.
    pub(crate) mtime_ns: i64,
    /// Its size.
    pub(crate) size: u64,
    /// When it was last compared, in nanoseconds since 1970.
    pub(crate) checked_ns: i64,
    /// A hash of its bytes.
    pub(crate) hash: String,
    /// A hash of its last bytes, to know a log that has only grown.
    pub(crate) tail: String,
    /// How many lines it has.
    pub(crate) lines: u32,
    /// Its title.
    pub(crate) title: String,
    /// What it links to.
    pub(crate) links: Vec<String>,
    /// Where its words come from.
    pub(crate) origin: Origin,
    /// Its chunks, by their running numbers, in order.
    pub(crate) docs: Vec<u32>,
}

/// How many chunks of a kind live, and how long they are together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Living chunks.
    pub(crate) live: u64,
    /// Their lengths added up.
    pub(crate) length: u64,
}

/// Everything in memory.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The state of the database it was read from.
    pub(crate) generation: u64,
    /// The files, by number; a removed one leaves a gap.
    pub(crate) sources: Vec<Option<Source>>,
    /// The number of a file.
    by_path: BTreeMap<String, u32>,
    /// The chunks of each kind, by running number; a removed one leaves a gap.
    docs: [Vec<Option<Doc>>; Kind::ALL.len()],
    /// How much there is of each kind.
    extents: [Extent; Kind::ALL.len()],
    /// Speakers; their numbers begin at 1.
    pub(crate) speakers: Names<String>,
    /// Origins of single records; their numbers begin at 1.
    pub(crate) origins: Names<Origin>,
}

/// Values with a number.
#[derive(Debug)]
pub(crate) struct Names<T> {
    values: Vec<T>,
    numbers: HashMap<String, u32>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone> Names<T> {
    /// The number of a value that is known by `key`.
    pub(crate) fn intern(&mut self, key: &str, value: &T) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        self.values.push(value.clone());
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.numbers.insert(key.to_owned(), number);
        number
    }

    /// The number of a known value.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The value with a number.
    pub(crate) fn value(&self, number: u32) -> Option<&T> {
        self.values.get((number as usize).checked_sub(1)?)
    }

    /// All of them with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (1..).zip(&self.values)
    }
}

impl Directory {
    /// The number of a file, new or known.
    pub(crate) fn number_of(&self, path: &str) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// The file with a number.
    pub(crate) fn source(&self, number: u32) -> Option<&Source> {
        self.sources.get(number as usize)?.as_ref()
    }

    /// The file at a path.
    pub(crate) fn source_at(&self, path: &str) -> Option<&Source> {
        self.source(self.number_of(path)?)
    }

    /// Every file, in the order of their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u32, &Source)> {
        self.by_path.values().filter_map(|number| Some((*number, self.source(*number)?)))
    }

    /// A living chunk.
    pub(crate) fn doc(&self, id: ChunkId) -> Option<&Doc> {
        self.docs.get(id.kind()? as usize)?.get(id.seq())?.as_ref()
    }

    /// Where a chunk stands, for an order that does not depend on numbers.
    pub(crate) fn place_of(&self, id: ChunkId) -> Option<(&str, u32)> {
        let doc = self.doc(id)?;
        Some((self.source(doc.source)?.path.as_str(), doc.ordinal))
    }

    /// The chunk `by` places after this one in its file, if both belong together.
    pub(crate) fn neighbour(&self, id: ChunkId, by: i64) -> Option<ChunkId> {
        let doc = self.doc(id)?;
        let source = self.source(doc.source)?;
        let at = usize::try_from(i64::from(doc.ordinal) + by).ok()?;
        let other = ChunkId::new(source.kind, *source.docs.get(at)?);
        (self.doc(other)?.group == doc.group).then_some(other)
    }

    /// How much there is of some kinds.
    pub(crate) fn extent(&self, kinds: &[Kind]) -> Extent {
        kinds.iter().filter_map(|kind| self.extents.get(*kind as usize)).fold(Extent::default(), |sum, extent| Extent {
            live: sum.live + extent.live,
            length: sum.length + extent.length,
        })
    }

    /// The next running number of a kind.
    pub(crate) fn next_seq(&self, kind: Kind) -> u32 {
        self.docs.get(kind as usize).map_or(0, |docs| u32::try_from(docs.len()).unwrap_or(u32::MAX))
    }

    /// Numbers that are given out but belong to nothing any more.
    pub(crate) fn dead(&self) -> u64 {
        let given: u64 = self.docs.iter().map(|docs| docs.len() as u64).sum();
        given - self.extents.iter().map(|extent| extent.live).sum::<u64>()
    }

    /// Reserves numbers up to `next`, as the database has given them out.
    pub(crate) fn reserve(&mut self, kind: Kind, next: u32) {
        if let Some(docs) = self.docs.get_mut(kind as usize)
            && docs.len() < next as usize
        {
            docs.resize(next as usize, None);
        }
    }

    /// Puts a chunk in its place, over an older one with the same number.
    pub(crate) fn put(&mut self, id: ChunkId, doc: Doc) {
        let Some(kind) = id.kind() else { return };
        self.reserve(kind, u32::try_from(id.seq() + 1).unwrap_or(u32::MAX));
        self.take(id);
        if let (Some(docs), Some(extent)) = (self.docs.get_mut(kind as usize), self.extents.get_mut(kind as usize))
            && let Some(place) = docs.get_mut(id.seq())
        {
            extent.live += 1;
            extent.length += u64::from(doc.length);
            *place = Some(doc);
        }
    }

    /// Removes a chunk.
    pub(crate) fn take(&mut self, id: ChunkId) {
        let Some(kind) = id.kind() else { return };
        let place = self.docs.get_mut(kind as usize).and_then(|docs| docs.get_mut(id.seq()));
        if let (Some(old), Some(extent)) = (place.and_then(Option::take), self.extents.get_mut(kind as usize)) {
            extent.live -= 1;
            extent.length -= u64::from(old.length);
        }
    }

    /// Puts a file in its place.
    pub(crate) fn put_source(&mut self, number: u32, source: Source) {
        let at = number as usize;
        if self.sources.len() <= at {
            self.sources.resize(at + 1, None);
        }
        self.by_path.insert(source.path.clone(), number);
        if let Some(place) = self.sources.get_mut(at) {
            *place = Some(source);
        }
    }

    /// Removes a file and its chunks.
    pub(crate) fn take_source(&mut self, number: u32) -> Option<Source> {
        let source = self.sources.get_mut(number as usize)?.take()?;
        self.by_path.remove(&source.path);
        for seq in &source.docs {
            self.take(ChunkId::new(source.kind, *seq));
        }
        Some(source)
    }

    /// Notes that a file was looked at and is as it was.
    pub(crate) fn note_checked(&mut self, number: u32, mtime_ns: i64, checked_ns: i64) {
        if let Some(Some(source)) = self.sources.get_mut(number as usize) {
            source.mtime_ns = mtime_ns;
            source.checked_ns = checked_ns;
        }
    }

    /// Puts the chunks of every file in their order, after reading them by number.
    pub(crate) fn order_docs(&mut self) {
        for source in self.sources.iter_mut().flatten() {
            let docs = self.docs.get(source.kind as usize).map(Vec::as_slice).unwrap_or_default();
            source.docs.sort_by_key(|seq| {
                docs.get(*seq as usize).and_then(Option::as_ref).map_or(u32::MAX, |doc| doc.ordinal)
            });
        }
    }

    /// The next free number for a file.
    pub(crate) fn next_source(&self) -> u32 {
        u32::try_from(self.sources.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_reads_back_as_packed() {
        let doc = Doc {
            source: 7,
            ordinal: 1,
            start: 2,
            bytes: 3,
            line: 4,
            end_line: 5,
            hash: u64::MAX - 6,
            words: 77,
            at: -8,
            speaker: 9,
            origin: 10,
            group: 11,
            length: 12,
            traits: Traits::IMPORTANT.with(Traits::DATED, true),
        };
        assert_eq!(Doc::unpack(7, &doc.pack()), Some(doc));
        assert_eq!(Doc::unpack(7, b"short"), None);
    }

    #[test]
    fn an_id_knows_its_row() {
        let id = ChunkId::new(Kind::Users, 20_000);
        assert_eq!((id.kind(), id.seq()), (Some(Kind::Users), 20_000));
        assert_eq!(ChunkId::at(id.block(), id.local()), id);
        let (from, to) = blocks_of(Kind::Users);
        assert!((from..to).contains(&id.block()));
    }
}
