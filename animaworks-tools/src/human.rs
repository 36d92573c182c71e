//! `call_human`, and a way to people that needs nothing but a file (exec spec §9).

use std::sync::Arc;

use animaworks_core::{
    DataDir, Locale, Tool, ToolContext, ToolError, ToolOutput, Typed, TypedTool,
    clock::{Clock, timestamp},
    fs,
    home::{
        AnimaHome,
        activity::Activity,
        text::{head, one_line},
    },
    organisation::Organisation,
    seams::{Answer, ChannelReceipt, HumanLine, Notice, PostError, Priority, Question},
    t,
    tool::Effect,
};
use async_trait::async_trait;
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fault;

/// The longest subject and the longest body, in characters.
const MAX_SUBJECT: usize = 200;
const MAX_BODY: usize = 10_000;

/// `call_human`. For Animas that report to nobody; it looks at the organisation again at every call.
pub fn human_tools(home: &AnimaHome, line: &Arc<dyn HumanLine>, locale: Locale) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Typed::localized(CallHuman { home: home.clone(), line: line.clone() }, locale))]
}

/// What `call_human` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct CallArgs {
    subject: String,
    body: String,
    #[serde(default)]
    priority: Priority,
}

#[derive(Debug)]
struct CallHuman {
    home: AnimaHome,
    line: Arc<dyn HumanLine>,
}

impl TypedTool for CallHuman {
    const NAME: &'static str = "call_human";
    const EFFECT: Effect = Effect::Communicates;
    type Args = CallArgs;

    async fn run(&self, args: CallArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (subject, body) = (one_line(head(&args.subject, MAX_SUBJECT)), head(args.body.trim(), MAX_BODY));
        if subject.is_empty() || body.is_empty() {
            return Err(fault::invalid(Self::NAME, t!(cx.locale, "tools.call_human.empty")));
        }
        let data = self.home.dir().data().clone();
        let organisation = fs::blocking(move || Organisation::load(&data)).await.map_err(fault::file)?;
        if let Some(above) = organisation.supervisor(&cx.anima) {
            return Err(fault::failed(
                "PermissionDenied",
                t!(cx.locale, "tools.call_human.not_top"),
                t!(cx.locale, "tools.call_human.not_top_instead", name = above),
            ));
        }
        let notice =
            Notice { from: cx.anima.clone(), subject: subject.clone(), body: body.to_owned(), priority: args.priority };
        // noted before it goes out: what a channel swallows is then still on record
        let line = Activity::new(Activity::HUMAN_NOTIFY)
            .content(body)
            .summary(&subject)
            .meta("priority", json!(args.priority))
            .meta("turn", cx.turn.as_str())
            .origin(cx.floor.relayed_by(animaworks_core::Origin::ANIMA));
        let home = self.home.clone();
        fs::blocking(move || home.log(line).map(|_| ())).await.map_err(fault::file)?;
        let receipts = self.line.notify(notice).await.map_err(|error| fault::post(error, cx.locale))?;
        let failed = receipts.iter().filter(|receipt| receipt.error.is_some()).count();
        let status = match failed {
            0 => "sent",
            some if some < receipts.len() => "partial",
            _ => "failed",
        };
        let text = match status {
            "sent" => t!(cx.locale, "tools.call_human.sent", subject = subject),
            "partial" => t!(cx.locale, "tools.call_human.partial", subject = subject),
            _ => t!(cx.locale, "tools.call_human.failed", subject = subject),
        };
        let results: Vec<String> = receipts.iter().map(outcome).collect();
        let text = format!("{text}\n{}", results.join("\n"));
        let data = json!({"status": status, "results": results});
        Ok(ToolOutput { is_error: status == "failed", ..ToolOutput::text(text).with_data(data) })
    }
}

fn outcome(receipt: &ChannelReceipt) -> String {
    match &receipt.error {
        None => format!("- {}: OK", receipt.channel),
        Some(error) => format!("- {}: ERROR - {}", receipt.channel, one_line(head(error, 300))),
    }
}

/// One line of `shared/human_notices.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredNotice {
    /// When, RFC 3339.
    pub ts: String,
    /// What was told.
    #[serde(flatten)]
    pub notice: Notice,
}

/// A way to people that works without any channel: notices are kept in `shared/human_notices.jsonl`, where the
/// program shows them.
#[derive(Debug, Clone)]
pub struct Outbox {
    data: DataDir,
    zone: Tz,
    clock: Arc<dyn Clock>,
}

impl Outbox {
    /// How it is called among the channels.
    pub const CHANNEL: &'static str = "outbox";

    /// The notices of an organisation.
    pub fn new(data: DataDir, zone: Tz, clock: Arc<dyn Clock>) -> Self {
        Self { data, zone, clock }
    }

