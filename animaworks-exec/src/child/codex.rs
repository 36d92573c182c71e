//! Mode C: Codex CLI.

use std::{collections::BTreeMap, time::Duration};

use animaworks_core::{
    ExecutionMode, ResultExt, SessionId, StopReason, TurnEvent, TurnRequest, executor::Bridge, fs::FileError,
    process::Stdin, seams::Enforced, trigger::TriggerKind, units::Usage,
};
use serde_json::{Value, json};

use super::{
    Kind, Launch, Surroundings, Teller, bare,
    home::{Rooms, Slot},
    said::{Said, Speech, call, count, failure, output, text_of, word},
    words,
};

const ENGINE: &str = "codex";

/// Names the program goes by.
pub const NAMES: &[&str] = &["codex"];

/// What it does beyond the turn: looking up plugins and apps elsewhere, helpers and aims of its own.
const WITHOUT: &[&str] = &["plugins", "apps", "multi_agent", "goals"];

/// It says a thing only when it is whole (exec spec §1.10).
const PATIENCE_WITH_A_PERSON: Duration = Duration::from_secs(1200);
const PATIENCE_ALONE: Duration = Duration::from_secs(600);

static KIND: Kind = Kind {
    engine: ENGINE,
    mode: ExecutionMode::Codex,
    resume: true,
    rooms: Rooms { directory: ".codex_home", shared: &["sessions"], logins: &[(".codex/auth.json", "auth.json")] },
    prepare,
};

/// An engine with this program. Starts nothing.
pub fn codex(around: Surroundings) -> Teller {
    Teller::new(&KIND, around)
}

fn prepare(around: &Surroundings, request: &TurnRequest, bridge: Bridge, room: Slot) -> Result<Launch, FileError> {
    let instructions = room.write("instructions.md", &request.prompt.system)?;
    room.write("config.toml", &config(around, request, &bridge, &instructions.to_string_lossy()))?;
    let mut spec =
        around.spec(request, &room).env("CODEX_HOME", room.path()).args(["exec", "--json", "--skip-git-repo-check"]);
    for feature in WITHOUT {
        spec = spec.args(["--disable", feature]);
    }
    if let Some(session) = &request.resume {
        spec = spec.args(["resume", session.as_str()]);
    }
    spec = spec.arg("-").stdin(Stdin::Bytes(words(&request.prompt, request.locale).into()));
    // a key of another provider under the same credential is of no use here
    if let Some(key) = around.key().filter(|key| !key.starts_with("sk-ant-")) {
        spec = spec.env("OPENAI_API_KEY", key);
    }
    let patience = match request.trigger {
        TriggerKind::Chat => PATIENCE_WITH_A_PERSON,
        _ => PATIENCE_ALONE,
    };
    let before = Ledger::at(&room);
    let resumed = request.resume.is_some();
    let policy = around.policy(request, &room);
    let speech = Box::new(Hearing { ledger: before, resumed, ..Hearing::default() });
    Ok(Launch { engine: ENGINE, spec, policy, patience, speech, _held: (bridge, room) })
}

/// The settings of one turn. JSON strings and lists are TOML strings and lists.
fn config(around: &Surroundings, request: &TurnRequest, bridge: &Bridge, instructions: &str) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    // behind our own walls it needs none of its own, which would not stand inside them
    let sandbox = match around.sandbox.strength() {
        Enforced::Not => "workspace-write",
        Enforced::Partly | Enforced::Kernel => "danger-full-access",
    };
    let mut lines = vec![
        format!("model = {}", quoted(bare(request, "codex/"))),
        format!("model_instructions_file = {}", quoted(instructions)),
        "approval_policy = \"never\"".to_owned(),
        format!("sandbox_mode = {}", quoted(sandbox)),
        "check_for_update_on_startup = false".to_owned(),
        "web_search = \"disabled\"".to_owned(),
    ];
    if let Some(effort) = &request.model.thinking {
        lines.push(format!("model_reasoning_effort = {}", quoted(effort)));
    }
    let address = around.credential.base_url.as_deref();
    if address.is_some() {
        lines.push("model_provider = \"configured\"".to_owned());
    }
    lines.push("\n[analytics]\nenabled = false".to_owned());
    if let Some(address) = address {
        lines.push("\n[model_providers.configured]\nname = \"configured\"".to_owned());
        lines.push(format!("base_url = {}", quoted(address)));
        lines.push("env_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"".to_owned());
    }
    lines.push("\n[mcp_servers.aw]".to_owned());
    lines.push(format!("command = {}", quoted(&bridge.command.to_string_lossy())));
    lines.push(format!("args = {}", json!(bridge.args)));
    lines.push("startup_timeout_sec = 30\ntool_timeout_sec = 1900".to_owned());
    lines.push("default_tools_approval_mode = \"approve\"".to_owned());
    lines.push("\n[mcp_servers.aw.env]".to_owned());
    lines.extend(bridge.env.iter().map(|(name, value)| format!("{} = {}", quoted(name), quoted(value))));
    lines.join("\n") + "\n"
}

/// What threads have consumed, since the program counts from the beginning of a thread.
#[derive(Debug, Default)]
struct Ledger(std::path::PathBuf);

impl Ledger {
    fn at(room: &Slot) -> Self {
        Self(room.base().join("usage"))
    }

