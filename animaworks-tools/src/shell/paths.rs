//! Arguments that name files, checked by the same rule as the file tools.

use std::path::Path;

use animaworks_core::seams::Enforced;

use super::{grammar::Word, judge::Judge};
use crate::permission::{Reason, Refusal, real_path};

/// Commands whose arguments are words, not files.
const WORDS: &[&str] = &[
    "echo", "printf", ":", "true", "false", "seq", "expr", "basename", "dirname", "date", "sleep", "export", "set",
    "declare", "local", "readonly", "typeset", "unset", "read", "kill", "wait", "type", "which", "hash", "exit",
    "return", "break", "continue", "shift", "tr", "yes", "uname", "whoami", "hostname", "id", "nproc", "test", "[",
    "umask", "ulimit", "jobs", "printenv", "cal",
];

/// Commands whose first word is a pattern or a program, unless an option brings it.
const PATTERN_FIRST: &[&str] =
    &["grep", "egrep", "fgrep", "rg", "ag", "sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "perl"];

/// Commands that change every file they name.
const WRITES_ALL: &[&str] = &[
    "rm", "rmdir", "touch", "mkdir", "tee", "truncate", "unlink", "chmod", "chown", "chgrp", "mkfifo", "mv", "gzip",
    "gunzip", "bzip2", "xz", "unxz", "zstd", "patch",
];

/// Commands that change the last file they name.
const WRITES_LAST: &[&str] = &["cp", "install", "ln", "rsync", "scp"];

/// Checks what a command names.
pub(super) fn check(name: &str, args: &[Word], judge: &mut Judge<'_>) -> Result<(), Refusal> {
    match name {
        "cd" | "pushd" => {
            return match args.iter().find(|arg| !matches!(arg.text.as_str(), "-P" | "-L" | "--")) {
                Some(to) => judge.enter(to),
                None => Ok(()), // home, which is the Anima's own
            };
        }
        _ if WORDS.contains(&name) => return Ok(()),
        _ => {}
    }
    let mut operands = Vec::new();
    let mut only_operands = false;
    let mut pattern_given = false;
    let mut skip_value = false;
    for arg in args {
        let text = arg.text.as_str();
        if skip_value {
            skip_value = false;
            continue;
        }
        if !only_operands && text == "--" {
            only_operands = true;
        } else if !only_operands && text.starts_with('-') && text.len() > 1 {
            option(name, arg, judge)?;
            if PATTERN_FIRST.contains(&name)
                && matches!(text, "-e" | "--regexp" | "--expression" | "--arg" | "--argjson")
            {
                pattern_given |= text != "--arg" && text != "--argjson";
                skip_value = true;
            }
            // names and dates that `find` compares with, texts that git takes
            let compares = [
                "-name",
                "-iname",
                "-path",
                "-ipath",
                "-wholename",
                "-regex",
                "-iregex",
                "-size",
                "-perm",
                "-printf",
                "-user",
                "-type",
            ];
            skip_value |= name == "find" && compares.contains(&text);
            skip_value |= name == "git"
                && matches!(
                    text,
                    "-m" | "--message" | "--author" | "--grep" | "--format" | "--pretty" | "--date" | "-S" | "-G"
                );
            skip_value |=
                matches!(name, "curl" | "wget") && matches!(text, "-H" | "--header" | "-A" | "--user-agent" | "-w");
            skip_value |= matches!(name, "cut" | "sort" | "paste" | "column" | "head" | "tail")
                && matches!(text, "-d" | "-t" | "-s" | "-n" | "-c" | "-f" | "-k");
            skip_value |= matches!(name, "python" | "python3" | "node" | "ruby" | "perl" | "php")
                && matches!(text, "-c" | "-e" | "-p" | "-r" | "-m" | "-ne" | "-pe" | "-E");
        } else if PATTERN_FIRST.contains(&name) && !pattern_given {
            pattern_given = true;
        } else {
            operands.push(arg);
        }
    }
    if name == "find" {
        // what follows -exec was judged as a command of its own
        let end = args.iter().position(|arg| matches!(arg.text.as_str(), "-exec" | "-execdir")).unwrap_or(args.len());
        let before: Vec<&Word> = args.iter().take(end).collect();
        operands.retain(|operand| before.iter().any(|word| std::ptr::eq(*word, *operand)));
        operands.retain(|operand| !matches!(operand.text.as_str(), "(" | ")" | "!" | ";" | "+"));
    }
    let in_place = matches!(name, "sed" | "gsed" | "perl")
        && args.iter().any(|arg| {
            arg.text.starts_with("--in-place")
                || arg.text.starts_with("-i")
                || arg.text.starts_with("-pi")
                || arg.text.starts_with("-ni")
        });
    let count = operands.len();
    for (at, operand) in operands.into_iter().enumerate() {
        let writes =
            WRITES_ALL.contains(&name) || in_place || WRITES_LAST.contains(&name) && at + 1 == count && count > 1;
        // the mode or the owner
        if at == 0 && matches!(name, "chmod" | "chown" | "chgrp") {
            continue;
        }
        self::operand(name, operand, writes, judge)?;
    }
    Ok(())
}

/// `--name=PATH`, `-nPATH` and `name=PATH`: whatever looks like a path behind it.
fn option(name: &str, arg: &Word, judge: &Judge<'_>) -> Result<(), Refusal> {
    let text = arg.text.as_str();
    let value = match text.split_once('=') {
        Some((_, value)) => value,
        None => text.char_indices().nth(2).and_then(|(at, _)| text.get(at..)).unwrap_or_default(),
    };
    let looks = value.starts_with(['/', '~']) || value.starts_with("../") || value == "..";
    if !looks || arg.computed {
        return Ok(());
    }
    // an option's path may be read or written: whichever it is, it has to be open
    let writes = matches!(name, "sort" | "tar" | "curl" | "wget") && !text.starts_with("-C");
    path(value, writes, judge)
}

fn operand(name: &str, word: &Word, writes: bool, judge: &Judge<'_>) -> Result<(), Refusal> {
    let text = word.text.as_str();
    if word.tilde {
        // the home of somebody named; `~` and `~/…` are the Anima's own
        let own = text == "~" || text.starts_with("~/") && !text.contains("..");
        return if own && !writes { Ok(()) } else { Err(Refusal::new(Reason::Outside, text)) };
    }
    if word.computed || word.glob {
        // what is known of it says where it leads at most
        let known = text.split(['*', '?', '[']).next().unwrap_or_default();
        let start = known.rsplit_once('/').map_or("", |(start, _)| if start.is_empty() { "/" } else { start });
        return if start.is_empty() { Ok(()) } else { path(start, false, judge) };
    }
    if text.is_empty() || text == "-" {
        return Ok(());
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return if scheme.eq_ignore_ascii_case("file") {
            path(&format!("/{}", rest.trim_start_matches('/')), writes, judge)
        } else {
            Ok(())
        };
    }
    if let Some((_, value)) = text.split_once('=').filter(|(key, _)| !key.contains('/')) {
        if value.starts_with(['/', '~']) || value.starts_with("../") || name == "dd" {
            let writes = writes || name == "dd" && text.starts_with("of=");
            return path(value, writes, judge);
        }
        if !writes {
            return Ok(());
        }
    }
    path(text, writes, judge)
}

fn path(text: &str, writes: bool, judge: &Judge<'_>) -> Result<(), Refusal> {
    if writes {
        return judge.write_path(text);
    }
    let looks = text.contains('/') || text == "..";
    let exists = || judge.places.iter().any(|place| fs_err::symlink_metadata(place.join(text)).is_ok());
    if looks || exists() {
        // a place that is not there gives nothing away
        let absent = text.starts_with('/')
            && !text.contains("..")
            && judge.walls.held != Enforced::Not
            && real_path(Path::new(text)).is_ok_and(|real| !real.exists());
        // a word with a slash that leads nowhere is no file: a branch, a ratio, a date
        let nowhere = !text.starts_with(['/', '~', '.'])
            && judge.places.iter().all(|place| {
                real_path(&place.join(text))
                    .is_ok_and(|real| real.starts_with(judge.walls.files.own()) && !real.exists())
            });
        if nowhere || absent {
            return Ok(());
        }
        if text.starts_with('~') {
            return Err(Refusal::new(Reason::Outside, text));
        }
        return judge.read_path(Path::new(text).to_str().unwrap_or(text));
    }
    Ok(())
}
