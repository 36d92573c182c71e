//! `kill -9` at random moments of indexing: afterwards every word is found, and an index made anew answers the same.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use animaworks_testkit::program::Program;
use serde_json::Value;

/// How often the indexer is killed.
const KILLS: u64 = 100;
/// How many pages there are in the end.
const PAGES: u64 = 300;

fn page(home: &Path, number: u64) {
    let text = format!("# Page {number}\n\nThe zebu{number}x sleeps here.\n\n## 続き\n\n鍵{number}番は棚にある。\n");
    fs::write(home.join(format!("knowledge/page-{number:03}.md")), text).unwrap();
}

/// What a search prints, for questions that together ask for every page.
fn answers(program: &Program) -> Vec<String> {
    let words: Vec<String> = (0..PAGES).map(|number| format!("zebu{number}x")).collect();
    words
        .chunks(40)
        .map(|words| words.join(" "))
        .map(|question| program.ok(["memory", "search", "sakura", &question, "--limit", "200", "--json"]))
        .collect()
}

#[test]
fn killed_a_hundred_times_the_indexer_loses_no_word_and_a_new_index_answers_the_same() {
    let program = Program::new();
    program.ok(["init", "--skip-anima"]);
    program.ok(["anima", "create", "--name", "sakura"]);
    let home = program.data().join("animas/sakura");
    let mut dice = 0x5eed_u64;
    let mut interrupted = 0;
    for n in 0..KILLS {
        for number in (0..PAGES).filter(|number| number % KILLS == n) {
            page(&home, number);
        }
        let how = if n % 3 == 0 { "--full" } else { "--json" };
        let mut child = program.command(["index", "--anima", "sakura", how]).spawn().unwrap();
        // xorshift: the same moments in every run
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        std::thread::sleep(Duration::from_millis(dice % 120));
        child.kill().unwrap();
        interrupted += u32::from(!child.wait().unwrap().success());
    }
    assert!(interrupted > 0, "every run was quicker than its kill");
    program.ok(["index", "--anima", "sakura"]);

    let before = answers(&program);
    let mut found = BTreeSet::new();
    for answer in &before {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer["degraded"].as_array().map_or(0, Vec::len), 0, "{answer:#}");
        found.extend(answer["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap().to_owned()));
    }
    let missing: Vec<_> =
        (0..PAGES).map(|n| format!("knowledge/page-{n:03}.md")).filter(|path| !found.contains(path)).collect();
    assert!(missing.is_empty(), "{missing:?}");

    fs::remove_dir_all(home.join("index")).unwrap();
    program.ok(["index", "--anima", "sakura"]);
    assert_eq!(answers(&program), before, "an index made anew answers something else");
}
