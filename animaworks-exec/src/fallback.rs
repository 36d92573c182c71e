//! Other models for when the first one's provider refuses (exec spec appendix C8).
//!
//! A [`Fallback`] goes down a list of models as long as nothing was said or done.
//! The [`RateGuard`] remembers on disk, for all processes, which providers to leave alone for a while.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use animaworks_core::{
    Capabilities, Clock, ErrorKind, ExecError, ExecutionMode, Executor, Fault, ResolvedModel, ResultExt, Retry,
    TurnEvent, TurnHost, TurnRequest,
    config::RateGuardSettings,
    fs::{self, FileError, Lock, Privacy},
    t,
};
use async_stream::stream;
use futures_util::{StreamExt, stream::BoxStream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::provider::find;

/// A model with its engine.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The model.
    pub model: ResolvedModel,
    /// The engine that runs it.
    pub engine: Arc<dyn Executor>,
}

/// Runs a turn on the first model whose provider does not refuse.
#[derive(Debug, Clone)]
pub struct Fallback {
    first: Candidate,
    others: Vec<Candidate>,
    guard: RateGuard,
}

impl Fallback {
    /// `first`, and where to go when its provider refuses, in order.
    pub fn new(first: Candidate, others: Vec<Candidate>, guard: RateGuard) -> Self {
        Self { first, others, guard }
    }
}

impl Executor for Fallback {
    fn mode(&self) -> ExecutionMode {
        self.first.engine.mode()
    }

    fn capabilities(&self) -> &Capabilities {
        self.first.engine.capabilities()
    }

    fn run(
        &self,
        request: TurnRequest,
        host: Arc<dyn TurnHost>,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, ExecError>> {
        let guard = self.guard.clone();
        let candidates: Vec<Candidate> = [&self.first].into_iter().chain(&self.others).cloned().collect();
        stream! {
            let max_attempts = candidates.len().saturating_sub(1) as u32;
            let locale = request.locale;
            let (mut started, mut attempt, mut refusal) = (false, 0, None::<(ResolvedModel, ExecError)>);
            for Candidate { model, engine } in candidates {
                if let Some(left) = guard.blocked(&model).await {
                    let detail = format!("{} is left alone for a while after it refused", model.id);
                    let engine = realm(&model);
                    refusal.get_or_insert((model, ExecError::Busy { engine, detail, retry_after: Some(left) }));
                    continue;
                }
                if let Some((from, error)) = refusal.take() {
                    if !std::mem::replace(&mut started, true) {
                        yield Ok(TurnEvent::Started { session: None });
                    }
                    attempt += 1;
                    tracing::warn!(from = %from.id, to = %model.id, %error, "another model is asked");
                    let reason = format!("{error}; going on with {}", model.id);
                    yield Ok(TurnEvent::Retrying { attempt, max_attempts, reason });
                    let why = (&error as &dyn Fault).explain(locale).message;
                    yield Ok(TurnEvent::Note(t!(locale, "exec.fallback", from = from.id, to = model.id, why = why)));
                }
                let request = TurnRequest { model: model.clone(), ..request.clone() };
                let mut events = engine.run(request, host.clone(), cancel.clone());
                let mut acted = false;
                while let Some(event) = events.next().await {
                    match event {
                        Ok(TurnEvent::Started { session }) => {
                            if !std::mem::replace(&mut started, true) {
                                yield Ok(TurnEvent::Started { session });
                            }
                        }
                        Err(error) if refuses(&error) => {
                            guard.block(&model, &error).await;
                            if acted {
                                yield Err(error);
                                return;
                            }
                            refusal = Some((model.clone(), error));
                            break;
                        }
                        Ok(event) => {
                            acted |= matches!(event, TurnEvent::Text(_) | TurnEvent::ToolCall(_));
                            let done = matches!(event, TurnEvent::Completed(_));
                            if done {
                                guard.clear(&model).await;
                            }
                            yield Ok(event);
                            if done {
                                return;
                            }
                        }
                        Err(error) => {
                            yield Err(error);
                            return;
                        }
                    }
                }
                if refusal.is_none() {
                    let detail = "no end event".to_owned();
                    yield Err(ExecError::Interrupted { engine: realm(&model), detail });
                    return;
                }
            }
            if let Some((_, error)) = refusal {
                yield Err(error);
            }
        }
        .boxed()
    }
}

/// Whether a provider refuses by what it is, so that another one may not.
fn refuses(error: &ExecError) -> bool {
    matches!(error.kind(), ErrorKind::Auth | ErrorKind::Quota | ErrorKind::RateLimited)
}

/// Whose patience a model uses up: its provider's, for one credential.
fn realm(model: &ResolvedModel) -> String {
    let name = model.id.as_str();
    let family = find(name).map_or_else(|| name.split('/').next().unwrap_or(name), |(provider, _)| provider.name);
    format!("{family}:{}", model.credential)
}

/// Which providers to leave alone, and until when; a file shared by all processes.
#[derive(Debug, Clone)]
pub struct RateGuard {
    path: PathBuf,
    settings: RateGuardSettings,
    clock: Arc<dyn Clock>,
    name: String,
}

/// One line of the file. Unknown fields survive.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Block {
    /// Seconds since 1970.
    blocked_until: f64,
    reason: String,
    seconds: u64,
    updated_by: String,
    consecutive: u32,
    #[serde(flatten)]
    more: Map<String, Value>,
}

