//! Grep: lines that match, in files that may be read.

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, t, tool::Effect};
use globset::GlobBuilder;
use grep_regex::RegexMatcherBuilder;
use grep_searcher::{BinaryDetection, SearcherBuilder, sinks::Lossy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, Start, labelled, pinned, surroundings};

/// Most lines in an answer.
const MAX_LINES: usize = 200;
/// A longer line is cut.
const LINE_CHARS: usize = 300;
/// Larger files are not searched.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// What `Grep` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
}

#[derive(Debug)]
pub(super) struct Grep(pub(super) Desk);

impl TypedTool for Grep {
    const NAME: &'static str = "Grep";
    const EFFECT: Effect = Effect::Reads;
    const RETURNS: Trust = Trust::Medium;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (_, locale) = surroundings(cx);
        let cancel = cx.cancel.clone();
        self.0
            .at(move |files| {
                let bad = |error: &dyn std::fmt::Display| {
                    ToolError::failed("InvalidArguments", t!(locale, "tools.grep.bad_pattern", problem = error))
                };
                let matcher = RegexMatcherBuilder::new()
                    .case_insensitive(args.ignore_case)
                    .size_limit(4 << 20)
                    .build(&args.pattern)
                    .map_err(|error| bad(&error))?;
                let only = args
                    .glob
                    .as_deref()
                    .map(|glob| {
                        GlobBuilder::new(glob).literal_separator(false).build().map(|glob| glob.compile_matcher())
                    })
                    .transpose()
                    .map_err(|error| bad(&error))?;
                let start = Start::new(files, args.path.as_deref(), Self::NAME, locale)?;
                let mut searcher =
                    SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
                let mut lines: Vec<String> = Vec::new();
                for (real, shown) in start.files(files, true) {
                    if lines.len() > MAX_LINES || cancel.is_cancelled() {
                        break;
                    }
                    let name = real.file_name().map_or(real.as_path(), std::path::Path::new);
                    if only.as_ref().is_some_and(|only| !only.is_match(&shown) && !only.is_match(name)) {
                        continue;
                    }
                    let Ok(pinned::Content::File(bytes)) = pinned::read(&real, MAX_FILE_BYTES) else { continue };
                    let sink = Lossy(|number, line| {
                        let cut: String = line.trim_end().chars().take(LINE_CHARS).collect();
                        lines.push(format!("{shown}:{number}:{cut}"));
                        Ok(lines.len() <= MAX_LINES)
                    });
                    searcher.search_slice(&matcher, &bytes, sink).map_err(|error| bad(&error))?;
                }
                let more = lines.len() > MAX_LINES;
                lines.truncate(MAX_LINES);
                let mut text = match lines.len() {
                    0 => t!(locale, "tools.grep.nothing", pattern = args.pattern),
                    _ => lines.join("\n"),
                };
                if more {
                    text.push_str(&format!("\n{}", t!(locale, "tools.grep.more", count = MAX_LINES)));
                }
                Ok(labelled(ToolOutput::text(text).with_data(json!({ "lines": lines, "more": more })), ""))
            })
            .await
    }
}
