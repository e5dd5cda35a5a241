//! Vectors of messages, remembered by the hash of the text: the calls of a turn embed once. NOT the text itself, which
//! is kept nowhere; the vectors themselves are on disk only for commands that measure (`kept`).

use std::sync::Arc;

use moka::sync::Cache;
use sha2::{Digest, Sha256};

use super::counts::Counts;
use super::flight::{Flights, Lead};
use super::kept::Kept;
use super::rows::{Key, Numbers, checked};
use super::tasks::Tasks;
use crate::retrieval::embedder::{EmbedError, Embedder, Task};

/// Bytes of vectors in memory: 10,000 of 384 dimensions.
const MEMORY: u64 = 16 << 20;
/// Texts under way.
const TEXTS: usize = 1024;

/// The query vectors of one embedder.
pub(super) struct Queries {
    embedder: Arc<dyn Embedder>,
    memo: Cache<Key, Numbers>,
    kept: Option<Kept>,
    flights: Flights<Key, Numbers>,
    counts: Arc<Counts>,
    tasks: Tasks,
}

/// A text that is embedded here and now.
type Led = (Key, Lead<Key, Numbers>, String);

impl Queries {
    /// `kept`: where vectors outlive the process; `None`: nowhere.
    pub(super) fn new(embedder: Arc<dyn Embedder>, kept: Option<Kept>, counts: Arc<Counts>, tasks: Tasks) -> Self {
        let memo = Cache::builder()
            .max_capacity(MEMORY)
            .weigher(|_: &Key, numbers: &Numbers| u32::try_from(size_of_val(&**numbers) + 128).unwrap_or(u32::MAX))
            .build();
        Self { embedder, memo, kept, flights: Flights::new(TEXTS), counts, tasks }
    }

    /// One unit vector per text, in order. The work goes on when the caller stops waiting.
    pub(super) async fn of(self: &Arc<Self>, texts: &[String]) -> Result<Vec<Numbers>, EmbedError> {
        let known = match &self.kept {
            Some(kept) => Some(kept.known().await),
            None => None,
        };
        let mut places = Vec::with_capacity(texts.len());
        let mut led = Vec::new();
        for text in texts {
            let key: Key = Sha256::digest(text).into();
            let at_hand = self.memo.get(&key).or_else(|| known.and_then(|known| known.get(&key)).cloned());
            if let Some(numbers) = at_hand {
                places.push(Ok(numbers));
                continue;
            }
            let (waiting, lead) = match self.flights.join(&key) {
                Ok(joined) => joined,
                Err(full) => {
                    led.into_iter().for_each(|(_, lead, _): Led| lead.land(Err(full.clone())));
                    return Err(full);
                }
            };
            places.push(Err(waiting));
            match (lead, self.memo.get(&key)) {
                // It landed between the look into the memo and the lead.
                (Some(lead), Some(numbers)) => lead.land(Ok(numbers)),
                (Some(lead), None) => led.push((key, lead, text.clone())),
                (None, _) => {}
            }
        }
        self.counts.hit(texts.len() - led.len());
        if !led.is_empty() {
            let queries = Arc::clone(self);
            self.tasks.spawn(async move { queries.make(led).await });
        }
        let mut numbers = Vec::with_capacity(places.len());
        for place in places {
            numbers.push(match place {
                Ok(numbers) => numbers,
                Err(waiting) => waiting.landed().await?,
            });
        }
        Ok(numbers)
    }

    /// Embeds a text that will be asked for, unless that would keep another waiting.
    pub(super) fn foresee(self: &Arc<Self>, text: &str) {
        let known = self.memo.contains_key(&Key::from(Sha256::digest(text)));
        if known || !self.embedder.is_idle() {
            return;
        }
        let (queries, text) = (Arc::clone(self), text.to_owned());
        // Whoever asks for it next is told if it fails.
        self.tasks.spawn(async move { drop(queries.of(&[text]).await) });
    }

    async fn make(&self, led: Vec<Led>) {
        let (leads, texts): (Vec<_>, Vec<_>) = led.into_iter().map(|(key, lead, text)| ((key, lead), text)).unzip();
        let answer = self.embedder.embed(&texts, Task::Query).await;
        match answer.and_then(|answer| checked(answer, texts.len(), self.embedder.dimensions())) {
            Ok(vectors) => {
                self.counts.built(vectors.len());
                let vectors: Vec<Numbers> = vectors.into_iter().map(Into::into).collect();
                if let Some(kept) = &self.kept {
                    kept.add(leads.iter().map(|(key, _)| *key).zip(vectors.iter().cloned()).collect()).await;
                }
                for ((key, lead), numbers) in leads.into_iter().zip(vectors) {
                    self.memo.insert(key, Arc::clone(&numbers));
                    lead.land(Ok(numbers));
                }
            }
            Err(error) => {
                self.counts.failed(texts.len());
                for (_, lead) in leads {
                    lead.land(Err(error.clone()));
                }
            }
        }
    }
}
