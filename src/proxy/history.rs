//! Past successes: which tools answered well on which messages. Learnt from transcripts, kept in the store, given to
//! the ranking as a prior. NOT its weight (`retrieval::prior`), NOT message text: what is kept is a tool's name, a time
//! and 384 small numbers.
//!
//! Opt-in. It is traffic, not transcript, so a replica that knows more would choose otherwise: what a turn selected is
//! kept in the store as well, for all replicas. Whatever is lost costs a place among near-equals, never an answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use super::app::App;
use super::choose::Chosen;
use super::route::Route;
use crate::retrieval::document::Document;
use crate::retrieval::prior::{self, Success};
use crate::store::{Op, Store};
use crate::turn::policy::Asked;
use crate::turn::roster::Roster;
use crate::turn::selection::Selection;
use crate::turn::transcript::{Transcript, succeeded};
use crate::wire::view::MessageView;

/// The first part of every key here: what `packlight history clear` removes.
pub const KEYS: &str = "history:";
/// Maps that the successes of one agent are spread over, each of at most 64 fields: 2,048 successes, 1 MB.
const SHARDS: u64 = 32;
/// Successes kept of one tool; a new one takes the place of one chosen by its vector. More than ten add little.
const SLOTS: u64 = 10;
/// A success counts half after this long.
const HALF_LIFE: f32 = 30.0 * 24.0 * 3600.0;
/// What nothing is added to for so long is forgotten.
const LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// A turn's selection is kept for as long as a conversation usually pauses.
const TURN: Duration = Duration::from_secs(24 * 3600);
/// What was read is used for so long before it is read again: another replica's news can wait.
const FRESH: Duration = Duration::from_secs(10);
/// Agents whose successes are held ready.
const READY: u64 = 64;

/// The past of every agent, as far as it was asked for.
pub struct History {
    store: Arc<dyn Store>,
    ready: Cache<String, Arc<Past>>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("ready", &self.ready.entry_count()).finish_non_exhaustive()
    }
}

/// The successes of one agent by the tool's name.
#[derive(Debug, Default)]
pub struct Past(HashMap<String, Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    at: u64,
    vector: Vec<f32>,
}

/// Learns from the calls whose answers a request brings, if it may; nobody waits for it.
pub fn learn(
    app: &Arc<App>,
    route: &Arc<Route>,
    chosen: &Chosen,
    transcript: &Transcript,
    messages: &[MessageView<'_>],
    asked: &Asked,
) {
    let tools = if route.history { succeeded(messages) } else { Vec::new() };
    if tools.is_empty() {
        return;
    }
    let (learning, route, roster) = (app.clone(), route.clone(), chosen.roster.clone());
    let (dialogue, payer) = (transcript.dialogue(), asked.payer.clone());
    app.shutdown.spawn(async move { learning.chooser.learn(&route, &roster, &dialogue, &payer, &tools).await });
}

/// Whose past: an upstream's, a credential's, in one embedder's space.
pub fn scope(upstream: &str, credential: &[u8], model: &str) -> String {
    let mut hash = Sha256::new();
    for part in [upstream.as_bytes(), credential, model.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    shortened(hash, 24)
}

impl History {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, ready: Cache::builder().max_capacity(READY).time_to_live(FRESH).build() }
    }

    /// The successes of a scope. Empty where there are none and where the store does not answer.
    pub async fn past(&self, scope: &str) -> Arc<Past> {
        if let Some(past) = self.ready.get(scope) {
            return past;
        }
        let shards =
            (0..SHARDS).map(|shard| async move { self.store.fields(Op::HistoryGet, &shard_key(scope, shard)).await });
        let mut past = Past::default();
        for (field, value) in join_all(shards).await.into_iter().flatten() {
            if let (Some((tool, _)), Some(kept)) = (field.rsplit_once(':'), Kept::read(&value)) {
                past.0.entry(tool.to_owned()).or_default().push(kept);
            }
        }
        let past = Arc::new(past);
        self.ready.insert(scope.to_owned(), past.clone());
        past
    }

    /// Keeps that these tools answered well on a message. `message`: made by [`prior::centred`].
    pub async fn learn(&self, scope: &str, tools: &[String], message: &[f32]) {
        let value = Kept::written(now(), message);
        for tool in tools {
            let slot = xxh3_64(value.get(size_of::<u64>()..).unwrap_or_default()) % SLOTS;
            let key = shard_key(scope, xxh3_64(tool.as_bytes()) % SHARDS);
            self.store.put_field(Op::HistoryPut, &key, &format!("{tool}:{slot}"), value.clone(), LIFE).await;
        }
        self.ready.invalidate(scope);
    }

    /// What a turn selected, where any replica has chosen it already. `turn`: [`turn_key`].
    pub async fn chosen(&self, turn: &str, roster: &Roster) -> Option<Selection> {
        let bytes = self.store.get(Op::HistoryGet, turn).await?;
        let (named, contentless, model, names): (usize, bool, String, Vec<String>) =
            serde_json::from_slice(&bytes).ok()?;
        let best = names.iter().map(|name| roster.named(name).first().copied()).collect::<Option<Vec<usize>>>()?;
        Some(Selection { best, named, contentless, model: Some(Arc::from(model)), head: None })
    }

    /// Keeps what a turn selected.
    pub async fn keep(&self, turn: &str, roster: &Roster, selection: &Selection) {
        let names: Vec<&str> = selection.best.iter().map(|tool| roster.name(*tool)).collect();
        let model = selection.model.as_deref().unwrap_or_default();
        if let Ok(bytes) = serde_json::to_vec(&(selection.named, selection.contentless, model, names)) {
            self.store.put(Op::HistoryPut, turn, bytes, Some(TURN)).await;
        }
    }
}

