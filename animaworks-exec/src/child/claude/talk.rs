//! A turn with Claude Code: the prompt in, its questions answered, its end waited for.

use std::{sync::Arc, time::Duration};

use animaworks_core::{
    Checkpoint, Directive, ExecError, Permit, PermitRequest, PromptMessage, ResultExt, StopReason, ToolName, TurnEvent,
    TurnHost, TurnRequest, process::Spec, seams::SandboxPolicy,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        Heard, Out, Surroundings, Watch,
        ndjson::{Line, Program},
        said::{Order, Said, Speech, plain_name, word},
        words,
    },
    ENGINE, Hearing,
};

/// How long the program may take to stop when it is asked.
const INTERRUPT: Duration = Duration::from_secs(3);
/// How long it may be silent: it tells us of every piece the model says.
const PATIENCE: Duration = Duration::ZERO;

/// Runs the program once. The second value says whether anything happened that cannot be taken back.
#[allow(clippy::too_many_arguments, reason = "one call, all of it the turn's own")]
pub(super) async fn talk(
    spec: Spec,
    policy: &SandboxPolicy,
    around: &Surroundings,
    request: &TurnRequest,
    host: &Arc<dyn TurnHost>,
    out: &Out,
    cancel: &CancellationToken,
) -> (Result<StopReason, ExecError>, bool) {
    let program = match Program::start(ENGINE, spec, &*around.sandbox, policy) {
        Ok(program) => program,
        Err(error) => return (Err(error), false),
    };
    let mut talk = Talk {
        program,
        host,
        out,
        order: Order::new(request.locale),
        hearing: Hearing::new(u64::from(request.model.window.0), request.resume.is_some()),
        reminded: false,
        chain_after: None,
    };
    let end = talk.run(around, request, cancel).await;
    talk.program.stop().await;
    let moved = talk.order.moved;
    if end.is_ok() || moved {
        out.send_all(talk.order.close()).await;
    }
    (end, moved)
}

struct Talk<'a> {
    program: Program,
    host: &'a Arc<dyn TurnHost>,
    out: &'a Out,
    order: Order,
    hearing: Hearing,
    /// The checklist is shown once.
    reminded: bool,
    /// Another session takes over as soon as this call is answered.
    chain_after: Option<String>,
}

