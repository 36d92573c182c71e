//! The memory pack through the real binary: limits, crashes, no network, and the coding agent it is made for.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use animaworks_core::fs::Lock;
use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::{Ended, Program, finish},
};
use serde_json::{Value, json};

fn memory(program: &Program) -> PathBuf {
    program.home().join(".claude/memory")
}

fn write(program: &Program, file: &str, heading: &str, body: &str) -> i32 {
    program.run(["pack", "write", "--file", file, "--heading", heading, "--body", body]).code
}

#[test]
fn what_is_written_is_found_and_what_is_refused_says_why() {
    let program = Program::new();
    assert_eq!(
        write(&program, "decisions.md", "2026-06-11 決定: 締め", "請求は毎月25日に締める。東京駅の店舗も同じ。"),
        0
    );
    for question in ["請求", "東京駅", "締 店舗"] {
        let found: Value = serde_json::from_str(&program.ok(["--json", "pack", "search", question])).unwrap();
        assert_eq!(found[0]["line"], 1, "{question}: {found}");
        assert_eq!(found[0]["source"], "decisions.md");
    }
    let again = program.run([
        "pack",
        "write",
        "--file",
        "decisions.md",
        "--heading",
        "2026-06-11 決定: 締め",
        "--body",
        " 請求は毎月25日に締める。東京駅の店舗も同じ。 ",
    ]);
    assert_eq!(again.code, 6);
    assert!(again.err.contains("already stored") && again.err.contains("決定: 締め"), "{}", again.err);
    assert_eq!(write(&program, "decisions.md", "昨日の決定", "x"), 6);
    assert_eq!(write(&program, "decisions.md", "2026-06-12 full", &"x".repeat(10_000)), 6);
    assert_eq!(write(&program, "../outside.md", "2026-06-12 x", "y"), 6);
    assert_eq!(fs::read_to_string(memory(&program).join(".pack/.gitignore")).unwrap(), "*\n");
    // nothing but the memory was touched
    let names: Vec<_> = fs::read_dir(program.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".claude"]);
}

