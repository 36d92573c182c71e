//! Tools that reach outside this machine (exec spec §6).
//!
//! A service is one file here: its operations are typed tools, whose arguments, descriptions and trust are the
//! one table that models, MCP clients and people read. What comes back is somebody else's words: untrusted,
//! capped, and never an instruction. Keys are looked up at every call and go into a header, nowhere else.

mod github;
mod line;
mod local_llm;
mod web_fetch;
mod web_search;

use std::sync::Arc;

use animaworks_core::{
    AnimaName, Clock, DataDir, Fault, Locale, Origin, Tool, ToolError, ToolOutput, Typed,
    config::{Credentials, Env, Found, ModelCredential, Settings},
    fs,
    seams::HttpTransport,
    t,
};

use self::{line::Line, web_fetch::Pages};

/// What tools for the outside are given.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The public internet and nothing else, for addresses that models and pages name.
    pub public: Arc<dyn HttpTransport>,
    /// For services at addresses that the owner configured.
    pub services: Arc<dyn HttpTransport>,
    /// Where keys and addresses of services are kept.
    pub data: DataDir,
    /// The environment's keys.
    pub env: Env,
    /// For limits and waiting.
    pub clock: Arc<dyn Clock>,
}

/// The tools of all services. Which of them an Anima is offered is written in its `permissions.md`.
pub fn external_tools(outside: &Outside, locale: Locale) -> Vec<Arc<dyn Tool>> {
    let pages = Arc::new(Pages::default());
    vec![
        Arc::new(Typed::localized(web_search::WebSearch(outside.clone()), locale)),
        Arc::new(Typed::localized(web_fetch::WebFetch { outside: outside.clone(), pages }, locale)),
        Arc::new(Typed::localized(github::Issues(outside.clone()), locale)),
        Arc::new(Typed::localized(github::Issue(outside.clone()), locale)),
        Arc::new(Typed::localized(github::CreateIssue(outside.clone()), locale)),
        Arc::new(Typed::localized(github::Pulls(outside.clone()), locale)),
        Arc::new(Typed::localized(github::CreatePull(outside.clone()), locale)),
        Arc::new(Typed::localized(local_llm::Generate(outside.clone()), locale)),
        Arc::new(Typed::localized(local_llm::Models(outside.clone()), locale)),
    ]
}

/// Operations that change something at a service: the right to the service is not enough, they are granted by
/// their own name (exec spec §6.1).
pub const GATED: &[&str] = &["github_create_issue", "github_create_pr"];

/// A service and how its key is found (exec spec §6.2).
#[derive(Debug, Clone, Copy)]
struct Service {
    /// The entry of `credentials`, and what errors call it.
    name: &'static str,
    /// The variable that holds its key.
    variable: &'static str,
}

impl Outside {
    /// A line to a service.
    fn line(&self, service: Service) -> Line {
        Line::new(self.services.clone(), self.clock.clone(), service)
    }

    /// A line to whatever a page or a model names.
    fn public_line(&self, service: Service) -> Line {
        Line::new(self.public.clone(), self.clock.clone(), service)
    }

    /// What the owner configured for a service, and its key for one Anima.
    async fn configured(
        &self,
        service: Service,
        anima: &AnimaName,
    ) -> Result<(ModelCredential, Option<Found>), ToolError> {
        let (data, env, anima) = (self.data.clone(), self.env.clone(), anima.clone());
        let read = move || {
            let credentials = Credentials::load(&data, &Settings::load(&data)?, &env)?;
            let key = credentials.service(service.name, "", service.variable, Some(&anima));
            Ok::<_, fs::FileError>((credentials.model(service.name), key))
        };
        fs::blocking(read).await.map_err(crate::fault::file)
    }
}

/// There is no key: where it would be put.
fn not_configured(service: Service, locale: Locale) -> ToolError {
    ToolError::Failed {
        error_type: "NotConfigured",
        message: t!(locale, "tools.external.no_key", service = service.name),
        suggestion: Some(t!(locale, "tools.external.no_key_hint", service = service.name, variable = service.variable)),
    }
}

/// Somebody else's words.
fn untrusted(text: String) -> ToolOutput {
    ToolOutput::text(text).from_origin(Origin::of(Origin::EXTERNAL_WEB))
}

/// An answer that is not what the service promises.
fn malformed(service: Service, problem: &dyn std::fmt::Display, locale: Locale) -> ToolError {
    ToolError::failed("ApiError", t!(locale, "tools.external.malformed", service = service.name, problem = problem))
}

/// A failure of the wire in the model's language.
fn said(fault: &dyn Fault, locale: Locale) -> String {
    fault.explain(locale).message
}

#[cfg(test)]
mod tests;
