//! Imports: a small model made here, and the real one where `ANIMAWORKS_TEST_WEIGHTS` says it is.

use base64::Engine as _;

use super::*;
use crate::embed::tokenizer::TokenizerParts;

/// A directory the environment names, or a printed reason why a test is skipped.
#[allow(clippy::disallowed_methods, reason = "tests are told by their environment where large data is")]
pub(crate) fn named(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        println!("skipped: {variable} is not set");
    }
    path
}

/// Imports the real weights once and keeps them beside their source for the next test.
pub(crate) fn real() -> Option<(PathBuf, PathBuf)> {
    let source = named("ANIMAWORKS_TEST_WEIGHTS")?;
    let models = source.join("imported");
    if let Ok(dir) = find(&models, E5_SMALL, None)
        && verify(&dir).is_ok()
    {
        return Some((source, dir));
    }
    let imported = import(&source, &models, &mut |_| {}).unwrap();
    Some((source, imported.dir))
}

/// A small BERT in Hugging Face layout, with weights that depend on nothing but their place.
pub(crate) fn small(dir: &Path, collapse_spaces: bool) -> PathBuf {
    let (hidden, inner, layers, positions) = (32, 64, 2, 64);
    let (json, vocabulary) = small_tokenizer(collapse_spaces);
    let write = |name: &str, bytes: &[u8]| {
        animaworks_core::fs::write_atomic(&dir.join(name), bytes, animaworks_core::fs::Privacy::Normal).unwrap();
    };
    write("tokenizer.json", json.to_string().as_bytes());
    let config = serde_json::json!({
        "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 4,
        "intermediate_size": inner, "vocab_size": vocabulary, "max_position_embeddings": positions,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "initializer_range": 0.02, "pad_token_id": 1,
    });
    write("config.json", config.to_string().as_bytes());
    let mut tensors: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![vocabulary, hidden]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![positions, hidden]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![hidden]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![hidden]),
    ];
    for layer in 0..layers {
        for (part, out, input) in [
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("attention.output.LayerNorm", hidden, 0),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
            ("output.LayerNorm", hidden, 0),
        ] {
            let name = |kind: &str| format!("encoder.layer.{layer}.{part}.{kind}");
            tensors.push((name("weight"), if input == 0 { vec![out] } else { vec![out, input] }));
            tensors.push((name("bias"), vec![out]));
        }
    }
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    let mut state = 0x1234_5678_9abc_def0_u64;
    for (name, shape) in tensors {
        let start = data.len();
        for _ in 0..shape.iter().product::<usize>() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let noise = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
            let value: f32 = if name.ends_with("LayerNorm.weight") { 1.0 + noise / 10.0 } else { noise / 3.0 };
            data.extend_from_slice(&value.to_le_bytes());
        }
        let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name, entry);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&data);
    write("model.safetensors", &file);
    dir.to_owned()
}

/// A tokeniser with a few pieces and a normalisation map with all the odd cases.
pub(crate) fn small_tokenizer(collapse_spaces: bool) -> (serde_json::Value, usize) {
    let mut pieces: Vec<(String, f64)> =
        ["<s>", "<pad>", "</s>", "<unk>"].iter().map(|name| ((*name).to_owned(), 0.0)).collect();
    let words = [
        "▁",
        "▁query",
        "▁passage",
        ":",
        "▁the",
        "▁server",
        "server",
        "▁a",
        "a",
        "b",
        "c",
        "ab",
        "abc",
        "会議",
        "会",
        "議",
        "は",
        "が",
        "明日",
        "▁明日の",
        "の",
        "株式会社",
        "fi",
        "é",
        "e",
        "r",
        "s",
        "v",
        "、",
        "。",
        "🙂",
        "東京",
        "京都",
        "東",
        "京",
        "都",
        "駅",
        "▁東京都",
    ];
    for (number, word) in words.iter().enumerate() {
        // ties on purpose: equal scores decide by order
        pieces.push(((*word).to_owned(), -2.0 - (number % 5) as f64 * word.chars().count() as f64 / 2.0));
    }
    let charsmap: Vec<(Vec<u8>, String)> = [
        ("Ａ", "A"),
        ("ａ", "a"),
        ("か\u{3099}", "が"),
        ("㍿", "株式会社"),
        ("ﬁ", "fi"),
        ("\u{3000}", " "),
        ("\n", " "),
        ("\t", " "),
        ("\r", " "),
        ("\u{200b}", ""),
        ("e\u{301}", "é"),
        ("ｶ", "カ"),
        ("ｶﾞ", "ガ"),
        ("\u{a0}", " "),
        ("\u{1}", ""),
        ("：", ":"),
    ]
    .iter()
    .map(|(key, value)| (key.as_bytes().to_vec(), (*value).to_owned()))
    .collect();
    let count = pieces.len();
    (tokenizer_json(&pieces, &charsmap, 3, collapse_spaces), count)
}

