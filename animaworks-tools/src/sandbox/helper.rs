//! The helper's side: read the policy, shut ourselves in, become the command.
//!
//! Reached as `animaworks internal confine --policy-fd N -- CMD…`, and as the small
//! program `animaworks-confine` for those who embed the tools without the binary.

use std::{ffi::OsString, io::Write, process::ExitCode};

use animaworks_core::error::{ResultExt, chain};

use super::CANNOT_CONFINE;

/// Confines this process and executes the command; only comes back when that failed.
///
/// `args` are those after the program's name, with or without a leading `internal confine`.
/// The exit code is then 125 when the walls could not be built, 126 when the command could
/// not be executed, 127 when there is no such command.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let error = os::run(args.into_iter().collect());
    writeln!(std::io::stderr(), "animaworks-confine: {}", chain(&error)).ignore("there is nobody else to tell");
    ExitCode::from(error.code())
}

/// Why the command was not started.
#[derive(Debug, thiserror::Error)]
enum ConfineError {
    #[error("usage: animaworks internal confine --policy-fd N -- COMMAND [ARGS…]")]
    Usage,
    #[error("cannot read the policy")]
    Policy(#[source] std::io::Error),
    #[cfg(target_os = "linux")]
    #[error("Landlock refuses")]
    Landlock(#[from] super::landlock::LandlockError),
    #[cfg(target_os = "linux")]
    #[error("seccomp refuses")]
    Seccomp(#[from] super::seccomp::SeccompError),
    #[error("this kernel cannot hold a child")]
    NotEnforced,
    #[error("cannot execute {program}")]
    Exec {
        program: String,
        #[source]
        source: std::io::Error,
    },
}

impl ConfineError {
    fn code(&self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Policy(_) | Self::NotEnforced => CANNOT_CONFINE,
            #[cfg(target_os = "linux")]
            Self::Landlock(_) | Self::Seccomp(_) => CANNOT_CONFINE,
            Self::Exec { source, .. } if source.kind() == std::io::ErrorKind::NotFound => 127,
            Self::Exec { .. } => 126,
        }
    }
}

#[cfg(target_os = "linux")]
mod os {
    use std::{ffi::OsString, io, os::unix::process::CommandExt};

    use animaworks_core::{
        error::ResultExt,
        seams::{Enforced, SandboxPolicy},
    };

    use super::{
        super::{landlock, seccomp},
        ConfineError,
    };

    pub(super) fn run(args: Vec<OsString>) -> ConfineError {
        match confine(&args) {
            Ok(command) => execute(command),
            Err(error) => error,
        }
    }

    /// Builds the walls; what is left of the arguments is the command.
    fn confine(args: &[OsString]) -> Result<&[OsString], ConfineError> {
        let args = args.strip_prefix(&[OsString::from("internal"), OsString::from("confine")]).unwrap_or(args);
        let [flag, fd, dashes, command @ ..] = args else { return Err(ConfineError::Usage) };
        if flag != "--policy-fd" || dashes != "--" || command.is_empty() {
            return Err(ConfineError::Usage);
        }
        let fd: i32 = fd.to_str().and_then(|fd| fd.parse().ok()).ok_or(ConfineError::Usage)?;
        // opening it by name gives a position of our own; the inherited one is shared
        let bytes = fs_err::read(format!("/proc/self/fd/{fd}")).map_err(ConfineError::Policy)?;
        let policy: SandboxPolicy =
            serde_json::from_slice(&bytes).map_err(|error| ConfineError::Policy(io::Error::other(error)))?;
        close_inherited().map_err(ConfineError::Policy)?;
        let enforced = landlock::apply(&policy)?;
        if enforced == Enforced::Not && !policy.allow_unenforced {
            return Err(ConfineError::NotEnforced);
        }
        seccomp::apply(&policy)?;
        Ok(command)
    }

    /// Closes everything but the three streams: an open file would be a hole in the wall.
    fn close_inherited() -> io::Result<()> {
        let mut open = Vec::new();
        for entry in fs_err::read_dir("/proc/self/fd")? {
            open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        for fd in open.into_iter().filter(|fd| *fd > 2) {
            nix::unistd::close(fd).ignore("the directory we have just read is closed already");
        }
        Ok(())
    }

    fn execute(command: &[OsString]) -> ConfineError {
        let Some((program, args)) = command.split_first() else { return ConfineError::Usage };
        #[allow(clippy::disallowed_methods, reason = "starts nothing: this process becomes the command")]
        let source = std::process::Command::new(program).args(args).exec();
        ConfineError::Exec { program: program.to_string_lossy().into_owned(), source }
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    use std::ffi::OsString;

    use super::ConfineError;

    pub(super) fn run(_: Vec<OsString>) -> ConfineError {
        ConfineError::NotEnforced
    }
}
