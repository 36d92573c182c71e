//! `read_dm_history`: what one has written with a colleague (exec spec §8.3).

use animaworks_core::{
    AnimaName, Origin, ToolContext, ToolError, ToolOutput, TypedTool, fs,
    home::{
        AnimaHome,
        post_office::{DirectMessage, DmQuery},
    },
    organisation::Organisation,
    t,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{lowest, row};
use crate::fault;

/// Letters that are shown at the most.
const MOST: usize = 100;

/// Which way letters went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Way {
    Sent,
    Received,
    #[default]
    Both,
}

/// What `read_dm_history` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HistoryArgs {
    peer: String,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    direction: Way,
    #[serde(default)]
    hours: Option<u32>,
    #[serde(default)]
    keyword: Option<String>,
}

#[derive(Debug)]
pub(super) struct ReadDmHistory {
    pub(super) home: AnimaHome,
}

impl TypedTool for ReadDmHistory {
    const NAME: &'static str = "read_dm_history";
    const EFFECT: Effect = Effect::Reads;
    type Args = HistoryArgs;

    async fn run(&self, args: HistoryArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let peer = args.peer.trim().trim_start_matches('@').to_owned();
        if peer.is_empty() {
            return Err(fault::invalid(Self::NAME, t!(cx.locale, "tools.read_dm_history.nobody")));
        }
        let query = DmQuery {
            limit: args.limit.unwrap_or(20).clamp(1, MOST),
            sent: match args.direction {
                Way::Both => None,
                way => Some(way == Way::Sent),
            },
            hours: args.hours,
            keyword: args.keyword.filter(|word| !word.trim().is_empty()),
        };
        let (home, who) = (self.home.clone(), peer.clone());
        let (letters, organisation) =
            fs::blocking(move || Ok((home.dm_history(&who, &query)?, Organisation::load(home.dir().data())?)))
                .await
                .map_err(fault::file)?;

        let mut text = t!(cx.locale, "tools.read_dm_history.found", peer = peer, count = letters.len());
        for letter in &letters {
            let at = letter.at.map(|at| at.with_timezone(&self.home.zone()).format("%m-%d %H:%M").to_string());
            let head = format!("[{}] {} → {}:", at.unwrap_or_else(|| "-".to_owned()), letter.from, letter.to);
            text.push('\n');
            text.push_str(&row(&head.replace(['\n', '\r'], " "), &letter.text));
        }
        let lowest = lowest(letters.iter().map(|letter| origin(letter, &organisation)));
        let data: Vec<_> = letters
            .iter()
            .map(|letter| json!({"at": letter.at, "from": letter.from, "to": letter.to, "text": letter.text}))
            .collect();
        Ok(ToolOutput::text(text).with_data(json!({"peer": peer, "messages": data})).from_origin(lowest))
    }
}

/// Where a letter comes from: what was noted with it; else it is a colleague's, or a stranger's.
fn origin(letter: &DirectMessage, organisation: &Organisation) -> Origin {
    if letter.origin != Origin::default() {
        return letter.origin.clone();
    }
    let colleague = AnimaName::new(&letter.from).is_ok_and(|name| organisation.member(&name).is_some());
    if colleague { Origin::anima() } else { Origin::of(Origin::EXTERNAL_PLATFORM) }
}
