//! Texts become vectors, once: one build in flight however many turns wait, vectors keyed by content hash, kept on
//! disk and in the shared store. NOT at boot, NOT ranking.
//!
//! [`Embeddings`] asks a [`seat`] for its desk; a desk has [`spaces`] (rosters, over a [`shelf`] of rows in memory, on
//! [`disk`] and in the store) and [`queries`]. Embedders are [`builtin`] or [`remote`].

pub mod builtin;
mod counts;
mod disk;
mod flight;
pub mod http;
mod kept;
mod queries;
mod remote;
mod rows;
mod seat;
mod settings;
mod shelf;
mod spaces;
mod tasks;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::counts::Counts;
use self::remote::Remote;
use self::seat::{Desk, Room, Seat};
pub use self::settings::{ApiKey, Provider, Settings};
pub use self::spaces::Space;
use self::tasks::Tasks;
use crate::retrieval::document::Document;
use crate::retrieval::embedder::{EmbedError, Embedder};
use crate::store::Store;

/// After a remote embedder was too slow for a turn, the builtin one is asked at once for this long.
const REST: Duration = Duration::from_secs(5);

/// Where embedding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// The model file is being loaded.
    Loading,
    /// No model file: everything fails open.
    Absent,
}

/// The space of a roster, and vectors of texts in it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub space: Space,
    pub vectors: Vec<Arc<[f32]>>,
}

/// The embedding service. Its tasks end when it is dropped.
pub struct Embeddings {
    configured: Seat,
    /// The builtin embedder behind a remote one.
    fallback: Option<Seat>,
    /// What a remote embedder has of a turn's deadline.
    half: Duration,
    /// Until then the remote embedder is not waited for.
    resting: Mutex<Option<Instant>>,
    counts: Arc<Counts>,
    tasks: Tasks,
}

impl Embeddings {
    /// Returns at once: a model is loaded in the background, a server is asked when there is something to ask. Needs a
    /// runtime.
    pub fn start(settings: Settings, store: Arc<dyn Store>) -> Arc<Self> {
        let room = Self::room(&settings, store);
        let (configured, fallback) = match Remote::new(&settings) {
            None => (Seat::loading(&settings, &room, true), None),
            Some(remote) => {
                let fallback = settings.fallback.then(|| Seat::loading(&settings, &room, false));
                (Seat::remote(remote, room.clone()), fallback)
            }
        };
        Self::of(&settings, room, configured, fallback)
    }

    /// The service over an embedder that is there already; `fallback` backs it as the builtin one backs a remote one.
    pub fn over(
        embedder: Arc<dyn Embedder>,
        fallback: Option<Arc<dyn Embedder>>,
        settings: &Settings,
        store: Arc<dyn Store>,
    ) -> Arc<Self> {
        let room = Self::room(settings, store);
        let configured = Seat::here(embedder, &room);
        let fallback = fallback.map(|embedder| Seat::here(embedder, &room));
        Self::of(settings, room, configured, fallback)
    }

    fn room(settings: &Settings, store: Arc<dyn Store>) -> Room {
        let (cache_dir, retry) = (settings.cache_dir.clone(), settings.retry);
        let keep_queries = settings.keep_queries;
        Room { store, counts: Arc::default(), tasks: Tasks::default(), cache_dir, keep_queries, retry }
    }

    fn of(settings: &Settings, room: Room, configured: Seat, fallback: Option<Seat>) -> Arc<Self> {
        let (half, resting) = (settings.deadline / 2, Mutex::new(None));
        Arc::new(Self { configured, fallback, half, resting, counts: room.counts, tasks: room.tasks })
    }

    /// A remote embedder is always ready: it is not asked before there is something to ask.
    pub fn readiness(&self) -> Readiness {
        match &self.configured {
            Seat::Remote(_) => Readiness::Ready,
            seat if seat.absent() => Readiness::Absent,
            seat if seat.ready().is_some() => Readiness::Ready,
            _ => Readiness::Loading,
        }
    }

    /// The index of this roster. Single flight per content; the build goes on when the caller stops waiting.
    /// The caller sets the deadline.
    pub async fn space(&self, documents: &Arc<Vec<Document>>) -> Result<Space, EmbedError> {
        let fallback = space_at(self.fallback.as_ref(), documents);
        self.backed(space_at(Some(&self.configured), documents), fallback).await
    }

    /// The index of this roster if nothing has to be waited for.
    pub fn ready_space(&self, documents: &Arc<Vec<Document>>) -> Option<Space> {
        self.configured.ready()?.spaces.ready(documents)
    }

