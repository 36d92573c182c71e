//! A program outside the workspace: makes an Anima, tells it something, asks for it.
//!
//! It is built from the packaged crates and sees no file of the repository. What it imports is
//! the public surface that others build on: a path that goes away breaks this build.

use animaworks_core::{
    Anima, AnimaError, AnimaName, Capabilities, Clock, Cue, DataDir, ExecError, ExecutionMode, Executor,
    ExecutorSource, Fault, LifeEvent, Locale, MemoryStore, Message, ModelId, Query, ResolvedModel, StopReason,
    ThreadId, Tokens, Tool, ToolContext, ToolError, ToolOutput, Trigger, Trust, TurnEvent, TurnHost, TurnRequest,
    Typed, TypedTool,
    config::Env,
    creation::{self, NewAnima, Origin, Shipped},
    gate::{Gate, Permissions},
    life::{DigitalAnima, Parts},
    seams::{Host, HttpTransport, PostOffice, Sandbox, TaskBook},
};
use animaworks_memory::FileMemory;
use animaworks_server::{App, InProcess, Resident};

/// Never called: it only has to compile.
#[allow(dead_code, clippy::too_many_arguments, clippy::type_complexity)]
fn public_paths(
    _: (&dyn Anima, &dyn Executor, &dyn Tool, &dyn MemoryStore, &dyn TurnHost, &dyn ExecutorSource),
    _: (&dyn Host, &dyn HttpTransport, &dyn PostOffice, &dyn Sandbox, &dyn TaskBook, &dyn Clock, &dyn Permissions),
    _: (&AnimaError, &ExecError, &ToolError, &dyn Fault),
    _: (Capabilities, Cue, ExecutionMode, LifeEvent, Query, ResolvedModel, StopReason, ThreadId, Tokens),
    _: (ToolContext, ToolOutput, Trigger, Trust, TurnEvent, TurnRequest, Gate, Parts),
    _: (&DigitalAnima, &FileMemory, &App, &InProcess, &Resident),
) {
    fn wraps<T: TypedTool>(tool: T) -> Typed<T> {
        Typed::new(tool, "")
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args().nth(1).ok_or("a directory for the organisation")?;
    let data = DataDir::new(place);
    let shipped = Shipped::new(Locale::En);
    creation::init(&data, &shipped, false)?;
    let model = Some(ModelId::new("local/recall")?);
    let new = NewAnima { name: Some("wren".to_owned()), model, ..NewAnima::new(Origin::Blank) };
    creation::create(&data, &shipped, &new)?;
    let host = InProcess::open(Env::default(), data, Locale::En)?;
    let wren = host.resident(&AnimaName::new("wren")?).await?;
    for words in ["remember that the spare key is under the blue pot", "where is the spare key?"] {
        let turn = wren.anima.talk(Message::human("juno", words)).await?;
        println!("{}", wren.anima.report(turn).await?.text);
    }
    wren.close().await?;
    Ok(())
}
