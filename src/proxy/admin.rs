//! The status page `/`, `/metrics`, `/healthz`, `/readyz` and `/decisions`, on a listener of their own. NOT on the data port, NOT the
//! counting.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use prometheus::{Registry, TextEncoder};
use serde::Serialize;

use super::body::Body;
use super::shutdown::Shutdown;
use super::{Handler, respond};
use crate::config::upstream::Upstream;
use crate::cost::correction::Correction;
use crate::decision::Decision;
use crate::embed::Readiness;
use crate::page::html::{self, Embedder, View};
use crate::page::today::Day;

/// Decisions on the page: each holds a ranking. `/decisions` has all that are kept.
const SHOWN: usize = 60;

/// What the process shows of itself.
pub trait Status: Send + Sync + 'static {
    fn registry(&self) -> &Registry;
    fn readiness(&self) -> Readiness;
    fn upstreams(&self) -> &[Upstream];
    /// The last decisions, oldest first.
    fn decisions(&self) -> Vec<Decision>;
    /// What providers report for estimated tokens, by model.
    fn corrections(&self) -> Vec<(String, Correction)>;
    /// What an upstream's requests of today come to. `now`: seconds since the epoch.
    fn today(&self, upstream: &str, now: f64) -> Day;
}

/// Answers on the admin port.
#[derive(Clone)]
pub struct Admin {
    status: Arc<dyn Status>,
    shutdown: Shutdown,
}

impl Admin {
    /// `shutdown`: the data port's: a process that ends is not ready.
    pub fn new(status: Arc<dyn Status>, shutdown: Shutdown) -> Self {
        Self { status, shutdown }
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return respond::with(StatusCode::METHOD_NOT_ALLOWED, r#"{"error":"only GET is served here"}"#.to_owned());
        }
        match request.uri().path() {
            "/" => self.page(),
            "/healthz" => text("text/plain; charset=utf-8", "ok\n".to_owned()),
            "/readyz" => self.readyz(),
            "/metrics" => self.metrics(),
            "/decisions" => {
                let lines: Vec<String> = self.status.decisions().iter().map(Decision::line).collect();
                respond::with(StatusCode::OK, format!("[{}]", lines.join(",")))
            }
            _ => {
                let paths = r#"{"error":"here are /, /metrics, /healthz, /readyz and /decisions"}"#;
                respond::with(StatusCode::NOT_FOUND, paths.to_owned())
            }
        }
    }

    fn page(&self) -> Response<Body> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
        let upstreams = self.status.upstreams().iter().map(|upstream| html::Upstream {
            name: upstream.name.clone(),
            prefix: upstream.prefix.clone(),
            url: upstream.url.to_string(),
            mode: upstream.narrow.mode.label(),
            percent: upstream.narrow.percent,
            today: self.status.today(&upstream.name, now),
        });
        let mut decisions = self.status.decisions();
        decisions.reverse();
        decisions.truncate(SHOWN);
        let embedder = match self.status.readiness() {
            Readiness::Ready => Embedder::Ready,
            Readiness::Loading => Embedder::Loading,
            Readiness::Absent => Embedder::Absent,
        };
        let (upstreams, corrections) = (upstreams.collect(), self.status.corrections());
        let view = View { now, embedder, upstreams, corrections, decisions: &decisions };
        let (page, policy) = html::page(&view);
        let mut response = text("text/html; charset=utf-8", page);
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
        set(CACHE_CONTROL, "no-store");
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(REFERRER_POLICY, "no-referrer");
        set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        response
    }

    fn readyz(&self) -> Response<Body> {
        let ending = self.shutdown.has_begun();
        let (embedder, note) = match self.status.readiness() {
            Readiness::Ready => ("ready", None),
            Readiness::Loading => ("loading", Some("requests go in full until the model is loaded")),
            Readiness::Absent => ("absent", Some("requests go in full: run `make model` or set embeddings.model_path")),
        };
        let upstreams = self.status.upstreams().iter();
        let ready = Ready {
            status: if ending { "shutting down" } else { "serving" },
            embedder,
            note,
            upstreams: upstreams
                .map(|upstream| Shown { name: &upstream.name, prefix: &upstream.prefix, url: upstream.url.to_string() })
                .collect(),
        };
        let status = if ending { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        respond::with(status, serde_json::to_string(&ready).unwrap_or_default())
    }

    fn metrics(&self) -> Response<Body> {
        match TextEncoder::new().encode_to_string(&self.status.registry().gather()) {
            Ok(page) => text("text/plain; version=0.0.4; charset=utf-8", page),
            Err(error) => {
                tracing::warn!(%error, "cannot write the metrics");
                respond::with(StatusCode::INTERNAL_SERVER_ERROR, r#"{"error":"see the log"}"#.to_owned())
            }
        }
    }
}

impl Handler for Admin {
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send {
        std::future::ready(self.answer(&request))
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Ready<'a> {
    status: &'a str,
    embedder: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    upstreams: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    prefix: &'a str,
    url: String,
}

fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
