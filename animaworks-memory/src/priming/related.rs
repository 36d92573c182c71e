//! Channels C and F: what it knows about this, and what it has lived through that resembles it.

use std::{collections::BTreeMap, sync::Arc};

use animaworks_core::{
    Cue, Degraded, Hit, MemoryError, Origin, Query, Score, Tokens, Trust, fs,
    home::activity::ActivityQuery,
    memory::{PrimingChannel, PrimingSection},
    t,
    trigger::TriggerKind,
};

use super::{budget::Room, section};
use crate::{
    chunk::Kind,
    retrieve::Answer,
    store::Inner,
    text::terms::{QueryTerm, each_term, query_terms},
};

/// So many answers are looked at.
const POOL: usize = 40;
/// A place that speaks of less than this of what was asked does not come to mind.
const LEAST_COVERAGE: f32 = 0.12;
/// When even the best place speaks of less than this, nothing is known about it.
const LEAST_BEST: f32 = 0.25;
/// What is asked about somebody unknown comes to mind all the same when a place speaks of this much of it.
const KNOWS: f32 = 0.6;
/// Or when it is this many standard deviations nearer in meaning than is usual.
const LEAST_MEANING: f32 = 2.5;
/// A place is shown whole when it is at most this long; else its decisive lines.
const WHOLE: Tokens = Tokens(160);
/// The decisive lines, in characters.
const DECISIVE: usize = 200;

/// The sections of channels C and F.
pub(crate) async fn sections(inner: &Arc<Inner>, cue: &Cue, room: &Room) -> Result<Vec<PrimingSection>, MemoryError> {
    let (question, background) = questions(inner, cue).await?;
    let mut best: BTreeMap<(String, u32), Answer> = BTreeMap::new();
    let mut troubles: Vec<Degraded> = Vec::new();
    for (text, share) in [(question.as_str(), 1.0), (background.as_str(), 0.5)] {
        if text.trim().is_empty() {
            continue;
        }
        let query = Query { today: Some(cue.now.date_naive()), ..Query::new(text) };
        let (answers, degraded) = inner.ask(&query, POOL, cue.within.mul_f32(0.5)).await?;
        troubles.extend(degraded);
        // about a stranger nothing is known, however much it resembles what is known of others
        if answers.first().is_some_and(|best| best.of_stranger) && !answers.iter().any(|one| one.coverage >= KNOWS) {
            continue;
        }
        if !answers
            .iter()
            .any(|answer| answer.coverage >= LEAST_BEST || answer.meant >= LEAST_MEANING || answer.names_it)
        {
            continue;
        }
        let says = |answer: &Answer| {
            answer.coverage >= LEAST_COVERAGE || answer.indirect || answer.meant >= LEAST_MEANING || answer.names_it
        };
        for mut answer in answers.into_iter().filter(says) {
            answer.hit.score = Score(answer.hit.score.0 * share);
            let key = (answer.hit.path.to_string(), answer.hit.line);
            let better = best.get(&key).is_none_or(|known| known.hit.score < answer.hit.score);
            if better {
                best.insert(key, answer);
            }
        }
    }
    for trouble in troubles {
        tracing::debug!(part = trouble.part, why = trouble.why, "remembered without a part");
    }
    let mut hits: Vec<Hit> = best.into_values().map(|answer| answer.hit).collect();
    hits.sort_by(|a, b| b.score.cmp(&a.score).then(a.path.cmp(&b.path)).then(a.line.cmp(&b.line)));
    let terms = query_terms(&question);
    let (lived, known): (Vec<Hit>, Vec<Hit>) =
        hits.into_iter().filter(|hit| belongs(&hit.kind)).partition(|hit| is_lived(&hit.kind));
    Ok(lay_out(cue, room, &terms, known, lived))
}

/// What to look for: what was said, and what was said just before.
async fn questions(inner: &Arc<Inner>, cue: &Cue) -> Result<(String, String), MemoryError> {
    let said: String = cue.message.chars().take(300).collect();
    let before: String = cue.recent.join("\n").chars().take(500).collect();
    if !said.trim().is_empty() && cue.trigger != TriggerKind::Heartbeat {
        return Ok((said, before));
    }
    let (inner, heartbeat) = (Arc::clone(inner), cue.trigger == TriggerKind::Heartbeat);
    fs::blocking(move || {
        if heartbeat {
            let reflections = inner.home.load(&ActivityQuery::days(3).kinds(&["heartbeat_reflection"]))?;
            let last: Vec<String> = reflections
                .iter()
                .rev()
                .take(3)
                .map(|entry| entry.activity.words().chars().take(500).collect())
                .collect();
            if !last.is_empty() {
                return Ok((last.join("\n"), before));
            }
        }
        let state: String = inner.home.current_state()?.chars().take(300).collect();
        Ok((state, before))
    })
    .await
}

fn belongs(kind: &str) -> bool {
    [Kind::Knowledge, Kind::CommonKnowledge, Kind::Procedures, Kind::Episodes, Kind::Conversation]
        .iter()
        .any(|known| known.as_str() == kind)
}

fn is_lived(kind: &str) -> bool {
    kind == Kind::Episodes.as_str() || kind == Kind::Conversation.as_str()
}