impl Talk<'_> {
    async fn run(
        &mut self,
        around: &Surroundings,
        request: &TurnRequest,
        cancel: &CancellationToken,
    ) -> Result<StopReason, ExecError> {
        self.program.say(&initialize())?;
        self.program.say(&user_message(request))?;
        let mut watch = Watch::new(ENGINE, request, PATIENCE, &around.clock, cancel);
        loop {
            let lines = match watch.wait(&mut self.program, self.order.busy()).await {
                Heard::Lines(lines) => lines,
                Heard::Over => return Err(self.program.post_mortem().await),
                Heard::Cancelled => {
                    self.interrupt().await;
                    return Err(ExecError::Cancelled);
                }
                Heard::Late(error) => return Err(error),
            };
            if let Some(end) = self.take(lines).await? {
                return end;
            }
        }
    }

    /// Takes lines; the end, when it is among them.
    async fn take(&mut self, lines: Vec<Line>) -> Result<Option<Result<StopReason, ExecError>>, ExecError> {
        for line in lines {
            let line = match line {
                Line::Noise(bytes) => {
                    self.program.noise(bytes)?;
                    continue;
                }
                Line::Json(line) => line,
            };
            if word(&line, "type") == "control_request" {
                if self.answer(&line).await? == Directive::EndForChain {
                    return Ok(Some(Ok(StopReason::Chain)));
                }
                continue;
            }
            let mut said = Vec::new();
            self.hearing.hear(&line, &mut said);
            for said in said {
                let event = match said {
                    Said::End(end) => {
                        self.program.farewell().await;
                        return Ok(Some(end));
                    }
                    Said::Event(event) => event,
                };
                let over = match &event {
                    TurnEvent::Context { used, window } => {
                        let at = Checkpoint::Context { used: *used, window: *window };
                        self.host.checkpoint(at).await == Directive::EndForChain
                    }
                    TurnEvent::ToolOutput(id, _) => self.chain_after.as_deref() == Some(id.as_str()),
                    _ => false,
                };
                self.out.send_all(self.order.pass(event)).await;
                if over {
                    return Ok(Some(Ok(StopReason::Chain)));
                }
            }
        }
        Ok(None)
    }

    /// Answers a question of the program.
    async fn answer(&mut self, line: &Value) -> Result<Directive, ExecError> {
        let asked = line.get("request").unwrap_or(&Value::Null);
        let id = word(line, "request_id");
        let input = asked.get("input").unwrap_or(&Value::Null);
        let (response, directive) = match (word(asked, "subtype"), word(asked, "callback_id")) {
            ("can_use_tool", _) => {
                let response = match self.permit(word(asked, "tool_name"), input).await? {
                    Permit::Allow { args } => json!({"behavior": "allow", "updatedInput": args}),
                    Permit::Deny { reason } => json!({"behavior": "deny", "message": reason}),
                };
                (response, Directive::Go)
            }
            ("hook_callback", "pre_tool") => {
                let args = input.get("tool_input").unwrap_or(&Value::Null);
                let mut decision = json!({"hookEventName": "PreToolUse"});
                match self.permit(word(input, "tool_name"), args).await? {
                    Permit::Allow { args: safer } => {
                        decision["permissionDecision"] = "allow".into();
                        if safer != *args {
                            decision["updatedInput"] = safer;
                        }
                    }
                    Permit::Deny { reason } => {
                        decision["permissionDecision"] = "deny".into();
                        decision["permissionDecisionReason"] = reason.as_ref().into();
                    }
                }
                (json!({"hookSpecificOutput": decision}), Directive::Go)
            }
            ("hook_callback", "post_tool") => (self.after_tool(word(input, "tool_use_id")).await, Directive::Go),
            ("hook_callback", "compact") => {
                let directive = self.host.checkpoint(Checkpoint::BeforeCompaction).await;
                (json!({}), directive)
            }
            ("hook_callback", "stop") => self.before_stop(input).await,
            (subtype, _) => {
                let error = format!("{subtype} is not offered here");
                let response = json!({"subtype": "error", "request_id": id, "error": error});
                self.program.say(&json!({"type": "control_response", "response": response}))?;
                return Ok(Directive::Go);
            }
        };
        if directive != Directive::EndForChain {
            let response = json!({"subtype": "success", "request_id": id, "response": response});
            self.program.say(&json!({"type": "control_response", "response": response}))?;
        }
        Ok(directive)
    }

    /// Whether a tool may be used. Ours are asked about where they run.
    async fn permit(&self, tool: &str, args: &Value) -> Result<Permit, ExecError> {
        if plain_name(tool) != tool {
            return Ok(Permit::Allow { args: args.clone() });
        }
        let tool = ToolName::new(tool)
            .map_err(|error| ExecError::Malformed { engine: ENGINE.to_owned(), detail: error.to_string() })?;
        Ok(self.host.permit(PermitRequest { tool, args: args.clone() }).await?)
    }

    async fn after_tool(&mut self, call: &str) -> Value {
        let Some(id) = animaworks_core::CallId::new(call).log_err("read the number of a call") else {
            return json!({});
        };
        match self.host.checkpoint(Checkpoint::AfterTool(id)).await {
            Directive::Go => json!({}),
            Directive::Remind(words) => {
                json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": words}})
            }
            Directive::EndForChain => {
                // the answer of the tool comes next and belongs to the notes
                self.chain_after = Some(call.to_owned());
                json!({})
            }
        }
    }

    async fn before_stop(&mut self, input: &Value) -> (Value, Directive) {
        let again = input.get("stop_hook_active").and_then(Value::as_bool).unwrap_or_default();
        if self.reminded || again {
            return (json!({}), Directive::Go);
        }
        let draft = match word(input, "last_assistant_message") {
            "" => self.hearing.text().to_owned(),
            draft => draft.to_owned(),
        };
        match self.host.checkpoint(Checkpoint::BeforeStop { draft: draft.as_str().into() }).await {
            Directive::Remind(words) => {
                self.reminded = true;
                self.hearing.sent_back(&draft);
                (json!({"decision": "block", "reason": words}), Directive::Go)
            }
            directive => (json!({}), directive),
        }
    }

    /// Asks the program to stop and takes what it still says.
    async fn interrupt(&mut self) {
        let ask = json!({"type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"}});
        if self.program.say(&ask).log_err("ask claude to stop").is_none() {
            return;
        }
        let last_words = async {
            while let Some(lines) = self.program.next().await {
                for line in lines {
                    let Line::Json(line) = line else { continue };
                    let mut said = Vec::new();
                    self.hearing.hear(&line, &mut said);
                    for said in said {
                        match said {
                            Said::Event(event) => self.out.send_all(self.order.pass(event)).await,
                            Said::End(_) => return,
                        }
                    }
                }
            }
        };
        tokio::time::timeout(INTERRUPT, last_words).await.ignore("it is ended by force");
    }
}

fn initialize() -> Value {
    let hook = |id: &str| json!([{"matcher": null, "hookCallbackIds": [id]}]);
    let hooks = json!({
        "PreToolUse": hook("pre_tool"),
        "PostToolUse": hook("post_tool"),
        "PreCompact": hook("compact"),
        "Stop": hook("stop"),
    });
    json!({
        "type": "control_request",
        "request_id": "initialize",
        "request": {"subtype": "initialize", "hooks": hooks},
    })
}

fn user_message(request: &TurnRequest) -> Value {
    let text = words(&request.prompt, request.locale);
    let images = request.prompt.messages.iter().filter_map(|message| match message {
        PromptMessage::User { images, .. } => Some(images),
        _ => None,
    });
    let mut blocks: Vec<Value> = images
        .flatten()
        .map(|image| {
            let source = json!({"type": "base64", "media_type": image.media_type, "data": image.data});
            json!({"type": "image", "source": source})
        })
        .collect();
    let content = if blocks.is_empty() {
        Value::from(text)
    } else {
        blocks.push(json!({"type": "text", "text": text}));
        Value::from(blocks)
    };
    let message = json!({"role": "user", "content": content});
    json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""})
}