#[test]
fn the_whole_pack_works_without_any_network() {
    let program = Program::new();
    assert_eq!(write(&program, "CONTEXT.md", "2026-06-11 now", "The lantern is being repaired."), 0);
    let binary = Program::binary();
    let alone = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-rn"]).arg(&binary).args(args).env_clear();
        command.env("HOME", program.home()).env("PATH", "/usr/bin:/bin").env("LANG", "C").current_dir(program.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    };
    let probe = Command::new("unshare").args(["-rn", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("skipped: this machine does not give out network namespaces");
        return;
    }
    fs::write(program.home().join("notes.txt.md"), "## 2026-01-01 note\nabout the lantern\n").unwrap();
    for args in [
        &["pack", "reindex"][..],
        &["pack", "search", "lantern"],
        &["pack", "write", "--file", "a.md", "--heading", "2026-06-11 a", "--body", "b"],
        &["pack", "rotate"],
        &["pack", "report"],
        &["pack", "import", "notes.txt.md"],
        &["pack", "install"],
        &["pack", "doctor"],
        &["pack", "uninstall"],
    ] {
        let ended = alone(args);
        assert_eq!(ended.code, 0, "{args:?}: {ended:#?}");
    }
    let context = alone(&["pack", "context"]);
    assert!(context.out.contains("The lantern is being repaired.") && context.out.chars().count() <= 4_000);
    assert!(!program.home().join(".claude/skills/animaworks-pack").exists(), "uninstall leaves no trace");
}

#[test]
fn killed_at_any_moment_a_memory_is_the_old_one_or_the_new_one() {
    let program = Program::new();
    let blocks: Vec<String> =
        (10..40).rev().map(|n| format!("## 2026-05-{:02} block {n}\nbody of block {n}\n\n", n % 28 + 1)).collect();
    let whole = format!("# Now\n\n{}", blocks.concat());
    let file = memory(&program).join("CONTEXT.md");
    let archive = memory(&program).join("archive/context_archive.md");
    let mut moment = 1_u64;
    let notes = program.home().join("notes.md");
    let note = |n: usize| format!("what note {n} says, and it says a good deal");
    let text: String = (0..400).map(|n| format!("## 2026-04-01 note {n}\n{}\n\n", note(n))).collect();
    fs::write(&notes, text).unwrap();
    let imported = |program: &Program| -> String {
        let dir = memory(program).join("imported/notes");
        let Ok(entries) = fs::read_dir(dir) else { return String::new() };
        let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some());
        files.filter(|path| path.extension().unwrap() == "md").map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    for round in 0..24_u64 {
        fs::create_dir_all(memory(&program)).unwrap();
        fs::write(&file, &whole).unwrap();
        if archive.exists() && round % 4 == 0 {
            fs::remove_file(&archive).unwrap();
        }
        let args: &[&str] = match round % 4 {
            3 => &["pack", "import", "notes.md"],
            0 => &["pack", "rotate"],
            1 => &["pack", "write", "--file", "CONTEXT.md", "--heading", "2026-06-11 new", "--body", "new body"],
            _ => &["pack", "reindex", "--full"],
        };
        let mut child = program.command(args).spawn().unwrap();
        moment = moment * 6_364_136_223 % 1_000_003;
        std::thread::sleep(Duration::from_millis(moment % 40));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let kept = fs::read_to_string(&archive).unwrap_or_default();
        for n in 10..40 {
            let body = format!("body of block {n}\n");
            assert!(text.contains(&body) || kept.contains(&body), "round {round}: block {n} is lost");
            assert!(kept.matches(&body).count() <= 1, "round {round}: block {n} is archived twice");
        }
        let count = text.matches("\n## ").count();
        assert!([5, 30, 31].contains(&count), "round {round}: {count} blocks are a mix");
        let taken = imported(&program);
        for n in 0..400 {
            assert!(taken.matches(&note(n)).count() <= 1, "round {round}: note {n} is there twice");
        }
    }
    program.ok(["pack", "import", "notes.md"]);
    let taken = imported(&program);
    for n in 0..400 {
        assert_eq!(taken.matches(&note(n)).count(), 1, "note {n}");
    }
    program.ok(["pack", "reindex"]);
    let found: Value = serde_json::from_str(&program.ok(["--json", "pack", "search", "block 39"])).unwrap();
    assert!(!found.as_array().unwrap().is_empty());
}

/// A hook of an installed plugin, run as an agent runs it: in a group of its own, with a pipe for what it says.
fn hook(program: &Program, place: &str, name: &str, args: &[&str]) -> (Ended, u32) {
    let mut command = Command::new(program.home().join(place).join("animaworks-pack/hooks").join(name));
    command.args(args).env_clear().env("HOME", program.home()).env("PATH", "/usr/bin:/bin").env("LANG", "C");
    command.current_dir(program.home()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id();
    (finish(child), id)
}

fn blocks(program: &Program) -> usize {
    fs::read_to_string(memory(program).join("CONTEXT.md")).unwrap().matches("## ").count()
}

#[test]
fn the_stop_hook_waits_for_nothing_and_what_it_started_outlives_its_group() {
    let program = Program::new();
    for n in 1..=7 {
        assert_eq!(write(&program, "CONTEXT.md", &format!("2026-06-0{n} step {n}"), &format!("Did step {n}.")), 0);
    }
    program.ok(["pack", "install"]);
    // somebody else is writing, so the rotation cannot even begin
    let lock = Lock::wait(&memory(&program).join(".pack/write.lock")).unwrap();
    let begun = Instant::now();
    let (ended, group) = hook(&program, ".claude/skills", "memory_stop.sh", &[]);
    let took = begun.elapsed();
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, "", ""));
    println!("the hook took {took:?} while the memory was locked");
    // the agent ends everything it started
    let killed = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).stderr(Stdio::null()).status();
    assert!(killed.is_ok());
    assert_eq!(blocks(&program), 7, "the hook did not wait for the rotation");
    drop(lock);
    let begun = Instant::now();
    while blocks(&program) != 5 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the rotation was lost");
        std::thread::sleep(Duration::from_millis(5));
    }
    let archive = fs::read_to_string(memory(&program).join("archive/context_archive.md")).unwrap();
    assert!(archive.contains("Did step 1.") && archive.contains("Did step 2."));
}

#[test]
fn what_the_end_of_a_session_did_not_get_to_is_done_when_the_next_one_begins() {
    let program = Program::new();
    for n in 1..=7 {
        assert_eq!(write(&program, "CONTEXT.md", &format!("2026-06-0{n} step {n}"), &format!("Did step {n}.")), 0);
    }
    program.ok(["pack", "install"]);
    let (started, _) = hook(&program, ".claude/skills", "memory_start.sh", &[]);
    assert!(started.out.contains("Did step 7."), "{started:?}");
    assert_eq!(blocks(&program), 5);
    let found: Value = serde_json::from_str(&program.ok(["--json", "pack", "search", "step 1"])).unwrap();
    assert_eq!(found[0]["source"], "archive/context_archive.md");
}

