//! Gives an Anima a tool of your own: one typed struct, one line where the organisation is opened.
//!
//! `cargo run --example own_tool`

use std::sync::Arc;

use animaworks_core::{
    CallId, Locale, Tool, ToolCall, ToolContext, ToolError, ToolName, ToolOutput, TriggerKind, Typed, TypedTool,
    gate::{Gate, OwnMemoryOnly},
    test_support::context,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// What the tool takes; doc comments are what a model reads.
#[derive(Debug, Deserialize, JsonSchema)]
struct Weight {
    /// Pages of the book.
    pages: u32,
    /// Grams per square metre of its paper.
    #[serde(default = "usual_paper")]
    paper: f64,
}

fn usual_paper() -> f64 {
    80.0
}

/// Estimates how heavy a book is.
#[derive(Debug)]
struct WeighBook;

impl TypedTool for WeighBook {
    const NAME: &'static str = "weigh_book";
    const EFFECT: Effect = Effect::Reads;
    type Args = Weight;

    async fn run(&self, book: Weight, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if book.pages == 0 {
            return Err(ToolError::failed("ValidationError", "a book has pages"));
        }
        // half a sheet of A5 per page
        let grams = f64::from(book.pages) / 2.0 * 0.148 * 0.21 * book.paper;
        Ok(ToolOutput::text(format!("{grams:.0} g")))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let tool: Arc<dyn Tool> = Arc::new(Typed::new(WeighBook, "Estimates the weight of an A5 book."));
    println!("{}", serde_json::to_string_pretty(tool.spec())?);

    // an organisation takes it with `InProcess::open(…)?.with_tool(tool)`; here the gate is asked directly
    let gate = Gate::new([tool], Arc::new(OwnMemoryOnly));
    for args in [json!({"pages": 240}), json!({"pages": "many"}), json!({"pages": 0})] {
        let call = ToolCall { id: CallId::new("1")?, name: ToolName::new("weigh_book")?, args };
        let output = gate.call(call, &ToolContext { locale: Locale::En, ..context(TriggerKind::Chat) }).await?;
        println!("{}", output.text);
    }
    Ok(())
}
