//! What happens between two matrix products, in place and in one pass, shaped so that the compiler vectorises it in
//! whatever width the machine has.

#![allow(clippy::inline_always, reason = "only what is inlined into `dispatch` is compiled for the wide registers")]

use pulp::Arch;

/// Values handled side by side.
const LANES: usize = 16;

/// What a layer norm needs; `bias` belongs to the matrix product before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norm<'a> {
    pub(super) bias: &'a [f32],
    pub(super) weight: &'a [f32],
    pub(super) shift: &'a [f32],
    pub(super) epsilon: f32,
}

/// Adds `bias` to every row and scales the first `scaled` values of each.
pub(super) fn add_bias_scale(values: &mut [f32], bias: &[f32], scaled: usize, scale: f32) {
    Arch::new().dispatch(|| {
        for row in values.chunks_exact_mut(bias.len().max(1)) {
            let (queries, rest) = row.split_at_mut(scaled);
            let (query_bias, rest_bias) = bias.split_at(scaled);
            for (value, bias) in queries.iter_mut().zip(query_bias) {
                *value = (*value + bias) * scale;
            }
            for (value, bias) in rest.iter_mut().zip(rest_bias) {
                *value += bias;
            }
        }
    });
}

/// `gelu(row + bias)` with the error function (exact to 2e-7, not the tanh form).
pub(super) fn gelu_bias(values: &mut [f32], bias: &[f32]) {
    Arch::new().dispatch(|| {
        for row in values.chunks_exact_mut(bias.len().max(1)) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value = gelu(*value + bias);
            }
        }
    });
}

/// Makes every row positive with sum 1.
pub(super) fn softmax_rows(values: &mut [f32], width: usize) {
    Arch::new().dispatch(|| {
        for row in values.chunks_exact_mut(width.max(1)) {
            let largest = fold(row, f32::NEG_INFINITY, f32::max);
            for value in row.iter_mut() {
                *value = exp(*value - largest);
            }
            let inverse = 1.0 / fold(row, 0.0, |a, b| a + b);
            for value in row.iter_mut() {
                *value *= inverse;
            }
        }
    });
}

/// Adds bias and residual to every row, then makes its mean 0 and its variance 1 and applies weight and shift.
pub(super) fn add_norm(values: &mut [f32], residual: Option<&[f32]>, norm: &Norm<'_>) {
    let width = norm.weight.len().max(1);
    Arch::new().dispatch(|| {
        for (number, row) in values.chunks_exact_mut(width).enumerate() {
            for (value, bias) in row.iter_mut().zip(norm.bias) {
                *value += bias;
            }
            if let Some(residual) = residual {
                for (value, add) in row.iter_mut().zip(&residual[number * width..(number + 1) * width]) {
                    *value += add;
                }
            }
            let mean = fold(row, 0.0, |a, b| a + b) / width as f32;
            for value in row.iter_mut() {
                *value -= mean;
            }
            let variance = fold_squares(row) / width as f32;
            let inverse = 1.0 / (variance + norm.epsilon).sqrt();
            for ((value, weight), shift) in row.iter_mut().zip(norm.weight).zip(norm.shift) {
                *value = *value * inverse * weight + shift;
            }
        }
    });
}

/// The mean of all rows.
pub(super) fn mean_rows(values: &[f32], width: usize) -> Vec<f32> {
    let mut mean = vec![0.0; width];
    let rows = values.len() / width.max(1);
    for row in values.chunks_exact(width.max(1)) {
        for (sum, value) in mean.iter_mut().zip(row) {
            *sum += value;
        }
    }
    for value in &mut mean {
        *value /= rows.max(1) as f32;
    }
    mean
}

// always in the same order, whatever the width of the machine: results are the same everywhere
#[inline(always)]
fn fold(row: &[f32], start: f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = join(*lane, *value);
        }
    }
    let joined = lanes.into_iter().fold(start, &join);
    rest.iter().fold(joined, |joined, value| join(joined, *value))
}

#[inline(always)]
fn fold_squares(row: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    lanes.into_iter().sum::<f32>() + rest.iter().map(|value| value * value).sum::<f32>()
}

/// `e^x`, relative error below 2e-7, 0 far below.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // adding and taking away 1.5 × 2^23 rounds to a whole number
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let whole = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    // ln 2 in two parts, so that the difference stays exact
    let rest = (x - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let mut sum = 1.987_569_2e-4;
    for factor in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5] {
        sum = sum * rest + factor;
    }
    let fraction = sum * rest * rest + rest + 1.0;
    fraction * f32::from_bits(((whole as i32 + 127) << 23) as u32)
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function by Abramowitz and Stegun, 7.1.26: absolute error below 2e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let mut sum = 1.061_405_4;
    for factor in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        sum = sum * t + factor;
    }
    (1.0 - sum * t * exp(-size * size)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_those_of_mathematics() {
        for step in -3000..=3000 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 4e-7, "exp {x}");
        }
        assert!(exp(-1000.0) < 1e-37);
        // erf(0.5), erf(1), erf(2)
        for (x, exact) in [(0.5, 0.520_499_9), (1.0, 0.842_700_8), (2.0, 0.995_322_3), (0.0, 0.0)] {
            assert!((erf(x) - exact).abs() < 4e-7 && (erf(-x) + exact).abs() < 4e-7, "erf {x}");
        }
    }

    #[test]
    fn rows_of_a_softmax_sum_to_one() {
        let mut values: Vec<f32> = (0..3 * 37).map(|number| (number * 7919 % 101) as f32 / 10.0 - 5.0).collect();
        let raw = values.clone();
        softmax_rows(&mut values, 37);
        for (row, raw) in values.chunks(37).zip(raw.chunks(37)) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            let exact: f32 = raw[3].exp() / raw.iter().map(|value| value.exp()).sum::<f32>();
            assert!((row[3] - exact).abs() < 1e-6);
        }
    }

    #[test]
    fn a_norm_has_mean_zero_and_variance_one() {
        let mut values: Vec<f32> = (0..2 * 20).map(|number| number as f32).collect();
        let residual = values.clone();
        let (ones, zeros) = ([1.0; 20], [0.0; 20]);
        add_norm(&mut values, Some(&residual), &Norm { bias: &zeros, weight: &ones, shift: &zeros, epsilon: 1e-12 });
        for row in values.chunks(20) {
            assert!(row.iter().sum::<f32>().abs() < 1e-4);
            assert!((row.iter().map(|value| value * value).sum::<f32>() / 20.0 - 1.0).abs() < 1e-4);
        }
    }
}
