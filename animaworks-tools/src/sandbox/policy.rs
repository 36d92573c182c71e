//! From the owner's table to what the kernel lets a child touch.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use animaworks_core::seams::SandboxPolicy;

use crate::permission::FileAccess;

/// What every program needs to run at all. Of `/etc` only what name lookup, time, language and
/// certificates need; of `/proc` only the machine, no process.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
];

/// Devices that swallow what is written to them.
const SINKS: &[&str] = &["/dev/null", "/dev/full"];

/// What below a `bin` directory's parent belongs to a tool chain and holds no keys.
const TOOL_CHAIN: &[&str] = &["bin", "lib", "libexec", "share", "shims", "versions", "toolchains", "registry", "git"];

/// The policy for an Anima's commands: its files as the table says, programs in `path`, and network
/// when the owner granted it. `allow_unenforced` says what happens on a kernel without walls. Blocks.
pub fn for_commands(files: &FileAccess, path: &[PathBuf], allow_unenforced: bool) -> SandboxPolicy {
    let (mut read, mut write) = files.places();
    read.extend(system().iter().cloned());
    write.extend(SINKS.iter().map(PathBuf::from));
    for directory in path {
        read.extend(tool_chain(directory));
    }
    let table = files.table();
    SandboxPolicy {
        read,
        write,
        connect: table.ports.iter().map(|(port, _)| *port).collect(),
        connect_all: table.network.is_some(),
        local_sockets: false,
        own_process: false,
        allow_unenforced,
    }
}

/// Whether every command may read this anyway: programs and their libraries.
pub(crate) fn is_system(real: &Path) -> bool {
    let open = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store"];
    let single = ["/etc/os-release", "/etc/hosts", "/etc/timezone", "/etc/localtime", "/etc/debian_version"];
    let device = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full", "/dev/stdin", "/dev/stdout"];
    let machine = ["cpuinfo", "loadavg", "meminfo", "stat", "uptime", "version"];
    open.iter().any(|place| real.starts_with(place))
        || single.iter().chain(&device).any(|place| real == Path::new(place))
        || machine.iter().any(|name| real == Path::new("/proc").join(name))
        || real == Path::new("/dev/stderr")
}

/// The same policy with every path free of links, as the helper needs them; what is not there is left out.
pub(super) fn real(policy: &SandboxPolicy) -> SandboxPolicy {
    let known = system();
    let one = |path: &PathBuf| if known.contains(path) { Some(path.clone()) } else { fs_err::canonicalize(path).ok() };
    let real = |paths: &[PathBuf]| paths.iter().filter_map(one).collect();
    SandboxPolicy { read: real(&policy.read), write: real(&policy.write), ..policy.clone() }
}

fn system() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found: Vec<PathBuf> = SYSTEM.iter().filter_map(|path| fs_err::canonicalize(path).ok()).collect();
        found.dedup();
        found
    })
}

/// A directory of programs, and beside it what they need: `~/.cargo/bin` needs `~/.rustup`.
fn tool_chain(directory: &Path) -> Vec<PathBuf> {
    if is_system(directory) {
        return Vec::new();
    }
    let mut found = vec![directory.to_owned()];
    let Some(parent) = directory.parent() else { return found };
    // only a hidden tool directory is opened beside its programs, never a home or a project
    if parent.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
        found.extend(TOOL_CHAIN.iter().map(|name| parent.join(name)));
        if parent.file_name().is_some_and(|name| name == ".cargo") {
            found.extend(TOOL_CHAIN.iter().map(|name| parent.with_file_name(".rustup").join(name)));
            found.push(parent.with_file_name(".rustup").join("settings.toml"));
        }
    }
    found
}
