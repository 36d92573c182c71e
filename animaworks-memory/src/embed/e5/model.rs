//! The forward pass: matrix products by candle, everything between them by our own kernels, in place.

use candle_core::{CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Tensor, bail};

use super::{EmbedError, kernels};
use crate::embed::weights::{Kind, Shape, Weights, f16s, f32s, sum};

/// The layers in f32.
#[derive(Debug)]
pub(super) struct Model {
    norm: Norm,
    layers: Vec<Layer>,
    shape: Shape,
}

#[derive(Debug)]
struct Layer {
    // query, key and value side by side
    qkv: Tensor,
    qkv_bias: QkvBias,
    mix: Tensor,
    mix_norm: Norm,
    up: Tensor,
    up_bias: GeluBias,
    down: Tensor,
    down_norm: Norm,
}

impl Model {
    /// Reads and converts every layer.
    pub(super) fn load(weights: &Weights) -> Result<Self, EmbedError> {
        let shape = weights.meta.shape;
        let Shape { hidden, inner, .. } = shape;
        let reader = Reader { weights };
        let parts =
            [("qkv", hidden, 3 * hidden), ("mix", hidden, hidden), ("up", hidden, inner), ("down", inner, hidden)];
        let per_layer: usize = parts.iter().map(|(_, rows, columns)| rows * columns).sum();
        // one allocation for all matrices: one that large goes back to the machine when it is dropped
        let mut values = vec![0.0; per_layer * shape.layers];
        let mut rest = values.as_mut_slice();
        for layer in 0..shape.layers {
            for (part, rows, columns) in parts {
                let (matrix, behind) = rest.split_at_mut(rows * columns);
                reader.fill(&format!("{layer}.{part}.weight"), matrix)?;
                rest = behind;
            }
        }
        let compute = |error: candle_core::Error| EmbedError::Compute(Box::new(error));
        let all = Tensor::from_vec(values, per_layer * shape.layers, &Device::Cpu).map_err(compute)?;
        let mut layers = Vec::with_capacity(shape.layers);
        for layer in 0..shape.layers {
            let mut at = layer * per_layer;
            let mut next = |(_, rows, columns): (&str, usize, usize)| {
                let view = all.narrow(0, at, rows * columns).and_then(|view| view.reshape((rows, columns)));
                at += rows * columns;
                view.map_err(compute)
            };
            let [qkv, mix, up, down] = [next(parts[0])?, next(parts[1])?, next(parts[2])?, next(parts[3])?];
            let name = |part: &str| format!("{layer}.{part}");
            let scale = 1.0 / ((hidden / shape.heads) as f32).sqrt();
            layers.push(Layer {
                qkv,
                qkv_bias: QkvBias { bias: reader.vector(&name("qkv.bias"), 3 * hidden)?, hidden, scale },
                mix,
                mix_norm: reader.norm(&name("mix"), &name("mix.norm"), &shape)?,
                up,
                up_bias: GeluBias { bias: reader.vector(&name("up.bias"), inner)? },
                down,
                down_norm: reader.norm(&name("down"), &name("down.norm"), &shape)?,
            });
        }
        let norm = Norm {
            bias: vec![0.0; hidden],
            weight: reader.vector("norm.weight", hidden)?,
            shift: reader.vector("norm.bias", hidden)?,
            epsilon: shape.epsilon as f32,
        };
        Ok(Self { norm, layers, shape })
    }

    /// The mean of the last hidden states, not yet normalised.
    pub(super) fn forward(&self, weights: &Weights, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let states = self.embed(weights, ids)?;
        self.run(states, ids.len()).map_err(|error| EmbedError::Compute(Box::new(error)))
    }

    /// Gathers the rows of the vocabulary from the map and adds the positions.
    fn embed(&self, weights: &Weights, ids: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let Shape { hidden, vocabulary, positions, .. } = self.shape;
        let (kind, words) = weights.tensors.tensor("words", vocabulary * hidden)?;
        let (place_kind, places) = weights.tensors.tensor("positions", positions * hidden)?;
        let corrupt = |problem: String| EmbedError::Corrupt { path: weights.tensors.path().to_owned(), problem };
        if kind != Kind::F16 || place_kind != Kind::F32 {
            return Err(corrupt("its tables have the wrong type".to_owned()));
        }
        let mut states = vec![0.0; ids.len() * hidden];
        for (place, (id, row)) in ids.iter().zip(states.chunks_mut(hidden)).enumerate() {
            let at = *id as usize * hidden * 2;
            let word = words.get(at..at + hidden * 2);
            f16s(word.ok_or_else(|| corrupt(format!("token {id} is not in the vocabulary")))?, row);
            let at = place * hidden * 4;
            for (value, bytes) in row.iter_mut().zip(places[at..at + hidden * 4].as_chunks::<4>().0) {
                *value += f32::from_le_bytes(*bytes);
            }
        }
        kernels::add_norm(&mut states, None, &self.norm.parts());
        Ok(states)
    }

