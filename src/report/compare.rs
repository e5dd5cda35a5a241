//! Means over conversations with intervals, and two of them compared. A conversation is the unit: its calls share a
//! history, so taking calls for independent would make intervals too narrow. NOT which conversations.

use serde::Serialize;

/// Of a 95 % interval.
const Z: f64 = 1.959_964;

/// Sums over conversations of a quantity `y` (dollars, tokens) and their calls `n`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    conversations: f64,
    y: f64,
    n: f64,
    yy: f64,
    nn: f64,
    yn: f64,
}

/// A mean and where the true one is likely to lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    pub mean: f64,
    /// 95 %; absent with fewer than two conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    #[serde(skip)]
    error: f64,
    #[serde(skip)]
    freedom: f64,
}

/// What changed, as a share of the holdout's mean: -0.4 is 40 % less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    pub narrow: Mean,
    pub holdout: Mean,
    pub share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

impl Sample {
    /// One conversation.
    pub fn add(&mut self, y: f64, calls: f64) {
        self.conversations += 1.0;
        self.y += y;
        self.n += calls;
        self.yy += y * y;
        self.nn += calls * calls;
        self.yn += y * calls;
    }

    pub fn conversations(&self) -> u64 {
        self.conversations as u64
    }

    /// Per conversation; `None` without one.
    pub fn per_conversation(&self) -> Option<Mean> {
        let count = self.conversations;
        (count > 0.0).then(|| {
            let mean = self.y / count;
            let spread = (self.yy - count * mean * mean).max(0.0);
            Mean::new(mean, spread / (count * (count - 1.0)), count - 1.0)
        })
    }

    /// Per call: a ratio of two means, its error by the delta method.
    pub fn per_call(&self) -> Option<Mean> {
        let count = self.conversations;
        (count > 0.0 && self.n > 0.0).then(|| {
            let ratio = self.y / self.n;
            let spread = (self.yy - 2.0 * ratio * self.yn + ratio * ratio * self.nn).max(0.0);
            let calls = self.n / count;
            Mean::new(ratio, spread / (count * (count - 1.0) * calls * calls), count - 1.0)
        })
    }
}

impl Mean {
    fn new(mean: f64, variance: f64, freedom: f64) -> Self {
        if freedom < 1.0 {
            return Self { mean, interval: None, error: f64::NAN, freedom };
        }
        let error = variance.sqrt();
        let half = student(freedom) * error;
        Self { mean, interval: Some((mean - half, mean + half)), error, freedom }
    }
}

impl Change {
    /// `None` where the holdout's mean is no number to divide by.
    pub fn of(narrow: Mean, holdout: Mean) -> Option<Self> {
        if holdout.mean <= 0.0 {
            return None;
        }
        let share = narrow.mean / holdout.mean - 1.0;
        // Of a ratio, by the delta method; freedom as Welch and Satterthwaite have it.
        let parts = [(narrow, 1.0), (holdout, narrow.mean / holdout.mean)]
            .map(|(mean, weight)| (weight * mean.error / holdout.mean).powi(2));
        let variance: f64 = parts.iter().sum();
        let weights: f64 =
            parts.iter().zip([narrow, holdout]).map(|(part, mean)| part * part / mean.freedom.max(1.0)).sum();
        let freedom = if weights > 0.0 { variance * variance / weights } else { 1e9 };
        let half = student(freedom) * variance.sqrt();
        Some(Self { narrow, holdout, share, interval: half.is_finite().then_some((share - half, share + half)) })
    }
}

/// Share of `hits` in `all` and its 95 % interval (Wilson): right for shares near one, where the usual one is not.
pub fn wilson(hits: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (all as f64, hits as f64 / all as f64);
    let center = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((center - half) / scale).max(0.0), ((center + half) / scale).min(1.0))
}

/// The 97.5 % point of Student's t. Below three degrees from the table, else the expansion of Abramowitz and Stegun
/// 26.7.5, right to 1 % there and better above.
fn student(freedom: f64) -> f64 {
    if freedom < 1.5 {
        return 12.706;
    }
    if freedom < 2.5 {
        return 4.303;
    }
    let (z, z3, z5, z7) = (Z, Z.powi(3), Z.powi(5), Z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.01 * b.abs().max(0.1)
    }

    #[test]
    fn points_of_known_distributions() {
        for (freedom, point) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1e9, 1.960)] {
            assert!(near(student(freedom), point), "{freedom}: {}", student(freedom));
        }
        let (low, high) = wilson(412, 415);
        assert!(near(low, 0.9790) && near(high, 0.9975), "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn a_mean_over_conversations() {
        let mut sample = Sample::default();
        assert!(sample.per_call().is_none());
        sample.add(2.0, 1.0);
        assert_eq!(sample.per_conversation().and_then(|mean| mean.interval), None);
        for (y, calls) in [(4.0, 2.0), (6.0, 3.0)] {
            sample.add(y, calls);
        }
        let mean = sample.per_conversation().expect("three of them");
        // Standard deviation 2, error 2/√3, two degrees of freedom.
        assert_eq!(mean.mean, 4.0);
        assert!(near(mean.interval.expect("three").1, 4.0 + 4.303 * 1.1547));
        let call = sample.per_call().expect("calls");
        assert_eq!((call.mean, call.interval), (2.0, Some((2.0, 2.0))), "every call costs the same");
    }

    #[test]
    fn a_change_is_told_from_chance() {
        let of = |values: &[f64]| {
            let mut sample = Sample::default();
            values.iter().for_each(|y| sample.add(*y, 1.0));
            sample.per_conversation().expect("some")
        };
        let clear = Change::of(of(&[5.0, 5.1, 4.9, 5.0]), of(&[10.0, 10.1, 9.9, 10.0])).expect("a holdout");
        assert!(near(clear.share, -0.5) && clear.interval.expect("known").1 < -0.4, "{clear:?}");
        let noise = Change::of(of(&[1.0, 9.0, 5.0]), of(&[2.0, 9.0, 4.0])).expect("a holdout");
        let (low, high) = noise.interval.expect("known");
        assert!(low < 0.0 && high > 0.0, "{noise:?}");
        assert_eq!(Change::of(of(&[1.0]), of(&[0.0])), None);
    }
}
