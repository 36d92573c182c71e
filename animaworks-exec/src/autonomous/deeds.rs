//! Runs the calls of one message.

use std::{collections::BTreeMap, sync::Arc};

use animaworks_core::{
    ExecError, Locale, ToolCall, ToolName, ToolOutput, ToolSpec, TurnHost, event::TurnEvent, gate::near, ids::CallId,
    t, tool::Effect,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::arguments;
use crate::live::Out;
use crate::wire::WireCall;

/// How many calls run at a time.
const POOL: usize = 4;
/// How much of unreadable arguments is shown to the model, in characters.
const SHOWN_ARGUMENTS: usize = 500;
/// Where tools take a path.
const PATH_KEYS: [&str; 3] = ["path", "file_path", "filename"];

/// A call, ready to run or known to be wrong.
#[derive(Debug)]
pub(super) struct Deed {
    pub(super) call: ToolCall,
    pub(super) effect: Option<Effect>,
    wrong: Option<ToolOutput>,
}

impl Deed {
    /// Reads what the model wrote. `id` is unique in the turn.
    ///
    /// # Errors
    ///
    /// [`ExecError::Malformed`] when the id is not one.
    pub(super) fn read(
        wire: &WireCall,
        id: &str,
        tools: &[Arc<ToolSpec>],
        locale: Locale,
        engine: &str,
    ) -> Result<Self, ExecError> {
        let malformed = |detail: String| ExecError::Malformed { engine: engine.to_owned(), detail };
        let id = CallId::new(id).map_err(|error| malformed(error.to_string()))?;
        let spec = tools.iter().find(|tool| tool.name.as_str() == plain_name(&wire.name, tools));
        let name = match spec {
            Some(spec) => spec.name.clone(),
            None => lawful_name(&wire.name).map_err(|error| malformed(error.to_string()))?,
        };
        let effect = spec.map(|spec| spec.effect);
        let (args, wrong) = match arguments::read(&wire.arguments) {
            // the transcript keeps what was really written
            Err(problem) => (Value::String(wire.arguments.clone()), Some(unreadable(&name, &problem, wire, locale))),
            Ok(args) if name.as_str() == wire.name || spec.is_some() => (args, None),
            Ok(args) => {
                let near = near(&wire.name, tools.iter().map(|tool| tool.name.as_str()), 5).join(", ");
                let words = t!(locale, "core.gate.unknown_tool", tool = name, near = near);
                (args, Some(ToolOutput::error("UnknownTool", &words, None)))
            }
        };
        Ok(Self { call: ToolCall { id, name, args }, effect, wrong })
    }

    /// What it writes to or looks at, when it names one.
    fn path(&self) -> Option<String> {
        let path = PATH_KEYS.iter().find_map(|key| self.call.args.get(key)?.as_str())?;
        Some(path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/"))
    }
}

/// Runs the calls, at most [`POOL`] at a time; those that share a path with one that writes keep their order.
/// The outputs come in the order of the calls.
///
/// # Errors
///
/// [`ExecError::Host`] from the first that fails so.
pub(super) async fn run(host: &Arc<dyn TurnHost>, deeds: &[Deed], out: &Out) -> Result<Vec<ToolOutput>, ExecError> {
    let work: Vec<_> = rows(deeds)
        .into_iter()
        .map(|row| {
            let row: Vec<_> = row
                .into_iter()
                .filter_map(|at| deeds.get(at).map(|deed| (at, deed.call.clone(), deed.wrong.clone())))
                .collect();
            let (host, out) = (host.clone(), out.clone());
            async move {
                let mut done = Vec::with_capacity(row.len());
                for (at, call, wrong) in row {
                    let id = call.id.clone();
                    let output = match wrong {
                        Some(output) => output,
                        None => host.call(call).await?,
                    };
                    out.send(TurnEvent::ToolOutput(id, output.clone())).await;
                    done.push((at, output));
                }
                Ok::<_, ExecError>(done)
            }
        })
        .collect();
    let mut done: Vec<_> = stream::iter(work).buffer_unordered(POOL).try_concat().await?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, output)| output).collect())
}

