//! Models in this process: tiny ones made of fixed numbers, and a real one when it is at hand.

use std::{
    io::BufWriter,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use animaworks_core::{
    ExecError, Executor, Locale, StopReason, SystemClock, Tokens, ToolOutput, TurnEvent, TurnHost, Usage,
    event::lawful, test_support::RecordingHost,
};
use animaworks_exec::{
    basic::{Basic, TextAsk, TextEvent, TextMessage, TextModel},
    local::{GgufCard, GgufModel, LocalModels, Sampling, locate},
};
use candle_core::{
    Device, Tensor,
    quantized::{GgmlDType, QTensor, gguf_file, gguf_file::Value},
};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::memory_host::request;

const WIDTH: usize = 32;
const HEAD: usize = 16;
const BLOCKS: usize = 7;

/// Writes a model of fixed numbers.
fn tiny(family: &str, path: &Path) {
    let mut seed = 7_u32;
    let mut tensor = |rows: usize, columns: usize| {
        let numbers: Vec<f32> = (0..rows * columns)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 8) as f32 / (1_u32 << 24) as f32 - 0.5
            })
            .collect();
        let shape: Vec<usize> = if rows == 1 { vec![columns] } else { vec![rows, columns] };
        let tensor = Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap();
        QTensor::quantize(&tensor, GgmlDType::F32).unwrap()
    };
    let gemma = family == "gemma3";
    let words = words(gemma);
    let mut tensors = vec![("token_embd.weight".to_owned(), tensor(words.len(), WIDTH))];
    tensors.push(("output_norm.weight".to_owned(), tensor(1, WIDTH)));
    for block in 0..BLOCKS {
        let mut add = |part: &str, rows: usize, columns: usize| {
            tensors.push((format!("blk.{block}.{part}.weight"), tensor(rows, columns)));
        };
        add("attn_q", 2 * HEAD, WIDTH);
        add("attn_k", HEAD, WIDTH);
        add("attn_v", HEAD, WIDTH);
        add("attn_output", WIDTH, 2 * HEAD);
        add("attn_q_norm", 1, HEAD);
        add("attn_k_norm", 1, HEAD);
        add("attn_norm", 1, WIDTH);
        add("ffn_norm", 1, WIDTH);
        if gemma {
            add("post_attention_norm", 1, WIDTH);
            add("post_ffw_norm", 1, WIDTH);
        }
        add("ffn_gate", 64, WIDTH);
        add("ffn_up", 64, WIDTH);
        add("ffn_down", WIDTH, 64);
    }
    let text = |text: &str| Value::String(text.to_owned());
    let kinds = words.iter().map(|(_, kind)| Value::I32(*kind)).collect();
    let mut facts = vec![
        ("general.architecture".to_owned(), text(family)),
        ("general.name".to_owned(), text("tiny")),
        ("tokenizer.ggml.model".to_owned(), text(if gemma { "llama" } else { "gpt2" })),
        ("tokenizer.ggml.tokens".to_owned(), Value::Array(words.iter().map(|(word, _)| text(word)).collect())),
        ("tokenizer.ggml.token_type".to_owned(), Value::Array(kinds)),
        ("tokenizer.ggml.merges".to_owned(), Value::Array(vec![text("Ġ t")])),
        ("tokenizer.ggml.bos_token_id".to_owned(), Value::U32(2)),
        ("tokenizer.ggml.eos_token_id".to_owned(), Value::U32(1)),
        ("tokenizer.ggml.add_bos_token".to_owned(), Value::Bool(gemma)),
    ];
    for (key, number) in [
        ("context_length", 512),
        ("block_count", BLOCKS as u32),
        ("embedding_length", WIDTH as u32),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("attention.key_length", HEAD as u32),
        ("attention.sliding_window", 24),
    ] {
        facts.push((format!("{family}.{key}"), Value::U32(number)));
    }
    let facts: Vec<(&str, &Value)> = facts.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut file = BufWriter::new(fs_err::File::create(path).unwrap());
    gguf_file::write(&mut file, &facts, &tensors).unwrap();
}

