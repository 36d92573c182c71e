//! What a turn of mode A costs beside the provider: the answer is there at once, from memory.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::{hint::black_box, sync::Arc};

use animaworks_core::{
    AnimaName, ExecutionMode, Executor, Limits, Locale, ModelId, Prompt, PromptMessage, ResolvedModel, SystemClock,
    Tokens, Tool, ToolOutput, TurnEvent, TurnId, TurnRequest,
    config::ModelCredential,
    ids::RandomIds,
    seams::{Body, HttpTransport, TransportError},
    test_support::{FakeTool, RecordingHost},
    tool::Effect,
    trigger::TriggerKind,
};
use animaworks_exec::{
    autonomous::{Autonomous, Line},
    provider::{Endpoint, Learned},
    retry::RetryPolicy,
};
use async_trait::async_trait;
use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

/// Answers every request at once with the same bytes.
#[derive(Debug)]
struct Instant(Bytes);

#[async_trait]
impl HttpTransport for Instant {
    async fn send(&self, _request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        Ok(http::Response::new(stream::iter([Ok(self.0.clone())]).boxed()))
    }
}

fn engine(answer: String) -> Autonomous {
    let credential =
        ModelCredential { base_url: Some("http://instant.invalid/v1".to_owned()), ..ModelCredential::default() };
    let line = Line {
        transport: Arc::new(Instant(Bytes::from(answer))),
        clock: Arc::new(SystemClock::new()),
        ids: Arc::new(RandomIds),
        learned: Arc::new(Learned::default()),
        retry: RetryPolicy::default(),
    };
    Autonomous::new(Endpoint::open("openai/instant", &credential).unwrap(), line)
}

/// A prompt of about 20,000 tokens with 40 messages.
fn request() -> TurnRequest {
    let messages = (0..40).map(|n| {
        let text = format!("{n}: {}", "明日の会議の準備について。".repeat(30));
        if n % 2 == 0 {
            PromptMessage::User { text, images: Vec::new() }
        } else {
            PromptMessage::Assistant { text, calls: Vec::new() }
        }
    });
    let last = PromptMessage::User { text: "何時から？".to_owned(), images: Vec::new() };
    TurnRequest {
        turn: TurnId::new("t1").unwrap(),
        anima: AnimaName::new("sakura").unwrap(),
        trigger: TriggerKind::Chat,
        locale: Locale::Ja,
        model: ResolvedModel {
            id: ModelId::new("openai/instant").unwrap(),
            mode: ExecutionMode::Autonomous,
            window: Tokens(128_000),
            max_output: Tokens(8_192),
            credential: "openai".to_owned(),
            thinking: None,
        },
        prompt: Prompt {
            system: "あなたは桜です。".repeat(500).into(), messages: messages.chain([last]).collect()
        },
        resume: None,
        limits: Limits::default(),
        work_dir: "/".into(),
    }
}

fn turns(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let tools = (0..30).map(|n| FakeTool::new(&format!("tool_{n}"), Effect::Reads).spec().clone()).collect();
    let host = Arc::new(RecordingHost::new(tools, ToolOutput::text("ok")));
    let delta =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"会議は十時から。\"},\"finish_reason\":null}]}\n\n";
    let stop = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    for (name, deltas) in [("whole turn, 1 delta", 1), ("whole turn, 500 deltas", 500)] {
        let engine = engine(format!("{}{stop}", delta.repeat(deltas)));
        let request = request();
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let events = engine.run(request.clone(), host.clone(), CancellationToken::new());
                black_box(runtime.block_on(events.collect::<Vec<_>>()))
            });
        });
    }
    let engine = engine(format!("{delta}{stop}"));
    let request = request();
    criterion.bench_function("from the start to the first token", |bencher| {
        bencher.iter(|| {
            let mut events = engine.run(request.clone(), host.clone(), CancellationToken::new());
            runtime.block_on(async {
                while let Some(event) = events.next().await {
                    if matches!(event, Ok(TurnEvent::Text(_))) {
                        break;
                    }
                }
            });
        });
    });
}

criterion_group!(benches, turns);
criterion_main!(benches);
