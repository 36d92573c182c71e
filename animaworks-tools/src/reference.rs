//! The reference of all tools, made from their own descriptions and schemas.

use std::sync::Arc;

use animaworks_core::{
    Locale, ToolSpec, TriggerKind,
    gate::trigger_allows,
    t,
    tool::{DurationClass, Effect},
};
use serde_json::Value;

/// A page of Markdown about the tools given, in the order of their names: what each does, what it takes, when it may
/// be used and how far its results may be believed.
pub fn reference(specs: &[Arc<ToolSpec>], locale: Locale) -> String {
    let mut sorted: Vec<&Arc<ToolSpec>> = specs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted.dedup_by(|a, b| a.name == b.name);
    let mut page = format!("# {}\n\n{}\n", t!(locale, "tools.reference.title"), t!(locale, "tools.reference.intro"));
    for spec in sorted {
        section(&mut page, spec, locale);
    }
    page
}

fn section(page: &mut String, spec: &ToolSpec, locale: Locale) {
    let effect = match spec.effect {
        Effect::Reads => t!(locale, "tools.reference.effect.reads"),
        Effect::Remembers => t!(locale, "tools.reference.effect.remembers"),
        Effect::Communicates => t!(locale, "tools.reference.effect.communicates"),
        Effect::Acts => t!(locale, "tools.reference.effect.acts"),
        Effect::External => t!(locale, "tools.reference.effect.external"),
    };
    let mut facts = vec![effect, t!(locale, "tools.reference.trust", trust = spec.returns.as_str())];
    if spec.duration == DurationClass::Long {
        facts.push(t!(locale, "tools.reference.long"));
    }
    if !trigger_allows(TriggerKind::Heartbeat, spec.effect) {
        facts.push(t!(locale, "tools.reference.not_heartbeat"));
    }
    let text = format!("\n## `{}`\n\n{}\n\n{}\n", spec.name, spec.description.trim(), facts.join(" · "));
    page.push_str(&text);
    let mut rows = String::new();
    arguments(&mut rows, &spec.schema, "", locale);
    if !rows.is_empty() {
        let titles = t!(locale, "tools.reference.columns");
        page.push_str(&format!("\n{titles}\n|---|---|---|\n{rows}"));
    }
}

/// One row for each argument; those of things in a list follow it, indented by their path.
fn arguments(rows: &mut String, schema: &Value, prefix: &str, locale: Locale) {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, argument) in schema["properties"].as_object().into_iter().flatten() {
        let needed =
            if required.contains(&name.as_str()) { t!(locale, "tools.reference.required") } else { String::new() };
        let text = argument["description"].as_str().unwrap_or_default();
        let row = format!("| `{prefix}{name}` | {}{needed} | {} |", cell(&kind(argument)), cell(text));
        rows.push_str(&row);
        rows.push('\n');
        arguments(rows, &argument["items"], &format!("{prefix}{name}[]."), locale);
    }
}

/// The type of an argument in a few words: `string`, `integer`, `string[]`, or the words it may be.
fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" / ");
    }
    for variants in [&schema["oneOf"], &schema["anyOf"]] {
        let kinds: Vec<String> = variants
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| one["const"].as_str().map_or_else(|| kind(one), str::to_owned))
            .filter(|kind| kind != "null" && !kind.is_empty())
            .collect();
        if !kinds.is_empty() {
            return kinds.join(" / ");
        }
    }
    let words: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).filter(|word| *word != "null").collect(),
        _ => Vec::new(),
    };
    match words.as_slice() {
        ["array"] => format!("{}[]", kind(&schema["items"])),
        words => words.join(" / "),
    }
}

/// A text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use animaworks_core::{ToolName, Trust};
    use serde_json::json;

    use super::*;
    use crate::messages::{message_tools, tests::Office};

    #[test]
    fn a_page_says_what_a_tool_takes() {
        let spec = ToolSpec {
            name: ToolName::new("z").unwrap(),
            description: "Does | it.".into(),
            schema: json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": ["string", "null"], "description": "one\nor | two"},
                "b": {"enum": ["x", "y"]},
                "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "integer"}}}},
                "e": {"anyOf": [{"oneOf": [{"const": "p"}, {"const": "q"}]}, {"type": "null"}]}
            }}),
            effect: Effect::Acts,
            duration: DurationClass::Long,
            returns: Trust::Untrusted,
        };
        let page = reference(&[Arc::new(spec.clone()), Arc::new(spec)], Locale::En);
        assert_eq!(page.matches("## `z`").count(), 1);
        let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `a` | string, required | one or \\| two |",
                "| `b` | x / y |  |",
                "| `c` | object[] |  |",
                "| `c[].d` | integer |  |",
                "| `e` | p / q |  |"
            ]
        );
        assert!(page.contains("untrusted"), "{page}");
    }

    #[test]
    fn our_tools_are_described_in_their_language() {
        let office = Office::open();
        for (locale, word) in [(Locale::Ja, "必須"), (Locale::En, "required")] {
            let specs: Vec<_> =
                message_tools(&office.services, locale).iter().map(|tool| tool.spec().clone()).collect();
            let page = reference(&specs, locale);
            assert!(page.contains("## `send_message`") && page.contains(word), "{page}");
            assert!(page.contains("| `intent` | report / delegation / question"), "{page}");
            assert!(page.contains("| `direction` | sent / received / both"), "{page}");
        }
    }
}
