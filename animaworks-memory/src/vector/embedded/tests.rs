//! The embedded index against its contract, a plain model, and crashes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::vector::contract::{self, DIMENSIONS, vector};

const BOTH: [Precision; 2] = [Precision::Coarse, Precision::Fine];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn put(id: u64) -> VectorChange {
    VectorChange::Put(VectorRow { id, vector: vector(id) })
}

#[test]
fn it_keeps_the_contract() {
    for precision in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let index = EmbeddedIndex::open(dir.path(), DIMENSIONS, precision, None).unwrap();
        runtime().block_on(contract::check(&index)).unwrap();
    }
}

#[test]
fn what_was_not_recorded_is_gone_after_a_restart_and_its_place_is_used_again() {
    for precision in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let open = |at| EmbeddedIndex::open(dir.path(), DIMENSIONS, precision, at).unwrap();
        runtime().block_on(async {
            let index = open(None);
            let recorded = index.stage(vec![put(1), put(2)]).await.unwrap();
            index.publish(recorded).await.unwrap();
            index.stage(vec![put(3), VectorChange::Remove(1)]).await.unwrap();
            drop(index);

            let index = open(Some(recorded));
            assert_eq!(index.health().await.live, 2);
            let recorded = index.stage(vec![put(7)]).await.unwrap();
            drop(index);

            // recorded, killed before `publish`
            let index = open(Some(recorded));
            let all = index.search(vector(7), 9, None).await.unwrap();
            assert_eq!(all[0].id, 7);
            assert_eq!(all.len(), 3);
        });
    }
}

#[test]
fn a_crash_during_compaction_leaves_the_old_generation() {
    let dir = tempfile::tempdir().unwrap();
    let open = |at| EmbeddedIndex::open(dir.path(), DIMENSIONS, Precision::Fine, at).unwrap();
    runtime().block_on(async {
        let index = open(None);
        let position = index.stage((0..50).map(put).collect()).await.unwrap();
        index.publish(position).await.unwrap();
        let recorded = index.stage((0..20).map(VectorChange::Remove).collect()).await.unwrap();
        index.publish(recorded).await.unwrap();
        let compacted = index.compact().await.unwrap().unwrap();
        assert!(index.stage(vec![put(60)]).await.is_err(), "nothing is written behind a waiting compaction");
        drop(index);

        let index = open(Some(recorded));
        assert_eq!(index.health().await.live, 30);
        index.publish(recorded).await.unwrap();
        let again = index.compact().await.unwrap().unwrap();
        assert_eq!(again, compacted);
        drop(index);

        let index = open(Some(again));
        assert_eq!(index.health().await, VectorHealth { live: 30, dead: 0, ..index.health().await });
        let later = index.stage(vec![put(0)]).await.unwrap();
        index.publish(later).await.unwrap();
        let names: Vec<_> = fs_err::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| name.to_string_lossy().starts_with("00000001.")), "{names:?}");
    });
}

#[test]
fn files_that_do_not_hold_what_was_recorded_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let open = |dimensions, precision, at| EmbeddedIndex::open(dir.path(), dimensions, precision, Some(at));
    runtime().block_on(async {
        let index = EmbeddedIndex::open(dir.path(), DIMENSIONS, Precision::Coarse, None).unwrap();
        let recorded = index.stage((0..9).map(put).collect()).await.unwrap();
        index.publish(recorded).await.unwrap();

        let missing = open(DIMENSIONS, Precision::Coarse, Position { rows: 10, ..recorded }).unwrap_err();
        assert!(matches!(&missing, VectorError::Corrupt { path, .. } if path.ends_with("00000000.ids")), "{missing}");
        assert!(open(DIMENSIONS, Precision::Coarse, Position { generation: 4, ..recorded }).is_err());
        assert!(open(DIMENSIONS, Precision::Coarse, Position { removed: 1, ..recorded }).is_err());
        assert!(open(DIMENSIONS - 1, Precision::Coarse, recorded).is_err(), "vectors of another model");
        assert!(open(DIMENSIONS, Precision::Fine, recorded).is_err());

        let fresh = EmbeddedIndex::fresh(dir.path(), DIMENSIONS, Precision::Fine, Some(recorded)).unwrap();
        let position = fresh.stage(vec![put(1)]).await.unwrap();
        fresh.publish(position).await.unwrap();
        assert_eq!(fresh.health().await.live, 1);
        // the old one still shows what it showed
        assert_eq!(index.search(vector(1), 9, None).await.unwrap().len(), 9);
    });
}

