//! Rosters become spaces: one build in flight however many turns wait, remembered, tried again with back-off. NOT where
//! rows come from.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::counts::Counts;
use super::flight::Flights;
use super::rows::Row;
use super::shelf::Shelf;
use super::tasks::Tasks;
use crate::retrieval::document::Document;
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::index::Index;
use crate::retrieval::question::contentless_phrases;

/// Bytes of indexes in memory, roughly: twenty rosters of 200 tools, or the two that are larger than half of it.
const MEMORY: u64 = 64 << 20;
/// Rosters that may wait to be built.
const BUILDS: usize = 32;
/// Rosters whose hashes are remembered.
const HASHES: usize = 32;
/// Failures remembered.
const FAILURES: u64 = 256;
const LONGEST_REST: Duration = Duration::from_secs(30);

/// A roster's index, the phrases without content in the same space, and whose vectors they are.
#[derive(Debug, Clone)]
pub struct Space {
    pub index: Arc<Index>,
    pub bank: Arc<Vec<Vec<f32>>>,
    /// Identity of the embedder that made it (the fallback's when the configured one failed).
    pub model: Arc<str>,
}

/// The spaces of one embedder.
pub(super) struct Spaces {
    shelf: Arc<Shelf>,
    memo: Cache<Roster, Space>,
    /// Hashes of rosters that somebody has: of thousands of tools one takes milliseconds.
    hashes: Mutex<Vec<(Weak<Vec<Document>>, u64)>>,
    failures: Cache<Roster, Failure>,
    flights: Flights<Roster, Space>,
    bank: OnceCell<Arc<Vec<Vec<f32>>>>,
    counts: Arc<Counts>,
    tasks: Tasks,
    retry: Duration,
}

/// A roster as a key: hashed once, compared in full.
#[derive(Debug, Clone)]
struct Roster {
    documents: Arc<Vec<Document>>,
    hash: u64,
}

#[derive(Debug, Clone)]
struct Failure {
    error: EmbedError,
    times: u32,
    again: Instant,
}

impl Spaces {
    /// `retry`: rest after a first failure.
    pub(super) fn new(shelf: Arc<Shelf>, counts: Arc<Counts>, tasks: Tasks, retry: Duration) -> Self {
        let memo = Cache::builder()
            .max_capacity(MEMORY)
            .weigher(|_: &Roster, space: &Space| weighed(space.index.weight()))
            .build();
        let failures = Cache::builder().max_capacity(FAILURES).time_to_live(LONGEST_REST * 4).build();
        let (flights, bank, hashes) = (Flights::new(BUILDS), OnceCell::new(), Mutex::default());
        Self { shelf, memo, hashes, failures, flights, bank, counts, tasks, retry }
    }

    /// The space of this roster, if it is at hand.
    pub(super) fn ready(&self, documents: &Arc<Vec<Document>>) -> Option<Space> {
        let space = self.memo.get(&self.roster(documents))?;
        self.counts.hit(documents.len());
        Some(space)
    }

    /// The space of this roster. The build goes on when the caller stops waiting.
    pub(super) async fn of(self: &Arc<Self>, documents: &Arc<Vec<Document>>) -> Result<Space, EmbedError> {
        let roster = self.roster(documents);
        if let Some(space) = self.memo.get(&roster) {
            self.counts.hit(documents.len());
            return Ok(space);
        }
        if let Some(failure) = self.failures.get(&roster).filter(|failure| Instant::now() < failure.again) {
            return Err(failure.error);
        }
        let (waiting, lead) = self.flights.join(&roster)?;
        if let Some(lead) = lead {
            let spaces = Arc::clone(self);
            self.tasks.spawn(async move {
                // It may have landed between the look into the memo and the lead.
                let built = match spaces.memo.get(&roster) {
                    Some(space) => Ok(space),
                    None => spaces.build(&roster).await,
                };
                lead.land(built);
            });
        }
        waiting.landed().await
    }

