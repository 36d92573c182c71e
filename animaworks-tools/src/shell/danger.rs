//! What no table allows (exec spec §5.2): commands that become somebody else, break the machine,
//! send data out, or run text that was not there to be judged.

use super::{
    grammar::Word,
    judge::{Judge, assignable},
};
use crate::permission::{Reason, Refusal};

const PRIVILEGE: &[&str] = &[
    "sudo", "su", "doas", "pkexec", "runuser", "chroot", "nsenter", "unshare", "setpriv", "capsh", "setcap", "newgrp",
    "sg", "gosu", "su-exec", "sudoedit", "fakeroot", "bwrap", "firejail", "proot",
];

const DANGEROUS: &[&str] = &[
    "fdisk",
    "sfdisk",
    "cfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "wipefs",
    "mkswap",
    "swapon",
    "swapoff",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "telinit",
    "insmod",
    "modprobe",
    "rmmod",
    "kexec",
    "mount",
    "umount",
    "losetup",
    "sysctl",
    "iptables",
    "ip6tables",
    "nft",
    "ufw",
    "useradd",
    "usermod",
    "userdel",
    "groupadd",
    "groupmod",
    "groupdel",
    "passwd",
    "chpasswd",
    "chsh",
    "chfn",
    "visudo",
    "vipw",
    "crontab",
    "at",
    "batch",
    "systemctl",
    "service",
    "systemd-run",
    "loginctl",
    "machinectl",
    "busctl",
    "dbus-send",
    "gdbus",
    "docker",
    "podman",
    "nerdctl",
    "lxc",
    "ctr",
    "crictl",
    "virsh",
    "apt",
    "apt-get",
    "aptitude",
    "dpkg",
    "rpm",
    "yum",
    "dnf",
    "snap",
    "flatpak",
    "pacman",
    "zypper",
    "apk",
    "brew",
    "chattr",
    "debugfs",
    "strace",
    "ltrace",
    "gdb",
    "lldb",
    "perf",
    "bpftrace",
    "setfacl",
    "hwclock",
    "pkill",
    "killall",
    "skill",
    "xdg-open",
    "dmsetup",
    "cryptsetup",
    "lvm",
    "badblocks",
    "hdparm",
    "efibootmgr",
    "grub-install",
    "update-grub",
    "mknod",
    "chown",
    "chgrp",
    "dd_rescue",
    "shred",
];

const UPLOAD: &[&str] = &["nc", "ncat", "netcat", "socat", "telnet", "tftp", "ftp", "lftp", "tcpdump", "nmap"];

const UNJUDGED: &[&str] = &[
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "unalias",
    "enable",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "fc",
    "history",
    "let",
    "coproc",
    "parallel",
    "flock",
    "caller",
    "ld.so",
    "doexec",
    "at",
    "rlwrap",
    "unbuffer",
    "start-stop-daemon",
    "daemonize",
    "dtach",
    "abduco",
    "chpst",
    "watch",
    "entr",
    "inotifywait",
    "run-parts",
];

const INTERACTIVE: &[&str] = &[
    "vi", "vim", "nvim", "view", "vimdiff", "rvim", "ex", "ed", "red", "emacs", "nano", "pico", "joe", "mcedit",
    "micro", "screen", "tmux", "script", "expect", "top", "htop", "dialog", "whiptail", "mc", "ranger",
];

