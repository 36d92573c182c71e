//! Makes room in a conversation: old turns become a summary, with a model's help when there is one.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::StreamExt;

use super::{Life, Live, engine::Engine};
use crate::{
    error::ResultExt,
    event::{TurnEvent, lawful},
    executor::{
        Checkpoint, Directive, ExecError, HostFault, Limits, Permit, PermitRequest, Prompt, PromptMessage, TurnHost,
        TurnRequest,
    },
    fs,
    home::conversation::{Compression, Conversation, digest},
    mode::ExecutionMode,
    prompt::Texts,
    tool::{ToolCall, ToolOutput, ToolSpec},
};

/// How long a model may take for a summary; the person waits meanwhile.
const WITHIN: Duration = Duration::from_secs(30);
/// The longest summary that is kept, in characters.
const SUMMARY_CHARS: usize = 8000;

impl Life {
    /// Replaces the oldest turns by a summary. Without a model, or when it fails, a digest does.
    pub(super) async fn compress(&self, live: &Live, conversation: &Conversation, engine: &Engine, texts: &Texts) {
        let Some(taken) = conversation.compression() else { return };
        let summary = match self.summarise(live, &taken, engine, texts).await {
            Ok(Some(summary)) => summary,
            Ok(None) => digest(&taken),
            Err(error) => {
                tracing::info!(%error, "no model for a summary; a digest is kept");
                digest(&taken)
            }
        };
        let (home, thread) = (self.parts.home.clone(), live.trigger.thread());
        fs::blocking(move || home.compress(&thread, &taken, &summary)).await.log_err("compress a conversation");
    }

    /// Asks the turn's own model; only where a call is a plain request.
    async fn summarise(
        &self,
        live: &Live,
        taken: &Compression,
        engine: &Engine,
        texts: &Texts,
    ) -> Result<Option<String>, ExecError> {
        if engine.model.mode != ExecutionMode::Autonomous {
            return Ok(None);
        }
        let text = texts.text("conversation_summary", &[("conversation", digest(taken))]);
        let request = TurnRequest {
            turn: live.id.clone(),
            anima: self.parts.home.name().clone(),
            trigger: live.trigger.kind(),
            locale: self.locale(),
            model: engine.model.clone(),
            prompt: Prompt { system: Arc::from(""), messages: vec![PromptMessage::User { text, images: Vec::new() }] },
            resume: None,
            limits: Limits { max_turns: 1, total: WITHIN, ..Limits::default() },
            work_dir: self.parts.home.dir().root().to_owned(),
        };
        let cancel = live.cancel.child_token();
        let _ended = cancel.clone().drop_guard();
        let mut events = lawful("summary", engine.executor.run(request, Arc::new(NoTools), cancel));
        let clock = self.clock().clone();
        let mut over = clock.sleep(WITHIN);
        let mut summary = String::new();
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = &mut over => {
                    let (engine, waiting_for) = ("summary".to_owned(), "the whole turn");
                    return Err(ExecError::Timeout { engine, waiting_for, after: WITHIN });
                }
            };
            match event {
                Some(Ok(TurnEvent::Text(piece))) => summary.push_str(&piece),
                Some(Ok(TurnEvent::Completed(_))) | None => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
            }
        }
        let summary: String = summary.trim().chars().take(SUMMARY_CHARS).collect();
        Ok(Some(summary).filter(|summary| !summary.is_empty()))
    }
}

/// A host for a request that may only talk.
#[derive(Debug)]
struct NoTools;

#[async_trait]
impl TurnHost for NoTools {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &[]
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        Ok(ToolOutput::error("UnknownTool", call.name.as_str(), None))
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        Ok(Permit::Deny { reason: ask.tool.as_str().into() })
    }

    async fn checkpoint(&self, _: Checkpoint) -> Directive {
        Directive::Go
    }
}
