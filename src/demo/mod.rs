//! `packlight demo`: a scripted model, a CRM of 44 tools and an agent, with a real sidecar between them. Nothing here is
//! a mock of Packlight: the caller starts the sidecar with [`settings`] and hands over its addresses, because the proxy
//! stands on a higher floor. NOT a way to reach a real provider.

pub mod agent;
pub mod judge;
pub mod page;
pub mod provider;
pub mod scenes;
pub mod script;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::config::Config;
use crate::config::catalog::Catalog;
use crate::config::upstream::Base;
use agent::{Agent, AgentError};
use judge::{Played, Roster};
use page::{Page, Totals};
use provider::Provider;
use scenes::{SCENES, WARM_UP};

/// The CRM's tools, an OpenAI `tools` array.
pub const ROSTER: &str = include_str!("roster.json");

/// What its JSON cannot say.
pub const CATALOG: &str = include_str!("catalog.toml");

/// A request waits for its vectors instead of going in full: on a machine that is busy with something else, the demo is to
/// show what is chosen.
const DEADLINE: Duration = Duration::from_secs(30);
/// Requests sent until the tools' vectors are there: some seconds, once, but minutes where little is free.
const WARM_UPS: usize = 20;

/// How long a decision record is waited for: 20 x 10 ms.
const RECORD_TRIES: usize = 20;
const RECORD_PAUSE: Duration = Duration::from_millis(10);

/// Where the sidecar listens.
#[derive(Debug, Clone, Copy)]
pub struct Sidecar {
    pub data: SocketAddr,
    pub admin: SocketAddr,
}

/// Why there was nothing to see.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("the demo's own data is broken: {0}")]
    Data(String),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("cannot write the page: {0}")]
    Page(#[from] io::Error),
}

/// What the sidecar of the demo is started with: the defaults, free ports, the scripted model behind `/kimi`, the CRM's
/// catalog.
pub fn settings(model: SocketAddr) -> Result<Config, DemoError> {
    let mut config = Config::default();
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    (config.server.listen, config.server.admin_listen) = (free, free);
    let catalog = Catalog::parse(CATALOG).map_err(|problems| DemoError::Data(problems.join("; ")))?;
    config.narrow.catalog = Some(Arc::new(catalog));
    config.narrow.deadline = DEADLINE;
    let authority = model.to_string().parse::<Authority>().map_err(|error| DemoError::Data(error.to_string()))?;
    for upstream in &mut config.upstreams {
        upstream.narrow = config.narrow.clone();
        upstream.url = Base { scheme: Scheme::HTTP, authority: authority.clone(), path: String::new() };
    }
    Ok(config)
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    AsClaimed,
    /// The page says what did not hold.
    NotAsClaimed,
    /// There is no embedding model, so nothing was played.
    NoModel,
}

/// Plays it and shows it.
pub async fn run(sidecar: Sidecar, provider: &Provider, page: &mut Page<'_>) -> Result<Ending, DemoError> {
    let broken = |error: serde_json::Error| DemoError::Data(error.to_string());
    let raw: &RawValue = serde_json::from_str(ROSTER.trim()).map_err(broken)?;
    let roster = roster(raw)?;
    page.opening(roster.tools.len())?;
    let agent = Agent::new(&format!("http://{}/kimi/v1", sidecar.data), raw);
    let began = Instant::now();
    for _ in 0..WARM_UPS {
        match agent.ask(WARM_UP).await?.verdict("reason") {
            "model_absent" => {
                page.no_model()?;
                return Ok(Ending::NoModel);
            }
            "deadline" => {}
            _ => break,
        }
    }
    provider.take_received();
    page.warmed(began.elapsed())?;
    let (mut totals, mut complaints) = (Totals::default(), Vec::new());
    for (index, scene) in SCENES.iter().enumerate() {
        let exchanges = agent.play(scene).await?;
        let request = exchanges.first().map(|exchange| exchange.verdict("request").to_owned()).unwrap_or_default();
        let played = Played::new(scene, exchanges, provider.take_received());
        let ranks = ranks(sidecar.admin, &request, &roster).await;
        page.scene(index + 1, &played, &roster, &ranks)?;
        totals.add(&played);
        complaints.extend(judge::complaints(&played, &roster));
    }
    page.closing(totals, &complaints)?;
    page.how_to(&bases())?;
    Ok(if complaints.is_empty() { Ending::AsClaimed } else { Ending::NotAsClaimed })
}