#[test]
fn plugins_of_three_agents_come_and_go_without_a_trace() {
    let program = Program::new();
    assert_eq!(write(&program, "CONTEXT.md", "2026-06-11 now", "The lantern is being repaired."), 0);
    let list = program.home().join(".codex/hooks.json");
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    let others = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/bell"}]}]}, "more": 1});
    fs::write(&list, others.to_string()).unwrap();
    for _ in 0..2 {
        program.ok(["pack", "install", "--agent", "claude", "--agent", "codex", "--agent", "gemini"]);
    }
    let doctor: Value = serde_json::from_str(&program.ok(["--json", "pack", "doctor"])).unwrap();
    assert!(doctor["plugins"].as_array().unwrap().iter().all(|plugin| plugin["installed"] == true), "{doctor}");
    let hooks: Value = serde_json::from_str(&fs::read_to_string(&list).unwrap()).unwrap();
    assert_eq!(hooks["hooks"]["Stop"].as_array().unwrap().len(), 2, "{hooks}");
    let command = hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
    let script = program.home().join(".codex/skills/animaworks-pack/hooks/memory_start.sh");
    assert_eq!(command, format!("\"{}\"", script.display()));
    for place in [".claude/skills", ".codex/skills"] {
        let (started, _) = hook(&program, place, "memory_start.sh", &[]);
        assert!(started.out.contains("The lantern is being repaired."), "{place}: {started:?}");
    }
    let (started, _) = hook(&program, ".gemini/extensions", "memory_start.sh", &["--hook"]);
    let told: Value = serde_json::from_str(&started.out).unwrap();
    let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("The lantern is being repaired."));
    let extension = program.home().join(".gemini/extensions/animaworks-pack");
    for file in ["gemini-extension.json", "hooks/hooks.json"] {
        serde_json::from_str::<Value>(&fs::read_to_string(extension.join(file)).unwrap()).unwrap();
    }
    program.ok(["pack", "uninstall"]);
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(&list).unwrap()).unwrap(), others);
    for place in [".claude/skills", ".codex/skills", ".gemini/extensions"] {
        assert_eq!(fs::read_dir(program.home().join(place)).unwrap().count(), 0, "{place}");
    }
    fs::remove_file(&list).unwrap();
    program.ok(["pack", "install", "--agent", "codex"]);
    assert!(list.is_file());
    program.ok(["pack", "uninstall"]);
    assert!(!list.exists(), "a list that was only ours goes away");
}

#[test]
fn an_anima_takes_a_memory_and_gives_it_back() {
    let program = Program::new();
    program.ok(["init", "--blank", "sakura"]);
    let pack = program.home().join("pack");
    fs::create_dir_all(&pack).unwrap();
    fs::write(pack.join("lamp.md"), "## 2026-05-01 Lamp\nThe brass lantern stands in the hall.\n").unwrap();
    program.ok(["pack", "adopt", "--anima", "sakura", "pack"]);
    let adopted = program.data().join("animas/sakura/knowledge/pack/lamp.md");
    assert!(fs::read_to_string(&adopted).unwrap().contains("origin: human"));
    let found = program.ok(["memory", "search", "sakura", "brass lantern"]);
    assert!(found.contains("knowledge/pack/lamp.md"), "{found}");
    fs::write(program.data().join("animas/sakura/knowledge/printer.md"), "# Printer\n\nIt is on the third floor.\n")
        .unwrap();
    program.ok(["pack", "give", "--anima", "sakura", "given"]);
    let given = |name: &str| fs::read_to_string(program.home().join("given/imported/sakura").join(name)).unwrap();
    assert!(given("printer.md").contains(" Printer\nIt is on the third floor."));
    assert!(given("pack/lamp.md").contains("The brass lantern stands in the hall."));
    let again: Value =
        serde_json::from_str(&program.ok(["--json", "pack", "give", "--anima", "sakura", "given"])).unwrap();
    assert_eq!((&again["taken"], &again["known"]), (&0.into(), &2.into()));
    assert_eq!(program.run(["pack", "adopt", "--anima", "nobody", "pack"]).code, 5);
    assert_eq!(program.run(["pack", "adopt", "--anima", "sakura", "nowhere"]).code, 5);
}

#[test]
fn an_import_says_what_it_left_and_why() {
    let program = Program::new();
    let memory = program.home().join(".claude/projects/-work/memory");
    fs::create_dir_all(&memory).unwrap();
    fs::write(memory.join("MEMORY.md"), "- [a](a.md)\n").unwrap();
    fs::write(memory.join("a.md"), "## 2026-05-01 Lamp\nIt stands in the hall.\n").unwrap();
    let dry = program.ok(["pack", "import", "--dry-run"]);
    assert!(dry.contains("would take 1") && dry.contains("MEMORY.md"), "{dry}");
    assert!(!program.home().join(".claude/memory/imported").exists());
    program.ok(["pack", "import"]);
    let found: Value = serde_json::from_str(&program.ok(["--json", "pack", "search", "hall"])).unwrap();
    assert_eq!(found[0]["source"], "imported/work/a.md");
    assert!(program.ok(["pack", "import"]).contains("1 were known"));
    assert_eq!(program.run(["pack", "import", "nowhere.md"]).code, 5);
}

