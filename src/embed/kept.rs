//! Query vectors kept on disk from one run of a command to the next, so that a second measurement takes seconds. NOT
//! for a sidecar that serves: of what users write it keeps nothing, not even vectors.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::disk::Disk;
use super::rows::{Key, Numbers};

/// The folder beside the vectors of tools.
const FOLDER: &str = "queries";

/// The kept vectors of one embedder, read once.
pub(super) struct Kept {
    disk: Arc<Disk>,
    known: OnceCell<HashMap<Key, Numbers>>,
}

impl Kept {
    /// `model`: the embedder's identity. Touches nothing yet.
    pub(super) fn new(cache_dir: &Path, model: &str, dimensions: usize) -> Self {
        Self { disk: Arc::new(Disk::new(&cache_dir.join(FOLDER), model, dimensions)), known: OnceCell::new() }
    }

    /// What the file held when it was first asked for.
    pub(super) async fn known(&self) -> &HashMap<Key, Numbers> {
        let read = || async {
            let disk = Arc::clone(&self.disk);
            tokio::task::spawn_blocking(move || disk.all()).await.unwrap_or_default()
        };
        self.known.get_or_init(read).await
    }

    pub(super) async fn add(&self, rows: Vec<(Key, Numbers)>) {
        let disk = Arc::clone(&self.disk);
        let written = tokio::task::spawn_blocking(move || disk.append(&rows)).await;
        debug_assert!(written.is_ok(), "appending does not panic");
    }
}
