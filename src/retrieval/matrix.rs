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

/// What a roster's rows are made of.
#[derive(Debug)]
pub struct Parts<'a> {
    /// Two rows per tool; behind them one more for each tool that is in `worded`, in order. Row-major.
    pub numbers: &'a [f32],
    /// Of each tool: how much what its second row has beyond the mean of all second rows counts.
    pub owned: &'a [f32],
    /// Of each tool: does it have a third row?
    pub worded: &'a [bool],
    /// How much what a third row has beyond the mean of all third rows counts.
    pub voice: f32,
}

impl Parts<'_> {
    /// One row per tool: its first, plus the mean of all seconds, plus its share of what its own second has beyond that
    /// mean, plus what its third, if it has one, has beyond the mean of those. A tool without a third row is by that no
    /// better and no worse. `None` when the lengths do not fit.
    pub fn combined(&self) -> Option<Vec<f32>> {
        let (tools, thirds) = (self.owned.len(), self.worded.iter().filter(|worded| **worded).count());
        let rows = 2 * tools + thirds;
        if self.worded.len() != tools {
            return None;
        }
        if rows == 0 {
            return self.numbers.is_empty().then(Vec::new);
        }
        let dimensions = self.numbers.len() / rows;
        if dimensions == 0 || dimensions * rows != self.numbers.len() {
            return None;
        }
        let (pairs, thirds) = self.numbers.split_at(2 * tools * dimensions);
        let pairs = || pairs.chunks_exact(2 * dimensions).map(|pair| pair.split_at(dimensions));
        let mean = mean_of(pairs().map(|(_, second)| second), dimensions);
        let voices_mean = mean_of(thirds.chunks_exact(dimensions), dimensions);
        let mut thirds = thirds.chunks_exact(dimensions);
        let mut out = Vec::with_capacity(tools * dimensions);
        for (((first, second), owned), worded) in pairs().zip(self.owned).zip(self.worded) {
            let start = out.len();
            let numbers = first.iter().zip(second).zip(&mean);
            out.extend(numbers.map(|((first, second), mean)| first + mean + owned * (second - mean)));
            let third = if *worded { thirds.next().unwrap_or_default() } else { &[] };
            let own = out.get_mut(start..).unwrap_or_default();
            for ((number, third), mean) in own.iter_mut().zip(third).zip(&voices_mean) {
                *number += self.voice * (third - mean);
            }
        }
        Some(out)
    }
}

fn mean_of<'a>(rows: impl Iterator<Item = &'a [f32]>, dimensions: usize) -> Vec<f32> {
    let (mut sum, mut count) = (vec![0f32; dimensions], 0usize);
    for row in rows {
        count += 1;
        sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
    }
    sum.iter().map(|sum| sum / count.max(1) as f32).collect()
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
        let numbers = [1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 4.0];
        let combined = |numbers: &[f32], owned: &[f32]| {
            Parts { numbers, owned, worded: &vec![false; owned.len()], voice: 1.0 }.combined()
        };
        assert_eq!(combined(&numbers, &[1.0, 1.0]), Some(vec![1.0, 2.0, 0.0, 5.0]), "the sum where all is its own");
        assert_eq!(combined(&numbers, &[0.0, 0.5]), Some(vec![1.0, 3.0, 0.0, 4.5]));
        assert_eq!(combined(&numbers, &[1.0; 3]), None);
        assert_eq!(combined(&[], &[]), Some(Vec::new()));
    }

    #[test]
    fn a_third_row_counts_by_what_it_has_beyond_the_others() {
        // Three tools of one dimension; the first and the last have a third row.
        let numbers = [1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 10.0, 14.0];
        let parts =
            |worded: &[bool], numbers: &[f32]| Parts { numbers, owned: &[1.0; 3], worded, voice: 2.0 }.combined();
        assert_eq!(parts(&[true, false, true], &numbers), Some(vec![-3.0, 2.0, 7.0]));
        assert_eq!(parts(&[true, false, false], &numbers[..7]), Some(vec![1.0, 2.0, 3.0]), "nothing to compare with");
        assert_eq!(parts(&[true, false], &numbers), None);
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
