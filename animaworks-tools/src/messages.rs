//! Letters between colleagues and the boards they share (exec spec §8).
//!
//! Whatever goes out carries the origin of the session that wrote it; whatever comes in wears the lowest label of
//! its lines. What was sent is counted from the activity log under one lock, so that every process counts the same.

mod address;
mod boards;
mod history;
mod mention;
mod outbound;
mod send;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use animaworks_core::{
    IdSource, Locale, Origin, Tool, Typed,
    config::{AnimaSettings, ExternalMessagingSettings, HeartbeatSettings},
    home::AnimaHome,
    seams::PostOffice,
};

pub use address::{Platform, Recipient, resolve};
pub(crate) use outbound::{Letter, Outbox};
pub use outbound::{LimitHit, SendingLimits, SentLetter};

/// What the tools that speak to others stand on.
#[derive(Debug, Clone)]
pub struct MessageServices {
    /// The home of the Anima that speaks.
    pub home: AnimaHome,
    /// Carries the letters and keeps the boards.
    pub post: Arc<dyn PostOffice>,
    /// Names the letters.
    pub ids: Arc<dyn IdSource>,
    /// How much may be sent.
    pub limits: SendingLimits,
    /// The people who can be named.
    pub people: ExternalMessagingSettings,
}

impl SendingLimits {
    /// The limits of one Anima in its organisation.
    pub fn of(settings: &AnimaSettings, organisation: &HeartbeatSettings) -> Self {
        let seconds = |seconds: u64| chrono::Duration::seconds(i64::try_from(seconds).unwrap_or(i64::MAX / 1000));
        Self {
            per_exchange: organisation.max_depth,
            exchange: seconds(organisation.depth_window_s),
            post_pause: seconds(organisation.channel_post_cooldown_s),
            per_hour: settings.max_outbound_per_hour.value,
            per_day: settings.max_outbound_per_day.value,
            recipients_per_run: settings.max_recipients_per_run.value,
        }
    }
}

/// The five tools of letters and boards.
pub fn message_tools(services: &MessageServices, locale: Locale) -> Vec<Arc<dyn Tool>> {
    let outbox = Outbox::new(services);
    let (home, post) = (&services.home, &services.post);
    vec![
        Arc::new(Typed::localized(
            send::SendMessage { outbox: outbox.clone(), people: services.people.clone() },
            locale,
        )),
        Arc::new(Typed::localized(boards::PostChannel { outbox }, locale)),
        Arc::new(Typed::localized(boards::ReadChannel { home: home.clone(), post: post.clone() }, locale)),
        Arc::new(Typed::localized(mention::ReadChannelMentions { home: home.clone(), post: post.clone() }, locale)),
        Arc::new(Typed::localized(history::ReadDmHistory { home: home.clone() }, locale)),
    ]
}

/// The label of many texts together: the lowest one's.
fn lowest(origins: impl IntoIterator<Item = Origin>) -> Origin {
    origins.into_iter().fold(Origin::anima(), |lowest, origin| lowest.joined(&origin))
}

/// One row of a listing; a text of several lines cannot look like further rows.
fn row(head: &str, text: &str) -> String {
    format!("{head} {}", text.trim().replace("\r\n", "\n").replace(['\n', '\r'], "\n    "))
}
