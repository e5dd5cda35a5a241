//! An embedder behind HTTP: batches, order, counts. NOT the connection, NOT back-off.

mod gemini;
mod openai;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::http::{self, Client};
use super::settings::{Provider, Settings};
use crate::retrieval::embedder::{EmbedError, Embedded, Embedder, Task};

/// Texts of one request: the Gemini API takes no more, and others cut at as many or more.
const BATCH: usize = 100;

/// A server that makes vectors. How long they are is known from its first answer.
pub(super) struct Remote {
    client: Client,
    api: Api,
    query_timeout: Duration,
    document_timeout: Duration,
    /// Of the last answer; 0: none yet.
    dimensions: AtomicUsize,
}

enum Api {
    Gemini(gemini::Api),
    OpenAi(openai::Api),
}

impl Remote {
    /// `None` for the builtin provider.
    pub(super) fn new(settings: &Settings) -> Option<Self> {
        let api = match settings.provider {
            Provider::Builtin => return None,
            Provider::Gemini => Api::Gemini(gemini::Api::new(settings)),
            Provider::OpenAi => Api::OpenAi(openai::Api::new(settings)),
        };
        Some(Self {
            client: http::client(),
            api,
            query_timeout: settings.timeout,
            document_timeout: settings.build_timeout(),
            dimensions: AtomicUsize::new(0),
        })
    }

    /// Identity of the vectors but for their dimensions: another server or prefix may make other vectors of the same
    /// model.
    pub(super) fn identity(&self) -> String {
        let (provider, model, rest) = match &self.api {
            Api::Gemini(api) => ("gemini", api.model(), api.settings()),
            Api::OpenAi(api) => ("openai", api.model(), api.settings()),
        };
        format!("{provider}:{model}:{:08x}", xxh3_64(rest.as_bytes()) >> 32)
    }

    /// Of the last answer; 0: none yet.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions.load(Ordering::Relaxed)
    }

    /// Vectors as the server sends them, one per text and in order; in requests of at most [`BATCH`] texts.
    pub(super) async fn embed(&self, texts: &[String], task: Task) -> Result<Vec<Vec<f32>>, EmbedError> {
        let timeout = match task {
            Task::Query => self.query_timeout,
            Task::Document => self.document_timeout,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let answer = match &self.api {
                Api::Gemini(api) => api.embed(&self.client, batch, task, timeout).await?,
                Api::OpenAi(api) => api.embed(&self.client, batch, task, timeout).await?,
            };
            if answer.len() != batch.len() {
                return Err(EmbedError::Nonsense(format!("{} vectors for {} texts", answer.len(), batch.len())));
            }
            vectors.extend(answer);
        }
        if let Some(first) = vectors.first().filter(|first| !first.is_empty()) {
            self.dimensions.store(first.len(), Ordering::Relaxed);
        }
        Ok(vectors)
    }
}

/// A remote embedder whose dimensions are known.
pub(super) struct Sized {
    pub(super) remote: std::sync::Arc<Remote>,
    pub(super) model: String,
    pub(super) dimensions: usize,
}

impl Embedder for Sized {
    fn model(&self) -> &str {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed<'a>(&'a self, texts: &'a [String], task: Task) -> Embedded<'a> {
        Box::pin(self.remote.embed(texts, task))
    }
}
