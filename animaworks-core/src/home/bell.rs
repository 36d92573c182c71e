//! Rings when a directory may hold something new: at once within a process, by looking now and then across processes.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio::sync::watch;

use crate::clock::Clock;

/// How often other processes' arrivals are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The bells of many directories.
#[derive(Debug, Default)]
pub(super) struct Bells(Mutex<BTreeMap<PathBuf, watch::Sender<u64>>>);

impl Bells {
    fn bell(&self, directory: PathBuf) -> watch::Sender<u64> {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.entry(directory).or_insert_with(|| watch::Sender::new(0)).clone()
    }

    /// Says that something has arrived.
    pub(super) fn ring(&self, directory: PathBuf) {
        self.bell(directory).send_modify(|rings| *rings += 1);
    }

    /// Rings now if the directory holds a letter, and whenever one arrives.
    pub(super) fn listen(&self, directory: PathBuf, clock: Arc<dyn Clock>) -> BoxStream<'static, ()> {
        let rings = self.bell(directory.clone()).subscribe();
        stream::unfold((rings, directory, clock, true), |(mut rings, directory, clock, mut first)| async move {
            loop {
                if !std::mem::take(&mut first) {
                    tokio::select! {
                        changed = rings.changed() => match changed {
                            Ok(()) => return Some(((), (rings, directory, clock, false))),
                            // the post office is gone; other processes may still write
                            Err(_) => clock.sleep(LOOK_EVERY).await,
                        },
                        () = clock.sleep(LOOK_EVERY) => {}
                    }
                }
                rings.mark_unchanged();
                let looked = directory.clone();
                let full = crate::fs::blocking(move || holds_letter(&looked)).await;
                match full {
                    Ok(true) => return Some(((), (rings, directory, clock, false))),
                    Ok(false) => {}
                    Err(error) => tracing::warn!(%error, "cannot look for arrivals"),
                }
            }
        })
        .boxed()
    }
}

fn holds_letter(directory: &std::path::Path) -> Result<bool, crate::fs::FileError> {
    Ok(super::list(directory)?.iter().any(|path| path.extension().is_some_and(|extension| extension == "json")))
}
