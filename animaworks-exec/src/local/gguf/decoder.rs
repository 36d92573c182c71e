//! The forward pass of the gemma3 and qwen3 families over candle's quantised tensors.
//!
//! Our own, because the ready-made ones keep 130 MB of rotary tables per layer, unpack the
//! whole vocabulary and cannot read a prompt in pieces. Rows of the vocabulary are gathered,
//! rotary tables are made for the positions at hand, and a common beginning of two prompts
//! is not read twice.

use std::{borrow::Cow, fs::File, sync::Arc};

use candle_core::{
    DType, Device, Module, Result, Tensor,
    quantized::{
        QMatMul, QStorage, QTensor,
        gguf_file::{Content, Value},
    },
};

/// The families this pass knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `gemma3` in the file.
    Gemma3,
    /// `qwen3` in the file.
    Qwen3,
}

impl Family {
    /// The family of an architecture's name.
    pub(crate) fn of(architecture: &str) -> Option<Self> {
        match architecture {
            "gemma3" => Some(Self::Gemma3),
            "qwen3" => Some(Self::Qwen3),
            _ => None,
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Gemma3 => "gemma3",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// Every sixth layer of gemma3 looks at everything, the others at a window.
const GEMMA3_GLOBAL_EVERY: usize = 6;
/// The rotary base of gemma3's windowed layers.
const GEMMA3_LOCAL_BASE: f32 = 10_000.0;
/// Positions that the cache grows by.
const CACHE_STEP: usize = 512;
/// From so many tokens at once a matrix is unpacked before it is multiplied.
const UNPACK_FROM: usize = 16;

/// A model with its weights and the state of one sequence.
#[derive(Debug)]
pub(crate) struct Decoder {
    family: Family,
    vocabulary: Arc<QTensor>,
    width: usize,
    layers: Vec<Layer>,
    norm: Norm,
    output: Matrix,
    heads: Heads,
    /// For layers that look at a window.
    local: Rotary,
    /// For layers that look at everything.
    global: Rotary,
    /// Positions read so far.
    position: usize,
    device: Device,
}

#[derive(Debug, Clone, Copy)]
struct Heads {
    query: usize,
    key: usize,
    size: usize,
    scale: f64,
}

#[derive(Debug)]
struct Norm {
    weight: Tensor,
    epsilon: f32,
}

impl Norm {
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::rms_norm(&x.contiguous()?, &self.weight, self.epsilon)
    }
}

/// A packed matrix. One token is multiplied with it as it is. A piece of a prompt is multiplied with the
/// unpacked numbers, which costs their unpacking once and then runs on the vector units of whatever
/// processor this is; the packed product is compiled for the oldest one and is ten times slower.
#[derive(Debug)]
struct Matrix {
    packed: Arc<QTensor>,
    product: QMatMul,
}

impl Matrix {
    fn new(packed: Arc<QTensor>) -> Result<Self> {
        Ok(Self { product: QMatMul::from_arc(packed.clone())?, packed })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.dim(0)? < UNPACK_FROM {
            return self.product.forward(x);
        }
        x.matmul(&self.packed.dequantize(x.device())?.t()?)
    }
}

#[derive(Debug)]
struct Layer {
    query: Matrix,
    key: Matrix,
    value: Matrix,
    out: Matrix,
    query_norm: Norm,
    key_norm: Norm,
    before_attention: Norm,
    after_attention: Option<Norm>,
    before_feed: Norm,
    after_feed: Option<Norm>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
    /// How far back it looks; `None` is everything.
    window: Option<usize>,
    keys: Option<Tensor>,
    values: Option<Tensor>,
}

/// Reads a file's tensors and numbers.
struct Source<'a> {
    content: &'a Content,
    file: &'a mut File,
    prefix: &'static str,
    device: Device,
    epsilon: f32,
}

impl Source<'_> {
    fn number(&self, key: &str) -> Result<&Value> {
        let key = format!("{}.{key}", self.prefix);
        match self.content.metadata.get(&key) {
            Some(value) => Ok(value),
            None => candle_core::bail!("the file does not say {key}"),
        }
    }

    fn count(&self, key: &str) -> Result<usize> {
        Ok(self.number(key)?.to_u32()? as usize)
    }

    fn float(&self, key: &str, otherwise: f32) -> f32 {
        self.number(key).and_then(Value::to_f32).unwrap_or(otherwise)
    }

    fn tensor(&mut self, name: &str) -> Result<QTensor> {
        self.content.tensor(self.file, name, &self.device)
    }

    fn matrix(&mut self, name: &str) -> Result<Matrix> {
        Matrix::new(Arc::new(self.tensor(name)?))
    }

    fn norm(&mut self, name: &str) -> Result<Norm> {
        let weight = self.tensor(name)?.dequantize(&self.device)?;
        Ok(Norm { weight, epsilon: self.epsilon })
    }
}

