//! Whether what was remembered held: counters that decide what is trusted and what is revised (memory spec §7, §8).

use std::sync::Arc;

use animaworks_core::{
    Locale, MemoryError, MemoryPath, MemoryStore, MemoryWrite, Tool, ToolContext, ToolError, ToolOutput, Typed,
    TypedTool,
    frontmatter::Document,
    fs,
    home::{
        AnimaHome,
        activity::Activity,
        text::{clip, head},
    },
    memory::WriteMode,
    t,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{fault, memory::for_model};

/// How often a report is tried when somebody else writes the same file meanwhile.
const TRIES: usize = 3;
/// The longest note, in characters.
const MAX_NOTES: usize = 2000;

/// The two tools that report how a procedure or a piece of knowledge did.
pub fn outcome_tools(home: &AnimaHome, memory: &Arc<dyn MemoryStore>, locale: Locale) -> Vec<Arc<dyn Tool>> {
    let ledger = Ledger { home: home.clone(), memory: memory.clone() };
    vec![
        Arc::new(Typed::localized(ReportProcedureOutcome { ledger: ledger.clone() }, locale)),
        Arc::new(Typed::localized(ReportKnowledgeOutcome { ledger }, locale)),
    ]
}

/// What both take.
#[derive(Debug, Deserialize, JsonSchema)]
struct OutcomeArgs {
    path: String,
    success: bool,
    #[serde(default)]
    notes: Option<String>,
}

#[derive(Debug)]
struct ReportProcedureOutcome {
    ledger: Ledger,
}

impl TypedTool for ReportProcedureOutcome {
    const NAME: &'static str = "report_procedure_outcome";
    const EFFECT: Effect = Effect::Remembers;
    type Args = OutcomeArgs;

    async fn run(&self, args: OutcomeArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.ledger.report(Self::NAME, "procedures", "procedure_outcome", args, cx).await
    }
}

#[derive(Debug)]
struct ReportKnowledgeOutcome {
    ledger: Ledger,
}

impl TypedTool for ReportKnowledgeOutcome {
    const NAME: &'static str = "report_knowledge_outcome";
    const EFFECT: Effect = Effect::Remembers;
    type Args = OutcomeArgs;

    async fn run(&self, args: OutcomeArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.ledger.report(Self::NAME, "knowledge", "knowledge_outcome", args, cx).await
    }
}

/// The counters in the heads of files.
#[derive(Debug, Clone)]
struct Ledger {
    home: AnimaHome,
    memory: Arc<dyn MemoryStore>,
}

impl Ledger {
    async fn report(
        &self,
        tool: &'static str,
        root: &'static str,
        event: &'static str,
        args: OutcomeArgs,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let path = MemoryPath::new(args.path.trim().trim_start_matches("./"))
            .map_err(|error| fault::invalid(tool, format!("path: {error}")))?;
        if path.root() != root || path.file_name().strip_suffix(".md").is_none() {
            return Err(fault::invalid(tool, t!(cx.locale, "tools.outcome.path", root = root)));
        }
        let counted = self.count(&path, args.success, cx).await?;
        let notes = head(args.notes.as_deref().unwrap_or_default().trim(), MAX_NOTES).to_owned();
        let line = Activity::new(event)
            .summary(format!("{path}: {}", if args.success { "success" } else { "failure" }))
            .content(notes)
            .meta("path", path.as_str())
            .meta("success", args.success)
            .meta("confidence", counted.confidence)
            .origin(cx.floor.clone());
        let home = self.home.clone();
        fs::blocking(move || home.log(line).map(|_| ())).await.map_err(fault::file)?;
        let mut text = t!(
            cx.locale,
            "tools.outcome.done",
            path = path,
            success = counted.success,
            failure = counted.failure,
            confidence = format!("{:.2}", counted.confidence)
        );
        if counted.needs_revision() {
            text.push('\n');
            text.push_str(&t!(cx.locale, "tools.outcome.revise", path = clip(path.as_str(), 200)));
        }
        let data = json!({
            "path": path, "success_count": counted.success, "failure_count": counted.failure,
            "confidence": counted.confidence
        });
        Ok(ToolOutput::text(text).with_data(data))
    }

    /// Counts one outcome in the head of a file; what else it says stays as it is.
    async fn count(&self, path: &MemoryPath, success: bool, cx: &ToolContext) -> Result<Counted, ToolError> {
        for left in (0..TRIES).rev() {
            let file = self.memory.read(path).await.map_err(|error| for_model(error, cx.locale))?;
            let mut page = Document::parse(&file.text);
            let counted = Counted::from(&page).with(success);
            page.set("success_count", counted.success);
            page.set("failure_count", counted.failure);
            page.set("confidence", counted.confidence);
            page.set("last_used", self.home.stamp_seconds());
            // counting adds no words, so the file keeps the origin it has
            let write = MemoryWrite {
                path: path.clone(),
                text: page.to_string(),
                mode: WriteMode::Overwrite,
                expect: Some(file.etag),
                origin: file.origin,
            };
            match self.memory.write(write).await {
                Ok(_) => return Ok(counted),
                Err(MemoryError::Changed { .. }) if left > 0 => {}
                Err(error) => return Err(for_model(error, cx.locale)),
            }
        }
        Err(ToolError::failed("StateError", t!(cx.locale, "tools.outcome.busy")))
    }
}

/// What a head counts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counted {
    success: u64,
    failure: u64,
    confidence: f64,
}

