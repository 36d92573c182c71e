//! The tokeniser against the `tokenizers` crate, token for token.

use std::io::Read as _;

use animaworks_core::fs::{Privacy, write_atomic};
use proptest::prelude::*;

use super::*;
use crate::embed::weights::tests::{named, real, small_tokenizer, tokenizer_json};

/// Both tokenisers of one model.
struct Pair {
    ours: Tokenizer,
    theirs: tokenizers::Tokenizer,
    _dir: tempfile::TempDir,
}

impl Pair {
    fn of_json(json: &serde_json::Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokenizer.json");
        write_atomic(&path, json.to_string().as_bytes(), Privacy::Normal).unwrap();
        let bytes = TokenizerParts::from_json(&path).unwrap().into_bytes();
        let file = dir.path().join("tokenizer.bin");
        write_atomic(&file, &bytes, Privacy::Normal).unwrap();
        let theirs = tokenizers::Tokenizer::from_file(&path).unwrap();
        Self { ours: Tokenizer::open(&file).unwrap(), theirs, _dir: dir }
    }

    fn check(&self, text: &str) {
        let theirs = self.theirs.encode(text, false).unwrap();
        let ours = self.ours.encode(text, usize::MAX);
        let (first, last) = (ours.first().copied(), ours.last().copied());
        assert_eq!((first, last), (Some(0), Some(2)), "{text:?}");
        assert_eq!(&ours[1..ours.len() - 1], theirs.get_ids(), "{text:?} {:?}", theirs.get_tokens());
    }
}

#[test]
fn the_normalisation_map_is_read_as_it_was_meant() {
    let pair = Pair::of_json(&small_tokenizer(false).0);
    for (text, normal) in [
        ("ＡＢ㍿", "AＢ株式会社"),
        // six bytes: looked up letter by letter
        ("か\u{3099}\u{3000}e\u{301}", "か\u{3099} é"),
        ("ｶﾞ", "カﾞ"),
        // a short grapheme is replaced whole by what stands for its beginning
        ("Ａ\u{301}", "A"),
        ("a\r\nb", "a b"),
        ("x\u{1}\u{200b}y", "xy"),
    ] {
        assert_eq!(pair.ours.normalise(text), normal, "{text:?}");
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

#[test]
fn control_tokens_in_a_text_are_text() {
    let pair = Pair::of_json(&small_tokenizer(false).0);
    let ids = pair.ours.encode("</s><s>", usize::MAX);
    assert_eq!(ids.iter().filter(|id| **id <= 2).count(), 2, "only the two around the text: {ids:?}");
}

#[test]
fn a_long_text_is_cut_and_still_ends() {
    let pair = Pair::of_json(&small_tokenizer(false).0);
    let ids = pair.ours.encode(&"会議 ".repeat(5000), 64);
    assert_eq!((ids.len(), ids[0], ids[63]), (64, 0, 2));
    assert_eq!(pair.ours.encode("会議", 2), [0, 2]);
}

#[test]
fn a_file_that_is_no_tokeniser_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.bin");
    for bytes in [&b""[..], b"AWTOK001", &[0xff; 4096]] {
        write_atomic(&path, bytes, Privacy::Normal).unwrap();
        assert!(matches!(Tokenizer::open(&path), Err(EmbedError::Corrupt { .. })));
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