impl Decoder {
    /// Loads the weights.
    pub(crate) fn load(family: Family, content: &Content, file: &mut File) -> Result<Self> {
        let device = Device::Cpu;
        let mut source = Source { content, file, prefix: family.prefix(), device: device.clone(), epsilon: 1e-6 };
        source.epsilon = source.float("attention.layer_norm_rms_epsilon", 1e-6);
        let size = source.count("attention.key_length")?;
        let heads = Heads {
            query: source.count("attention.head_count")?,
            key: source.count("attention.head_count_kv")?,
            size,
            scale: 1.0 / (size as f64).sqrt(),
        };
        let window = match family {
            Family::Gemma3 => Some(source.count("attention.sliding_window")?),
            Family::Qwen3 => None,
        };
        let vocabulary = Arc::new(source.tensor("token_embd.weight")?);
        let width = vocabulary.shape().dims2()?.1;
        let output = if source.content.tensor_infos.contains_key("output.weight") {
            source.matrix("output.weight")?
        } else {
            Matrix::new(vocabulary.clone())?
        };
        let mut layers = Vec::new();
        for at in 0..source.count("block_count")? {
            let global = (at + 1) % GEMMA3_GLOBAL_EVERY == 0;
            layers.push(layer(&mut source, family, at, window.filter(|_| !global))?);
        }
        let norm = source.norm("output_norm.weight")?;
        let local = Rotary { base: source.float("rope.local_freq_base", GEMMA3_LOCAL_BASE), stretch: 1.0, size };
        let stretch = Some(source.float("rope.scaling.factor", 1.0)).filter(|factor| *factor > 0.0).unwrap_or(1.0);
        let global = Rotary { base: source.float("rope.freq_base", 1_000_000.0), stretch, size };
        Ok(Self { family, vocabulary, width, layers, norm, output, heads, local, global, position: 0, device })
    }

    /// Forgets everything behind a position.
    pub(crate) fn rewind(&mut self, position: usize) {
        self.position = self.position.min(position);
    }

    /// Reads tokens; with `wanted` it says what may come next (a number per word of the vocabulary).
    pub(crate) fn read(&mut self, tokens: &[u32], wanted: bool) -> Result<Option<Vec<f32>>> {
        let mut x = self.gather(tokens)?;
        if self.family == Family::Gemma3 {
            x = (x * (self.width as f64).sqrt())?;
        }
        let count = tokens.len();
        let local = self.local.table(self.position, count, &self.device)?;
        let global = self.global.table(self.position, count, &self.device)?;
        for layer in &mut self.layers {
            let table = if layer.window.is_some() { &local } else { &global };
            x = layer.forward(&x, self.heads, self.family, self.position, table)?;
        }
        self.position += count;
        if !wanted {
            return Ok(None);
        }
        let last = x.narrow(0, count - 1, 1)?;
        let logits = self.output.forward(&self.norm.apply(&last)?)?;
        logits.squeeze(0)?.to_dtype(DType::F32)?.to_vec1::<f32>().map(Some)
    }

    /// The rows of the vocabulary for some tokens.
    fn gather(&self, tokens: &[u32]) -> Result<Tensor> {
        let dtype = self.vocabulary.dtype();
        let row_bytes = self.width / dtype.block_size() * dtype.type_size();
        let data = self.vocabulary.data()?;
        let mut rows = Vec::with_capacity(row_bytes * tokens.len());
        for token in tokens {
            let at = *token as usize * row_bytes;
            match data.get(at..at + row_bytes) {
                Some(row) => rows.extend_from_slice(row),
                None => candle_core::bail!("token {token} is not in the vocabulary"),
            }
        }
        let storage = QStorage::from_data(Cow::Owned(rows), &self.device, dtype)?;
        QTensor::new(storage, (tokens.len(), self.width))?.dequantize(&self.device)
    }
}

fn layer(source: &mut Source<'_>, family: Family, at: usize, window: Option<usize>) -> Result<Layer> {
    let name = |part: &str| format!("blk.{at}.{part}.weight");
    let gemma = family == Family::Gemma3;
    Ok(Layer {
        query: source.matrix(&name("attn_q"))?,
        key: source.matrix(&name("attn_k"))?,
        value: source.matrix(&name("attn_v"))?,
        out: source.matrix(&name("attn_output"))?,
        query_norm: source.norm(&name("attn_q_norm"))?,
        key_norm: source.norm(&name("attn_k_norm"))?,
        before_attention: source.norm(&name("attn_norm"))?,
        after_attention: if gemma { Some(source.norm(&name("post_attention_norm"))?) } else { None },
        before_feed: source.norm(&name("ffn_norm"))?,
        after_feed: if gemma { Some(source.norm(&name("post_ffw_norm"))?) } else { None },
        gate: source.matrix(&name("ffn_gate"))?,
        up: source.matrix(&name("ffn_up"))?,
        down: source.matrix(&name("ffn_down"))?,
        window,
        keys: None,
        values: None,
    })
}

