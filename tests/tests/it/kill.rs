//! `kill -9` at random moments of streamed replies with tool calls: nothing accepted is lost, nothing is done twice.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use animaworks_testkit::{
    llm_server::{LlmServer, Reply},
    program::Program,
};
use serde_json::{Value, json};

/// How often the program is killed.
const KILLS: usize = 50;

/// A repeatable sequence of waits.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        // xorshift: the same moments in every run
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn sakura(base_url: &str) -> Program {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    program.ok(["config", "set", "credentials.openai.base_url", base_url]);
    program.ok(["config", "set", "completion_gate.enabled", "false"]);
    program.ok(["anima", "set-model", "sakura", "openai/test", "--credential", "openai"]);
    program
}

/// One reply of two steps: writes a line with a tool, then tells a long story slowly.
fn replies(n: usize) -> [Reply; 2] {
    let line = json!({"path": "knowledge/deeds.md", "content": format!("- deed {n}\n"), "mode": "append"});
    let story: String = (0..60).map(|word| format!("word{n}-{word} ")).collect();
    [Reply::tool_call(&format!("call-{n}"), "write_memory_file", &line), Reply::text(&story).drip(16)]
}

#[test]
fn killed_fifty_times_nothing_is_lost_and_nothing_done_twice() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script: Vec<Reply> = (0..KILLS).flat_map(replies).collect();
    let server = runtime.block_on(LlmServer::start(script)).unwrap();
    let program = sakura(&server.base_url());
    let home = program.data().join("animas/sakura");
    let mut dice = Dice(0x5eed);
    let mut asked = 0;
    for n in 0..KILLS {
        let mut child = program.command(["chat", "sakura", &format!("question {n}")]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(30 + dice.roll(400)));
        // SIGKILL; a run that was quicker has ended by itself
        child.kill().unwrap();
        child.wait().unwrap();
        // replies that this run did not fetch belong to nobody: the next question is a new one
        asked = server.recorder().requests().len().max(asked);
        intact(&home);
    }
    // one more start finds whatever the last kill left
    program.ok(["anima", "set-model", "sakura", "local/recall"]);
    program.ok(["chat", "sakura", "hello"]);
    intact(&home);

    let conversation = fs::read_to_string(home.join("state/conversation.json")).unwrap();
    let conversation: Value = serde_json::from_str(&conversation).unwrap();
    let told = everything_said(&home, &conversation);
    let requests = server.recorder().requests();
    assert!(server.recorder().breaches().is_empty(), "{:?}", server.recorder().breaches());
    for n in 0..KILLS {
        let words = format!("question {n}");
        let reached_the_model = requests.iter().any(|request| request.body.to_string().contains(&format!("{words}\"")));
        // what reached the model had been accepted, and what was accepted is kept
        if reached_the_model {
            assert!(told.contains(&words), "{words} is lost: {told:?}\n{conversation}");
        }
    }
    // no call was sent twice: no two requests end with the same last message
    let mut last = BTreeSet::new();
    for request in &requests {
        let messages = request.body["messages"].as_array().unwrap();
        let tail = messages.iter().rev().take(2).map(ToString::to_string).collect::<String>();
        assert!(last.insert(tail.clone()), "the same request twice: {tail}");
    }
    // no deed was done twice
    let deeds = fs::read_to_string(home.join("knowledge/deeds.md")).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for deed in deeds.lines().filter(|line| line.starts_with("- deed")) {
        assert!(seen.insert(deed.to_owned()), "{deed} was done twice");
    }
    println!("{KILLS} kills, {} model calls, {} deeds", requests.len(), seen.len());
}

/// All human turns, also those that were summarised away: the activity log keeps every word.
fn everything_said(home: &Path, conversation: &Value) -> BTreeSet<String> {
    let mut said: BTreeSet<String> = conversation["turns"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|turn| turn["role"] != "assistant")
        .filter_map(|turn| turn["content"].as_str().map(str::to_owned))
        .collect();
    for entry in fs::read_dir(home.join("activity_log")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["type"] == "message_received" {
                said.insert(line["content"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    said
}

/// Every JSON file of a home parses, and at most the last line of a log is torn.
fn intact(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            intact(&path);
            continue;
        }
        let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else { continue };
        if path.file_name().unwrap().to_string_lossy().starts_with('.') {
            continue;
        }
        match extension {
            "json" => {
                let text = fs::read_to_string(&path).unwrap();
                serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
            "jsonl" => {
                let text = fs::read_to_string(&path).unwrap();
                let broken: Vec<&str> = text
                    .lines()
                    .filter(|line| !line.trim().is_empty() && serde_json::from_str::<Value>(line).is_err())
                    .collect();
                assert!(broken.len() <= 1, "{}: {broken:?}", path.display());
            }
            _ => {}
        }
    }
}
