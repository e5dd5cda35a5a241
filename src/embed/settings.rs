//! What the embedding service is told, as plain data. NOT the configuration file, NOT environment variables.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Who makes the vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provider {
    /// The model on this machine.
    #[default]
    Builtin,
    /// `batchEmbedContents` of the Gemini API.
    Gemini,
    /// Any `/v1/embeddings` server.
    OpenAi,
}

/// A key, shown to nobody but its server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    pub fn new(key: String) -> Self {
        Self(key)
    }

    /// For the header that carries it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "***" })
    }
}

/// Settings of the embedding service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub provider: Provider,
    /// Empty: the provider's default. No meaning for the builtin one.
    pub model: String,
    /// Base with its version; empty: the provider's default.
    pub url: String,
    pub api_key: ApiKey,
    /// Longest wait for a remote embedder's answer to a query; [`Settings::build_timeout`] for a batch of documents.
    pub timeout: Duration,
    /// The builtin model's file; `None`: looked for.
    pub model_path: Option<PathBuf>,
    /// Where vectors are kept; `None`: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Keep the vectors of queries as well, for commands that measure. Never where users' messages are served.
    pub keep_queries: bool,
    /// Let the builtin embedder answer where a remote one does not. Never where somebody measures: the figures would be
    /// another model's.
    pub fallback: bool,
    pub query_prefix: String,
    pub document_prefix: String,
    /// What a turn waits for all of it; a remote embedder has half, then the builtin one is asked.
    pub deadline: Duration,
    /// Wait before a failed build is tried again; doubles with each failure up to 30 s.
    pub retry: Duration,
}

impl Settings {
    /// Nobody waits for documents: a hundred texts on a small machine may take what a query must not.
    pub(super) fn build_timeout(&self) -> Duration {
        self.timeout.saturating_mul(15)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            provider: Provider::Builtin,
            model: String::new(),
            url: String::new(),
            api_key: ApiKey::default(),
            timeout: Duration::from_secs(2),
            model_path: None,
            cache_dir: None,
            keep_queries: false,
            fallback: true,
            query_prefix: String::new(),
            document_prefix: String::new(),
            deadline: Duration::from_millis(300),
            retry: Duration::from_millis(500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let settings = Settings { api_key: ApiKey::new("hunter2".to_owned()), ..Settings::default() };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
