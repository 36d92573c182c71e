//! `local_llm`: a model of the owner's own behind Ollama, for drafts and bulk work that need no bill.

use std::time::Duration;

use animaworks_core::{ToolContext, ToolError, ToolOutput, Trust, TypedTool, tool::Effect};
use http::Request;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Outside, Service,
    line::{address, finish, get, with_body},
    untrusted,
};

const OLLAMA: Service = Service { name: "ollama", variable: "OLLAMA_API_KEY" };
const HERE: &str = "http://localhost:11434";
/// A small machine writes slowly.
const PATIENCE: Duration = Duration::from_secs(300);

/// What `local_llm_generate` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GenerateArgs {
    prompt: String,
    model: String,
    #[serde(default)]
    system: Option<String>,
    #[serde(default)]
    max_tokens: Option<u32>,
}

/// What `local_llm_models` takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoArgs {}

#[derive(Debug)]
pub(super) struct Generate(pub(super) Outside);

#[derive(Debug)]
pub(super) struct Models(pub(super) Outside);

#[derive(Deserialize)]
struct Generated {
    response: String,
    #[serde(default)]
    eval_count: u64,
}

#[derive(Deserialize)]
struct Tags {
    models: Vec<Value>,
}

impl TypedTool for Generate {
    const NAME: &'static str = "local_llm_generate";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = GenerateArgs;

    async fn run(&self, args: GenerateArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut body = json!({
            "model": args.model, "prompt": args.prompt, "stream": false,
            "options": { "num_predict": args.max_tokens.unwrap_or(4096) },
        });
        if let (Some(system), Some(object)) = (args.system, body.as_object_mut()) {
            object.insert("system".to_owned(), Value::from(system));
        }
        let base = base(&self.0, cx).await?;
        let request = Request::post(address(&base, "api/generate")?.as_str());
        let answer: Generated = self.0.line(OLLAMA).within(PATIENCE).json(with_body(request, Some(&body))?, cx).await?;
        Ok(untrusted(answer.response).with_data(json!({ "model": args.model, "tokens": answer.eval_count })))
    }
}

impl TypedTool for Models {
    const NAME: &'static str = "local_llm_models";
    const EFFECT: Effect = Effect::External;
    const RETURNS: Trust = Trust::Untrusted;
    type Args = NoArgs;

    async fn run(&self, _: NoArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let url = address(&base(&self.0, cx).await?, "api/tags")?;
        let answer: Tags = self.0.line(OLLAMA).json(finish(get(&url)?)?, cx).await?;
        let names: Vec<&str> = answer.models.iter().filter_map(|model| model["name"].as_str()).collect();
        Ok(untrusted(names.join("\n")).with_data(json!({ "models": answer.models })))
    }
}

async fn base(outside: &Outside, cx: &ToolContext) -> Result<String, ToolError> {
    let (known, _) = outside.configured(OLLAMA, &cx.anima).await?;
    let base = known.base_url.unwrap_or_else(|| HERE.to_owned());
    // engines speak its compatible dialect, which lives one level deeper
    Ok(base.trim_end_matches('/').trim_end_matches("/v1").to_owned())
}
