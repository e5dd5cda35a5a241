//! What is asked of a roster: the last message, and what it follows.

/// One user-authored message and the assistant's reply that came before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Utterance {
    /// The user's text, already without what agents wrap around it.
    pub text: String,
    /// The assistant's last visible text before it; empty: none.
    pub reply_before: String,
}

/// What is asked: texts that need a vector, and how they weigh.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {}

impl Question {
    /// The question of `dialogue`'s last utterance in the light of the earlier ones. Negated spans are removed, long
    /// messages cut into passages.
    pub fn of(_dialogue: &[Utterance]) -> Self {
        todo!("retrieval helper")
    }

    /// A bare text: what `find_tools` is asked.
    pub fn bare(_text: &str) -> Self {
        todo!("retrieval helper")
    }

    /// The texts to embed as queries, in the order `rank` takes their vectors.
    pub fn texts(&self) -> &[String] {
        todo!("retrieval helper")
    }

    /// Does the message carry no content of its own ("yes, do it")? It then never grows a sticky block.
    /// `vectors` as for `rank`; `bank` as for [`super::index::Index::build`].
    pub fn contentless(&self, _vectors: &[std::sync::Arc<[f32]>], _bank: &[Vec<f32>]) -> bool {
        todo!("retrieval helper")
    }
}

/// Fixed phrases without content in many languages; embedded once per embedder.
pub fn contentless_phrases() -> &'static [&'static str] {
    todo!("retrieval helper")
}