impl Counted {
    fn from(page: &Document) -> Self {
        // other versions wrote numbers as text, too
        let count = |key: &str| match page.field(key) {
            Some(Value::String(text)) => text.trim().parse().unwrap_or_default(),
            Some(value) => value.as_u64().unwrap_or_default(),
            None => 0,
        };
        Self { success: count("success_count"), failure: count("failure_count"), confidence: 0.0 }
    }

    #[allow(clippy::cast_precision_loss, reason = "counts of uses are far below 2^52")]
    fn with(self, success: bool) -> Self {
        let (good, bad) =
            (self.success.saturating_add(u64::from(success)), self.failure.saturating_add(u64::from(!success)));
        let ratio = good as f64 / good.saturating_add(bad).max(1) as f64;
        Self { success: good, failure: bad, confidence: (ratio * 1000.0).round() / 1000.0 }
    }

    /// What fails this often is revised at night.
    fn needs_revision(self) -> bool {
        self.failure >= 2 && self.confidence < 0.6
    }
}

#[cfg(test)]
mod tests {
    use animaworks_core::{
        Origin,
        gate::{Gate, OwnMemoryOnly},
        test_support::FakeMemory,
    };

    use super::*;
    use crate::messages::tests::{Office, call, error_type};

    #[tokio::test]
    async fn outcomes_are_counted_and_the_rest_of_the_file_stays() {
        let office = Office::open();
        let memory: Arc<dyn MemoryStore> = Arc::new(FakeMemory::default());
        let gate = Gate::new(outcome_tools(&office.services.home, &memory, Locale::En), Arc::new(OwnMemoryOnly));
        let path = MemoryPath::new("procedures/close.md").unwrap();
        let text = "---\ndescription: 締め # keep\nmine: [1, 2]\nsuccess_count: '1'\n---\n\n1. 集める\n".to_owned();
        let origin = Origin::of(Origin::CONSOLIDATION_EXTERNAL);
        let write =
            MemoryWrite { path: path.clone(), text, mode: WriteMode::Overwrite, expect: None, origin: origin.clone() };
        memory.write(write).await.unwrap();
        let cx = office.cx("t1");
        let report = |success: bool| {
            call(&gate, &cx, "report_procedure_outcome", json!({"path": "procedures/close.md", "success": success}))
        };
        let first = report(false).await;
        assert_eq!(first.data.unwrap()["confidence"], 0.5);
        let second = report(false).await;
        assert!(second.text.contains("revised"), "{}", second.text);
        let file = memory.read(&path).await.unwrap();
        let page = Document::parse(&file.text);
        assert_eq!((page.text("success_count"), page.text("failure_count")), ("1".into(), "2".into()));
        assert_eq!((page.field("confidence"), file.origin), (Some(&json!(0.333)), origin));
        assert!(
            file.text.contains("# keep\nmine: [1, 2]\n") && file.text.ends_with("---\n\n1. 集める\n"),
            "{}",
            file.text
        );
        assert!(page.text("last_used").starts_with("2026-03-31T09:20:00"));
        assert_eq!(office.services.home.recent(1, 5).unwrap().len(), 2);

        let other = json!({"path": "knowledge/../procedures/close.md", "success": true});
        assert_eq!(error_type(&call(&gate, &cx, "report_procedure_outcome", other).await), "InvalidArguments");
        let other = json!({"path": "procedures/close.md", "success": true});
        assert_eq!(error_type(&call(&gate, &cx, "report_knowledge_outcome", other).await), "InvalidArguments");
        let missing = json!({"path": "knowledge/none.md", "success": true});
        assert_eq!(error_type(&call(&gate, &cx, "report_knowledge_outcome", missing).await), "FileNotFound");
    }

    #[tokio::test]
    async fn a_page_without_a_head_gets_one() {
        let office = Office::open();
        let memory: Arc<dyn MemoryStore> = Arc::new(FakeMemory::default());
        let gate = Gate::new(outcome_tools(&office.services.home, &memory, Locale::Ja), Arc::new(OwnMemoryOnly));
        let path = MemoryPath::new("knowledge/a.md").unwrap();
        let write = MemoryWrite {
            path: path.clone(),
            text: "# 事実\n".into(),
            mode: WriteMode::Overwrite,
            expect: None,
            origin: Origin::anima(),
        };
        memory.write(write).await.unwrap();
        let args = json!({"path": "knowledge/a.md", "success": true, "notes": "役に立った"});
        assert!(!call(&gate, &office.cx("t1"), "report_knowledge_outcome", args).await.is_error);
        let text = memory.read(&path).await.unwrap().text;
        assert!(text.starts_with("---\nsuccess_count: 1\n") && text.ends_with("# 事実\n"), "{text}");
    }

    #[test]
    fn every_argument_is_described_in_both_languages() {
        let office = Office::open();
        let memory: Arc<dyn MemoryStore> = Arc::new(FakeMemory::default());
        for locale in Locale::ALL {
            for tool in outcome_tools(&office.services.home, &memory, locale) {
                crate::tests::described(tool.spec());
            }
        }
    }
}