impl Layer {
    fn forward(
        &mut self,
        x: &Tensor,
        heads: Heads,
        family: Family,
        position: usize,
        table: &(Tensor, Tensor),
    ) -> Result<Tensor> {
        let attended = self.attend(&self.before_attention.apply(x)?, heads, position, table)?;
        let attended = match &self.after_attention {
            Some(norm) => norm.apply(&attended)?,
            None => attended,
        };
        let x = (x + attended)?;
        let inner = self.before_feed.apply(&x)?;
        let gate = self.gate.forward(&inner)?;
        let gate = match family {
            Family::Gemma3 => gate.gelu()?,
            Family::Qwen3 => gate.silu()?,
        };
        let fed = self.down.forward(&(gate * self.up.forward(&inner)?)?)?;
        let fed = match &self.after_feed {
            Some(norm) => norm.apply(&fed)?,
            None => fed,
        };
        x + fed
    }

    fn attend(&mut self, x: &Tensor, heads: Heads, position: usize, table: &(Tensor, Tensor)) -> Result<Tensor> {
        let count = x.dim(0)?;
        let split = |x: Tensor, n: usize| x.reshape((count, n, heads.size))?.transpose(0, 1)?.contiguous();
        let turn = |x: Tensor| candle_nn::rotary_emb::rope(&x.unsqueeze(0)?, &table.0, &table.1)?.squeeze(0);
        let query = turn(self.query_norm.apply(&split(self.query.forward(x)?, heads.query)?)?)?;
        let key = turn(self.key_norm.apply(&split(self.key.forward(x)?, heads.key)?)?)?;
        let value = split(self.value.forward(x)?, heads.key)?;
        let end = position + count;
        keep(&mut self.keys, &key, position)?;
        keep(&mut self.values, &value, position)?;
        let (Some(keys), Some(values)) = (&self.keys, &self.values) else {
            candle_core::bail!("the cache is gone");
        };
        // what no query of this read can see is left out
        let start = self.window.map_or(0, |window| (position + 1).saturating_sub(window));
        let seen = end - start;
        let keys = keys.narrow(1, start, seen)?;
        let values = values.narrow(1, start, seen)?;

        let group = heads.query / heads.key;
        let query = query.reshape((heads.key, group * count, heads.size))?;
        let mut weights = (query.matmul(&keys.transpose(1, 2)?)? * heads.scale)?;
        if count > 1 {
            let mask = mask(position, count, start, seen, self.window, x.device())?;
            weights = weights.reshape((heads.key, group, count, seen))?.broadcast_add(&mask)?;
            weights = weights.reshape((heads.key, group * count, seen))?;
        }
        let weights = candle_nn::ops::softmax_last_dim(&weights)?;
        let out = weights.matmul(&values)?;
        let out = out.reshape((heads.query, count, heads.size))?.transpose(0, 1)?;
        self.out.forward(&out.reshape((count, heads.query * heads.size))?)
    }
}

/// Puts new rows into a cache at a position; the cache grows as needed.
fn keep(cache: &mut Option<Tensor>, new: &Tensor, position: usize) -> Result<()> {
    let (n, count, size) = new.dims3()?;
    let room = match cache {
        Some(tensor) => tensor.dim(1)?,
        None => 0,
    };
    if position + count > room {
        let wanted = (position + count).div_ceil(CACHE_STEP) * CACHE_STEP;
        let grown = Tensor::zeros((n, wanted, size), new.dtype(), new.device())?;
        if let Some(old) = cache.as_ref().filter(|_| position > 0) {
            grown.slice_set(&old.narrow(1, 0, position)?.contiguous()?, 1, 0)?;
        }
        *cache = Some(grown);
    }
    match cache {
        Some(tensor) => tensor.slice_set(&new.contiguous()?, 1, position),
        None => Ok(()),
    }
}

/// 0 where a query may look, minus infinity where it may not.
fn mask(
    position: usize,
    count: usize,
    start: usize,
    seen: usize,
    window: Option<usize>,
    device: &Device,
) -> Result<Tensor> {
    let window = window.unwrap_or(usize::MAX);
    let cells: Vec<f32> = (0..count)
        .flat_map(|at| {
            let query = position + at;
            (0..seen).map(move |at| {
                let key = start + at;
                let visible = key <= query && query - key < window;
                if visible { 0.0 } else { f32::NEG_INFINITY }
            })
        })
        .collect();
    Tensor::from_vec(cells, (count, seen), device)
}

/// How positions are told apart in some of the layers.
#[derive(Debug, Clone, Copy)]
struct Rotary {
    base: f32,
    /// How much positions are stretched.
    stretch: f32,
    size: usize,
}

impl Rotary {
    /// Cosines and sines for some positions.
    fn table(self, position: usize, count: usize, device: &Device) -> Result<(Tensor, Tensor)> {
        let half = self.size / 2;
        let mut cosines = Vec::with_capacity(count * half);
        let mut sines = Vec::with_capacity(count * half);
        for at in position..position + count {
            for pair in 0..half {
                let angle = at as f32 / self.stretch / self.base.powf((2 * pair) as f32 / self.size as f32);
                cosines.push(angle.cos());
                sines.push(angle.sin());
            }
        }
        Ok((Tensor::from_vec(cosines, (count, half), device)?, Tensor::from_vec(sines, (count, half), device)?))
    }
}
