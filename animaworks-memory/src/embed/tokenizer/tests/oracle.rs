//! The tokeniser against the `tokenizers` crate, token for token.

use std::io::Read as _;

use proptest::prelude::*;

use super::*;
use crate::embed::weights::tests::{named, real, tokenizer_json};

/// Both tokenisers of one model.
struct Pair {
    ours: Tokenizer,
    theirs: tokenizers::Tokenizer,
    _dir: tempfile::TempDir,
}

impl Pair {
    fn of_json(json: &serde_json::Value) -> Self {
        let (ours, dir) = ours(json);
        let theirs = tokenizers::Tokenizer::from_file(dir.path().join("tokenizer.json")).unwrap();
        Self { ours, theirs, _dir: dir }
    }

    fn check(&self, text: &str) {
        let theirs = self.theirs.encode(text, false).unwrap();
        let ours = self.ours.encode(text, usize::MAX);
        let (first, last) = (ours.first().copied(), ours.last().copied());
        assert_eq!((first, last), (Some(0), Some(2)), "{text:?}");
        assert_eq!(&ours[1..ours.len() - 1], theirs.get_ids(), "{text:?} {:?}", theirs.get_tokens());
    }
}

fn odd_texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(" "),
        Just("  "),
        Just("\n"),
        Just("\r\n"),
        Just("\u{3000}"),
        Just("▁"),
        Just("か\u{3099}"),
        Just("か"),
        Just("\u{3099}"),
        Just("e\u{301}"),
        Just("Ａ\u{301}"),
        Just("ｶﾞ"),
        Just("㍿"),
        Just("ﬁ"),
        Just("\u{200b}"),
        Just("東京都"),
        Just("明日の会議は"),
        Just("the server"),
        Just("abcab"),
        Just("query: "),
        Just("👩‍👩‍👧"),
        Just("🙂"),
        Just("\u{1}"),
        Just("ZZZ"),
        Just("\u{2028}"),
        Just("\u{85}"),
        Just("각"),
        Just("กำ"),
    ]
    .prop_map(str::to_owned);
    let any = prop_oneof![8 => part, 1 => "\\PC{0,6}", 1 => any::<String>()];
    proptest::collection::vec(any, 0..12).prop_map(|parts| parts.concat())
}

#[test]
fn it_equals_the_tokenizers_crate_on_generated_texts() {
    for collapse_spaces in [false, true] {
        let pair = Pair::of_json(&small_tokenizer(collapse_spaces).0);
        for text in ["", " ", "▁", "▁▁a", "a▁b", "a  b", " a ", "か\u{3099}", "明日の会議は東京都", "x", "xx x"]
        {
            pair.check(text);
        }
        proptest!(ProptestConfig::with_cases(400), |(text in odd_texts())| pair.check(&text));
    }
}

/// Both tokenisers of the real model, the other one built from the tries of ours.
fn real_pair() -> Option<Pair> {
    let (_, dir) = real()?;
    let ours = Tokenizer::open(&dir.join("tokenizer.bin")).unwrap();
    let count = ours.section(SCORES).len() / 8;
    let mut pieces: Vec<(String, f64)> = (0..count).map(|id| (format!("<unused {id}>"), ours.min_score)).collect();
    for (id, name) in ["<s>", "<pad>", "</s>", "<unk>"].into_iter().enumerate() {
        pieces[id] = (name.to_owned(), 0.0);
    }
    for (key, id) in ours.trie(VOCABULARY).entries() {
        let score = f64::from_bits(u64_at(ours.section(SCORES), id as usize * 8));
        pieces[id as usize] = (String::from_utf8(key).unwrap(), score);
    }
    let replacements = ours.section(REPLACEMENTS);
    let charsmap: Vec<(Vec<u8>, String)> = ours
        .trie(CHARSMAP)
        .entries()
        .into_iter()
        .map(|(key, value)| {
            let (start, len) = ((value >> 8) as usize, (value & 0xff) as usize);
            (key, String::from_utf8(replacements[start..start + len].to_vec()).unwrap())
        })
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("tokenizer.json");
    let json = tokenizer_json(&pieces, &charsmap, ours.unknown, false);
    write_atomic(&path, json.to_string().as_bytes(), Privacy::Normal).unwrap();
    let theirs = tokenizers::Tokenizer::from_file(&path).unwrap();
    Some(Pair { ours, theirs, _dir: scratch })
}

#[test]
fn the_real_vocabulary_equals_the_tokenizers_crate_on_every_bench_text() {
    let Some(pair) = real_pair() else { return };
    proptest!(ProptestConfig::with_cases(300), |(text in odd_texts())| pair.check(&text));
    let Some(data) = named("ANIMAWORKS_BENCH_DATA") else { return };
    let mut texts = std::collections::HashSet::new();
    for entry in fs_err::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".jsonl.gz") {
            continue;
        }
        let mut lines = String::new();
        let file = fs_err::File::open(&path).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut lines).unwrap();
        for line in lines.lines() {
            let group: serde_json::Value = serde_json::from_str(line).unwrap();
            each_text(&group, &mut |text| {
                if texts.insert(text.to_owned()) {
                    pair.check(text);
                }
            });
        }
    }
    println!("{} texts, token for token", texts.len());
    assert!(texts.len() > 1000);
}

/// Every string of a bench record: texts, questions, names, ids.
fn each_text(value: &serde_json::Value, each: &mut dyn FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => each(text),
        serde_json::Value::Array(values) => values.iter().for_each(|value| each_text(value, each)),
        serde_json::Value::Object(values) => values.values().for_each(|value| each_text(value, each)),
        _ => {}
    }
}
