//! Rows of one embedder, wherever they are kept: in memory, on disk, in the shared store, or else made now. NOT which
//! rosters they belong to, NOT single flight: a build is the only caller.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use tokio::sync::Semaphore;

use super::counts::Counts;
use super::disk::Disk;
use super::rows::{Key, Numbers, Row, added, averaged, checked, corpus_hash, plausible};
use super::tasks::Tasks;
use crate::retrieval::embedder::{EmbedError, Embedder};
use crate::store::{Op, Store};

/// Bytes of rows in memory: 19,000 tools of 384 dimensions, two rows each.
const MEMORY: u64 = 64 << 20;
/// Rows embedded and kept at a time: what is done stays done when the rest fails. Two rows and three texts a tool: one
/// request of a remote embedder.
const CHUNK: usize = 64;
/// Rows that take the builtin embedder some ten seconds.
const LONG: usize = 2 * CHUNK;
/// The shared store keeps a roster's rows for this long after their last build.
const LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// A build that takes long says how far it is when it begins and this often.
const SAY: Duration = Duration::from_secs(10);
/// A builder that has not delivered after this is taken to have died.
const CLAIM: Duration = Duration::from_secs(20);
/// How often a replica looks whether the other has delivered.
const POLL: Duration = Duration::from_millis(100);

pub(super) struct Shelf {
    embedder: Arc<dyn Embedder>,
    model: Arc<str>,
    memory: Cache<Key, Numbers>,
    disk: Option<Arc<Disk>>,
    store: Arc<dyn Store>,
    counts: Arc<Counts>,
    tasks: Tasks,
    /// One build at a time: two would only halve each other's speed.
    turn: Semaphore,
}

impl Shelf {
    pub(super) fn new(
        embedder: Arc<dyn Embedder>,
        disk: Option<Disk>,
        store: Arc<dyn Store>,
        counts: Arc<Counts>,
        tasks: Tasks,
    ) -> Self {
        let model = Arc::from(embedder.model());
        let memory = Cache::builder()
            .max_capacity(MEMORY)
            .weigher(|_: &Key, numbers: &Numbers| u32::try_from(size_of_val(&**numbers) + 128).unwrap_or(u32::MAX))
            .build();
        Self { embedder, model, memory, disk: disk.map(Arc::new), store, counts, tasks, turn: Semaphore::new(1) }
    }

    pub(super) fn embedder(&self) -> &Arc<dyn Embedder> {
        &self.embedder
    }

    /// Identity of the embedder.
    pub(super) fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// The rows packed. Shape: rows x dimensions, row-major.
    pub(super) async fn packed(&self, rows: &[Row]) -> Result<Vec<f32>, EmbedError> {
        let _turn = self.turn.acquire().await.map_err(|_| EmbedError::QueueFull)?;
        let mut found = Found::of(rows);
        self.look_in_memory(&mut found);
        self.look_on_disk(&mut found).await;
        let hash = corpus_hash(rows);
        let key = format!("tool-vectors:{}:{hash}", self.model);
        let from_store = !found.complete() && self.look_in_store(&key, rows, &mut found).await;
        let lock = format!("tool-vectors-lock:{}:{hash}", self.model);
        let mut claim = None;
        while !found.complete() {
            claim = self.claim(&lock).await;
            // Looked again under the claim: the other may have delivered just before it gave the claim back.
            if self.look_in_store(&key, rows, &mut found).await {
                break;
            }
            if claim.is_some() {
                self.make(rows, &mut found).await?;
            } else {
                tokio::time::sleep(POLL).await;
            }
        }
        let packed = found.packed(self.embedder.dimensions());
        self.counts.hit(rows.len() - found.made);
        if found.made > 0 || !from_store {
            self.publish(key, &packed, claim);
        }
        Ok(packed)
    }

    fn look_in_memory(&self, found: &mut Found<'_>) {
        let known: Vec<_> = found.missing.iter().filter_map(|key| Some((*key, self.memory.get(key)?))).collect();
        found.add(known);
    }

    async fn look_on_disk(&self, found: &mut Found<'_>) {
        let Some(disk) = self.disk.clone().filter(|_| !found.complete()) else { return };
        let wanted = found.missing.clone();
        let read = tokio::task::spawn_blocking(move || disk.find(&wanted)).await.unwrap_or_default();
        for (key, numbers) in &read {
            self.memory.insert(*key, Arc::clone(numbers));
        }
        found.add(read);
    }

    /// The roster's packed buffer of the shared store; rubbish is a counted miss. Did it have all?
    async fn look_in_store(&self, key: &str, rows: &[Row], found: &mut Found<'_>) -> bool {
        let Some(bytes) = self.store.get(Op::VectorsGet, key).await else { return false };
        let Some(numbers) = unpacked(&bytes, rows.len(), self.embedder.dimensions()) else {
            self.store.count(Op::VectorsGet);
            tracing::warn!("the store held rubbish in the place of vectors: not used");
            return false;
        };
        let new: Vec<(Key, Numbers)> = rows
            .iter()
            .zip(numbers)
            .map(|(row, numbers)| (row.key, numbers))
            .filter(|(key, _)| found.missing.contains(key))
            .collect();
        self.keep(new.clone()).await;
        found.add(new);
        true
    }