/// Judges what a command is and what its arguments make of it.
pub(super) fn check(name: &str, args: &[Word], judge: &Judge<'_>) -> Result<(), Refusal> {
    let refuse = |reason: Reason| Err(Refusal::new(reason, name));
    let is = |list: &[&str]| list.contains(&name);
    if is(PRIVILEGE) {
        return refuse(Reason::Privilege);
    }
    if is(DANGEROUS) || name.starts_with("mkfs") || name == "init" {
        return refuse(Reason::Dangerous);
    }
    if is(UPLOAD) {
        return refuse(Reason::Upload);
    }
    if is(UNJUDGED) || name.starts_with("ld-linux") || name.starts_with("ld-musl") {
        return refuse(Reason::Unjudged);
    }
    if is(INTERACTIVE) {
        return refuse(Reason::Interactive);
    }
    if let Some(option) = running_option(name, args) {
        return Err(Refusal::new(Reason::Unjudged, format!("{name} {option}")));
    }
    match name {
        "rm" => removal(args, judge),
        "chmod" => mode(args),
        "curl" => curl(args),
        "wget" => wget(args),
        "git" => git(args),
        "kill" => kill(args),
        "awk" | "gawk" | "mawk" | "nawk" => awk(name, args),
        "sed" | "gsed" => sed(args),
        "openssl" if has(args, &["s_client", "s_server"]) => refuse(Reason::Upload),
        "date" if args.iter().any(|arg| arg.text.starts_with("-s") || abbreviates(&arg.text, "--set", 4)) => {
            refuse(Reason::Dangerous)
        }
        "dd" if args.iter().any(|arg| arg.text.starts_with("of=/dev/") && arg.text != "of=/dev/null") => {
            refuse(Reason::Dangerous)
        }
        "aws" => cloud(args),
        "terraform" | "tofu" if has(args, &["destroy"]) || args.iter().any(|arg| arg.text.contains("auto-approve")) => {
            refuse(Reason::Dangerous)
        }
        "pulumi" | "cdk" if has(args, &["destroy"]) => refuse(Reason::Dangerous),
        "animaworks" => animaworks(args),
        "shopt" | "set" => settings(name, args),
        "read" | "readarray" | "mapfile" | "getopts" | "printf" => into_variables(name, args),
        "declare" | "typeset" | "local" | "readonly" | "export" | "unset" => declared(name, args),
        "find" => emptying(args),
        _ => Ok(()),
    }
}

/// Options by which a program runs another one.
fn running_option(name: &str, args: &[Word]) -> Option<String> {
    let options: &[&str] = match name {
        "tar" | "bsdtar" => &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--rsh-command",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
            "-I",
            "-F",
        ],
        "rsync" => &["--rsh", "--rsync-path", "-e", "--daemon"],
        "ssh" | "scp" | "sftp" => &["-o", "-F", "-S", "-D", "-L", "-R", "-w", "-J"],
        "zip" => &["-TT", "--unzip-command", "-T"],
        "split" => &["--filter"],
        "sort" => &["--compress-program"],
        "cpio" => &["--rsh-command"],
        "man" => &["-P", "--pager", "-H", "--html", "-l"],
        "rg" => &["--pre", "--hostname-bin"],
        "ag" => &["--pager"],
        "env" => &["-S", "--split-string"],
        "hash" => &["-p"],
        "mapfile" | "readarray" => &["-C"],
        "wget" => &["--use-askpass", "--execute", "-e", "--config"],
        "sqlite3" => &["-cmd", "-init"],
        "less" | "more" => &["+"],
        "gcc" | "cc" | "g++" | "c++" | "clang" => &["-wrapper", "-fplugin"],
        "find" => &["-ok", "-okdir"],
        "tee" | "cat" => &[],
        _ => return None,
    };
    args.iter().find_map(|arg| {
        let text = arg.text.as_str();
        options
            .iter()
            .any(|option| match option.strip_prefix("--") {
                // a long option may be shortened
                Some(_) => abbreviates(text, option, 5.min(option.len())),
                // a short one may carry its value, or stand behind others
                None if option.len() == 2 => {
                    text.starts_with(option)
                        || name == "tar"
                            && text.starts_with('-')
                            && !text.starts_with("--")
                            && option.chars().nth(1).is_some_and(|letter| text.contains(letter))
                }
                None => text.starts_with(option),
            })
            .then(|| text.to_owned())
    })
}

/// Whether an argument is a long option, or enough of its beginning to be taken for it.
fn abbreviates(arg: &str, option: &str, least: usize) -> bool {
    let name = arg.split('=').next().unwrap_or(arg);
    name.starts_with("--") && (name.starts_with(option) || name.len() >= least && option.starts_with(name))
}

fn has(args: &[Word], words: &[&str]) -> bool {
    args.iter().any(|arg| words.contains(&arg.text.as_str()))
}

/// Short options as letters, long ones as they are.
fn flags(args: &[Word]) -> impl Iterator<Item = char> + '_ {
    args.iter()
        .map(|arg| arg.text.as_str())
        .take_while(|text| *text != "--")
        .filter(|text| text.starts_with('-') && !text.starts_with("--"))
        .flat_map(|text| text.chars().skip(1))
}

