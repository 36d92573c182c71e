//! Attacks: each is refused by the judge, or comes to nothing because the kernel refuses.

use animaworks_core::{ToolName, seams::Enforced};
use proptest::prelude::*;
use serde_json::json;

use crate::house::{House, THROUGH, TOKEN, lines};

const KINDS: &[(&str, &str)] = &[
    ("quoting", include_str!("../attacks/quoting.txt")),
    ("globbing", include_str!("../attacks/globbing.txt")),
    ("encodings", include_str!("../attacks/encodings.txt")),
    ("substitution", include_str!("../attacks/substitution.txt")),
    ("aliases", include_str!("../attacks/aliases.txt")),
    ("wrappers", include_str!("../attacks/wrappers.txt")),
    ("interpreters", include_str!("../attacks/interpreters.txt")),
    ("redirection", include_str!("../attacks/redirection.txt")),
    ("proc", include_str!("../attacks/proc.txt")),
    ("symlinks", include_str!("../attacks/symlinks.txt")),
    ("unicode", include_str!("../attacks/unicode.txt")),
    ("git", include_str!("../attacks/git.txt")),
    ("programs", include_str!("../attacks/programs.txt")),
    ("network", include_str!("../attacks/network.txt")),
    ("dangerous", include_str!("../attacks/dangerous.txt")),
    ("environment", include_str!("../attacks/environment.txt")),
    ("japanese", include_str!("../attacks/japanese.txt")),
];

/// Kinds that no kernel has to catch: they are refused before anything starts.
const REFUSED_ALWAYS: &[&str] = &["dangerous", "environment"];

/// How many run at the same time; each has a house of its own.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_attack_reads_or_writes_outside() {
    let (mut refused, mut held, mut broken) = (0, 0, Vec::new());
    let mut batches: Vec<Vec<(&str, &str)>> = vec![Vec::new(); AT_ONCE];
    for (at, (kind, text)) in KINDS.iter().enumerate() {
        batches[at % AT_ONCE].extend(lines(text).map(|line| (*kind, line)));
    }
    let results = futures_util::future::join_all(batches.into_iter().map(attack)).await;
    for (batch_refused, batch_held, batch_broken) in results {
        refused += batch_refused;
        held += batch_held;
        broken.extend(batch_broken);
    }
    let total = refused + held + broken.len();
    println!("attacks: {total}, refused before they start: {refused}, held by the kernel: {held}");
    assert!(broken.is_empty(), "{} attacks got through:\n{}", broken.len(), broken.join("\n"));
    assert!(total >= 300, "{total}");
}

async fn attack(batch: Vec<(&str, &str)>) -> (usize, usize, Vec<String>) {
    let house = House::new(None);
    let before = house.canary();
    let (mut refused, mut held, mut broken) = (0, 0, Vec::new());
    if house.held() == Enforced::Not {
        println!("this kernel has no Landlock: every attack has to be refused");
    }
    for (kind, line) in batch {
        let command = house.line(line);
        if let Err(refusal) = house.judge(&command) {
            assert!(house.bash(&command).await.is_err(), "{line}: judged {refusal} and run all the same");
            refused += 1;
            continue;
        }
        if house.held() == Enforced::Not || REFUSED_ALWAYS.contains(&kind) {
            broken.push(format!("[{kind}] not refused: {line}"));
            continue;
        }
        let text = match house.bash(&command).await {
            Ok(output) => output.text,
            Err(error) => error.to_string(),
        };
        let after = house.canary();
        if text.contains(TOKEN) || text.contains(THROUGH) || house.was_called() {
            broken.push(format!("[{kind}] saw something: {line}\n    {text}"));
        } else if after != before {
            let changed: Vec<_> = after.iter().filter(|(path, now)| before.get(*path) != Some(now)).collect();
            broken.push(format!("[{kind}] changed {changed:?}: {line}"));
            return (refused, held, broken);
        } else {
            held += 1;
        }
    }
    (refused, held, broken)
}

