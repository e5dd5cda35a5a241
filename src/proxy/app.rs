//! `App`: the handles that every request shares, built once from `Config`. NOT mutable state of its own.

use std::sync::Arc;

use prometheus::Registry;

use super::admin::Status;
use super::binding::Bindings;
use super::catalogs::Catalogs;
use super::choose::Chooser;
use super::counting::Counting;
use super::history::History;
use super::journal::Journal;
use super::ledger::Ledger;
use super::readings::Readings;
use super::route::Route;
use super::shutdown::Shutdown;
use super::tls::TlsError;
use super::traffic::Watch;
use super::upstream::Upstreams;
use crate::config::upstream::Upstream;
use crate::config::{Config, StoreKind};
use crate::cost::correction::Correction;
use crate::cost::policy::Traffic;
use crate::cost::prices::{Billed, Prices};
use crate::decision::Decision;
use crate::embed::{Embeddings, Readiness};
use crate::metrics::{File, Kept, Metrics};
use crate::outcome::Outcome;
use crate::page::today::Day;
use crate::store::{BadUrl, Memory, Redis, Store};

/// Why the handles cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("store.url: {0}")]
    Store(#[from] BadUrl),
    #[error("https cannot be set up: {0}")]
    Tls(#[from] TlsError),
    #[error("log.decisions cannot be written: {0}")]
    Journal(#[from] std::io::Error),
    #[error("two series have one name: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// The handles that every request shares.
pub struct App {
    pub upstreams: Upstreams,
    pub chooser: Chooser,
    pub bindings: Bindings,
    pub counting: Counting,
    pub prices: Prices,
    watch: Watch,
    pub store: Arc<dyn Store>,
    pub metrics: Arc<Metrics>,
    /// Bodies longer than this are relayed unread.
    pub max_body: usize,
    /// Owns what a request leaves behind when its client is gone.
    pub shutdown: Shutdown,
    routes: Vec<Arc<Route>>,
    /// May records hold what the user wrote, and its vectors?
    pub log_text: bool,
    pub log_vectors: bool,
    pub ledger: Ledger,
    pub catalogs: Catalogs,
    pub readings: Readings,
}

impl App {
    /// Builds the handles and starts what runs behind them. Needs a runtime; returns at once.
    pub fn start(config: &Config, shutdown: Shutdown) -> Result<Self, StartError> {
        let store: Arc<dyn Store> = match config.store.kind {
            StoreKind::Memory => Arc::new(Memory::default()),
            StoreKind::Redis => Arc::new(Redis::new(config.store.url.reveal(), &config.store.prefix)?),
        };
        let deadline = config.upstreams.iter().map(|upstream| upstream.narrow.deadline).min().unwrap_or_default();
        let embeddings = Embeddings::start(config.embeddings.settings(deadline), store.clone());
        let metrics = Arc::new(Metrics::new()?);
        let journal = config.log.decisions.as_deref().map(Journal::open).transpose()?;
        let routes: Vec<_> = config.upstreams.iter().cloned().map(|one| Arc::new(Route::new(one))).collect();
        routes.iter().filter_map(|route| route.learnt.as_ref()).for_each(|learnt| learnt.watch(&shutdown));
        let catalogs = Catalogs::new(&config.catalogs);
        catalogs.watch(&shutdown);
        Ok(Self {
            upstreams: Upstreams::new(&config.upstreams, shutdown.clone())?,
            routes,
            chooser: Chooser::new(embeddings, History::new(store.clone())),
            bindings: Bindings::default(),
            counting: Counting::default(),
            prices: config.prices.clone(),
            watch: Watch::default(),
            store,
            ledger: Ledger::open(config.prices.clone(), metrics.clone(), journal)?,
            metrics,
            max_body: config.server.max_body,
            shutdown,
            log_text: config.log.text,
            log_vectors: config.log.vectors,
            catalogs,
            readings: Readings::default(),
        })
    }

    /// The settings of an upstream, by its name.
    pub fn route(&self, upstream: &str) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| route.upstream.name == upstream)
    }

    /// What a conversation of this model is expected to be; `None`: nobody knows yet. `price`: of a cached token, of a
    /// fresh one.
    pub fn expected(&self, upstream: &str, model: &str, price: f64) -> Option<Traffic> {
        self.watch.expected(upstream, model, price)
    }

    /// Counts one request and has it worked out and recorded.
    pub fn record(&self, mut outcome: Outcome) {
        let usage = outcome.usage;
        let roster = outcome.tools.as_ref().map(|tools| tools.sizes().digest());
        outcome.provider_tokens = roster.and_then(|roster| self.counting.known(roster, &outcome.model));
        let price = self.prices.find(&outcome.model).filter(|_| usage.reported);
        outcome.cost_usd = price.map(|price| {
            price.cost(Billed { prompt: usage.prompt, cached: usage.cached, completion: usage.completion })
        });
        self.metrics.record(&outcome);
        if let Some(route) = self.route(&outcome.upstream) {
            self.watch.observe(&outcome, route.cache_life);
        }
        self.ledger.record(outcome);
    }
}

impl Status for App {
    fn registry(&self) -> &Registry {
        let heads = self.routes.iter().filter_map(|route| {
            let broken = route.learnt.as_ref()?.broken();
            Some(File { kind: "head", name: route.upstream.name.clone(), broken })
        });
        self.metrics.registry(&Kept {
            vectors: self.chooser.embeddings().counts().to_vec(),
            store: self.store.errors().into_iter().map(|(op, count)| (op.label(), count)).collect(),
            lost: self.ledger.lost(),
            files: self.catalogs.files().chain(heads).collect(),
        })
    }

    fn readiness(&self) -> Readiness {
        self.chooser.embeddings().readiness()
    }

    fn upstreams(&self) -> &[Upstream] {
        self.upstreams.list()
    }

    fn decisions(&self) -> Vec<Decision> {
        self.ledger.decisions()
    }

    fn corrections(&self) -> Vec<(String, Correction)> {
        self.ledger.corrections()
    }

    fn today(&self, upstream: &str, now: f64) -> Day {
        self.ledger.today(upstream, now)
    }
}
