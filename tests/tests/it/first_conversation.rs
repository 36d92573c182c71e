//! What a person does in the first ten minutes, through the real binary.

use animaworks_testkit::program::{Program, finish};

/// The demo answers out of its own history and says where it knows it from.
fn demo_answers(program: &Program, question: &str, answer: &str, file: &str) {
    let out = program.ok(["demo", "--once", question, "--engine", "local/recall"]);
    assert!(out.contains(answer), "{question}: {out}");
    let quoted = out.lines().any(|line| line.contains(file) && line.contains(':'));
    assert!(quoted, "{question}: no place in {out}");
}

#[test]
fn the_demo_answers_in_japanese_and_quotes_file_and_line() {
    let program = Program::japanese();
    demo_answers(&program, "倉庫の鍵はどこ？", "南口", "episodes/");
    demo_answers(&program, "みなと図書館の請求の締め日は？", "25 日", "knowledge/minato-library.md");
    demo_answers(&program, "和紙の入荷はいつ？", "三日遅れ", "episodes/");
    let out = program.ok(["demo", "--once", "早瀬さんの犬の名前は？", "--engine", "local/recall"]);
    assert!(out.contains("見つかり"), "{out}");
    assert!(!out.contains("品川"), "{out}");
}

#[test]
fn the_demo_answers_in_english_and_quotes_file_and_line() {
    let program = Program::new();
    demo_answers(&program, "Where is the storehouse key?", "locker 204", "episodes/");
    demo_answers(&program, "When do invoices to Harbour Library close?", "25th", "knowledge/harbour-library.md");
    demo_answers(&program, "When does the endpaper come?", "three days late", "episodes/");
    let out = program.ok(["demo", "--once", "What is the name of Mr Hale's dog?", "--engine", "local/recall"]);
    assert!(out.contains("find"), "{out}");
    assert!(!out.contains("locker"), "{out}");
}

/// A home with one Anima that needs no key.
fn sakura() -> Program {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    program.ok(["anima", "set-model", "sakura", "local/recall"]);
    program
}

#[test]
fn what_it_was_told_is_quoted_after_a_restart() {
    let program = sakura();
    let told = program.ok(["chat", "sakura", "remember that my sister is called Yuki"]);
    assert!(told.contains("knowledge/"), "{told}");
    let asked = program.ok(["chat", "sakura", "what is my sister's name?"]);
    assert!(asked.contains("Yuki") && asked.contains("knowledge/"), "{asked}");
}

#[test]
fn it_introduces_itself() {
    let program = sakura();
    assert!(!program.ok(["chat", "sakura", "hello"]).trim().is_empty());
    assert!(program.ok(["chat", "sakura", "who are you?"]).contains("sakura"));
}

#[test]
fn a_message_can_come_through_a_pipe_and_an_answer_as_json() {
    let program = sakura();
    let ended = program.run_with(["chat", "sakura", "--json"], "who are you?\n".as_bytes());
    assert_eq!(ended.code, 0, "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["action"], "responded");
    assert_eq!(report["model"], "local/recall");
}

#[test]
fn memory_is_searched_with_file_and_line() {
    let program = sakura();
    program.ok(["chat", "sakura", "remember that the deploy window is Thursday 22:00"]);
    let out = program.ok(["memory", "search", "sakura", "deploy"]);
    assert!(out.contains("Thursday 22:00"), "{out}");
    let json = program.ok(["memory", "search", "sakura", "deploy", "--json"]);
    let recall: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(recall["hits"][0]["line"].as_u64().unwrap() >= 1);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let program = sakura();
    let mut child = program.command(["config", "list"]).spawn().unwrap();
    // closing our end is what `| head` does
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_second_process_learns_who_holds_the_anima() {
    let program = sakura();
    let lock = program.data().join("animas/sakura/run/anima.lock");
    let held = std::fs::OpenOptions::new().create(true).truncate(true).write(true).open(&lock).unwrap();
    held.lock().unwrap();
    std::fs::write(&lock, "pid 4242").unwrap();
    let ended = finish(program.command(["chat", "sakura", "hello"]).spawn().unwrap());
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.err.contains("pid 4242"), "{}", ended.err);
}

#[test]
fn an_unknown_name_gets_its_neighbour_and_a_command_that_works() {
    let program = sakura();
    let ended = program.run(["chat", "sakurra", "hello"]);
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.err.contains("sakura"), "{}", ended.err);
    let command = ended.err.lines().find_map(|line| line.split_once("animaworks ")).unwrap().1;
    program.ok(command.split_whitespace());
}

#[test]
fn before_init_the_next_command_is_named() {
    let program = Program::new();
    let ended = program.run(["chat", "sakura", "hello"]);
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.err.contains("animaworks init"), "{}", ended.err);
}

#[test]
fn help_is_there_in_both_languages_and_every_listing_speaks_json() {
    assert!(Program::new().ok(["--help"]).contains("Commands"));
    assert!(Program::japanese().ok(["chat", "--help"]).contains("オプション"));
    let program = sakura();
    for listing in [["anima", "list"], ["models", "list"], ["models", "show"], ["config", "list"]] {
        let json = program.ok(listing.iter().chain(&["--json"]));
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
    }
    // global options stand before and after the command
    let data = program.data();
    let data = data.to_str().unwrap();
    assert_eq!(program.ok(["--data-dir", data, "anima", "list"]), program.ok(["anima", "list", "--data-dir", data]));
}
