//! The embedder that needs no key and no network: multilingual-e5-small on this machine's processor.
//!
//! Here: the model as a whole, where its file is looked for, and what makes a file the right one. NOT the file's format
//! ([`mod@file`]), NOT how a text becomes ids ([`tokenizer`]) or ids a vector ([`forward`]), NOT threads ([`pool`]).
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
#[cfg(test)]
mod tiny;
pub mod tokenizer;
mod trie;
mod vocabulary;

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
        // The weights first: what the tokenizer is made from then lies above them and goes back to the system.
        let network = Network::read(file)?;
        let tokenizer = Tokenizer::new(vocabulary);
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
    Ok(hex::encode(hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assembled(bytes: &[u8]) -> Result<Builtin, FormatError> {
        Builtin::assemble(tiny::file(bytes), SHA256)
    }

    #[test]
    fn a_file_of_the_format_becomes_a_model() {
        let builtin = assembled(&tiny::bytes()).unwrap();
        assert_eq!(builtin.model(), "builtin:multilingual-e5-small-q4:1571fc982750:32");
        let (one, same, other) =
            (builtin.embed("ab").unwrap(), builtin.embed("ab").unwrap(), builtin.embed("b").unwrap());
        assert_eq!(one.len(), builtin.dimensions());
        assert!((one.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-5);
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn buffers_of_a_longer_text_do_not_change_a_shorter_one() {
        let builtin = assembled(&tiny::bytes()).unwrap();
        let mut scratch = Scratch::default();
        builtin.embed_with("abababab aba b a b a", &mut scratch).unwrap();
        assert_eq!(builtin.embed_with("b", &mut scratch).unwrap(), builtin.embed("b").unwrap());
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error() {
        let whole = tiny::bytes();
        for end in 0..whole.len() {
            let error = assembled(&whole[..end]).expect_err("a cut file").to_string();
            assert!(error.contains("end") || error.contains("begin"), "{end}: {error}");
        }
    }

    #[test]
    fn a_file_cut_after_loading_is_an_error_of_the_text() {
        let whole = tiny::bytes();
        let file = tiny::file(&whole);
        let again = file.try_clone().unwrap();
        let builtin = Builtin::assemble(file, SHA256).unwrap();
        again.set_len(64).unwrap();
        assert!(builtin.embed("ab").unwrap_err().to_string().starts_with("the model file can no longer be read"));
    }

    #[test]
    fn another_file_is_named_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        assert!(matches!(Builtin::load(&path), Err(LoadError::Io { .. })));
        assert!(matches!(Builtin::load(folder.path()), Err(LoadError::Io { .. } | LoadError::WrongSize { .. })));
        std::fs::write(&path, tiny::bytes()).unwrap();
        let error = Builtin::load(&path).unwrap_err().to_string();
        assert!(error.contains("bytes instead of 71622400") && error.contains("make model"), "{error}");
        std::fs::File::options().write(true).open(&path).unwrap().set_len(BYTES).unwrap();
        let error = Builtin::load(&path).unwrap_err().to_string();
        assert!(error.contains("SHA-256") && error.contains("make model"), "{error}");
    }

    #[test]
    fn the_file_is_found_by_its_path_before_the_cache() {
        let (mine, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let named = mine.path().join("renamed.bin");
        std::fs::write(&named, b"x").unwrap();
        std::fs::write(cache.path().join(FILE_NAME), b"x").unwrap();
        assert_eq!(Builtin::find(Some(&named), Some(cache.path())), Some(named.clone()));
        std::fs::write(mine.path().join(FILE_NAME), b"x").unwrap();
        assert_eq!(Builtin::find(Some(mine.path()), None), Some(mine.path().join(FILE_NAME)));
    }

    proptest! {
        /// Whatever a file says, it is a model or an error.
        #[test]
        fn broken_files_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            let mut bytes = tiny::bytes();
            // Mostly the head: that is where numbers become sizes.
            let head = 700.min(bytes.len());
            for (number, (at, byte)) in changes.iter().enumerate() {
                let at = if number % 4 == 3 { at.index(bytes.len()) } else { at.index(head) };
                bytes[at] = *byte;
            }
            if let Ok(builtin) = assembled(&bytes) {
                let _ = builtin.embed("query ab é 🚀 </s>");
            }
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..600), behind_magic: bool) {
            let mut bytes = if behind_magic { tiny::bytes()[..44].to_vec() } else { Vec::new() };
            bytes.extend(noise);
            prop_assert!(assembled(&bytes).is_err());
        }
    }
}