fn operands(args: &[Word]) -> impl Iterator<Item = &Word> {
    let mut only = false;
    args.iter().filter(move |arg| {
        if arg.text == "--" && !only {
            only = true;
            return false;
        }
        only || !(arg.text.starts_with('-') && arg.text.len() > 1) || arg.text.is_empty()
    })
}

/// `rm -r` of a whole place: the root, a home, a granted root, the own directory, or of something unknown.
fn removal(args: &[Word], judge: &Judge<'_>) -> Result<(), Refusal> {
    let dangerous = |what: &str| Err(Refusal::new(Reason::Dangerous, format!("rm {what}")));
    if args.iter().any(|arg| abbreviates(&arg.text, "--no-preserve-root", 6)) {
        return dangerous("--no-preserve-root");
    }
    let recursive = flags(args).any(|flag| matches!(flag, 'r' | 'R'))
        || args.iter().any(|arg| abbreviates(&arg.text, "--recursive", 5));
    for target in operands(args) {
        let text = target.text.as_str();
        let whole = matches!(text.trim_end_matches('/'), "" | "." | ".." | "~" | "*" | "./*" | "~/*");
        if target.tilde || whole && (recursive || target.glob) {
            return dangerous(text);
        }
        if !recursive {
            continue;
        }
        // what a pattern can reach at most: the directory it starts in
        let known = text.split(['*', '?', '[']).next().unwrap_or_default();
        let start =
            if target.glob || target.computed { known.rsplit_once('/').map_or("", |(start, _)| start) } else { text };
        if target.computed || start.is_empty() && target.glob {
            return dangerous(text);
        }
        for place in &judge.places {
            let Ok(real) = crate::permission::real_path(&place.join(start)) else { continue };
            let files = judge.walls.files;
            let is_root = files.own().starts_with(&real)
                || files.data().starts_with(&real)
                || real.parent() == Some(files.own()) && target.glob
                || files.table().files.iter().any(|rule| rule.path.starts_with(&real))
                || real.components().count() <= 2;
            if is_root {
                return dangerous(text);
            }
        }
    }
    Ok(())
}

/// Removing by `find` without saying which files.
fn emptying(args: &[Word]) -> Result<(), Refusal> {
    let chosen = |arg: &Word| {
        ["-name", "-iname", "-path", "-ipath", "-regex", "-mtime", "-mmin", "-newer", "-size", "-empty"]
            .contains(&arg.text.as_str())
    };
    if has(args, &["-delete"]) && !args.iter().any(chosen) {
        return Err(Refusal::new(Reason::Dangerous, "find -delete"));
    }
    Ok(())
}

/// Modes that let everybody write, or that make a program run as its owner.
fn mode(args: &[Word]) -> Result<(), Refusal> {
    let mode = operands(args).next().map(|word| word.text.as_str()).unwrap_or_default();
    let number = u32::from_str_radix(mode, 8).ok();
    let open = match number {
        Some(bits) => bits & 0o6002 != 0,
        None => mode.split(',').any(|clause| match clause.split_once(['+', '=']) {
            Some((who, rights)) => {
                rights.contains('s') || rights.contains('w') && (who.is_empty() || who.contains(['o', 'a']))
            }
            None => false,
        }),
    };
    // `chmod +w` follows the mask and is harmless
    let plain = mode.starts_with('+') && !mode.contains('s');
    if open && !plain { Err(Refusal::new(Reason::Dangerous, format!("chmod {mode}"))) } else { Ok(()) }
}

fn curl(args: &[Word]) -> Result<(), Refusal> {
    let upload = |text: &str| Err(Refusal::new(Reason::Upload, format!("curl {text}")));
    for arg in args {
        let text = arg.text.as_str();
        let long =
            [("--data", 4), ("--form", 5), ("--upload-file", 4), ("--json", 4), ("--config", 5), ("--mail-from", 6)];
        if long.iter().any(|(option, least)| abbreviates(text, option, *least)) || text.starts_with("--url-query") {
            return upload(text);
        }
        if let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            for letter in letters.chars() {
                match letter {
                    'd' | 'F' | 'T' | 'K' | 'Q' => return upload(text),
                    // these take the rest of the word as their value
                    'A' | 'b' | 'c' | 'C' | 'D' | 'e' | 'E' | 'H' | 'm' | 'o' | 'P' | 'r' | 't' | 'u' | 'U' | 'w'
                    | 'x' | 'X' | 'y' | 'Y' | 'z' => break,
                    _ => {}
                }
            }
        }
        if text.to_ascii_lowercase().starts_with("file:") || text.contains("=@") || text.starts_with('@') {
            return upload(text);
        }
    }
    Ok(())
}

