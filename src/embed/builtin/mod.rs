//! The embedder that needs no key and no network: multilingual-e5-small on this machine's processor.
//!
//! Here: the model as a whole, where its file is looked for, and what makes a file the right one. NOT the file's format
//! ([`file`]), NOT how a text becomes ids ([`tokenizer`]) or ids a vector ([`forward`]), NOT threads ([`pool`]).

use std::path::{Path, PathBuf};

pub mod forward;
pub mod pool;

pub use pool::{Pool, Settings};

use forward::Scratch;

/// The loaded model.
#[derive(Debug)]
pub struct Builtin {
    model: String,
}

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
}

/// The file became unreadable after it was loaded.
#[derive(Debug, thiserror::Error)]
#[error("the model file can no longer be read: {0}")]
pub struct ReadError(#[from] std::io::Error);

impl Builtin {
    /// The first that exists: `model_path`; `models/` in the working directory, then beside the executable; `cache_dir`.
    #[must_use]
    pub fn find(_model_path: Option<&Path>, _cache_dir: Option<&Path>) -> Option<PathBuf> {
        None
    }

    /// Loads and checks the file. Blocking, about 0.1-0.3 s.
    ///
    /// # Errors
    /// Unreadable, not the pinned file, or not of its format.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Err(LoadError::Io { path: path.to_owned(), source: std::io::Error::other("to be built") })
    }

    /// Identity of its vectors: `builtin:multilingual-e5-small-q4:<12 hex of the file's SHA-256>:384`.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// 384.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        384
    }

    /// The unit vector of `query: ` + text. Blocking arithmetic: 20 ms for a short message, a second for 400 tokens.
    ///
    /// # Errors
    /// The file became unreadable.
    pub fn embed(&self, text: &str) -> Result<Vec<f32>, ReadError> {
        self.embed_with(text, &mut Scratch::default())
    }

    /// The same with buffers that are kept between texts.
    ///
    /// # Errors
    /// The file became unreadable.
    pub fn embed_with(&self, _text: &str, _scratch: &mut Scratch) -> Result<Vec<f32>, ReadError> {
        Ok(Vec::new())
    }
}
