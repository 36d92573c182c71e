//! Engines that are programs: played by stubs that behave as badly as programs can.

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use animaworks_core::{
    Checkpoint, DataDir, Directive, Executor, Fault, HostFault, ModelId, SessionId, StopReason, SystemClock,
    ToolBridge, TurnEvent, TurnHost, TurnRequest,
    config::{ModeSAuth, ModelCredential},
    executor::Bridge,
    seams::{SandboxPolicy, Unconfined},
    test_support::SerialIds,
};
use animaworks_exec::child::{Surroundings, claude::Claude, codex::codex, cursor::cursor, gemini::gemini, home::Homes};
use async_trait::async_trait;
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use crate::kit::{Desk, KEY, Told, credential, request, tell, tell_until};

/// A bridge to nowhere: stubs call no tools of ours.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl ToolBridge for Nowhere {
    async fn open(&self, _host: Arc<dyn TurnHost>) -> Result<Bridge, HostFault> {
        Ok(Bridge {
            command: "/bin/true".into(),
            args: vec!["mcp".to_owned()],
            env: BTreeMap::from([("ANIMAWORKS_MCP_TOKEN".to_owned(), "planted-token".to_owned())]),
            close: CancellationToken::new().drop_guard(),
        })
    }
}

struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A program that is this script.
    fn program(&self, script: &str) -> Surroundings {
        let program = self.path("program");
        fs_err::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs_err::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        self.around(program)
    }

    fn around(&self, program: PathBuf) -> Surroundings {
        let walls = |_: &TurnRequest| SandboxPolicy { allow_unenforced: true, ..SandboxPolicy::default() };
        Surroundings {
            program,
            env: BTreeMap::from(
                [("PATH", "/usr/bin:/bin"), ("SECRET_OF_OURS", "planted")].map(|(k, v)| (k.into(), v.into())),
            ),
            sandbox: Arc::new(Unconfined),
            walls: Arc::new(walls),
            bridge: Arc::new(Nowhere),
            clock: Arc::new(SystemClock::new()),
            homes: Homes::new(DataDir::new(self.path("data")), self.path("user")),
            credential: ModelCredential::default(),
        }
    }

    fn request(&self, model: &str) -> TurnRequest {
        let mut request = request("会議は何時？");
        request.model.id = ModelId::new(model).unwrap();
        self.dir.path().clone_into(&mut request.work_dir);
        request
    }

    async fn tell_codex(&self, script: &str) -> Told {
        tell(&codex(self.program(script)), self.request("codex/kit"), Arc::new(Desk::new())).await
    }
}

fn claude(around: Surroundings, login: Option<ModeSAuth>) -> Claude {
    Claude::new(around, Arc::new(move |_| login), Arc::new(SerialIds::default()))
}

fn wire(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(name).display().to_string()
}

#[tokio::test]
async fn each_program_runs_a_turn_from_its_recorded_stream() {
    let stage = Stage::new();
    let engines: [(&str, Box<dyn Executor>, &str); 3] = [
        ("codex/tool", Box::new(codex(stage.program(&format!("cat {}", wire("codex/tool.jsonl"))))), "codex/kit"),
        ("gemini/tool", Box::new(gemini(stage.program(&format!("cat {}", wire("gemini/tool.jsonl"))))), "gemini/kit"),
        ("cursor/tool", Box::new(cursor(stage.program(&format!("cat {}", wire("cursor/tool.jsonl"))))), "cursor/kit"),
    ];
    for (name, engine, model) in engines {
        // they share one file, written anew for each
        stage.program(&format!("cat {}", wire(&format!("{name}.jsonl"))));
        let told = tell(&*engine, stage.request(model), Arc::new(Desk::new())).await;
        assert_eq!(told.stop(), Some(StopReason::End), "{name}: {told:?}");
        assert!(told.text().ends_with("done."), "{name}: {}", told.text());
        let called =
            told.events.iter().any(|event| matches!(event, TurnEvent::ToolCall(call) if call.name.as_str() == "echo"));
        assert!(called, "{name}: {told:?}");
    }
}

