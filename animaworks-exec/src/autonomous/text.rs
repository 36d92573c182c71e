//! An API as a model that only writes text, for mode B.

use std::sync::Arc;

use animaworks_core::{
    AnimaName, Checkpoint, Directive, ExecError, Executor, HostFault, Locale, Permit, PermitRequest, Prompt,
    PromptMessage, StopReason, ToolCall, ToolOutput, ToolSpec, TurnEvent, TurnHost, TurnId, TurnRequest,
    trigger::TriggerKind,
};
use async_trait::async_trait;
use futures_util::{StreamExt, future, stream, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use super::Autonomous;
use crate::basic::{TextAsk, TextEvent, TextModel};

/// One call of an API, without tools.
#[derive(Debug, Clone)]
pub struct ApiText(Autonomous);

impl ApiText {
    /// The API behind an engine of mode A.
    pub fn new(engine: Autonomous) -> Self {
        Self(engine)
    }
}

impl TextModel for ApiText {
    fn name(&self) -> &str {
        self.0.endpoint.provider.name
    }

    fn needs_network(&self) -> bool {
        true
    }

    fn write(&self, ask: TextAsk) -> BoxStream<'static, Result<TextEvent, ExecError>> {
        let request = match request(ask) {
            Ok(request) => request,
            Err(error) => return stream::iter([Err(error)]).boxed(),
        };
        // dropping the stream ends the call, so nobody needs to cancel it
        let events = self.0.run(request, Arc::new(NoTools), CancellationToken::new());
        events.filter_map(|event| future::ready(event.map(text_event).transpose())).boxed()
    }
}

fn text_event(event: TurnEvent) -> Option<TextEvent> {
    Some(match event {
        TurnEvent::Text(text) => TextEvent::Text(text),
        TurnEvent::Thinking(text) => TextEvent::Thinking(text),
        TurnEvent::Usage(usage) => TextEvent::Usage(usage),
        TurnEvent::Note(note) => TextEvent::Note(note),
        TurnEvent::Retrying { .. } => TextEvent::Working,
        TurnEvent::Completed(StopReason::Length) => TextEvent::End(StopReason::Length),
        TurnEvent::Completed(_) => TextEvent::End(StopReason::End),
        _ => return None,
    })
}

fn request(ask: TextAsk) -> Result<TurnRequest, ExecError> {
    let bad = |error: animaworks_core::BadId| ExecError::Other(Box::new(error));
    let messages = ask.messages.into_iter().map(|message| {
        if message.by_model {
            PromptMessage::Assistant { text: message.text, calls: Vec::new() }
        } else {
            PromptMessage::User { text: message.text, images: Vec::new() }
        }
    });
    Ok(TurnRequest {
        // who asks does not reach the API
        turn: TurnId::new("text").map_err(bad)?,
        anima: AnimaName::new("text").map_err(bad)?,
        trigger: TriggerKind::Chat,
        locale: Locale::default(),
        model: ask.model,
        prompt: Prompt { system: ask.system, messages: messages.collect() },
        resume: None,
        // one call and no second thoughts: the loop of mode B decides what is next
        limits: animaworks_core::Limits { max_turns: 1, ..ask.limits },
        work_dir: "/".into(),
    })
}

/// A host with nothing to offer.
#[derive(Debug)]
struct NoTools;

#[async_trait]
impl TurnHost for NoTools {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &[]
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        Err(HostFault::new(format!("{} was called where no tools are", call.name)))
    }

    async fn permit(&self, _ask: PermitRequest) -> Result<Permit, HostFault> {
        Err(HostFault::new("a permit was asked for where no tools are"))
    }

    async fn checkpoint(&self, _at: Checkpoint) -> Directive {
        Directive::Go
    }
}
