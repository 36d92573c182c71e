//! The judgement about a script: every simple command at any depth, by its words.

use std::path::{Path, PathBuf};

use animaworks_core::seams::Enforced;

use super::{
    danger,
    grammar::{self, Command, Input, Script, Word},
    paths,
    wrap::{interpreter, put_in, wrapped},
};
use crate::{
    permission::{CommandRule, FileAccess, Reason, Refusal},
    sandbox::policy::is_system,
};

/// How deep scripts may hold scripts (`sh -c` in `sh -c`).
const MAX_NESTING: usize = 6;

/// What a command is judged against.
#[derive(Debug, Clone, Copy)]
pub struct Walls<'a> {
    pub(super) files: &'a FileAccess,
    pub(super) held: Enforced,
}

impl<'a> Walls<'a> {
    /// An Anima's rules, and how far the kernel holds what it starts.
    pub fn new(files: &'a FileAccess, held: Enforced) -> Self {
        Self { files, held }
    }
}

/// A command that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Its words, when it is one plain command that needs no shell.
    pub plain: Option<Vec<String>>,
}

/// Judges a script. Blocks, to see where its paths lead.
///
/// # Errors
///
/// [`Refusal`] with the first thing in it that is not allowed.
pub fn judge(script: &str, walls: &Walls<'_>) -> Result<Judged, Refusal> {
    let read = grammar::read(script)?;
    let mut judge = Judge { walls: *walls, places: vec![walls.files.own().to_owned()], round: 0 };
    judge.script(&read, 0)?;
    let plain = match read.commands.as_slice() {
        [one] if read.single => {
            let words: Vec<String> = one.words.iter().map(|word| word.text.clone()).collect();
            words.first().is_some_and(|name| !BUILTINS.contains(&name.as_str())).then_some(words)
        }
        _ => None,
    };
    Ok(Judged { plain })
}

pub(super) struct Judge<'a> {
    pub(super) walls: Walls<'a>,
    /// Where the script may stand at some time: the own directory, and wherever it goes.
    pub(super) places: Vec<PathBuf>,
    /// How often the script was gone through; a directory that is not there yet is entered the first time only.
    round: usize,
}

/// Commands of the shell itself, and those that only show or compare; they need no line in the table.
pub(super) const BUILTINS: &[&str] = &[
    ":",
    "[",
    "break",
    "cd",
    "command",
    "continue",
    "declare",
    "disown",
    "echo",
    "exec",
    "exit",
    "export",
    "false",
    "getopts",
    "hash",
    "jobs",
    "kill",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "sleep",
    "test",
    "times",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unset",
    "wait",
];

/// Words of the shell's own syntax, which are no commands.
const RESERVED: &[&str] = &[
    "!", "{", "}", "[[", "]]", "((", "))", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "until", "while",
];

/// Variables that decide what the next command is, or what it loads.
fn is_steering(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "IFS",
        "ENV",
        "HOME",
        "CDPATH",
        "SHELL",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "PS4",
        "PROMPT_COMMAND",
        "SHELLOPTS",
        "BASHOPTS",
        "GLOBIGNORE",
        "LESSOPEN",
        "LESSCLOSE",
        "MANPAGER",
        "TMPDIR",
        "NODE_OPTIONS",
        "NODE_PATH",
        "RUBYOPT",
        "RUBYLIB",
        "GCONV_PATH",
        "LOCPATH",
        "MAKEFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC",
        "JAVA_TOOL_OPTIONS",
        "CLASSPATH",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "TERMINFO",
        "NLSPATH",
        "HOSTALIASES",
        "XDG_CONFIG_HOME",
        "INPUTRC",
    ];
    const FAMILIES: &[&str] = &[
        "LD_",
        "DYLD_",
        "BASH_",
        "GIT_",
        "PYTHON",
        "PERL",
        "CARGO_",
        "NPM_",
        "npm_",
        "ANIMAWORKS_",
        "GLIBC_",
        "MALLOC_",
    ];
    NAMES.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Programs that only read or arrange what they are given. Without kernel walls, no others run.