/// Fills the channels: what one of the two does not need, the other one gets.
fn lay_out(cue: &Cue, room: &Room, terms: &[QueryTerm], known: Vec<Hit>, lived: Vec<Hit>) -> Vec<PrimingSection> {
    let total = room.knowledge + room.episodes;
    let mut sections = Vec::new();
    let (external, believed): (Vec<Hit>, Vec<Hit>) = known.into_iter().partition(|hit| hit.trust == Trust::Untrusted);
    let wants_lived =
        lived.iter().map(|hit| Tokens::estimate(&entry(cue, hit, terms, true)) + Tokens(1)).sum::<Tokens>();
    let spare = room.episodes.saturating_sub(wants_lived);
    let knowledge = fill(cue, room.knowledge + spare, terms, believed, false);
    let mut left = total.saturating_sub(knowledge.spent);
    let has_external = !external.is_empty();
    let mut outside = Filled::default();
    if has_external {
        outside = fill(cue, (room.knowledge + spare).saturating_sub(knowledge.spent), terms, external, false);
        left = left.saturating_sub(outside.spent);
    }
    let episodes = fill(cue, left, terms, lived, true);
    let origin = if has_external { Origin::of(Origin::CONSOLIDATION) } else { Origin::default() };
    for (channel, filled, trust, origin) in [
        (PrimingChannel::RelatedKnowledge, knowledge, Trust::Medium, origin),
        (PrimingChannel::RelatedKnowledgeExternal, outside, Trust::Untrusted, Origin::of(Origin::EXTERNAL_PLATFORM)),
        (PrimingChannel::Episodes, episodes, Trust::Medium, Origin::default()),
    ] {
        if !filled.body.is_empty() {
            sections.push(PrimingSection { hits: filled.hits, ..section(channel, filled.body, trust, origin) });
        }
    }
    sections
}

/// A channel as far as it fits.
#[derive(Debug, Default)]
struct Filled {
    body: String,
    hits: Vec<Hit>,
    spent: Tokens,
}

fn fill(cue: &Cue, room: Tokens, terms: &[QueryTerm], hits: Vec<Hit>, lived: bool) -> Filled {
    let mut filled = Filled::default();
    for hit in hits {
        let text = entry(cue, &hit, terms, lived);
        let cost = Tokens::estimate(&text) + Tokens(1);
        if cost > room.saturating_sub(filled.spent) {
            break;
        }
        if !filled.body.is_empty() {
            filled.body.push('\n');
        }
        filled.body.push_str(&text);
        filled.spent += cost;
        filled.hits.push(hit);
    }
    filled
}

/// One place as it comes to mind: its words, and where to read on.
fn entry(cue: &Cue, hit: &Hit, terms: &[QueryTerm], lived: bool) -> String {
    let whole = Tokens::estimate(&hit.text) <= WHOLE;
    let text = if whole { hit.text.clone() } else { decisive(&hit.text, terms) };
    if lived {
        let day = hit
            .at
            .map(|at| at.with_timezone(&cue.now.timezone()).format("[%Y-%m-%d] ").to_string())
            .unwrap_or_default();
        // a turn names its speaker itself where its file does
        let said = text.trim_start_matches("- ").trim();
        return format!("- {day}{said} ({}:{})", hit.path, hit.line);
    }
    let heading =
        hit.headings.iter().filter(|heading| !text.contains(heading.as_str())).cloned().collect::<Vec<_>>().join(" > ");
    let about = if heading.is_empty() { String::new() } else { format!("{heading}: ") };
    t!(
        cue.locale,
        "memory.priming.place",
        about = about,
        text = text.trim().trim_start_matches("- ").trim_start_matches("* "),
        path = hit.path,
        line = hit.line
    )
}

/// The lines of a place that say most of what was asked, in their order.
fn decisive(text: &str, terms: &[QueryTerm]) -> String {
    let parts: Vec<&str> = sentences(text);
    let weigh = |part: &str| {
        let mut seen = std::collections::BTreeSet::new();
        each_term(part, &mut |term, _| {
            seen.insert(term.to_owned());
        });
        terms.iter().filter(|term| seen.contains(&term.key)).map(|term| term.weight).sum::<f32>()
    };
    let mut order: Vec<(usize, f32)> = parts.iter().map(|part| weigh(part)).enumerate().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut chosen = Vec::new();
    let mut left = DECISIVE;
    for (at, _) in order {
        let Some(length) = parts.get(at).map(|part| part.chars().count()) else { continue };
        if chosen.is_empty() || length <= left {
            chosen.push(at);
            left = left.saturating_sub(length);
        }
        if left == 0 {
            break;
        }
    }
    chosen.sort_unstable();
    let text: Vec<String> = chosen
        .iter()
        .filter_map(|at| parts.get(*at))
        .map(|part| part.trim().chars().take(2 * DECISIVE).collect())
        .collect();
    text.join(" … ")
}

fn sentences(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for line in text.lines() {
        parts.extend(line.split_inclusive(['。', '！', '？']).filter(|part| !part.trim().is_empty()));
    }
    parts
}
