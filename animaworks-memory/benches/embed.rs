//! What the embedder costs, beside candle's `BertModel` with the same weights:
//! `ANIMAWORKS_TEST_WEIGHTS=… cargo bench -p animaworks-memory --features oracle --bench embed`.
//!
//! Without weights it says so and measures nothing. The figures of `docs/adr/0002-own-embedder.md` come from here.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints, reads its environment and measures the machine's time"
)]

use std::{
    collections::HashMap,
    error::Error,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use animaworks_memory::embed::{E5Embedder, E5Options, EmbedKind, Embedder, weights};
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};

fn main() -> Result<(), Box<dyn Error>> {
    let Some(source) = std::env::var_os("ANIMAWORKS_TEST_WEIGHTS").map(PathBuf::from) else {
        println!("skipped: ANIMAWORKS_TEST_WEIGHTS is not set");
        return Ok(());
    };
    let models = source.join("imported");
    let dir = match weights::find(&models, weights::E5_SMALL, None) {
        Ok(dir) => dir,
        Err(_) => {
            let start = Instant::now();
            let imported = weights::import(&source, &models, &mut |_| {})?;
            println!("import: {:.1} s", start.elapsed().as_secs_f64());
            imported.dir
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let options = |threads| E5Options { threads, idle: Duration::from_secs(600) };

    let before = anonymous();
    let start = Instant::now();
    let one = E5Embedder::open(&dir, options(1))?;
    println!("open: {:.1} ms", ms(start));
    let query = text(&one, EmbedKind::Query, 18);
    let passage = text(&one, EmbedKind::Passage, 128);
    let (start, start_cpu) = (Instant::now(), cpu());
    runtime.block_on(one.embed(EmbedKind::Query, vec![query.clone()]))?;
    println!("first query, layers and all: {:.1} ms, {:.1} of processor time", ms(start), cpu() - start_cpu);
    let query_times = repeat(60, || runtime.block_on(one.embed(EmbedKind::Query, vec![query.clone()])))?;
    let passage_times = repeat(40, || runtime.block_on(one.embed(EmbedKind::Passage, vec![passage.clone()])))?;
    println!("anonymous memory with layers: {:.1} MB (process before: {before:.1})", anonymous());
    println!("18-token query, processor time: p50 {:.1} ms, best {:.1}", query_times[30], query_times[0]);
    println!("128 tokens, processor time: p50 {:.1} ms, {:.2} texts/s", passage_times[20], 1e3 / passage_times[20]);
    one.release();
    println!("anonymous memory after release: {:.1} MB", anonymous());
    drop(one);
    let all = E5Embedder::open(&dir, options(2))?;
    runtime.block_on(all.embed(EmbedKind::Passage, vec![passage.clone(); 4]))?;
    let (start, start_cpu) = (Instant::now(), cpu());
    runtime.block_on(all.embed(EmbedKind::Passage, vec![passage.clone(); 64]))?;
    let spent = (cpu() - start_cpu) / 64.0;
    println!("128 tokens, two cores: {:.2} texts/s, {spent:.1} ms of processor time each", 64e3 / ms(start));
    drop(all);

    let bert = bert(&dir)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for (name, tokens, rounds) in [("18-token query", 18_u32, 60), ("128 tokens", 128, 40)] {
        let ids =
            Tensor::new(&(0..tokens).map(|id| id * 37 + 5).collect::<Vec<_>>()[..], &Device::Cpu)?.unsqueeze(0)?;
        let types = ids.zeros_like()?;
        let times = repeat(rounds, || pool.install(|| bert.forward(&ids, &types, None)?.mean(1)))?;
        let p50 = times[rounds / 2];
        println!("BertModel, {name}, processor time: p50 {p50:.1} ms, best {:.1}, {:.2} texts/s", times[0], 1e3 / p50);
    }
    Ok(())
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Processor time of all threads of this process in ms: what other programs do does not count.
fn cpu() -> f64 {
    let tasks = fs_err::read_dir("/proc/self/task").map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    let nanos: f64 = tasks
        .iter()
        .flatten()
        .filter_map(|task| fs_err::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .sum();
    nanos / 1e6
}

/// Sorted milliseconds of processor time.
fn repeat<T, E: Error + 'static>(
    rounds: usize,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = cpu();
        work()?;
        times.push(cpu() - start);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// A text of so many tokens.
fn text(embedder: &E5Embedder, kind: EmbedKind, tokens: usize) -> String {
    let words = ["the", "server", "was", "restarted", "after", "会議", "明日", "and", "notes", "are", "in"];
    let mut text = String::new();
    let mut at = 0;
    loop {
        let longer = format!("{text} {}", words[at % words.len()]);
        if embedder.tokens(kind, &longer) > tokens {
            return text;
        }
        text = longer;
        at += 1;
    }
}

/// Anonymous memory of this process in MB.
fn anonymous() -> f64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).map_or(0.0, |kb| kb / 1024.0)
}

/// The same weights as a `BertModel`: fused matrices taken apart and turned back.
fn bert(dir: &Path) -> Result<BertModel, Box<dyn Error>> {
    let meta: weights::Meta = serde_json::from_str(&fs_err::read_to_string(dir.join("meta.json"))?)?;
    let shape = meta.shape;
    let ours = candle_core::safetensors::load(dir.join("weights.safetensors"), &Device::Cpu)?;
    let mut theirs = HashMap::new();
    let f32 = |name: &str| -> candle_core::Result<Tensor> { ours[name].to_dtype(DType::F32) };
    theirs.insert("embeddings.word_embeddings.weight".to_owned(), f32("words")?);
    theirs.insert("embeddings.position_embeddings.weight".to_owned(), f32("positions")?);
    let types = Tensor::zeros((2, shape.hidden), DType::F32, &Device::Cpu)?;
    theirs.insert("embeddings.token_type_embeddings.weight".to_owned(), types);
    for kind in ["weight", "bias"] {
        theirs.insert(format!("embeddings.LayerNorm.{kind}"), f32(&format!("norm.{kind}"))?);
    }
    for layer in 0..shape.layers {
        let prefix = format!("encoder.layer.{layer}");
        for (number, part) in ["query", "key", "value"].iter().enumerate() {
            let name = format!("{prefix}.attention.self.{part}");
            let from = number * shape.hidden;
            let weight = f32(&format!("{layer}.qkv.weight"))?.narrow(1, from, shape.hidden)?.t()?.contiguous()?;
            theirs.insert(format!("{name}.weight"), weight);
            theirs.insert(format!("{name}.bias"), f32(&format!("{layer}.qkv.bias"))?.narrow(0, from, shape.hidden)?);
        }
        for (our, their) in [("mix", "attention.output"), ("up", "intermediate"), ("down", "output")] {
            let weight = f32(&format!("{layer}.{our}.weight"))?.t()?.contiguous()?;
            theirs.insert(format!("{prefix}.{their}.dense.weight"), weight);
            theirs.insert(format!("{prefix}.{their}.dense.bias"), f32(&format!("{layer}.{our}.bias"))?);
            if our != "up" {
                for kind in ["weight", "bias"] {
                    let norm = f32(&format!("{layer}.{our}.norm.{kind}"))?;
                    theirs.insert(format!("{prefix}.{their}.LayerNorm.{kind}"), norm);
                }
            }
        }
    }
    let config = Config {
        vocab_size: shape.vocabulary,
        hidden_size: shape.hidden,
        num_hidden_layers: shape.layers,
        num_attention_heads: shape.heads,
        intermediate_size: shape.inner,
        layer_norm_eps: shape.epsilon,
        ..Config::default()
    };
    Ok(BertModel::load(VarBuilder::from_tensors(theirs, DType::F32, &Device::Cpu), &config)?)
}