fn wget(args: &[Word]) -> Result<(), Refusal> {
    let long = [("--post-data", 5), ("--post-file", 5), ("--body-data", 5), ("--body-file", 5), ("--method", 5)];
    let found = args.iter().find(|arg| long.iter().any(|(option, least)| abbreviates(&arg.text, option, *least)));
    match found {
        Some(arg) => Err(Refusal::new(Reason::Upload, format!("wget {}", arg.text))),
        None => Ok(()),
    }
}

/// Keys of `git config` that hold only words.
const GIT_WORDS: &[&str] = &[
    "user.name",
    "user.email",
    "init.defaultbranch",
    "pull.rebase",
    "push.default",
    "color.ui",
    "core.quotepath",
    "core.autocrlf",
    "core.ignorecase",
    "merge.ff",
    "fetch.prune",
];

fn git(args: &[Word]) -> Result<(), Refusal> {
    let refuse = |what: &str| Err(Refusal::new(Reason::Unjudged, format!("git {what}")));
    let mut rest = args;
    let subcommand = loop {
        let Some((word, after)) = rest.split_first() else { return Ok(()) };
        let Some(text) = word.known() else { return refuse(&word.text) };
        rest = after;
        match text {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => rest = rest.get(1..).unwrap_or_default(),
            "--no-pager"
            | "--version"
            | "--help"
            | "--bare"
            | "--no-replace-objects"
            | "--literal-pathspecs"
            | "-P" => {}
            _ if text.starts_with("--git-dir=") || text.starts_with("--work-tree=") => {}
            // -c, --exec-path, --config-env, -p: what git runs next
            _ if text.starts_with('-') => return refuse(text),
            _ => break text,
        }
    };
    let any = |options: &[&str]| {
        rest.iter().find(|arg| {
            options.iter().any(|option| {
                if option.starts_with("--") { abbreviates(&arg.text, option, 6) } else { arg.text.starts_with(option) }
            })
        })
    };
    let running = match subcommand {
        "clone" => any(&["--upload-pack", "-u", "--config", "-c", "--template"]),
        "fetch" | "pull" | "ls-remote" | "fetch-pack" => any(&["--upload-pack", "--exec"]),
        "push" | "send-pack" => any(&["--receive-pack", "--exec"]),
        "rebase" => any(&["--exec", "-x"]),
        "grep" => any(&["-O", "--open-files-in-pager"]),
        "archive" => any(&["--exec", "--remote"]),
        "diff" | "log" | "show" | "blame" => any(&["--ext-diff", "--textconv"]),
        "init" => any(&["--template"]),
        "bisect" => rest.first().filter(|word| word.text == "run"),
        "submodule" => rest.iter().find(|word| word.text == "foreach"),
        _ => None,
    };
    if let Some(option) = running {
        return refuse(&format!("{subcommand} {}", option.text));
    }
    let known = [
        "add",
        "am",
        "annotate",
        "apply",
        "archive",
        "bisect",
        "blame",
        "branch",
        "cat-file",
        "check-ignore",
        "checkout",
        "cherry",
        "cherry-pick",
        "clean",
        "clone",
        "commit",
        "config",
        "count-objects",
        "describe",
        "diff",
        "diff-tree",
        "fetch",
        "format-patch",
        "fsck",
        "gc",
        "grep",
        "hash-object",
        "help",
        "init",
        "log",
        "ls-files",
        "ls-remote",
        "ls-tree",
        "merge",
        "merge-base",
        "mv",
        "name-rev",
        "notes",
        "pull",
        "push",
        "range-diff",
        "rebase",
        "reflog",
        "remote",
        "reset",
        "restore",
        "rev-list",
        "rev-parse",
        "revert",
        "rm",
        "shortlog",
        "show",
        "show-ref",
        "sparse-checkout",
        "stash",
        "status",
        "submodule",
        "switch",
        "symbolic-ref",
        "tag",
        "version",
        "whatchanged",
        "worktree",
        "write-tree",
    ];
    if !known.contains(&subcommand) {
        return refuse(subcommand); // an alias, or a helper that runs commands
    }
    if let Some(word) = rest.iter().find(|word| word.text.contains("ext::") || word.text.starts_with("fd::")) {
        return refuse(&word.text);
    }
    if subcommand == "config" {
        let reads = any(&["--get", "--list", "-l", "--show-origin", "--name-only"]).is_some();
        let key = operands(rest).next().map(|word| word.text.to_lowercase()).unwrap_or_default();
        let reads = reads || matches!(key.as_str(), "get" | "list") || operands(rest).count() < 2;
        let files = any(&["--file", "-f", "--global", "--system", "--blob", "--edit", "-e", "--worktree"]).is_some();
        if files || !reads && !GIT_WORDS.contains(&key.as_str()) {
            return Err(Refusal::new(Reason::Environment, format!("git config {key}")));
        }
    }
    Ok(())
}

