//! Rows of numbers and their products with a vector. NOT names of tools, NOT a
//! nearest-neighbour index: 10,000 rows of 384 are read in about a millisecond,
//! and an exact answer needs no tuning.

/// Rows of equal length in one buffer, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    numbers: Vec<f32>,
    dimensions: usize,
}

impl Matrix {
    /// `None` when `numbers` is not `rows` rows of one length, or holds a number that is not finite.
    pub fn new(numbers: Vec<f32>, rows: usize) -> Option<Self> {
        if rows == 0 {
            return numbers.is_empty().then_some(Self { numbers, dimensions: 0 });
        }
        let dimensions = numbers.len() / rows;
        let whole = dimensions > 0 && dimensions * rows == numbers.len();
        (whole && finite(&numbers)).then_some(Self { numbers, dimensions })
    }

    /// Length of a row.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// A row; empty when there is none.
    pub fn row(&self, row: usize) -> &[f32] {
        self.rows().nth(row).unwrap_or_default()
    }

    /// The mean row.
    pub fn mean(&self) -> Vec<f32> {
        let mut sums = vec![0f64; self.dimensions];
        let mut rows = 0usize;
        for row in self.rows() {
            rows += 1;
            for (sum, number) in sums.iter_mut().zip(row) {
                *sum += f64::from(*number);
            }
        }
        sums.into_iter().map(|sum| (sum / rows.max(1) as f64) as f32).collect()
    }

    /// The product of each row with `vector`; a vector of another length fits nothing.
    pub fn products(&self, vector: &[f32]) -> Vec<f32> {
        self.rows().map(|row| product(row, vector)).collect()
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, f32> {
        self.numbers.chunks_exact(self.dimensions.max(1))
    }
}

/// One row per tool of two: the first, plus the mean of all seconds, plus `weights` times what its own second has beyond
/// that mean. Shape of `parts`: weights x 2 x dimensions. `None` when the lengths do not fit.
pub fn combined(parts: &[f32], weights: &[f32]) -> Option<Vec<f32>> {
    let rows = 2 * weights.len();
    if rows == 0 {
        return parts.is_empty().then(Vec::new);
    }
    let dimensions = parts.len() / rows;
    if dimensions == 0 || dimensions * rows != parts.len() {
        return None;
    }
    let tools = || parts.chunks_exact(2 * dimensions).map(|tool| tool.split_at(dimensions));
    let mut mean = vec![0f32; dimensions];
    for (_, second) in tools() {
        mean.iter_mut().zip(second).for_each(|(mean, number)| *mean += number / weights.len() as f32);
    }
    let row = |((first, second), weight): ((&[f32], &[f32]), &f32)| {
        let numbers = first.iter().zip(second).zip(&mean);
        numbers.map(|((first, second), mean)| first + mean + weight * (second - mean)).collect::<Vec<f32>>()
    };
    Some(tools().zip(weights).flat_map(row).collect())
}

/// The product of two vectors; 0 when their lengths differ.
pub fn product(left: &[f32], right: &[f32]) -> f32 {
    if left.len() != right.len() {
        return 0.0;
    }
    let (l, r) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest: f32 = l.remainder().iter().zip(r.remainder()).map(|(a, b)| a * b).sum();
    let mut lanes = [0f32; LANES];
    for (l, r) in l.zip(r) {
        for ((lane, a), b) in lanes.iter_mut().zip(l).zip(r) {
            *lane += a * b;
        }
    }
    rest + lanes.iter().sum::<f32>()
}

/// Is every number a number?
pub fn finite(numbers: &[f32]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}

/// Mean and standard deviation.
pub fn moments(numbers: &[f32]) -> (f32, f32) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().map(|n| f64::from(*n)).sum::<f64>() / count;
    let variance = numbers.iter().map(|n| (f64::from(*n) - mean).powi(2)).sum::<f64>() / count;
    (mean as f32, variance.sqrt() as f32)
}

/// Sums that do not wait for each other: four registers of four, which is what every x86-64 and AArch64 has.
const LANES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_plain_sum() {
        let row: Vec<f32> = (0..37).map(|i| i as f32 * 0.25 - 3.0).collect();
        let vector: Vec<f32> = (0..37).map(|i| 1.0 - i as f32 * 0.1).collect();
        let plain: f32 = row.iter().zip(&vector).map(|(a, b)| a * b).sum();
        let matrix = Matrix::new([row.clone(), row].concat(), 2).expect("two rows");
        for found in matrix.products(&vector) {
            assert!((found - plain).abs() < 1e-3, "{found} {plain}");
        }
        assert_eq!(matrix.products(&[1.0]), [0.0, 0.0]);
    }

    #[test]
    fn two_rows_become_one() {
        let parts = [1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 4.0];
        assert_eq!(combined(&parts, &[1.0, 1.0]), Some(vec![1.0, 2.0, 0.0, 5.0]), "the sum where all is its own");
        assert_eq!(combined(&parts, &[0.0, 0.5]), Some(vec![1.0, 3.0, 0.0, 4.5]));
        assert_eq!(combined(&parts, &[1.0; 3]), None);
        assert_eq!(combined(&[], &[]), Some(Vec::new()));
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(Matrix::new(vec![1.0; 5], 2).is_none());
        assert!(Matrix::new(vec![1.0, f32::NAN], 2).is_none());
        assert!(Matrix::new(vec![1.0, f32::INFINITY], 1).is_none());
        assert!(Matrix::new(Vec::new(), 1).is_none());
        assert!(Matrix::new(vec![1.0], 0).is_none());
        assert!(Matrix::new(Vec::new(), 0).is_some());
    }

    #[test]
    fn moments_of_nothing_and_of_one() {
        assert_eq!(moments(&[]), (0.0, 0.0));
        assert_eq!(moments(&[2.0, 4.0]), (3.0, 1.0));
    }
}