    fn run(&self, states: Vec<f32>, tokens: usize) -> candle_core::Result<Vec<f32>> {
        let Shape { hidden, heads, .. } = self.shape;
        let size = hidden / heads;
        let mut states = Tensor::from_vec(states, (tokens, hidden), &Device::Cpu)?;
        for layer in &self.layers {
            let qkv = states.matmul(&layer.qkv)?;
            qkv.inplace_op1(&layer.qkv_bias)?;
            let part = |number: usize| split_heads(&qkv, number * heads, tokens, heads, size);
            let (query, key, value) = (part(0)?, part(1)?, part(2)?);
            let scores = query.matmul(&key.t()?)?;
            scores.inplace_op1(&Softmax)?;
            let context = scores.matmul(&value)?.transpose(0, 1)?.reshape((tokens, hidden))?;
            let mixed = context.matmul(&layer.mix)?;
            mixed.inplace_op2(&states, &layer.mix_norm)?;
            let lifted = mixed.matmul(&layer.up)?;
            lifted.inplace_op1(&layer.up_bias)?;
            states = lifted.matmul(&layer.down)?;
            states.inplace_op2(&mixed, &layer.down_norm)?;
        }
        let states = states.flatten_all()?.to_vec1::<f32>()?;
        Ok(kernels::mean_rows(&states, hidden))
    }
}

/// Rows of `heads × size` values as a view of `heads` matrices; no copy, as one head's part of a row lies together.
fn split_heads(rows: &Tensor, from: usize, tokens: usize, heads: usize, size: usize) -> candle_core::Result<Tensor> {
    let all = rows.reshape((tokens, rows.dim(1)? / size, size))?;
    all.narrow(1, from, heads)?.transpose(0, 1)
}

struct Reader<'a> {
    weights: &'a Weights,
}

impl Reader<'_> {
    fn bytes(&self, name: &str, values: usize) -> Result<(Kind, &[u8]), EmbedError> {
        let (kind, bytes) = self.weights.tensors.tensor(name, values)?;
        if self.weights.meta.sums.get(name) != Some(&sum(bytes)) {
            let problem = format!("{name} is not what was imported");
            return Err(EmbedError::Corrupt { path: self.weights.tensors.path().to_owned(), problem });
        }
        Ok((kind, bytes))
    }

    fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>, EmbedError> {
        let (kind, bytes) = self.bytes(name, len)?;
        Ok(f32s(kind, bytes))
    }

    fn fill(&self, name: &str, values: &mut [f32]) -> Result<(), EmbedError> {
        let (kind, bytes) = self.bytes(name, values.len())?;
        match kind {
            Kind::F16 => f16s(bytes, values),
            Kind::F32 => values.copy_from_slice(&f32s(kind, bytes)),
        }
        Ok(())
    }

    fn norm(&self, dense: &str, norm: &str, shape: &Shape) -> Result<Norm, EmbedError> {
        Ok(Norm {
            bias: self.vector(&format!("{dense}.bias"), shape.hidden)?,
            weight: self.vector(&format!("{norm}.weight"), shape.hidden)?,
            shift: self.vector(&format!("{norm}.bias"), shape.hidden)?,
            epsilon: shape.epsilon as f32,
        })
    }
}

/// Adds the bias and scales the queries.
#[derive(Debug)]
struct QkvBias {
    bias: Vec<f32>,
    hidden: usize,
    scale: f32,
}

/// Adds the bias and applies the activation.
#[derive(Debug)]
struct GeluBias {
    bias: Vec<f32>,
}

/// Adds bias and residual, then normalises each row.
#[derive(Debug)]
struct Norm {
    bias: Vec<f32>,
    weight: Vec<f32>,
    shift: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    fn parts(&self) -> kernels::Norm<'_> {
        kernels::Norm { bias: &self.bias, weight: &self.weight, shift: &self.shift, epsilon: self.epsilon }
    }
}

struct Softmax;

impl InplaceOp1 for QkvBias {
    fn name(&self) -> &'static str {
        "qkv-bias"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        kernels::add_bias_scale(values_mut(storage, layout)?, &self.bias, self.hidden, self.scale);
        Ok(())
    }
}

impl InplaceOp1 for GeluBias {
    fn name(&self) -> &'static str {
        "gelu-bias"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        kernels::gelu_bias(values_mut(storage, layout)?, &self.bias);
        Ok(())
    }
}

impl InplaceOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let width = layout.dims().last().copied().unwrap_or(1);
        kernels::softmax_rows(values_mut(storage, layout)?, width);
        Ok(())
    }
}

impl InplaceOp2 for Norm {
    fn name(&self) -> &'static str {
        "add-norm"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        layout: &Layout,
        residual: &CpuStorage,
        residual_layout: &Layout,
    ) -> candle_core::Result<()> {
        let (CpuStorage::F32(residual), Some((start, end))) = (residual, residual_layout.contiguous_offsets()) else {
            bail!("a residual is a contiguous f32 tensor");
        };
        kernels::add_norm(values_mut(storage, layout)?, Some(&residual[start..end]), &self.parts());
        Ok(())
    }
}

fn values_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> candle_core::Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("kernels work on contiguous f32 tensors"),
    }
}
