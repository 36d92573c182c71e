//! A data directory of the Python version opens as it is, is lived in, and loses nothing.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use animaworks_testkit::program::Program;
use serde_json::Value;

/// Every file below a directory with its bytes.
fn files(dir: &Path, base: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, base, found);
        } else {
            found.insert(path.strip_prefix(base).unwrap().to_owned(), fs::read(&path).unwrap());
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let mut all = BTreeMap::new();
    files(from, from, &mut all);
    for (path, bytes) in all {
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, bytes).unwrap();
    }
}

/// All keys of all objects in a file, whatever its shape.
fn keys(value: &Value, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

fn lived_in(locale: &str, anima: &str) {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../animaworks-core/tests/fixtures/python-home").join(locale);
    let program = if locale == "ja" { Program::japanese() } else { Program::new() };
    let data = program.data();
    copy(&fixture, &data);
    // the Python version also leaves these, with keys nobody here knows
    fs::write(data.join("config.json"), format!("{{\n  \"version\": 1,\n  \"locale\": \"{locale}\",\n  \"later_feature\": {{\"on\": true}},\n  \"animas\": {{\"{anima}\": {{\"supervisor\": null, \"later\": 1}}}}\n}}\n")).unwrap();
    let home = data.join("animas").join(anima);
    fs::write(home.join("identity.md"), format!("# {anima}\n")).unwrap();
    fs::write(home.join("injection.md"), "# role\n").unwrap();
    fs::write(home.join("status.json"), "{\"enabled\": true, \"model\": \"local/recall\", \"later\": {\"x\": 1}}\n")
        .unwrap();
    let mut before = BTreeMap::new();
    files(&data, &data, &mut before);

    let ended = program.run(["chat", anima, "hello"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let converted = if locale == "ja" { "変換はしていません" } else { "Nothing is converted" };
    assert!(ended.err.contains(converted), "{}", ended.err);
    program.ok(["config", "set", "heartbeat.interval_minutes", "20"]);

    let mut after = BTreeMap::new();
    files(&data, &data, &mut after);
    for (path, bytes) in &before {
        if path.ends_with("streaming_journal.jsonl") {
            // a reply that broke off there was found, and is in the conversation now
            let conversation = fs::read_to_string(home.join("state/conversation.json")).unwrap();
            assert!(!after.contains_key(path) && conversation.contains("assistant"), "{conversation}");
            continue;
        }
        let now = after.get(path).unwrap_or_else(|| panic!("{} is gone", path.display()));
        if now == bytes {
            continue;
        }
        // a file that was written to still has every key it had
        let (old, new) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(now));
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => {
                let (mut had, mut has) = Default::default();
                keys(&serde_json::from_str(old.trim_start_matches('\u{feff}')).unwrap(), &mut had);
                keys(&serde_json::from_str(&new).unwrap(), &mut has);
                assert!(had.is_subset(&has), "{}: {:?}", path.display(), had.difference(&has));
            }
            _ => assert!(new.contains(old.trim_end()), "{} was rewritten", path.display()),
        }
    }
}

#[test]
fn a_japanese_directory_is_lived_in() {
    lived_in("ja", "sakura");
}

#[test]
fn an_english_directory_is_lived_in() {
    lived_in("en", "mira");
}