const HARMLESS: &[&str] = &[
    "base64",
    "basename",
    "cal",
    "cat",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cp",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "egrep",
    "expand",
    "expr",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "grep",
    "head",
    "hexdump",
    "hostname",
    "id",
    "join",
    "jq",
    "ls",
    "md5sum",
    "mkdir",
    "mv",
    "nl",
    "nproc",
    "od",
    "paste",
    "printenv",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sort",
    "stat",
    "strings",
    "tac",
    "tail",
    "tee",
    "touch",
    "tr",
    "tree",
    "tsort",
    "uname",
    "unexpand",
    "uniq",
    "wc",
    "which",
    "whoami",
    "xxd",
    "yes",
];

/// Shells: what they are given is judged as a script.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

impl Judge<'_> {
    pub(super) fn script(&mut self, script: &Script, nesting: usize) -> Result<(), Refusal> {
        if nesting > MAX_NESTING {
            return Err(Refusal::new(Reason::TooLong, ""));
        }
        if script.arithmetic && self.walls.held == Enforced::Not {
            return Err(Refusal::new(Reason::NeedsWalls, "$(( ))"));
        }
        // a loop comes back to its first command from wherever it has gone
        let round = self.round;
        loop {
            let known = self.places.len();
            for command in &script.commands {
                self.command(command, nesting)?;
            }
            if self.places.len() == known {
                break;
            }
            self.round += 1;
        }
        self.round = round;
        // after the commands, which know where the script may stand by then
        for redirect in &script.redirects {
            self.redirect(&redirect.target, redirect.writes)?;
        }
        Ok(())
    }

    fn command(&mut self, command: &Command, nesting: usize) -> Result<(), Refusal> {
        for name in &command.assigned {
            assignable(name)?;
        }
        if command.words.is_empty() {
            return Ok(());
        }
        self.words(&command.words, &command.input, nesting)
    }

    /// A command by its words; `input` is where it reads from.
    pub(super) fn words(&mut self, words: &[Word], input: &Input, nesting: usize) -> Result<(), Refusal> {
        if nesting > MAX_NESTING {
            return Err(Refusal::new(Reason::TooLong, ""));
        }
        let Some((name, args)) = words.split_first() else {
            return Err(Refusal::new(Reason::Empty, ""));
        };
        let Some(given) = name.known().filter(|name| !name.is_empty()) else {
            return Err(Refusal::new(Reason::Computed, &name.text));
        };
        if RESERVED.contains(&given) {
            // the grammar sees a command where the shell sees its own word, or the other way round
            return Err(Refusal::new(Reason::NotUnderstood, given));
        }
        let name = self.program(given)?;
        if let Some(inner) = wrapped(&name, args)? {
            return if inner.is_empty() { Ok(()) } else { self.words(&inner, input, nesting + 1) };
        }
        if SHELLS.contains(&name.as_str()) {
            return self.shell(&name, words, args, input, nesting);
        }
        danger::check(&name, args, self)?;
        interpreter(&name, args, input)?;
        if name == "find" || name == "fd" {
            self.found(args, input, nesting)?;
        }
        self.listed(given, &name, words)?;
        paths::check(&name, args, self)
    }

    /// The program's own name. One with a directory must be a program of the system, or be listed as written.
    fn program(&self, given: &str) -> Result<String, Refusal> {
        let base = given.rsplit('/').next().unwrap_or(given).to_owned();
        if base.is_empty() {
            return Err(Refusal::new(Reason::Computed, given));
        }
        if given.contains('/') {
            let real = crate::permission::real_path(&self.walls.files.own().join(given))
                .map_err(|error| Refusal::new(Reason::BadPath, format!("{given} ({})", error.kind())))?;
            if !is_system(&real) {
                // somebody's own script: whatever its name, it is not the program of that name
                self.read_path(given)?;
                let table = self.walls.files.table();
                let listed = table.commands.iter().any(|rule| rule.words.first().is_some_and(|word| word == given));
                if !listed && table.all_commands.is_none() {
                    return Err(Refusal::new(Reason::NotListed, given));
                }
                if self.walls.held == Enforced::Not {
                    return Err(Refusal::new(Reason::NeedsWalls, given));
                }
            }
        }
        Ok(base)
    }

    /// `sh -c SCRIPT` is judged as that script, `sh FILE` runs a file, `sh` alone runs what it is fed.
    fn shell(
        &mut self,
        name: &str,
        words: &[Word],
        args: &[Word],
        input: &Input,
        nesting: usize,
    ) -> Result<(), Refusal> {
        let unjudged = || Refusal::new(Reason::Unjudged, name);
        let mut rest = args;
        let mut inline = false;
        while let Some((word, after)) = rest.split_first() {
            let text = word.known().ok_or_else(unjudged)?;
            if !text.starts_with(['-', '+']) || text == "-" {
                break;
            }
            rest = after;
            match text {
                "--" => break,
                "--login" | "--norc" | "--noprofile" | "--posix" => {}
                "--version" | "--help" => return Ok(()),
                _ if text.starts_with("--") => return Err(unjudged()),
                _ if text.contains(['s', 'i', 'O', 'D']) => return Err(unjudged()),
                _ => {
                    inline |= text.contains('c');
                    if text.contains('o') {
                        rest = rest.split_first().map(|(_, after)| after).unwrap_or_default();
                    }
                }
            }
        }
        let script = rest.first().ok_or_else(unjudged)?;
        if inline {
            let text = script.known().ok_or_else(unjudged)?;
            return self.script(&grammar::read(text)?, nesting + 1);
        }
        let file = script.known().ok_or_else(unjudged)?;
        if file == "-" || file.starts_with("/dev/") || *input == Input::Pipe && file.is_empty() {
            return Err(unjudged());
        }
        if self.walls.held == Enforced::Not {
            return Err(Refusal::new(Reason::NeedsWalls, file));
        }
        self.listed(name, name, words)?;
        self.read_path(file)?;
        paths::check(name, rest, self)
    }

    /// `find … -exec COMMAND ;`: the command is judged, with an unknown word where the file's name goes.
    fn found(&mut self, args: &[Word], input: &Input, nesting: usize) -> Result<(), Refusal> {
        let mut at = 0;
        while let Some(word) = args.get(at) {
            at += 1;
            if !matches!(
                word.text.as_str(),
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
            ) {
                continue;
            }
            let mut inner: Vec<Word> =
                args.iter().skip(at).take_while(|word| !matches!(word.text.as_str(), ";" | "+")).cloned().collect();
            at += inner.len();
            put_in(&mut inner, "{}");
            self.words(&inner, input, nesting + 1)?;
        }
        Ok(())
    }

    /// Whether the table lets this command run.
    fn listed(&self, given: &str, name: &str, words: &[Word]) -> Result<(), Refusal> {
        let table = self.walls.files.table();
        let args = words.get(1..).unwrap_or_default();
        if let Some(rule) = table.denied_commands.iter().find(|rule| denies(rule, name, args)) {
            return Err(Refusal::new(Reason::Denied, format!("{} ({})", rule.words.join(" "), rule.source)));
        }
        let builtin = BUILTINS.contains(&name) && !given.contains('/');
        let allowed = builtin
            || table.all_commands.is_some()
            || table.commands.iter().any(|rule| allows(rule, given, name, args));
        if !allowed {
            return Err(Refusal::new(Reason::NotListed, name));
        }
        if self.walls.held == Enforced::Not && !builtin {
            if !HARMLESS.contains(&name) {
                return Err(Refusal::new(Reason::NeedsWalls, name));
            }
            // what these words become could be a link out of every open place
            if let Some(word) = args.iter().find(|word| word.known().is_none()) {
                return Err(Refusal::new(Reason::NeedsWalls, format!("{name} {}", word.text)));
            }
        }
        Ok(())
    }

    fn redirect(&mut self, target: &Word, writes: bool) -> Result<(), Refusal> {
        let Some(path) = target.known() else {
            // the kernel holds it; without a kernel nobody would
            return if self.walls.held == Enforced::Not || target.tilde || target.text.starts_with('/') {
                Err(Refusal::new(Reason::Computed, &target.text))
            } else {
                Ok(())
            };
        };
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            return Err(Refusal::new(Reason::Upload, path));
        }
        if writes { self.write_path(path) } else { self.read_path(path) }
    }

    /// Goes to another directory: from there on, relative paths may start there, too.
    pub(super) fn enter(&mut self, to: &Word) -> Result<(), Refusal> {
        let Some(path) = to.known() else {
            return if to.tilde && to.text == "~" { Ok(()) } else { Err(Refusal::new(Reason::Computed, &to.text)) };
        };
        if path == "-" {
            return Ok(());
        }
        for place in self.places.clone() {
            let real = self.walls.files.check_from(&place, path, crate::permission::Want::Read);
            let system = crate::permission::real_path(&place.join(path)).ok().filter(|real| is_system(real));
            let real = match (real, system) {
                (_, Some(real)) | (Ok(real), None) => real,
                (Err(refusal), None) => return Err(refusal),
            };
            if !self.places.contains(&real) && (self.round == 0 || real.is_dir()) {
                self.places.push(real);
            }
        }
        if self.places.len() > 64 {
            return Err(Refusal::new(Reason::TooLong, path));
        }
        Ok(())
    }

    /// Whether this may be read, from wherever the script may stand.
    pub(super) fn read_path(&self, path: &str) -> Result<(), Refusal> {
        self.each_place(path, |place| match self.walls.files.check_from(place, path, crate::permission::Want::Read) {
            Err(_) if crate::permission::real_path(&place.join(path)).is_ok_and(|real| is_system(&real)) => Ok(()),
            checked => checked.map(drop),
        })
    }

    /// Whether this may be written, from wherever the script may stand.
    pub(super) fn write_path(&self, path: &str) -> Result<(), Refusal> {
        if matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/full") {
            return Ok(());
        }
        self.each_place(path, |place| {
            self.walls.files.check_from(place, path, crate::permission::Want::Write).map(drop)
        })
    }

    fn each_place(&self, path: &str, check: impl Fn(&Path) -> Result<(), Refusal>) -> Result<(), Refusal> {
        if Path::new(path).is_absolute() {
            return check(self.walls.files.own());
        }
        self.places.iter().try_for_each(|place| check(place))
    }
}

