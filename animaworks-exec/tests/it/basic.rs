//! Mode B over a model that follows a script.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use animaworks_core::{
    ExecError, Executor, Locale, Origin, StopReason, Tokens, TurnEvent, TurnHost, event::TurnLaw, event::lawful,
};
use animaworks_exec::basic::{Basic, TextAsk, TextEvent, TextModel};
use futures_util::{StreamExt, stream, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use crate::memory_host::{MemoryHost, request};

/// Writes one message after the other, three characters at a time.
#[derive(Debug, Default)]
struct Script {
    messages: Mutex<VecDeque<String>>,
    asked: Mutex<Vec<TextAsk>>,
    /// Stops without an end.
    breaks_off: bool,
    /// Never says anything.
    stalls: bool,
}

impl Script {
    fn of(messages: &[&str]) -> Self {
        Self { messages: Mutex::new(messages.iter().map(|text| (*text).to_owned()).collect()), ..Self::default() }
    }
}

impl TextModel for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn needs_network(&self) -> bool {
        false
    }

    fn write(&self, ask: TextAsk) -> BoxStream<'static, Result<TextEvent, ExecError>> {
        self.asked.lock().unwrap().push(ask);
        if self.stalls {
            return stream::pending().boxed();
        }
        let text = self.messages.lock().unwrap().pop_front().unwrap_or_default();
        let chars: Vec<char> = text.chars().collect();
        let mut events: Vec<_> = chars.chunks(3).map(|chunk| Ok(TextEvent::Text(chunk.iter().collect()))).collect();
        if !self.breaks_off {
            events.push(Ok(TextEvent::End(StopReason::End)));
        }
        stream::iter(events).boxed()
    }
}

struct Run {
    said: String,
    events: Vec<TurnEvent>,
    error: Option<ExecError>,
}

async fn run(model: &Arc<Script>, host: &Arc<MemoryHost>, message: &str) -> Run {
    let host: Arc<dyn TurnHost> = host.clone();
    let events = Basic::new(model.clone()).run(request(message, Locale::En), host, CancellationToken::new());
    let mut run = Run { said: String::new(), events: Vec::new(), error: None };
    let mut law = TurnLaw::default();
    let mut events = lawful("script", events);
    while let Some(event) = events.next().await {
        law.check(&event).unwrap();
        match event {
            Ok(TurnEvent::Text(text)) => run.said.push_str(&text),
            Ok(event) => run.events.push(event),
            Err(error) => run.error = Some(error),
        }
    }
    run
}

impl Run {
    fn reason(&self) -> Option<StopReason> {
        self.events.iter().find_map(|event| if let TurnEvent::Completed(reason) = event { Some(*reason) } else { None })
    }
}

const SEARCH: &str = "```json\n{\"tool\": \"search_memory\", \"arguments\": {\"query\": \"spare key\"}}\n```";

async fn host() -> Arc<MemoryHost> {
    let host = MemoryHost::new();
    host.file("knowledge/keys.md", "The spare key is under the pot.\n", Origin::human()).await;
    host
}

#[tokio::test]
async fn calls_a_tool_and_answers_from_its_result() {
    let host = host().await;
    let invents = format!("Let me see.\n{SEARCH}\nResult: it is in the car. You: It is in the car.");
    let model = Arc::new(Script::of(&[&invents, "It is under the pot."]));
    let run = run(&model, &host, "Where is the spare key?").await;
    assert_eq!(run.said, "Let me see.\n\n\nIt is under the pot.");
    assert_eq!(run.reason(), Some(StopReason::End));
    assert_eq!(host.calls.lock().unwrap().len(), 1);
    let asked = model.asked.lock().unwrap();
    assert!(asked[0].system.contains("**search_memory**"));
    let result = &asked[1].messages.last().unwrap().text;
    assert!(result.contains("<tool_result tool=\"search_memory\""), "{result}");
    assert!(asked[1].messages.iter().zip([false, true, false]).all(|(message, by_model)| message.by_model == by_model));
    assert!(!asked[1].messages[1].text.contains("in the car. You"), "what was invented is not kept");
}

