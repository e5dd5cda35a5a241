//! Byte pair encoding of one piece: of all neighbours the pair of lowest rank is merged, the leftmost first, until none
//! is a token. NOT where pieces begin.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary;

/// Tokens of one piece. `O(n log n)`, whatever it is.
pub fn count(piece: &[u8]) -> u64 {
    if piece.is_empty() {
        return 0;
    }
    if vocabulary::rank(piece).is_some() {
        return 1;
    }
    let mut parts = Parts::new(piece.len());
    let mut pairs = BinaryHeap::new();
    for start in 0..piece.len().saturating_sub(1) {
        pairs.extend(parts.pair(piece, start));
    }
    let mut tokens = piece.len() as u64;
    while let Some(Reverse(pair)) = pairs.pop() {
        if !parts.merge(pair) {
            continue;
        }
        tokens -= 1;
        let before = parts.before(pair.start);
        pairs.extend(before.and_then(|start| parts.pair(piece, start)));
        pairs.extend(parts.pair(piece, pair.start));
    }
    tokens
}

/// Two neighbours that together are a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    rank: u32,
    start: usize,
    middle: usize,
    end: usize,
}

/// The parts of a piece, each by its first byte.
struct Parts {
    /// Where the part that begins here ends; 0: none begins here.
    end: Vec<usize>,
    /// Where the part that ends here begins.
    start: Vec<usize>,
}

impl Parts {
    fn new(bytes: usize) -> Self {
        Self { end: (1..=bytes).collect(), start: (0..=bytes).map(|end| end.saturating_sub(1)).collect() }
    }

    /// The part at `start` with the one behind it.
    fn pair(&self, piece: &[u8], start: usize) -> Option<Reverse<Pair>> {
        let middle = *self.end.get(start)?;
        let end = *self.end.get(middle)?;
        let rank = vocabulary::rank(piece.get(start..end)?)?;
        Some(Reverse(Pair { rank, start, middle, end }))
    }

    /// `false`: its parts have been merged with others meanwhile.
    fn merge(&mut self, pair: Pair) -> bool {
        let as_it_was = self.end.get(pair.start) == Some(&pair.middle) && self.end.get(pair.middle) == Some(&pair.end);
        if !as_it_was {
            return false;
        }
        if let Some(end) = self.end.get_mut(pair.start) {
            *end = pair.end;
        }
        if let Some(end) = self.end.get_mut(pair.middle) {
            *end = 0;
        }
        if let Some(start) = self.start.get_mut(pair.end) {
            *start = pair.start;
        }
        true
    }

    /// The part in front of the one at `start`.
    fn before(&self, start: usize) -> Option<usize> {
        if start == 0 { None } else { self.start.get(start).copied() }
    }
}
