//! The memory pack through the real binary: limits, crashes, no network, and the coding agent it is made for.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::{Program, finish},
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
    for args in [
        &["pack", "reindex"][..],
        &["pack", "search", "lantern"],
        &["pack", "write", "--file", "a.md", "--heading", "2026-06-11 a", "--body", "b"],
        &["pack", "rotate"],
        &["pack", "report"],
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
    for round in 0..24_u64 {
        fs::create_dir_all(memory(&program)).unwrap();
        fs::write(&file, &whole).unwrap();
        if archive.exists() && round % 3 == 0 {
            fs::remove_file(&archive).unwrap();
        }
        let args: &[&str] = match round % 3 {
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
    }
    program.ok(["pack", "reindex"]);
    let found: Value = serde_json::from_str(&program.ok(["--json", "pack", "search", "block 39"])).unwrap();
    assert!(!found.as_array().unwrap().is_empty());
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
