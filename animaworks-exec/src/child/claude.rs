//! Mode S: Claude Code, spoken with in both directions.
//!
//! The program reads and writes lines of JSON. Besides what the model says, it asks us: may
//! this tool be used, the context is to be compacted, is this the end. `hear` reads what it
//! says, `talk` answers what it asks.

mod hear;
mod talk;

use std::sync::Arc;

use animaworks_core::{
    AnimaName, Capabilities, ExecError, ExecutionMode, Executor, IdSource, TurnEvent, TurnHost, TurnRequest,
    config::{ModeSAuth, Secret},
    executor::Bridge,
    fs::FileError,
    process::{Spec, Stdin},
};
use futures_util::{FutureExt, stream::BoxStream};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub use self::hear::Hearing;
use super::{
    Surroundings, bare,
    home::{Rooms, Slot},
    live, session_gone, unprepared,
};

const ENGINE: &str = "claude";

/// Names the program goes by.
pub const NAMES: &[&str] = &["claude"];

static ROOMS: Rooms = Rooms {
    directory: ".claude_home",
    shared: &[".claude/projects"],
    logins: &[(".claude/.credentials.json", ".claude/.credentials.json")],
};

/// The tools of the program itself that a turn may have; each use is asked about.
const OWN_TOOLS: &str = "Bash,Read,Edit,Write,NotebookEdit,Glob,Grep,WebFetch,WebSearch,TodoWrite";

/// What keeps the program from doing anything but the turn.
const QUIET: &[(&str, &str)] = &[
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
    ("ENABLE_TOOL_SEARCH", "false"),
    ("MCP_TIMEOUT", "30000"),
    ("MCP_TOOL_TIMEOUT", "1900000"),
    ("CLAUDECODE", ""),
];

/// Finds how an Anima's Claude Code logs in. Asked at every turn; never inferred from a key.
pub type Login = Arc<dyn Fn(&AnimaName) -> Option<ModeSAuth> + Send + Sync>;

/// Runs turns with Claude Code.
#[derive(Clone)]
pub struct Claude {
    around: Surroundings,
    login: Login,
    ids: Arc<dyn IdSource>,
    capabilities: Capabilities,
}

impl std::fmt::Debug for Claude {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claude").field("around", &self.around).finish_non_exhaustive()
    }
}

impl Claude {
    /// An engine with this program. Starts nothing.
    pub fn new(around: Surroundings, login: Login, ids: Arc<dyn IdSource>) -> Self {
        let capabilities = Capabilities {
            native_tools: true,
            images: true,
            resume: true,
            reports_context: true,
            needs_network: true,
            keeps_history: true,
        };
        Self { around, login, ids, capabilities }
    }

    /// The command line, with its files written.
    fn prepare(&self, request: &TurnRequest, bridge: &Bridge, room: &Slot) -> Result<Spec, FileError> {
        let system = room.write("system.md", &request.prompt.system)?;
        let server = json!({"command": bridge.command, "args": bridge.args, "env": bridge.env});
        let servers = room.write("mcp.json", &json!({"mcpServers": {"aw": server}}).to_string())?;
        let mut spec = self
            .around
            .spec(request, room)
            .args(["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"])
            .args(["--include-partial-messages", "--permission-prompt-tool", "stdio", "--setting-sources="])
            .args(["--model", bare(request, "anthropic/"), "--tools", OWN_TOOLS, "--strict-mcp-config"])
            .arg("--mcp-config")
            .arg(servers)
            .arg("--system-prompt-file")
            .arg(system)
            .args(["--max-turns".to_owned(), request.limits.max_turns.max(1).to_string()]);
        if let Some(effort) = &request.model.thinking {
            spec = spec.args(["--effort", effort]);
        }
        spec = match &request.resume {
            Some(session) => spec.args(["--resume", session.as_str()]),
            None => spec.arg("--session-id").arg(uuid(&self.ids.fresh())),
        };
        for (name, value) in QUIET {
            spec = spec.env(*name, *value);
        }
        if let Some(address) = &self.around.credential.base_url {
            spec = spec.env("ANTHROPIC_BASE_URL", address.trim_end_matches('/').trim_end_matches("/v1"));
        }
        Ok(self.log_in(spec, request).stdin(Stdin::Pipe))
    }

    /// The environment of a way to log in (exec spec §1.8.3).
    fn log_in(&self, spec: Spec, request: &TurnRequest) -> Spec {
        let from = |names: &[(&str, &str)], mut spec: Spec| {
            for (key, variable) in names {
                if let Some(value) = self.around.credential.keys.get(*key).map(Secret::expose) {
                    spec = spec.env(*variable, value);
                }
            }
            spec
        };
        match (self.login)(&request.anima) {
            Some(ModeSAuth::Api) => spec.env("ANTHROPIC_API_KEY", self.around.key().unwrap_or_default()),
            Some(ModeSAuth::Bedrock) => from(
                &[
                    ("aws_access_key_id", "AWS_ACCESS_KEY_ID"),
                    ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"),
                    ("aws_session_token", "AWS_SESSION_TOKEN"),
                    ("aws_region_name", "AWS_REGION"),
                    ("aws_profile", "AWS_PROFILE"),
                ],
                spec.env("CLAUDE_CODE_USE_BEDROCK", "1").env("ANTHROPIC_API_KEY", ""),
            ),
            Some(ModeSAuth::Vertex) => from(
                &[
                    ("vertex_project", "CLOUD_ML_PROJECT_ID"),
                    ("vertex_project", "ANTHROPIC_VERTEX_PROJECT_ID"),
                    ("vertex_location", "CLOUD_ML_REGION"),
                    ("vertex_credentials", "GOOGLE_APPLICATION_CREDENTIALS"),
                ],
                spec.env("CLAUDE_CODE_USE_VERTEX", "1").env("ANTHROPIC_API_KEY", ""),
            ),
            Some(ModeSAuth::Max) | None => spec.env("ANTHROPIC_API_KEY", ""),
        }
    }
}

impl Executor for Claude {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Sdk
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn run(
        &self,
        request: TurnRequest,
        host: Arc<dyn TurnHost>,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
        let this = self.clone();
        live(move |out| {
            async move {
                if (this.login)(&request.anima) == Some(ModeSAuth::Api) && this.around.key().is_none() {
                    let detail = format!("no key under the credential {}", request.model.credential);
                    return Err(ExecError::Auth { engine: ENGINE.to_owned(), detail });
                }
                let bridge = this.around.bridge.open(host.clone()).await?;
                let room = this.around.homes.enter(&request.anima, &ROOMS).await.map_err(unprepared(ENGINE))?;
                let spec = this.prepare(&request, &bridge, &room).map_err(unprepared(ENGINE))?;
                let policy = this.around.policy(&request, &room);
                let (end, moved) = talk::talk(spec, &policy, &this.around, &request, &host, &out, &cancel).await;
                end.map_err(|error| match &request.resume {
                    Some(_) if !moved => session_gone(ENGINE, error),
                    _ => error,
                })
            }
            .boxed()
        })
    }
}

/// 32 hexadecimal digits in the shape the program wants for a session.
fn uuid(hex: &str) -> String {
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_session_has_the_shape_of_a_random_uuid() {
        let shape = super::uuid("0123456789abcdef0123456789abcdef");
        assert_eq!(shape, "01234567-89ab-4def-8123-456789abcdef");
    }
}
