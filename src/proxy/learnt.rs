//! Heads that `tune` wrote, as upstreams use them: read again when their file changes, put aside with a word why where
//! they do not fit. NOT what a head does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::look::{self, Look, Seen};
use super::shutdown::Shutdown;
use crate::config::narrow::HeadFile;
use crate::retrieval::head::Head;

/// The head of an upstream.
#[derive(Debug)]
pub struct Learnt {
    path: PathBuf,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    head: Arc<Head>,
    seen: Seen,
    /// The embedder that it does not fit, once that has been said.
    told: Option<String>,
}

impl Learnt {
    pub fn new(file: &HeadFile) -> Self {
        let now = Now { head: Arc::clone(&file.head), seen: Seen::default(), told: None };
        Self { path: file.path.clone(), now: Mutex::new(now) }
    }

    /// The head, where it fits this embedder; where it does not, that is said once.
    pub fn head(&self, model: &str) -> Option<Arc<Head>> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        match now.head.fits(model) {
            Ok(()) => Some(Arc::clone(&now.head)),
            Err(error) => {
                if now.told.as_deref() != Some(model) {
                    tracing::warn!(path = %self.path.display(), %error, "the head is not used");
                    now.told = Some(model.to_owned());
                }
                None
            }
        }
    }

    /// What a head makes of these vectors of that embedder.
    pub fn bent(learnt: Option<&Arc<Self>>, model: &str, vectors: Vec<Arc<[f32]>>) -> Vec<Arc<[f32]>> {
        match learnt.and_then(|learnt| learnt.head(model)) {
            Some(head) => vectors.iter().map(|vector| head.apply(vector).into()).collect(),
            None => vectors,
        }
    }

    /// Was its file gone or no head at the last look?
    pub fn broken(&self) -> bool {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).seen.broken()
    }

    /// Looks at the file until shutdown.
    pub fn watch(self: &Arc<Self>, shutdown: &Shutdown) {
        look::keep_looking(self, shutdown);
    }
}

impl Look for Learnt {
    /// A file that is gone or no head leaves what there is.
    fn look(&self) {
        let changed = {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            now.seen.changed(&self.path)
        };
        if !changed {
            return;
        }
        let read = HeadFile::read(&self.path);
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.seen.read(read.is_ok());
        match read {
            Ok(read) => {
                if read.head.id() != now.head.id() {
                    tracing::info!(path = %self.path.display(), head = read.head.id(), "another head is used");
                    (now.head, now.told) = (read.head, None);
                }
            }
            Err(error) => tracing::warn!(%error, "the head before is used on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: f32) -> Head {
        Head::new("m", vec![0.0; 2], &[number, 0.0, 0.0, 0.0]).expect("a head")
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_bad_one_is_not() {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), head(1.0).to_bytes()).expect("written");
        let learnt = Learnt::new(&HeadFile::read(file.path()).expect("a head"));
        let id = || learnt.head("m").expect("it fits").id().to_owned();
        assert_eq!(id(), head(1.0).id());
        assert!(learnt.head("other").is_none());
        std::fs::write(file.path(), head(2.0).to_bytes()).expect("written");
        learnt.look();
        assert_eq!(id(), head(2.0).id());
        assert!(!learnt.broken());
        std::fs::write(file.path(), "rubbish").expect("written");
        learnt.look();
        assert!(learnt.broken());
        std::fs::remove_file(file.path()).expect("gone");
        learnt.look();
        assert!(learnt.broken());
        assert_eq!(id(), head(2.0).id());
    }
}
