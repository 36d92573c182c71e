//! The engines of this machine by the name of a model.

use std::{path::PathBuf, sync::Arc};

use animaworks_core::{Clock, ExecError, Executor, Locale, ResolvedModel};
use chrono_tz::Tz;

use super::LocalRecall;

/// Makes the engine of a `local/…` model.
#[derive(Debug)]
pub struct LocalEngines {
    recall: Arc<LocalRecall>,
    #[cfg(feature = "local-llm")]
    models: super::LocalModels,
    #[cfg(not(feature = "local-llm"))]
    models: PathBuf,
}

impl LocalEngines {
    /// The engines of a machine whose models are in `models`; what they tell about themselves is in `locale`.
    pub fn new(models: PathBuf, locale: Locale, clock: Arc<dyn Clock>, zone: Tz) -> Self {
        #[cfg(feature = "local-llm")]
        let models = super::LocalModels::new(models, locale, clock.clone());
        tracing::debug!(%locale, "engines of this machine");
        Self { recall: Arc::new(LocalRecall::new(clock, zone)), models }
    }

    /// The engine of a model: `local/recall`, or a GGUF model by name or path.
    ///
    /// # Errors
    ///
    /// [`ExecError::NotInstalled`] when there is no such file, or this program was built without `local-llm`.
    pub fn executor(&self, model: &ResolvedModel) -> Result<Arc<dyn Executor>, ExecError> {
        let name = model.id.as_str();
        if name == "local/recall" {
            return Ok(self.recall.clone());
        }
        #[cfg(feature = "local-llm")]
        {
            Ok(Arc::new(crate::basic::Basic::new(self.models.model(name)?)))
        }
        #[cfg(not(feature = "local-llm"))]
        {
            let detail = format!("{} (this program was built without the feature local-llm)", self.models.display());
            Err(ExecError::NotInstalled { engine: name.to_owned(), detail })
        }
    }
}
