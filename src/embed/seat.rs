//! Where an embedder sits: here already, being loaded, or behind HTTP with its dimensions still to be learnt. NOT which
//! of two is asked.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::builtin::{Builtin, Pool, Settings as PoolSettings};
use super::counts::Counts;
use super::disk::{Disk, known_dimensions};
use super::flight::Flights;
use super::kept::Kept;
use super::queries::Queries;
use super::remote::{Remote, Sized};
use super::settings::Settings;
use super::shelf::Shelf;
use super::spaces::Spaces;
use super::tasks::Tasks;
use crate::retrieval::embedder::{EmbedError, Embedder, Task};
use crate::store::Store;

/// What every embedder works with.
#[derive(Clone)]
pub(super) struct Room {
    pub(super) store: Arc<dyn Store>,
    pub(super) counts: Arc<Counts>,
    pub(super) tasks: Tasks,
    pub(super) cache_dir: Option<PathBuf>,
    pub(super) keep_queries: bool,
    pub(super) retry: Duration,
}

/// An embedder at work.
pub(super) struct Desk {
    pub(super) spaces: Arc<Spaces>,
    pub(super) queries: Arc<Queries>,
    pub(super) model: Arc<str>,
    dimensions: usize,
}

impl Desk {
    pub(super) fn new(embedder: Arc<dyn Embedder>, room: &Room) -> Self {
        Self::with_disk_name(embedder.model(), &embedder, room)
    }

    /// `name`: the embedder's identity as its file has it.
    fn with_disk_name(name: &str, embedder: &Arc<dyn Embedder>, room: &Room) -> Self {
        let dimensions = embedder.dimensions();
        let disk = room.cache_dir.as_deref().map(|folder| Disk::new(folder, name, dimensions));
        let kept = room.cache_dir.as_deref().filter(|_| room.keep_queries);
        let kept = kept.map(|folder| Kept::new(folder, name, dimensions));
        let (counts, tasks) = (&room.counts, &room.tasks);
        let shelf = Shelf::new(Arc::clone(embedder), disk, Arc::clone(&room.store), Arc::clone(counts), tasks.clone());
        let model = Arc::clone(shelf.model());
        Self {
            spaces: Arc::new(Spaces::new(Arc::new(shelf), Arc::clone(counts), tasks.clone(), room.retry)),
            queries: Arc::new(Queries::new(Arc::clone(embedder), kept, Arc::clone(counts), tasks.clone())),
            model,
            dimensions,
        }
    }
}

/// The builtin embedder's way in.
#[derive(Clone)]
pub(super) enum Standing {
    Loading,
    Ready(Arc<Desk>),
    Absent,
}

/// Where an embedder sits.
pub(super) enum Seat {
    Builtin(watch::Receiver<Standing>),
    Remote(RemoteSeat),
}

impl Seat {
    pub(super) fn here(embedder: Arc<dyn Embedder>, room: &Room) -> Self {
        Self::Builtin(watch::channel(Standing::Ready(Arc::new(Desk::new(embedder, room)))).1)
    }

    /// Loads the builtin embedder in the background. `wanted`: its absence is worth a warning.
    pub(super) fn loading(settings: &Settings, room: &Room, wanted: bool) -> Self {
        let (standing, seat) = watch::channel(Standing::Loading);
        let (model_path, room) = (settings.model_path.clone(), room.clone());
        room.tasks.clone().spawn(async move {
            let cache_dir = room.cache_dir.clone();
            let loaded = tokio::task::spawn_blocking(move || load(model_path, cache_dir)).await;
            standing.send_replace(match loaded {
                Ok(Ok(Some(pool))) => {
                    tracing::info!(model = pool.model(), "the embedding model is loaded");
                    Standing::Ready(Arc::new(Desk::new(Arc::new(pool), &room)))
                }
                Ok(Ok(None)) if wanted => {
                    tracing::warn!("{}: every request goes in full until then", EmbedError::Absent);
                    Standing::Absent
                }
                Ok(Ok(None)) => {
                    tracing::info!("no embedding model on this machine to back the remote one");
                    Standing::Absent
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the embedding model is not loaded: requests go in full");
                    Standing::Absent
                }
                Err(_) => {
                    tracing::warn!("loading the embedding model broke off: requests go in full");
                    Standing::Absent
                }
            });
        });
        Self::Builtin(seat)
    }

    pub(super) fn remote(remote: Remote, room: Room) -> Self {
        Self::Remote(RemoteSeat {
            remote: Arc::new(remote),
            room,
            desk: Mutex::new(None),
            failure: Arc::default(),
            learning: Flights::new(1),
        })
    }

