//! The memory tools, which every Anima has in every mode (exec spec §4.5).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use animaworks_core::{
    AnimaName, Fault, Locale, MemoryError, MemoryPath, MemoryStore, MemoryWrite, Origin, Query, SearchScope, ThreadId,
    Tool, ToolContext, ToolError, ToolOutput, Trust, Typed, TypedTool,
    memory::{Etag, WriteMode},
    t,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Hits on one page.
const PAGE: usize = 10;
/// How far pages go.
const MAX_OFFSET: usize = 50;

/// The four memory tools over one Anima's memory.
pub fn memory_tools(memory: &Arc<dyn MemoryStore>, locale: Locale) -> Vec<Arc<dyn Tool>> {
    let seen = Arc::new(Seen::default());
    vec![
        Arc::new(Typed::localized(SearchMemory { memory: memory.clone() }, locale)),
        Arc::new(Typed::localized(ReadMemoryFile { memory: memory.clone(), seen: seen.clone() }, locale)),
        Arc::new(Typed::localized(WriteMemoryFile { memory: memory.clone(), seen: seen.clone() }, locale)),
        Arc::new(Typed::localized(ArchiveMemoryFile { memory: memory.clone(), seen }, locale)),
    ]
}

/// What `search_memory` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchArgs {
    query: String,
    #[serde(default)]
    scope: SearchScope,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    from: Option<chrono::NaiveDate>,
    #[serde(default)]
    to: Option<chrono::NaiveDate>,
}

#[derive(Debug)]
struct SearchMemory {
    memory: Arc<dyn MemoryStore>,
}

impl TypedTool for SearchMemory {
    const NAME: &'static str = "search_memory";
    const EFFECT: Effect = Effect::Reads;
    type Args = SearchArgs;

    async fn run(&self, args: SearchArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let offset = args.offset.min(MAX_OFFSET);
        let limit = args.limit.unwrap_or(PAGE).clamp(1, PAGE * 5);
        let query = Query { limit, offset, from: args.from, to: args.to, ..Query::new(args.query) }.within(args.scope);
        let recall = self.memory.search(&query).await.map_err(|error| for_model(error, cx.locale))?;

        let mut text = t!(cx.locale, "tools.search_memory.found", count = recall.hits.len(), offset = offset);
        for (at, hit) in recall.hits.iter().enumerate() {
            text.push_str(&format!(
                "\n\n--- [{}] score={:.2} source={}#L{} ---\n{}",
                offset + at + 1,
                hit.score.0,
                hit.path,
                hit.line,
                hit.text
            ));
        }
        for part in &recall.degraded {
            text.push_str("\n\n");
            text.push_str(&t!(cx.locale, "tools.search_memory.degraded", part = part.part));
        }
        // the whole answer wears the lowest label of its lines (RULINGS 8)
        let lowest = recall.hits.iter().min_by_key(|hit| hit.trust);
        let origin =
            lowest.filter(|hit| hit.trust < Trust::Trusted).map_or_else(Origin::system, |hit| hit.origin.clone());
        let trust = lowest.map_or(Trust::Trusted, |hit| hit.trust);
        let output = ToolOutput::text(text).with_data(json!({ "hits": recall.hits, "degraded": recall.degraded }));
        Ok(ToolOutput { trust, origin, ..output })
    }
}

/// What `read_memory_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReadArgs {
    path: String,
    #[serde(default)]
    from_line: Option<usize>,
    #[serde(default)]
    to_line: Option<usize>,
}

#[derive(Debug)]
struct ReadMemoryFile {
    memory: Arc<dyn MemoryStore>,
    seen: Arc<Seen>,
}

impl TypedTool for ReadMemoryFile {
    const NAME: &'static str = "read_memory_file";
    const EFFECT: Effect = Effect::Reads;
    type Args = ReadArgs;

