//! `internal …`: what other programs and Animas ask.

use animaworks_core::{ErrorKind, ToolName, TriggerKind, gate::Decision, t};
use serde_json::{Value, json};

use crate::{
    args::Internal,
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Internal) -> CliResult {
    let Internal::CheckPermissions { anima, tool, arguments } = command;
    let name = cx.anima(&anima)?;
    let tool = ToolName::new(tool)?;
    let arguments: Value = match arguments {
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            CliError::said(ErrorKind::InvalidRequest, t!(cx.locale, "cli.internal.bad_json", problem = error))
        })?,
        None => Value::Object(serde_json::Map::new()),
    };
    block_on(async {
        let decision = cx.host()?.decide(&name, &tool, &arguments, TriggerKind::Chat).await?;
        let (allowed, reason) = match &decision {
            Decision::Allow => (true, t!(cx.locale, "cli.internal.allowed")),
            Decision::Deny { reason, .. } => (false, reason.clone()),
        };
        if cx.json {
            ui::json(&json!({ "allowed": allowed, "reason": reason }))?;
        } else {
            ui::line(&reason)?;
        }
        if allowed { Ok(()) } else { Err(CliError::said(ErrorKind::Permission, t!(cx.locale, "cli.internal.refused"))) }
    })
}
