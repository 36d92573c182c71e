//! What an Anima can do on this machine, and under whose rules.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc};

use animaworks_core::{
    AnimaDir, Clock, Locale, Tool,
    config::Env,
    seams::{Enforced, Sandbox},
};
use animaworks_tools::{
    KernelSandbox, OwnerPermissions, bash_tool, file_tools, permission::OrganisationFiles, shell::Surroundings,
};

/// The hands of an organisation: files, commands, and the walls around them.
#[derive(Debug, Clone)]
pub struct Hands {
    home: PathBuf,
    env: BTreeMap<OsString, OsString>,
    clock: Arc<dyn Clock>,
    sandbox: Option<Arc<dyn Sandbox>>,
}

impl Hands {
    /// Hands that reach files, and start no commands.
    pub fn new(env: &Env, clock: Arc<dyn Clock>) -> Self {
        Self { home: env.home().to_owned(), env: env.harmless(), clock, sandbox: None }
    }

    /// The same with commands, which start through `program`.
    #[must_use]
    pub fn with_program(self, program: PathBuf) -> Self {
        Self { sandbox: Some(Arc::new(KernelSandbox::new(program))), ..self }
    }

    /// How far the kernel holds a command.
    pub fn strength(&self) -> Enforced {
        self.sandbox.as_ref().map_or(Enforced::Not, |sandbox| sandbox.strength())
    }

    /// What the owner of an Anima allows, read again whenever the file changes.
    pub fn permissions(&self, dir: &AnimaDir) -> Arc<OwnerPermissions> {
        let org = Arc::new(OrganisationFiles(dir.data().clone()));
        Arc::new(OwnerPermissions::new(dir.clone(), Some(self.home.clone()), org, self.strength()))
    }

    /// The tools that reach this machine.
    pub(super) fn tools(&self, permissions: &Arc<OwnerPermissions>, locale: Locale) -> Vec<Arc<dyn Tool>> {
        let mut tools = file_tools(permissions, locale);
        if let Some(sandbox) = &self.sandbox {
            let surroundings = Surroundings {
                permissions: permissions.clone(),
                sandbox: sandbox.clone(),
                env: self.env.clone(),
                allow_unenforced: false,
                clock: self.clock.clone(),
            };
            tools.push(bash_tool(surroundings, locale));
        }
        tools
    }
}