/// A `tokenizer.json` in one of the two shapes that XLM-R models come in.
pub(crate) fn tokenizer_json(
    pieces: &[(String, f64)],
    charsmap: &[(Vec<u8>, String)],
    unknown: u32,
    collapse_spaces: bool,
) -> serde_json::Value {
    let added: Vec<_> = ["<s>", "<pad>", "</s>", "<unk>"]
        .iter()
        .enumerate()
        .map(|(id, content)| {
            serde_json::json!({ "id": id, "content": content, "single_word": false, "lstrip": false,
                "rstrip": false, "normalized": false, "special": true })
        })
        .collect();
    let blob = base64::engine::general_purpose::STANDARD.encode(double_array(charsmap));
    let precompiled = serde_json::json!({ "type": "Precompiled", "precompiled_charsmap": blob });
    let metaspace = serde_json::json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always" });
    let (normalizer, pre_tokenizer) = if collapse_spaces {
        let replace = serde_json::json!({ "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " });
        (serde_json::json!({ "type": "Sequence", "normalizers": [precompiled, replace] }), metaspace)
    } else {
        let split = serde_json::json!({ "type": "WhitespaceSplit" });
        (precompiled, serde_json::json!({ "type": "Sequence", "pretokenizers": [split, metaspace] }))
    };
    serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": null,
        "model": { "type": "Unigram", "unk_id": unknown, "vocab": pieces, "byte_fallback": false },
    })
}

/// The format of SentencePiece's normalisation map, laid out wastefully: each node has a block of its own.
fn double_array(entries: &[(Vec<u8>, String)]) -> Vec<u8> {
    #[derive(Default)]
    struct Node {
        children: BTreeMap<u8, Node>,
        value: Option<u32>,
    }
    fn place(node: &Node, base: usize, units: &mut Vec<u32>) {
        if let Some(value) = node.value {
            units[base] = value | 1 << 31;
        }
        for (label, child) in &node.children {
            let at = base ^ usize::from(*label);
            let block = units.len();
            units.resize(block + 256, 0);
            // the lowest byte stays: the trie only ever moves it by labels
            let below = block | (at & 0xff);
            let offset = (at ^ below) as u32;
            let leaf = u32::from(child.value.is_some()) << 8;
            units[at] = u32::from(*label) | leaf | 1 << 9 | (offset >> 8) << 10;
            place(child, below, units);
        }
    }
    let mut root = Node::default();
    let mut texts = Vec::new();
    for (key, text) in entries {
        let mut node = &mut root;
        for byte in key {
            node = node.children.entry(*byte).or_default();
        }
        node.value = Some(texts.len() as u32);
        texts.extend_from_slice(text.as_bytes());
        texts.push(0);
    }
    let mut units = vec![0; 512];
    // the root's children lie from 256 on
    units[0] = 1 << 9 | 1 << 10;
    place(&root, 256, &mut units);
    let mut blob = ((units.len() * 4) as u32).to_le_bytes().to_vec();
    blob.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    blob.extend_from_slice(&texts);
    blob
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs_err::read(path).unwrap();
    bytes[at] ^= 0x10;
    animaworks_core::fs::write_atomic(path, &bytes, animaworks_core::fs::Privacy::Normal).unwrap();
}