/// Whether a script may set this variable.
pub(super) fn assignable(name: &str) -> Result<(), Refusal> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && !is_steering(name) { Ok(()) } else { Err(Refusal::new(Reason::Environment, name)) }
}

/// A denied command: the program, and each further word somewhere among the arguments, whichever way it is written.
fn denies(rule: &CommandRule, name: &str, args: &[Word]) -> bool {
    let Some((program, words)) = rule.words.split_first() else { return false };
    if program.rsplit('/').next() != Some(name) {
        return false;
    }
    words.iter().all(|wanted| {
        args.iter().any(|arg| {
            if arg.computed || arg.text == *wanted {
                return true;
            }
            let short = |text: &str| text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).map(str::to_owned);
            match (short(wanted), short(&arg.text)) {
                (Some(wanted), Some(given)) => {
                    wanted.chars().all(|letter| given.chars().any(|c| c.eq_ignore_ascii_case(&letter)))
                }
                // `-r` and `--recursive`
                (Some(wanted), None) => wanted.chars().next().is_some_and(|letter| {
                    wanted.len() == 1 && arg.text.strip_prefix("--").is_some_and(|long| long.starts_with(letter))
                }),
                _ => false,
            }
        })
    })
}

/// A listed command: the program, and its first arguments as written.
fn allows(rule: &CommandRule, given: &str, name: &str, args: &[Word]) -> bool {
    let Some((program, words)) = rule.words.split_first() else { return false };
    let same = if program.contains('/') { program == given } else { program == name };
    same && words.len() <= args.len() && words.iter().zip(args).all(|(wanted, arg)| arg.known() == Some(wanted))
}

#[cfg(test)]
mod tests;
