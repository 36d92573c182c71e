//! Personalised PageRank: where a walk from the seeds tends to be.

use petgraph::{
    graph::{DiGraph, NodeIndex},
    visit::EdgeRef,
};

/// The chance to go on walking rather than to start again at a seed.
const DAMPING: f32 = 0.85;
/// Walks that have not settled by then say nothing.
const MAX_ROUNDS: usize = 100;

/// The share of time at each node, by index; `None` without seeds, or when it does not settle.
pub(crate) fn personalised<N>(graph: &DiGraph<N, f32>, seeds: &[NodeIndex]) -> Option<Vec<f32>> {
    let count = graph.node_count();
    if seeds.is_empty() || count == 0 {
        return None;
    }
    let mut restart = vec![0.0_f32; count];
    for seed in seeds {
        *restart.get_mut(seed.index())? += 1.0 / seeds.len() as f32;
    }
    let out: Vec<f32> = graph.node_indices().map(|node| graph.edges(node).map(|edge| *edge.weight()).sum()).collect();
    let mut ranks = vec![1.0 / count as f32; count];
    for _ in 0..MAX_ROUNDS {
        let dangling: f32 = ranks.iter().zip(&out).filter(|(_, out)| **out <= 0.0).map(|(rank, _)| *rank).sum();
        let mut next: Vec<f32> = restart.iter().map(|share| (1.0 - DAMPING + DAMPING * dangling) * share).collect();
        for edge in graph.edge_references() {
            let (from, to) = (edge.source().index(), edge.target().index());
            if let (Some(rank), Some(total), Some(place)) = (ranks.get(from), out.get(from), next.get_mut(to)) {
                *place += DAMPING * rank * edge.weight() / total;
            }
        }
        let change: f32 = ranks.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
        ranks = next;
        if change < count as f32 * 1e-6 {
            return Some(ranks);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_golden_walk() {
        let mut graph = DiGraph::new();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| graph.add_node(name));
        for (from, to, weight) in [(a, b, 1.0), (a, c, 0.8), (b, c, 0.9), (c, a, 0.75)] {
            graph.add_edge(from, to, weight);
        }
        let ranks = personalised(&graph, &[a]).unwrap();
        for (node, expected) in [(a, 0.444_171), (b, 0.209_747), (c, 0.346_083), (d, 0.0)] {
            assert!((ranks[node.index()] - expected).abs() < 1e-4, "{node:?}: {} {expected}", ranks[node.index()]);
        }
        assert_eq!(personalised(&graph, &[]), None);
    }
}
