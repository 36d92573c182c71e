//! Mode G: Gemini CLI.

use std::{collections::BTreeMap, time::Duration};

use animaworks_core::{
    ExecutionMode, ResultExt, SessionId, StopReason, TurnEvent, TurnRequest, executor::Bridge, fs::FileError,
    process::Stdin, units::Usage,
};
use serde_json::{Value, json};

use super::{
    Kind, Launch, Surroundings, Teller, bare,
    home::{Rooms, Slot},
    said::{Said, Speech, call, count, failure, output, text_of, word},
    words,
};

const ENGINE: &str = "gemini";

/// Names the program goes by.
pub const NAMES: &[&str] = &["gemini"];

/// A tool of its own may take long without a word (exec spec §1.12).
const PATIENCE: Duration = Duration::from_secs(600);

static KIND: Kind = Kind {
    engine: ENGINE,
    mode: ExecutionMode::Gemini,
    // when it goes on, it answers every earlier call twice, which its provider refuses
    resume: false,
    rooms: Rooms {
        directory: ".gemini-workspace",
        shared: &[],
        logins: &[
            (".gemini/oauth_creds.json", ".gemini/oauth_creds.json"),
            (".gemini/google_accounts.json", ".gemini/google_accounts.json"),
            (".gemini/installation_id", ".gemini/installation_id"),
        ],
    },
    prepare,
};

/// An engine with this program. Starts nothing.
pub fn gemini(around: Surroundings) -> Teller {
    Teller::new(&KIND, around)
}

fn prepare(around: &Surroundings, request: &TurnRequest, bridge: Bridge, room: Slot) -> Result<Launch, FileError> {
    let system = room.write("system.md", &request.prompt.system)?;
    room.write(".gemini/settings.json", &settings(around, &bridge).to_string())?;
    let mut spec = around
        .spec(request, &room)
        .env("GEMINI_CLI_HOME", room.path())
        .env("GEMINI_SYSTEM_MD", system)
        .env("GEMINI_TELEMETRY_ENABLED", "false")
        // it would start itself again to ask for more memory
        .env("GEMINI_CLI_NO_RELAUNCH", "true")
        .args(["-m", bare(request, "gemini/"), "-o", "stream-json", "--approval-mode", "yolo", "--skip-trust"]);
    if let Some(key) = around.key() {
        spec = spec.env("GEMINI_API_KEY", key);
    }
    if let Some(address) = &around.credential.base_url {
        spec = spec.env("GOOGLE_GEMINI_BASE_URL", address);
    }
    spec = spec.stdin(Stdin::Bytes(words(&request.prompt, request.locale).into()));
    let policy = around.policy(request, &room);
    let speech = Box::new(Hearing::default());
    Ok(Launch { engine: ENGINE, spec, policy, patience: PATIENCE, speech, _held: (bridge, room) })
}

fn settings(around: &Surroundings, bridge: &Bridge) -> Value {
    let login = if around.key().is_some() { "gemini-api-key" } else { "oauth-personal" };
    let server = json!({
        "command": bridge.command,
        "args": bridge.args,
        "env": bridge.env,
        "timeout": 1_900_000,
        "trust": true,
    });
    json!({
        "security": {"auth": {"selectedType": login}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {
            "enableAutoUpdate": false,
            "disableUpdateNag": true,
            "sessionRetention": {"enabled": true, "maxAge": "1d"},
        },
        "context": {"includeDirectoryTree": false},
        "mcpServers": {"aw": server},
    })
}

/// Reads the lines of one turn.
#[derive(Debug, Default)]
pub struct Hearing {
    tools: BTreeMap<String, String>,
    said: bool,
    /// A tool came between; what is said next begins a paragraph.
    paragraph: bool,
    problem: Option<String>,
}

impl Hearing {
    fn end(&mut self, line: &Value, said: &mut Vec<Said>) {
        if let Some(stats) = line.get("stats") {
            let cached = count(stats, "cached");
            let usage = Usage {
                input_tokens: count(stats, "input_tokens").saturating_sub(cached),
                output_tokens: count(stats, "output_tokens"),
                cache_read_tokens: cached,
                cache_write_tokens: 0,
                estimated: false,
            };
            said.push(Said::Event(TurnEvent::Usage(usage)));
        }
        let end = match word(line, "status") {
            "success" if self.said => Ok(StopReason::End),
            "success" => Ok(StopReason::Empty),
            status => {
                let message = line.pointer("/error/message").and_then(Value::as_str);
                Err(failure(ENGINE, message.or(self.problem.as_deref()).unwrap_or(status)))
            }
        };
        said.push(Said::End(end));
    }
}

impl Speech for Hearing {
    fn hear(&mut self, line: &Value, said: &mut Vec<Said>) {
        match word(line, "type") {
            "init" => {
                let session = SessionId::new(word(line, "session_id")).log_err("read the session of gemini");
                said.push(Said::Event(TurnEvent::Started { session }));
            }
            "message" if word(line, "role") == "assistant" => {
                let text = word(line, "content");
                if text.is_empty() {
                    return;
                }
                let begin = std::mem::take(&mut self.paragraph) && self.said;
                self.said = true;
                let text = if begin { format!("\n\n{text}") } else { text.to_owned() };
                said.push(Said::Event(TurnEvent::Text(text)));
            }
            "tool_use" => {
                let (id, name) = (word(line, "tool_id"), own_name(word(line, "tool_name")));
                self.tools.insert(id.to_owned(), name.to_owned());
                self.paragraph = true;
                said.extend(call(id, name, line.get("parameters").cloned().unwrap_or_default()));
            }
            "tool_result" => {
                let id = word(line, "tool_id");
                let is_error = word(line, "status") == "error";
                let text = match text_of(line.get("output").unwrap_or(&Value::Null)) {
                    text if text.is_empty() => {
                        line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default().to_owned()
                    }
                    text => text,
                };
                said.extend(output(id, self.tools.get(id).map(String::as_str), text, is_error));
            }
            "error" if word(line, "severity") != "warning" => self.problem = Some(word(line, "message").to_owned()),
            "result" => self.end(line, said),
            _ => {}
        }
    }
}

/// The program's own tools by the names that the rest of us use.
fn own_name(name: &str) -> &str {
    match name {
        "run_shell_command" => "Bash",
        "read_file" | "read_many_files" => "Read",
        "write_file" => "Write",
        "replace" => "Edit",
        "glob" => "Glob",
        "search_file_content" | "grep_search" => "Grep",
        "list_directory" => "LS",
        "web_fetch" => "WebFetch",
        "google_web_search" => "WebSearch",
        name => name,
    }
}
