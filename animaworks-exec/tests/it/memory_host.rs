//! A turn's host with the memory tools over a memory in a map.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use animaworks_core::{
    AnimaName, Checkpoint, Directive, ExecutionMode, HostFault, Limits, Locale, MemoryPath, MemoryStore, MemoryWrite,
    ModelId, Origin, Permit, PermitRequest, Prompt, PromptMessage, Query, ResolvedModel, Tokens, ToolCall, ToolOutput,
    ToolSpec, Trust, TurnHost, TurnId, TurnRequest,
    memory::WriteMode,
    test_support::{FakeMemory, FakeTool},
    tool::{Effect, Tool},
    trigger::TriggerKind,
};
use async_trait::async_trait;
use serde_json::{Value, json};

/// Path, first line, lines, headings, origin.
type Chunk = (String, u32, Vec<String>, Vec<String>, Origin);

/// Answers the four memory tools; finds sections by the characters they share with the question.
#[derive(Debug)]
pub(crate) struct MemoryHost {
    pub(crate) memory: FakeMemory,
    pub(crate) calls: Mutex<Vec<ToolCall>>,
    tools: Vec<Arc<ToolSpec>>,
}

impl MemoryHost {
    pub(crate) fn new() -> Arc<Self> {
        let names = ["search_memory", "read_memory_file", "write_memory_file", "archive_memory_file"];
        let tools = names.map(|name| FakeTool::new(name, Effect::Reads).spec().clone()).to_vec();
        Arc::new(Self { memory: FakeMemory::default(), calls: Mutex::default(), tools })
    }

    pub(crate) async fn file(&self, path: &str, text: &str, origin: Origin) {
        let path = MemoryPath::new(path).unwrap();
        let write = MemoryWrite { path, text: text.to_owned(), mode: WriteMode::Overwrite, expect: None, origin };
        self.memory.write(write).await.unwrap();
    }

    async fn search(&self, query: &str) -> ToolOutput {
        let all = Query::new("").top(usize::MAX);
        let lines = self.memory.search(&all).await.unwrap().hits;
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut headings: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines {
            let path = line.path.to_string();
            let title = line.text.strip_prefix('#').map(|text| text.trim_start_matches('#').trim().to_owned());
            if let Some(title) = &title {
                headings.insert(path.clone(), vec![title.clone()]);
            }
            match chunks.last_mut() {
                Some((open, _, text, _, _)) if *open == path && title.is_none() => text.push(line.text),
                _ => {
                    let above = headings.get(&path).cloned().unwrap_or_default();
                    chunks.push((path, line.line, vec![line.text], above, line.origin));
                }
            }
        }
        let wanted = pairs(query);
        let mut hits: Vec<(usize, Value)> = Vec::new();
        for (path, line, text, headings, origin) in chunks {
            let text_joined = text.join("\n");
            let shared = pairs(&format!("{} {text_joined}", headings.join(" "))).intersection(&wanted).count();
            let kind = path.split('/').next().unwrap_or_default().to_owned();
            let trust = origin.trust().min(Trust::Trusted);
            hits.push((
                shared,
                json!({
                    "path": path, "line": line, "end_line": line + text.len() as u32 - 1, "text": text_joined,
                    "score": shared as f32, "kind": kind, "at": null, "origin": origin.source,
                    "trust": trust, "headings": headings,
                }),
            ));
        }
        hits.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        let hits: Vec<Value> = hits.into_iter().take(10).map(|(_, hit)| hit).collect();
        ToolOutput::text(format!("{} results", hits.len())).with_data(json!({ "hits": hits }))
    }
}

/// Pairs of neighbouring characters, and single kanji.
fn pairs(text: &str) -> BTreeSet<String> {
    let chars: Vec<char> = text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
    let kanji = chars.iter().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(*c)).map(char::to_string);
    chars.windows(2).map(|pair| pair.iter().collect::<String>()).chain(kanji).collect()
}

#[async_trait]
impl TurnHost for MemoryHost {
    fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.tools
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutput, HostFault> {
        self.calls.lock().unwrap().push(call.clone());
        let word = |key: &str| call.args.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(match call.name.as_str() {
            "search_memory" => self.search(&word("query")).await,
            "read_memory_file" => match self.memory.read(&MemoryPath::new(word("path")).unwrap()).await {
                Ok(file) => ToolOutput::text(file.text).from_origin(file.origin),
                Err(error) => ToolOutput::error("FileNotFound", &error.to_string(), None),
            },
            "write_memory_file" => {
                let mode = if word("mode") == "append" { WriteMode::Append } else { WriteMode::Overwrite };
                let path = MemoryPath::new(word("path")).unwrap();
                let write = MemoryWrite { path, text: word("content"), mode, expect: None, origin: Origin::human() };
                let written = self.memory.write(write).await.unwrap();
                ToolOutput::text(format!("{}: {} bytes", written.path, written.bytes))
            }
            other => ToolOutput::error("UnknownTool", other, None),
        })
    }

    async fn permit(&self, ask: PermitRequest) -> Result<Permit, HostFault> {
        Ok(Permit::Allow { args: ask.args })
    }

    async fn checkpoint(&self, _at: Checkpoint) -> Directive {
        Directive::Go
    }
}

/// A turn of `sakura` that answers one message.
pub(crate) fn request(message: &str, locale: Locale) -> TurnRequest {
    let messages = vec![PromptMessage::User { text: message.to_owned(), images: Vec::new() }];
    TurnRequest {
        turn: TurnId::new("t1").unwrap(),
        anima: AnimaName::new("sakura").unwrap(),
        trigger: TriggerKind::Chat,
        locale,
        model: ResolvedModel {
            id: ModelId::new("local/recall").unwrap(),
            mode: ExecutionMode::Basic,
            window: Tokens(8192),
            max_output: Tokens(1024),
            credential: String::new(),
            thinking: None,
        },
        prompt: Prompt { system: "You are sakura.".into(), messages },
        resume: None,
        limits: Limits::default(),
        work_dir: PathBuf::from("/nowhere"),
    }
}
