//! `index`: brings the shadow of the memories up to date with the files.

use animaworks_core::{Changed, MemoryStore, t};
use serde_json::json;

use crate::{
    args::Index,
    context::{Cx, block_on},
    error::CliResult,
    ui,
};

pub(super) fn run(cx: &Cx, args: Index) -> CliResult {
    let names = match &args.anima {
        Some(anima) => vec![cx.anima(anima)?],
        None => {
            cx.initialised()?;
            cx.names()?
        }
    };
    let changed = if args.full { Changed::Everything } else { Changed::Sweep };
    block_on(async {
        let host = cx.host()?;
        let bar = ui::progress::bar(names.len() as u64, &t!(cx.locale, "cli.index.working"));
        let mut rows = Vec::new();
        for name in &names {
            let memory = host.memory(name).await?;
            let done = memory.refresh(changed.clone()).await;
            memory.close().await;
            let done = done?;
            bar.inc(1);
            rows.push((name, done));
        }
        bar.finish_and_clear();
        if cx.json {
            let rows: Vec<_> = rows.iter().map(|(name, done)| json!({ "name": name, "indexed": done })).collect();
            return ui::json(&rows);
        }
        let headings = [
            t!(cx.locale, "cli.column.name"),
            t!(cx.locale, "cli.index.files"),
            t!(cx.locale, "cli.index.changed"),
            t!(cx.locale, "cli.index.added"),
            t!(cx.locale, "cli.index.removed"),
            t!(cx.locale, "cli.index.embedded"),
        ];
        let cells = rows.into_iter().map(|(name, done)| {
            let numbers = [done.files, done.changed_files, done.added, done.removed, done.embedded];
            std::iter::once(name.to_string()).chain(numbers.map(|n| n.to_string())).collect()
        });
        ui::table::print(&headings, cells.collect())
    })
}
