//! A text becomes ids: normalised, cut into the likeliest pieces (Unigram, Viterbi), framed.
//!
//! NOT the prefix `query: ` ([`super`]). It agrees with the model's official tokenizer except where that one
//! normalises a sequence of code points (stacked combining marks); here the table maps single ones.

use std::ops::Range;

use super::trie::Trie;
use super::vocabulary::Vocabulary;

/// Stands for a space within pieces.
const SPACE: char = '\u{2581}';
/// How much worse an unknown code point is than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Text to ids.
#[derive(Debug)]
pub struct Tokenizer {
    trie: Trie,
    scores: Vec<f32>,
    /// Code points of the longest piece.
    longest: usize,
    unknown_score: f32,
    bos: u32,
    eos: u32,
    unknown: u32,
    replaced: Vec<(char, Range<usize>)>,
    replacements: Vec<char>,
}

impl Tokenizer {
    #[must_use]
    pub fn new(vocabulary: Vocabulary) -> Self {
        // A text that spells `</s>` is still a text: the marks are no pieces.
        let marks = [vocabulary.bos, vocabulary.eos, vocabulary.pad, vocabulary.unknown];
        let numbers = || (0..vocabulary.scores.len() as u32).filter(|number| !marks.contains(number));
        let starts_code_point = |byte: &&u8| **byte & 0xc0 != 0x80;
        let code_points = |piece: &[u8]| piece.iter().filter(starts_code_point).count();
        let longest = numbers().filter_map(|number| vocabulary.piece(number)).map(code_points).max().unwrap_or(1);
        let lowest = vocabulary.scores.iter().copied().fold(f32::INFINITY, f32::min);
        let trie = Trie::new(numbers(), |number| vocabulary.piece(number).unwrap_or_default());
        let Vocabulary { bos, eos, unknown, scores, replaced, replacements, .. } = vocabulary;
        Self {
            trie,
            scores,
            longest: longest.max(1),
            unknown_score: lowest - UNKNOWN_PENALTY,
            bos,
            eos,
            unknown,
            replaced,
            replacements,
        }
    }

    /// The ids of `text`, between the marks of begin and end, at most `limit` (at least 2).
    #[must_use]
    pub fn ids(&self, text: &str, limit: usize) -> Vec<u32> {
        let room = limit.saturating_sub(2);
        // Twice what `room` pieces can cover: cutting there cannot change them, and a message of megabytes costs no
        // more than one of pages.
        let text = self.normalised(text, (room + 1) * self.longest * 2);
        let mut ids = vec![self.bos];
        ids.extend(self.segments(&text));
        ids.truncate(room + 1);
        ids.push(self.eos);
        ids
    }

    /// With every code point through the table, one space in front, runs of spaces as one; at most `most` code points.
    fn normalised(&self, text: &str, most: usize) -> String {
        let mut out = String::with_capacity(text.len().min(most * 4) + SPACE.len_utf8());
        let mut after_space = false;
        let mapped = text.chars().flat_map(|point| self.mapped(point));
        for point in std::iter::once(' ').chain(mapped).take(most) {
            if point != ' ' {
                out.push(point);
            } else if !after_space {
                out.push(SPACE);
            }
            after_space = point == ' ';
        }
        out
    }

    /// What stands for `point`: itself, unless the table says otherwise.
    fn mapped(&self, point: char) -> impl Iterator<Item = char> + '_ {
        let row = self.replaced.binary_search_by_key(&point, |(from, _)| *from).ok();
        let written = row.and_then(|row| self.replacements.get(self.replaced.get(row)?.1.clone()));
        written.unwrap_or_default().iter().copied().chain(written.is_none().then_some(point))
    }

    /// The likeliest pieces of a normalised text.
    fn segments(&self, text: &str) -> Vec<u32> {
        let bytes = text.as_bytes();
        let mut best = vec![Step { score: f32::NEG_INFINITY, start: 0, id: self.unknown }; bytes.len() + 1];
        if let Some(first) = best.first_mut() {
            first.score = 0.0;
        }
        for (at, point) in text.char_indices() {
            let Some(so_far) = best.get(at).map(|step| step.score) else { break };
            let mut offer = |end: usize, score: f32, id: u32| {
                if let Some(step) = best.get_mut(end)
                    && so_far + score > step.score
                {
                    *step = Step { score: so_far + score, start: at, id };
                }
            };
            let mut whole = false;
            for (length, id) in self.trie.prefixes(bytes.get(at..).unwrap_or_default()) {
                whole |= length == point.len_utf8();
                offer(at + length, self.scores.get(id as usize).copied().unwrap_or(self.unknown_score), id);
            }
            if !whole {
                offer(at + point.len_utf8(), self.unknown_score, self.unknown);
            }
        }

        let mut ids = Vec::new();
        let mut end = bytes.len();
        while let Some(step) = best.get(end)
            && end > 0
        {
            // Neighbouring unknown code points are one unknown.
            if step.id != self.unknown || ids.last() != Some(&self.unknown) {
                ids.push(step.id);
            }
            end = step.start;
        }
        ids.reverse();
        ids
    }
}

/// The best way to reach a place in the text: the piece that ends there.
#[derive(Debug, Clone, Copy)]
struct Step {
    score: f32,
    start: usize,
    id: u32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::file::ModelFile;
    use super::super::tiny;
    use super::*;

    fn tokenizer() -> Tokenizer {
        Tokenizer::new(ModelFile::read(tiny::file(&tiny::bytes())).unwrap().1)
    }

    fn pieces(text: &str) -> String {
        let ids = tokenizer().ids(text, 16);
        ids.iter().map(|id| tiny::PIECES[*id as usize].0).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn the_likeliest_pieces_win() {
        assert_eq!(pieces("query: ab"), "<s>|\u{2581}que|ry|:|\u{2581}|ab|</s>");
        assert_eq!(pieces(""), "<s>|\u{2581}|</s>");
    }

    #[test]
    fn spaces_collapse_and_the_table_is_read() {
        assert_eq!(pieces("  a \t  b"), "<s>|\u{2581}|a|\u{2581}|b|</s>");
        assert_eq!(pieces("aⒶ\u{200b}b"), "<s>|\u{2581}|a|ab|b|</s>");
    }

    #[test]
    fn unknown_code_points_are_one_unknown() {
        assert_eq!(pieces("a🚀🚀é🚀"), "<s>|\u{2581}|a|<unk>|é|<unk>|</s>");
    }

    #[test]
    fn a_text_that_spells_a_mark_is_a_text() {
        assert_eq!(pieces("</s>a"), "<s>|\u{2581}|<unk>|a|</s>");
    }

    #[test]
    fn a_long_text_is_cut_before_the_end_mark() {
        let ids = tokenizer().ids(&"ab ".repeat(1_000_000), 16);
        assert_eq!(ids.len(), 16);
        assert_eq!((ids.first(), ids.last()), (Some(&0), Some(&2)));
        assert_eq!(ids.get(..15), tokenizer().ids("ab ab ab ab ab ab ab ab ab", 16).get(..15));
        assert_eq!(tokenizer().ids("ab", 2), [0, 2]);
    }

    proptest! {
        #[test]
        fn ids_are_pieces_within_the_limit(text: String, limit in 2usize..20) {
            let ids = tokenizer().ids(&text, limit);
            prop_assert!(ids.len() <= limit && ids.len() >= 2);
            prop_assert!(ids.iter().all(|id| (*id as usize) < tiny::PIECES.len()));
        }
    }
}
