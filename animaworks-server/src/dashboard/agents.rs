//! Who is at work: the panes of one tmux session, read and never written to.

use std::time::Duration;

use animaworks_core::{
    ResultExt,
    process::{End, OutputLimits, Spec},
};
use axum::{
    Json,
    extract::{Query, State},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{ApiError, Asked, Dashboard};

/// What is asked about every pane; a tab is in none of the first four.
const FIELDS: &str = "#{pane_id}\t#{window_name}\t#{pane_current_command}\t#{pane_pid}\t#{pane_title}";
/// The last lines of a pane.
const LINES: usize = 24;
/// Panes whose screens are shown.
const MOST_PANES: usize = 32;

pub(super) async fn list(State(me): State<Dashboard>) -> Result<Json<Value>, ApiError> {
    let settings = me.settings()?.dashboard;
    let mut agents = Vec::new();
    if !settings.tmux_session.is_empty() {
        // the name as it is, not a pattern
        let session = format!("={}:", settings.tmux_session.replace([':', '.'], "_"));
        let panes = tmux(&me, &["list-panes", "-s", "-t", &session, "-F", FIELDS]).await.unwrap_or_default();
        for pane in panes.lines().take(MOST_PANES) {
            let mut fields = pane.splitn(5, '\t');
            let mut field = || fields.next().unwrap_or_default().to_owned();
            let (id, window, command, pid, title) = (field(), field(), field(), field(), field());
            let screen = tmux(&me, &["capture-pane", "-p", "-t", &id]).await.unwrap_or_default();
            let lines: Vec<&str> = screen.trim_end().lines().collect();
            let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n");
            agents.push(
                json!({ "id": id, "window": window, "command": command, "pid": pid, "title": title, "screen": last }),
            );
        }
    }
    Ok(me.answer(json!({ "agents": agents, "session": settings.tmux_session, "teamName": settings.team_name })))
}

/// How an agent is started: a text from the configuration, to be copied by a person.
pub(super) async fn start_command(
    State(me): State<Dashboard>,
    Query(asked): Query<Asked>,
) -> Result<Json<Value>, ApiError> {
    let settings = me.settings()?.dashboard;
    Ok(me.answer(json!({ "agent": asked.id, "command": settings.start_command })))
}

/// What tmux prints; nothing when there is no tmux, no server, or no such session.
async fn tmux(me: &Dashboard, args: &[&str]) -> Option<String> {
    let vars = me.inner.env.vars();
    let mut spec = Spec::new("tmux", me.inner.env.home()).args(args).harmless_env(vars);
    for name in ["TMUX_TMPDIR", "XDG_RUNTIME_DIR"] {
        if let Some(value) = me.inner.env.var(name) {
            spec = spec.env(name, value);
        }
    }
    let limits = OutputLimits { timeout: Duration::from_secs(2), max_bytes: 256 << 10, ..OutputLimits::default() };
    let done = spec.output(limits, &CancellationToken::new()).await.ignore("a machine need not have tmux")?;
    (done.end == End::Code(0)).then(|| done.stdout.text())
}
