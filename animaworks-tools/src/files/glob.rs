//! Glob: files by the form of their names.

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, t, tool::Effect};
use globset::GlobBuilder;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, Start, labelled, surroundings};

/// Most names in an answer.
const MAX_ENTRIES: usize = 500;

/// What `Glob` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
}

#[derive(Debug)]
pub(super) struct Glob(pub(super) Desk);

impl TypedTool for Glob {
    const NAME: &'static str = "Glob";
    const EFFECT: Effect = Effect::Reads;
    const RETURNS: Trust = Trust::Medium;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (_, locale) = surroundings(cx);
        self.0
            .at(move |files| {
                let glob = GlobBuilder::new(&args.pattern).literal_separator(true).build().map_err(|error| {
                    ToolError::failed("InvalidArguments", t!(locale, "tools.grep.bad_pattern", problem = error))
                })?;
                let matcher = glob.compile_matcher();
                let start = Start::new(files, args.path.as_deref(), Self::NAME, locale)?;
                let mut names: Vec<String> = start
                    .files(files, false)
                    .into_iter()
                    .filter(|(real, _)| real.strip_prefix(&start.real).is_ok_and(|inside| matcher.is_match(inside)))
                    .map(|(_, shown)| shown)
                    .take(MAX_ENTRIES + 1)
                    .collect();
                let more = names.len() > MAX_ENTRIES;
                names.truncate(MAX_ENTRIES);
                let mut text = match names.len() {
                    0 => t!(locale, "tools.grep.nothing", pattern = args.pattern),
                    _ => names.join("\n"),
                };
                if more {
                    text.push_str(&format!("\n{}", t!(locale, "tools.grep.more", count = MAX_ENTRIES)));
                }
                Ok(labelled(ToolOutput::text(text).with_data(json!({ "files": names, "more": more })), ""))
            })
            .await
    }
}
