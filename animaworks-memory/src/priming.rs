//! What comes to mind before a turn (memory spec §18).
//!
//! The channels run side by side and have one deadline together; what is late or
//! broken is left out and named. Nothing here waits for a model.

pub(crate) mod budget;
pub(crate) mod channel;
pub(crate) mod classify;
pub(crate) mod related;

pub use budget::Budgets;
pub use classify::{MessageClass, classify};

use std::{sync::Arc, time::Duration};

use animaworks_core::{
    Cue, Degraded, MemoryError, Origin, Priming, Trust,
    memory::{PrimingChannel, PrimingSection},
    tasks::Tasks,
};

use crate::store::Inner;

/// The least time a priming gets, whatever its caller says.
const LEAST: Duration = Duration::from_millis(5);

/// Remembers for a turn; also the paths that came to mind.
pub(crate) async fn prime(inner: &Arc<Inner>, tasks: &Tasks, cue: &Cue) -> Result<(Priming, Vec<String>), MemoryError> {
    let class = classify(cue);
    let room = budget::Room::of(&inner.options.budgets, class, cue);
    let clock = Arc::clone(&inner.clock);
    let within = cue.within.max(LEAST);
    let timed = |work: futures_util::future::BoxFuture<'static, Result<Vec<PrimingSection>, MemoryError>>,
                 name: &'static str| {
        let clock = Arc::clone(&clock);
        async move {
            let begun = clock.elapsed();
            let done = tokio::time::timeout(within, work).await;
            let took_ms = clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0;
            match done {
                Ok(Ok(mut sections)) => {
                    for section in &mut sections {
                        section.took_ms = took_ms;
                    }
                    (sections, None)
                }
                Ok(Err(error)) => (Vec::new(), Some(Degraded::new(name, animaworks_core::error::chain(&error)))),
                Err(_) => {
                    (Vec::new(), Some(Degraded::new(name, format!("no answer within {} ms", within.as_millis()))))
                }
            }
        }
    };
    // the files are looked over in the background; remembering does not wait for it beyond its own deadline
    let caught_up = async {
        if tokio::time::timeout(within.mul_f32(0.4), inner.catch_up(tasks)).await.is_err() {
            tracing::debug!("remembering before all files were looked over");
        }
    };
    let related = {
        let (inner, cue, room) = (Arc::clone(inner), cue.clone(), room.clone());
        async move {
            caught_up.await;
            timed(Box::pin(async move { related::sections(&inner, &cue, &room).await }), "channels c and f").await
        }
    };
    let sender = timed(channel::blocking(inner, cue, &room, channel::sender_profile), "channel a");
    let activity = timed(channel::blocking(inner, cue, &room, channel::recent_activity), "channel b");
    let pending = timed(channel::blocking(inner, cue, &room, channel::pending_tasks), "channel e");
    let outbound = timed(channel::blocking(inner, cue, &room, channel::recent_outbound), "recent outbound");
    let (sender, activity, related, pending, outbound) = tokio::join!(sender, activity, related, pending, outbound);
    let mut priming = Priming::default();
    for (sections, trouble) in [sender, activity, related, pending, outbound] {
        priming.sections.extend(sections.into_iter().filter(|section| !section.body.trim().is_empty()));
        priming.degraded.extend(trouble);
    }
    priming.sections.sort_by_key(|section| section.channel);
    let mut paths: Vec<String> =
        priming.sections.iter().flat_map(|section| &section.hits).map(|hit| hit.path.to_string()).collect();
    paths.sort();
    paths.dedup();
    Ok((priming, paths))
}

/// A section without places.
pub(crate) fn section(channel: PrimingChannel, body: String, trust: Trust, origin: Origin) -> PrimingSection {
    PrimingSection { channel, body, trust, origin, hits: Vec::new(), took_ms: 0.0 }
}
