//! `batchEmbedContents` of the Gemini API. One `Content` per text: several parts of one would be fused into one vector.

use std::time::Duration;

use ::http::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::embed::http::{self, Client};
use crate::embed::settings::Settings;
use crate::retrieval::embedder::{EmbedError, Task};

const MODEL: &str = "gemini-embedding-001";
const URL: &str = "https://generativelanguage.googleapis.com/v1beta";

pub(super) struct Api {
    url: String,
    /// As requests name it: `models/…`.
    model: String,
    key: Option<(HeaderName, HeaderValue)>,
}

impl Api {
    pub(super) fn new(settings: &Settings) -> Self {
        let base = if settings.url.is_empty() { URL } else { settings.url.trim_end_matches('/') };
        let model = if settings.model.is_empty() { MODEL } else { &settings.model };
        let model = format!("models/{}", model.trim_start_matches("models/"));
        let key = http::key_header(HeaderName::from_static("x-goog-api-key"), "", &settings.api_key);
        Self { url: format!("{base}/{model}:batchEmbedContents"), model, key }
    }

    pub(super) fn model(&self) -> &str {
        self.model.trim_start_matches("models/")
    }

    pub(super) fn settings(&self) -> String {
        self.url.clone()
    }

    pub(super) async fn embed(
        &self,
        client: &Client,
        texts: &[String],
        task: Task,
        timeout: Duration,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let task_type = match task {
            Task::Document => "RETRIEVAL_DOCUMENT",
            Task::Query => "RETRIEVAL_QUERY",
        };
        let request = |text| One { model: &self.model, content: Content { parts: [Part { text }] }, task_type };
        let question = Question { requests: texts.iter().map(|text| request(text.as_str())).collect() };
        let answer: Answer = http::ask(client, &self.url, self.key.clone(), &question, timeout).await?;
        Ok(answer.embeddings.into_iter().map(|embedding| embedding.values).collect())
    }
}

#[derive(Serialize)]
struct Question<'a> {
    requests: Vec<One<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct One<'a> {
    model: &'a str,
    content: Content<'a>,
    task_type: &'static str,
}

#[derive(Serialize)]
struct Content<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    values: Vec<f32>,
}