/// Control words, and a word for every byte.
fn words(gemma: bool) -> Vec<(String, i32)> {
    let control = if gemma {
        ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    } else {
        ["<pad>", "<|endoftext|>", "<think>", "</think>", "<|im_start|>", "<|im_end|>"]
    };
    let mut words: Vec<(String, i32)> = control.iter().map(|word| ((*word).to_owned(), 3)).collect();
    let mut shifted = 0x100;
    for byte in 0..=255_u8 {
        if gemma {
            words.push((format!("<0x{byte:02X}>"), 6));
        } else if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            words.push((char::from(byte).to_string(), 1));
        } else {
            words.push((char::from_u32(shifted).unwrap().to_string(), 1));
            shifted += 1;
        }
    }
    if !gemma {
        words.push(("Ġt".to_owned(), 1));
    }
    words
}

fn made(family: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("{family}.gguf"));
    tiny(family, &path);
    (dir, path)
}

fn model(path: &Path) -> Arc<GgufModel> {
    let card = GgufCard::read(path).unwrap();
    let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
    Arc::new(GgufModel::new(card, Locale::En, Arc::new(SystemClock::new())).with_sampling(greedy))
}

fn ask(messages: &[&str], max_output: u32) -> TextAsk {
    let mut turn = request("", Locale::En);
    turn.model.window = Tokens(100_000);
    turn.model.max_output = Tokens(max_output);
    let messages = messages
        .iter()
        .enumerate()
        .map(|(at, text)| TextMessage { by_model: at % 2 == 1, text: (*text).to_owned() })
        .collect();
    TextAsk { model: turn.model, system: "You are sakura.".into(), messages, limits: turn.limits }
}

async fn write(model: &GgufModel, ask: TextAsk) -> (String, Usage, StopReason) {
    let mut events = model.write(ask);
    let (mut text, mut usage, mut end) = (String::new(), Usage::default(), None);
    while let Some(event) = events.next().await {
        match event.unwrap() {
            TextEvent::Text(piece) => text.push_str(&piece),
            TextEvent::Usage(counted) => usage = counted,
            TextEvent::End(reason) => end = Some(reason),
            _ => {}
        }
    }
    (text, usage, end.unwrap())
}

#[tokio::test]
async fn a_conversation_goes_on_where_it_was_and_says_the_same() {
    for family in ["gemma3", "qwen3"] {
        let (_dir, path) = made(family);
        let long = "鍵は品川駅の南口に預けた。 The key is at the station. ".repeat(3);
        let first = ask(&[&long], 12);
        let model = model(&path);
        assert!(!model.is_loaded());
        let (answer, usage, reason) = write(&model, first.clone()).await;
        assert!(model.is_loaded());
        assert_eq!((usage.output_tokens, usage.cache_read_tokens, reason), (12, 0, StopReason::Length), "{family}");
        assert!(usage.input_tokens > 128, "read in several pieces: {usage:?}");

        let second = ask(&[&long, "Yes.", "And the other one?"], 12);
        let (went_on, usage, _) = write(&model, second.clone()).await;
        assert!(usage.cache_read_tokens > 100, "{usage:?}");
        let fresh = self::model(&path);
        assert_eq!(write(&fresh, second).await.0, went_on, "{family}");
        assert_eq!(write(&fresh, first).await.0, answer, "{family}");
    }
}

#[tokio::test]
async fn a_reader_that_leaves_stops_the_work() {
    let (_dir, path) = made("gemma3");
    let model = model(&path);
    let mut events = model.write(ask(&["hello"], 400));
    assert!(events.next().await.unwrap().is_ok());
    drop(events);
    let (_, usage, _) = write(&model, ask(&["hello"], 3)).await;
    assert_eq!(usage.output_tokens, 3);
}

