//! Texts become vectors, once: one build in flight however many turns wait, vectors keyed by content hash, kept on
//! disk and in the shared store. NOT at boot, NOT ranking.

pub mod builtin;

use std::sync::Arc;

use crate::retrieval::document::Document;
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::index::Index;

/// A roster's index, the phrases without content in the same space, and whose vectors they are.
#[derive(Debug, Clone)]
pub struct Space {
    pub index: Arc<Index>,
    pub bank: Arc<Vec<Vec<f32>>>,
    /// Identity of the embedder that made it (the fallback's when the configured one failed).
    pub model: Arc<str>,
}

/// Where embedding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// The model file is being loaded.
    Loading,
    /// No model file: everything fails open.
    Absent,
}

/// The embedding service.
#[derive(Debug)]
pub struct Embeddings {}

impl Embeddings {
    pub fn readiness(&self) -> Readiness {
        todo!("embed helper")
    }

    /// The index of this roster. Single flight per content; the build goes on when the caller stops waiting.
    /// The caller sets the deadline.
    pub async fn space(&self, _documents: &Arc<Vec<Document>>) -> Result<Space, EmbedError> {
        todo!("embed helper")
    }

    /// Vectors of query texts in that space's model, remembered by text hash, single flight.
    pub async fn queries(&self, _model: &str, _texts: &[String]) -> Result<Vec<Arc<[f32]>>, EmbedError> {
        todo!("embed helper")
    }

    /// Vectors so far: hit (memory, disk or store), built, failed.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        todo!("embed helper")
    }
}
