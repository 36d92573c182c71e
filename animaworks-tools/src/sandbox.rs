//! Walls in the kernel around every child an Anima starts (RULINGS 36).
//!
//! A child is not started directly: the program starts itself again as
//! `animaworks internal confine --policy-fd N -- CMD…`. That helper reads the
//! policy, shuts itself in with Landlock (files, TCP, signals) and seccomp (the
//! system calls that lead around Landlock), and becomes the command. Nothing here
//! needs root and nothing needs `unsafe`.
//!
//! What the kernel can hold depends on its age; [`KernelSandbox::strength`] says how much:
//!
//! | kernel | files | TCP | signals | strength |
//! |---|---|---|---|---|
//! | 6.12 and newer | held | held | held | `kernel` |
//! | 5.13 to 6.11 | held | by seccomp: all or nothing before 6.7 | not held | `partly` |
//! | older, or Landlock switched off | not held | by seccomp | not held | `not` |
//!
//! With `not`, a command is refused unless the policy says `allow_unenforced`, and every
//! such start is a warning in the log. What Landlock does not govern on any kernel:
//! reading the metadata of a file, and changing the mode of a file one owns.

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod seccomp;

pub mod helper;
pub mod policy;

use std::path::PathBuf;

use animaworks_core::{
    process::Spec,
    seams::{Enforced, Sandbox, SandboxError, SandboxPolicy},
};

/// The exit code of the helper when the walls cannot be built; the command has then not been started.
pub const CANNOT_CONFINE: u8 = 125;

/// Landlock and seccomp, by a helper that shuts itself in and becomes the command.
#[derive(Debug, Clone)]
pub struct KernelSandbox {
    helper: PathBuf,
}

impl KernelSandbox {
    /// A sandbox whose helper is this program: `animaworks`, or `animaworks-confine`.
    pub fn new(helper: impl Into<PathBuf>) -> Self {
        Self { helper: helper.into() }
    }
}

impl Sandbox for KernelSandbox {
    fn confine(&self, command: Spec, policy: &SandboxPolicy) -> Result<(Spec, Enforced), SandboxError> {
        let strength = self.strength();
        if strength == Enforced::Not {
            if !policy.allow_unenforced {
                return Err(SandboxError { what: "this kernel has no Landlock".to_owned(), source: None });
            }
            tracing::warn!(program = %command.program.display(), "a child runs without walls: this kernel has no Landlock");
        }
        os::behind_helper(&self.helper, command, policy).map(|command| (command, strength))
    }

    fn strength(&self) -> Enforced {
        os::strength()
    }
}

#[cfg(target_os = "linux")]
mod os {
    use std::{
        ffi::OsString,
        io::{self, Write},
        os::fd::{AsRawFd, OwnedFd},
        path::Path,
        sync::{Arc, OnceLock},
    };

    use animaworks_core::{
        process::Spec,
        seams::{Enforced, SandboxError, SandboxPolicy},
    };
    use nix::{
        fcntl::{FcntlArg, SealFlag, fcntl},
        sys::memfd::{MFdFlags, memfd_create},
    };

    pub(super) fn strength() -> Enforced {
        static STRENGTH: OnceLock<Enforced> = OnceLock::new();
        *STRENGTH.get_or_init(super::landlock::strength)
    }

    /// `HELPER internal confine --policy-fd N -- COMMAND…`, with the policy in a sealed file that has no name.
    pub(super) fn behind_helper(helper: &Path, command: Spec, policy: &SandboxPolicy) -> Result<Spec, SandboxError> {
        let failed = |what: &str, source: io::Error| SandboxError { what: what.to_owned(), source: Some(source) };
        let policy = serde_json::to_vec(&super::policy::real(policy))
            .map_err(|error| failed("the policy cannot be written", io::Error::other(error)))?;
        let fd = sealed(&policy).map_err(|source| failed("the policy cannot be handed over", source))?;
        let mut args: Vec<OsString> = ["internal", "confine", "--policy-fd"].map(OsString::from).to_vec();
        args.push(OsString::from(fd.as_raw_fd().to_string()));
        args.push(OsString::from("--"));
        args.push(command.program.into_os_string());
        args.extend(command.args);
        let mut keep = command.keep;
        keep.push(Arc::new(fd));
        Ok(Spec { program: helper.to_owned(), args, keep, ..command })
    }

    /// Open in every child that is started meanwhile, so nobody may change it: it is sealed.
    fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
        let fd = memfd_create(c"animaworks-policy", MFdFlags::MFD_ALLOW_SEALING)?;
        let mut file = std::fs::File::from(fd);
        file.write_all(bytes)?;
        let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        Ok(OwnedFd::from(file))
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::path::Path;

    use animaworks_core::{
        process::Spec,
        seams::{Enforced, SandboxError, SandboxPolicy},
    };

    pub(super) fn strength() -> Enforced {
        Enforced::Not
    }

    /// Only reached when the policy allows going without.
    pub(super) fn behind_helper(_: &Path, command: Spec, _: &SandboxPolicy) -> Result<Spec, SandboxError> {
        Ok(command)
    }
}
