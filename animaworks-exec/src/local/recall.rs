//! `local/recall`: an engine without a model. It answers by quoting what memory finds, with file and line,
//! keeps what it is told, says so when it finds nothing, and never makes anything up.

mod evidence;
mod intent;
mod terms;
mod words;

use std::sync::Arc;

use animaworks_core::{
    Capabilities, Checkpoint, Clock, Directive, ExecError, ExecutionMode, Executor, Locale, StopReason, ToolCall,
    ToolName, ToolOutput, TurnEvent, TurnHost, TurnRequest, ids::CallId, t, trigger::TriggerKind, units::is_cjk,
};
use async_stream::try_stream;
use chrono::{Days, NaiveDate};
use chrono_tz::Tz;
use futures_util::{StreamExt, stream::BoxStream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::{
    evidence::{Hit, Quote},
    intent::Intent,
    terms::Terms,
    words::fold,
};

/// Where it writes what it is told to keep.
pub const REMEMBERED: &str = "knowledge/remembered.md";

const ENGINE: &str = "local/recall";
/// At most this many lines of a day are quoted.
const DAY_LINES: usize = 8;
/// A day with fewer headings than this is told in more than its headings.
const FEW_HEADINGS: usize = 3;

/// The engine without a model. It works through the turn's memory tools alone.
#[derive(Debug, Clone)]
pub struct LocalRecall {
    clock: Arc<dyn Clock>,
    zone: Tz,
    capabilities: Capabilities,
}

impl LocalRecall {
    /// An engine that knows the time, so that it can say what "yesterday" is.
    pub fn new(clock: Arc<dyn Clock>, zone: Tz) -> Self {
        Self { clock, zone, capabilities: Capabilities::default() }
    }
}

impl Executor for LocalRecall {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Basic
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
        let today = self.clock.now_in(self.zone).date_naive();
        try_stream! {
            yield TurnEvent::Started { session: None };
            let message = said(request.prompt.last_words());
            let turn = Turn { locale: language(&message, request.locale), name: request.anima.as_str().to_owned(), today };
            let mut hands = Hands { host, cancel, made: 0 };
            if matches!(request.trigger, TriggerKind::Heartbeat | TriggerKind::Cron | TriggerKind::Consolidation) {
                yield TurnEvent::Text(t!(turn.locale, "exec.recall.background"));
                yield TurnEvent::Completed(StopReason::End);
                return;
            }
            for (at, intent) in intent::read(&message, &turn.name).into_iter().enumerate() {
                if at > 0 {
                    yield TurnEvent::Text("\n\n".to_owned());
                }
                let mut steps = Step::first(intent);
                loop {
                    match steps.next(&turn) {
                        Next::Call(tool, args) => {
                            let call = hands.prepare(tool, args)?;
                            yield TurnEvent::ToolCall(call.clone());
                            let output = hands.call(call.clone()).await?;
                            yield TurnEvent::ToolOutput(call.id.clone(), output.clone());
                            if hands.host.checkpoint(Checkpoint::AfterTool(call.id)).await == Directive::EndForChain {
                                yield TurnEvent::Completed(StopReason::Chain);
                                return;
                            }
                            steps.take(&output, &turn)?;
                        }
                        Next::Say(text) => {
                            for piece in pieces(&text) {
                                hands.check()?;
                                yield TurnEvent::Text(piece);
                            }
                            break;
                        }
                    }
                }
            }
            yield TurnEvent::Completed(StopReason::End);
        }
        .boxed()
    }
}

/// What does not change within a turn.
#[derive(Debug)]
struct Turn {
    locale: Locale,
    name: String,
    today: NaiveDate,
}

impl Turn {
    fn day(&self, offset: i64) -> NaiveDate {
        self.today.checked_sub_days(Days::new(offset.unsigned_abs())).unwrap_or(self.today)
    }
}

/// The tools of a turn.
#[derive(Debug)]
struct Hands {
    host: Arc<dyn TurnHost>,
    cancel: CancellationToken,
    made: u32,
}

impl Hands {
    fn check(&self) -> Result<(), ExecError> {
        if self.cancel.is_cancelled() { Err(ExecError::Cancelled) } else { Ok(()) }
    }

