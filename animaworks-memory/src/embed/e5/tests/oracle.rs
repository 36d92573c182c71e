//! The forward pass against candle's own BERT.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};

use super::*;
use crate::embed::weights::tests::real;

/// Lowest cosine between our vectors and those of candle's `BertModel` over the same tokens.
fn lowest_cosine(dir: &Path, bert: &BertModel) -> f32 {
    let weights = Weights::open(dir).unwrap();
    let model = Model::load(&weights).unwrap();
    let mut lowest = 1.0_f32;
    for text in TEXTS {
        for kind in [EmbedKind::Query, EmbedKind::Passage] {
            let ours = vector(&weights, &model, kind, text).unwrap();
            let ids = Tensor::new(&tokens(&weights, kind, text)[..], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
            let states = bert.forward(&ids, &ids.zeros_like().unwrap(), None).unwrap();
            let mut theirs: Vec<f32> = states.mean(1).unwrap().squeeze(0).unwrap().to_vec1().unwrap();
            crate::embed::normalise(&mut theirs);
            lowest = lowest.min(ours.iter().zip(&theirs).map(|(a, b)| a * b).sum());
        }
    }
    lowest
}

#[test]
fn a_small_model_computes_what_candles_bert_computes() {
    let (from, models) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = small(from.path(), false);
    let dir = import(&source, models.path(), &mut |_| {}).unwrap().dir;
    let tensors = candle_core::safetensors::load(source.join("model.safetensors"), &Device::Cpu).unwrap();
    let config: Config = animaworks_core::fs::read_json(&source.join("config.json")).unwrap();
    let bert = BertModel::load(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu), &config).unwrap();
    let lowest = lowest_cosine(&dir, &bert);
    assert!(lowest > 0.9999, "{lowest}");
}

#[test]
fn the_real_model_computes_what_candles_bert_computes() {
    let Some((source, dir)) = real() else { return };
    let tensors = crate::embed::weights::bert_tensors(&source).unwrap();
    let shape = Weights::open(&dir).unwrap().meta.shape;
    let config = Config {
        vocab_size: shape.vocabulary,
        hidden_size: shape.hidden,
        num_hidden_layers: shape.layers,
        num_attention_heads: shape.heads,
        intermediate_size: shape.inner,
        layer_norm_eps: shape.epsilon,
        ..Config::default()
    };
    let tensors = tensors
        .into_iter()
        .map(|(name, shape, values)| (name, Tensor::from_vec(values, shape, &Device::Cpu).unwrap()))
        .collect();
    let bert = BertModel::load(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu), &config).unwrap();
    let lowest = lowest_cosine(&dir, &bert);
    println!("lowest cosine to BertModel in f32: {lowest}");
    assert!(lowest >= 0.999, "{lowest}");
    // and it understands: the same in two languages is nearer than something else
    let weights = Weights::open(&dir).unwrap();
    let model = Model::load(&weights).unwrap();
    let embed = |text: &str| vector(&weights, &model, EmbedKind::Query, text).unwrap();
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let (english, japanese) = (embed("restart the server"), embed("サーバーを再起動する"));
    assert!(cosine(&english, &japanese) > cosine(&english, &embed("桜が咲いた")) + 0.05);
}
