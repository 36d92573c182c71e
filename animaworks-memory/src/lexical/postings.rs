//! Posting lists: two bytes for each chunk a term occurs in.
//!
//! The upper thirteen bits are the chunk's place in its block, the lower three how
//! often the term occurs in it (seven at most; more says no more). New chunks have
//! higher numbers, so that adding to a list is appending to it.

/// How often is counted up to this.
pub(crate) const MAX_FREQUENCY: u32 = 7;

/// Adds a chunk to a list.
pub(crate) fn push(list: &mut Vec<u8>, local: usize, frequency: u32) {
    let entry = ((local as u16) << 3) | frequency.clamp(1, MAX_FREQUENCY) as u16;
    list.extend_from_slice(&entry.to_le_bytes());
}

/// Place and frequency of every entry.
pub(crate) fn entries(list: &[u8]) -> impl Iterator<Item = (usize, u32)> {
    list.as_chunks::<2>().0.iter().map(|bytes| {
        let entry = u16::from_le_bytes(*bytes);
        (usize::from(entry >> 3), u32::from(entry & 7))
    })
}

/// The list without the entries that `keep` does not want.
pub(crate) fn retain(list: &[u8], keep: impl Fn(usize) -> bool) -> Vec<u8> {
    list.as_chunks::<2>()
        .0
        .iter()
        .filter(|bytes| keep(usize::from(u16::from_le_bytes(**bytes) >> 3)))
        .flatten()
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back_as_written() {
        let mut list = Vec::new();
        for (local, frequency) in [(0, 1), (5, 3), (8191, 900)] {
            push(&mut list, local, frequency);
        }
        assert_eq!(entries(&list).collect::<Vec<_>>(), [(0, 1), (5, 3), (8191, 7)]);
        assert_eq!(entries(&retain(&list, |local| local != 5)).count(), 2);
    }
}