    fn prepare(&mut self, tool: &str, args: Value) -> Result<ToolCall, ExecError> {
        self.check()?;
        self.made += 1;
        let bad = |error: animaworks_core::BadId| ExecError::Other(Box::new(error));
        let id = CallId::new(format!("recall-{}", self.made)).map_err(bad)?;
        Ok(ToolCall { id, name: ToolName::new(tool).map_err(bad)?, args })
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ExecError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ExecError::Cancelled),
            output = self.host.call(call) => Ok(output?),
        }
    }
}

/// What comes next for one intent.
enum Next {
    Call(&'static str, Value),
    Say(String),
}

/// How far one intent is.
#[derive(Debug)]
enum Step {
    Ready(String),
    Fixed(Intent),
    Identity,
    Day { offset: i64 },
    DaySearch { offset: i64 },
    Ask { question: String },
    AskAgain { question: String },
    Look { fact: String },
    Write { fact: String, before: String },
    Confirm { fact: String, problem: Option<String> },
}

impl Step {
    fn first(intent: Intent) -> Self {
        match intent {
            Intent::Who => Self::Identity,
            Intent::Day(offset) => Self::Day { offset },
            Intent::Remember(fact) => Self::Look { fact },
            Intent::Question(question) => Self::Ask { question },
            fixed => Self::Fixed(fixed),
        }
    }

    fn next(&self, turn: &Turn) -> Next {
        let read = |path: &str| Next::Call("read_memory_file", json!({ "path": path }));
        match self {
            Self::Ready(text) => Next::Say(text.clone()),
            Self::Fixed(intent) => Next::Say(fixed(intent, turn)),
            Self::Identity => read("identity.md"),
            Self::Day { offset } => read(&episode(turn.day(*offset))),
            Self::DaySearch { offset } => {
                Next::Call("search_memory", json!({ "query": turn.day(*offset).to_string(), "scope": "activity_log" }))
            }
            Self::Ask { question } => Next::Call("search_memory", json!({ "query": question, "scope": "all" })),
            Self::AskAgain { question } => {
                Next::Call("search_memory", json!({ "query": Terms::of(question).joined(), "scope": "all" }))
            }
            Self::Look { .. } | Self::Confirm { .. } => read(REMEMBERED),
            Self::Write { fact, before } => {
                let mut content = String::new();
                if before.is_empty() {
                    content.push_str(&format!("# {}\n\n", t!(turn.locale, "exec.recall.remembered_heading")));
                } else if !before.ends_with('\n') {
                    content.push('\n');
                }
                content.push_str(&format!("- {}: {fact}\n", turn.today));
                Next::Call("write_memory_file", json!({ "path": REMEMBERED, "content": content, "mode": "append" }))
            }
        }
    }