#[tokio::test]
async fn what_does_not_fit_or_is_no_model_is_said() {
    let (dir, path) = made("qwen3");
    let error = model(&path).write(ask(&[&"words ".repeat(400)], 10)).next().await.unwrap().unwrap_err();
    assert!(matches!(error, ExecError::ContextOverflow { .. }), "{error}");

    let (_other, strange) = made("llama9");
    assert!(matches!(GgufCard::read(&strange), Err(ExecError::Rejected { .. })));
    let torn = dir.path().join("torn.gguf");
    let bytes = fs_err::read(&path).unwrap();
    fs_err::write(&torn, &bytes[..2000]).unwrap();
    assert!(matches!(GgufCard::read(&torn), Err(ExecError::Malformed { .. })));
    fs_err::write(&torn, &bytes[..bytes.len() - 5000]).unwrap();
    let error = model(&torn).write(ask(&["hello"], 10)).next().await.unwrap().unwrap_err();
    assert!(matches!(error, ExecError::Malformed { .. }), "{error}");

    assert_eq!(GgufCard::read(&path).unwrap().window, Tokens(512));
    assert_eq!(locate("local/qwen3", dir.path()).unwrap(), path);
    assert_eq!(locate(&format!("local/{}", path.display()), Path::new("/nowhere")).unwrap(), path);
    assert!(matches!(locate("local/none", dir.path()), Err(ExecError::NotInstalled { .. })));
    assert!(locate("local/../qwen3", &dir.path().join("x")).is_err());
    let models = LocalModels::new(dir.path().to_owned(), Locale::Ja, Arc::new(SystemClock::new()));
    assert!(Arc::ptr_eq(&models.model("local/qwen3").unwrap(), &models.model("local/qwen3.gguf").unwrap()));
}

#[tokio::test]
async fn the_weights_are_given_back_when_nobody_asks() {
    let (_dir, path) = made("gemma3");
    let card = GgufCard::read(&path).unwrap();
    let model = GgufModel::new(card, Locale::En, Arc::new(SystemClock::new())).idle_after(Duration::from_millis(1));
    let first = write(&model, ask(&["hello"], 3)).await.0;
    let gone = async {
        while model.is_loaded() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
    assert_eq!(write(&model, ask(&["hello"], 3)).await.0, first, "it is loaded again");
}

/// The weights that `cargo xtask test` fetches.
#[allow(clippy::disallowed_methods, reason = "where the test's weights are is said by whoever starts it")]
fn weights() -> Option<PathBuf> {
    let path = std::env::var_os("ANIMAWORKS_TEST_GGUF").map(PathBuf::from).filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: ANIMAWORKS_TEST_GGUF names no file (cargo xtask gguf fetches one)");
    }
    path
}

#[tokio::test]
async fn a_real_model_reads_and_writes_in_mode_b() {
    let Some(path) = weights() else { return };
    let card = GgufCard::read(&path).unwrap();
    assert_eq!((card.architecture.as_str(), card.window), ("gemma3", Tokens(32_768)));
    let greedy = Sampling { temperature: 0.0, repeat_penalty: 1.0, ..Sampling::default() };
    let model = Arc::new(GgufModel::new(card, Locale::En, Arc::new(SystemClock::new())).with_sampling(greedy));
    // llama.cpp counts 19 tokens too; a base model says the sentence again before it goes astray
    let (text, usage, _) = write(&model, ask(&["The capital of France is"], 14)).await;
    println!("{text:?} {usage:?}");
    assert_eq!(usage.input_tokens, 19);
    assert!(text.contains("capital of France is"), "{text:?}");

    let host: Arc<dyn TurnHost> = Arc::new(RecordingHost::new(Vec::new(), ToolOutput::text("")));
    let mut turn = request("The capital of France is", Locale::En);
    turn.model.max_output = Tokens(16);
    turn.limits.max_turns = 1;
    let events = Basic::new(model).run(turn, host, CancellationToken::new());
    let events: Vec<_> = lawful("gguf", events).map(Result::unwrap).collect().await;
    let notes: Vec<&str> = events
        .iter()
        .filter_map(|event| if let TurnEvent::Note(note) = event { Some(note.as_str()) } else { None })
        .collect();
    println!("{notes:?}");
    assert!(notes.iter().any(|note| note.contains("a second")), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, TurnEvent::Text(_))), "{events:?}");
}