fn kill(args: &[Word]) -> Result<(), Refusal> {
    let refuse = |what: &str| Err(Refusal::new(Reason::Dangerous, format!("kill {what}")));
    let own = i64::from(std::process::id());
    for target in args
        .iter()
        .skip_while(|arg| arg.text.starts_with('-') && arg.text.parse::<i64>().is_ok_and(|n| n > -65 && args.len() > 1))
    {
        match target.text.parse::<i64>() {
            Ok(pid) if pid <= 1 || pid == own => return refuse(&target.text),
            _ => {}
        }
    }
    if args.iter().any(|arg| arg.text == "-1") {
        return refuse("-1");
    }
    Ok(())
}

/// A program in awk may run commands and open files; one that does is refused.
fn awk(name: &str, args: &[Word]) -> Result<(), Refusal> {
    let risky = |text: &str| {
        text.contains("system")
            || text.contains("getline")
            || text.contains('|') && text.contains('"') && !text.contains("||")
            || text.contains("/inet/")
            || text.contains('@')
            || text.contains("ENVIRON")
            || text.contains("> \"")
            || text.contains(">\"")
    };
    let runs = |arg: &Word| {
        risky(&arg.text)
            || arg.text.starts_with("-l")
            || arg.text.starts_with("-i")
            || arg.text.starts_with("--lo")
            || arg.text.starts_with("--inc")
    };
    match args.iter().find(|arg| runs(arg)) {
        Some(arg) => Err(Refusal::new(Reason::Unjudged, format!("{name} {}", arg.text))),
        None => Ok(()),
    }
}

/// `e` runs a command; `w`, `W`, `r` and `R` name files that the judge would not see.
fn sed(args: &[Word]) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::new(Reason::Unjudged, format!("sed {text}")));
    let mut scripts = Vec::new();
    let mut given = false;
    let mut at = args.iter();
    while let Some(arg) = at.next() {
        let text = arg.text.as_str();
        match text {
            "-e" | "--expression" => {
                scripts.extend(at.next());
                given = true;
            }
            "-f" | "--file" => return refuse(text),
            _ if text.starts_with("--expression=") || text.starts_with("-e") => {
                scripts.push(arg);
                given = true;
            }
            _ if text.starts_with("-f") || text.starts_with("--fi") => return refuse(text),
            _ if text.starts_with('-') => {}
            _ if !given => {
                scripts.push(arg);
                given = true;
            }
            _ => {}
        }
    }
    for script in scripts {
        if script.computed && script.text.is_empty() {
            continue; // held by the kernel; the text is a value put into a pattern
        }
        if sed_runs(&script.text) {
            return refuse(&script.text);
        }
    }
    Ok(())
}

