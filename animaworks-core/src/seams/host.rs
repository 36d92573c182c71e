//! The organisation's host, as its members may use it.

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::{
    anima::{Anima, AnimaError},
    ids::AnimaName,
};

/// Runs the members of an organisation: in processes of their own, in this one, or in a simulation.
#[async_trait]
pub trait Host: Debug + Send + Sync {
    /// The Anima of a name, started when it must be.
    ///
    /// # Errors
    ///
    /// [`AnimaError::UnknownAnima`] with near names.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn anima(&self, name: &AnimaName) -> Result<Arc<dyn Anima>, AnimaError>;

    /// Lets it take part in the working day, or not.
    ///
    /// # Errors
    ///
    /// When its `status.json` cannot be written.
    ///
    /// # Cancel safety
    ///
    /// Resumable.
    async fn set_enabled(&self, name: &AnimaName, on: bool) -> Result<(), AnimaError>;

    /// Ends and starts it.
    ///
    /// # Errors
    ///
    /// When it does not come back.
    ///
    /// # Cancel safety
    ///
    /// It may be left stopped.
    async fn restart(&self, name: &AnimaName) -> Result<(), AnimaError>;

    /// Lets it read its settings again before its next turn.
    ///
    /// # Errors
    ///
    /// When the settings are not usable; the old ones stay in force.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    async fn reload(&self, name: &AnimaName) -> Result<(), AnimaError>;
}
