//! Where called tools stood in the ranking, and so how many of these calls each k would have bound. NOT whose.

use serde::Serialize;

/// Selections larger than this are none.
pub const DEEPEST: usize = 64;

/// Calls of tools that may be withheld, by the place of the tool in its turn's ranking.
#[derive(Debug, Clone)]
pub struct Ranks {
    /// By place, from 1.
    at: [u32; DEEPEST + 1],
    /// Below [`DEEPEST`], or in no ranking.
    beyond: u32,
    /// Bound although their place was deeper than `k` of the log: an earlier turn's block or call had brought them.
    kept: u32,
}

impl Default for Ranks {
    fn default() -> Self {
        Self { at: [0; DEEPEST + 1], beyond: 0, kept: 0 }
    }
}

/// How a call of the log stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    pub rank: Option<usize>,
    pub is_bound: bool,
}

impl Ranks {
    /// `k`: of the log.
    pub fn add(&mut self, stand: Stand, k: usize) {
        let slot = match stand.rank {
            Some(rank) if stand.is_bound && rank > k => &mut self.kept,
            None if stand.is_bound => &mut self.kept,
            Some(rank) => self.at.get_mut(rank.max(1)).unwrap_or(&mut self.beyond),
            None => &mut self.beyond,
        };
        *slot = slot.saturating_add(1);
    }

    pub fn calls(&self) -> u64 {
        self.at.iter().map(|count| u64::from(*count)).sum::<u64>() + u64::from(self.beyond) + u64::from(self.kept)
    }

    /// Calls whose tool a selection of `k` would have held.
    pub fn bound(&self, k: usize) -> u64 {
        self.at.iter().take(k + 1).map(|count| u64::from(*count)).sum::<u64>() + u64::from(self.kept)
    }

    /// 0 to 1; without a call 1.
    pub fn recall(&self, k: usize) -> f64 {
        let calls = self.calls();
        if calls == 0 { 1.0 } else { self.bound(k) as f64 / calls as f64 }
    }

    /// The place at which half of what `k` misses is bound; `None`: nothing is missed, or half of it has no such place.
    pub fn median_missed(&self, k: usize) -> Option<usize> {
        let missed = self.calls() - self.bound(k);
        if missed == 0 {
            return None;
        }
        (k + 1..=DEEPEST).find(|place| 2 * (self.bound(*place) - self.bound(k)) >= missed)
    }

    /// The smallest k from 1 at which `is_enough`.
    pub fn least(&self, is_enough: impl Fn(usize) -> bool) -> Option<usize> {
        (1..=DEEPEST).find(|k| is_enough(*k))
    }

    /// Recall at every k.
    pub fn curve(&self) -> Vec<Point> {
        (1..=DEEPEST).map(|k| Point { k, bound: self.bound(k), recall: self.recall(k) }).collect()
    }
}

/// Recall at one k.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    pub k: usize,
    pub bound: u64,
    pub recall: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_grows_with_k_and_what_a_block_kept_is_bound_at_every_k() {
        let mut ranks = Ranks::default();
        for (rank, is_bound) in
            [(Some(1), true), (Some(12), true), (Some(14), false), (Some(30), true), (None, false), (Some(900), false)]
        {
            ranks.add(Stand { rank, is_bound }, 12);
        }
        assert_eq!(ranks.calls(), 6);
        assert_eq!([1, 11, 12, 14, 64].map(|k| ranks.bound(k)), [2, 2, 3, 4, 4]);
        assert_eq!(ranks.median_missed(12), None, "two of three have no place");
        assert_eq!(ranks.least(|k| ranks.bound(k) >= 3), Some(12));
        assert_eq!(Ranks::default().recall(1), 1.0);
    }
}
