//! Who is meant by a name (exec spec §8.4).

use animaworks_core::{
    AnimaName,
    config::{ExternalMessagingSettings, MessengerName, UserAlias},
    organisation::Organisation,
};

/// Somebody who can be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// A colleague.
    Anima(AnimaName),
    /// A person, by the name they were called, and where they can be reached.
    Person {
        /// The name.
        name: String,
        /// The platform, when one is known.
        on: Option<Platform>,
    },
}

/// An address on another platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Platform {
    /// A Slack user.
    Slack(String),
    /// A Chatwork room.
    Chatwork(String),
}

/// Finds out who is meant: an Anima by its exact name, a person by an alias, a direct address, an Anima by a name in
/// other letters; in this order.
///
/// # Errors
///
/// The names that could have been meant, nearest first; everybody when none is near.
pub fn resolve(
    to: &str,
    organisation: &Organisation,
    people: &ExternalMessagingSettings,
) -> Result<Recipient, Vec<String>> {
    let to = to.trim().trim_start_matches('@');
    let exact = organisation.names().find(|name| name.as_str() == to);
    if let Some(name) = exact {
        return Ok(Recipient::Anima(name.clone()));
    }
    let wanted = to.to_lowercase();
    if let Some((name, alias)) = people.user_aliases.iter().find(|(name, _)| name.to_lowercase() == wanted) {
        return Ok(Recipient::Person { name: name.clone(), on: reach(alias, people.preferred_channel) });
    }
    let direct = match to.split_once(':') {
        Some(("slack", id)) if !id.trim().is_empty() => Some(Platform::Slack(id.trim().to_owned())),
        Some(("chatwork", id)) if !id.trim().is_empty() => Some(Platform::Chatwork(id.trim().to_owned())),
        None if is_slack_id(to) => Some(Platform::Slack(to.to_owned())),
        _ => None,
    };
    if direct.is_some() {
        return Ok(Recipient::Person { name: to.to_owned(), on: direct });
    }
    if let Some(name) = organisation.names().find(|name| name.as_str() == wanted) {
        return Ok(Recipient::Anima(name.clone()));
    }
    let near = organisation.near(&wanted);
    Err(if near.is_empty() { organisation.names().map(ToString::to_string).collect() } else { near })
}

/// Where a person reads first; the other place when that one is not known.
fn reach(alias: &UserAlias, preferred: MessengerName) -> Option<Platform> {
    let place = |id: &str, make: fn(String) -> Platform| (!id.trim().is_empty()).then(|| make(id.trim().to_owned()));
    let slack = place(&alias.slack_user_id, Platform::Slack);
    let chatwork = place(&alias.chatwork_room_id, Platform::Chatwork);
    match preferred {
        MessengerName::Slack => slack.or(chatwork),
        MessengerName::Chatwork => chatwork.or(slack),
    }
}

fn is_slack_id(text: &str) -> bool {
    text.strip_prefix('U')
        .is_some_and(|rest| rest.len() >= 8 && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()))
}
