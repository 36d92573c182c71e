//! The Responses dialect of OpenAI. A call named `space/tool` is one of a tool in a namespace.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Part, Reply, names, words};

fn item(part: &Part, at: usize) -> Value {
    match part {
        Part::Text(text) => json!({
            "type": "message", "id": format!("msg_{at}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Part::Thinking(text) => json!({
            "type": "reasoning", "id": format!("rs_{at}"), "summary": [{"type": "summary_text", "text": text}],
        }),
        Part::Call { id, name, arguments } => {
            let mut item = json!({
                "type": "function_call", "id": format!("fc_{at}"), "call_id": id, "name": name,
                "arguments": arguments, "status": "completed",
            });
            if let Some((space, tool)) = name.split_once('/') {
                item["namespace"] = space.into();
                item["name"] = tool.into();
            }
            item
        }
    }
}

pub(super) fn whole(reply: &Reply) -> Value {
    let output: Vec<Value> = reply.parts.iter().enumerate().map(|(at, part)| item(part, at)).collect();
    let (input, written, cached) = reply.usage.unwrap_or_default();
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "kit", "status": "completed", "output": output,
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": written, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + written,
        },
    })
}

pub(super) fn events(reply: &Reply, _wants_usage: bool) -> Vec<String> {
    let done = whole(reply);
    let mut begun = done.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (at, part) in reply.parts.iter().enumerate() {
        let whole = item(part, at);
        let (id, mut begun) = (whole["id"].clone(), whole.clone());
        match part {
            Part::Text(_) => begun["content"] = json!([]),
            Part::Thinking(_) => begun["summary"] = json!([]),
            Part::Call { .. } => begun["arguments"] = "".into(),
        }
        events.push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
        let (kind, text, key) = match part {
            Part::Text(text) => ("response.output_text", text, "text"),
            Part::Thinking(text) => ("response.reasoning_summary_text", text, "text"),
            Part::Call { arguments, .. } => ("response.function_call_arguments", arguments, "arguments"),
        };
        let place = json!({"item_id": id, "output_index": at, "content_index": 0, "summary_index": 0});
        let told = |kind: String, key: &str, text: &str| {
            let mut event = place.clone();
            event["type"] = kind.into();
            event[key] = text.into();
            event
        };
        events.extend(words(text).iter().map(|piece| told(format!("{kind}.delta"), "delta", piece)));
        events.push(told(format!("{kind}.done"), key, text));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": whole}));
    }
    events.push(json!({"type": "response.completed", "response": done}));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    });
    numbered.collect()
}

pub(super) fn breaches(body: &Value, found: &mut Vec<String>) {
    let input = body["input"].as_array().cloned().unwrap_or_default();
    if input.is_empty() {
        found.push("no input".to_owned());
    }
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (at, item) in input.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("function_call") if !open.insert(id.clone()) => {
                found.push(format!("item {at}: call id {id:?} is open already"));
            }
            Some("function_call_output") if !open.remove(&id) => {
                found.push(format!("item {at}: a result for {id:?}, which was not called before"));
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        found.push(format!("{open:?} were never answered"));
    }
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let (spaces, single): (Vec<_>, Vec<_>) = tools.into_iter().partition(|tool| tool["type"] == "namespace");
    let named: Vec<Value> = single.into_iter().filter(|tool| tool["type"] == "function").collect();
    names(Some(&named), |tool| &tool["name"], found);
    for space in spaces {
        names(space["tools"].as_array(), |tool| &tool["name"], found);
    }
}