#[tokio::test]
async fn claude_asks_and_is_answered_and_the_gate_fires_once() {
    let stage = Stage::new();
    let replay = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kit/replay_claude.py");
    let heard = stage.path("heard.jsonl");
    let script = format!("exec python3 {} {} {}", replay.display(), wire("claude/control.jsonl"), heard.display());
    let desk = Desk::new();
    desk.before_stop.lock().unwrap().push(Directive::Remind("CHECKLIST".into()));
    let desk = Arc::new(desk);
    let told = tell(&claude(stage.program(&script), None), stage.request("claude-kit"), desk.clone()).await;
    assert_eq!(told.stop(), Some(StopReason::End), "{told:?}");
    assert_eq!(told.usage().output_tokens, 27);
    let gates =
        desk.checkpoints().into_iter().filter(|at| matches!(at, Checkpoint::BeforeStop { .. })).collect::<Vec<_>>();
    assert_eq!(gates, [Checkpoint::BeforeStop { draft: "Tool finished. All done.".into() }]);
    let heard = fs_err::read_to_string(heard).unwrap();
    assert!(heard.contains(r#""subtype":"initialize""#) && heard.contains("PreCompact"), "{heard}");
    assert_eq!(heard.matches(r#""permissionDecision":"allow""#).count(), 1, "{heard}");
    assert_eq!(heard.matches(r#""decision":"block""#).count(), 1, "{heard}");
}

/// Lets nothing be compacted.
#[derive(Debug)]
struct Chains(Desk);
#[async_trait]
impl TurnHost for Chains {
    fn tools(&self) -> &[Arc<animaworks_core::ToolSpec>] {
        self.0.tools()
    }
    async fn call(&self, call: animaworks_core::ToolCall) -> Result<animaworks_core::ToolOutput, HostFault> {
        self.0.call(call).await
    }
    async fn permit(&self, ask: animaworks_core::PermitRequest) -> Result<animaworks_core::Permit, HostFault> {
        self.0.permit(ask).await
    }
    async fn checkpoint(&self, at: Checkpoint) -> Directive {
        if at == Checkpoint::BeforeCompaction { Directive::EndForChain } else { Directive::Go }
    }
}

#[tokio::test]
async fn compaction_makes_room_for_another_session() {
    let stage = Stage::new();
    let script = r#"read a; read b
echo '{"type":"system","subtype":"init","session_id":"s1","mcp_servers":[]}'
echo '{"type":"control_request","request_id":"c","request":{"subtype":"hook_callback","callback_id":"compact","input":{"trigger":"auto"}}}'
exec sleep 600"#;
    let engine = claude(stage.program(script), None);
    let host = Arc::new(Chains(Desk::new()));
    let told = tell_until(&engine, stage.request("claude-kit"), host, CancellationToken::new()).await;
    assert_eq!(told.stop(), Some(StopReason::Chain), "{told:?}");
}

#[tokio::test]
async fn neither_prompt_nor_secret_is_on_the_command_line_or_inherited() {
    let stage = Stage::new();
    let script = r#"echo "$@" > "$HOME/args"; env > "$HOME/env"
case "$*" in *--input-format*) head -n 2;; *) cat;; esac > "$HOME/stdin"; exit 3"#;
    let around = Surroundings { credential: credential(None), ..stage.program(script) };
    for (model, home, engine) in [
        ("codex/kit", ".codex_home", Box::new(codex(around.clone())) as Box<dyn Executor>),
        ("gemini/kit", ".gemini-workspace", Box::new(gemini(around.clone()))),
        ("cursor/kit", ".cursor-workspace", Box::new(cursor(around.clone()))),
        ("claude-kit", ".claude_home", Box::new(claude(around.clone(), Some(ModeSAuth::Api)))),
    ] {
        let told = tell(&*engine, stage.request(model), Arc::new(Desk::new())).await;
        assert_eq!(told.error.as_ref().map(Fault::code), Some("engine_interrupted"), "{told:?}");
        let home = stage.path("data/animas/sakura").join(home);
        let read = |name: &str| fs_err::read_to_string(home.join(name)).unwrap();
        let args = read("args");
        assert!(!args.contains("会議") && !args.contains("Sakura") && !args.contains("planted"), "{args}");
        assert!(read("stdin").contains("会議は何時？"), "{model}");
        let env = read("env");
        assert!(!env.contains("SECRET_OF_OURS") && env.contains(KEY), "{env}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let stage = Stage::new();
    let engine = codex(stage.around(stage.path("no-such-program")));
    let told = tell(&engine, stage.request("codex/kit"), Arc::new(Desk::new())).await;
    assert_eq!(told.error.as_ref().map(Fault::code), Some("program_not_installed"), "{told:?}");
}

#[tokio::test]
async fn an_exit_without_a_result_is_an_interruption_and_keeps_what_was_said() {
    let half = r#"echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"item.completed","item":{"id":"i0","type":"agent_message","text":"half of it"}}'
printf '{"type":"turn.comp'; exit 0"#;
    let told = Stage::new().tell_codex(half).await;
    assert_eq!(
        (told.text().as_str(), told.error.as_ref().map(Fault::code)),
        ("half of it", Some("engine_interrupted"))
    );
}

#[tokio::test]
async fn what_it_complains_about_decides_what_went_wrong() {
    let told = Stage::new().tell_codex("echo 'Not logged in. Run codex /login' >&2; exit 1").await;
    assert_eq!(told.error.as_ref().map(Fault::code), Some("engine_auth"), "{told:?}");
}

#[tokio::test]
async fn noise_is_passed_over_and_fifty_megabytes_of_it_are_too_much() {
    let fixture = wire("codex/tool.jsonl");
    let told = Stage::new().tell_codex(&format!("echo loading…; printf '\\377\\n'; cat {fixture}")).await;
    assert_eq!(told.stop(), Some(StopReason::End), "{told:?}");
    let told = Stage::new().tell_codex("head -c 52428800 /dev/zero | tr '\\0' 'x'").await;
    assert_eq!(told.error.as_ref().map(Fault::code), Some("engine_malformed"), "{told:?}");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_holds_nobody() {
    let stage = Stage::new();
    let pid = stage.path("pid");
    let script = format!("sleep 600 & echo $! > {}; cat {}", pid.display(), wire("codex/tool.jsonl"));
    let told = stage.tell_codex(&script).await;
    assert_eq!(told.stop(), Some(StopReason::End), "{told:?}");
    gone(&pid).await;
}

#[tokio::test]
async fn a_silent_program_that_ignores_signals_is_ended() {
    let stage = Stage::new();
    let pid = stage.path("pid");
    let script = format!("trap '' TERM INT; echo $$ > {}; while :; do sleep 1; done", pid.display());
    let mut request = stage.request("codex/kit");
    request.limits.first_byte = Duration::from_millis(300);
    let told = tell(&codex(stage.program(&script)), request, Arc::new(Desk::new())).await;
    assert_eq!(told.error.as_ref().map(Fault::code), Some("engine_timeout"), "{told:?}");
    gone(&pid).await;
}

#[tokio::test]
async fn stopping_ends_the_program_and_keeps_what_was_said() {
    let stage = Stage::new();
    let script = r#"echo '{"type":"init","session_id":"s1"}'
echo '{"type":"message","role":"assistant","content":"so far","delta":true}'
exec sleep 600"#;
    let cancel = CancellationToken::new();
    let engine = gemini(stage.program(script));
    let mut events = engine.run(stage.request("gemini/kit"), Arc::new(Desk::new()), cancel.clone());
    let (mut text, mut end) = (String::new(), None);
    while let Some(event) = futures_util::StreamExt::next(&mut events).await {
        match event {
            Ok(TurnEvent::Text(piece)) => {
                text.push_str(&piece);
                cancel.cancel();
            }
            Ok(_) => {}
            Err(error) => end = Some(error.code()),
        }
    }
    assert_eq!((text.as_str(), end), ("so far", Some("cancelled")));
}

#[tokio::test]
async fn a_session_that_is_gone_is_named_as_long_as_nothing_happened() {
    let stage = Stage::new();
    let gone = |script: &str| {
        let mut request = stage.request("codex/kit");
        request.resume = Some(SessionId::new("gone").unwrap());
        let engine = codex(stage.program(script));
        async move { tell(&engine, request, Arc::new(Desk::new())).await.error.map(|error| error.code()) }
    };
    assert_eq!(gone("echo 'no rollout found for thread' >&2; exit 1").await, Some("engine_session_gone"));
    assert_eq!(gone("echo 'Not logged in. Run codex /login' >&2; exit 1").await, Some("engine_auth"));
    let begun = format!("head -n 3 {}; exit 1", wire("codex/tool.jsonl"));
    assert_eq!(gone(&begun).await, Some("engine_interrupted"), "what has begun is taken up, not begun again");
}

/// Waits until a process has gone; the test runner's limit is the only clock.
async fn gone(pid: &Path) {
    let pid = fs_err::read_to_string(pid).unwrap();
    let process = PathBuf::from("/proc").join(pid.trim());
    while fs_err::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::task::yield_now().await;
    }
}