    /// Notes the sum of a thread; what was noted before.
    fn swap(&self, thread: &str, sum: &Usage) -> Usage {
        if self.0.as_os_str().is_empty() || thread.is_empty() || thread.contains('/') {
            return Usage::default();
        }
        let path = self.0.join(format!("{thread}.json"));
        let before = animaworks_core::fs::read_json(&path).ignore("the first turn of a thread has no sum");
        let noted = animaworks_core::fs::write_json(&path, sum, animaworks_core::fs::Privacy::Secret);
        noted.log_err("note what a thread has consumed");
        before.unwrap_or_default()
    }
}

/// Reads the lines of one turn.
#[derive(Debug, Default)]
pub struct Hearing {
    ledger: Ledger,
    resumed: bool,
    thread: String,
    /// How much of each message was passed on.
    texts: BTreeMap<String, String>,
    said: bool,
    failed: Option<String>,
}

impl Hearing {
    fn item(&mut self, phase: &str, item: &Value, said: &mut Vec<Said>) {
        let (id, done) = (word(item, "id"), phase == "item.completed");
        match word(item, "type") {
            "agent_message" => self.grow(id, word(item, "text"), said),
            "reasoning" if done => said.push(Said::Event(TurnEvent::Thinking(word(item, "text").to_owned()))),
            "command_execution" => {
                said.extend(call(id, "Bash", json!({"command": word(item, "command")})));
                if done {
                    let code = item.get("exit_code").and_then(Value::as_i64);
                    let text = word(item, "aggregated_output").to_owned();
                    said.extend(output(id, Some("Bash"), text, code != Some(0)));
                }
            }
            "mcp_tool_call" => {
                let args = item.get("arguments").cloned().unwrap_or_default();
                said.extend(call(id, word(item, "tool"), args));
                if done {
                    let problem = item.pointer("/error/message").and_then(Value::as_str);
                    let content = item.pointer("/result/content").unwrap_or(&Value::Null);
                    let text = problem.map_or_else(|| text_of(content), str::to_owned);
                    let is_error = problem.is_some() || word(item, "status") == "failed";
                    said.extend(output(id, None, text, is_error));
                }
            }
            "file_change" => {
                said.extend(call(id, "Edit", json!({"changes": item.get("changes")})));
                if done {
                    said.extend(output(id, None, word(item, "status").to_owned(), word(item, "status") == "failed"));
                }
            }
            "web_search" => {
                said.extend(call(id, "WebSearch", json!({"query": word(item, "query")})));
                if done {
                    said.extend(output(id, Some("WebSearch"), String::new(), false));
                }
            }
            "error" => tracing::debug!(message = word(item, "message"), "codex remarks"),
            _ => {}
        }
    }

    /// A message that is told whole each time it grows; another one begins a paragraph.
    fn grow(&mut self, id: &str, text: &str, said: &mut Vec<Said>) {
        let new = !self.texts.contains_key(id);
        let before = self.texts.entry(id.to_owned()).or_default();
        let Some(rest) = text.strip_prefix(before.as_str()).filter(|rest| !rest.is_empty()) else { return };
        let piece = if new && self.said { format!("\n\n{rest}") } else { rest.to_owned() };
        text.clone_into(before);
        self.said = true;
        said.push(Said::Event(TurnEvent::Text(piece)));
    }

    fn usage(&self, usage: &Value) -> Usage {
        let cached = count(usage, "cached_input_tokens");
        let sum = Usage {
            input_tokens: count(usage, "input_tokens").saturating_sub(cached),
            output_tokens: count(usage, "output_tokens"),
            cache_read_tokens: cached,
            cache_write_tokens: count(usage, "cache_write_input_tokens"),
            estimated: false,
        };
        let before = self.ledger.swap(&self.thread, &sum);
        if !self.resumed {
            return sum;
        }
        Usage {
            input_tokens: sum.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: sum.output_tokens.saturating_sub(before.output_tokens),
            cache_read_tokens: sum.cache_read_tokens.saturating_sub(before.cache_read_tokens),
            cache_write_tokens: sum.cache_write_tokens.saturating_sub(before.cache_write_tokens),
            estimated: false,
        }
    }
}

impl Speech for Hearing {
    fn hear(&mut self, line: &Value, said: &mut Vec<Said>) {
        match word(line, "type") {
            "thread.started" => {
                word(line, "thread_id").clone_into(&mut self.thread);
                let session = SessionId::new(&self.thread).log_err("read the thread of codex");
                said.push(Said::Event(TurnEvent::Started { session }));
            }
            phase @ ("item.started" | "item.updated" | "item.completed") => {
                self.item(phase, line.get("item").unwrap_or(&Value::Null), said);
            }
            "turn.completed" => {
                if let Some(usage) = line.get("usage") {
                    said.push(Said::Event(TurnEvent::Usage(self.usage(usage))));
                }
                said.push(Said::End(Ok(if self.said { StopReason::End } else { StopReason::Empty })));
            }
            "turn.failed" => {
                let message = line.pointer("/error/message").and_then(Value::as_str);
                let message = message.or(self.failed.as_deref()).unwrap_or("the turn failed");
                said.push(Said::End(Err(failure(ENGINE, message))));
            }
            "error" => {
                let message = word(line, "message");
                if let Some((attempt, max_attempts)) = reconnecting(message) {
                    let reason = message.to_owned();
                    said.push(Said::Event(TurnEvent::Retrying { attempt, max_attempts, reason }));
                } else {
                    self.failed = Some(message.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// `Reconnecting... 2/5 (why)` as numbers.
fn reconnecting(message: &str) -> Option<(u32, u32)> {
    let rest = message.strip_prefix("Reconnecting...")?.trim_start();
    let (attempt, rest) = rest.split_once('/')?;
    let most: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((attempt.parse().ok()?, most.parse().ok()?))
}
