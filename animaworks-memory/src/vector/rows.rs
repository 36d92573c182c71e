//! A set of row ids: which rows a search may return.

/// Rows per block.
const BLOCK: u64 = 1 << 16;
/// Words per block.
const WORDS: usize = (BLOCK / 64) as usize;

/// A set of row ids, cheap where ids are dense (8 KB per started 65,536).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet {
    // sorted by block number
    blocks: Vec<(u64, Box<[u64; WORDS]>)>,
}

impl RowSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row.
    pub fn insert(&mut self, id: u64) {
        let block = id / BLOCK;
        let place = match self.blocks.binary_search_by_key(&block, |(number, _)| *number) {
            Ok(place) => place,
            Err(place) => {
                self.blocks.insert(place, (block, Box::new([0; WORDS])));
                place
            }
        };
        let within = id % BLOCK;
        self.blocks[place].1[(within / 64) as usize] |= 1 << (within % 64);
    }

    /// Whether a row is in it.
    pub fn contains(&self, id: u64) -> bool {
        let block = id / BLOCK;
        let Ok(place) = self.blocks.binary_search_by_key(&block, |(number, _)| *number) else {
            return false;
        };
        let within = id % BLOCK;
        self.blocks[place].1[(within / 64) as usize] >> (within % 64) & 1 == 1
    }

    /// How many rows are in it.
    pub fn len(&self) -> usize {
        self.blocks.iter().flat_map(|(_, words)| words.iter()).map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|(_, words)| words.iter().all(|word| *word == 0))
    }

    /// All rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().flat_map(|(block, words)| {
            words.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(move |(at, word)| {
                (0..64_u64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| block * BLOCK + at as u64 * 64 + bit)
            })
        })
    }
}

impl FromIterator<u64> for RowSet {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut set = Self::new();
        for id in ids {
            set.insert(id);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(ids in proptest::collection::vec(prop_oneof![0..200_000_u64, any::<u64>()], 0..40), probe: u64) {
            let set: RowSet = ids.iter().copied().collect();
            let model: BTreeSet<u64> = ids.into_iter().collect();
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert_eq!(set.contains(probe), model.contains(&probe));
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
        }
    }
}
