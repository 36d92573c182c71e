//! A byte trie in one flat piece of memory, level by level, so that it can be mapped.
//!
//! Layout: number of nodes `n` as u32, then `n + 1` u32 (where the children of a node begin; they are neighbours),
//! `n` u32 (the value, [`NONE`] for nodes that end no key), `n` bytes (the label that leads to the node).

use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

/// A trie to look up in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trie<'a> {
    first: &'a [u8],
    values: &'a [u8],
    labels: &'a [u8],
    nodes: usize,
}

impl<'a> Trie<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let nodes = u32_at(bytes, 0) as usize;
        let part = |from: usize, len: usize| bytes.get(from..from + len).unwrap_or_default();
        let first = part(4, (nodes + 1) * 4);
        let values = part(4 + (nodes + 1) * 4, nodes * 4);
        let labels = part(4 + (nodes + 1) * 4 + nodes * 4, nodes);
        Self { first, values, labels, nodes }
    }

    /// Whether lengths agree and children lie behind their parents: looking up then ends and stays inside.
    pub(super) fn is_sound(&self) -> bool {
        self.nodes > 0 && self.labels.len() == self.nodes && u32_at(self.first, self.nodes) as usize == self.nodes
    }

    /// All keys that `text` begins with, shortest first: length and value.
    pub(super) fn prefixes(self, text: &'a [u8]) -> impl Iterator<Item = (usize, u32)> + 'a {
        let mut node = 0;
        let mut depth = 0;
        std::iter::from_fn(move || {
            loop {
                node = self.child(node, *text.get(depth)?)?;
                depth += 1;
                let value = u32_at(self.values, node);
                if value != NONE {
                    return Some((depth, value));
                }
            }
        })
    }

    fn children(&self, node: usize) -> (usize, usize) {
        (u32_at(self.first, node) as usize, u32_at(self.first, node + 1) as usize)
    }

    fn child(&self, node: usize, label: u8) -> Option<usize> {
        let (first, end) = self.children(node);
        let place = self.labels.get(first..end)?.binary_search(&label).ok()?;
        Some(first + place)
    }

    /// All keys with their values, in order of bytes.
    #[cfg(test)]
    pub(super) fn entries(&self) -> Vec<(Vec<u8>, u32)> {
        fn walk(trie: &Trie<'_>, node: usize, key: &mut Vec<u8>, out: &mut Vec<(Vec<u8>, u32)>) {
            let value = u32_at(trie.values, node);
            if value != NONE {
                out.push((key.clone(), value));
            }
            let (first, end) = trie.children(node);
            for child in first..end {
                key.push(trie.labels[child]);
                walk(trie, child, key, out);
                key.pop();
            }
        }
        let mut out = Vec::new();
        walk(self, 0, &mut Vec::new(), &mut out);
        out
    }
}

/// Builds the bytes of a trie; of equal keys the first one counts, empty keys do not.
pub(super) fn build(mut entries: Vec<(Vec<u8>, u32)>) -> Vec<u8> {
    entries.retain(|(key, _)| !key.is_empty());
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries.dedup_by(|later, earlier| later.0 == earlier.0);
    let (mut first, mut values, mut labels) = (Vec::new(), vec![NONE], vec![0_u8]);
    let mut queue = VecDeque::from([(0, entries.len(), 0)]);
    while let Some((mut from, to, depth)) = queue.pop_front() {
        first.push(labels.len() as u32);
        // the key that ends at this node sorts first
        if depth > 0 && from < to && entries[from].0.len() == depth {
            from += 1;
        }
        while from < to {
            let label = entries[from].0[depth];
            let end = from + entries[from..to].partition_point(|(key, _)| key[depth] == label);
            labels.push(label);
            let ends_here = entries[from].0.len() == depth + 1;
            values.push(if ends_here { entries[from].1 } else { NONE });
            queue.push_back((from, end, depth + 1));
            from = end;
        }
    }
    first.push(labels.len() as u32);
    let mut bytes = (labels.len() as u32).to_le_bytes().to_vec();
    bytes.extend(first.iter().chain(&values).flat_map(|word| word.to_le_bytes()));
    bytes.extend_from_slice(&labels);
    bytes
}

/// The u32 number `at` of some bytes; 0 behind their end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at * 4..at * 4 + 4).and_then(|part| part.first_chunk()).map_or(0, |part| u32::from_le_bytes(*part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_every_key_that_a_text_begins_with(
            keys in proptest::collection::vec("[ab鍵]{1,4}", 0..20), text in "[abc鍵]{0,6}",
        ) {
            let mut model = BTreeMap::new();
            let mut entries = Vec::new();
            for (value, key) in keys.into_iter().enumerate() {
                model.entry(key.clone().into_bytes()).or_insert(value as u32);
                entries.push((key.into_bytes(), value as u32));
            }
            let bytes = build(entries);
            let trie = Trie::new(&bytes);
            prop_assert!(trie.is_sound());
            prop_assert_eq!(trie.entries(), model.clone().into_iter().collect::<Vec<_>>());
            let found: Vec<_> = trie.prefixes(text.as_bytes()).collect();
            let expected: Vec<_> = (1..=text.len())
                .filter_map(|len| model.get(&text.as_bytes()[..len]).map(|value| (len, *value)))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
