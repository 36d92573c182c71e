//! Which engine for which model.

use std::{fmt, sync::Arc};

use animaworks_core::{ExecError, ExecutionMode, Executor, ExecutorSource, ResolvedModel, config::ModelCredential};

use crate::{
    autonomous::{ApiText, Autonomous, Line},
    basic::Basic,
    fallback::{Candidate, Fallback, RateGuard},
    provider::{Endpoint, NoEndpoint},
};

/// Makes an engine for a model, or says why not.
pub type Maker = Arc<dyn Fn(&ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> + Send + Sync>;

/// Finds what is known under the name of a credential.
pub type Keys = Arc<dyn Fn(&str) -> ModelCredential + Send + Sync>;

/// All engines of this machine. Keys and makers are asked at every turn, so a change needs no restart.
#[derive(Clone)]
pub struct Engines {
    /// What model calls go through.
    pub line: Line,
    /// Where keys are.
    pub keys: Keys,
    /// Engines of this machine, for `local/…`.
    pub local: Maker,
    /// Engines that are programs of their own, when there are any here.
    pub programs: Option<Maker>,
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engines").field("line", &self.line).field("programs", &self.programs.is_some()).finish()
    }
}

impl ExecutorSource for Engines {
    fn executor(&self, model: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> {
        if model.id.as_str().starts_with("local/") {
            return (self.local)(model);
        }
        match model.mode {
            ExecutionMode::Autonomous => Ok(Arc::new(self.api(model.id.as_str(), &model.credential)?)),
            ExecutionMode::Basic => {
                let api = self.api(model.id.as_str(), &model.credential)?;
                Ok(Arc::new(Basic::new(Arc::new(ApiText::new(api)))))
            }
            mode => {
                let made = match &self.programs {
                    Some(maker) => maker(model),
                    None => Err(not_installed(mode)),
                };
                match made {
                    // without the program the same model is reached by its API (exec spec §1.9)
                    Err(ExecError::NotInstalled { .. }) => self.instead(model, made),
                    made => made,
                }
            }
        }
    }
}

impl Engines {
    /// The engine of a model with others to fall back to. Models that cannot run here are passed over,
    /// unless none can.
    ///
    /// # Errors
    ///
    /// That of the first model, when no model can run here.
    pub fn with_fallbacks(
        &self,
        first: &ResolvedModel,
        others: &[ResolvedModel],
        guard: RateGuard,
    ) -> Result<Arc<dyn Executor>, ExecError> {
        let made: Vec<_> = [first].into_iter().chain(others).map(|model| (model, self.executor(model))).collect();
        let (mut able, mut unable) = (Vec::new(), None);
        for (model, made) in made {
            match made {
                Ok(engine) => able.push(Candidate { model: model.clone(), engine }),
                Err(error) => {
                    tracing::warn!(model = %model.id, %error, "this model cannot run here");
                    unable = unable.or(Some(error));
                }
            }
        }
        let mut able = able.into_iter();
        match (able.next(), unable) {
            (Some(first), _) => Ok(Arc::new(Fallback::new(first, able.collect(), guard))),
            (None, Some(error)) => Err(error),
            (None, None) => self.executor(first),
        }
    }

    fn api(&self, model: &str, credential: &str) -> Result<Autonomous, ExecError> {
        let endpoint =
            Endpoint::open(model, &(self.keys)(credential)).map_err(|missing| unusable(missing, credential))?;
        Ok(Autonomous::new(endpoint, self.line.clone()))
    }

    /// The model of a missing program by its API, when there is a key for it; else why the program is missing.
    fn instead(
        &self,
        model: &ResolvedModel,
        missing: Result<Arc<dyn Executor>, ExecError>,
    ) -> Result<Arc<dyn Executor>, ExecError> {
        let name = model.id.as_str();
        let bare = name.split_once('/').map_or(name, |(_, bare)| bare);
        let (prefix, usual) = match model.mode {
            ExecutionMode::Sdk => ("anthropic", "anthropic"),
            ExecutionMode::Codex => ("openai", "openai"),
            ExecutionMode::Gemini => ("google", "google"),
            _ => return missing,
        };
        let reached = [model.credential.as_str(), usual]
            .into_iter()
            .find_map(|credential| self.api(&format!("{prefix}/{bare}"), credential).ok());
        match reached {
            Some(api) => {
                tracing::warn!(model = name, instead = prefix, "the program is not installed; its API is used");
                Ok(Arc::new(api.standing_in(not_installed_name(model.mode))))
            }
            None => missing,
        }
    }
}

fn not_installed_name(mode: ExecutionMode) -> &'static str {
    match mode {
        ExecutionMode::Sdk => "claude",
        ExecutionMode::Codex => "codex",
        ExecutionMode::Cursor => "cursor-agent",
        ExecutionMode::Gemini => "gemini",
        ExecutionMode::Autonomous | ExecutionMode::Basic => "api",
    }
}

fn not_installed(mode: ExecutionMode) -> ExecError {
    let engine = not_installed_name(mode).to_owned();
    ExecError::NotInstalled { detail: format!("the program {engine}"), engine }
}

fn unusable(missing: NoEndpoint, credential: &str) -> ExecError {
    match missing {
        NoEndpoint::UnknownModel { model } => ExecError::UnknownModel { engine: "api".to_owned(), model },
        NoEndpoint::NoKey { provider } => {
            ExecError::Auth { engine: provider.to_owned(), detail: format!("no key under the credential {credential}") }
        }
        NoEndpoint::BadAddress { provider, problem } => {
            ExecError::Rejected { engine: provider.to_owned(), status: 0, detail: format!("{credential}: {problem}") }
        }
    }
}
