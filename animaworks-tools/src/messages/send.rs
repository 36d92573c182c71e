//! `send_message`: one letter to one colleague.

use animaworks_core::{
    Intent, MessageId, ThreadId, ToolContext, ToolError, ToolOutput, TriggerKind, TypedTool,
    config::ExternalMessagingSettings, fs, organisation::Organisation, t, tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Letter, LimitHit, Outbox, Recipient, resolve};
use crate::fault;

/// So many letters to one colleague within a day are a conversation that belongs on a board.
const CONVERSATION: usize = 3;

/// What `send_message` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendArgs {
    to: String,
    content: String,
    #[schemars(required, extend("enum" = ["report", "delegation", "question"]))]
    intent: Option<String>,
    #[serde(default)]
    reply_to: Option<String>,
    #[serde(default)]
    thread_id: Option<String>,
}

#[derive(Debug)]
pub(super) struct SendMessage {
    pub(super) outbox: Outbox,
    pub(super) people: ExternalMessagingSettings,
}

impl TypedTool for SendMessage {
    const NAME: &'static str = "send_message";
    const EFFECT: Effect = Effect::Communicates;
    type Args = SendArgs;

    async fn run(&self, args: SendArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let locale = cx.locale;
        let content = args.content.trim();
        if content.is_empty() {
            return Err(fault::invalid(Self::NAME, t!(locale, "tools.send_message.empty")));
        }
        let intent = match args.intent.as_deref().map(str::trim) {
            Some("report") => Intent::Report,
            Some("delegation") => Intent::Delegation,
            Some("question") => Intent::Question,
            _ => {
                let suggestion = t!(locale, "tools.send_message.intent_instead");
                return Err(fault::failed("InvalidArguments", t!(locale, "tools.send_message.intent"), suggestion));
            }
        };
        let data = self.outbox.home.dir().data().clone();
        let organisation = fs::blocking(move || Organisation::load(&data)).await.map_err(fault::file)?;
        let to = match resolve(&args.to, &organisation, &self.people) {
            Ok(Recipient::Anima(name)) if name == cx.anima => {
                return Err(fault::failed(
                    "InvalidArguments",
                    t!(locale, "tools.send_message.yourself"),
                    t!(locale, "tools.send_message.yourself_instead"),
                ));
            }
            Ok(Recipient::Anima(name)) => name,
            Ok(Recipient::Person { name, .. }) => {
                let suggestion = match cx.trigger {
                    TriggerKind::Chat => t!(locale, "tools.send_message.person_in_chat"),
                    _ => t!(locale, "tools.send_message.person_instead"),
                };
                return Err(fault::failed(
                    "NotConfigured",
                    t!(locale, "tools.send_message.person", name = name),
                    suggestion,
                ));
            }
            Err(near) => {
                return Err(fault::failed(
                    "UnknownRecipient",
                    t!(locale, "tools.send_message.unknown", name = args.to.trim()),
                    t!(locale, "tools.send_message.unknown_instead", names = near.join(", ")),
                ));
            }
        };
        let reply_to = match args.reply_to.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
            Some(id) => {
                Some(MessageId::new(id).map_err(|error| fault::invalid(Self::NAME, format!("reply_to: {error}")))?)
            }
            None => None,
        };
        let thread = match args.thread_id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
            Some(id) => ThreadId::new(id).map_err(|error| fault::invalid(Self::NAME, format!("thread_id: {error}")))?,
            None => ThreadId::main(),
        };
        let letter = Letter {
            to: to.clone(),
            text: content.to_owned(),
            intent: Some(intent),
            reply_to,
            thread: thread.clone(),
            tool: Self::NAME,
            is_handover: false,
        };
        let delivered = match self.outbox.send(letter, cx).await? {
            Ok(delivered) => delivered,
            Err(hit) => return Err(held_back(hit, to.as_str(), cx)),
        };
        let mut text = t!(locale, "tools.send_message.done", to = to, id = delivered.id);
        if delivered.lately >= CONVERSATION {
            text.push('\n');
            text.push_str(&t!(locale, "tools.send_message.conversation", to = to, count = delivered.lately));
        }
        if organisation.member(&to).is_some_and(|member| !member.enabled) {
            text.push('\n');
            text.push_str(&t!(locale, "tools.send_message.disabled", to = to));
        }
        let data = json!({"status": "sent", "message_id": delivered.id, "thread_id": thread, "to": to});
        Ok(ToolOutput::text(text).with_data(data))
    }
}

/// A limit in words that say what to do now.
pub(crate) fn held_back(hit: LimitHit, to: &str, cx: &ToolContext) -> ToolError {
    let locale = cx.locale;
    match hit {
        LimitHit::SameRecipient => fault::failed(
            "AlreadySent",
            t!(locale, "tools.send_message.already_sent", to = to),
            t!(locale, "tools.send_message.already_sent_instead"),
        ),
        LimitHit::Recipients => fault::failed(
            "RecipientLimit",
            t!(locale, "tools.send_message.recipients"),
            t!(locale, "tools.send_message.recipients_instead"),
        ),
        LimitHit::Hour(free) | LimitHit::Day(free) => fault::failed(
            "RateLimited",
            t!(locale, "tools.send_message.rate_limited", at = free.format("%m-%d %H:%M")),
            t!(locale, "tools.send_message.rate_limited_instead"),
        ),
        LimitHit::Exchange(free) => fault::failed(
            "CascadeBlocked",
            t!(locale, "tools.send_message.exchange", to = to, at = free.format("%m-%d %H:%M")),
            t!(locale, "tools.send_message.exchange_instead"),
        ),
    }
}
