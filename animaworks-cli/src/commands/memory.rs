//! `memory search | why`: what an Anima would find, and what would come to its mind.

use animaworks_core::{Cue, ErrorKind, MemoryStore, Query, Recall, SearchScope, TriggerKind, t};

use crate::{
    args::Memory,
    context::{Cx, block_on},
    error::{CliError, CliResult},
    ui,
};

pub(super) fn run(cx: &Cx, command: Memory) -> CliResult {
    match command {
        Memory::Search { anima, query, scope, limit } => {
            let name = cx.anima(&anima)?;
            let scope: SearchScope =
                scope.parse().map_err(|problem: String| CliError::said(ErrorKind::InvalidRequest, problem))?;
            block_on(async {
                let host = cx.host()?;
                let memory = host.memory(&name).await?;
                let today = host.now().date_naive();
                let query = Query { today: Some(today), ..Query::new(query).within(scope).top(limit) };
                let recall = memory.search(&query).await;
                memory.close().await;
                let recall = recall?;
                if cx.json { ui::json(&recall) } else { show(cx, &recall) }
            })
        }
        Memory::Why { anima, message } => why(cx, &anima, message),
    }
}

/// Prints hits, each with its place.
pub(super) fn show(cx: &Cx, recall: &Recall) -> CliResult {
    let paint = ui::style::Paint::stdout();
    for part in &recall.degraded {
        ui::note(t!(cx.locale, "cli.chat.degraded", part = part.part, why = part.why));
    }
    if recall.hits.is_empty() {
        ui::note(t!(cx.locale, "cli.memory.nothing"));
    }
    for hit in &recall.hits {
        let place = format!("{}:{}", hit.path, hit.line);
        ui::line(format!("{}  {}", paint.cyan(&place), paint.dim(&format!("{:.3}", hit.score.0))))?;
        for line in hit.text.lines() {
            ui::line(format!("  {line}"))?;
        }
    }
    Ok(())
}

fn why(cx: &Cx, anima: &str, message: String) -> CliResult {
    let name = cx.anima(anima)?;
    block_on(async {
        let host = cx.host()?;
        let memory = host.memory(&name).await?;
        let cue = Cue {
            trigger: TriggerKind::Chat,
            message,
            sender: "human".to_owned(),
            intent: None,
            recent: Vec::new(),
            window: animaworks_core::config::DEFAULT_WINDOW,
            // a person who asks why can wait for the whole answer
            within: std::time::Duration::from_secs(10),
            now: host.now(),
            locale: cx.locale,
        };
        let priming = memory.prime(&cue).await;
        memory.close().await;
        let priming = priming?;
        if cx.json {
            return ui::json(&priming);
        }
        let paint = ui::style::Paint::stdout();
        for section in &priming.sections {
            let head = format!("{} [{}] {:.1} ms", section.channel.as_str(), section.trust.as_str(), section.took_ms);
            ui::line(paint.bold(&head))?;
            for line in section.body.lines() {
                ui::line(format!("  {line}"))?;
            }
            for hit in &section.hits {
                let parts: Vec<String> = hit.parts.iter().map(|(name, part)| format!("{name}={part:.3}")).collect();
                let place = format!("  {}:{} {:.3}", hit.path, hit.line, hit.score.0);
                ui::line(paint.dim(&format!("{place}  {}", parts.join(" "))))?;
            }
        }
        for part in &priming.degraded {
            ui::note(t!(cx.locale, "cli.chat.degraded", part = part.part, why = part.why));
        }
        Ok(())
    })
}
