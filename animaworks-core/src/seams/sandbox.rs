//! Walls around child processes.

use std::{fmt::Debug, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    error::{ErrorKind, Fault},
    process::Spec,
};

/// Confines a child before it is started.
pub trait Sandbox: Debug + Send + Sync {
    /// The command to start instead, and how far the kernel will hold it.
    ///
    /// # Errors
    ///
    /// When the walls cannot be built and the policy does not allow going without.
    fn confine(&self, command: Spec, policy: &SandboxPolicy) -> Result<(Spec, Enforced), SandboxError>;

    /// How far this machine's kernel can hold a child.
    fn strength(&self) -> Enforced;
}

/// What a child may touch. Everything else is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxPolicy {
    /// Files and directories it may read and execute.
    pub read: Vec<PathBuf>,
    /// Directories it may change.
    pub write: Vec<PathBuf>,
    /// TCP ports it may connect to; empty means none.
    pub connect: Vec<u16>,
    /// May connect anywhere.
    pub connect_all: bool,
    /// May open Unix sockets: engines that speak with us. Commands may not, since a
    /// daemon behind a socket does things for them that they may not do themselves.
    pub local_sockets: bool,
    /// May read what the kernel says about itself (`/proc/self`): runtimes that look up their own stack. What it
    /// starts may not.
    pub own_process: bool,
    /// May start although the kernel cannot enforce this.
    pub allow_unenforced: bool,
}

/// How far the kernel holds a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enforced {
    /// Not at all.
    Not,
    /// Some of it.
    Partly,
    /// All of it.
    Kernel,
}

/// The walls cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("sandbox: {what}")]
pub struct SandboxError {
    /// What is missing.
    pub what: String,
    /// Why.
    #[source]
    pub source: Option<std::io::Error>,
}

impl Fault for SandboxError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NotInstalled
    }

    fn code(&self) -> &'static str {
        "sandbox_unavailable"
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![("what", self.what.clone())]
    }
}

/// No walls at all; for programs we wrote ourselves and for embedders that bring their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unconfined;

impl Sandbox for Unconfined {
    fn confine(&self, command: Spec, policy: &SandboxPolicy) -> Result<(Spec, Enforced), SandboxError> {
        if policy.allow_unenforced {
            Ok((command, Enforced::Not))
        } else {
            Err(SandboxError { what: "no sandbox is configured".to_owned(), source: None })
        }
    }

    fn strength(&self) -> Enforced {
        Enforced::Not
    }
}
