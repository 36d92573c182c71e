//! Recorded output of the real programs, five ways: whole, bytewise, cut at random, truncated, with unknown events.

use std::path::Path;

use animaworks_core::{ExecError, Locale, StopReason, TurnEvent, error::Fault, event::TurnLaw};
use proptest::prelude::*;

use super::{
    claude, codex, cursor, gemini,
    ndjson::{Line, LineSplitter},
    said::{Order, Said, Speech},
};

const FIXTURES: &[&str] = &[
    "claude/tool_partial",
    "claude/429",
    "claude/resume",
    "codex/tool",
    "codex/shell",
    "codex/resume",
    "codex/429",
    "gemini/tool",
    "gemini/resume",
    "cursor/tool",
];

fn recorded(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    fs_err::read(root.join(format!("{name}.jsonl"))).unwrap()
}

fn speech(name: &str) -> Box<dyn Speech> {
    match name.split('/').next() {
        Some("claude") => Box::new(claude::Hearing::new(200_000, false)),
        Some("codex") => Box::new(codex::Hearing::default()),
        Some("gemini") => Box::new(gemini::Hearing::default()),
        _ => Box::new(cursor::Hearing::default()),
    }
}

/// The turn that these pieces of output make.
fn hear<'a>(name: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Result<TurnEvent, ExecError>> {
    let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
    for piece in pieces {
        splitter.push(piece, &mut lines);
    }
    splitter.finish(&mut lines);
    let (mut speech, mut order, mut events) = (speech(name), Order::new(Locale::En), Vec::new());
    for line in lines {
        let mut said = Vec::new();
        if let Line::Json(line) = line {
            speech.hear(&line, &mut said);
        }
        for said in said {
            match said {
                Said::Event(event) => events.extend(order.pass(event).into_iter().map(Ok)),
                Said::End(end) => {
                    events.extend(order.close().into_iter().map(Ok));
                    events.push(end.map(TurnEvent::Completed));
                    return events;
                }
            }
        }
    }
    events
}

fn lawful(events: &[Result<TurnEvent, ExecError>]) {
    let mut law = TurnLaw::default();
    for event in events {
        law.check(event).unwrap();
    }
}

fn shown(events: &[Result<TurnEvent, ExecError>]) -> String {
    format!("{events:?}")
}

fn text(events: &[Result<TurnEvent, ExecError>]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Ok(TurnEvent::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn tools(events: &[Result<TurnEvent, ExecError>]) -> Vec<String> {
    let tools = events.iter().filter_map(|event| match event {
        Ok(TurnEvent::ToolCall(call)) => Some(format!("{} {}", call.name, call.args)),
        Ok(TurnEvent::ToolOutput(_, output)) => Some(format!("{} {}", output.is_error, output.text.trim())),
        _ => None,
    });
    tools.collect()
}

fn whole(name: &str) -> Vec<Result<TurnEvent, ExecError>> {
    let bytes = recorded(name);
    let events = hear(name, [bytes.as_slice()]);
    lawful(&events);
    events
}

fn usage(events: &[Result<TurnEvent, ExecError>]) -> (u64, u64, u64) {
    events
        .iter()
        .find_map(|event| match event {
            Ok(TurnEvent::Usage(usage)) => Some((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)),
            _ => None,
        })
        .unwrap()
}

#[test]
fn a_tool_is_called_answered_and_spoken_about() {
    for (name, said, called) in [
        (
            "claude/tool_partial",
            "Calling the tool. \n\nTool finished. All done.\n\nHello from the fake model (turn with 5 messages).",
            vec!["echo {\"text\":\"hello\"}", "false echo: hello"],
        ),
        ("codex/tool", "Tool finished. All done.", vec!["echo {\"text\":\"hello\"}", "false echo: hello"]),
        (
            "codex/shell",
            "Tool finished. All done.",
            vec!["Bash {\"command\":\"/bin/bash -lc 'echo shell-ok'\"}", "false shell-ok"],
        ),
        ("gemini/tool", "Tool finished. All done.", vec!["echo {\"text\":\"hello\"}", "false echo: hello"]),
        ("cursor/tool", "Calling the tool.\n\nAll done.", vec!["echo {\"text\":\"hello\"}", "false echo: hello"]),
    ] {
        let events = whole(name);
        assert_eq!(text(&events), said, "{name}");
        assert_eq!(tools(&events), called, "{name}");
        assert!(matches!(events.first(), Some(Ok(TurnEvent::Started { session: Some(_) }))), "{name}");
        assert!(matches!(events.last(), Some(Ok(TurnEvent::Completed(StopReason::End)))), "{name}: {events:?}");
    }
}

#[test]
fn what_was_consumed_is_counted_once() {
    assert_eq!(usage(&whole("claude/tool_partial")), (33, 27, 21));
    assert_eq!(usage(&whole("codex/tool")), (34, 16, 8));
    assert_eq!(usage(&whole("gemini/tool")), (18, 12, 6));
}

#[test]
fn the_context_is_that_of_the_last_message_and_not_the_sum() {
    let events = whole("claude/tool_partial");
    let used: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(TurnEvent::Context { used, window }) => Some((*used, *window)),
            _ => None,
        })
        .collect();
    assert_eq!(used, [(23, 200_000); 3]);
}

#[test]
fn a_refusal_by_the_provider_is_busy_and_its_retries_are_told() {
    for name in ["claude/429", "codex/429"] {
        let events = whole(name);
        assert!(events.iter().any(|event| matches!(event, Ok(TurnEvent::Retrying { attempt: 1, .. }))), "{name}");
        let Some(Err(error)) = events.last() else { panic!("{name}: {events:?}") };
        assert_eq!(error.code(), "engine_busy", "{name}: {error}");
        assert_eq!(text(&events), "", "{name}: a failure is no answer");
    }
}

#[test]
fn one_byte_at_a_time() {
    for name in FIXTURES {
        let bytes = recorded(name);
        assert_eq!(shown(&hear(name, bytes.chunks(1))), shown(&whole(name)), "{name}");
    }
}

#[test]
fn truncated_after_any_line_there_is_no_end() {
    for name in FIXTURES {
        let bytes = recorded(name);
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for cut in 0..lines.len() {
            let events = hear(name, lines[..cut].iter().copied());
            lawful(&events);
            assert!(!matches!(events.last(), Some(Ok(TurnEvent::Completed(_)) | Err(_))), "{name} at {cut}");
        }
    }
}

#[test]
fn events_nobody_knows_change_nothing() {
    let unknown = b"{\"type\":\"brand_new\",\"message\":7,\"item\":[],\"event\":\"x\"}\nnot json\n".as_slice();
    for name in FIXTURES {
        let bytes = recorded(name);
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').flat_map(|line| [unknown, line]);
        assert_eq!(shown(&hear(name, lines)), shown(&whole(name)), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn cut_anywhere(sizes in proptest::collection::vec(1_usize..900, 1..40)) {
        for name in FIXTURES {
            let bytes = recorded(name);
            let (mut pieces, mut rest, mut size) = (Vec::new(), bytes.as_slice(), sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*size.next().unwrap()).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(shown(&hear(name, pieces)), shown(&whole(name)), "{}", name);
        }
    }
}
