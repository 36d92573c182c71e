//! `mcp --anima NAME`: an Anima's memory for any MCP client, on standard input and output.
//!
//! The engines that are programs start `mcp --socket PATH` instead, which only carries bytes.

use std::{path::Path, process::ExitCode, sync::Arc};

use animaworks_core::{ToolName, TurnHost, config::Env};
use animaworks_tools::mcp::{TOKEN_VARIABLE, pipe, serve_pipes};

use crate::{
    args::Mcp,
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, args: Mcp) -> CliResult {
    match (args.socket, args.anima) {
        (Some(socket), _) => carry(&cx.env, &socket).map_err(CliError::Output),
        (None, anima) => serve(cx, &anima.unwrap_or_default(), &args.tools),
    }
}

/// The pipe that engines start, before anything that costs time.
pub(crate) fn pipe_main(socket: &Path) -> ExitCode {
    match carry(&Env::from_process(), socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::note(format!("animaworks mcp: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn carry(env: &Env, socket: &Path) -> std::io::Result<()> {
    let token = env.var(TOKEN_VARIABLE).unwrap_or_default();
    pipe::run(socket, token, std::io::stdin(), std::io::stdout())
}

fn serve(cx: &Cx, anima: &str, tools: &[String]) -> CliResult {
    let name = cx.anima(anima)?;
    let tools = tools.iter().map(ToolName::new).collect::<Result<Vec<_>, _>>()?;
    let wanted = (!tools.is_empty()).then_some(tools.as_slice());
    block_on(async {
        let visit = Arc::new(cx.host()?.visit(&name, wanted).await?);
        let host: Arc<dyn TurnHost> = visit.clone();
        tokio::select! {
            () = serve_pipes(tokio::io::stdin(), tokio::io::stdout(), host) => {}
            pressed = tokio::signal::ctrl_c() => pressed.map_err(CliError::Output)?,
        }
        visit.close().await;
        Ok(())
    })
}
