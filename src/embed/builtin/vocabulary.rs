//! The pieces of the vocabulary and what normalises a text before it is cut into them, as a model file holds them. NOT
//! reading one ([`super::file`]), NOT cutting ([`super::tokenizer`]).

use std::ops::Range;

/// What the tokenizer is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Vocabulary {
    pub bos: u32,
    pub eos: u32,
    pub pad: u32,
    pub unknown: u32,
    /// Where each piece begins in `text`, and where the last one ends: ascending, within it.
    pub offsets: Vec<u32>,
    /// Per piece, finite.
    pub scores: Vec<f32>,
    /// UTF-8, piece by piece.
    pub text: Vec<u8>,
    /// Code points that are written otherwise, ascending, each with its place in `replacements`.
    pub replaced: Vec<(char, Range<usize>)>,
    pub replacements: Vec<char>,
}

impl Vocabulary {
    /// The bytes of a piece.
    pub fn piece(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        self.text.get(*self.offsets.get(number)? as usize..*self.offsets.get(number + 1)? as usize)
    }
}
