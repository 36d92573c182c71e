//! `tool list | call`: the services that an Anima may use, tried by its owner through the same gate.

use animaworks_core::{
    CallId, ErrorKind, ToolCall, ToolName, ToolOutput, ToolSpec, TurnHost,
    ids::{IdSource, RandomIds},
    t,
};
use serde_json::{Map, Number, Value};

use crate::{
    args::Tool,
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Tool) -> CliResult {
    match command {
        Tool::List { anima } => block_on(list(cx, &anima)),
        Tool::Call { anima, tool, arguments } => block_on(call(cx, &anima, &tool, &arguments)),
    }
}

async fn list(cx: &Cx, anima: &str) -> CliResult {
    let name = cx.anima(anima)?;
    let visit = cx.host()?.visit_services(&name).await?;
    visit.close().await;
    let tools = visit.tools();
    if cx.json {
        return ui::json(&tools);
    }
    if tools.is_empty() {
        ui::note(t!(cx.locale, "cli.tool.none", name = name));
        return Ok(());
    }
    let headings = [t!(cx.locale, "cli.column.tool"), t!(cx.locale, "cli.column.arguments"), String::new()];
    let rows = tools.iter().map(|tool| vec![tool.name.to_string(), usage(tool), tool.description.clone()]);
    ui::table::print(&headings, rows.collect())
}

/// What a tool takes, the necessary first: `--query string [--limit integer]`.
fn usage(tool: &ToolSpec) -> String {
    let required = required(&tool.schema);
    let properties = tool.schema["properties"].as_object().into_iter().flatten();
    let (mut needed, mut free) = (Vec::new(), Vec::new());
    for (name, schema) in properties {
        let form = format!("--{name} {}", kind(schema));
        if required.contains(&name.as_str()) { needed.push(form) } else { free.push(format!("[{form}]")) }
    }
    needed.extend(free);
    needed.join(" ")
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The JSON type of an argument, without the `null` of optional ones.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("string"),
        _ => "string",
    }
}

async fn call(cx: &Cx, anima: &str, tool: &str, arguments: &[String]) -> CliResult {
    let name = cx.anima(anima)?;
    let tool = ToolName::new(tool)?;
    let visit = cx.host()?.visit_services(&name).await?;
    let args = match visit.tools().iter().find(|spec| spec.name == tool) {
        Some(spec) => parse(arguments, &spec.schema).map_err(|argument| {
            CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.tool.bad_argument", argument = argument))
                .with_hint(t!(cx.locale, "cli.tool.bad_argument_hint", name = name))
        })?,
        // the gate says what is wrong with it
        None => Value::Null,
    };
    let id = CallId::new(RandomIds.fresh())?;
    let answered = tokio::select! {
        answered = visit.call(ToolCall { id, name: tool, args }) => Some(answered),
        pressed = tokio::signal::ctrl_c() => {
            pressed.map_err(CliError::Output)?;
            None
        }
    };
    visit.close().await;
    let answered = answered.ok_or_else(|| CliError::cancelled(cx.locale))?;
    show(cx, answered.map_err(|fault| CliError::said(ErrorKind::Internal, fault.to_string()))?)
}

/// The answer as it is; a refusal or failure as a command's own.
fn show(cx: &Cx, output: ToolOutput) -> CliResult {
    if cx.json {
        ui::json(&output)?;
    } else if !output.is_error {
        ui::line(&output.text)?;
    }
    if !output.is_error {
        return Ok(());
    }
    let said = output.data.unwrap_or_default();
    let kind = match said["error_type"].as_str().unwrap_or_default() {
        "PermissionDenied" => ErrorKind::Permission,
        "UnknownTool" | "FileNotFound" => ErrorKind::NotFound,
        "InvalidArguments" => ErrorKind::InvalidRequest,
        "NotConfigured" => ErrorKind::Auth,
        _ => ErrorKind::Unavailable,
    };
    let error = CliError::said(kind, said["message"].as_str().unwrap_or(&output.text));
    Err(match said["suggestion"].as_str() {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}

/// Arguments as one JSON object, or as `--name value`; a value without a name is the first that the tool needs. The
/// argument that cannot be understood otherwise.
fn parse(words: &[String], schema: &Value) -> Result<Value, String> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        return serde_json::from_str(only).map_err(|error| error.to_string());
    }
    let mut args = Map::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.strip_prefix("--") {
            Some(name) => {
                let name = name.replace('-', "_");
                let is_flag = kind(&schema["properties"][&name]) == "boolean";
                let value = if is_flag { "true".to_owned() } else { words.next().ok_or_else(|| word.clone())?.clone() };
                (name, value)
            }
            None => {
                let free = required(schema).into_iter().find(|name| !args.contains_key(*name));
                (free.ok_or_else(|| word.clone())?.to_owned(), word.clone())
            }
        };
        let value = match kind(&schema["properties"][&name]) {
            "integer" | "number" => {
                value.parse().map(|number: Number| Value::Number(number)).map_err(|_bad| word.clone())?
            }
            "boolean" => Value::Bool(true),
            "array" => Value::from(value.split(',').map(str::trim).collect::<Vec<_>>()),
            _ => Value::String(value),
        };
        args.insert(name, value);
    }
    Ok(Value::Object(args))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn arguments_are_read_as_the_tool_takes_them() {
        let schema = json!({ "required": ["repo", "title"], "properties": {
            "repo": { "type": "string" }, "title": { "type": "string" }, "draft": { "type": "boolean" },
            "limit": { "type": ["integer", "null"] }, "labels": { "type": "array" } } });
        let parse = |text: &[&str]| parse(&words(text), &schema);
        let args = parse(&["a/b", "--limit", "3", "A title", "--draft", "--labels", "x, y"]).unwrap();
        assert_eq!(args, json!({"repo": "a/b", "limit": 3, "title": "A title", "draft": true, "labels": ["x", "y"]}));
        assert_eq!(parse(&[r#"{"repo": "a/b"}"#]).unwrap(), json!({"repo": "a/b"}));
        assert_eq!(parse(&["--limit", "many"]), Err("--limit".to_owned()));
        assert_eq!(parse(&["--title"]), Err("--title".to_owned()));
        assert_eq!(parse(&["a", "b", "c"]), Err("c".to_owned()));
        assert!(parse(&["{broken"]).is_err());
    }
}
