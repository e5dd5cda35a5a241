//! A roster ready to be asked: one packed f32 matrix and its lexical counts.

use super::document::Document;
use super::question::Question;

/// A roster ready to be asked. Shape of the matrix: documents x dimensions, row-major f32.
#[derive(Debug)]
pub struct Index {}

/// A tool and how well it fits; the unit is the roster's own spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Index of the document.
    pub tool: usize,
    pub score: f32,
}

impl Index {
    /// `matrix`: documents x dimensions. `bank`: vectors of [`super::question::contentless_phrases`], same embedder.
    /// `None` when the lengths do not fit or a number is not finite.
    pub fn build(_documents: Vec<Document>, _matrix: Vec<f32>, _bank: &[Vec<f32>]) -> Option<Self> {
        todo!("retrieval helper")
    }

    pub fn documents(&self) -> &[Document] {
        todo!("retrieval helper")
    }

    /// All tools, best first. `vectors`: one per [`Question::texts`].
    pub fn rank(&self, _question: &Question, _vectors: &[std::sync::Arc<[f32]>]) -> Vec<Scored> {
        todo!("retrieval helper")
    }

    /// What a `find_tools` query finds: an exact or near-exact name first, then by rank; `hidden[i]`: tool i may be
    /// offered. `matched` false: nothing is better than the roster's own background.
    pub fn find(
        &self,
        _query: &str,
        _vectors: &[std::sync::Arc<[f32]>],
        _hidden: &dyn Fn(usize) -> bool,
        _most: usize,
    ) -> Found {
        todo!("retrieval helper")
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Best first.
    pub tools: Vec<usize>,
    /// False: say plainly that there is no such tool.
    pub matched: bool,
}