    /// Vectors of query texts in that space's model, remembered by text hash, single flight.
    pub async fn queries(&self, model: &str, texts: &[String]) -> Result<Vec<Arc<[f32]>>, EmbedError> {
        self.desk_of(model)?.queries.of(texts).await
    }

    /// A text that the next message will be read with, embedded while nobody waits; of no effect where the embedder is
    /// busy, not there, or remote.
    pub fn foresee(&self, text: &str) {
        if let Some(desk) = self.configured.ready() {
            desk.queries.foresee(text);
        }
    }

    /// Vectors of single texts of tools in that space's model, kept as rosters are.
    pub async fn texts(&self, model: &str, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.desk_of(model)?.spaces.texts(texts).await
    }

    /// [`Self::space`] and [`Self::queries`] in one: when the remote embedder fails or is slow at either, both come from
    /// the fallback. `model`: the one that this turn was answered by before, and no other.
    pub async fn ask(
        &self,
        model: Option<&str>,
        documents: &Arc<Vec<Document>>,
        texts: &[String],
    ) -> Result<Asked, EmbedError> {
        match model {
            Some(model) => ask_desk(&*self.desk_of(model)?, documents, texts).await,
            None => {
                let fallback = ask_at(self.fallback.as_ref(), documents, texts);
                self.backed(ask_at(Some(&self.configured), documents, texts), fallback).await
            }
        }
    }

    /// Vectors so far: hit (memory, disk or store), built, failed.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        self.counts.read()
    }

    /// Ends all work and waits for its end.
    pub async fn shutdown(&self) {
        self.tasks.end();
        self.tasks.ended().await;
    }

    fn desk_of(&self, model: &str) -> Result<Arc<Desk>, EmbedError> {
        let seats = std::iter::once(&self.configured).chain(&self.fallback);
        let desk = seats.filter_map(Seat::ready).find(|desk| &*desk.model == model);
        desk.ok_or_else(|| EmbedError::Failed("the embedder of that space is gone".to_owned()))
    }

    /// The configured embedder's answer, or the fallback's when the first fails or has not come by half of the deadline.
    async fn backed<T>(
        &self,
        first: impl Future<Output = Result<T, EmbedError>>,
        second: impl Future<Output = Result<T, EmbedError>>,
    ) -> Result<T, EmbedError> {
        if self.fallback.as_ref().is_none_or(Seat::absent) {
            return first.await;
        }
        let mut first = pin!(first);
        let mut second = pin!(second);
        match tokio::time::timeout(self.patience(), &mut first).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => return second.await.map_err(|_| error),
            Err(_) => self.rest(),
        }
        tokio::select! {
            biased;
            answer = &mut first => match answer {
                Ok(answer) => Ok(answer),
                Err(error) => second.await.map_err(|_| error),
            },
            answer = &mut second => match answer {
                Ok(answer) => Ok(answer),
                Err(_) => first.await,
            },
        }
    }

    /// What the configured embedder has left before the fallback is asked as well.
    fn patience(&self) -> Duration {
        let resting = *self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        if resting.is_some_and(|until| Instant::now() < until) { Duration::ZERO } else { self.half }
    }

    fn rest(&self) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        if resting.is_none_or(|until| until <= Instant::now()) {
            tracing::warn!("the configured embedder is slow: the builtin one answers meanwhile");
            *resting = Some(Instant::now() + REST);
        }
    }
}

impl Drop for Embeddings {
    fn drop(&mut self) {
        self.tasks.end();
    }
}

impl fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embeddings").field("readiness", &self.readiness()).finish_non_exhaustive()
    }
}

async fn space_at(seat: Option<&Seat>, documents: &Arc<Vec<Document>>) -> Result<Space, EmbedError> {
    seat.ok_or(EmbedError::Absent)?.desk().await?.spaces.of(documents).await
}

async fn ask_at(seat: Option<&Seat>, documents: &Arc<Vec<Document>>, texts: &[String]) -> Result<Asked, EmbedError> {
    ask_desk(&*seat.ok_or(EmbedError::Absent)?.desk().await?, documents, texts).await
}

/// Side by side: the query need not wait for the roster.
async fn ask_desk(desk: &Desk, documents: &Arc<Vec<Document>>, texts: &[String]) -> Result<Asked, EmbedError> {
    let (space, vectors) = tokio::try_join!(desk.spaces.of(documents), desk.queries.of(texts))?;
    Ok(Asked { space, vectors })
}