#[tokio::test]
async fn no_path_leads_out() {
    let house = House::new(None);
    let before = house.canary();
    let mut count = 0;
    for line in lines(include_str!("../attacks/files.paths")) {
        let (what, path) = line.split_once(' ').unwrap();
        let path = house.line(path);
        let (tool, args) = match what {
            "read" => ("Read", json!({ "path": path })),
            _ => ("Write", json!({ "path": path, "content": "x" })),
        };
        let answer = house.file_tool(tool, args).await;
        let text = answer.as_ref().map_or_else(ToString::to_string, |output| output.text.clone());
        assert!(answer.is_err() && !text.contains(TOKEN), "{line}: {text}");
        for (tool, args) in [
            ("Edit", json!({ "path": path, "old_string": "sakura", "new_string": "x" })),
            ("Grep", json!({ "path": path, "pattern": "TOKEN" })),
            ("list_directory", json!({ "path": path })),
        ] {
            if let Ok(output) = house.file_tool(tool, args).await {
                assert!(!output.text.contains(TOKEN), "{tool} {line}: {}", output.text);
            }
        }
        count += 1;
    }
    // what is found from inside is filtered by the same rule
    let found = house.file_tool("Grep", json!({ "pattern": TOKEN })).await.unwrap();
    assert!(!found.text.contains("secret.txt:"), "{}", found.text);
    let named = house.file_tool("Glob", json!({ "pattern": "**/secret*" })).await.unwrap();
    assert!(!named.text.contains("link"), "{}", named.text);
    assert_eq!(house.canary(), before);
    println!("path attacks: {count}, all refused");
}

#[tokio::test]
async fn no_text_leaves_its_fence_or_raises_its_label() {
    let house = House::new(None);
    let texts: Vec<String> = serde_json::from_str(include_str!("../attacks/texts.json")).unwrap();
    for (at, text) in texts.iter().enumerate() {
        let path = format!("work/text{at}.md");
        fs_err::write(house.own.join(&path), text).unwrap();
        for output in [
            house.file_tool("Read", json!({ "path": path })).await.unwrap(),
            house.bash(&format!("cat {path}")).await.unwrap(),
        ] {
            let fenced = output.fenced(&ToolName::new("Read").unwrap());
            assert_eq!(fenced.to_lowercase().matches("</tool_result>").count(), 1, "{fenced}");
            assert_eq!(fenced.to_lowercase().matches("<tool_result").count(), 1, "{fenced}");
            assert!(!fenced.contains("<system-reminder") && !fenced.contains("<priming"), "{fenced}");
            assert!(!fenced.lines().next().unwrap().contains("\"trusted\""), "{fenced}");
        }
        let read = house.file_tool("Read", json!({ "path": path })).await.unwrap();
        if text.contains("origin: external") {
            assert_eq!(read.trust, animaworks_core::Trust::Untrusted, "{text}");
        }
    }
}

/// Commands that are refused for what they are, whatever surrounds them.
const NEVER: &[&str] =
    &["sudo id", "rm -rf /", "nc -l 1", "eval x", "mkfs /dev/sda", "cat /etc/shadow", "echo x > /etc/passwd"];

fn dressed(command: &str, how: u8) -> String {
    match how % 12 {
        0 => format!("ls; {command}"),
        1 => format!("ls && {command}"),
        2 => format!("({command})"),
        3 => format!("{{ {command}; }}"),
        4 => format!("echo \"$({command})\""),
        5 => format!("if true; then {command}; fi"),
        6 => format!("for i in 1 2; do {command}; done"),
        7 => format!("! {command}"),
        8 => format!("ls | {command}"),
        9 => format!("true || {command} &"),
        10 => format!("case x in *) {command};; esac"),
        _ => format!("cat <({command})"),
    }
}

/// The same word in a spelling that the shell undoes.
fn spelled(word: &str, how: u8) -> String {
    match how % 5 {
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => word.chars().map(|c| format!("\\{c}")).collect(),
        3 => format!("$'{word}'"),
        _ => {
            let mut chars = word.chars();
            let first: String = chars.next().into_iter().collect();
            format!("{first}''{}", chars.as_str())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn quoting_and_nesting_never_turn_no_into_yes(
        at in 0..NEVER.len(), spelling in any::<u8>(), layers in proptest::collection::vec(any::<u8>(), 0..5)
    ) {
        let house = HOUSE.get_or_init(|| House::new(None));
        let (name, rest) = NEVER[at].split_once(' ').unwrap();
        let mut command = format!("{} {rest}", spelled(name, spelling));
        for layer in layers {
            command = dressed(&command, layer);
        }
        prop_assert!(house.judge(&command).is_err(), "{command}");
    }

    #[test]
    fn a_script_in_a_script_is_judged(at in 0..NEVER.len(), shell in 0..3_usize) {
        let house = HOUSE.get_or_init(|| House::new(None));
        let command = NEVER[at];
        let nested = match shell {
            0 => format!("bash -c '{command}'"),
            1 => format!("env sh -c \"{command}\""),
            _ => format!("find . -name x -exec sh -c '{command}' \\;"),
        };
        prop_assert!(house.judge(&nested).is_err(), "{nested}");
    }

    #[test]
    fn no_text_panics_the_judge(text in "[ -~\\n あ{}()$`'\"|&;<>]{0,120}") {
        let house = HOUSE.get_or_init(|| House::new(None));
        house.judge(&text).unwrap_or_default();
    }
}

static HOUSE: std::sync::OnceLock<House> = std::sync::OnceLock::new();
