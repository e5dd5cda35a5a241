//! A file and the environment become settings, or the list of everything that is wrong with them.
//! Settings are parsed, not validated: what stands in a [`Config`] can be used as it is. NOT sockets, NOT runtime
//! handles, NOT the policy of a turn: the floors below own their settings, and `proxy/app.rs` fills them from here.

pub mod catalog;
pub mod catalogs;
pub mod embeddings;
pub mod load;
pub mod narrow;
mod prices;
pub mod problem;
mod read;
pub mod secret;
pub mod server;
mod source;
mod units;
pub mod upstream;

use std::path::PathBuf;

use crate::cost::prices::Prices;
use catalogs::ToolFile;
use embeddings::Embeddings;
use narrow::Narrow;
use secret::Secret;
use server::Server;
use upstream::Upstream;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    pub server: Server,
    /// In the order of the file; no two have one prefix or one name.
    pub upstreams: Vec<Upstream>,
    /// What holds where an upstream says nothing of its own. [`Upstream::narrow`] is already merged.
    pub narrow: Narrow,
    pub embeddings: Embeddings,
    pub store: Store,
    pub log: Log,
    /// What tokens cost: the file's before the built-in table.
    pub prices: Prices,
    /// Tools that requests may refer to, by name.
    pub catalogs: Vec<ToolFile>,
}

/// Where vectors and hidden exchanges are kept.
#[derive(Debug, Clone)]
pub struct Store {
    pub kind: StoreKind,
    /// May carry a password.
    pub url: Secret,
    /// The first part of every key, without the colon behind it.
    pub prefix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    Memory,
    Redis,
}

/// The decision record.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// A file of JSON lines; `None`: only the last ones, at `/decisions`.
    pub decisions: Option<PathBuf>,
    /// Message text in records.
    pub text: bool,
    /// int8 query vectors in records.
    pub vectors: bool,
}

impl Default for Config {
    fn default() -> Self {
        let narrow = Narrow::default();
        Self {
            server: Server::default(),
            upstreams: upstream::builtin(&narrow),
            narrow,
            embeddings: Embeddings::default(),
            store: Store::default(),
            log: Log::default(),
            prices: Prices::default(),
            catalogs: Vec::new(),
        }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self {
            kind: StoreKind::Memory,
            url: Secret::new("redis://127.0.0.1:6379".to_owned()),
            prefix: "packlight".to_owned(),
        }
    }
}
