//! Where called tools stood in the ranking, and so how many of these calls each k would have bound. NOT whose.

use serde::Serialize;

/// Selections larger than this are none.
pub const DEEPEST: usize = 64;

/// Behind all places: deeper than [`DEEPEST`], or in no ranking.
const BEYOND: usize = DEEPEST + 1;

/// Calls of tools that may be withheld, by the place of the tool in its turn's ranking.
#[derive(Debug, Clone)]
pub struct Ranks {
    /// Bound because they were selected, by place from 1.
    bound: [u32; BEYOND + 1],
    /// Withheld, by place from 1.
    withheld: [u32; BEYOND + 1],
    /// Bound although they were not selected: an earlier turn's block or call had brought them.
    kept: u32,
    /// Of the withheld, those that were selected: a block that stayed kept them out.
    kept_out: u32,
}

impl Default for Ranks {
    fn default() -> Self {
        Self { bound: [0; BEYOND + 1], withheld: [0; BEYOND + 1], kept: 0, kept_out: 0 }
    }
}

/// How a call of the log stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    pub rank: Option<usize>,
    pub is_bound: bool,
}

impl Ranks {
    /// `selected`: how many of the ranking were selected for the call's message.
    pub fn add(&mut self, stand: Stand, selected: usize) {
        let is_selected = stand.rank.is_some_and(|rank| rank <= selected);
        let place = stand.rank.map_or(BEYOND, |rank| rank.clamp(1, BEYOND));
        let slot = match (stand.is_bound, is_selected) {
            (true, false) => Some(&mut self.kept),
            (true, true) => self.bound.get_mut(place),
            (false, _) => self.withheld.get_mut(place),
        };
        if let Some(slot) = slot {
            *slot = slot.saturating_add(1);
        }
        self.kept_out = self.kept_out.saturating_add(u32::from(is_selected && !stand.is_bound));
    }

    pub fn calls(&self) -> u64 {
        self.served() + sum(&self.withheld)
    }

    /// Calls whose tool was bound, or would have been, whatever had brought it: as the log has it.
    pub fn served(&self) -> u64 {
        sum(&self.bound) + u64::from(self.kept)
    }

    /// Withheld calls whose tool had been selected.
    pub fn kept_out(&self) -> u64 {
        u64::from(self.kept_out)
    }

    /// Calls whose tool a selection of `k` would have held.
    pub fn bound(&self, k: usize) -> u64 {
        u64::from(self.kept) + up_to(&self.bound, k) + up_to(&self.withheld, k)
    }

    /// Calls whose tool a selection of `k` would have held; `None`: was bound as served.
    pub fn held(&self, k: Option<usize>) -> u64 {
        k.map_or_else(|| self.served(), |k| self.bound(k))
    }

    /// Of [`Self::held`], 0 to 1; without a call 1.
    pub fn recall(&self, k: Option<usize>) -> f64 {
        let calls = self.calls();
        if calls == 0 { 1.0 } else { self.held(k) as f64 / calls as f64 }
    }

    /// The place at which half of what `k` misses, or of what was withheld, is bound; `None`: nothing is missed, or half
    /// of it has no such place.
    pub fn median_missed(&self, k: Option<usize>) -> Option<usize> {
        let missed = self.calls() - self.held(k);
        if missed == 0 {
            return None;
        }
        let found = |place: usize| match k {
            Some(k) => self.bound(place.max(k)) - self.bound(k),
            None => up_to(&self.withheld, place),
        };
        (1..=DEEPEST).find(|place| 2 * found(*place) >= missed)
    }

    /// The smallest k from 1 at which `is_enough`.
    pub fn least(&self, is_enough: impl Fn(usize) -> bool) -> Option<usize> {
        (1..=DEEPEST).find(|k| is_enough(*k))
    }

    /// Recall at every k.
    pub fn curve(&self) -> Vec<Point> {
        (1..=DEEPEST).map(|k| Point { k, bound: self.bound(k), recall: self.recall(Some(k)) }).collect()
    }
}

fn sum(places: &[u32]) -> u64 {
    places.iter().map(|count| u64::from(*count)).sum()
}

/// Of the first `k` places.
fn up_to(places: &[u32], k: usize) -> u64 {
    places.iter().take(k.min(DEEPEST) + 1).map(|count| u64::from(*count)).sum()
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
        assert_eq!((ranks.calls(), ranks.served()), (6, 3));
        assert_eq!([1, 11, 12, 14, 64].map(|k| ranks.bound(k)), [2, 2, 3, 4, 4]);
        assert_eq!([None, Some(12)].map(|k| ranks.median_missed(k)), [None; 2], "two of three have no place");
        assert_eq!(ranks.least(|k| ranks.bound(k) >= 3), Some(12));
        assert_eq!(Ranks::default().recall(Some(1)), 1.0);
    }

    #[test]
    fn what_was_selected_is_bound_at_its_own_place_and_no_sooner() {
        let mut ranks = Ranks::default();
        for (rank, is_bound, selected) in [(18, true, 20), (18, true, 8), (3, false, 12), (90, true, 100)] {
            ranks.add(Stand { rank: Some(rank), is_bound }, selected);
        }
        assert_eq!((ranks.served(), ranks.kept_out()), (3, 1));
        assert_eq!([1, 3, 17, 18, 64].map(|k| ranks.bound(k)), [1, 2, 2, 3, 3]);
        assert_eq!((ranks.median_missed(None), ranks.median_missed(Some(12))), (Some(3), Some(18)));
    }
}
