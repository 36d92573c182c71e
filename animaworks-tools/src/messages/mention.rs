//! Who a post calls by name, and `read_channel_mentions`.

use std::sync::Arc;

use animaworks_core::{
    AnimaName, ToolContext, ToolError, ToolOutput, TypedTool, home::AnimaHome, seams::PostOffice, t, tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    boards::{line, origin},
    lowest,
};
use crate::fault;

/// How far back a board is searched.
const SEARCHED: usize = 1000;
/// Mentions that are shown unless somebody asks for another number.
const SHOWN: usize = 10;
/// Mentions that are shown at the most.
const MOST: usize = 50;
/// The word that calls everybody.
const EVERYBODY: &str = "all";

/// Whom a text calls: everybody, or some by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) everybody: bool,
    pub(super) names: Vec<AnimaName>,
}

impl Called {
    /// Finds `@name` and `@all`. An `@` inside a word, as in an address, calls nobody.
    pub(super) fn by(text: &str, known: &[AnimaName]) -> Self {
        let mut called = Self::default();
        for (at, _) in text.match_indices('@') {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@')) {
                continue;
            }
            let rest = text.get(at + 1..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
            if word == EVERYBODY {
                called.everybody = true;
            } else if let Some(name) = longest(&word, known)
                && !called.names.contains(name)
            {
                called.names.push(name.clone());
            }
        }
        called
    }

    pub(super) fn calls(&self, name: &AnimaName) -> bool {
        self.everybody || self.names.contains(name)
    }
}

/// The name a word is or begins with, up to a hyphen or an underscore: `yuki-san` calls yuki.
fn longest<'a>(word: &str, known: &'a [AnimaName]) -> Option<&'a AnimaName> {
    let mut word = word;
    loop {
        if let Some(name) = known.iter().find(|name| name.as_str() == word) {
            return Some(name);
        }
        word = word.get(..word.rfind(['-', '_'])?)?;
    }
}

/// What `read_channel_mentions` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MentionArgs {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug)]
pub(super) struct ReadChannelMentions {
    pub(super) home: AnimaHome,
    pub(super) post: Arc<dyn PostOffice>,
}

impl TypedTool for ReadChannelMentions {
    const NAME: &'static str = "read_channel_mentions";
    const EFFECT: Effect = Effect::Reads;
    type Args = MentionArgs;

    async fn run(&self, args: MentionArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let who = match args.name.as_deref().map(|name| name.trim().trim_start_matches('@')).filter(|n| !n.is_empty()) {
            Some(name) => AnimaName::new(name.to_lowercase())
                .map_err(|error| fault::invalid(Self::NAME, format!("name: {error}")))?,
            None => cx.anima.clone(),
        };
        let mut found = Vec::new();
        for board in self.post.boards(&cx.anima).await.map_err(|error| fault::post(error, cx.locale))? {
            let posts = self.post.board(&board, &cx.anima, None, SEARCHED).await;
            for post in posts.map_err(|error| fault::post(error, cx.locale))? {
                // whoever writes their own name has not been called
                if post.from != who.as_str() && Called::by(&post.text, std::slice::from_ref(&who)).calls(&who) {
                    found.push((board.clone(), post));
                }
            }
        }
        found.sort_by_key(|(_, post)| post.ts);
        found.drain(..found.len().saturating_sub(args.limit.unwrap_or(SHOWN).clamp(1, MOST)));

        let zone = self.home.zone();
        let mut text = t!(cx.locale, "tools.read_channel_mentions.found", name = who, count = found.len());
        for (board, post) in &found {
            text.push_str(&format!("\n#{board} {}", line(post, zone)));
        }
        let lowest = lowest(found.iter().map(|(_, post)| origin(post)));
        let data: Vec<_> = found.iter().map(|(board, post)| json!({"channel": board, "post": post})).collect();
        Ok(ToolOutput::text(text).with_data(json!({ "mentions": data })).from_origin(lowest))
    }
}
