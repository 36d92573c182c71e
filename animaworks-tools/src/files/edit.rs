//! Edit: one place in a file, found by its text.

use animaworks_core::{Locale, ToolContext, ToolError, ToolOutput, TypedTool, t, tool::Effect};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Desk, allowed, bytes_of, is_crlf, surroundings, with_line_ends, write::Change};
use crate::permission::Want;

/// What `Edit` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    path: String,
    old_string: String,
    new_string: String,
}

#[derive(Debug)]
pub(super) struct Edit(pub(super) Desk);

impl TypedTool for Edit {
    const NAME: &'static str = "Edit";
    const EFFECT: Effect = Effect::Acts;
    type Args = Args;

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let desk = self.0.clone();
        let (thread, locale) = surroundings(cx);
        self.0
            .at(move |files| {
                let real = allowed(files, &args.path, Want::Write, Self::NAME, locale)?;
                let Some(old) = bytes_of(&real, &args.path, locale)? else {
                    return Err(ToolError::failed(
                        "FileNotFound",
                        t!(locale, "tools.file.not_found", path = args.path),
                    ));
                };
                let Ok(text) = std::str::from_utf8(&old) else {
                    let said = t!(locale, "tools.edit.not_utf8", path = args.path);
                    return Err(ToolError::failed("InvalidArguments", said));
                };
                let crlf = is_crlf(text);
                let changed = replaced(text, &args, crlf, locale)?;
                let change =
                    Change { files, desk: &desk, thread: &thread, given: &args.path, locale, tool: Self::NAME };
                change.put(&real, Some(&old), &changed)?;
                Ok(ToolOutput::text(t!(locale, "tools.edit.done", path = args.path))
                    .with_data(json!({ "path": args.path, "bytes": changed.len() })))
            })
            .await
    }
}

fn replaced(text: &str, args: &Args, crlf: bool, locale: Locale) -> Result<String, ToolError> {
    let failed = |message: String| Err(ToolError::failed("InvalidArguments", message));
    if args.old_string.is_empty() || args.old_string == args.new_string {
        return failed(t!(locale, "tools.edit.nothing"));
    }
    let (old, new) = (with_line_ends(&args.old_string, crlf), with_line_ends(&args.new_string, crlf));
    match text.matches(&old).count() {
        1 => Ok(text.replacen(&old, &new, 1)),
        0 => match loosely(text, &old).as_slice() {
            [(from, to)] => {
                let (before, after) = (text.get(..*from).unwrap_or_default(), text.get(*to..).unwrap_or_default());
                Ok(format!("{before}{new}{after}"))
            }
            [] => failed(t!(locale, "tools.edit.not_found", path = args.path)),
            many => failed(t!(locale, "tools.edit.many", count = many.len())),
        },
        count => failed(t!(locale, "tools.edit.many", count = count)),
    }
}

/// Places that differ only in blanks at line ends and between Japanese and Latin letters, as byte ranges.
fn loosely(text: &str, wanted: &str) -> Vec<(usize, usize)> {
    let (loose, starts) = loosened(text);
    let (wanted, _) = loosened(wanted);
    if wanted.trim().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = loose.get(from..).and_then(|rest| rest.find(&wanted)) {
        let (start, end) = (from + at, from + at + wanted.len());
        let place = |byte: usize| starts.get(byte).copied().unwrap_or(text.len());
        found.push((place(start), place(end)));
        from = start + wanted.chars().next().map_or(1, char::len_utf8);
    }
    found
}

/// A text without those blanks, and for each of its bytes where it stood.
fn loosened(text: &str) -> (String, Vec<usize>) {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut out = String::with_capacity(text.len());
    let mut starts = Vec::with_capacity(text.len());
    for (at, (place, c)) in chars.iter().enumerate() {
        if matches!(c, ' ' | '\t' | '　' | '\r') {
            let next = chars.iter().skip(at).map(|(_, c)| *c).find(|c| !matches!(c, ' ' | '\t' | '　' | '\r'));
            let at_line_end = next.is_none_or(|c| c == '\n');
            let wide = |c: Option<char>| {
                c.is_some_and(
                    |c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}'),
                )
            };
            if at_line_end || wide(next) != wide(out.chars().next_back()) {
                continue;
            }
        }
        starts.extend(std::iter::repeat_n(*place, c.len_utf8()));
        out.push(*c);
    }
    (out, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, old: &str, new: &str) -> Result<String, ToolError> {
        let args = Args { path: "a.md".to_owned(), old_string: old.to_owned(), new_string: new.to_owned() };
        replaced(text, &args, is_crlf(text), Locale::En)
    }

    #[test]
    fn replaces_the_one_place_and_keeps_the_line_ends() {
        assert_eq!(edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny").unwrap(), "x\r\ny\r\nc\r\n");
        assert_eq!(edit("Rust で書く  \n次", "Rustで書く\n次", "Go\n次").unwrap(), "Go\n次");
        assert!(edit("a a", "a", "b").unwrap_err().to_string().contains('2'));
        assert!(edit("a", "z", "b").is_err());
        assert!(edit("a", "", "b").is_err());
    }
}
