//! The model of meaning: one for all Animas of a process, opened when the first memory is.

use std::{path::Path, sync::Arc};

use animaworks_core::{Locale, config::Settings, t};
use animaworks_memory::Embedder;

/// The model, or why memory is searched by words only.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    /// Here it is.
    #[cfg_attr(not(feature = "embed"), allow(dead_code, reason = "without the feature there is none to open"))]
    Model(Arc<dyn Embedder>),
    /// The configuration wants none.
    NotWanted,
    /// It was wanted and cannot be had.
    Missing(String),
}

impl Meaning {
    /// Opens the model that the configuration names; its layers are loaded when the first text comes.
    pub(super) fn open(settings: &Settings, weights: Option<&Path>, locale: Locale) -> Self {
        if !settings.rag.enabled || settings.rag.lexical_only {
            return Self::NotWanted;
        }
        match weights {
            Some(place) => open(place, locale),
            None => Self::Missing(t!(locale, "memory.no_weights")),
        }
    }
}

#[cfg(feature = "embed")]
fn open(place: &Path, locale: Locale) -> Meaning {
    match animaworks_memory::E5Embedder::open(place, animaworks_memory::E5Options::default()) {
        Ok(model) => Meaning::Model(Arc::new(model)),
        Err(error) => {
            tracing::error!(error = %animaworks_core::error::chain(&error), "searching by words only");
            Meaning::Missing((&error as &dyn animaworks_core::Fault).explain(locale).message)
        }
    }
}

#[cfg(not(feature = "embed"))]
fn open(_place: &Path, locale: Locale) -> Meaning {
    Meaning::Missing(t!(locale, "memory.no_model"))
}