    fn roster(&self, documents: &Arc<Vec<Document>>) -> Roster {
        let documents = Arc::clone(documents);
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |held: &&(Weak<Vec<Document>>, u64)| std::ptr::eq(held.0.as_ptr(), Arc::as_ptr(&documents));
        if let Some((_, hash)) = hashes.iter().find(same) {
            return Roster { hash: *hash, documents };
        }
        drop(hashes);
        let hash = Xxh3DefaultBuilder.hash_one(&*documents);
        hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        hashes.retain(|(held, _)| held.strong_count() > 0);
        if hashes.len() == HASHES {
            hashes.remove(0);
        }
        hashes.push((Arc::downgrade(&documents), hash));
        Roster { documents, hash }
    }

    async fn build(&self, roster: &Roster) -> Result<Space, EmbedError> {
        let built = self.try_build(&roster.documents).await;
        match &built {
            Ok(space) => {
                self.failures.invalidate(roster);
                self.memo.insert(roster.clone(), space.clone());
            }
            Err(error) => {
                let times = self.failures.get(roster).map_or(0, |failure| failure.times);
                let rest = self.retry.saturating_mul(1 << times.min(16)).min(LONGEST_REST);
                tracing::warn!(%error, tools = roster.documents.len(), retry_in = ?rest, "the roster is not embedded");
                let failure = Failure { error: error.clone(), times: times + 1, again: Instant::now() + rest };
                self.failures.insert(roster.clone(), failure);
            }
        }
        built
    }

    async fn try_build(&self, documents: &[Document]) -> Result<Space, EmbedError> {
        let begun = Instant::now();
        let bank = Arc::clone(self.bank.get_or_try_init(|| self.build_bank()).await?);
        let model = self.shelf.model();
        let (pairs, keywords): (Vec<_>, Vec<_>) =
            documents.iter().map(|document| Row::of_document(document, model)).unzip();
        let rows: Vec<Row> = pairs.into_iter().flatten().chain(keywords.into_iter().flatten()).collect();
        let packed = self.shelf.packed(&rows).await?;
        // Thousands of tools take seconds to index: not on a thread that moves bytes.
        let (owned, phrases) = (documents.to_vec(), Arc::clone(&bank));
        let index = tokio::task::spawn_blocking(move || Index::of_parts(owned, &packed, &phrases))
            .await
            .map_err(|error| EmbedError::Failed(error.to_string()))?
            .ok_or_else(|| EmbedError::Nonsense("the vectors do not fit the roster".to_owned()))?;
        tracing::info!(tools = documents.len(), took = ?begun.elapsed(), "the roster is embedded");
        Ok(Space { index: Arc::new(index), bank, model: Arc::clone(self.shelf.model()) })
    }

    /// A unit vector for each text of a tool.
    pub(super) async fn texts(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let rows: Vec<Row> = texts.iter().map(|text| Row::of_text(text)).collect();
        let packed = self.shelf.packed(&rows).await?;
        Ok(packed.chunks(self.shelf.embedder().dimensions().max(1)).map(<[f32]>::to_vec).collect())
    }

    async fn build_bank(&self) -> Result<Arc<Vec<Vec<f32>>>, EmbedError> {
        let rows: Vec<Row> = contentless_phrases().iter().map(|phrase| Row::of_phrase(phrase)).collect();
        let packed = self.shelf.packed(&rows).await?;
        Ok(Arc::new(packed.chunks(self.shelf.embedder().dimensions().max(1)).map(<[f32]>::to_vec).collect()))
    }
}

/// What an index counts for. Never more than half: one that is never kept would be built for every message.
fn weighed(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).min((MEMORY / 2) as u32)
}

impl Hash for Roster {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for Roster {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.documents, &other.documents) || (self.hash == other.hash && self.documents == other.documents)
    }
}

impl Eq for Roster {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_any_size_is_kept() {
        assert_eq!(weighed(1000), 1000);
        for bytes in [MEMORY as usize, usize::MAX] {
            assert!(u64::from(weighed(bytes)) * 2 <= MEMORY);
        }
    }
}