fn roster(raw: &RawValue) -> Result<Roster<'_>, DemoError> {
    let broken = |error: serde_json::Error| DemoError::Data(error.to_string());
    let entries: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(broken)?;
    let mut tools = Vec::new();
    for entry in entries {
        let tool: Value = serde_json::from_str(entry.get()).map_err(broken)?;
        tools.push((tool["function"]["name"].as_str().unwrap_or_default().to_owned(), entry.get()));
    }
    let catalog = Catalog::parse(CATALOG).map_err(|problems| DemoError::Data(problems.join("; ")))?;
    let core = catalog.entries().iter().filter(|entry| entry.always_on).map(|entry| entry.name.clone());
    Ok(Roster { tools, core: core.collect::<BTreeSet<_>>() })
}

/// What retrieval chose for a request, best first, as the sidecar's decision record has it. Only explains what was seen
/// at the model's side; empty when it cannot be had. A record is kept when its reply is over, which the agent may see a
/// moment earlier: so it is asked for a few times.
async fn ranks(admin: SocketAddr, request: &str, roster: &Roster<'_>) -> Vec<String> {
    let Ok(uri) = format!("http://{admin}/decisions").parse::<http::Uri>() else { return Vec::new() };
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    for _ in 0..RECORD_TRIES {
        let Ok(response) = client.get(uri.clone()).await else { return Vec::new() };
        let Ok(body) = response.into_body().collect().await else { return Vec::new() };
        let ranks = ranks_in(&body.to_bytes(), request, roster);
        if !ranks.is_empty() {
            return ranks;
        }
        tokio::time::sleep(RECORD_PAUSE).await;
    }
    Vec::new()
}

/// `decisions`: an array of records or one on each line.
fn ranks_in(decisions: &[u8], request: &str, roster: &Roster<'_>) -> Vec<String> {
    let records = match serde_json::from_slice(decisions) {
        Ok(Value::Array(records)) => records,
        _ => decisions.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect(),
    };
    let Some(record) = records.iter().find(|record| record["request"] == request) else { return Vec::new() };
    let names = record["selection"].as_array().into_iter().flatten().filter_map(|scored| scored["name"].as_str());
    names.filter(|name| !roster.core.contains(*name)).map(str::to_owned).collect()
}

/// For each builtin upstream: the base URL clients know it by, and the one behind Packlight.
fn bases() -> Vec<(String, String)> {
    let config = Config::default();
    let version = |name: &str| if name == "kimi" { "/v1" } else { "" };
    let base = |upstream: &crate::config::upstream::Upstream| {
        let version = version(&upstream.name);
        let now = format!("http://{}{}{version}", config.server.listen, upstream.prefix);
        (format!("{}{version}", upstream.url), now)
    };
    config.upstreams.iter().map(base).collect()
}

/// o200k tokens: an estimate, the models' own tables are not public.
fn tokens(text: &str) -> usize {
    crate::turn::tokens::count(text) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_the_defaults_but_for_where_and_what() {
        let config = settings(SocketAddr::from((Ipv4Addr::LOCALHOST, 1234))).unwrap();
        assert_eq!(config.server.listen.port(), 0);
        assert!(config.upstreams.iter().all(|upstream| upstream.url.to_string() == "http://127.0.0.1:1234"));
        assert!(config.upstreams.iter().all(|upstream| upstream.narrow.catalog.is_some()));
        assert_eq!(config.narrow.max_retrieved_tools, Config::default().narrow.max_retrieved_tools);
    }

    #[test]
    fn ranks_come_from_the_record_of_the_request() {
        let roster = Roster { tools: Vec::new(), core: BTreeSet::from(["whoami".to_owned()]) };
        let one = r#"{"request":"a","selection":[{"name":"x","score":2},{"name":"whoami","score":1},{"name":"y","score":0}]}"#;
        let other = r#"{"request":"b","selection":[{"name":"z","score":2}]}"#;
        for decisions in [format!("[{other},{one}]"), format!("{other}\n{one}\n")] {
            assert_eq!(ranks_in(decisions.as_bytes(), "a", &roster), ["x", "y"]);
        }
        assert!(ranks_in(b"nonsense", "a", &roster).is_empty());
    }

    #[test]
    fn the_base_urls_are_those_of_the_readme() {
        let bases = bases();
        let now: Vec<_> = bases.iter().map(|(_, now)| now.as_str()).collect();
        assert_eq!(now, ["http://127.0.0.1:8787/kimi/v1", "http://127.0.0.1:8787/gemini"]);
    }
}
