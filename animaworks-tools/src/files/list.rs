//! list_directory: the names in a directory.

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, fs::FileError, t, tool::Effect};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, allowed, for_model, labelled, surroundings};
use crate::permission::Want;

/// Most names in an answer.
const MAX_ENTRIES: usize = 500;

/// What `list_directory` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    #[serde(default)]
    path: Option<String>,
}

#[derive(Debug)]
pub(super) struct ListDirectory(pub(super) Desk);

impl TypedTool for ListDirectory {
    const NAME: &'static str = "list_directory";
    const EFFECT: Effect = Effect::Reads;
    const RETURNS: Trust = Trust::Medium;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (_, locale) = surroundings(cx);
        self.0
            .at(move |files| {
                let given = args.path.as_deref().unwrap_or(".");
                let real = allowed(files, given, Want::Read, Self::NAME, locale)?;
                if real.is_file() {
                    let said = t!(locale, "tools.list.not_a_directory", path = given);
                    return Err(ToolError::failed("NotADirectory", said));
                }
                let entries = fs_err::read_dir(&real)
                    .map_err(|error| for_model(FileError::io("read", &real, error), given, locale))?;
                let mut names: Vec<String> = entries
                    .filter_map(|entry| {
                        let entry = entry.ok()?;
                        let kind = entry.file_type().ok()?;
                        let mark = if kind.is_dir() {
                            "/"
                        } else if kind.is_symlink() {
                            "@"
                        } else {
                            ""
                        };
                        Some(format!("{}{mark}", entry.file_name().to_string_lossy()))
                    })
                    .collect();
                names.sort_unstable();
                let more = names.len() > MAX_ENTRIES;
                names.truncate(MAX_ENTRIES);
                let mut text =
                    if names.is_empty() { t!(locale, "tools.list.empty", path = given) } else { names.join("\n") };
                if more {
                    text.push_str(&format!("\n{}", t!(locale, "tools.grep.more", count = MAX_ENTRIES)));
                }
                Ok(labelled(ToolOutput::text(text).with_data(json!({ "entries": names, "more": more })), ""))
            })
            .await
    }
}
