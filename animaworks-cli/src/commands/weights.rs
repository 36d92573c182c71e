//! `weights import`: puts the model of meaning in place.

use animaworks_core::t;
use animaworks_memory::embed::weights;
use serde_json::json;

use crate::{args::Weights, context::Cx, error::CliResult, ui};

pub(super) fn run(cx: &Cx, command: Weights) -> CliResult {
    let Weights::Import { source } = command;
    cx.initialised()?;
    let bar = ui::progress::bytes(&t!(cx.locale, "cli.weights.importing"));
    let imported = weights::import(&source, &cx.data.weights(), &mut |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    let place = imported?.dir;
    if cx.json {
        return ui::json(&json!({ "weights": place }));
    }
    ui::note(t!(cx.locale, "cli.weights.imported", place = place.display(), flag = cx.flag));
    Ok(())
}
