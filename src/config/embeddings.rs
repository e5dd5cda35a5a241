//! What makes vectors. NOT the embedder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::read::{self, Section};
use super::secret::Secret;
use super::upstream::Base;
use crate::embed::{ApiKey, Provider, Settings};

/// `[embeddings]`.
#[derive(Debug, Clone)]
pub struct Embeddings {
    pub provider: Provider,
    /// From the file, else `AI_EMBEDDINGS_MODEL`; `None`: the provider's default.
    pub model: Option<String>,
    /// Base with its version (`…/v1`), without a `/` at its end; `None`: the provider's default.
    pub url: Option<String>,
    /// From the variable that `api_key_env` names; for Gemini from `GEMINI_API_KEY` when it names none.
    pub api_key: Option<Secret>,
    pub timeout: Duration,
    /// Builtin: a copy of the model file.
    pub model_path: Option<PathBuf>,
    /// `None`: there is no cache folder on this machine.
    pub cache_dir: Option<PathBuf>,
    pub query_prefix: String,
    pub document_prefix: String,
}

impl Default for Embeddings {
    fn default() -> Self {
        Self {
            provider: Provider::Builtin,
            model: None,
            url: None,
            api_key: None,
            timeout: Duration::from_secs(2),
            model_path: None,
            cache_dir: None,
            query_prefix: String::new(),
            document_prefix: String::new(),
        }
    }
}

impl Embeddings {
    /// For the embedding service; `deadline`: what a turn waits for all of it.
    pub fn settings(&self, deadline: Duration) -> Settings {
        Settings {
            provider: self.provider,
            model: self.model.clone().unwrap_or_default(),
            url: self.url.clone().unwrap_or_default(),
            api_key: ApiKey::new(self.api_key.as_ref().map(|key| key.reveal().to_owned()).unwrap_or_default()),
            timeout: self.timeout,
            model_path: self.model_path.clone(),
            cache_dir: self.cache_dir.clone(),
            query_prefix: self.query_prefix.clone(),
            document_prefix: self.document_prefix.clone(),
            deadline,
            ..Settings::default()
        }
    }

    pub(super) fn read(mut section: Section<'_>, variables: &[(OsString, OsString)]) -> Self {
        let mut embeddings = Self { cache_dir: cache_dir(variables), ..Self::default() };
        let providers = [("builtin", Provider::Builtin), ("gemini", Provider::Gemini), ("openai", Provider::OpenAi)];
        section.take("provider", &mut embeddings.provider, read::one_of(&providers));
        section.take("timeout", &mut embeddings.timeout, read::duration);
        section.take("query_prefix", &mut embeddings.query_prefix, read::text);
        section.take("document_prefix", &mut embeddings.document_prefix, read::text);
        section.take_path("model_path", &mut embeddings.model_path);
        if let Some(path) = embeddings.model_path.as_ref().filter(|path| !path.is_file()) {
            section.report("model_path", format!("there is no file {}", path.display()));
        }
        let mut given = None;
        section.take_path("cache_dir", &mut given);
        embeddings.cache_dir = given.or(embeddings.cache_dir);

        section.take("model", &mut embeddings.model, |node| read::text(node).map(filled));
        if embeddings.model.is_none() && embeddings.provider != Provider::Builtin {
            embeddings.model = variable(variables, "AI_EMBEDDINGS_MODEL");
        }
        section.take("url", &mut embeddings.url, |node| match read::text(node)?.as_str() {
            "" => Ok(None),
            url => Base::parse(url).map(|base| Some(base.to_string())),
        });
        embeddings.api_key = api_key(&mut section, embeddings.provider, variables);
        section.finish();
        embeddings
    }
}

fn api_key(section: &mut Section<'_>, provider: Provider, variables: &[(OsString, OsString)]) -> Option<Secret> {
    let mut name = None;
    section.take("api_key_env", &mut name, |node| read::text(node).map(filled));
    let name = match (name, provider) {
        (_, Provider::Builtin) | (None, Provider::OpenAi) => return None,
        (None, Provider::Gemini) => "GEMINI_API_KEY".to_owned(),
        (Some(name), _) => name,
    };
    let key = variable(variables, &name);
    if key.is_none() {
        // Someone may have pasted the key itself: what does not look like a name is not repeated.
        let plain = name.len() <= 64 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let shown = if plain { name } else { "the variable it names".to_owned() };
        section.report("api_key_env", format!("{shown} is not set in the environment"));
    }
    key.map(Secret::new)
}

fn cache_dir(variables: &[(OsString, OsString)]) -> Option<PathBuf> {
    let home = |name: &str| variable(variables, name).map(PathBuf::from).filter(|path| path.is_absolute());
    home("XDG_CACHE_HOME").or_else(|| home("HOME").map(|home| home.join(".cache"))).map(|cache| cache.join("packlight"))
}

fn variable(variables: &[(OsString, OsString)], name: &str) -> Option<String> {
    let value = variables.iter().find(|(key, _)| key == name)?.1.to_str()?.trim();
    filled(value.to_owned())
}

fn filled(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
