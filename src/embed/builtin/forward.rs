//! Ids become a vector: the BERT encoder of multilingual-e5-small, f32, one text at a time on the calling thread.
//!
//! One text at a time, because a batch of unequal texts computes on padding and gains nothing here: with 20 rows the
//! products already run at the speed of the processor. NOT tokens, NOT threads.
//!
//! What is saved, each measured: the word table stays in the file, 4-bit (46 MB instead of 384); q, k and v are one
//! product; bias and residual are the product's starting value instead of passes of their own; the softmax divides
//! once per row, after the values are summed; erf is a polynomial the compiler can vectorise.

use std::io;

use super::file::{Buffer, FormatError, ModelFile, Rows, Shape};
use super::linear::{Layout, Linear, Start, multiply};

/// The network's weights.
#[derive(Debug)]
pub struct Network {
    shape: Shape,
    words: Rows,
    /// Position and (the one) type together, row by row.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

/// Buffers of one forward pass, kept between texts. They grow to the longest text seen: 6 MB at 512 tokens.
#[derive(Debug, Default)]
pub struct Scratch {
    row: Vec<u8>,
    x: Vec<f32>,
    qkv: Vec<f32>,
    scores: Vec<f32>,
    context: Vec<f32>,
    inner: Vec<f32>,
}

impl Network {
    /// Expands the layers to f32, 85 MB.
    ///
    /// # Errors
    /// A tensor is missing, of a wrong size or unreadable.
    pub fn read(file: ModelFile) -> Result<Self, FormatError> {
        let shape = file.shape;
        let mut positions = file.tensor("emb.pos", shape.positions * shape.hidden)?;
        let types = file.tensor("emb.type", shape.types * shape.hidden)?;
        for row in positions.chunks_exact_mut(shape.hidden) {
            add(row, &types);
        }
        let norm = Norm::read(&file, "emb.ln", &shape)?;
        let mut buffer = Buffer::default();
        let layer = |number| Layer::read(&file, number, &shape, &mut buffer);
        let layers = (0..shape.layers).map(layer).collect::<Result<_, _>>()?;
        let words = file.into_rows("emb.word", shape.rows, shape.hidden)?;
        Ok(Self { shape, words, positions, norm, layers })
    }

    /// Length of a vector.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.shape.hidden
    }

    /// Most ids of a text.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.shape.positions
    }

    /// The unit vector of a text: the mean over its tokens.
    ///
    /// # Errors
    /// The file has become unreadable, or an id is none of its rows.
    pub fn run(&self, ids: &[u32], scratch: &mut Scratch) -> io::Result<Vec<f32>> {
        self.look_up(ids, scratch)?;
        for layer in &self.layers {
            layer.run(&self.shape, scratch);
        }
        let mut mean = vec![0.0; self.shape.hidden];
        for row in scratch.x.chunks_exact(self.shape.hidden) {
            add(&mut mean, row);
        }
        // The mean's divisor is part of the length.
        let length = mean.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            mean.iter_mut().for_each(|x| *x /= length);
        }
        Ok(mean)
    }

    /// `x`: words and positions, normed. Ids beyond the last position are left out.
    fn look_up(&self, ids: &[u32], scratch: &mut Scratch) -> io::Result<()> {
        let hidden = self.shape.hidden;
        let ids = ids.get(..self.shape.positions).unwrap_or(ids);
        scratch.x.resize(ids.len() * hidden, 0.0);
        let rows = scratch.x.chunks_exact_mut(hidden).zip(self.positions.chunks_exact(hidden));
        for ((x, position), id) in rows.zip(ids) {
            self.words.read(*id as usize, &mut scratch.row, x)?;
            add(x, position);
            self.norm.apply(x);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Layer {
    /// Outputs: queries, keys, values.
    attend: Linear,
    attended: Linear,
    attended_norm: Norm,
    widen: Linear,
    narrow: Linear,
    narrow_norm: Norm,
}

impl Layer {
    fn read(file: &ModelFile, number: usize, shape: &Shape, buffer: &mut Buffer) -> Result<Self, FormatError> {
        let (hidden, wide) = (shape.hidden, shape.feed_forward);
        // The parts are layers of as many inputs, side by side.
        let mut linear = |parts: &[&str], inputs: usize, outputs: usize| {
            buffer.numbers.clear();
            let mut bias = Vec::with_capacity(parts.len() * outputs);
            for part in parts {
                file.append(&format!("l{number}.{part}.w"), inputs * outputs, buffer)?;
                bias.extend(file.tensor(&format!("l{number}.{part}.b"), outputs)?);
            }
            Ok::<_, FormatError>(Linear::new(inputs, &buffer.numbers, bias))
        };
        Ok(Self {
            attend: linear(&["q", "k", "v"], hidden, hidden)?,
            attended: linear(&["ao"], hidden, hidden)?,
            attended_norm: Norm::read(file, &format!("l{number}.aln"), shape)?,
            widen: linear(&["fi"], hidden, wide)?,
            narrow: linear(&["fo"], wide, hidden)?,
            narrow_norm: Norm::read(file, &format!("l{number}.oln"), shape)?,
        })
    }

    fn run(&self, shape: &Shape, scratch: &mut Scratch) {
        let Scratch { x, qkv, scores, context, inner, .. } = scratch;
        let tokens = x.len() / shape.hidden;

        qkv.resize(tokens * 3 * shape.hidden, 0.0);
        self.attend.apply(x, qkv);
        attention(shape, tokens, qkv, scores, context);
        self.attended.add(context, x);
        x.chunks_exact_mut(shape.hidden).for_each(|row| self.attended_norm.apply(row));

        inner.resize(tokens * shape.feed_forward, 0.0);
        self.widen.apply(x, inner);
        gelu(inner);
        self.narrow.add(inner, x);
        x.chunks_exact_mut(shape.hidden).for_each(|row| self.narrow_norm.apply(row));
    }
}

/// Every token looks at every token, head by head. Nothing is masked: there is no padding.
fn attention(shape: &Shape, tokens: usize, qkv: &[f32], scores: &mut Vec<f32>, context: &mut Vec<f32>) {
    let (hidden, width) = (shape.hidden, shape.hidden / shape.heads);
    let scale = 1.0 / (width as f32).sqrt();
    scores.resize(tokens * tokens, 0.0);
    context.resize(tokens * hidden, 0.0);
    let part = Layout::rows_of(tokens, width, 3 * hidden);
    let square = Layout::rows_of(tokens, tokens, tokens);
    for first in (0..hidden).step_by(width) {
        let of = |which: usize| qkv.get(which * hidden + first..).unwrap_or_default();
        multiply((scores, square), Start::Replace, scale, (of(0), part), (of(1), part.transposed()));
        scores.chunks_exact_mut(tokens).for_each(softmax);
        let target = context.get_mut(first..).unwrap_or_default();
        multiply(
            (target, Layout::rows_of(tokens, width, hidden)),
            Start::Replace,
            1.0,
            (scores, square),
            (of(2), part),
        );
    }
}

fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - most).exp();
        sum += *x;
    }
    let share = 1.0 / sum;
    row.iter_mut().for_each(|x| *x *= share);
}

