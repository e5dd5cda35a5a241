//! What a provider itself counts for a roster: asked once per roster and model, beside a request and with its
//! credential, where `count_tokens` of the upstream is on. NOT our estimate, NOT what was billed, NOT the endpoints'
//! shapes (wire).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use moka::sync::Cache;

use super::app::App;
use super::body::Body;
use super::coding::{self, Read};
use super::head::Head;
use super::route::Route;
use super::upstream::Target;
use crate::wire::{Format, count};

/// Rosters and models whose counts are remembered.
const COUNTS: u64 = 1024;
/// After that a roster is asked for again.
const LIFE: Duration = Duration::from_secs(24 * 3600);
/// A provider that takes longer does not count.
const WAIT: Duration = Duration::from_secs(30);
/// An answer is a number in a few braces.
const ANSWER: usize = 64 << 10;

/// Counts by roster and model; `None`: asked, and not answered.
#[derive(Debug)]
pub struct Counting {
    counts: Cache<(u64, String), Option<u64>>,
}

/// A chat request whose roster may be asked about.
pub struct Asking<'a> {
    pub route: &'a Arc<Route>,
    pub format: Format,
    /// Below the prefix, with query.
    pub path: &'a str,
    pub head: &'a Head,
    pub model: &'a str,
    /// Identity of the roster, and its `tools` as they are sent in full.
    pub roster: u64,
    pub tools: &'a (dyn Fn() -> String + Sync),
}

impl Default for Counting {
    fn default() -> Self {
        Self { counts: Cache::builder().max_capacity(COUNTS).time_to_live(LIFE).build() }
    }
}

impl Counting {
    /// What the provider counted; `None`: that is not known.
    pub fn known(&self, roster: u64, model: &str) -> Option<u64> {
        self.counts.get(&(roster, model.to_owned())).flatten()
    }

    /// Asks, if that is wanted and nobody has. Never waits: the answer is for later requests' records.
    pub fn ask(&self, app: &Arc<App>, asking: &Asking<'_>) {
        if !asking.route.upstream.count_tokens {
            return;
        }
        let key = (asking.roster, asking.model.to_owned());
        if self.counts.contains_key(&key) {
            return;
        }
        let tools = (asking.tools)();
        if tools.is_empty() {
            return;
        }
        self.counts.insert(key.clone(), None);
        let Some((path, body)) = count::question(asking.format, asking.path, asking.model, &tools) else { return };
        let (app, route) = (app.clone(), asking.route.clone());
        let head = asking.head.for_body(body.len()).for_reading();
        let asked = app.clone();
        app.shutdown.spawn(async move {
            let target = Target { upstream: &route.upstream, path: &path };
            let answered = async {
                let reply = asked.upstreams.send(target, head, Body::whole(body)).await.ok()?;
                let status = reply.status();
                let Read::Whole(answer) = coding::whole(reply.into_body(), ANSWER).await else { return None };
                count::answer(&answer).filter(|_| status == StatusCode::OK)
            };
            match tokio::time::timeout(WAIT, answered).await.ok().flatten() {
                Some(tokens) => asked.counting.counts.insert(key, Some(tokens)),
                None => tracing::info!(upstream = %route.upstream.name, "the provider does not count tokens"),
            }
        });
    }
}