    /// The newest `limit` notices, oldest first. Blocks; lines that cannot be read are passed over.
    ///
    /// # Errors
    ///
    /// [`fs::FileError::Io`] names the file.
    pub fn notices(&self, limit: usize) -> Result<Vec<StoredNotice>, fs::FileError> {
        let mut notices: Vec<StoredNotice> = fs::read_records(&self.path())?;
        notices.drain(..notices.len().saturating_sub(limit));
        Ok(notices)
    }

    fn path(&self) -> std::path::PathBuf {
        self.data.shared().join("human_notices.jsonl")
    }
}

#[async_trait]
impl HumanLine for Outbox {
    async fn notify(&self, notice: Notice) -> Result<Vec<ChannelReceipt>, PostError> {
        let path = self.path();
        let stored = StoredNotice { ts: timestamp(&self.clock.now_in(self.zone)), notice };
        fs::blocking(move || fs::append_line(&path, &fs::json_line(&path, &stored)?)).await?;
        Ok(vec![ChannelReceipt { channel: Self::CHANNEL.to_owned(), error: None }])
    }

    async fn ask(&self, question: Question, _cancel: CancellationToken) -> Result<Answer, PostError> {
        // a file cannot answer, so nobody waits for it; the question is kept all the same
        self.notify(question.notice).await?;
        Err(PostError::Other("an outbox cannot answer questions".into()))
    }
}

#[cfg(test)]
mod tests {
    use animaworks_core::gate::{Gate, OwnMemoryOnly};

    use super::*;
    use crate::messages::tests::{Office, call, error_type};

    fn outbox(office: &Office) -> Outbox {
        Outbox::new(office.data.clone(), chrono_tz::Asia::Tokyo, Arc::new(office.clock.clone()))
    }

    fn gate(office: &Office, line: Arc<dyn HumanLine>) -> Gate {
        Gate::new(human_tools(&office.services.home, &line, Locale::Ja), Arc::new(OwnMemoryOnly))
    }

    #[tokio::test]
    async fn who_is_at_the_top_reaches_a_person_without_any_channel() {
        let office = Office::of("kaoru");
        let gate = gate(&office, Arc::new(outbox(&office)));
        let args = json!({"subject": "在庫が\n合いません", "body": "倉庫二で 12 個足りません。", "priority": "urgent"});
        let told = call(&gate, &office.cx("t1"), "call_human", args).await;
        assert!(!told.is_error && told.text.contains("outbox: OK"), "{}", told.text);
        let notices = outbox(&office).notices(10).unwrap();
        assert_eq!(
            (notices[0].ts.as_str(), notices[0].notice.subject.as_str(), notices[0].notice.priority),
            ("2026-03-31T09:20:00+09:00", "在庫が 合いません", Priority::Urgent)
        );
        assert_eq!(office.services.home.recent(1, 1).unwrap()[0].activity.kind, "human_notify");
        let empty = call(&gate, &office.cx("t1"), "call_human", json!({"subject": " ", "body": "x"})).await;
        assert_eq!(error_type(&empty), "InvalidArguments");
    }

    #[tokio::test]
    async fn who_has_a_supervisor_reports_there() {
        let office = Office::of("sakura");
        let gate = gate(&office, Arc::new(outbox(&office)));
        let refused = call(&gate, &office.cx("t1"), "call_human", json!({"subject": "a", "body": "b"})).await;
        assert_eq!(error_type(&refused), "PermissionDenied");
        assert!(refused.text.contains("kaoru"), "{}", refused.text);
        assert_eq!(outbox(&office).notices(10).unwrap(), []);
    }

    /// Two channels, of which the second fails.
    #[derive(Debug)]
    struct Half;

    #[async_trait]
    impl HumanLine for Half {
        async fn notify(&self, _: Notice) -> Result<Vec<ChannelReceipt>, PostError> {
            Ok(vec![
                ChannelReceipt { channel: "slack".into(), error: None },
                ChannelReceipt { channel: "line".into(), error: Some("401".into()) },
            ])
        }

        async fn ask(&self, _: Question, _: CancellationToken) -> Result<Answer, PostError> {
            Err(PostError::Other("nobody".into()))
        }
    }

    #[tokio::test]
    async fn a_channel_that_fails_is_named_and_the_others_count() {
        let office = Office::of("kaoru");
        let (gate, cx) = (gate(&office, Arc::new(Half)), office.cx("t1"));
        let told = call(&gate, &cx, "call_human", json!({"subject": "a", "body": "b"})).await;
        assert_eq!(told.data.unwrap(), json!({"status": "partial", "results": ["- slack: OK", "- line: ERROR - 401"]}));
    }

    #[test]
    fn every_argument_is_described_in_both_languages() {
        let office = Office::of("kaoru");
        let line: Arc<dyn HumanLine> = Arc::new(Half);
        for locale in Locale::ALL {
            crate::tests::described(human_tools(&office.services.home, &line, locale)[0].spec());
        }
    }
}