    fn take(&mut self, output: &ToolOutput, turn: &Turn) -> Result<(), ExecError> {
        let text = if output.is_error { "" } else { output.text.as_str() };
        *self = match std::mem::replace(self, Self::Ready(String::new())) {
            Self::Identity => Self::Ready(who(text, turn)),
            Self::Day { offset } => match day(text, turn.day(offset), turn) {
                Some(answer) => Self::Ready(answer),
                None => Self::DaySearch { offset },
            },
            Self::DaySearch { offset } => Self::Ready(day_from_log(&hits(output)?, turn.day(offset), turn)),
            Self::Ask { question } => match answer(&question, output, turn)? {
                Some(answer) => Self::Ready(answer),
                None if Terms::of(&question).is_empty() => Self::Ready(t!(turn.locale, "exec.recall.not_found")),
                None => Self::AskAgain { question },
            },
            Self::AskAgain { question } => Self::Ready(match answer(&question, output, turn)? {
                Some(answer) => answer,
                None => t!(turn.locale, "exec.recall.not_found"),
            }),
            Self::Look { fact } => match kept_at(text, &fact) {
                Some((line, kept)) => {
                    let said = t!(turn.locale, "exec.recall.already", path = REMEMBERED, line = line, fact = kept);
                    Self::Ready(said)
                }
                None => Self::Write { fact, before: text.to_owned() },
            },
            Self::Write { fact, .. } => Self::Confirm { fact, problem: output.is_error.then(|| problem(output)) },
            // what is confirmed is what stands in the file now
            Self::Confirm { fact, problem: failed } => Self::Ready(match (kept_at(text, &fact), failed) {
                (Some((line, kept)), _) => {
                    t!(turn.locale, "exec.recall.remembered", path = REMEMBERED, line = line, fact = kept)
                }
                (None, failed) => {
                    let problem = failed.unwrap_or_else(|| problem(output));
                    t!(turn.locale, "exec.recall.not_kept", problem = problem)
                }
            }),
            done @ (Self::Ready(_) | Self::Fixed(_)) => done,
        };
        Ok(())
    }
}

fn fixed(intent: &Intent, turn: &Turn) -> String {
    match intent {
        Intent::Greeting => t!(turn.locale, "exec.recall.greeting", name = turn.name),
        Intent::Thanks => t!(turn.locale, "exec.recall.thanks"),
        Intent::Farewell => t!(turn.locale, "exec.recall.farewell"),
        _ => t!(turn.locale, "exec.recall.abilities"),
    }
}

/// Who it is, in the words of its identity file.
fn who(identity: &str, turn: &Turn) -> String {
    let mut said = t!(turn.locale, "exec.recall.who", name = turn.name);
    for (at, line) in describing(identity).into_iter().take(3) {
        said.push_str(&format!("\n> {line}\n— identity.md:{at}"));
    }
    said
}

/// The lines of a file that say something, with their numbers; front matter and headings are passed over.
fn telling(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let front = match text.lines().next() {
        Some("---") => text.lines().skip(1).position(|line| line.trim_end() == "---").map_or(0, |at| at + 2),
        _ => 0,
    };
    text.lines()
        .enumerate()
        .skip(front)
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.starts_with('#') && line.chars().any(char::is_alphanumeric))
}

/// What an identity says in sentences; the rows of its tables when it has none. A section that nobody wrote says nothing.
fn describing(identity: &str) -> Vec<(usize, &str)> {
    let written = telling(identity).filter(|(_, line)| animaworks_core::creation::is_defined(line));
    let (rows, sentences): (Vec<_>, Vec<_>) = written.partition(|(_, line)| line.starts_with('|'));
    // the first row of a table names its columns
    if sentences.is_empty() { rows.into_iter().skip(1).collect() } else { sentences }
}

fn episode(day: NaiveDate) -> String {
    format!("episodes/{day}.md")
}

/// The lines of an episode that say something, and the headings of its entries.
fn told(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let front = telling(text).next().map_or(0, |(at, _)| at);
    text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter_map(move |(at, line)| {
        let entry = line.starts_with("## ") || line.starts_with("### ");
        // headings of other levels, who it was with, and what was quoted from elsewhere
        let aside = line.starts_with(['#', '>', '—']) || line.starts_with("**");
        let says = at >= front && !aside && line.chars().any(char::is_alphanumeric);
        (entry || says).then(|| (at, line.trim_start_matches('#').trim()))
    })
}

/// The day's episode, its headings and first lines; `None` when there is nothing in it.
fn day(text: &str, date: NaiveDate, turn: &Turn) -> Option<String> {
    let path = episode(date);
    let mut entries: Vec<(usize, &str)> = Vec::new();
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        // the first heading names the day; the others name what was done
        if line.starts_with("## ") || line.starts_with("### ") {
            entries.push((at, line.trim_start_matches('#').trim()));
        }
    }
    // a day of few headings has room for what stands below them
    if entries.len() < FEW_HEADINGS {
        entries = told(text).collect();
    }
    if entries.is_empty() {
        return None;
    }
    let more = entries.len().saturating_sub(DAY_LINES);
    let mut said = t!(turn.locale, "exec.recall.day_found", date = date);
    for (at, line) in entries.iter().take(DAY_LINES) {
        said.push_str(&format!("\n> {}\n— {path}:{at}", line.trim_start_matches(['-', '*', ' '])));
    }
    if more > 0 {
        said.push('\n');
        said.push_str(&t!(turn.locale, "exec.recall.day_more", count = more, path = path));
    }
    Some(said)
}

