//! Files that are one thing: procedures, skills, profiles.

use super::{Chunk, Line, lines, pack};

/// The whole body, cut only where it is too long.
pub(crate) fn chunks(text: &str, body: usize) -> Vec<Chunk> {
    let all: Vec<Line<'_>> = lines(text, body).collect();
    let mut chunks = Vec::new();
    pack(text, &all, 0, "", &mut chunks);
    chunks
}