    async fn run(&self, args: ReadArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = memory_path(Self::NAME, &args.path)?;
        let file = self.memory.read(&path).await.map_err(|error| for_model(error, cx.locale))?;
        self.seen.note(cx, path, file.etag.clone());
        let total = file.text.lines().count();
        let text = match (args.from_line, args.to_line) {
            (None, None) => file.text.clone(),
            (from, to) => {
                let from = from.unwrap_or(1).max(1);
                let lines: Vec<&str> =
                    file.text.lines().skip(from - 1).take(to.unwrap_or(total).saturating_sub(from - 1)).collect();
                lines.join("\n")
            }
        };
        let output = ToolOutput::text(text).with_data(json!({ "path": args.path, "lines": total, "etag": file.etag }));
        let trust = file.origin.trust();
        // our own files that nobody marked are ours
        Ok(if file.origin == Origin::default() || trust == Trust::Trusted {
            output
        } else {
            output.from_origin(file.origin)
        })
    }
}

/// What `write_memory_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct WriteArgs {
    path: String,
    content: String,
    #[serde(default)]
    mode: WriteMode,
}

#[derive(Debug)]
struct WriteMemoryFile {
    memory: Arc<dyn MemoryStore>,
    seen: Arc<Seen>,
}

impl TypedTool for WriteMemoryFile {
    const NAME: &'static str = "write_memory_file";
    const EFFECT: Effect = Effect::Remembers;
    type Args = WriteArgs;

    async fn run(&self, args: WriteArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = memory_path(Self::NAME, &args.path)?;
        // replacing what one has not read loses what somebody else wrote
        let free = args.mode == WriteMode::Append || matches!(path.root(), "episodes" | "state" | "shortterm");
        let expect = if free { None } else { Some(self.seen.last(cx, &path).unwrap_or_else(Etag::absent)) };
        let write =
            MemoryWrite { path: path.clone(), text: args.content, mode: args.mode, expect, origin: cx.floor.clone() };
        let written = match self.memory.write(write).await {
            Ok(written) => written,
            Err(MemoryError::Changed { path, current }) => {
                return Err(ToolError::Failed {
                    error_type: "ReadBeforeWrite",
                    message: t!(cx.locale, "tools.write_memory_file.read_first", path = path),
                    suggestion: Some(t!(cx.locale, "tools.write_memory_file.current", text = current)),
                });
            }
            Err(error) => return Err(for_model(error, cx.locale)),
        };
        self.seen.note(cx, path, written.etag.clone());
        let mut text = t!(cx.locale, "tools.write_memory_file.done", path = written.path, bytes = written.bytes);
        for note in &written.notes {
            text.push('\n');
            text.push_str(note);
        }
        Ok(ToolOutput::text(text).with_data(json!(written)))
    }
}

/// What `archive_memory_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct ArchiveArgs {
    path: String,
    reason: String,
}

#[derive(Debug)]
struct ArchiveMemoryFile {
    memory: Arc<dyn MemoryStore>,
    seen: Arc<Seen>,
}

impl TypedTool for ArchiveMemoryFile {
    const NAME: &'static str = "archive_memory_file";
    const EFFECT: Effect = Effect::Remembers;
    type Args = ArchiveArgs;

    async fn run(&self, args: ArchiveArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = memory_path(Self::NAME, &args.path)?;
        self.memory.archive(&path, &args.reason).await.map_err(|error| for_model(error, cx.locale))?;
        self.seen.forget(cx, &path);
        Ok(ToolOutput::text(t!(cx.locale, "tools.archive_memory_file.done", path = path)))
    }
}

/// Which state of which file each conversation has seen last.
#[derive(Debug, Default)]
struct Seen(Mutex<BTreeMap<(AnimaName, ThreadId), BTreeMap<MemoryPath, Etag>>>);

/// Conversations that are remembered; the oldest name goes first, and its files must then be read again.
const MAX_CONVERSATIONS: usize = 64;

impl Seen {
    fn note(&self, cx: &ToolContext, path: MemoryPath, etag: Etag) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MAX_CONVERSATIONS && !seen.contains_key(&key(cx)) {
            seen.pop_first();
        }
        seen.entry(key(cx)).or_default().insert(path, etag);
    }

    fn last(&self, cx: &ToolContext, path: &MemoryPath) -> Option<Etag> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key(cx))?.get(path).cloned()
    }

    fn forget(&self, cx: &ToolContext, path: &MemoryPath) {
        if let Some(files) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&key(cx)) {
            files.remove(path);
        }
    }
}

