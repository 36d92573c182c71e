//! `pack dashboard`: the page, on loopback, until it is interrupted.

use std::sync::Arc;

use animaworks_core::{Clock, ErrorKind, SystemClock, process::Spec, t};
use animaworks_server::Dashboard;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, port: u16, open: bool) -> CliResult {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let dashboard = Dashboard::new(cx.env.clone(), cx.locale, clock)?;
    block_on(async {
        let stop = CancellationToken::new();
        let mut said = Ok(());
        let serving = dashboard.serve(port, stop.clone(), |address| {
            let url = format!("http://{address}/");
            said = if cx.json {
                ui::json(&json!({ "url": url }))
            } else {
                ui::line(t!(cx.locale, "pack.dashboard.at", url = url))
            };
            if open {
                show(cx, &url);
            }
        });
        let served = tokio::select! {
            served = serving => served,
            interrupted = tokio::signal::ctrl_c() => interrupted,
        };
        served.map_err(|error| {
            CliError::said(ErrorKind::Unavailable, t!(cx.locale, "pack.dashboard.taken", port = port, why = error))
        })?;
        said
    })
}

/// Hands the address to whatever opens pages here.
fn show(cx: &Cx, url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut spec = Spec::new(opener, cx.env.home()).arg(url);
    spec.env = cx.env.vars().clone();
    if let Err(error) = spec.detach() {
        ui::note(t!(cx.locale, "pack.dashboard.no_browser", why = error));
    }
}