/// Which calls wait for which: each row runs one after the other.
fn rows(deeds: &[Deed]) -> Vec<Vec<usize>> {
    let mut by_path: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, deed) in deeds.iter().enumerate() {
        if let Some(path) = deed.path() {
            by_path.entry(path).or_default().push(at);
        }
    }
    let writes = |at: &usize| deeds.get(*at).is_some_and(|deed| deed.effect != Some(Effect::Reads));
    by_path.retain(|_, row| row.len() > 1 && row.iter().any(writes));
    let mut rows: Vec<Vec<usize>> = by_path.into_values().collect();
    let single = (0..deeds.len()).filter(|at| !rows.iter().any(|row| row.contains(at))).map(|at| vec![at]);
    let single: Vec<_> = single.collect();
    rows.extend(single);
    rows.sort_by_key(|row| row.first().copied());
    rows
}

fn unreadable(name: &ToolName, problem: &str, wire: &WireCall, locale: Locale) -> ToolOutput {
    let raw: String = wire.arguments.chars().take(SHOWN_ARGUMENTS).collect();
    let words = t!(locale, "exec.bad_arguments", tool = name, problem = problem, raw = raw);
    ToolOutput::error("InvalidArguments", &words, Some(&t!(locale, "exec.bad_arguments_instead")))
}

/// The tool a model means when it adds a namespace it has seen elsewhere.
fn plain_name<'a>(name: &'a str, tools: &[Arc<ToolSpec>]) -> &'a str {
    let name = name.trim();
    let known = |name: &str| tools.iter().any(|tool| tool.name.as_str() == name);
    if known(name) {
        return name;
    }
    let prefixes = ["mcp__aw__", "mcp_aw_", "aw__", "aw/", "functions.", "default_api."];
    prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|bare| known(bare)).unwrap_or(name)
}

/// The name as an event can carry it.
fn lawful_name(name: &str) -> Result<ToolName, animaworks_core::BadId> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let name: String = name.chars().take(128).map(plain).collect();
    ToolName::new(if name.is_empty() { "unnamed" } else { &name })
}

#[cfg(test)]
mod tests {
    use animaworks_core::Tool;
    use animaworks_core::test_support::FakeTool;

    use super::*;

    fn deed(name: &str, arguments: &str) -> Deed {
        let tools = [("write", Effect::Remembers), ("read", Effect::Reads)];
        let tools: Vec<_> = tools.map(|(name, effect)| FakeTool::new(name, effect).spec().clone()).to_vec();
        let wire = WireCall { id: String::new(), name: name.into(), arguments: arguments.into(), opaque: None };
        Deed::read(&wire, "c1", &tools, Locale::En, "x").unwrap()
    }

    #[test]
    fn calls_on_the_same_path_wait_for_each_other_when_one_writes() {
        let deeds = [
            deed("write", r#"{"path":"a.md"}"#),
            deed("read", r#"{"path":"b.md"}"#),
            deed("read", r#"{"path":"./a.md"}"#),
            deed("read", r#"{"path":"b.md"}"#),
            deed("write", "{}"),
        ];
        assert_eq!(rows(&deeds), vec![vec![0, 2], vec![1], vec![3], vec![4]]);
    }

    #[test]
    fn names_and_arguments_are_read_kindly() {
        assert_eq!(deed("mcp__aw__read", "").call.name.as_str(), "read");
        let wrong = deed("reed:0", "{}").wrong.unwrap();
        assert!(wrong.is_error && wrong.text.contains("read"), "{}", wrong.text);
        let wrong = deed("read", r#"{"path":"#).wrong.unwrap();
        assert!(wrong.text.contains("InvalidArguments"), "{}", wrong.text);
    }
}
