//! The embedder that needs no key and no network: multilingual-e5-small on this machine's processor.
//!
//! Here: the model as a whole, where its file is looked for, and what makes a file the right one. NOT the file's format
//! ([`file`]), NOT how a text becomes ids ([`tokenizer`]) or ids a vector ([`forward`]), NOT threads ([`pool`]).
//!
//! Chosen for 100 languages in 72 MB. Both sides take the prefix `query: `: on 44 tools and 220 requests in five
//! languages it finds more than the model's own pair `query: ` / `passage: ` (recall@12 .814 against .782).

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub mod file;
pub mod forward;
pub mod linear;
pub mod pool;
pub mod tokenizer;
mod trie;

pub use pool::{Pool, Settings};

use file::{FormatError, ModelFile};
use forward::{Network, Scratch};
use tokenizer::Tokenizer;

/// Name of the model's file. `deploy/fetch-model.py` writes it.
pub const FILE_NAME: &str = "e5-small-q4.bin";
/// SHA-256 of that file. `deploy/fetch-model.py` has the same.
pub const SHA256: &str = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f";

/// Its length.
const BYTES: u64 = 71_622_400;

/// Stands before every text.
const PREFIX: &str = "query: ";

/// The loaded model.
#[derive(Debug)]
pub struct Builtin {
    model: String,
    tokenizer: Tokenizer,
    network: Network,
}

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the model file {} cannot be read: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{} is not the model file: its SHA-256 is {found} instead of {SHA256}; `make model` fetches the right one",
        path.display()
    )]
    WrongFile { path: PathBuf, found: String },
    #[error("{} is not the model file: it has {found} bytes instead of {BYTES}; `make model` fetches it", path.display())]
    WrongSize { path: PathBuf, found: u64 },
    #[error("the model file {} is broken: {source}; `make model` fetches it anew", path.display())]
    Format { path: PathBuf, source: FormatError },
}

/// The file became unreadable after it was loaded.
#[derive(Debug, thiserror::Error)]
#[error("the model file can no longer be read: {0}")]
pub struct ReadError(#[from] io::Error);

impl Builtin {
    /// The first that exists: `model_path`; `models/` in the working directory, then beside the executable;
    /// `cache_dir`. Any of them may be a folder that holds the file.
    #[must_use]
    pub fn find(model_path: Option<&Path>, cache_dir: Option<&Path>) -> Option<PathBuf> {
        let executable = std::env::current_exe().ok();
        let beside = executable.as_deref().and_then(Path::parent).map(|folder| folder.join("models"));
        let places = [model_path, Some(Path::new("models")), beside.as_deref(), cache_dir];
        places.into_iter().flatten().find_map(|place| {
            let inside = place.join(FILE_NAME);
            if inside.is_file() { Some(inside) } else { place.is_file().then(|| place.to_owned()) }
        })
    }

    /// Loads the file and checks its SHA-256. Blocking, 0.1-0.3 s.
    ///
    /// # Errors
    /// Unreadable, not the pinned file, or not of its format.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found != BYTES {
            return Err(LoadError::WrongSize { path: path.to_owned(), found });
        }
        let found = sha256(&mut file).map_err(failed)?;
        if found != SHA256 {
            return Err(LoadError::WrongFile { path: path.to_owned(), found });
        }
        Self::assemble(file, &found).map_err(|source| LoadError::Format { path: path.to_owned(), source })
    }

    fn assemble(file: File, hash: &str) -> Result<Self, FormatError> {
        let (file, vocabulary) = ModelFile::read(file)?;
        let tokenizer = Tokenizer::new(vocabulary);
        let network = Network::read(file)?;
        let model = format!("builtin:multilingual-e5-small-q4:{hash:.12}:{}", network.dimensions());
        Ok(Self { model, tokenizer, network })
    }

    /// Identity of its vectors: `builtin:multilingual-e5-small-q4:<12 hex of the file's SHA-256>:384`.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// 384.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.network.dimensions()
    }

    /// The ids of `query: ` + text, at most 512, the last the mark of its end.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Vec<u32> {
        self.tokenizer.ids(&format!("{PREFIX}{text}"), self.network.positions())
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
    pub fn embed_with(&self, text: &str, scratch: &mut Scratch) -> Result<Vec<f32>, ReadError> {
        Ok(self.network.run(&self.tokens(text), scratch)?)
    }
}

/// In hex, to the file's end. Read, not mapped: no page of it becomes resident.
fn sha256(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hasher.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
