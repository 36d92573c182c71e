//! Commands that run other commands, and interpreters.

use super::{
    grammar::{Input, Word},
    judge::assignable,
};
use crate::permission::{Reason, Refusal};

/// Programs that run a script in a language of their own.
const INTERPRETERS: &[&str] =
    &["python", "python2", "python3", "pypy3", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh"];

/// The command that a wrapper runs; nothing when this is no wrapper, or it runs none.
pub(super) fn wrapped(name: &str, args: &[Word]) -> Result<Option<Vec<Word>>, Refusal> {
    let unjudged = || Refusal::new(Reason::Unjudged, name);
    // options that take a value as their next word
    let with_value: &[&str] = match name {
        "nohup" | "setsid" | "command" | "builtin" | "busybox" | "toybox" => &[],
        "exec" => &["-a"],
        "time" => &["-f", "--format"],
        "env" => &["-u", "--unset"],
        "nice" => &["-n", "--adjustment"],
        "ionice" => &["-c", "-n"],
        "timeout" => &["-k", "--kill-after", "-s", "--signal"],
        "stdbuf" => &["-i", "-o", "-e"],
        "xargs" => {
            &["-I", "-n", "-P", "-L", "-d", "-E", "-s", "--max-args", "--max-procs", "--max-lines", "--delimiter"]
        }
        _ => return Ok(None),
    };
    if name == "command" && args.first().is_some_and(|word| matches!(word.known(), Some("-v" | "-V"))) {
        return Ok(Some(Vec::new()));
    }
    let mut rest = args;
    let mut replaced: Option<&str> = None;
    while let Some((word, after)) = rest.split_first() {
        let text = word.known().ok_or_else(unjudged)?;
        if text == "--" {
            rest = after;
            break;
        }
        if name == "env" && !text.starts_with('-') && text.contains('=') {
            assignable(text.split('=').next().unwrap_or_default())?;
            rest = after;
            continue;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let splits = name == "env"
            && (text.starts_with("-S") || text.starts_with("--s") || text.starts_with("-C") || text.starts_with("--c"));
        let reads = name == "xargs" && (text.starts_with("-a") || text.starts_with("--arg-file"));
        // several short options in one word could hide one of these
        let cluster = name == "env" && text.len() > 2 && !text.starts_with("--") && !text.starts_with("-u");
        if splits
            || reads
            || cluster
            || (name == "time" && (text.starts_with("-o") || text.starts_with("--o") || text.starts_with("-a")))
        {
            return Err(Refusal::new(Reason::Unjudged, text));
        }
        rest = after;
        if with_value.contains(&text) {
            let (value, after) = rest.split_first().ok_or_else(unjudged)?;
            if text == "-I" {
                replaced = Some(value.known().ok_or_else(unjudged)?);
            }
            rest = after;
        } else if name == "xargs" && (text.starts_with("-I") || text.starts_with("-i") || text.starts_with("--replace"))
        {
            replaced = Some(
                text.trim_start_matches("-I")
                    .trim_start_matches("-i")
                    .trim_start_matches("--replace")
                    .trim_start_matches('='),
            );
            if replaced == Some("") {
                replaced = Some("{}");
            }
        }
    }
    if name == "timeout" {
        rest = rest.split_first().map(|(_, after)| after).ok_or_else(unjudged)?;
    }
    if name == "env" && rest.is_empty() {
        return Ok(None);
    }
    let mut inner = rest.to_vec();
    if name == "xargs" {
        if let Some(mark) = replaced {
            put_in(&mut inner, mark);
        }
        if !inner.is_empty() {
            inner.push(Word::unknown());
        }
    }
    Ok(Some(inner))
}

/// An interpreter runs what the kernel will hold; but never a text that nobody has seen.
pub(super) fn interpreter(name: &str, args: &[Word], input: &Input) -> Result<(), Refusal> {
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&name) && !INTERPRETERS.contains(&versioned) {
        return Ok(());
    }
    let script = args.iter().find(|word| !word.known().is_some_and(|text| text.starts_with('-') && text != "-"));
    let inline = args.iter().any(|word| {
        word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(['c', 'e', 'm', 'r', 'E', 'V'])
            || matches!(word.text.as_str(), "--eval" | "--print" | "--version" | "--help" | "--test")
    });
    let fed = match script {
        None => !inline,
        Some(word) => word.computed || word.text == "-" || word.text.starts_with("/dev/"),
    };
    if fed && !inline && *input != Input::Here {
        return Err(Refusal::new(Reason::Unjudged, name));
    }
    Ok(())
}

/// Puts an unknown word wherever the mark stands.
pub(super) fn put_in(words: &mut [Word], mark: &str) {
    for word in words {
        if let Some(before) = word.text.find(mark) {
            let text = word.text.get(..before).unwrap_or_default().to_owned();
            *word = Word::begins(text);
        }
    }
}
