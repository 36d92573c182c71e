//! Wire fixtures: what we must send, bytes as providers send them, and what we must make of them.
//!
//! Each runs whole, one byte at a time, cut at random, truncated after each event, and with an
//! unknown event in every gap. When a fixture does not match, what was seen is left in the
//! target directory to look at.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use animaworks_core::{
    Fault, TurnEvent,
    seams::{Body, HttpTransport, TransportError},
    test_support::ManualClock,
};
use animaworks_exec::{autonomous::Autonomous, provider::Endpoint};
use async_trait::async_trait;
use bytes::Bytes;
use fs_err as fs;
use futures_util::{StreamExt, stream};
use pretty_assertions::assert_eq;
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};

use crate::kit::{Desk, credential, line_over, request, tell};

const OPENAI_END: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"done\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const ANTHROPIC_END: &str = concat!(
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"done\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
);

#[derive(Debug)]
struct Fixture {
    dir: PathBuf,
    response: Vec<u8>,
    meta: BTreeMap<String, String>,
}

impl Fixture {
    fn load(dir: &Path) -> Self {
        let text = fs::read_to_string(dir.join("meta.toml")).unwrap();
        let pairs = text.lines().filter_map(|line| line.split_once(" = "));
        let meta = pairs.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned())).collect();
        Self { dir: dir.to_owned(), response: fs::read(dir.join("response.sse")).unwrap(), meta }
    }

    fn word(&self, key: &str) -> Option<&str> {
        self.meta.get(key).map(String::as_str)
    }

    fn is_anthropic(&self) -> bool {
        self.dir.parent().is_some_and(|parent| parent.ends_with("anthropic"))
    }

    /// The events of a stream, each with its blank line; nothing for an answer that is not one.
    fn events(&self) -> Vec<String> {
        let text = String::from_utf8(self.response.clone()).unwrap();
        if self.word("status").is_some() || !text.contains("\n\n") {
            return Vec::new();
        }
        text.split_inclusive("\n\n").map(str::to_owned).collect()
    }

    fn run(&self, pieces: Vec<Vec<u8>>) -> (Value, Vec<Value>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let transport = Arc::new(Replay {
                status: self.word("status").map_or(200, |status| status.parse().unwrap()),
                retry_after: self.word("retry_after").map(str::to_owned),
                first: Mutex::new(Some(pieces)),
                then: if self.is_anthropic() { ANTHROPIC_END } else { OPENAI_END },
                bodies: Mutex::default(),
            });
            let credential = credential(self.word("base_url"));
            let endpoint = Endpoint::open(self.word("model").unwrap(), &credential).unwrap();
            let engine = Autonomous::new(
                endpoint,
                line_over(transport.clone(), Arc::new(ManualClock::at("2026-04-01T09:00:00Z"))),
            );
            let mut request = request(self.word("ask").unwrap_or("会議は何時？"));
            request.model.thinking = self.word("thinking").map(str::to_owned);
            let told = tell(&engine, request, Arc::new(Desk::new())).await;
            let mut seen = json!({"events": told.events.iter().filter_map(show).collect::<Vec<_>>()});
            if let Some(error) = &told.error {
                let text = error.to_string();
                seen["error"] =
                    json!({"kind": error.kind().as_str(), "retry": format!("{:?}", error.retry()), "text": text});
            }
            let shown = seen.to_string();
            assert!(!shown.contains("planted"), "the key leaked: {shown}");
            let bodies = transport.bodies.lock().unwrap().clone();
            (seen, bodies)
        })
    }

    /// Compares with a file of the fixture; leaves what was seen where a person finds it.
    fn differs(&self, name: &str, seen: &Value) -> Option<String> {
        let wanted = fs::read_to_string(self.dir.join(name)).unwrap_or_else(|_| "null".to_owned());
        let wanted: Value = serde_json::from_str(&wanted).unwrap();
        if &wanted == seen {
            return None;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.dir.strip_prefix(&root).unwrap());
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join(name), serde_json::to_string_pretty(seen).unwrap() + "\n").unwrap();
        Some(format!("{name} of {}; what was seen is in {}", self.dir.display(), kept.display()))
    }

    fn compare(&self, name: &str, seen: &Value) {
        assert_eq!(self.differs(name, seen), None, "{seen}");
    }
}

fn show(event: &TurnEvent) -> Option<Value> {
    Some(match event {
        TurnEvent::Text(text) => json!({"text": text}),
        TurnEvent::Thinking(text) => json!({"thinking": text}),
        TurnEvent::ToolCall(call) => json!({"call": {"id": call.id, "name": call.name, "args": call.args}}),
        TurnEvent::ToolOutput(id, output) => json!({"output": {"id": id, "is_error": output.is_error}}),
        TurnEvent::Usage(usage) => json!({"usage": usage}),
        TurnEvent::Completed(reason) => json!({"completed": format!("{reason:?}")}),
        _ => return None,
    })
}

