//! Places become shares: recall, completeness, their curves, and how far chance alone could have moved them. NOT which
//! cases are counted.

use serde::Serialize;

/// Where recall is read.
pub const DEPTHS: [usize; 6] = [1, 5, 8, 12, 15, 20];

/// Curves go to this depth.
pub const DEEPEST: usize = 40;

/// Samples drawn for an interval: its ends then wobble by a tenth of its width.
const DRAWS: usize = 1000;

/// A share of cases, 0 to 1, and where it would lie with 95 % of other samples of as many cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

/// Figures of some cases.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    pub cases: usize,
    /// Mean share of a case's tools within each of [`DEPTHS`]; 0 to 1.
    pub recall: [f64; 6],
    /// Share of cases with all their tools within each of [`DEPTHS`]; 0 to 1.
    pub complete: [f64; 6],
    /// The same within as many tools as are selected.
    pub selected: Interval,
    /// Mean number of tools selected.
    pub taken: f64,
    /// Mean of one over the place of a case's best tool.
    pub mrr: f64,
    /// `recall` at every depth from 1.
    pub recall_curve: Vec<f64>,
    /// `complete` at every depth from 1.
    pub complete_curve: Vec<f64>,
}

impl Figures {
    /// `cases`: the places of each case's tools, none of them empty, and how many were selected for it.
    pub fn of(cases: &[(&[usize], usize)]) -> Self {
        let count = cases.len().max(1) as f64;
        let mut recall_curve = vec![0.0; DEEPEST];
        let mut complete_curve = vec![0.0; DEEPEST];
        let mut reciprocal = 0.0;
        for (places, _) in cases {
            let (best, worst) = ends(places);
            reciprocal += 1.0 / best as f64;
            for place in places.iter().filter(|place| **place <= DEEPEST) {
                raise(&mut recall_curve, *place, 1.0 / places.len() as f64);
            }
            raise(&mut complete_curve, worst, 1.0);
        }
        sum_up(&mut recall_curve, count);
        sum_up(&mut complete_curve, count);
        let at = |curve: &[f64]| DEPTHS.map(|depth| curve.get(depth - 1).copied().unwrap_or_default());
        let hits: Vec<f64> =
            cases.iter().map(|(places, taken)| f64::from(u8::from(ends(places).1 <= *taken))).collect();
        Self {
            cases: cases.len(),
            recall: at(&recall_curve),
            complete: at(&complete_curve),
            selected: interval(&hits),
            taken: cases.iter().map(|(_, taken)| *taken as f64).sum::<f64>() / count,
            mrr: reciprocal / count,
            recall_curve,
            complete_curve,
        }
    }
}

/// The mean of `values` with its bootstrap interval. The same values give the same interval.
pub fn interval(values: &[f64]) -> Interval {
    let count = values.len();
    if count == 0 {
        return Interval { share: 0.0, low: 0.0, high: 0.0 };
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| (0..count).filter_map(|_| values.get(random.below(count))).sum::<f64>() / count as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get((share * (DRAWS - 1) as f64).round() as usize).copied().unwrap_or_default();
    Interval { share: values.iter().sum::<f64>() / count as f64, low: at(0.025), high: at(0.975) }
}

/// Numbers that look like chance and are the same in every run: xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn drawn(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.drawn()) * count as u128) >> 64) as usize
    }
}

/// The best and the worst place.
fn ends(places: &[usize]) -> (usize, usize) {
    let best = places.iter().min().copied().unwrap_or(usize::MAX);
    (best, places.iter().max().copied().unwrap_or(usize::MAX))
}

fn raise(curve: &mut [f64], place: usize, by: f64) {
    if let Some(step) = place.checked_sub(1).and_then(|at| curve.get_mut(at)) {
        *step += by;
    }
}

/// Steps become shares of all up to there.
fn sum_up(curve: &mut [f64], count: f64) {
    let mut sum = 0.0;
    for step in curve {
        sum += *step;
        *step = sum / count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_shares() {
        let figures = Figures::of(&[(&[1, 6], 12), (&[3], 8), (&[usize::MAX], 20), (&[12], 12)]);
        assert_eq!(figures.recall, [0.125, 0.375, 0.5, 0.75, 0.75, 0.75]);
        assert_eq!(figures.complete, [0.0, 0.25, 0.5, 0.75, 0.75, 0.75]);
        assert_eq!((figures.selected.share, figures.taken), (0.75, 13.0));
        assert_eq!(Figures::of(&[(&[12], 8)]).selected.share, 0.0);
        assert!((figures.mrr - (1.0 + 1.0 / 3.0 + 1.0 / 12.0) / 4.0).abs() < 1e-9);
        assert_eq!(figures.complete_curve.len(), DEEPEST);
    }

    #[test]
    fn an_interval_holds_its_mean_and_narrows_with_cases() {
        let some: Vec<f64> = (0..50).map(|i| f64::from(i % 5 != 0)).collect();
        let many: Vec<f64> = (0..5000).map(|i| f64::from(i % 5 != 0)).collect();
        let (some, many) = (interval(&some), interval(&many));
        assert!((some.share - 0.8).abs() < 1e-9 && some.low < 0.8 && some.high > 0.8);
        // The standard error of 50 cases is .057, so the interval is about .22 wide; of 5,000 a tenth of that.
        assert!((0.15..0.3).contains(&(some.high - some.low)), "{some:?}");
        assert!((0.015..0.03).contains(&(many.high - many.low)), "{many:?}");
        assert_eq!(interval(&[]).share, 0.0);
        assert_eq!(interval(&[1.0; 9]), Interval { share: 1.0, low: 1.0, high: 1.0 });
    }
}