#[test]
fn an_import_is_whole_or_not_there() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = small(from.path(), false);
    assert!(matches!(find(models.path(), E5_SMALL, None), Err(EmbedError::NoWeights { .. })));
    let mut seen = Vec::new();
    let imported = import(&source, models.path(), &mut |progress| seen.push(progress)).unwrap();
    assert_eq!(find(models.path(), E5_SMALL, None).unwrap(), imported.dir);
    assert_eq!(find(Path::new("/nowhere"), E5_SMALL, Some(&imported.dir)).unwrap(), imported.dir);
    assert_eq!(verify(&imported.dir).unwrap(), imported.meta);
    assert!(seen.is_sorted_by_key(|progress| progress.done));
    let last = seen.last().unwrap();
    assert_eq!(last.done, last.total);

    // once more over it: the same bytes, so the same signature
    assert_eq!(import(&source, models.path(), &mut |_| {}).unwrap(), imported);

    // a source that breaks off leaves the old import alone
    let file = fs_err::OpenOptions::new().write(true).open(source.join("model.safetensors")).unwrap();
    file.set_len(4000).unwrap();
    let error = import(&source, models.path(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("model.safetensors"), "{error}");
    assert_eq!(verify(&imported.dir).unwrap(), imported.meta);
    let names: Vec<_> = fs_err::read_dir(models.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [E5_SMALL], "nothing is left behind");
}

#[test]
fn a_broken_file_is_named() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dir = import(&small(from.path(), true), models.path(), &mut |_| {}).unwrap().dir;
    flip(&dir.join(WEIGHTS), 5000);
    let error = verify(&dir).unwrap_err();
    assert!(matches!(&error, EmbedError::Corrupt { path, .. } if path.ends_with(WEIGHTS)), "{error}");
    let file = fs_err::OpenOptions::new().write(true).open(dir.join(TOKENIZER)).unwrap();
    file.set_len(100).unwrap();
    let error = Weights::open(&dir).unwrap_err();
    assert!(matches!(&error, EmbedError::Corrupt { path, .. } if path.ends_with(TOKENIZER)), "{error}");
    animaworks_core::fs::write_atomic(&dir.join(META), b"{", animaworks_core::fs::Privacy::Normal).unwrap();
    let error = Weights::open(&dir).unwrap_err();
    assert!(matches!(&error, EmbedError::Corrupt { path, .. } if path.ends_with(META)), "{error}");
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let error = import(from.path(), models.path(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("model.safetensors"), "{error}");
    let source = small(from.path(), false);
    let change = |file: &str, from: &str, to: &str| {
        let path = source.join(file);
        let text = fs_err::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        let text = text.replacen(from, to, 1);
        animaworks_core::fs::write_atomic(&path, text.as_bytes(), animaworks_core::fs::Privacy::Normal).unwrap();
    };
    for (file, old, new, says) in [
        ("config.json", "\"bert\"", "\"gpt2\"", "gpt2"),
        ("tokenizer.json", "\"WhitespaceSplit\"", "\"Digits\"", "Digits"),
        ("tokenizer.json", "\"Precompiled\"", "\"Lowercase\"", "Lowercase"),
        ("tokenizer.json", "\"Unigram\"", "\"BPE\"", "Unigram"),
    ] {
        change(file, old, new);
        let error = import(&source, models.path(), &mut |_| {}).unwrap_err();
        assert!(matches!(error, EmbedError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        change(file, new, old);
    }
    import(&source, models.path(), &mut |_| {}).unwrap();
}

#[test]
fn the_packed_model_is_read_whole() {
    let Some((source, dir)) = real() else { return };
    let meta = verify(&dir).unwrap();
    assert_eq!((meta.shape.hidden, meta.shape.layers, meta.shape.vocabulary), (384, 12, 250_037));
    let parts: TokenizerParts = source::open(&source).unwrap().tokenizer().unwrap();
    assert_eq!(parts.pieces.len(), 250_002);
}
