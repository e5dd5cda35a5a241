//! Matrix products, on the `gemm` crate: the only `unsafe` of the embedder, behind checked views.
//!
//! `gemm` was measured against an own int8 kernel (a fifth faster, and a kernel to keep right on every processor) and
//! against three inference engines (slower or five times the memory): it is maintained, exact and small.
//! NOT the network ([`super::forward`]).

use gemm::Parallelism;

/// Outputs in a panel. See [`Linear`].
const PANEL: usize = 48;

/// A matrix that lies in a slice: element (row, column) at `row * row_stride + column * column_stride`.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub rows: usize,
    pub columns: usize,
    pub row_stride: usize,
    pub column_stride: usize,
}

impl Layout {
    /// Rows one behind the other in steps of `row_stride`.
    #[must_use]
    pub fn rows_of(rows: usize, columns: usize, row_stride: usize) -> Self {
        Self { rows, columns, row_stride, column_stride: 1 }
    }

    /// The same numbers, rows as columns.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, row_stride: self.column_stride, column_stride: self.row_stride }
    }

    /// Elements of a slice that holds it, at least.
    fn extent(self) -> usize {
        if self.rows == 0 || self.columns == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride + 1
    }
}

/// What a product does with what is in its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Replace,
    Add,
}

/// `target = [target +] scale * left * right`, on this thread.
///
/// # Panics
/// A layout does not fit its slice or its neighbours, which is a mistake in the caller.
#[expect(unsafe_code, reason = "the kernel takes pointers; its contract is asserted above the call")]
pub fn multiply(
    (target, to): (&mut [f32], Layout),
    start: Start,
    scale: f32,
    (left, l): (&[f32], Layout),
    (right, r): (&[f32], Layout),
) {
    assert!(to.extent() <= target.len() && l.extent() <= left.len() && r.extent() <= right.len());
    assert!(to.rows == l.rows && to.columns == r.columns && l.columns == r.rows);
    // A target element that is written twice would be a data race within `gemm`'s own loops.
    assert!(to.column_stride == 1 && to.row_stride >= to.columns);
    // SAFETY: `gemm` reads `left` and `right` and writes `target` at exactly the elements of their layouts. All of
    // these lie inside the slices (first assertion, strides are not negative), the shapes agree (second), target
    // elements are distinct (third), and the borrows keep the target apart from both inputs.
    unsafe {
        gemm::gemm(
            to.rows,
            to.columns,
            l.columns,
            target.as_mut_ptr(),
            to.column_stride as isize,
            to.row_stride as isize,
            start == Start::Add,
            left.as_ptr(),
            l.column_stride as isize,
            l.row_stride as isize,
            right.as_ptr(),
            r.column_stride as isize,
            r.row_stride as isize,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// A layer `x W + b`.
///
/// The weights lie in panels of [`PANEL`] outputs, each panel input by input, so that `gemm` streams them from memory in
/// order and packs nothing. Measured, processor time: 20 tokens in 21 ms against 23 with whole rows, for 480 ms against
/// 440 at 400 tokens; a query is what a turn waits for. 48 is a multiple of the widths of `gemm`'s kernels.
#[derive(Debug)]
pub struct Linear {
    weights: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
}

impl Linear {
    /// Of `weights` output by output (`bias.len()` x inputs).
    #[must_use]
    pub fn new(inputs: usize, weights: &[f32], bias: Vec<f32>) -> Self {
        let mut panels = vec![0.0; weights.len()];
        for (panel, rows) in panels.chunks_mut(PANEL * inputs).zip(weights.chunks(PANEL * inputs)) {
            let width = rows.len() / inputs;
            for (output, row) in rows.chunks_exact(inputs).enumerate() {
                for (place, weight) in panel.iter_mut().skip(output).step_by(width).zip(row) {
                    *place = *weight;
                }
            }
        }
        Self { weights: panels, bias, inputs }
    }

    #[must_use]
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// `y = x W + b`, row by row.
    pub fn apply(&self, x: &[f32], y: &mut [f32]) {
        for row in y.chunks_exact_mut(self.outputs()) {
            row.copy_from_slice(&self.bias);
        }
        self.product(x, y);
    }

    /// `y = y + x W + b`, row by row.
    pub fn add(&self, x: &[f32], y: &mut [f32]) {
        for row in y.chunks_exact_mut(self.outputs()) {
            for (y, bias) in row.iter_mut().zip(&self.bias) {
                *y += bias;
            }
        }
        self.product(x, y);
    }

    fn product(&self, x: &[f32], y: &mut [f32]) {
        let (rows, outputs) = (x.len() / self.inputs, self.outputs());
        let x = (x, Layout::rows_of(rows, self.inputs, self.inputs));
        for (panel, weights) in self.weights.chunks(PANEL * self.inputs).enumerate() {
            let width = weights.len() / self.inputs;
            let target = y.get_mut(panel * PANEL..).unwrap_or_default();
            let target = (target, Layout::rows_of(rows, width, outputs));
            multiply(target, Start::Add, 1.0, x, (weights, Layout::rows_of(self.inputs, width, width)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without pattern, the same each time.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// Sizes on both sides of a panel's width, and the sizes for which `gemm` has ways of its own.
    #[test]
    fn a_layer_is_the_sum_it_says() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 7), (1, 32, 96), (20, 40, 95), (7, 33, 97), (2, 3, 300)] {
            let (x, weights, bias) = (numbers(rows * inputs, 1), numbers(inputs * outputs, 2), numbers(outputs, 3));
            let layer = Linear::new(inputs, &weights, bias.clone());
            let (mut replaced, mut added) = (vec![f32::NAN; rows * outputs], vec![1.0; rows * outputs]);
            layer.apply(&x, &mut replaced);
            layer.add(&x, &mut added);
            for row in 0..rows {
                for output in 0..outputs {
                    let expected = bias[output]
                        + (0..inputs).map(|i| x[row * inputs + i] * weights[output * inputs + i]).sum::<f32>();
                    let at = row * outputs + output;
                    assert!((replaced[at] - expected).abs() < 1e-4, "{rows} {inputs} {outputs}");
                    assert!((added[at] - expected - 1.0).abs() < 1e-4, "{rows} {inputs} {outputs}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "extent")]
    fn a_layout_beyond_its_slice_is_refused() {
        let square = Layout::rows_of(2, 2, 2);
        multiply((&mut [0.0; 4], square), Start::Replace, 1.0, (&[0.0; 3], square), (&[0.0; 4], square));
    }
}
