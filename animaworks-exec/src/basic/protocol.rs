//! What a model that only writes text is told about its tools, and how it is answered (exec spec §1.15).

use std::sync::Arc;

use animaworks_core::{Locale, Tokens, ToolName, ToolOutput, ToolSpec, i18n::fill, t, templates};
use serde_json::Value;

/// Up to this window the list of tools takes one line per tool.
const COMPACT_UP_TO: Tokens = Tokens(8192);
/// What is shown of a tool's answer, in bytes.
const MAX_OUTPUT_BYTES: usize = 4096;
/// A message that only announces something is short.
const ANNOUNCEMENT_CHARS: usize = 200;

/// The system prompt with the tool protocol behind it; unchanged when there are no tools.
pub(crate) fn system(locale: Locale, system: &str, tools: &[Arc<ToolSpec>], window: Tokens) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let list: Vec<String> =
        tools.iter().map(|tool| if window <= COMPACT_UP_TO { compact(tool) } else { full(locale, tool) }).collect();
    let page = templates::find(locale, "prompts/tool_protocol.md").unwrap_or("{tools}");
    format!("{}\n\n{}", system.trim_end(), fill(page, &[("tools", list.join("\n"))]).trim_end())
}

/// `- **name**(a, b?): what it does`
fn compact(tool: &ToolSpec) -> String {
    let names = arguments(&tool.schema).map(|(name, _, required)| if required { name } else { format!("{name}?") });
    let names = names.collect::<Vec<_>>().join(", ");
    format!("- **{}**({names}): {}", tool.name, first_sentence(&tool.description))
}

fn full(locale: Locale, tool: &ToolSpec) -> String {
    let mut text = format!("- **{}**: {}", tool.name, tool.description.trim());
    let args: Vec<String> = arguments(&tool.schema)
        .map(|(name, kind, required)| {
            let required = if required { t!(locale, "exec.basic.required") } else { String::new() };
            format!("{name}: {kind}{required}")
        })
        .collect();
    if !args.is_empty() {
        text.push_str(&format!("\n  - Args: {}", args.join(", ")));
    }
    text
}

/// Name, type and whether it must be given, of every argument.
fn arguments(schema: &Value) -> impl Iterator<Item = (String, String, bool)> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(move |(name, what)| (name.clone(), kind(what), required.contains(&name.as_str())))
}

fn kind(what: &Value) -> String {
    if let Some(words) = what.get("enum").and_then(Value::as_array) {
        return words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    match what.get("type") {
        Some(Value::String(name)) => name.clone(),
        // ["string", "null"]: optional
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("any").to_owned()
        }
        _ => "any".to_owned(),
    }
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let end = text.char_indices().find(|(at, c)| {
        let behind = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        matches!(c, '。' | '\n') || (*c == '.' && behind.is_none_or(char::is_whitespace))
    });
    end.and_then(|(at, c)| text.get(..at + c.len_utf8())).unwrap_or(text).trim_end()
}

/// A tool's answer as the next message.
pub(crate) fn answered(locale: Locale, tool: &ToolName, output: &ToolOutput, reminder: Option<&str>) -> String {
    let mut shown = output.clone();
    if shown.text.len() > MAX_OUTPUT_BYTES {
        let bytes = shown.text.len();
        let end = (0..=MAX_OUTPUT_BYTES).rev().find(|at| shown.text.is_char_boundary(*at)).unwrap_or_default();
        shown.text.truncate(end);
        shown.text.push('\n');
        shown.text.push_str(&t!(locale, "core.gate.truncated", bytes = bytes));
    }
    let mut text = t!(locale, "exec.basic.answered", result = shown.fenced(tool));
    if let Some(reminder) = reminder {
        text.push_str(&format!("\n\n<system-reminder>\n{reminder}\n</system-reminder>"));
    }
    text
}

/// What to say to a model that called a tool that does not exist.
pub(crate) fn unknown_tool(locale: Locale, name: &str, tools: &[Arc<ToolSpec>]) -> String {
    let names = tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let name: String = name.chars().take(80).collect();
    t!(locale, "exec.basic.unknown_tool", name = name, names = names)
}

/// Whether a message only says what it is going to do.
pub(crate) fn announces(text: &str) -> bool {
    let text = text.trim().to_lowercase().replace('’', "'");
    if text.is_empty() || text.chars().count() > ANNOUNCEMENT_CHARS {
        return false;
    }
    Locale::ALL.into_iter().any(|locale| {
        let page = templates::find(locale, "prompts/announcements.txt").unwrap_or_default();
        page.lines().map(str::trim).filter(|line| !line.is_empty()).any(|phrase| text.contains(phrase))
    })
}

#[cfg(test)]
mod tests {
    use animaworks_core::{Trust, tool::DurationClass, tool::Effect};
    use serde_json::json;

    use super::*;

    fn search() -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: ToolName::new("search_memory").unwrap(),
            description: "Finds what you know. Ask in your own words.".into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "scope": {"enum": ["knowledge", "all"]},
                    "offset": {"type": ["integer", "null"]},
                },
                "required": ["query"],
            }),
            effect: Effect::Reads,
            duration: DurationClass::Quick,
            returns: Trust::Trusted,
        })
    }

    #[test]
    fn a_small_window_gets_a_short_list() {
        let short = system(Locale::En, "You are sakura.", &[search()], Tokens(8192));
        assert!(
            short.contains("- **search_memory**(query, scope?, offset?): Finds what you know.\n")
                || short.ends_with("Finds what you know."),
            "{short}"
        );
        let long = system(Locale::En, "You are sakura.", &[search()], Tokens(32_000));
        assert!(long.contains("  - Args: query: string (required), scope: knowledge|all, offset: integer"), "{long}");
        for locale in Locale::ALL {
            let text = system(locale, "S", &[search()], Tokens(32_000));
            assert!(text.contains(r#"{"tool": "search_memory", "arguments": {"query": "#), "{text}");
            assert!(!text.contains("{tools}"));
        }
        assert_eq!(system(Locale::En, "S", &[], Tokens(1)), "S");
    }

    #[test]
    fn a_long_answer_is_cut_and_says_so() {
        let tool = ToolName::new("read_memory_file").unwrap();
        let text = answered(Locale::Ja, &tool, &ToolOutput::text("鍵".repeat(5000)), None);
        assert!(text.len() < 4600 && text.contains("15000"), "{}", text.len());
    }

    #[test]
    fn tells_an_announcement_from_an_answer() {
        for text in
            ["調べます。", "確認しますので、少々お待ちください。", "Let me check that for you.", "I’ll look it up."]
        {
            assert!(announces(text), "{text}");
        }
        for text in ["鍵は品川駅です。", "The key is at the station.", ""] {
            assert!(!announces(text), "{text}");
        }
    }
}
