//! `/embeddings` as OpenAI, Ollama, TEI and vLLM serve it. Such models tell queries from documents by a prefix, if at
//! all.

use std::time::Duration;

use ::http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::embed::http::{self, Client};
use crate::embed::settings::Settings;
use crate::retrieval::embedder::{EmbedError, Task};

const MODEL: &str = "text-embedding-3-small";
const URL: &str = "https://api.openai.com/v1";

pub(super) struct Api {
    url: String,
    model: String,
    key: Option<(HeaderName, HeaderValue)>,
    query_prefix: String,
    document_prefix: String,
}

impl Api {
    pub(super) fn new(settings: &Settings) -> Self {
        let base = if settings.url.is_empty() { URL } else { settings.url.trim_end_matches('/') };
        let model = if settings.model.is_empty() { MODEL } else { &settings.model };
        Self {
            url: format!("{base}/embeddings"),
            model: model.to_owned(),
            key: http::key_header(AUTHORIZATION, "Bearer ", &settings.api_key),
            query_prefix: settings.query_prefix.clone(),
            document_prefix: settings.document_prefix.clone(),
        }
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn settings(&self) -> String {
        [self.url.as_str(), &self.query_prefix, &self.document_prefix].join("\0")
    }

    pub(super) async fn embed(
        &self,
        client: &Client,
        texts: &[String],
        task: Task,
        timeout: Duration,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prefix = match task {
            Task::Query => &self.query_prefix,
            Task::Document => &self.document_prefix,
        };
        let input = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let question = Question { model: &self.model, input, encoding_format: "float" };
        let answer: Answer = http::ask(client, &self.url, self.key.clone(), &question, timeout).await?;
        in_order(answer.data, texts.len())
    }
}

/// By `index`, which need not be the order of the answer. Each text has exactly one.
fn in_order(data: Vec<Embedding>, count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let nonsense = |what: String| EmbedError::Nonsense(what);
    if data.len() != count {
        return Err(nonsense(format!("{} vectors for {count} texts", data.len())));
    }
    let mut places: Vec<Option<Vec<f32>>> = vec![None; count];
    for (position, embedding) in data.into_iter().enumerate() {
        let index = embedding.index.unwrap_or(position);
        let place = places.get_mut(index).ok_or_else(|| nonsense(format!("index {index} of {count}")))?;
        if place.replace(embedding.embedding).is_some() {
            return Err(nonsense(format!("index {index} twice")));
        }
    }
    Ok(places.into_iter().flatten().collect())
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    input: Vec<String>,
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: Option<usize>,
    embedding: Vec<f32>,
}
