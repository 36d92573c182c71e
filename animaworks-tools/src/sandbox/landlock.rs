//! Files, TCP and signals: what Landlock holds.

use std::{io, os::fd::OwnedFd, path::Path};

use animaworks_core::seams::{Enforced, SandboxPolicy};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::{
    fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::{SFlag, fstat},
};

/// The newest rights we ask for; an older kernel holds those it knows.
const WANTED: ABI = ABI::V10;

/// The first ABI that holds files, TCP and signals.
const COMPLETE: ABI = ABI::V6;

/// Why the walls could not be built.
#[derive(Debug, thiserror::Error)]
pub(super) enum LandlockError {
    #[error("a rule was refused")]
    Rules(#[from] RulesetError),
    #[error("cannot open {path}")]
    Open {
        path: String,
        #[source]
        source: io::Error,
    },
}

/// How far this kernel goes: asks for a rule set without applying it.
pub(super) fn strength() -> Enforced {
    let knows = |abi: ABI| {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))
            .and_then(|rules| match Scope::from_all(abi) {
                none if none.is_empty() => Ok(rules),
                scopes => rules.scope(scopes),
            })
            .and_then(Ruleset::create)
            .is_ok()
    };
    if knows(COMPLETE) {
        Enforced::Kernel
    } else if knows(ABI::V1) {
        Enforced::Partly
    } else {
        Enforced::Not
    }
}

/// Shuts this thread, and what it becomes, into the policy.
pub(super) fn apply(policy: &SandboxPolicy) -> Result<Enforced, LandlockError> {
    let mut network: BitFlags<AccessNet> = AccessNet::from_all(WANTED);
    if policy.connect_all {
        network &= AccessNet::BindTcp;
    }
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(network)?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    for path in &policy.read {
        rules = allow(rules, path, AccessFs::from_read(WANTED))?;
    }
    if policy.own_process {
        // the helper becomes the program, so its number stays
        let own = Path::new("/proc").join(std::process::id().to_string());
        rules = allow(rules, &own, AccessFs::from_read(WANTED))?;
    }
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    for path in &policy.write {
        rules = allow(rules, path, AccessFs::from_all(WANTED) & !devices)?;
    }
    if policy.connect_all {
        // a port that the kernel chooses: tests that serve themselves, not a service on a known port
        rules = rules.add_rule(NetPort::new(0, AccessNet::BindTcp))?;
    } else {
        for port in &policy.connect {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Kernel,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    })
}

/// Whether Landlock can hold single TCP ports here.
pub(super) fn holds_ports() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::ConnectTcp)
        .and_then(Ruleset::create)
        .is_ok()
}

fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, LandlockError> {
    let failed = |source: io::Error| LandlockError::Open { path: path.display().to_string(), source };
    let Some(fd) = open(path).map_err(failed)? else { return Ok(rules) };
    let kind = fstat(&fd).map_err(|error| failed(error.into()))?.st_mode & SFlag::S_IFMT.bits();
    let access = if kind == SFlag::S_IFDIR.bits() { access } else { access & AccessFs::from_file(WANTED) };
    Ok(rules.add_rule(PathBeneath::new(fd, access))?)
}

/// The place itself. The policy's paths are real ones: a link there now was put in since, and is not followed.
fn open(path: &Path) -> io::Result<Option<OwnedFd>> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    match openat2(AT_FDCWD, path, how) {
        Ok(fd) => Ok(Some(fd)),
        Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ELOOP | nix::errno::Errno::EACCES) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