impl Past {
    /// What each document's successes add to its score, in their order; empty: nothing.
    pub fn priors(&self, documents: &[Document], message: &[f32]) -> Vec<f32> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let now = now();
        let of = |document: &Document| {
            let successes: Vec<Success> = self
                .0
                .get(&document.name)
                .into_iter()
                .flatten()
                .map(|kept| Success {
                    vector: kept.vector.clone(),
                    weight: 0.5f32.powf(now.saturating_sub(kept.at) as f32 / HALF_LIFE),
                })
                .collect();
            prior::history(message, &successes)
        };
        documents.iter().map(of).collect()
    }
}

impl Kept {
    /// Time, the size of a step, then each number in steps as a signed byte.
    fn written(at: u64, vector: &[f32]) -> Vec<u8> {
        let step = vector.iter().fold(f32::MIN_POSITIVE, |most, number| most.max(number.abs())) / 127.0;
        let numbers = vector.iter().flat_map(|number| ((number / step).round() as i8).to_le_bytes());
        at.to_le_bytes().into_iter().chain(step.to_le_bytes()).chain(numbers).collect()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk()?;
        let (step, numbers) = rest.split_first_chunk()?;
        let step = f32::from_le_bytes(*step);
        let vector = numbers.iter().map(|byte| f32::from(i8::from_le_bytes([*byte])) * step).collect();
        Some(Self { at: u64::from_le_bytes(*at), vector })
    }
}

/// The key of a turn's selection, the same on every replica. `words`: all that the selection depends on.
pub fn turn_key(words: &[u8]) -> String {
    format!("{KEYS}turn:{}", shortened(Sha256::new_with_prefix(words), 32))
}

fn shortened(hash: Sha256, digits: usize) -> String {
    let mut digest = hex::encode(hash.finalize());
    digest.truncate(digits);
    digest
}

fn shard_key(scope: &str, shard: u64) -> String {
    format!("{KEYS}{scope}:{shard}")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;

    fn unit(at: usize) -> Vec<f32> {
        (0..8).map(|n| if n == at { 1.0 } else { 0.0 }).collect()
    }

    fn documents() -> Vec<Document> {
        ["a", "b"].map(|name| Document { name: name.into(), ..Document::default() }).into()
    }

    #[tokio::test]
    async fn what_was_learnt_is_known_and_stays_with_its_scope() {
        let history = History::new(Arc::new(Memory::default()));
        history.learn("one", &["b".into()], &unit(0)).await;
        let priors = history.past("one").await.priors(&documents(), &unit(0));
        assert_eq!(priors.first(), Some(&0.0));
        assert!(priors.get(1).is_some_and(|prior| (0.01..=prior::HISTORY).contains(prior)), "{priors:?}");
        assert_eq!(history.past("one").await.priors(&documents(), &unit(3)), [0.0, 0.0]);
        assert!(history.past("two").await.priors(&documents(), &unit(0)).is_empty());
    }

    #[tokio::test]
    async fn a_tool_keeps_a_bounded_number() {
        let history = History::new(Arc::new(Memory::default()));
        for n in 0..200u32 {
            let message: Vec<f32> = (0..8).map(|d| f32::from((n.wrapping_mul(d + 7) % 13) as u8) / 40.0).collect();
            history.learn("s", &["a".into()], &message).await;
        }
        let past = history.past("s").await;
        assert!(past.0.get("a").is_some_and(|kept| kept.len() as u64 <= SLOTS));
    }

    #[test]
    fn a_success_is_written_in_bytes_and_rubbish_is_none() {
        let vector: Vec<f32> = (0..384).map(|n| ((n as f32) * 0.37).sin() * 0.07).collect();
        let read = Kept::read(&Kept::written(7, &vector)).expect("a success");
        assert_eq!(read.at, 7);
        assert!(read.vector.iter().zip(&vector).all(|(a, b)| (a - b).abs() < 0.002));
        assert!(Kept::read(&[1, 2]).is_none());
    }
}
