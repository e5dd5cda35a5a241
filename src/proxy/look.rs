//! Files that may change while we serve: looked at every two seconds, read again when they were
//! written. NOT what is in them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::shutdown::Shutdown;

/// How often a file is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Whoever has such a file.
pub trait Look: Send + Sync + 'static {
    /// Reads it if it changed. Blocking.
    fn look(&self);
}

/// What a file was at the last look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When it was written and how long it was.
    version: Option<(SystemTime, u64)>,
    gone: bool,
    refused: bool,
}

impl Seen {
    /// Is it another one than at the last look? A file that is gone is not.
    pub fn changed(&mut self, path: &Path) -> bool {
        let file = std::fs::metadata(path).and_then(|file| Ok((file.modified()?, file.len())));
        let was_gone = std::mem::replace(&mut self.gone, file.is_err());
        match file {
            Ok(now) => self.version.replace(now) != Some(now),
            Err(error) => {
                if !was_gone {
                    tracing::warn!(path = %path.display(), %error, "a file is gone: what was read of it is used on");
                }
                false
            }
        }
    }

    /// Notes whether a changed file was what it should be.
    pub fn read(&mut self, well: bool) {
        self.refused = !well;
    }

    /// Is it gone, or not what it should be?
    pub fn broken(&self) -> bool {
        self.gone || self.refused
    }
}

/// Looks until shutdown.
pub fn keep_looking<L: Look>(file: &Arc<L>, shutdown: &Shutdown) {
    let (file, ended) = (Arc::clone(file), shutdown.clone());
    shutdown.spawn(async move {
        loop {
            tokio::select! {
                () = ended.begun() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let file = Arc::clone(&file);
            let looked = tokio::task::spawn_blocking(move || file.look()).await;
            debug_assert!(looked.is_ok(), "looking does not panic");
        }
    });
}
