//! Labelled requests against rosters: how often does the selection hold what a
//! request needs? NOT a path of its own: it reads, asks and ranks with the code
//! that serves, and only counts.

pub mod bar;
pub mod compare;
pub mod figures;
pub mod gate;
pub mod input;
pub mod measure;
pub mod missing;
pub mod page;
pub mod report;
pub mod sets;
pub mod sweep;
pub mod table;
pub mod thin;

use std::path::PathBuf;
use std::sync::Arc;

use self::bar::Bar;
use self::measure::{Measured, Prepared};
pub use self::report::Report;
use self::sets::Set;
use crate::config::catalog::Catalog;
use crate::embed::Embeddings;
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::head::{Head, Unfit};
use crate::retrieval::width::Width;

/// What is measured, and with which settings.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub sets: Vec<Set>,
    /// Tools selected for a message.
    pub k: Width,
    /// Elements that agents wrap around a message.
    pub ignore: Vec<String>,
    /// The catalog of sets that name none.
    pub overlay: Option<Arc<Catalog>>,
    /// What was learnt from requests before.
    pub head: Option<Arc<Head>>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{path}: {why}")]
    Catalog { path: PathBuf, why: String },
    #[error("{}", .0.join("\n"))]
    Overlay(Vec<String>),
    #[error("{path}:{line}: {why}")]
    Case { path: PathBuf, line: usize, why: String },
    #[error("{path}: {why}")]
    Sets { path: PathBuf, why: String },
    #[error(
        "{catalogs} catalogs for {cases} files of cases: name one catalog for all, one for each in the same order, or \
         none where a catalog.json stands beside the cases"
    )]
    Pairs { catalogs: usize, cases: usize },
    #[error("no catalog is named: --catalog")]
    NoCatalog,
    #[error(
        "{set}: no case is left of its files: they are empty, or what the set asks for (langs, tags, part) leaves none"
    )]
    NoCases { set: String },
    #[error("the head cannot be used: {0}")]
    Head(#[from] Unfit),
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// Ranks every case's question over its roster. With it: the embedder's identity.
pub async fn measured(options: &Options, embeddings: &Embeddings) -> Result<(Vec<Measured>, String), Problem> {
    let (prepared, model) = prepared(options, embeddings).await?;
    if let Some(head) = &options.head {
        head.fits(&model)?;
    }
    let bar = Bar::new(prepared.iter().map(|set| set.cases.len()).sum(), "ranked");
    Ok((prepared.into_iter().map(|set| set.rank(options.head.as_deref(), options.k, &bar)).collect(), model))
}

/// Reads and embeds everything. With it: the embedder's identity.
pub async fn prepared(options: &Options, embeddings: &Embeddings) -> Result<(Vec<Prepared>, String), Problem> {
    let mut sets = Vec::new();
    for set in &options.sets {
        sets.extend(set.load(&options.ignore, options.overlay.as_ref())?);
    }
    let prepared = measure::prepare(sets, embeddings).await?;
    let model = prepared.first().map(|set| set.space.model.to_string()).unwrap_or_default();
    Ok((prepared, model))
}
