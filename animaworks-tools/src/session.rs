//! Tools for the turn itself: the last look before its end, and a list to keep one's place by.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use animaworks_core::{
    AnimaName, Locale, Tool, ToolContext, ToolError, ToolOutput, TurnId, Typed, TypedTool,
    gate::COMPLETION_GATE,
    home::text::{head, one_line},
    prompt::Texts,
    t,
    tool::Effect,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fault;

/// `completion_gate` and `todo_write`. `texts` are the prompts with the operator's changes, so that the checklist is
/// the one the life itself reminds of.
pub fn session_tools(texts: &Texts, locale: Locale) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Typed::localized(CompletionGate { texts: texts.clone() }, locale)),
        Arc::new(Typed::localized(TodoWrite::default(), locale)),
    ]
}

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

/// The checklist, once more before the end (exec spec §2.9).
#[derive(Debug)]
struct CompletionGate {
    texts: Texts,
}

impl TypedTool for CompletionGate {
    const NAME: &'static str = COMPLETION_GATE;
    const EFFECT: Effect = Effect::Reads;
    type Args = Nothing;

    async fn run(&self, _: Nothing, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self.texts.plain("completion_gate")))
    }
}

/// Entries of one list.
const MOST: usize = 20;
/// The longest entry, in characters.
const LONGEST: usize = 500;
/// Turns whose lists are kept; an ended turn needs none.
const TURNS: usize = 64;

/// How far an entry has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Stage {
    #[default]
    Pending,
    InProgress,
    Completed,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
struct Todo {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    content: String,
    #[serde(default)]
    status: Stage,
}

/// What `todo_write` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct TodoArgs {
    #[schemars(length(max = 20))]
    todos: Vec<Todo>,
    #[serde(default)]
    merge: bool,
}

/// A list for this turn only; what has to outlive it is a task.
#[derive(Debug, Default)]
struct TodoWrite {
    lists: Mutex<BTreeMap<(AnimaName, TurnId), Vec<Todo>>>,
}

impl TypedTool for TodoWrite {
    const NAME: &'static str = "todo_write";
    const EFFECT: Effect = Effect::Reads;
    type Args = TodoArgs;

    async fn run(&self, args: TodoArgs, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let key = (cx.anima.clone(), cx.turn.clone());
        let list = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            let before = if args.merge { lists.get(&key).cloned().unwrap_or_default() } else { Vec::new() };
            let list = merged(before, args.todos);
            if list.len() > MOST || list.iter().any(|todo| todo.content.is_empty()) {
                return Err(fault::invalid(Self::NAME, t!(cx.locale, "tools.todo_write.wrong", max = MOST)));
            }
            if lists.len() >= TURNS && !lists.contains_key(&key) {
                lists.pop_first();
            }
            lists.insert(key, list.clone());
            list
        };
        let open = list.iter().filter(|todo| todo.status != Stage::Completed).count();
        let mut text = t!(cx.locale, "tools.todo_write.done", open = open, count = list.len());
        for todo in &list {
            let mark = match todo.status {
                Stage::Pending => "[ ]",
                Stage::InProgress => "[>]",
                Stage::Completed => "[x]",
            };
            text.push_str(&format!("\n{mark} {}", todo.content));
        }
        Ok(ToolOutput::text(text).with_data(json!({ "todos": list })))
    }
}

/// New entries over old ones: those of one id, or without an id of one text, are the same.
fn merged(mut list: Vec<Todo>, new: Vec<Todo>) -> Vec<Todo> {
    for todo in new {
        let todo = Todo { content: one_line(head(&todo.content, LONGEST)), ..todo };
        let same = |old: &Todo| match (&old.id, &todo.id) {
            (Some(old), Some(new)) => old == new,
            _ => old.content == todo.content,
        };
        match list.iter_mut().find(|old| same(old)) {
            Some(old) => *old = todo,
            None => list.push(todo),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use animaworks_core::{
        CallId, ToolCall, ToolName, TriggerKind,
        gate::{Gate, OwnMemoryOnly},
        test_support::context,
    };
    use serde_json::Value;

    use super::*;

    fn gate(locale: Locale) -> Gate {
        Gate::new(session_tools(&Texts::shipped(locale), locale), Arc::new(OwnMemoryOnly))
    }

    async fn call(gate: &Gate, trigger: TriggerKind, name: &str, args: Value) -> ToolOutput {
        let call = ToolCall { id: CallId::new("c").unwrap(), name: ToolName::new(name).unwrap(), args };
        gate.call(call, &context(trigger)).await.unwrap()
    }

    #[tokio::test]
    async fn the_last_look_is_offered_where_there_is_an_end_to_look_at() {
        for (locale, word) in [(Locale::En, "request"), (Locale::Ja, "依頼")] {
            let gate = gate(locale);
            for trigger in [TriggerKind::Chat, TriggerKind::Cron, TriggerKind::Task] {
                let shown = call(&gate, trigger, "completion_gate", json!({})).await;
                assert!(!shown.is_error && shown.text.contains(word), "{}", shown.text);
            }
            for trigger in [TriggerKind::Heartbeat, TriggerKind::Inbox, TriggerKind::Consolidation] {
                assert!(gate.offered(trigger).iter().all(|spec| spec.name.as_str() != "completion_gate"));
                assert!(call(&gate, trigger, "completion_gate", json!({})).await.is_error);
            }
        }
    }

    #[tokio::test]
    async fn a_list_is_of_its_turn_and_grows_by_merging() {
        let gate = gate(Locale::En);
        let write = |args: Value| call(&gate, TriggerKind::Chat, "todo_write", args);
        let first = write(json!({"todos": [{"content": "read"}, {"content": "write", "status": "in_progress"}]})).await;
        assert_eq!(first.text.lines().skip(1).collect::<Vec<_>>(), ["[ ] read", "[>] write"]);
        let next =
            write(json!({"todos": [{"content": "read", "status": "completed"}, {"content": "send"}], "merge": true}));
        let next = next.await;
        assert_eq!(next.text.lines().skip(1).collect::<Vec<_>>(), ["[x] read", "[>] write", "[ ] send"]);
        let many: Vec<_> = (0..21).map(|n| json!({"content": n.to_string()})).collect();
        assert!(write(json!({ "todos": many })).await.is_error);
        assert_eq!(write(json!({"todos": [], "merge": true})).await.text.lines().count(), 4);
    }

    #[test]
    fn every_argument_is_described_in_both_languages() {
        for locale in Locale::ALL {
            for tool in session_tools(&Texts::shipped(locale), locale) {
                crate::tests::described(tool.spec());
            }
        }
    }
}
