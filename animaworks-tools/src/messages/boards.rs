//! `post_channel` and `read_channel`: what several should know (exec spec §8.2).

use std::sync::Arc;

use animaworks_core::{
    BoardName, Origin, SenderKind, ToolContext, ToolError, ToolOutput, TypedTool,
    error::ResultExt,
    fs,
    home::{AnimaHome, activity::Activity, text::head},
    organisation::Organisation,
    seams::{BoardPost, PostOffice},
    t,
    tool::Effect,
};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Outbox, mention::Called, outbound::relayed, row};
use crate::fault;

/// The longest post, in characters.
const LONGEST: usize = 10_000;
/// Posts that are shown unless somebody asks for another number.
const SHOWN: usize = 20;
/// Posts that are shown at the most.
const MOST: usize = 100;
/// How much of a post a mention repeats, in characters.
const REPEATED: usize = 1000;

/// What `post_channel` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PostArgs {
    channel: String,
    text: String,
}

#[derive(Debug)]
pub(super) struct PostChannel {
    pub(super) outbox: Outbox,
}

impl TypedTool for PostChannel {
    const NAME: &'static str = "post_channel";
    const EFFECT: Effect = Effect::Communicates;
    type Args = PostArgs;

    async fn run(&self, args: PostArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (outbox, locale) = (&self.outbox, cx.locale);
        let text = args.text.trim();
        let length = text.chars().count();
        if length == 0 || length > LONGEST {
            return Err(fault::invalid(Self::NAME, t!(locale, "tools.post_channel.length", max = LONGEST)));
        }
        let board = board(&args.channel, outbox.post.as_ref(), cx).await?;

        let held = outbox.hold().await?;
        let before = outbox.lately(Activity::CHANNEL_POST).await?;
        let turn = cx.turn.as_str();
        if before.iter().any(|post| post.activity.meta_str("turn") == turn && post.activity.channel == board.as_str()) {
            return Err(fault::failed(
                "AlreadySent",
                t!(locale, "tools.post_channel.already", channel = board),
                t!(locale, "tools.post_channel.already_instead"),
            ));
        }
        if let Some(free) = outbox.post_rest(&board, &before) {
            return Err(fault::failed(
                "RateLimited",
                t!(locale, "tools.post_channel.rest", channel = board, at = free.format("%m-%d %H:%M")),
                t!(locale, "tools.post_channel.rest_instead"),
            ));
        }
        let origin = relayed(cx);
        let mut extra = Map::new();
        extra.insert("origin".to_owned(), json!(origin.source));
        extra.insert("origin_chain".to_owned(), json!(origin.chain));
        let post = BoardPost {
            ts: outbox.home.now().fixed_offset(),
            from: cx.anima.to_string(),
            text: text.to_owned(),
            source: SenderKind::Anima,
            extra,
        };
        outbox.post.publish(&board, post).await.map_err(|error| fault::post(error, locale))?;
        let line = Activity::new(Activity::CHANNEL_POST)
            .content(text)
            .from(cx.anima.as_str())
            .channel(board.as_str())
            .tool(Self::NAME)
            .origin(origin)
            .meta("turn", turn);
        outbox.note(line).await?;
        drop(held);

        let called = self.call(&board, text, cx).await?;
        let mut said = t!(locale, "tools.post_channel.done", channel = board);
        if !called.is_empty() {
            said.push('\n');
            said.push_str(&t!(locale, "tools.post_channel.called", names = called.join(", ")));
        }
        Ok(ToolOutput::text(said).with_data(json!({"status": "posted", "channel": board, "mentioned": called})))
    }
}

impl PostChannel {
    /// Tells whoever a post names, as far as they may read it. A letter that cannot be delivered does not take the
    /// post back: it stands on the board, where mentions are looked for.
    async fn call(&self, board: &BoardName, text: &str, cx: &ToolContext) -> Result<Vec<String>, ToolError> {
        let data = self.outbox.home.dir().data().clone();
        let organisation = fs::blocking(move || Organisation::load(&data)).await.map_err(fault::file)?;
        let working: Vec<_> =
            organisation.members().filter(|member| member.enabled && member.name != cx.anima).collect();
        let names: Vec<_> = working.iter().map(|member| member.name.clone()).collect();
        let called = Called::by(text, &names);
        let note =
            t!(cx.locale, "tools.post_channel.mention", from = cx.anima, channel = board, text = head(text, REPEATED));
        let mut told = Vec::new();
        for name in names.iter().filter(|name| called.calls(name)) {
            let may_read = self.outbox.post.boards(name).await.map_err(|error| fault::post(error, cx.locale))?;
            if !may_read.contains(board) {
                continue;
            }
            // who is named answers now; a call to everybody waits for the next look around
            let is_personal = called.names.contains(name);
            let sent = self.outbox.mention(name, note.clone(), is_personal, cx).await;
            if sent.log_err("tell somebody that a board names them").is_some() {
                told.push(name.to_string());
            }
        }
        Ok(told)
    }
}

