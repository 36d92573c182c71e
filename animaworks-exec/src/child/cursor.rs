//! Mode D: Cursor Agent CLI.

use std::{collections::BTreeMap, time::Duration};

use animaworks_core::{
    ExecutionMode, ResultExt, SessionId, StopReason, TurnEvent, TurnRequest, executor::Bridge, fs::FileError,
    process::Stdin,
};
use serde_json::{Value, json};

use super::{
    Kind, Launch, Surroundings, Teller, bare,
    home::{Rooms, Slot},
    said::{Said, Speech, call, failure, output, text_of, word},
    words,
};

const ENGINE: &str = "cursor-agent";

/// Names the program goes by.
pub const NAMES: &[&str] = &["cursor-agent", "agent"];

/// A tool of its own may take long without a word (exec spec §1.11).
const PATIENCE: Duration = Duration::from_secs(600);

static KIND: Kind = Kind {
    engine: ENGINE,
    mode: ExecutionMode::Cursor,
    resume: true,
    rooms: Rooms {
        directory: ".cursor-workspace",
        shared: &[".cursor/chats"],
        logins: &[(".config/cursor/auth.json", ".config/cursor/auth.json")],
    },
    prepare,
};

/// An engine with this program. Starts nothing.
pub fn cursor(around: Surroundings) -> Teller {
    Teller::new(&KIND, around)
}

fn prepare(around: &Surroundings, request: &TurnRequest, bridge: Bridge, room: Slot) -> Result<Launch, FileError> {
    let server = json!({"command": bridge.command, "args": bridge.args, "env": bridge.env});
    room.write(".cursor/mcp.json", &json!({"mcpServers": {"aw": server}}).to_string())?;
    let mut spec = around
        .spec(request, &room)
        .args(["-p", "--output-format", "stream-json", "--stream-partial-output"])
        .args(["--model", bare(request, "cursor/"), "--force", "--trust", "--approve-mcps"])
        .arg("--workspace")
        .arg(room.path());
    if let Some(session) = &request.resume {
        spec = spec.args(["--resume", session.as_str()]);
    }
    // it has no place for a system prompt, and what comes to mind is another thing at every turn
    let asked = words(&request.prompt, request.locale);
    let prompt = format!("<system_context>\n{}\n</system_context>\n\n{asked}", request.prompt.system);
    if let Some(key) = around.key() {
        spec = spec.env("CURSOR_API_KEY", key);
    }
    spec = spec.stdin(Stdin::Bytes(prompt.into()));
    let policy = around.policy(request, &room);
    let speech = Box::new(Hearing::default());
    Ok(Launch { engine: ENGINE, spec, policy, patience: PATIENCE, speech, _held: (bridge, room) })
}

/// Reads the lines of one turn.
#[derive(Debug, Default)]
pub struct Hearing {
    tools: BTreeMap<String, String>,
    /// What was said since the last tool, and since the beginning.
    part: String,
    whole: String,
}

impl Hearing {
    fn say(&mut self, text: &str, said: &mut Vec<Said>) {
        if text.is_empty() {
            return;
        }
        let begin = self.part.is_empty() && !self.whole.is_empty();
        self.part.push_str(text);
        self.whole.push_str(text);
        let text = if begin { format!("\n\n{text}") } else { text.to_owned() };
        said.push(Said::Event(TurnEvent::Text(text)));
    }

    /// What it says comes in pieces, and then again as a whole before a tool and at the end.
    fn assistant(&mut self, line: &Value, said: &mut Vec<Said>) {
        let text = text_of(line.pointer("/message/content").unwrap_or(&Value::Null));
        let piece = line.get("timestamp_ms").is_some() && line.get("model_call_id").is_none();
        if piece {
            self.say(&text, said);
        } else if text != self.whole {
            let new = text.strip_prefix(self.part.as_str()).unwrap_or(&text).to_owned();
            self.say(&new, said);
        }
    }

    fn tool(&mut self, line: &Value, said: &mut Vec<Said>) {
        let id = word(line, "call_id");
        let call_of = line.get("tool_call").and_then(Value::as_object).and_then(|call| call.iter().next());
        let Some((kind, body)) = call_of else { return };
        self.part.clear();
        let args = body.get("args").cloned().unwrap_or_default();
        let (name, args) = match kind.as_str() {
            "mcpToolCall" => {
                let name = [word(&args, "toolName"), word(&args, "name")].into_iter().find(|name| !name.is_empty());
                let inner = args.get("args").cloned().unwrap_or_else(|| args.clone());
                (name.unwrap_or("mcp").trim_start_matches("aw-").to_owned(), inner)
            }
            "function" => (word(body, "name").to_owned(), args),
            kind => (own_name(kind).to_owned(), args),
        };
        if !self.tools.contains_key(id) {
            self.tools.insert(id.to_owned(), name.clone());
            said.extend(call(id, &name, args));
        }
        if word(line, "subtype") == "completed" {
            let result = body.get("result").unwrap_or(&Value::Null);
            let (body, is_error) = match (result.get("success"), result.get("error")) {
                (_, Some(error)) => (error, true),
                (Some(success), None) => (success, false),
                (None, None) => (result, result.get("rejected").is_some()),
            };
            let text = ["content", "stdout", "output", "message", "errorMessage"]
                .into_iter()
                .find_map(|key| body.get(key).map(text_of))
                .unwrap_or_else(|| text_of(body));
            said.extend(output(id, self.tools.get(id).map(String::as_str), text, is_error));
        }
    }
}

impl Speech for Hearing {
    fn hear(&mut self, line: &Value, said: &mut Vec<Said>) {
        match (word(line, "type"), word(line, "subtype")) {
            ("system", "init") => {
                let session = SessionId::new(word(line, "session_id")).log_err("read the session of cursor-agent");
                said.push(Said::Event(TurnEvent::Started { session }));
            }
            ("assistant", _) => self.assistant(line, said),
            ("thinking", "delta") => said.push(Said::Event(TurnEvent::Thinking(word(line, "text").to_owned()))),
            ("tool_call", _) => self.tool(line, said),
            ("result", subtype) => {
                let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or(subtype != "success");
                if !is_error && self.whole.is_empty() {
                    self.say(word(line, "result"), said);
                }
                said.push(Said::End(match (is_error, self.whole.is_empty()) {
                    (true, _) => Err(failure(ENGINE, word(line, "result"))),
                    (false, true) => Ok(StopReason::Empty),
                    (false, false) => Ok(StopReason::End),
                }));
            }
            _ => {}
        }
    }
}

/// `shellToolCall` and the like by the names that the rest of us use.
fn own_name(kind: &str) -> &str {
    match kind {
        "shellToolCall" => "Bash",
        "readToolCall" => "Read",
        "writeToolCall" => "Write",
        "editToolCall" => "Edit",
        "deleteToolCall" => "Delete",
        "grepToolCall" => "Grep",
        "globToolCall" => "Glob",
        "lsToolCall" => "LS",
        kind => kind.strip_suffix("ToolCall").unwrap_or(kind),
    }
}
