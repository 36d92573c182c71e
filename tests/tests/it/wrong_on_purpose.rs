//! Things done wrong on purpose: a clear error, a remedy, the right exit code, and nothing lost.

use std::{fs, path::Path, process::Command};

use animaworks_testkit::program::{Ended, Program, finish};

fn sakura() -> Program {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    program.ok(["anima", "set-model", "sakura", "local/recall"]);
    program
}

fn refuses(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, code, "{ended:?}");
    for word in words {
        assert!(ended.err.contains(word), "{word} is not in {}", ended.err);
    }
}

#[test]
fn a_broken_config_is_named_with_line_and_column_and_left_alone() {
    let program = sakura();
    let path = program.data().join("config.json");
    let broken = "{\n  \"locale\": \"en\",\n  oops\n}\n";
    fs::write(&path, broken).unwrap();
    let ended = program.run(["chat", "sakura", "hello"]);
    refuses(&ended, 7, &["config.json", "line 3", "hint:"]);
    refuses(&program.run(["config", "set", "heartbeat.interval_minutes", "10"]), 7, &["line 3"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
}

#[test]
fn a_value_out_of_range_names_key_and_range() {
    let program = sakura();
    let ended = program.run(["config", "set", "heartbeat.interval_minutes", "99999"]);
    refuses(&ended, 2, &["heartbeat.interval_minutes", "1440"]);
    let ended = program.run(["config", "set", "no.such.key", "1"]);
    refuses(&ended, 2, &["no.such.key"]);
}

#[test]
fn a_status_with_a_typo_disables_one_anima_and_no_other() {
    let program = sakura();
    program.ok(["anima", "create", "--name", "ren"]);
    let path = program.data().join("animas/sakura/status.json");
    fs::write(&path, "{\"model\": \"local/recall\",}").unwrap();
    refuses(&program.run(["chat", "sakura", "hello"]), 7, &["status.json", "line 1"]);
    let list = program.ok(["anima", "list"]);
    assert!(list.contains("ren") && list.contains("status.json"), "{list}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"model\": \"local/recall\",}");
}

#[test]
fn an_unknown_model_says_what_to_do_and_keeps_the_message() {
    let program = sakura();
    program.ok(["anima", "set-model", "sakura", "local/no-such-model"]);
    let ended = program.run(["chat", "sakura", "the code word is amaryllis"]);
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("no-such-model") && ended.err.contains("hint:"), "{}", ended.err);
    keeps(&program, "amaryllis");
}

#[test]
fn an_unreachable_server_is_named_and_the_message_is_kept() {
    let program = sakura();
    // a port that was free a moment ago, and that nobody listens on
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    program.ok(["config", "set", "credentials.openai.base_url", &format!("http://127.0.0.1:{port}/v1")]);
    program.ok(["config", "set", "server.stream_retry_max", "0"]);
    program.ok(["config", "set", "server.llm_num_retries", "0"]);
    program.ok(["anima", "set-model", "sakura", "openai/test", "--credential", "openai"]);
    let ended = program.run(["chat", "sakura", "the code word is amaryllis"]);
    refuses(&ended, 4, &[&port.to_string(), "hint:"]);
    keeps(&program, "amaryllis");
}

/// The conversation on disk has a word.
fn keeps(program: &Program, word: &str) {
    let path = program.data().join("animas/sakura/state/conversation.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(word), "{text}");
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
}

#[test]
fn a_name_that_climbs_is_refused() {
    let program = sakura();
    refuses(&program.run(["anima", "create", "--name", "../x"]), 2, &["../x"]);
    assert!(!program.data().join("x").exists() && !program.home().join("x").exists());
    refuses(&program.run(["chat", "../x", "hello"]), 5, &["../x"]);
}

#[test]
fn a_huge_message_and_broken_text_are_refused_whole() {
    let program = sakura();
    let huge = vec![b'a'; (10 << 20) + 1];
    refuses(&program.run_with(["chat", "sakura"], &huge), 2, &["hint:"]);
    refuses(&program.run_with(["chat", "sakura"], b"abc\xff\xfedef"), 2, &["UTF-8", "3", "hint:"]);
    refuses(&program.run_with(["chat", "sakura"], b"  \n"), 2, &[]);
    let conversation = program.data().join("animas/sakura/state/conversation.json");
    let said = fs::read_to_string(conversation).unwrap_or_default();
    assert!(!said.contains("abc"), "{said}");
}

#[test]
fn a_ten_megabyte_message_is_answered_or_refused_but_never_half_kept() {
    let program = sakura();
    let long = "単語 ".repeat(10 << 17);
    let ended = program.run_with(["chat", "sakura"], long.as_bytes());
    assert!(ended.code == 0 || (ended.code == 2 && ended.err.contains("hint:")), "{} {}", ended.code, ended.err);
    program.ok(["chat", "sakura", "hello"]);
}

#[test]
fn a_read_only_data_directory_says_so() {
    let script = r#"mount --bind "$DATA" "$DATA" && mount -o remount,bind,ro "$DATA" && exec "$BIN" chat sakura hello"#;
    let Some(ended) = in_a_namespace(&sakura(), script) else { return };
    assert_eq!(ended.code, 6, "{ended:?}");
    assert!(ended.err.contains("read-only") && ended.err.contains("--data-dir"), "{}", ended.err);
}

#[test]
fn a_full_disk_says_so_and_tears_nothing() {
    let script = r#"mount -t tmpfs -o size=1m tmpfs "$MNT" && cp -r "$DATA" "$MNT/aw" 2>/dev/null
        head -c 4m /dev/zero > "$MNT/ballast" 2>/dev/null
        "$BIN" --data-dir "$MNT/aw" chat sakura "the code word is amaryllis"; code=$?
        for file in $(find "$MNT/aw" -name '*.json'); do
            if [ -s "$file" ] && ! python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$file"; then echo "torn: $file"; fi
        done
        exit $code"#;
    let Some(ended) = in_a_namespace(&sakura(), script) else { return };
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(!ended.out.contains("torn:"), "{}", ended.out);
    assert!(ended.err.contains("disk is full") || ended.err.contains("No space"), "{}", ended.err);
}

/// Runs a script where it may mount things; `None`, and a reason, where that is not allowed.
fn in_a_namespace(program: &Program, script: &str) -> Option<Ended> {
    let allowed = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|out| out.status.success());
    if !allowed {
        println!("skipped: no mount namespaces here");
        return None;
    }
    let mount = program.home().join("mnt");
    fs::create_dir_all(&mount).unwrap();
    Some(finish(enter(program, script, &mount).spawn().unwrap()))
}

fn enter(program: &Program, script: &str, mount: &Path) -> Command {
    let inner = program.command(["--version"]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
        .env("BIN", Program::binary())
        .env("DATA", program.data())
        .env("MNT", mount)
        .current_dir(program.home())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

#[test]
fn what_the_demo_tells_people_to_type_names_its_own_directory() {
    let program = Program::new();
    let missing = program.run(["demo", "--engine", "local/nothing", "--once", "hello"]);
    assert_eq!(missing.code, 5, "{missing:?}");
    let command = missing.err.rsplit("animaworks --data-dir ").next().unwrap().lines().next().unwrap();
    let args: Vec<&str> = std::iter::once("--data-dir").chain(command.split_whitespace()).collect();
    program.ok(args);
    assert!(!program.ok(["demo", "--once", "hello"]).is_empty());
}
