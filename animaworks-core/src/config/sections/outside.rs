//! The outside: people, messengers, pictures, local models.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    config::shape::{choices, int, num, sections},
    ids::ModelId,
};

choices! {
    /// How messages from a messenger arrive.
    MessengerMode {
        /// Over a connection that we open.
        Socket = "socket",
        /// Over requests that it makes.
        Webhook = "webhook",
    }

    /// How pictures of an Anima look.
    ImageStyle {
        /// Like a photograph.
        Realistic = "realistic",
        /// Drawn.
        Anime = "anime",
    }

    /// The messenger to use first.
    MessengerName {
        /// Slack.
        Slack = "slack",
        /// Chatwork.
        Chatwork = "chatwork",
    }
}

sections! {
    /// `human_notification`: how a top-level Anima calls a person.
    HumanNotificationSettings {
        /// Whether it may.
        enabled: bool = false;
        /// The ways, all of which are used.
        channels: Vec<NotificationChannel> = Vec::new();
    }

    /// One entry of `human_notification.channels`.
    NotificationChannel {
        /// `slack`, `chatwork`, `line`, `telegram`, `ntfy`, …
        r#type: String = String::new();
        /// Whether it is used.
        enabled: bool = true;
        /// What that type needs.
        config: BTreeMap<String, Value> = BTreeMap::new();
    }

    /// `interaction`: questions to people that wait for an answer.
    InteractionSettings {
        /// Who may answer when nobody is named.
        default_approver_ids: Vec<String> = Vec::new();
        /// Days a question stays open.
        ttl_days: u32 = 7, int(1, 3650);
        /// The address of the pages, for links in messages.
        web_base_url: String = String::new();
    }

    /// `external_messaging`.
    ExternalMessagingSettings {
        /// The messenger of people who have both.
        preferred_channel: MessengerName = MessengerName::Slack;
        /// People by the names Animas call them.
        user_aliases: BTreeMap<String, UserAlias> = BTreeMap::new();
        /// Slack.
        slack: MessengerSettings = MessengerSettings::default();
        /// Chatwork.
        chatwork: MessengerSettings = MessengerSettings::default();
    }

    /// One entry of `external_messaging.user_aliases`.
    UserAlias {
        /// On Slack.
        slack_user_id: String = String::new();
        /// On Chatwork.
        chatwork_room_id: String = String::new();
        /// Whether an Anima may write first.
        outbound_dm: bool = false;
    }

    /// `external_messaging.slack` and `.chatwork`.
    MessengerSettings {
        /// Whether it is connected.
        enabled: bool = false;
        /// How messages arrive.
        mode: MessengerMode = MessengerMode::Socket;
        /// Which Anima listens in which room.
        anima_mapping: BTreeMap<String, String> = BTreeMap::new();
        /// Who listens everywhere else.
        default_anima: String = String::new();
        /// Which Anima is which app.
        app_id_mapping: BTreeMap<String, String> = BTreeMap::new();
        /// Whether the reply goes back without being asked for.
        auto_response: bool = false;
        /// Which room is which board.
        board_mapping: BTreeMap<String, String> = BTreeMap::new();
        /// The boards whose posts go out.
        board_outbound_sync: Vec<String> = Vec::new();
        /// Whether a direct message goes to the Anima it was meant for.
        chat_dm_redirect: bool = false;
    }

    /// `image_gen`: pictures of an Anima.
    ImageGenSettings {
        /// What makes them.
        backend: String = "api".into();
        /// How they look.
        image_style: ImageStyle = ImageStyle::Realistic;
        /// A picture to follow.
        style_reference: Option<String> = None;
        /// Words before the prompt.
        style_prefix: String = String::new();
        /// Words after the prompt.
        style_suffix: String = String::new();
        /// What must not be in it.
        negative_prompt_extra: String = String::new();
        /// How closely the reference is followed.
        vibe_strength: f64 = 0.6, num(0.0, 1.0);
        /// How much is taken from the reference.
        vibe_info_extracted: f64 = 0.8, num(0.0, 1.0);
        /// Whether there are 3D models.
        enable_3d: bool = true;
    }

    /// `local_llm`: the model behind the tool of that name.
    LocalLlmSettings {
        /// Where it is.
        base_url: String = "http://127.0.0.1:11434".into();
        /// Which one.
        default_model: Option<ModelId> = None;
        /// More of them by name.
        presets: BTreeMap<String, Value> = BTreeMap::new();
        /// Which one for which role.
        role_presets: BTreeMap<String, String> = BTreeMap::new();
    }

    /// `ui`.
    UiSettings {
        /// The look of the pages.
        theme: String = "default".into();
        /// Whether the demonstration's hints are shown.
        demo_mode: bool = false;
    }

    /// `logging`.
    LoggingSettings {
        /// Whether what looks like a key is blacked out.
        redaction_enabled: bool = true;
    }
}
