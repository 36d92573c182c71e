//! The `generateContent` dialect of Gemini.

use serde_json::{Value, json};

use super::{Part, Reply, names, words};

fn chunk(reply: &Reply, parts: &[Value], last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut chunk = json!({"modelVersion": "kit", "responseId": "response-1"});
    if last {
        candidate["finishReason"] = reply.finish.unwrap_or("STOP").into();
    }
    if let Some((input, output, cached)) = reply.usage {
        chunk["usageMetadata"] = json!({
            "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output,
            "cachedContentTokenCount": cached,
        });
    }
    chunk["candidates"] = json!([candidate]);
    chunk
}

fn call(name: &str, arguments: &str) -> Value {
    let args: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
    json!({"functionCall": {"name": name, "args": args}})
}

pub(super) fn whole(reply: &Reply) -> Value {
    let part = |part: &Part| match part {
        Part::Text(text) => json!({"text": text}),
        Part::Thinking(text) => json!({"text": text, "thought": true}),
        Part::Call { name, arguments, .. } => call(name, arguments),
    };
    chunk(reply, &reply.parts.iter().map(part).collect::<Vec<_>>(), true)
}

pub(super) fn events(reply: &Reply, _wants_usage: bool) -> Vec<String> {
    let mut parts = Vec::new();
    for part in &reply.parts {
        match part {
            Part::Text(text) => parts.extend(words(text).into_iter().map(|piece| json!({"text": piece}))),
            Part::Thinking(text) => {
                parts.extend(words(text).into_iter().map(|piece| json!({"text": piece, "thought": true})));
            }
            Part::Call { name, arguments, .. } => parts.push(call(name, arguments)),
        }
    }
    let last = parts.len().saturating_sub(1);
    let chunks = parts.iter().enumerate().map(|(at, part)| chunk(reply, std::slice::from_ref(part), at == last));
    chunks.map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

pub(super) fn breaches(body: &Value, found: &mut Vec<String>) {
    let contents = body["contents"].as_array().cloned().unwrap_or_default();
    if contents.is_empty() {
        found.push("no contents".to_owned());
    }
    let named = |content: &Value, kind: &str| -> Vec<String> {
        let parts = content["parts"].as_array().into_iter().flatten();
        parts.filter_map(|part| part[kind]["name"].as_str().map(str::to_owned)).collect()
    };
    let mut open: Vec<String> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        if content["parts"].as_array().is_none_or(Vec::is_empty) {
            found.push(format!("content {at}: no parts"));
        }
        let answered = named(content, "functionResponse");
        if answered != open {
            found.push(format!("content {at}: {open:?} were called, {answered:?} were answered"));
        }
        open = named(content, "functionCall");
    }
    if !open.is_empty() {
        found.push(format!("{open:?} were never answered"));
    }
    for tools in body["tools"].as_array().into_iter().flatten() {
        names(tools["functionDeclarations"].as_array(), |tool| &tool["name"], found);
    }
}
