//! The engines of an organisation, with its keys.

use std::sync::Arc;

use animaworks_core::{
    Clock, DataDir, Fault, Locale,
    config::{Credentials, Env, ModelCredential, Settings},
    ids::IdSource,
};
use animaworks_exec::{
    autonomous::Line,
    local::LocalEngines,
    provider::Learned,
    resolve::{Engines, Maker},
    retry::RetryPolicy,
    transport::TransportOptions,
};

use super::outside::OnDemand;

/// The engines that need nothing but this process.
pub(super) fn engines(
    env: &Env,
    data: &DataDir,
    settings: &Settings,
    locale: Locale,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> Engines {
    let line = Line {
        transport: Arc::new(OnDemand::new(TransportOptions::default(), clock.clone())),
        clock: clock.clone(),
        ids: ids.clone(),
        learned: Arc::new(Learned::default()),
        retry: RetryPolicy { retries: settings.server.llm_num_retries, ..RetryPolicy::default() },
    };
    let local = LocalEngines::new(data.weights(), locale, clock.clone(), settings.system.zone());
    let local: Maker = Arc::new(move |model| local.executor(model));
    let (data, env) = (data.clone(), env.clone());
    let keys = Arc::new(move |name: &str| keys(&data, &env, name));
    Engines { line, keys, local, programs: None }
}

/// What is known under the name of a credential now. A file that cannot be read leaves the environment's keys.
fn keys(data: &DataDir, env: &Env, name: &str) -> ModelCredential {
    let loaded = Settings::load(data).and_then(|settings| Credentials::load(data, &settings, env));
    match loaded {
        Ok(credentials) => credentials.model(name),
        Err(error) => {
            tracing::error!(code = error.code(), %error, "keys cannot be read");
            ModelCredential::default()
        }
    }
}
