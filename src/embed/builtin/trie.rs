//! All pieces of the vocabulary by their beginnings: which of them start here?
//!
//! Nodes lie breadth first, so the children of a node are neighbours and end where those of the next node begin:
//! 9 bytes a node, 7 MB for the 250,000 pieces of XLM-R. NOT scores, NOT which piece is best ([`super::tokenizer`]).

use std::collections::VecDeque;

/// Marks a node at which no piece ends.
const NONE: u32 = u32::MAX;

/// Byte strings with a number each.
#[derive(Debug)]
pub struct Trie {
    /// Per node its first child; one more at the end.
    children: Vec<u32>,
    labels: Vec<u8>,
    /// Per node the number of the piece that ends here.
    pieces: Vec<u32>,
}

impl Trie {
    /// Of the pieces of these numbers, which may be empty or repeat themselves: the first of equals counts, the empty one
    /// never. What is built on the way takes 16 bytes a piece: it is the load's peak that stays resident.
    #[must_use]
    pub fn new<'p>(numbers: impl Iterator<Item = u32>, piece: impl Fn(u32) -> &'p [u8]) -> Self {
        // By their first bytes as a number: that decides nearly always, without a look at the text.
        let mut order: Vec<(u64, u32)> = numbers.map(|number| (leading(piece(number)), number)).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| piece(a.1).cmp(piece(b.1))).then(a.1.cmp(&b.1)));
        let mut trie = Self { children: Vec::new(), labels: vec![0], pieces: vec![NONE] };
        // Per node in the order of nodes: the pieces that run through it, and how many of their bytes are behind it.
        let mut pending = VecDeque::from([Through { start: 0, end: order.len() as u32, depth: 0 }]);
        while let Some(Through { start, end, depth }) = pending.pop_front() {
            trie.children.push(trie.labels.len() as u32);
            let through = order.get(start as usize..end as usize).unwrap_or_default();
            let longer = through.partition_point(|(_, number)| piece(*number).len() <= depth as usize);
            let mut start = start + longer as u32;
            let label = |number: u32| piece(number).get(depth as usize).copied();
            for group in through.get(longer..).unwrap_or_default().chunk_by(|a, b| label(a.1) == label(b.1)) {
                let Some(&(_, number)) = group.first() else { continue };
                let end = start + group.len() as u32;
                trie.labels.push(label(number).unwrap_or_default());
                trie.pieces.push(if piece(number).len() == depth as usize + 1 { number } else { NONE });
                pending.push_back(Through { start, end, depth: depth + 1 });
                start = end;
            }
        }
        trie.children.push(trie.labels.len() as u32);
        trie.children.shrink_to_fit();
        trie.labels.shrink_to_fit();
        trie.pieces.shrink_to_fit();
        trie
    }

    /// The pieces that `text` starts with, shortest first: length in bytes, number.
    pub fn prefixes<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, u32)> + 'a {
        let mut node = Some(0);
        text.iter()
            .enumerate()
            .map_while(move |(at, byte)| {
                node = self.child(node?, *byte);
                Some((at + 1, *self.pieces.get(node?)?))
            })
            .filter(|(_, piece)| *piece != NONE)
    }

    fn child(&self, node: usize, byte: u8) -> Option<usize> {
        let (start, end) = (*self.children.get(node)? as usize, *self.children.get(node + 1)? as usize);
        Some(start + self.labels.get(start..end)?.binary_search(&byte).ok()?)
    }
}

/// Pieces, by their places in order, that run through one node.
struct Through {
    start: u32,
    end: u32,
    depth: u32,
}

/// The first eight bytes, so that numbers compare as texts do as far as they reach.
fn leading(piece: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(piece).for_each(|(byte, from)| *byte = *from);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pieces: &[&str], text: &str) -> Vec<(usize, u32)> {
        let numbers = 0..pieces.len() as u32;
        Trie::new(numbers, |number| pieces[number as usize].as_bytes()).prefixes(text.as_bytes()).collect()
    }

    #[test]
    fn finds_every_piece_a_text_starts_with() {
        assert_eq!(found(&["b", "abc", "a", "ab", "abd", "é"], "abcd"), [(1, 2), (2, 3), (3, 1)]);
        assert_eq!(found(&["b", "abc"], "ab"), []);
        assert_eq!(found(&["é", "è"], "è!"), [(2, 1)]);
    }

    #[test]
    fn the_first_of_equal_pieces_counts_and_the_empty_one_never() {
        assert_eq!(found(&["", "a", "a", "ab"], "ab"), [(1, 1), (2, 3)]);
        assert_eq!(found(&["", ""], "ab"), []);
        assert_eq!(found(&[], "ab"), []);
    }
}
