//! Labelled requests against a roster: how often does the selection hold what a
//! request needs? NOT a path of its own: it reads, asks and ranks with the code
//! that serves, and only counts.

pub mod input;
pub mod report;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::input::{Case, Tools};
use self::report::Ranked;
pub use self::report::Report;
use crate::config::catalog::Catalog;
use crate::config::narrow::Narrow;
use crate::embed::{Embeddings, Space};
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::question::Question;

/// What is measured.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A `tools` array in OpenAI, Gemini, Anthropic or MCP form.
    pub catalog: PathBuf,
    /// JSON lines of `id, lang, query | messages, expect[], tags`.
    pub cases: Vec<PathBuf>,
    /// A catalog file in TOML: categories, keywords, the core.
    pub overlay: Option<PathBuf>,
    /// Tools selected; absent: the default of `max_retrieved_tools`.
    pub k: Option<usize>,
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
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// Ranks every case's question over the roster.
pub async fn run(options: Options, embeddings: &Embeddings) -> Result<Report, Problem> {
    let overlay = match &options.overlay {
        Some(path) => Catalog::read(path).map_err(Problem::Overlay)?,
        None => Catalog::default(),
    };
    let narrow = Narrow::default();
    let tools = Tools::read(&options.catalog, &overlay)?;
    let mut cases = Vec::new();
    for path in &options.cases {
        cases.extend(input::cases(path, &narrow.query_ignore)?);
    }
    let space = building(embeddings, &tools).await?;
    let questions: Vec<Question> = cases.iter().map(|case| space.index.focus(Question::of(&case.dialogue))).collect();
    let vectors = embedded(embeddings, &space, &questions).await?;
    let ranked = cases.into_iter().zip(&questions).map(|(case, question)| rank(case, question, &space, &vectors));
    Ok(Report::of(&tools, ranked.collect(), options.k.unwrap_or(narrow.max_retrieved_tools), &space.model))
}

fn rank(case: Case, question: &Question, space: &Space, vectors: &Vectors) -> Ranked {
    let own: Vec<Arc<[f32]>> = question.texts().iter().filter_map(|text| vectors.get(text)).cloned().collect();
    let order = space.index.rank(question, &own).into_iter().map(|scored| scored.tool).collect();
    Ranked { case, order }
}

type Vectors = HashMap<String, Arc<[f32]>>;

/// The roster's space, under a bar when it has to be built first.
async fn building(embeddings: &Embeddings, tools: &Tools) -> Result<Space, Problem> {
    let bar = Bar::new(0, "tools");
    let mut space = std::pin::pin!(embeddings.space(&tools.documents));
    loop {
        match tokio::time::timeout(TICK, &mut space).await {
            Ok(space) => return Ok(space?),
            Err(_) => bar.advance(0),
        }
    }
}

async fn embedded(embeddings: &Embeddings, space: &Space, questions: &[Question]) -> Result<Vectors, Problem> {
    let mut texts: Vec<String> = questions.iter().flat_map(Question::texts).cloned().collect();
    texts.sort_unstable();
    texts.dedup();
    let bar = Bar::new(texts.len(), "messages");
    let mut vectors = Vectors::with_capacity(texts.len());
    for some in texts.chunks(BATCH) {
        vectors.extend(some.iter().cloned().zip(embeddings.queries(&space.model, some).await?));
        bar.advance(some.len());
    }
    Ok(vectors)
}

/// Texts embedded at a time: a remote embedder's requests stay small, the bar moves.
const BATCH: usize = 32;

const TICK: Duration = Duration::from_millis(100);

/// Work this long is worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar that shows itself only when the work takes long.
struct Bar {
    bar: ProgressBar,
    since: Instant,
}

impl Bar {
    fn new(length: usize, what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(length as u64), ProgressDrawTarget::hidden());
        let shape =
            if length == 0 { "{spinner} embedding {msg} {elapsed}" } else { "{bar:40} {pos}/{len} {msg} {eta}" };
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self { bar, since: Instant::now() }
    }

    fn advance(&self, by: usize) {
        if self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(by as u64);
        self.bar.tick();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