    /// The desk, if it is there already.
    pub(super) fn ready(&self) -> Option<Arc<Desk>> {
        match self {
            Self::Builtin(standing) => match &*standing.borrow() {
                Standing::Ready(desk) => Some(Arc::clone(desk)),
                Standing::Loading | Standing::Absent => None,
            },
            Self::Remote(seat) => seat.ready(),
        }
    }

    /// Could it ever answer?
    pub(super) fn absent(&self) -> bool {
        matches!(self, Self::Builtin(standing) if matches!(&*standing.borrow(), Standing::Absent))
    }

    /// The desk; waits until the model is loaded or the server has told its dimensions.
    pub(super) async fn desk(&self) -> Result<Arc<Desk>, EmbedError> {
        match self {
            Self::Builtin(standing) => {
                let mut standing = standing.clone();
                let settled = standing.wait_for(|standing| !matches!(standing, Standing::Loading)).await;
                match settled.as_deref() {
                    Ok(Standing::Ready(desk)) => Ok(Arc::clone(desk)),
                    Ok(Standing::Loading | Standing::Absent) | Err(_) => Err(EmbedError::Absent),
                }
            }
            Self::Remote(seat) => seat.desk().await,
        }
    }
}

/// An embedder behind HTTP. Nothing is asked of it at boot: its dimensions are those of the file that it left on disk,
/// or learnt from a first short question.
pub(super) struct RemoteSeat {
    remote: Arc<Remote>,
    room: Room,
    desk: Mutex<Option<Arc<Desk>>>,
    /// The last failed question, and when to ask again.
    failure: Arc<Mutex<Option<(EmbedError, Instant)>>>,
    learning: Flights<(), usize>,
}

impl RemoteSeat {
    fn ready(&self) -> Option<Arc<Desk>> {
        let desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        // The server answers otherwise than it used to: a new model under the old name.
        let known = self.remote.dimensions();
        (known == 0 || known == desk.dimensions).then_some(desk)
    }

    async fn desk(&self) -> Result<Arc<Desk>, EmbedError> {
        if let Some(desk) = self.ready() {
            return Ok(desk);
        }
        let dimensions = match self.remote.dimensions() {
            0 => match self.known_on_disk().await {
                Some(dimensions) => dimensions,
                None => self.learn().await?,
            },
            dimensions => dimensions,
        };
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = desk.as_ref().filter(|desk| desk.dimensions == dimensions) {
            return Ok(Arc::clone(desk));
        }
        let name = self.remote.identity();
        let remote = Arc::clone(&self.remote);
        let embedder = Sized { remote, model: format!("{name}:{dimensions}"), dimensions };
        let embedder: Arc<dyn Embedder> = Arc::new(embedder);
        let new = Arc::new(Desk::with_disk_name(&name, &embedder, &self.room));
        Ok(Arc::clone(desk.insert(new)))
    }

    async fn known_on_disk(&self) -> Option<usize> {
        let (folder, name) = (self.room.cache_dir.clone()?, self.remote.identity());
        tokio::task::spawn_blocking(move || known_dimensions(&folder, &name)).await.ok()?
    }

    async fn learn(&self) -> Result<usize, EmbedError> {
        {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((error, _)) = failure.as_ref().filter(|(_, again)| Instant::now() < *again) {
                return Err(error.clone());
            }
        }
        let (waiting, lead) = self.learning.join(&())?;
        if let Some(lead) = lead {
            let (remote, failure, retry) = (Arc::clone(&self.remote), Arc::clone(&self.failure), self.room.retry);
            self.room.tasks.spawn(async move {
                let learnt = match remote.embed(&["tool".to_owned()], Task::Query).await {
                    Ok(_) if remote.dimensions() > 0 => Ok(remote.dimensions()),
                    Ok(_) => Err(EmbedError::Nonsense("an empty vector".to_owned())),
                    Err(error) => Err(error),
                };
                let rested = learnt.as_ref().err().map(|error| (error.clone(), Instant::now() + retry));
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = rested;
                lead.land(learnt);
            });
        }
        waiting.landed().await
    }
}

/// Blocking. `None`: no file anywhere.
fn load(model_path: Option<PathBuf>, cache_dir: Option<PathBuf>) -> Result<Option<Pool>, String> {
    let Some(path) = Builtin::find(model_path.as_deref(), cache_dir.as_deref()) else { return Ok(None) };
    let builtin = Builtin::load(&path).map_err(|error| error.to_string())?;
    Pool::start(builtin, PoolSettings::default()).map(Some).map_err(|error| error.to_string())
}