/// Answers from memory: the fixture first, then a short farewell to whatever follows.
#[derive(Debug)]
struct Replay {
    status: u16,
    retry_after: Option<String>,
    first: Mutex<Option<Vec<Vec<u8>>>>,
    then: &'static str,
    bodies: Mutex<Vec<Value>>,
}

#[async_trait]
impl HttpTransport for Replay {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        self.bodies.lock().unwrap().push(serde_json::from_slice(request.body()).unwrap());
        let first = self.first.lock().unwrap().take();
        let mut head = http::Response::builder();
        if first.is_some() {
            head = head.status(self.status);
            if let Some(value) = &self.retry_after {
                head = head.header("retry-after", value);
            }
        }
        let pieces = first.unwrap_or_else(|| vec![self.then.as_bytes().to_vec()]);
        let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
        Ok(head.body(stream::iter(pieces).boxed()).unwrap())
    }
}

fn fixtures() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let list = |dir: &Path| -> Vec<PathBuf> {
        let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    };
    let dialects = ["anthropic", "openai"].map(|dialect| root.join(dialect));
    let all: Vec<_> = dialects.iter().flat_map(|dialect| list(dialect)).map(|dir| Fixture::load(&dir)).collect();
    assert!(all.len() > 20, "the fixtures are gone");
    all
}

#[test]
fn whole_and_as_we_ask() {
    let mut different = Vec::new();
    for fixture in fixtures() {
        let (seen, bodies) = fixture.run(vec![fixture.response.clone()]);
        different.extend(fixture.differs("events.json", &seen));
        different.extend(fixture.differs("request.json", &bodies[0]));
        // what goes back after the tools have run
        if let Some(second) = bodies.get(1) {
            different.extend(fixture.differs("request2.json", second));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn one_byte_at_a_time() {
    for fixture in fixtures() {
        let (seen, _) = fixture.run(fixture.response.iter().map(|byte| vec![*byte]).collect());
        fixture.compare("events.json", &seen);
    }
}

#[test]
fn cut_at_random() {
    let mut runner = TestRunner::deterministic();
    for fixture in fixtures() {
        for _ in 0..24 {
            let cuts = proptest::collection::btree_set(0..fixture.response.len().max(1), 0..20);
            let cuts = cuts.new_tree(&mut runner).unwrap().current();
            let ends = cuts.iter().copied().chain([fixture.response.len()]);
            let starts = [0].into_iter().chain(cuts.iter().copied());
            let pieces = starts.zip(ends).map(|(start, end)| fixture.response[start..end].to_vec()).collect();
            let (seen, _) = fixture.run(pieces);
            fixture.compare("events.json", &seen);
        }
    }
}

#[test]
fn truncated_after_each_event_is_an_error() {
    for fixture in fixtures() {
        let events = fixture.events();
        for kept in 0..events.len() {
            let head = events[..kept].concat();
            // the dialect's last word: what follows it adds nothing to the answer
            let whole = if fixture.is_anthropic() {
                head.contains("\"message_stop\"")
            } else {
                head.contains("\"finish_reason\":\"")
            };
            if whole {
                continue;
            }
            let (seen, _) = fixture.run(vec![head.into_bytes()]);
            assert!(seen.get("error").is_some(), "{} after {kept}: {seen}", fixture.dir.display());
            let ran = seen["events"].as_array().unwrap().iter().any(|event| event.get("call").is_some());
            assert!(!ran, "{} after {kept}: a tool of half an answer ran", fixture.dir.display());
        }
    }
}

#[test]
fn an_unknown_event_is_ignored() {
    let unknown = "event: future\ndata: {\"type\":\"future.thing\",\"value\":1}\n\n";
    for fixture in fixtures() {
        let events = fixture.events();
        if events.is_empty() {
            continue;
        }
        let with: String = events.iter().flat_map(|event| [unknown, event]).collect();
        let (seen, _) = fixture.run(vec![with.into_bytes()]);
        fixture.compare("events.json", &seen);
    }
}

#[test]
fn fixtures_hold_no_secrets_and_no_orphans() {
    let mut size = 0;
    for fixture in fixtures() {
        for name in ["meta.toml", "request.json", "response.sse", "events.json"] {
            let bytes = fs::read(fixture.dir.join(name)).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for mark in ["sk-", "Bearer ", "x-api-key", "@gmail", "org-"] {
                assert!(!text.contains(mark), "{} {name} holds {mark}", fixture.dir.display());
            }
            assert!(bytes.len() < 64 * 1024);
            size += bytes.len();
        }
        assert!(fixture.word("source").is_some() && fixture.word("url").is_some());
    }
    assert!(size < 5 * 1024 * 1024);
}
