//! How fast the embedded index searches, appends and opens: `cargo bench -p animaworks-memory --bench vector`.
//!
//! Rows are seeded noise around a few hundred centres. The figures of `docs/adr/0002-own-embedder.md` come from here.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints, and measures the machine's time")]

use std::{sync::Arc, time::Instant};

use animaworks_memory::vector::{EmbeddedIndex, Precision, RowSet, VectorChange, VectorIndex, VectorRow};

const DIMENSIONS: usize = 384;
const QUERIES: usize = 200;

/// Seeded numbers between −1 and 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    fn vector(&mut self, near: &[f32], spread: f32) -> Vec<f32> {
        let raw: Vec<f32> = near.iter().map(|value| value + spread * self.next()).collect();
        let norm = raw.iter().map(|value| value * value).sum::<f32>().sqrt();
        raw.into_iter().map(|value| value / norm).collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    println!(
        "| rows | precision | search p50 ms | p95 ms | half allowed p50 | recall@10 | append rows/s | open ms | bytes/row |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for rows in [6_000, 100_000, 1_000_000] {
        for precision in [Precision::Coarse, Precision::Fine] {
            runtime.block_on(measure(rows, precision))?;
        }
    }
    Ok(())
}

async fn measure(rows: u64, precision: Precision) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    // crowded, as e5 vectors are: one common direction, centres around it, rows around those
    let common = noise.vector(&[0.0; DIMENSIONS], 1.0);
    let centres: Vec<Vec<f32>> = (0..300).map(|_| noise.vector(&common, 0.05)).collect();
    let index = EmbeddedIndex::open(dir.path(), DIMENSIONS, precision, None)?;
    let queries: Vec<Vec<f32>> = (0..QUERIES).map(|at| noise.vector(&centres[at % centres.len()], 0.03)).collect();
    let mut exact: Vec<Vec<(f32, u64)>> = vec![Vec::new(); 20];
    let mut append = 0.0;
    let mut position = index.health().await.position;
    let mut id = 0;
    while id < rows {
        let batch: Vec<VectorRow> = (id..(id + 4096).min(rows))
            .map(|id| VectorRow { id, vector: noise.vector(&centres[id as usize % centres.len()], 0.04) })
            .collect();
        for (query, best) in queries.iter().zip(&mut exact) {
            best.extend(batch.iter().map(|row| (row.vector.iter().zip(query).map(|(a, b)| a * b).sum(), row.id)));
            best.sort_by(|a: &(f32, u64), b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            best.truncate(10);
        }
        id += batch.len() as u64;
        let start = Instant::now();
        position = index.stage(batch.into_iter().map(VectorChange::Put).collect()).await?;
        index.publish(position).await?;
        append += start.elapsed().as_secs_f64();
    }
    let mut kept = 0;
    for (query, best) in queries.iter().zip(&exact) {
        let hits = index.search(query.clone(), 10, None).await?;
        kept += hits.iter().filter(|hit| best.iter().any(|(_, id)| *id == hit.id)).count();
    }
    let all = times(&index, &queries, None).await?;
    let half = times(&index, &queries, Some(Arc::new((0..rows).step_by(2).collect()))).await?;
    let bytes = index.health().await.bytes as f64 / rows as f64;
    drop(index);
    let start = Instant::now();
    EmbeddedIndex::open(dir.path(), DIMENSIONS, precision, Some(position))?;
    let open = start.elapsed().as_secs_f64() * 1e3;
    println!(
        "| {rows} | {precision:?} | {:.2} | {:.2} | {:.2} | {:.4} | {:.0} | {open:.1} | {bytes:.0} |",
        all[QUERIES / 2],
        all[QUERIES * 95 / 100],
        half[QUERIES / 2],
        kept as f64 / (exact.len() * 10) as f64,
        rows as f64 / append,
    );
    Ok(())
}

/// Sorted milliseconds of all queries.
async fn times(
    index: &EmbeddedIndex,
    queries: &[Vec<f32>],
    allow: Option<Arc<RowSet>>,
) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    for query in queries {
        let query = query.clone();
        let start = Instant::now();
        index.search(query, 10, allow.clone()).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}