fn sed_runs(script: &str) -> bool {
    let script = script.trim_start_matches("--expression=").trim_start_matches("-e");
    script.split([';', '\n', '}', '{']).any(|command| {
        let command = command.trim();
        let after_address =
            command.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | ',' | '!' | ' ' | '~' | '+'));
        // an address in slashes ends at the last slash before the command's letter
        let letter = match after_address.strip_prefix('/') {
            Some(rest) => rest.rsplit_once('/').map_or("", |(_, after)| after).trim_start_matches([',', '!', ' ', 'I']),
            None => after_address,
        };
        if let Some(body) = letter.strip_prefix('s').filter(|body| body.starts_with(|c: char| !c.is_alphanumeric())) {
            let mark = body.chars().next().unwrap_or('/');
            let flags = body.rsplit(mark).next().unwrap_or_default();
            return flags.contains(['e', 'w']) && flags.chars().all(|c| !c.is_whitespace() || flags.contains('w'));
        }
        letter.starts_with(['w', 'W', 'r', 'R']) && letter.chars().nth(1).is_none_or(|c| c == ' ' || c == '/')
            || letter == "e"
            || letter.starts_with("e ")
            || after_address
                .rsplit('/')
                .next()
                .is_some_and(|flags| flags == "e" || flags.ends_with("ge") || flags.starts_with("w "))
    })
}

fn cloud(args: &[Word]) -> Result<(), Refusal> {
    let words: Vec<&str> = operands(args).map(|word| word.text.as_str()).collect();
    let refused = words.iter().enumerate().any(|(at, service)| {
        let verb = words.get(at + 1).copied().unwrap_or_default();
        let begins = |list: &[&str]| list.iter().any(|start| verb.starts_with(start));
        match *service {
            "sso" => verb == "login",
            "sts" => verb.starts_with("assume-role"),
            "configure" => verb == "set" || verb.is_empty(),
            "ecs" => begins(&["execute-command", "run-task", "update-service", "delete"]),
            "ssm" => begins(&["send-command", "start-session"]),
            "lambda" => begins(&["invoke", "delete", "update"]),
            "ec2" => begins(&["terminate", "delete"]),
            "rds" | "dynamodb" | "eks" => begins(&["delete"]),
            "s3" => matches!(verb, "rm" | "rb" | "mv" | "cp" | "sync"),
            "s3api" => begins(&["delete", "put"]),
            "cloudformation" => begins(&["delete", "update"]),
            "iam" => begins(&["create", "delete", "put", "attach", "detach", "add", "update", "remove"]),
            _ => false,
        }
    });
    if refused { Err(Refusal::new(Reason::Dangerous, format!("aws {}", words.join(" ")))) } else { Ok(()) }
}

/// An Anima does not run the house it lives in.
fn animaworks(args: &[Word]) -> Result<(), Refusal> {
    let word = operands(args).next().map(|word| word.text.as_str()).unwrap_or_default();
    let harmless =
        matches!(word, "status" | "version" | "send" | "board" | "help") || has(args, &["--version", "--help"]);
    if harmless { Ok(()) } else { Err(Refusal::new(Reason::Dangerous, format!("animaworks {word}"))) }
}

fn settings(name: &str, args: &[Word]) -> Result<(), Refusal> {
    let plain = |arg: &Word| {
        let letters = arg.text.trim_start_matches(['-', '+']);
        letters.chars().all(|c| "euxo".contains(c)) || matches!(letters, "pipefail" | "errexit" | "nounset" | "xtrace")
    };
    if name == "set" && args.iter().all(plain) { Ok(()) } else { Err(Refusal::new(Reason::Environment, name)) }
}

fn into_variables(name: &str, args: &[Word]) -> Result<(), Refusal> {
    if name == "printf" {
        return match args.first() {
            Some(option) if option.text.starts_with("-v") => Err(Refusal::new(Reason::Environment, "printf -v")),
            _ => Ok(()),
        };
    }
    for word in operands(args) {
        if word.computed {
            return Err(Refusal::new(Reason::Environment, name));
        }
        if word.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !word.text.is_empty() {
            assignable(&word.text)?;
        }
    }
    Ok(())
}

fn declared(name: &str, args: &[Word]) -> Result<(), Refusal> {
    if flags(args).any(|flag| matches!(flag, 'n' | 'f')) && name != "unset" {
        return Err(Refusal::new(Reason::Environment, name));
    }
    for word in operands(args) {
        match word.known() {
            Some(text) => assignable(text.split('=').next().unwrap_or_default())?,
            None => return Err(Refusal::new(Reason::Environment, name)),
        }
    }
    Ok(())
}
