//! System calls that lead around Landlock, or that no command of an Anima needs.

use std::collections::BTreeMap;

use animaworks_core::seams::SandboxPolicy;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Why the filter could not be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum SeccompError {
    #[error("no filter for this processor")]
    Backend(#[from] seccompiler::BackendError),
    #[error("the filter was refused")]
    Apply(#[from] seccompiler::Error),
}

/// Other processes, mounts, modules, the clock, the kernel itself, and ways to open files without a path.
const FORBIDDEN: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Landlock does not govern owners and extended attributes
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// New namespaces, in the flags of `clone`.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// The obsolete kind of socket that sees whole packets; libc has no name for it.
const SOCK_PACKET: i32 = 10;

/// On x86-64 every call has a second number in the x32 table.
#[cfg(target_arch = "x86_64")]
const SECOND_TABLE: &[i64] = &[0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const SECOND_TABLE: &[i64] = &[0];

/// Applies the filters. The first refuses with EPERM, the second tells the C library to use an older call.
pub(super) fn apply(policy: &SandboxPolicy) -> Result<(), SeccompError> {
    apply_filter(&refusing(policy)?)?;
    apply_filter(&filter(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?)?;
    Ok(())
}

fn refusing(policy: &SandboxPolicy) -> Result<BpfProgram, SeccompError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    let clone = [libc::CLONE_NEWNS, libc::CLONE_NEWUSER, libc::CLONE_NEWPID, libc::CLONE_NEWNET]
        .into_iter()
        .chain([libc::CLONE_NEWIPC, libc::CLONE_NEWUTS, libc::CLONE_NEWCGROUP])
        .map(|flag| {
            let flag = flag as u64;
            when(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag & NAMESPACES)
        })
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, clone);
    // keystrokes for the terminal of whoever started us
    #[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
    let ioctl = [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|request| when(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request as u64))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, ioctl);
    rules.insert(libc::SYS_socket, sockets(policy)?);
    filter(rules, libc::EPERM)
}

/// Socket families: TCP when the policy has network, Unix when it has local sockets, nothing else.
fn sockets(policy: &SandboxPolicy) -> Result<Vec<SeccompRule>, SeccompError> {
    let network = policy.connect_all || (!policy.connect.is_empty() && super::landlock::holds_ports());
    let internet = [libc::AF_INET, libc::AF_INET6];
    let mut families = Vec::new();
    if network {
        families.extend(internet);
    }
    if policy.local_sockets {
        families.push(libc::AF_UNIX);
    }
    if policy.connect_all {
        // the C library asks the kernel by netlink which addresses it has; it cannot change anything without rights
        families.push(libc::AF_NETLINK);
    }
    if families.is_empty() {
        return Ok(Vec::new()); // no condition: always refused
    }
    let family = |how: SeccompCmpOp, family: i32| condition(0, SeccompCmpArgLen::Dword, how, family as u64);
    let none_of = families.iter().map(|one| family(SeccompCmpOp::Ne, *one)).collect::<Result<_, _>>()?;
    let mut rules = vec![SeccompRule::new(none_of)?];
    if policy.connect_all {
        let other_protocol = condition(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?;
        rules.push(SeccompRule::new(vec![family(SeccompCmpOp::Eq, libc::AF_NETLINK)?, other_protocol])?);
    }
    if network {
        for one in internet {
            let kind = |kind: i32| condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(0xf), kind as u64);
            rules.push(SeccompRule::new(vec![family(SeccompCmpOp::Eq, one)?, kind(libc::SOCK_RAW)?])?);
            rules.push(SeccompRule::new(vec![family(SeccompCmpOp::Eq, one)?, kind(SOCK_PACKET)?])?);
            if !policy.connect_all {
                // single ports are TCP ports
                rules.push(SeccompRule::new(vec![family(SeccompCmpOp::Eq, one)?, kind(libc::SOCK_DGRAM)?])?);
            }
        }
    }
    Ok(rules)
}

fn when(argument: u8, width: SeccompCmpArgLen, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, SeccompError> {
    Ok(SeccompRule::new(vec![condition(argument, width, how, value)?])?)
}

fn condition(
    argument: u8,
    width: SeccompCmpArgLen,
    how: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, SeccompError> {
    Ok(SeccompCondition::new(argument, width, how, value)?)
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, SeccompError> {
    let both =
        rules.iter().flat_map(|(call, rules)| SECOND_TABLE.iter().map(move |table| (call | table, rules.clone())));
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter =
        SeccompFilter::new(both.collect(), SeccompAction::Allow, SeccompAction::Errno(errno.unsigned_abs()), arch)?;
    Ok(filter.try_into()?)
}