#[test]
fn a_flipped_bit_stops_a_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let open = |at| EmbeddedIndex::open(dir.path(), DIMENSIONS, Precision::Coarse, at).unwrap();
    runtime().block_on(async {
        let index = open(None);
        let position = index.stage((0..9).map(put).collect()).await.unwrap();
        index.publish(position).await.unwrap();
        let recorded = index.stage(vec![VectorChange::Remove(0)]).await.unwrap();
        drop(index);
        let path = dir.path().join("00000000.codes");
        let mut bytes = fs_err::read(&path).unwrap();
        bytes[DIMENSIONS * 4] ^= 1;
        animaworks_core::fs::write_atomic(&path, &bytes, animaworks_core::fs::Privacy::Normal).unwrap();
        let error = open(Some(recorded)).compact().await.unwrap_err();
        assert!(error.to_string().contains("row 4 does not match"), "{error}");
    });
}

#[test]
fn readers_see_whole_positions_while_a_writer_writes() {
    let dir = tempfile::tempdir().unwrap();
    let index = Arc::new(EmbeddedIndex::open(dir.path(), DIMENSIONS, Precision::Coarse, None).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let reader = {
            let index = Arc::clone(&index);
            async move {
                for _ in 0..200 {
                    let found = index.search(vector(3), 10_000, None).await.unwrap().len();
                    assert_eq!(found % 10, 0, "rows come in tens");
                }
            }
        };
        let writer = async {
            for batch in 0..20_u64 {
                let position = index.stage((batch * 10..batch * 10 + 10).map(put).collect()).await.unwrap();
                index.publish(position).await.unwrap();
            }
        };
        futures_util::join!(reader, writer);
        assert_eq!(index.health().await.live, 200);
    });
}

#[derive(Debug, Clone)]
enum Step {
    Change(Vec<(u64, bool)>),
    Discard,
    Compact,
    Kill { recorded: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = proptest::collection::vec((0..12_u64, any::<bool>()), 0..6).prop_map(Step::Change);
    let step = prop_oneof![
        4 => change,
        1 => Just(Step::Discard),
        1 => Just(Step::Compact),
        2 => any::<bool>().prop_map(|recorded| Step::Kill { recorded }),
    ];
    proptest::collection::vec(step, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever is written, discarded, compacted and killed: what is found is what a map would hold.
    #[test]
    fn it_is_a_map_that_survives(steps in steps()) {
        let dir = tempfile::tempdir().unwrap();
        let open = |at| EmbeddedIndex::open(dir.path(), DIMENSIONS, Precision::Coarse, at).unwrap();
        runtime().block_on(async {
            let mut index = open(None);
            let mut recorded = Position::default();
            let mut model = BTreeMap::new();
            let mut seed = 0;
            for step in steps {
                let mut next = model.clone();
                match step {
                    Step::Change(changes) => {
                        let changes = changes
                            .into_iter()
                            .map(|(id, put)| {
                                if put {
                                    seed += 1;
                                    next.insert(id, seed);
                                    VectorChange::Put(VectorRow { id, vector: vector(seed) })
                                } else {
                                    next.remove(&id);
                                    VectorChange::Remove(id)
                                }
                            })
                            .collect();
                        recorded = index.stage(changes).await.unwrap();
                        index.publish(recorded).await.unwrap();
                        model = next;
                    }
                    Step::Discard => {
                        index.stage(vec![put(3), VectorChange::Remove(4)]).await.unwrap();
                        index.discard().await.unwrap();
                    }
                    Step::Compact => {
                        if let Some(position) = index.compact().await.unwrap() {
                            index.publish(position).await.unwrap();
                            recorded = position;
                        }
                    }
                    Step::Kill { recorded: before } => {
                        seed += 1;
                        let change = VectorChange::Put(VectorRow { id: 5, vector: vector(seed) });
                        let staged = index.stage(vec![change, VectorChange::Remove(6)]).await.unwrap();
                        if before {
                            recorded = staged;
                            model.insert(5, seed);
                            model.remove(&6);
                        }
                        index = open(Some(recorded));
                    }
                }
                let mut found: Vec<u64> =
                    index.search(vector(1), 100, None).await.unwrap().into_iter().map(|hit| hit.id).collect();
                found.sort_unstable();
                assert_eq!(found, model.keys().copied().collect::<Vec<_>>());
                for (id, seed) in &model {
                    let stored = index.vectors(vec![*id]).await.unwrap().remove(0).unwrap();
                    let cosine: f32 = stored.iter().zip(vector(*seed)).map(|(a, b)| a * b).sum();
                    assert!(cosine > 0.99, "row {id} holds its latest vector");
                }
            }
        });
    }
}
