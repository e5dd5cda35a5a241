//! What retrieval says of one turn, as the folds take it. NOT how it was ranked, NOT what is bound.

use std::sync::Arc;

/// What retrieval says of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// What is selected (first of each name), best first.
    pub best: Vec<usize>,
    /// How many of them, at the front, the message names: they are bound whatever else holds.
    pub named: usize,
    /// The message carries no content of its own ("yes, do it").
    pub contentless: bool,
    /// Whose vectors said so; `None`: nobody was asked.
    pub model: Option<Arc<str>>,
    /// Id of the head that had a part in it.
    pub head: Option<Arc<str>>,
}

impl Selection {
    /// Bytes in memory, roughly.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.best.len() * size_of::<usize>() + 100
    }
}