    /// Embeds what is missing, chunk by chunk.
    async fn make(&self, rows: &[Row], found: &mut Found<'_>) -> Result<(), EmbedError> {
        let mut seen = HashSet::new();
        let missing: Vec<&Row> =
            rows.iter().filter(|row| found.missing.contains(&row.key) && seen.insert(row.key)).collect();
        let begun = Instant::now();
        let mut said = begun;
        if missing.len() > LONG {
            let (done, of) = (found.numbers.len(), found.numbers.len() + missing.len());
            tracing::info!(done, of, "making vectors; what is done is kept");
        }
        for (at, chunk) in missing.chunks(CHUNK).enumerate() {
            if said.elapsed() >= SAY {
                said = Instant::now();
                let (done, of) = (found.numbers.len(), found.numbers.len() + missing.len() - at * CHUNK);
                tracing::info!(done, of, took = ?begun.elapsed(), "making vectors; what is done is kept");
            }
            match self.embed(chunk).await {
                Ok(new) => {
                    self.counts.built(new.len());
                    found.made += new.len();
                    self.keep(new.clone()).await;
                    found.add(new);
                }
                Err(error) => {
                    self.counts.failed(found.missing.len());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Texts that are equal are embedded once: a tool without a description says its name twice.
    async fn embed(&self, rows: &[&Row]) -> Result<Vec<(Key, Numbers)>, EmbedError> {
        let dimensions = self.embedder.dimensions();
        let Some(task) = rows.first().map(|row| row.task) else { return Ok(Vec::new()) };
        let mut places = HashMap::new();
        let mut texts = Vec::new();
        for text in rows.iter().flat_map(|row| &row.texts) {
            places.entry(text.as_str()).or_insert_with(|| {
                texts.push(text.clone());
                texts.len() - 1
            });
        }
        let answer = self.embedder.embed(&texts, task).await?;
        let vectors = checked(answer, texts.len(), dimensions)?;
        let row = |row: &&Row| {
            let own = row.texts.iter().filter_map(|text| vectors.get(*places.get(text.as_str())?));
            let numbers = if row.is_unit { averaged(own, dimensions) } else { added(own, dimensions) };
            // Opposite vectors: no embedder of language does that.
            let sound = plausible(&numbers).then_some((row.key, numbers));
            sound.ok_or_else(|| EmbedError::Nonsense("the vectors of a tool cancel out".to_owned()))
        };
        rows.iter().map(row).collect()
    }

    /// In memory and on disk.
    async fn keep(&self, rows: Vec<(Key, Numbers)>) {
        for (key, numbers) in &rows {
            self.memory.insert(*key, Arc::clone(numbers));
        }
        if let Some(disk) = self.disk.clone().filter(|_| !rows.is_empty()) {
            let written = tokio::task::spawn_blocking(move || disk.append(&rows)).await;
            debug_assert!(written.is_ok(), "appending does not panic");
        }
    }

    /// `None`: another replica is at it.
    async fn claim(&self, lock: &str) -> Option<Claim> {
        let claimed = self.store.claim(Op::VectorsPut, lock, CLAIM).await;
        claimed.then(|| Claim { lock: lock.to_owned(), store: Arc::clone(&self.store), tasks: self.tasks.clone() })
    }

    /// For other replicas; nobody waits for it, and the claim is given back after it.
    fn publish(&self, key: String, packed: &[f32], claim: Option<Claim>) {
        let bytes: Vec<u8> = packed.iter().flat_map(|number| number.to_le_bytes()).collect();
        let store = Arc::clone(&self.store);
        self.tasks.finish(async move {
            store.put(Op::VectorsPut, &key, bytes, Some(LIFE)).await;
            drop(claim);
        });
    }
}

/// The claim of a build among replicas, given back however the build ends.
struct Claim {
    lock: String,
    store: Arc<dyn Store>,
    tasks: Tasks,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let (lock, store) = (std::mem::take(&mut self.lock), Arc::clone(&self.store));
        self.tasks.finish(async move { store.release(Op::VectorsPut, &lock).await });
    }
}

/// What has been found of the rows so far.
struct Found<'a> {
    rows: &'a [Row],
    numbers: HashMap<Key, Numbers>,
    missing: HashSet<Key>,
    made: usize,
}

impl<'a> Found<'a> {
    fn of(rows: &'a [Row]) -> Self {
        let missing = rows.iter().map(|row| row.key).collect();
        Self { rows, numbers: HashMap::new(), missing, made: 0 }
    }

    fn add(&mut self, new: impl IntoIterator<Item = (Key, Numbers)>) {
        for (key, numbers) in new {
            self.missing.remove(&key);
            self.numbers.insert(key, numbers);
        }
    }

    fn complete(&self) -> bool {
        self.missing.is_empty()
    }

    fn packed(&self, dimensions: usize) -> Vec<f32> {
        let mut packed = Vec::with_capacity(self.rows.len() * dimensions);
        for row in self.rows {
            packed.extend(self.numbers.get(&row.key).into_iter().flat_map(|numbers| numbers.iter()));
        }
        packed
    }
}

/// The rows of a packed buffer. `None`: not as long as it should be, or not numbers an embedder makes.
fn unpacked(bytes: &[u8], rows: usize, dimensions: usize) -> Option<Vec<Numbers>> {
    let row = dimensions.checked_mul(size_of::<f32>())?;
    if row == 0 || rows.checked_mul(row)? != bytes.len() {
        return None;
    }
    let numbers = |row: &[u8]| -> Option<Numbers> {
        let numbers: Vec<f32> = row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        plausible(&numbers).then(|| numbers.into())
    };
    bytes.chunks_exact(row).map(numbers).collect()
}
