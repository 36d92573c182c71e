//! Gives an Anima an engine of your own: here one that answers with the clock, and uses a tool on the way.
//!
//! `cargo run --example own_executor`

use std::sync::Arc;

use animaworks_core::{
    AnimaName, CallId, Capabilities, DataDir, ExecError, ExecutionMode, Executor, ExecutorSource, Locale, Message,
    ModelId, ResolvedModel, StopReason, ToolCall, ToolName, TurnEvent, TurnHost, TurnRequest,
    config::Env,
    creation::{self, NewAnima, Origin, Shipped},
    event::lawful,
};
use animaworks_server::InProcess;
use futures_util::{StreamExt, stream, stream::BoxStream};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Looks into its own notes and says how many it found.
#[derive(Debug, Default)]
struct Counter(Capabilities);

impl Executor for Counter {
    fn mode(&self) -> ExecutionMode {
        ExecutionMode::Basic
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn run(
        &self,
        request: TurnRequest,
        host: Arc<dyn TurnHost>,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
        let work = async move {
            let query = request.prompt.last_words().to_owned();
            let (Ok(id), Ok(name)) = (CallId::new("look"), ToolName::new("search_memory")) else {
                return vec![Err(ExecError::Cancelled)];
            };
            let call = ToolCall { id: id.clone(), name, args: json!({ "query": query }) };
            // every call goes through the gate, whatever the engine
            let output = match host.call(call.clone()).await {
                Ok(output) => output,
                Err(fault) => return vec![Err(fault.into())],
            };
            let hits = output.data.as_ref().and_then(|data| data["hits"].as_array()).map_or(0, Vec::len);
            vec![
                Ok(TurnEvent::Started { session: None }),
                Ok(TurnEvent::ToolCall(call)),
                Ok(TurnEvent::ToolOutput(id, output)),
                Ok(TurnEvent::Text(format!("I know {hits} things about that."))),
                Ok(TurnEvent::Completed(StopReason::End)),
            ]
        };
        // `lawful` holds an engine to the order of events
        lawful("counter", stream::once(work).flat_map(stream::iter).boxed())
    }
}

/// The same engine for every model.
#[derive(Debug)]
struct OnlyCounter(Arc<Counter>);

impl ExecutorSource for OnlyCounter {
    fn executor(&self, _model: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> {
        Ok(self.0.clone())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let data = DataDir::new(place.path().join("organisation"));
    let shipped = Shipped::new(Locale::En);
    creation::init(&data, &shipped, false)?;
    let new = NewAnima {
        name: Some("wren".to_owned()),
        model: Some(ModelId::new("counter")?),
        ..NewAnima::new(Origin::Blank)
    };
    creation::create(&data, &shipped, &new)?;

    let host = InProcess::open(Env::default(), data, Locale::En)?.with_engines(Arc::new(OnlyCounter(Arc::default())));
    let wren = host.resident(&AnimaName::new("wren")?).await?;
    let turn = wren.anima.talk(Message::human("juno", "identity")).await?;
    println!("{}", wren.anima.report(turn).await?.text);
    wren.close().await?;
    Ok(())
}
