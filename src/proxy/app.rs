//! `App`: the handles that every request shares, built once from `Config`. NOT mutable state of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use globset::GlobSet;
use prometheus::Registry;

use super::admin::Status;
use super::choose::Chooser;
use super::shutdown::Shutdown;
use super::tls::TlsError;
use super::upstream::Upstreams;
use crate::config::narrow::Mode;
use crate::config::upstream::Upstream;
use crate::config::{Config, StoreKind};
use crate::embed::{Embeddings, Readiness};
use crate::metrics::Metrics;
use crate::outcome::Outcome;
use crate::store::{BadUrl, Memory, Redis, Store};

use crate::turn::policy::{Facts, Policy};

/// Decision records that `/decisions` shows.
const DECISIONS: usize = 200;

/// Why the handles cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("store.url: {0}")]
    Store(#[from] BadUrl),
    #[error("https cannot be set up: {0}")]
    Tls(#[from] TlsError),
    #[error("two series have one name: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// The handles that every request shares.
pub struct App {
    pub upstreams: Upstreams,
    pub chooser: Chooser,
    pub store: Arc<dyn Store>,
    pub metrics: Metrics,
    /// Bodies longer than this are relayed unread.
    pub max_body: usize,
    /// Owns what a request leaves behind when its client is gone.
    pub shutdown: Shutdown,
    routes: Vec<Arc<Route>>,
    decisions: Mutex<VecDeque<String>>,
}

/// An upstream with its settings ready for use.
#[derive(Debug)]
pub struct Route {
    pub upstream: Upstream,
    pub policy: Policy,
    pub mode: Mode,
    /// Of conversations, narrowed.
    pub percent: u8,
    pub deadline: Duration,
    always_on: GlobSet,
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
        Ok(Self {
            upstreams: Upstreams::new(&config.upstreams, shutdown.clone())?,
            routes: config.upstreams.iter().cloned().map(|upstream| Arc::new(Route::new(upstream))).collect(),
            chooser: Chooser::new(embeddings),
            store,
            metrics: Metrics::new()?,
            max_body: config.server.max_body,
            shutdown,
            decisions: Mutex::default(),
        })
    }

    /// The settings of an upstream, by its name.
    pub fn route(&self, upstream: &str) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| route.upstream.name == upstream)
    }

    /// Counts one request and keeps its record.
    pub fn record(&self, outcome: &Outcome) {
        self.metrics.record(outcome);
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.len() == DECISIONS {
            decisions.pop_front();
        }
        decisions.push_back(outcome.record());
    }
}

impl Status for App {
    fn registry(&self) -> &Registry {
        let errors = self.store.errors().into_iter().map(|(op, count)| (op.label(), count));
        self.metrics.registry(&self.chooser.embeddings().counts(), &errors.collect::<Vec<_>>())
    }

    fn readiness(&self) -> Readiness {
        self.chooser.embeddings().readiness()
    }

    fn upstreams(&self) -> &[Upstream] {
        self.upstreams.list()
    }

    fn decisions(&self) -> Vec<String> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Route {
    fn new(upstream: Upstream) -> Self {
        let narrow = &upstream.narrow;
        let policy = Policy {
            max_retrieved_tools: narrow.max_retrieved_tools,
            max_discovered_tools: narrow.max_discovered_tools,
            max_discovery_legs: narrow.max_discovery_legs,
            max_bound_tools: narrow.max_bound_tools,
            sticky_need: narrow.sticky_need,
            stability: narrow.stability,
            order: narrow.order,
            directory: narrow.directory,
            find_tools_name: narrow.find_tools_name.clone(),
            query_ignore: narrow.query_ignore.clone(),
            max_tools: upstream.max_tools,
        };
        let mut always_on = globset::GlobSetBuilder::new();
        for glob in narrow.always_on.iter().filter_map(|glob| globset::Glob::new(glob).ok()) {
            always_on.add(glob);
        }
        Self {
            policy,
            mode: narrow.mode,
            percent: narrow.percent,
            deadline: narrow.deadline,
            always_on: always_on.build().unwrap_or_default(),
            upstream,
        }
    }

    /// What configuration and catalog say of a tool.
    pub fn facts(&self, name: &str) -> Facts {
        let core = self.always_on.is_match(name);
        let Some(catalog) = &self.upstream.narrow.catalog else { return Facts { core, ..Facts::default() } };
        match catalog.find(name) {
            None => Facts { core, domain: catalog.domain_rank(""), ..Facts::default() },
            Some(entry) => Facts {
                core: core || entry.always_on,
                category: entry.category.clone(),
                keywords: entry.keywords.clone(),
                search_text: entry.search_text.clone(),
                connector: entry.connector.clone(),
                domain: catalog.domain_rank(&entry.category),
            },
        }
    }
}
