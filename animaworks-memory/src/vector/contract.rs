//! What every vector index must do: one function for all of them, for tests.

use std::sync::Arc;

use super::{RowSet, VectorChange, VectorError, VectorHit, VectorIndex, VectorRow};

/// How many dimensions the index under test must have.
pub const DIMENSIONS: usize = 8;

/// Runs the whole contract over an empty index with [`DIMENSIONS`] dimensions.
///
/// # Errors
///
/// What the index says.
///
/// # Panics
///
/// Where the index breaks the contract.
pub async fn check(index: &dyn VectorIndex) -> Result<(), VectorError> {
    assert_eq!(index.dimensions(), DIMENSIONS);
    empty_finds_nothing(index).await?;
    staged_rows_show_once_published(index).await?;
    a_search_is_exact_and_ordered(index).await?;
    a_filter_keeps_to_its_rows(index).await?;
    a_row_is_replaced_and_removed(index).await?;
    compaction_changes_nothing_that_is_found(index).await?;
    wrong_dimensions_are_refused(index).await
}

/// A unit vector that depends on `seed` alone.
pub fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    let raw: Vec<f32> = (0..DIMENSIONS)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect();
    let norm = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
    raw.into_iter().map(|value| value / norm).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

async fn write(index: &dyn VectorIndex, changes: Vec<VectorChange>) -> Result<(), VectorError> {
    let position = index.stage(changes).await?;
    index.publish(position).await
}

fn put(id: u64, seed: u64) -> VectorChange {
    VectorChange::Put(VectorRow { id, vector: vector(seed) })
}

fn ids(hits: &[VectorHit]) -> Vec<u64> {
    hits.iter().map(|hit| hit.id).collect()
}

async fn empty_finds_nothing(index: &dyn VectorIndex) -> Result<(), VectorError> {
    assert_eq!(index.search(vector(1), 5, None).await?, Vec::new());
    assert_eq!(index.vectors(vec![1]).await?, vec![None]);
    assert_eq!(index.health().await.live, 0);
    assert_eq!(index.compact().await?, None);
    write(index, Vec::new()).await?;
    write(index, vec![VectorChange::Remove(9)]).await
}

async fn staged_rows_show_once_published(index: &dyn VectorIndex) -> Result<(), VectorError> {
    let position = index.stage(vec![put(1, 1), put(2, 2)]).await?;
    index.publish(position).await?;
    assert_eq!(ids(&index.search(vector(1), 1, None).await?), [1]);
    index.stage(vec![put(3, 3), VectorChange::Remove(1)]).await?;
    index.discard().await?;
    assert_eq!(ids(&index.search(vector(1), 1, None).await?), [1]);
    let position = index.stage(vec![put(4, 4)]).await?;
    index.publish(position).await?;
    assert_eq!(index.health().await.live, 3, "what was discarded does not come back");
    write(index, vec![VectorChange::Remove(1), VectorChange::Remove(2), VectorChange::Remove(4)]).await?;
    assert_eq!(index.search(vector(1), 5, None).await?, Vec::new());
    Ok(())
}

async fn a_search_is_exact_and_ordered(index: &dyn VectorIndex) -> Result<(), VectorError> {
    write(index, (100..400).map(|id| put(id, id)).collect()).await?;
    for seed in [7, 8, 9] {
        let query = vector(seed);
        let hits = index.search(query.clone(), 10, None).await?;
        assert_eq!(hits.len(), 10);
        assert!(hits.windows(2).all(|pair| pair[0].cosine >= pair[1].cosine), "nearest first");
        for hit in &hits {
            assert!((hit.cosine - cosine(&query, &vector(hit.id))).abs() < 0.02, "the cosine is that of the row");
        }
        let mut exact: Vec<f32> = (100..400).map(|id| cosine(&query, &vector(id))).collect();
        exact.sort_by(|a, b| b.total_cmp(a));
        assert!(hits[9].cosine > exact[9] - 0.04, "nothing nearer was missed");
    }
    assert_eq!(index.search(vector(1), 0, None).await?, Vec::new());
    assert_eq!(index.search(vector(1), 10_000, None).await?.len(), 300);
    let stored = index.vectors(vec![150, 99]).await?;
    assert!(stored[1].is_none());
    assert!(stored[0].as_ref().is_some_and(|stored| cosine(stored, &vector(150)) > 0.999));
    Ok(())
}

async fn a_filter_keeps_to_its_rows(index: &dyn VectorIndex) -> Result<(), VectorError> {
    let allow: RowSet = [105, 205, 305, 999].into_iter().collect();
    let mut found = ids(&index.search(vector(7), 10, Some(Arc::new(allow))).await?);
    found.sort_unstable();
    assert_eq!(found, [105, 205, 305]);
    assert_eq!(index.search(vector(7), 10, Some(Arc::new(RowSet::new()))).await?, Vec::new());
    Ok(())
}

async fn a_row_is_replaced_and_removed(index: &dyn VectorIndex) -> Result<(), VectorError> {
    let before = index.health().await.live;
    write(index, vec![put(100, 5_000)]).await?;
    assert_eq!(index.health().await.live, before);
    let hit = index.search(vector(5_000), 1, None).await?[0];
    assert!(hit.id == 100 && hit.cosine > 0.99);
    // within one batch the later change wins
    write(index, vec![put(900, 6_000), put(900, 6_001), put(901, 6_002), VectorChange::Remove(901)]).await?;
    assert_eq!(index.health().await.live, before + 1);
    let hit = index.search(vector(6_001), 1, None).await?[0];
    assert!(hit.id == 900 && hit.cosine > 0.99);
    write(index, vec![VectorChange::Remove(900), VectorChange::Remove(100), VectorChange::Remove(77)]).await?;
    assert_eq!(index.health().await.live, before - 1);
    assert_eq!(index.vectors(vec![100, 900]).await?, vec![None, None]);
    write(index, vec![put(100, 100)]).await?;
    assert_eq!(ids(&index.search(vector(100), 1, None).await?), [100]);
    Ok(())
}

async fn compaction_changes_nothing_that_is_found(index: &dyn VectorIndex) -> Result<(), VectorError> {
    write(index, (150..250).map(VectorChange::Remove).collect()).await?;
    let before = index.search(vector(42), 50, None).await?;
    if let Some(position) = index.compact().await? {
        index.publish(position).await?;
        assert_eq!(index.health().await.dead, 0);
    }
    assert_eq!(index.search(vector(42), 50, None).await?, before);
    write(index, vec![put(150, 150)]).await?;
    assert_eq!(ids(&index.search(vector(150), 1, None).await?), [150]);
    Ok(())
}

async fn wrong_dimensions_are_refused(index: &dyn VectorIndex) -> Result<(), VectorError> {
    let row = VectorRow { id: 1, vector: vec![1.0; DIMENSIONS + 1] };
    let refused = index.stage(vec![VectorChange::Put(row)]).await;
    assert!(matches!(refused, Err(VectorError::Dimensions { expected: DIMENSIONS, .. })), "{refused:?}");
    let refused = index.search(vec![1.0; 2], 1, None).await;
    assert!(matches!(refused, Err(VectorError::Dimensions { got: 2, .. })), "{refused:?}");
    Ok(())
}
