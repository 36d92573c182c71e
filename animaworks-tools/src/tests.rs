//! What holds for every tool.

use animaworks_core::ToolSpec;
use serde_json::Value;

/// Asserts that a tool and all its arguments, also those of things in lists, say what they are.
pub(crate) fn described(spec: &ToolSpec) {
    assert!(!spec.description.starts_with("tools.describe"), "{}", spec.name);
    properties(&spec.schema, spec.name.as_str());
}

fn properties(schema: &Value, place: &str) {
    for (argument, schema) in schema["properties"].as_object().into_iter().flatten() {
        assert!(schema["description"].is_string(), "{place} {argument}");
        assert!(schema["$ref"].is_null(), "{place} {argument} refers to somewhere else");
        properties(&schema["items"], &format!("{place} {argument}"));
    }
}