fn key(cx: &ToolContext) -> (AnimaName, ThreadId) {
    (cx.anima.clone(), cx.thread.clone())
}

fn memory_path(tool: &str, path: &str) -> Result<MemoryPath, ToolError> {
    // models like to write `./notes.md` and `/notes.md` for what is plainly inside
    let inside = path.trim().trim_start_matches("./");
    MemoryPath::new(inside).map_err(|error| match animaworks_core::ToolName::new(tool) {
        Ok(tool) => ToolError::InvalidArguments { tool, problem: format!("path: {error}") },
        Err(name) => ToolError::Host(Box::new(name)),
    })
}

/// A failure of memory in words the model can act on.
pub(crate) fn for_model(error: MemoryError, locale: Locale) -> ToolError {
    let error_type = match &error {
        MemoryError::NotFound { .. } => "FileNotFound",
        MemoryError::Denied { .. } => "PermissionDenied",
        MemoryError::Changed { .. } => "StateError",
        MemoryError::Invalid { .. } => "ValidationError",
        _ => return ToolError::Host(Box::new(error)),
    };
    let said = (&error as &dyn Fault).explain(locale);
    ToolError::Failed { error_type, message: said.message, suggestion: said.hint }
}

#[cfg(test)]
mod tests {
    use animaworks_core::{
        CallId, TriggerKind,
        gate::{Gate, OwnMemoryOnly},
        test_support::{FakeMemory, context},
    };
    use serde_json::Value;

    use super::*;

    fn gate() -> Gate {
        let memory: Arc<dyn MemoryStore> = Arc::new(FakeMemory::default());
        Gate::new(memory_tools(&memory, Locale::En), Arc::new(OwnMemoryOnly))
    }

    async fn call(gate: &Gate, name: &str, args: Value) -> ToolOutput {
        let name = animaworks_core::ToolName::new(name).unwrap();
        let call = animaworks_core::ToolCall { id: CallId::new("c").unwrap(), name, args };
        gate.call(call, &context(TriggerKind::Chat)).await.unwrap()
    }

    #[tokio::test]
    async fn what_was_written_is_found_with_its_line() {
        let gate = gate();
        let args = json!({"path": "knowledge/key.md", "content": "品川駅の南口に鍵を預けた\n"});
        assert!(!call(&gate, "write_memory_file", args).await.is_error);
        let found = call(&gate, "search_memory", json!({"query": "鍵"})).await;
        assert!(found.text.contains("knowledge/key.md#L1"), "{}", found.text);
        assert_eq!(found.data.unwrap()["hits"][0]["line"], 1);
    }

    #[tokio::test]
    async fn a_file_is_not_replaced_unread() {
        let gate = gate();
        let write = |text: &str| json!({"path": "knowledge/a.md", "content": text});
        assert!(!call(&gate, "write_memory_file", write("one")).await.is_error);
        // our own write counts as seen
        assert!(!call(&gate, "write_memory_file", write("two")).await.is_error);
        let archived = call(&gate, "archive_memory_file", json!({"path": "knowledge/a.md", "reason": "old"})).await;
        assert!(!archived.is_error);
        let read = call(&gate, "read_memory_file", json!({"path": "knowledge/a.md"})).await;
        assert!(read.is_error && read.text.contains("FileNotFound"), "{}", read.text);
    }

    #[tokio::test]
    async fn an_odd_path_is_explained() {
        let gate = gate();
        let read = call(&gate, "read_memory_file", json!({"path": "../other/identity.md"})).await;
        assert!(read.is_error && read.text.contains("InvalidArguments"), "{}", read.text);
    }

    #[test]
    fn every_argument_is_described_in_both_languages() {
        let memory: Arc<dyn MemoryStore> = Arc::new(FakeMemory::default());
        for locale in Locale::ALL {
            for tool in memory_tools(&memory, locale) {
                let spec = tool.spec();
                assert!(!spec.description.starts_with("tools.describe"), "{}", spec.name);
                for (argument, schema) in spec.schema["properties"].as_object().unwrap() {
                    assert!(schema["description"].is_string(), "{} {argument}", spec.name);
                }
            }
        }
    }
}
