//! What belongs together: pages that point at one another.

pub(crate) mod build;
pub(crate) mod pagerank;
