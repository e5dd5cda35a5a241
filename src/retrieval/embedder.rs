//! What makes vectors. NOT a client of anything.

use std::future::Future;
use std::pin::Pin;

/// Which side of retrieval a text stands on: embedders are asymmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// A tool's text.
    Document,
    /// A message's text.
    Query,
}

/// Why there are no vectors. Each is a reason to fail open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    #[error("no embedding model is loaded: run `make model` or set embeddings.model_path")]
    Absent,
    #[error("the embedding queue is full")]
    QueueFull,
    #[error("the embedder did not answer in time")]
    Timeout,
    #[error("the embedder failed: {0}")]
    Failed(String),
    /// Wrong count, wrong length, NaN or infinite, all zero.
    #[error("the embedder answered nonsense: {0}")]
    Nonsense(String),
}

/// A future as a trait object may return it.
pub type Embedded<'a> = Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, EmbedError>> + Send + 'a>>;

/// Texts to vectors, unit length, one per text and in order.
pub trait Embedder: Send + Sync {
    /// Identity of the vectors: provider, model, file hash, dimensions. Part of every key.
    fn model(&self) -> &str;
    /// Length of each vector.
    fn dimensions(&self) -> usize;
    /// Embeds; the caller has no more than a few hundred texts.
    fn embed<'a>(&'a self, texts: &'a [String], task: Task) -> Embedded<'a>;
    /// Would a text that nobody waits for cost nothing but time that is free? Not where each call is paid for.
    fn is_idle(&self) -> bool {
        false
    }
}