fn day_from_log(hits: &[Hit], date: NaiveDate, turn: &Turn) -> String {
    let of_day = hits.iter().filter(|hit| hit.path.contains(&date.to_string()));
    let mut said = String::new();
    for hit in of_day.take(DAY_LINES) {
        let line = hit.text.lines().next().unwrap_or_default().trim();
        said.push_str(&format!("\n> {line}\n— {}:{}", hit.path, hit.line));
    }
    if said.is_empty() {
        return t!(turn.locale, "exec.recall.day_none", date = date);
    }
    format!("{}{said}", t!(turn.locale, "exec.recall.day_found", date = date))
}

fn hits(output: &ToolOutput) -> Result<Vec<Hit>, ExecError> {
    let Some(data) = output.data.as_ref().filter(|_| !output.is_error) else { return Ok(Vec::new()) };
    Hit::list(data).map_err(|detail| ExecError::Malformed { engine: ENGINE.to_owned(), detail })
}

/// The answer to a question, or `None` when nothing fits well enough.
fn answer(question: &str, output: &ToolOutput, turn: &Turn) -> Result<Option<String>, ExecError> {
    if output.is_error {
        return Ok(Some(t!(turn.locale, "exec.recall.search_failed", problem = problem(output))));
    }
    let day = intent::day_named(&fold(question)).map(|offset| turn.day(offset));
    let quotes = evidence::quotes(question, &hits(output)?, day);
    if quotes.is_empty() {
        return Ok(None);
    }
    let mut said = t!(turn.locale, "exec.recall.found");
    for quote in &quotes {
        said.push('\n');
        said.push_str(&shown(quote, turn.locale));
    }
    Ok(Some(said))
}

fn shown(quote: &Quote, locale: Locale) -> String {
    let mut said = format!("> {}\n— {}:{}", quote.text, quote.path, quote.line);
    if let Some(origin) = &quote.outside {
        let origin = if origin.is_empty() { t!(locale, "exec.recall.origin_unknown") } else { origin.clone() };
        said.push(' ');
        said.push_str(&t!(locale, "exec.recall.outside", origin = origin));
    }
    said
}

/// The line of a bullet that says just this, and the bullet.
fn kept_at(file: &str, fact: &str) -> Option<(usize, String)> {
    let wanted = fold(fact);
    let bullets = file.lines().enumerate().filter_map(|(at, line)| Some((at + 1, line.trim().strip_prefix("- ")?)));
    bullets
        .filter(|(_, bullet)| bullet.split_once(": ").is_some_and(|(_, said)| fold(said) == wanted))
        .map(|(at, bullet)| (at, bullet.to_owned()))
        .last()
}

/// What a failed tool said.
fn problem(output: &ToolOutput) -> String {
    let message = output.data.as_ref().and_then(|data| data.get("message")).and_then(Value::as_str);
    message.unwrap_or(&output.text).to_owned()
}

/// The words of a message, without lines that are nothing but a fence around it.
fn said(message: &str) -> String {
    let fence = |line: &str| line.starts_with('<') && line.ends_with('>');
    message.lines().filter(|line| !fence(line.trim())).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The language of a message; the organisation's when it does not say.
fn language(message: &str, otherwise: Locale) -> Locale {
    if message.chars().any(is_cjk) {
        Locale::Ja
    } else if message.split_whitespace().filter(|word| word.chars().any(|c| c.is_ascii_alphabetic())).count() > 1 {
        Locale::En
    } else {
        otherwise
    }
}

/// An answer in pieces of a line or a sentence.
fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive(['\n', '。']).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_speakers() {
        assert_eq!(language("鍵は？", Locale::En), Locale::Ja);
        assert_eq!(language("where is it?", Locale::Ja), Locale::En);
        assert_eq!(language("hello", Locale::Ja), Locale::Ja);
    }

    #[test]
    fn a_fence_is_not_what_was_said() {
        assert_eq!(said("<external_message from=\"x\">\nwhere is it?\n</external_message>"), "where is it?");
    }
}
