//! Read: a text file, line by line, with numbers.

use animaworks_core::{Locale, ToolContext, ToolError, ToolOutput, Trust, TypedTool, t, tool::Effect};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, allowed, bytes_of, labelled, surroundings};
use crate::permission::{FileAccess, Want};

/// Lines that are shown when nobody says how many.
const LINES: usize = 2_000;
/// Most bytes that are shown; a prompt has room for little more.
const SHOWN_BYTES: usize = 45_000;
/// A longer line is cut.
const LINE_CHARS: usize = 2_000;

/// What `Read` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    path: String,
    #[serde(default)]
    offset: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Read(pub(super) Desk);

impl TypedTool for Read {
    const NAME: &'static str = "Read";
    const EFFECT: Effect = Effect::Reads;
    const RETURNS: Trust = Trust::Medium;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let desk = self.0.clone();
        let (thread, locale) = surroundings(cx);
        self.0
            .at(move |files| {
                let real = allowed(files, &args.path, Want::Read, Self::NAME, locale)?;
                let Some(bytes) = bytes_of(&real, &args.path, locale)? else {
                    return Err(missing(files, &real, &args.path, locale));
                };
                desk.note(&thread, &real, &bytes);
                Ok(shown(&args, &bytes, locale))
            })
            .await
    }
}

/// Not there; files of nearly that name beside it are.
fn missing(files: &FileAccess, real: &std::path::Path, given: &str, locale: Locale) -> ToolError {
    let names: Vec<String> = real
        .parent()
        .filter(|parent| files.rule(parent, Want::Read).is_ok())
        .and_then(|parent| fs_err::read_dir(parent).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    let wanted = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let near = animaworks_core::gate::near(&wanted, names.iter().map(String::as_str), 3);
    ToolError::Failed {
        error_type: "FileNotFound",
        message: t!(locale, "tools.file.not_found", path = given),
        suggestion: (!near.is_empty()).then(|| t!(locale, "tools.file.near", names = near.join(", "))),
    }
}

fn shown(args: &Args, bytes: &[u8], locale: Locale) -> ToolOutput {
    if bytes.iter().take(8_192).any(|byte| *byte == 0) {
        return ToolOutput::text(t!(locale, "tools.read.binary", path = args.path, bytes = bytes.len()));
    }
    let text = String::from_utf8_lossy(bytes);
    let broken = matches!(text, std::borrow::Cow::Owned(_));
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let total = text.lines().count();
    let first = args.offset.unwrap_or(1).max(1);
    let limit = args.limit.unwrap_or(LINES).clamp(1, LINES);
    let mut out = t!(locale, "tools.read.data_only");
    let mut last = first.saturating_sub(1);
    for (at, line) in text.lines().enumerate().skip(first - 1).take(limit) {
        if out.len() + line.len().min(LINE_CHARS * 3) > SHOWN_BYTES {
            break;
        }
        let cut: String = line.chars().take(LINE_CHARS).collect();
        let more = if cut.len() < line.len() { " …" } else { "" };
        out.push_str(&format!("\n{}|{cut}{more}", at + 1));
        last = at + 1;
    }
    if broken {
        out.push_str(&format!("\n{}", t!(locale, "tools.read.not_utf8")));
    }
    if last < total {
        out.push_str(&format!("\n{}", t!(locale, "tools.read.more", last = last, total = total, next = last + 1)));
    }
    let data = json!({ "path": args.path, "lines": total, "first": first, "last": last });
    labelled(ToolOutput::text(out).with_data(data), text)
}