#[test]
fn tracked_secrets_fail_the_check() {
    let program = Program::new();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(args).env_clear().env("HOME", program.home()).env("PATH", "/usr/bin:/bin").current_dir(program.home());
        assert!(git.stdout(Stdio::null()).status().unwrap().success());
    };
    git(&["init", "-q"]);
    fs::write(program.home().join("a.txt"), "nothing here\n").unwrap();
    git(&["add", "a.txt"]);
    assert_eq!(program.run(["pack", "check-secrets"]).code, 0);
    let key = format!("{}{}", "AKIA", "ABCDEFGHIJKLMNOP");
    fs::write(program.home().join("b.txt"), format!("\nkey = {key}\n")).unwrap();
    assert_eq!(program.run(["pack", "check-secrets"]).code, 0, "an untracked file is not published");
    git(&["add", "b.txt"]);
    let ended = program.run(["pack", "check-secrets"]);
    assert_eq!(ended.code, 6);
    assert!(ended.out.contains("b.txt:2") && !ended.out.contains(&key), "{}", ended.out);
}

/// The coding agent, in the home of a program, against a provider on loopback.
fn claude(program: &Program, agent: &Path, server: &LlmServer, prompt: &str) -> animaworks_testkit::program::Ended {
    let mut command = Command::new(agent);
    command
        .args(["-p", prompt, "--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5"])
        .args(["--dangerously-skip-permissions"])
        .env_clear()
        .env("HOME", program.home())
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C")
        .env("ANTHROPIC_BASE_URL", server.base_url().trim_end_matches("/v1"))
        .env("ANTHROPIC_API_KEY", "dummy")
        .env("DISABLE_TELEMETRY", "1")
        .env("DISABLE_ERROR_REPORTING", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CLAUDE_CODE_MAX_RETRIES", "1")
        .env("IS_SANDBOX", "1")
        .current_dir(program.home().join("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command.spawn().unwrap())
}

#[test]
fn the_real_coding_agent_recalls_remembers_and_leaves_a_tidy_memory() {
    let Some(agent) = std::env::var_os("ANIMAWORKS_TEST_CLAUDE").map(PathBuf::from) else {
        println!("skipped: ANIMAWORKS_TEST_CLAUDE does not name a coding agent (cargo xtask test installs it)");
        return;
    };
    let program = Program::new();
    fs::create_dir_all(program.home().join("work")).unwrap();
    for n in 1..=7 {
        assert_eq!(write(&program, "CONTEXT.md", &format!("2026-06-0{n} step {n}"), &format!("Did step {n}.")), 0);
    }
    assert_eq!(write(&program, "decisions.md", "2026-06-08 Lantern", "The lantern stands in the hall."), 0);
    program.ok(["pack", "install"]);
    let binary = Program::binary();
    let run = |line: &str| json!({"command": format!("{} {line}", binary.display()), "description": "memory"});
    let remember =
        "pack write --file decisions.md --heading '2026-06-12 Lantern key' --body 'The key hangs beside it.'";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script = [
        Reply::tool_call("toolu_1", "Bash", &run("pack search lantern")),
        Reply::tool_call("toolu_2", "Bash", &run(remember)),
        Reply::text("The lantern stands in the hall."),
    ];
    let server = runtime.block_on(LlmServer::start(script)).unwrap();
    let ended = claude(&program, &agent, &server, "Where is the lantern?");
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(ended.out.contains("animaworks-pack"), "the plugin is loaded: {}", ended.out);
    let bodies: Vec<String> = server.bodies().iter().map(Value::to_string).collect();
    assert!(
        bodies[0].contains("Did step 7.") && bodies[0].contains("decisions.md"),
        "the session began with its memory"
    );
    assert!(bodies[1].contains("The lantern stands in the hall."), "recall found it");
    assert!(fs::read_to_string(memory(&program).join("decisions.md")).unwrap().contains("The key hangs beside it."));
    // the hook at the end runs beside the agent
    let archive = memory(&program).join("archive/context_archive.md");
    for _ in 0..500 {
        if archive.exists()
            && fs::read_to_string(memory(&program).join("CONTEXT.md")).unwrap().matches("## ").count() == 5
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(fs::read_to_string(&archive).unwrap().contains("Did step 1."), "the work at hand was rotated");
    let found: Value = serde_json::from_str(&program.ok(["--json", "pack", "search", "key lantern"])).unwrap();
    assert_eq!(found[0]["heading"], "2026-06-12 Lantern key");
}
