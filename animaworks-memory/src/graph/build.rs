//! The graph of pages: an edge for every wikilink, and for every pair that is alike.

use std::collections::{BTreeMap, HashMap};

use petgraph::graph::{DiGraph, NodeIndex};

use crate::{chunk::Kind, index::directory::Directory};

/// Pages and their links.
#[derive(Debug, Default)]
pub(crate) struct PageGraph {
    graph: DiGraph<u32, f32>,
    nodes: HashMap<u32, NodeIndex>,
}

impl PageGraph {
    /// Builds it from what the index knows of knowledge and episodes. A page that links to itself, or to
    /// nothing there is, adds no edge.
    pub(crate) fn build(directory: &Directory) -> Self {
        let mut this = Self::default();
        let mut by_id: BTreeMap<&str, u32> = BTreeMap::new();
        let mut by_stem: BTreeMap<&str, u32> = BTreeMap::new();
        let pages: Vec<_> = directory
            .files()
            .filter(|(_, source)| matches!(source.kind, Kind::Knowledge | Kind::Episodes | Kind::CommonKnowledge))
            .collect();
        for (number, source) in &pages {
            this.nodes.insert(*number, this.graph.add_node(*number));
            let page = source.path.strip_suffix(".md").unwrap_or(&source.path);
            by_id.insert(page, *number);
            if let Some((_, rest)) = page.split_once('/') {
                by_id.entry(rest).or_insert(*number);
            }
            by_stem.entry(page.rsplit('/').next().unwrap_or(page)).or_insert(*number);
        }
        for (number, source) in &pages {
            for link in &source.links {
                let target = by_id.get(link.as_str()).or_else(|| by_stem.get(link.as_str())).copied();
                if let Some(target) = target.filter(|target| target != number) {
                    this.link(*number, target, 1.0);
                }
            }
        }
        this
    }

    fn link(&mut self, from: u32, to: u32, weight: f32) {
        if let (Some(from), Some(to)) = (self.nodes.get(&from), self.nodes.get(&to))
            && self.graph.find_edge(*from, *to).is_none()
        {
            self.graph.add_edge(*from, *to, weight);
        }
    }

    /// Whether it has no links at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.graph.edge_count() == 0
    }

    /// Pages that come to mind with some others, best first, with how strongly; at most `hops` links away.
    pub(crate) fn around(&self, seeds: &[u32], hops: usize) -> Vec<(u32, f32)> {
        let seeds: Vec<NodeIndex> = seeds.iter().filter_map(|seed| self.nodes.get(seed)).copied().collect();
        let Some(ranks) = super::pagerank::personalised(&self.graph, &seeds) else { return Vec::new() };
        let near = self.within(&seeds, hops);
        let mut found: Vec<(u32, f32)> = near
            .into_iter()
            .filter(|node| !seeds.contains(node))
            .filter_map(|node| Some((*self.graph.node_weight(node)?, *ranks.get(node.index())?)))
            .filter(|(_, rank)| *rank > 0.001)
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }

    fn within(&self, seeds: &[NodeIndex], hops: usize) -> Vec<NodeIndex> {
        let mut seen: Vec<NodeIndex> = seeds.to_vec();
        let mut edge: Vec<NodeIndex> = seeds.to_vec();
        for _ in 0..hops {
            let mut next = Vec::new();
            for node in edge {
                for neighbour in self.graph.neighbors(node) {
                    if !seen.contains(&neighbour) {
                        seen.push(neighbour);
                        next.push(neighbour);
                    }
                }
            }
            edge = next;
        }
        seen
    }
}