/// What `read_channel` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadArgs {
    channel: String,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    human_only: bool,
}

#[derive(Debug)]
pub(super) struct ReadChannel {
    pub(super) home: AnimaHome,
    pub(super) post: Arc<dyn PostOffice>,
}

impl TypedTool for ReadChannel {
    const NAME: &'static str = "read_channel";
    const EFFECT: Effect = Effect::Reads;
    type Args = ReadArgs;

    async fn run(&self, args: ReadArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let board = board(&args.channel, self.post.as_ref(), cx).await?;
        let limit = args.limit.unwrap_or(SHOWN).clamp(1, MOST);
        // people's posts may be few among many
        let wide = if args.human_only { MOST * 10 } else { limit };
        let read = self.post.board(&board, &cx.anima, None, wide).await;
        let mut posts = read.map_err(|error| fault::post(error, cx.locale))?;
        if args.human_only {
            posts.retain(|post| post.source == SenderKind::Human);
        }
        posts.drain(..posts.len().saturating_sub(limit));

        let mut text = t!(cx.locale, "tools.read_channel.found", channel = board, count = posts.len());
        for post in &posts {
            text.push('\n');
            text.push_str(&line(post, self.home.zone()));
        }
        let lowest = super::lowest(posts.iter().map(origin));
        let home = self.home.clone();
        let activity = Activity::new(Activity::CHANNEL_READ)
            .summary(text.lines().next().unwrap_or_default())
            .channel(board.as_str())
            .origin(lowest.clone());
        fs::blocking(move || home.log(activity).map(|_| ())).await.map_err(fault::file)?;
        let data = json!({"channel": board, "posts": posts});
        Ok(ToolOutput::text(text).with_data(data).from_origin(lowest))
    }
}

/// The board of a name; an unknown one is answered with those that there are.
async fn board(name: &str, post: &dyn PostOffice, cx: &ToolContext) -> Result<BoardName, ToolError> {
    let plain = name.trim().trim_start_matches('#').to_lowercase();
    let open = post.boards(&cx.anima).await.map_err(|error| fault::post(error, cx.locale))?;
    match open.iter().find(|board| board.as_str() == plain) {
        Some(board) => Ok(board.clone()),
        None => {
            let names: Vec<_> = open.iter().map(BoardName::as_str).collect();
            Err(fault::failed(
                "FileNotFound",
                t!(cx.locale, "tools.read_channel.unknown", channel = head(&plain, 40)),
                t!(cx.locale, "tools.read_channel.unknown_instead", names = names.join(", ")),
            ))
        }
    }
}

/// One post as a row.
pub(super) fn line(post: &BoardPost, zone: Tz) -> String {
    let at = post.ts.with_timezone(&zone).format("%m-%d %H:%M");
    let platform = post.extra.get("platform").and_then(Value::as_str);
    let place = platform.map(|platform| format!(" ({})", head(platform, 20))).unwrap_or_default();
    row(&format!("[{at}] {}{place}:", head(&post.from, 40).replace(['\n', '\r'], " ")), &post.text)
}

/// Where a post comes from: what was noted with it, else who wrote it.
pub(super) fn origin(post: &BoardPost) -> Origin {
    let chain = post.extra.get("origin_chain").and_then(Value::as_array).into_iter().flatten();
    let chain: Vec<String> = chain.filter_map(Value::as_str).map(str::to_owned).collect();
    let by_author = match post.source {
        _ if post.extra.contains_key("platform") => Origin::EXTERNAL_PLATFORM,
        SenderKind::Human => Origin::HUMAN,
        SenderKind::Anima => Origin::ANIMA,
        SenderKind::System => Origin::SYSTEM,
    };
    // a note may lower what the author is worth, never raise it
    let noted = post.extra.get("origin").and_then(Value::as_str);
    let noted = Origin { source: noted.unwrap_or(by_author).to_owned(), chain };
    Origin::of(by_author).joined(&noted)
}