/// The exact form, with erf.
fn gelu(values: &mut [f32]) {
    for x in values {
        *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Error function to 4e-7, branch-free: the rational approximation that Eigen and XLA use for f32.
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let s = x * x;
    let mut above = -2.726_142_3e-10;
    for a in [2.770_681_4e-8, -2.101_024e-6, -5.692_506_4e-5, -7.349_906_3e-4, -2.954_6e-3, -1.609_603_3e-2] {
        above = above * s + a;
    }
    let mut below = -1.456_607_2e-5;
    for b in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2] {
        below = below * s + b;
    }
    x * above / below
}

/// Layer norm.
#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    fn read(file: &ModelFile, name: &str, shape: &Shape) -> Result<Self, FormatError> {
        Ok(Self {
            weight: file.tensor(&format!("{name}.w"), shape.hidden)?,
            bias: file.tensor(&format!("{name}.b"), shape.hidden)?,
            epsilon: shape.epsilon,
        })
    }

    fn apply(&self, row: &mut [f32]) {
        let share = 1.0 / row.len() as f32;
        let mean = sum(row, |x| x) * share;
        let variance = sum(row, |x| (x - mean) * (x - mean)) * share;
        let scale = 1.0 / (variance + self.epsilon).sqrt();
        for ((x, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
            *x = (*x - mean) * scale * weight + bias;
        }
    }
}

/// In eight lanes: floats added in order cannot be vectorised.
fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (eights, rest) = row.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for eight in eights {
        for (lane, x) in lanes.iter_mut().zip(eight) {
            *lane += of(*x);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| of(*x)).sum::<f32>()
}

fn add(row: &mut [f32], other: &[f32]) {
    for (x, y) in row.iter_mut().zip(other) {
        *x += y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_is_erf() {
        // Tables of mathematics, to what an f32 holds.
        let known = [
            (0.0, 0.0),
            (0.1, 0.112_462_916),
            (0.5, 0.520_499_9),
            (1.0, 0.842_700_8),
            (1.5, 0.966_105_16),
            (2.0, 0.995_322_3),
            (3.0, 0.999_977_9),
            (4.0, 1.0),
            (50.0, 1.0),
        ];
        for (x, expected) in known {
            assert!((erf(x) - expected).abs() < 4e-7, "erf({x}) = {}", erf(x));
            assert!((erf(-x) + expected).abs() < 4e-7, "erf(-{x}) = {}", erf(-x));
        }
    }

    #[test]
    fn a_norm_has_the_mean_and_the_spread_it_is_told() {
        let norm = Norm { weight: vec![2.0; 11], bias: vec![3.0; 11], epsilon: 0.0 };
        let mut row: Vec<f32> = (0..11).map(|x| x as f32 * 0.7 - 40.0).collect();
        norm.apply(&mut row);
        let mean = row.iter().sum::<f32>() / 11.0;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 11.0;
        assert!((mean - 3.0).abs() < 1e-4 && (variance - 4.0).abs() < 1e-3, "{mean} {variance}");
    }

    #[test]
    fn a_softmax_sums_to_one_however_large_its_scores() {
        let mut row = [1000.0, 1001.0, -1000.0];
        softmax(&mut row);
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((row[1] / row[0] - std::f32::consts::E).abs() < 1e-4);
        assert_eq!(row[2], 0.0);
    }
}
