//! The tokeniser by itself; with the feature `oracle`, against the `tokenizers` crate.

#[cfg(feature = "oracle")]
mod oracle;

use animaworks_core::fs::{Privacy, write_atomic};

use super::*;
use crate::embed::weights::tests::small_tokenizer;

/// The tokeniser of a `tokenizer.json`, which is in the directory beside it.
fn ours(json: &serde_json::Value) -> (Tokenizer, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    write_atomic(&path, json.to_string().as_bytes(), Privacy::Normal).unwrap();
    let bytes = TokenizerParts::from_json(&path).unwrap().into_bytes();
    let file = dir.path().join("tokenizer.bin");
    write_atomic(&file, &bytes, Privacy::Normal).unwrap();
    (Tokenizer::open(&file).unwrap(), dir)
}

#[test]
fn the_normalisation_map_is_read_as_it_was_meant() {
    let (ours, _dir) = ours(&small_tokenizer(false).0);
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
        assert_eq!(ours.normalise(text), normal, "{text:?}");
    }
}

#[test]
fn control_tokens_in_a_text_are_text() {
    let (ours, _dir) = ours(&small_tokenizer(false).0);
    let ids = ours.encode("</s><s>", usize::MAX);
    assert_eq!(ids.iter().filter(|id| **id <= 2).count(), 2, "only the two around the text: {ids:?}");
}

#[test]
fn a_long_text_is_cut_and_still_ends() {
    let (ours, _dir) = ours(&small_tokenizer(false).0);
    let ids = ours.encode(&"会議 ".repeat(5000), 64);
    assert_eq!((ids.len(), ids[0], ids[63]), (64, 0, 2));
    assert_eq!(ours.encode("会議", 2), [0, 2]);
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