type Blocks = BTreeMap<String, Block>;

impl RateGuard {
    /// The guard of a data directory; `name` says who writes.
    pub fn new(path: PathBuf, settings: RateGuardSettings, clock: Arc<dyn Clock>, name: impl Into<String>) -> Self {
        Self { path, settings, clock, name: name.into() }
    }

    /// How long a model's provider is still to be left alone.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn blocked(&self, model: &ResolvedModel) -> Option<Duration> {
        if !self.settings.enabled {
            return None;
        }
        let (path, key, now) = (self.path.clone(), realm(model), self.now());
        let blocks = fs::blocking(move || read(&path)).await.log_err("read the rate guard")?;
        let left = blocks.get(&key)?.blocked_until - now;
        Duration::try_from_secs_f64(left).ignore("it has passed").filter(|left| !left.is_zero())
    }

    /// Remembers a refusal. Each one in a row counts double.
    async fn block(&self, model: &ResolvedModel, error: &ExecError) {
        let settings = &self.settings;
        let (base, most) = match error.kind() {
            ErrorKind::Quota => (settings.quota_block_seconds, settings.max_quota_block_seconds),
            _ => (settings.default_block_seconds, settings.max_block_seconds),
        };
        let asked = match error.retry() {
            Retry::After(asked) => Some(asked.as_secs().max(1)),
            _ => None,
        };
        let (now, reason, updated_by) = (self.now(), error.kind().as_str().to_owned(), self.name.clone());
        self.change(realm(model), move |block| {
            let (consecutive, more) = block.map_or((0, Map::new()), |block| (block.consecutive, block.more));
            let doubled = base.saturating_mul(1 << consecutive.min(20));
            let seconds = asked.unwrap_or(doubled).min(most);
            let blocked_until = now + seconds as f64;
            Some(Block { blocked_until, reason, seconds, updated_by, consecutive: consecutive.saturating_add(1), more })
        })
        .await;
    }

    /// Forgets what was; the provider answers again.
    async fn clear(&self, model: &ResolvedModel) {
        let (path, key) = (self.path.clone(), realm(model));
        let known = fs::blocking(move || read(&path)).await.log_err("read the rate guard");
        if known.is_some_and(|blocks| blocks.contains_key(&key)) {
            self.change(key, |_| None).await;
        }
    }

    async fn change(&self, key: String, change: impl FnOnce(Option<Block>) -> Option<Block> + Send + 'static) {
        if !self.settings.enabled {
            return;
        }
        let path = self.path.clone();
        let written = fs::blocking(move || {
            let _lock = Lock::wait(&path.with_extension("lock"))?;
            let mut blocks = read(&path)?;
            let before = blocks.remove(&key);
            if let Some(block) = change(before) {
                blocks.insert(key, block);
            }
            fs::write_json(&path, &blocks, Privacy::Normal)
        });
        // a turn does not fail because nobody can be warned
        written.await.log_err("write the rate guard");
    }

    fn now(&self) -> f64 {
        self.clock.now().timestamp_millis() as f64 / 1000.0
    }
}

fn read(path: &std::path::Path) -> Result<Blocks, FileError> {
    match fs::read_json(path) {
        Err(error) if error.is_not_found() => Ok(Blocks::new()),
        // nothing in it is worth more than a few minutes, so a broken one is begun anew
        Err(error @ FileError::Syntax { .. }) => {
            tracing::warn!(%error, "the rate guard cannot be read and is begun anew");
            Ok(Blocks::new())
        }
        read => read,
    }
}