#[tokio::test]
async fn slips_are_answered_and_not_for_ever() {
    for (first, hint) in [
        ("{\"tool\": \"open_door\", \"arguments\": {}}", "There is no tool open_door"),
        ("{\"tool\": \"search_memory\" \"arguments\"}", "could not be read"),
        ("I'll check that for you.", "you called no tool"),
        ("", "You wrote nothing"),
    ] {
        let model = Arc::new(Script::of(&[first, "It is under the pot."]));
        let run = run(&model, &host().await, "Where is it?").await;
        assert!(run.said.ends_with("It is under the pot."), "{first}: {}", run.said);
        assert!(!run.said.contains("tool"), "no JSON for people: {}", run.said);
        let asked = model.asked.lock().unwrap();
        let told = &asked[1].messages.last().unwrap().text;
        assert!(told.contains(hint), "{first}: {told}");
    }
    let model = Arc::new(Script::of(&["I'll check.", "I'll check.", "I'll check.", "never asked"]));
    let announced = run(&model, &host().await, "Where is it?").await;
    assert_eq!((announced.reason(), model.asked.lock().unwrap().len()), (Some(StopReason::End), 3));
    let model = Arc::new(Script::default());
    let silent = run(&model, &host().await, "Where is it?").await;
    assert_eq!((silent.reason(), model.asked.lock().unwrap().len()), (Some(StopReason::Empty), 3));
}

#[tokio::test]
async fn a_loop_comes_to_an_end_with_words() {
    let model = Arc::new(Script::of(&[SEARCH, SEARCH, SEARCH, SEARCH, SEARCH, "I cannot find more."]));
    let same = run(&model, &host().await, "Where is it?").await;
    assert_eq!((same.reason(), same.said.as_str()), (Some(StopReason::Runaway), "I cannot find more."));
    assert!(model.asked.lock().unwrap()[3].messages.last().unwrap().text.contains("several times"));

    let many: Vec<String> =
        (0..30).map(|n| format!("{{\"tool\": \"search_memory\", \"arguments\": {{\"query\": \"{n}\"}}}}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let model = Arc::new(Script::of(&many));
    let run = run(&model, &host().await, "Where is it?").await;
    assert_eq!((run.reason(), model.asked.lock().unwrap().len()), (Some(StopReason::MaxTurns), 21));
}

#[tokio::test]
async fn what_does_not_fit_is_shortened_from_the_oldest() {
    let host = MemoryHost::new();
    for n in 0..12 {
        host.file(&format!("knowledge/{n}.md"), &format!("{n} {}\n", "words ".repeat(2000)), Origin::human()).await;
    }
    let reads: Vec<String> = (0..12)
        .map(|n| format!("{{\"tool\": \"read_memory_file\", \"arguments\": {{\"path\": \"knowledge/{n}.md\"}}}}"))
        .chain(["Done.".to_owned()])
        .collect();
    let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
    let model = Arc::new(Script::of(&reads));
    let run = run(&model, &host, "Read them all.").await;
    assert_eq!(run.said, "Done.");
    let asked = model.asked.lock().unwrap();
    let last = asked.last().unwrap();
    let size: Tokens = last.messages.iter().map(|message| Tokens::estimate(&message.text)).sum();
    assert!(size + Tokens::estimate(&last.system) <= Tokens(8192), "{size:?}");
    assert!(last.messages[2].text.len() < 400 && last.messages.last().unwrap().text.len() > 4000);
}

#[tokio::test(start_paused = true)]
async fn breaking_off_stalling_and_cancelling_are_errors() {
    let host = host().await;
    let model = Arc::new(Script { breaks_off: true, ..Script::of(&["It is under"]) });
    let broken = run(&model, &host, "Where?").await;
    assert_eq!(broken.said, "It is under");
    assert!(matches!(broken.error, Some(ExecError::Interrupted { .. })), "{:?}", broken.error);

    let model = Arc::new(Script { stalls: true, ..Script::default() });
    let stalled = run(&model, &host, "Where?").await;
    assert!(matches!(stalled.error, Some(ExecError::Timeout { waiting_for: "first byte", .. })), "{:?}", stalled.error);

    let cancel = CancellationToken::new();
    let mut events = Basic::new(model).run(request("Where?", Locale::En), host, cancel.clone());
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(10), events.next()).await {
        event.unwrap();
    }
    cancel.cancel();
    assert!(matches!(events.next().await, Some(Err(ExecError::Cancelled))));
}
