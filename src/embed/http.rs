//! HTTP out for embedders: one pooled client, one JSON question, one JSON answer. Errors carry the status, never a key,
//! a text or a body. NOT what is asked.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use ::http::{Method, Request, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pooled;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::settings::ApiKey;
use crate::retrieval::embedder::EmbedError;

/// Longest wait for a connection; the whole question has its own deadline.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest answer: 100 vectors of 3,072 numbers are 6 MB of JSON.
const ANSWER: usize = 64 << 20;

/// A pooled client with whole bodies.
pub type Client = Pooled<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client that speaks HTTP/1.1 and, where offered, HTTP/2, and trusts the system's roots. Needs a runtime.
pub fn client() -> Client {
    Pooled::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).timer(TokioTimer::new()).build(connector())
}

/// Plain and TLS connections with the system's roots. A system without any can still speak plain HTTP.
pub fn connector() -> HttpsConnector<HttpConnector> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(trusting_the_system())
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(tcp)
}

/// Posts the question to the URL.
///
/// # Errors
/// No connection, a status that is not 200, an answer that is not the expected JSON, or nothing within `timeout`.
pub(super) async fn ask<A: DeserializeOwned>(
    client: &Client,
    url: &str,
    key: Option<(HeaderName, HeaderValue)>,
    question: &impl Serialize,
    timeout: Duration,
) -> Result<A, EmbedError> {
    let failed = |text: &str| EmbedError::Failed(text.to_owned());
    let url: Uri = url.parse().map_err(|_| failed("embeddings.url is not a URL"))?;
    let body = serde_json::to_vec(question).map_err(|_| failed("the question cannot be written"))?;
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.clone();
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.headers_mut().extend(key);
    let asking = async {
        let answer = client.request(request).await.map_err(|error| {
            let what = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
            // Without what else may stand in it: a name, a password, a query.
            let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
            EmbedError::Failed(format!("{}{port} {what}", url.host().unwrap_or_default()))
        })?;
        let (head, body) = answer.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(EmbedError::Failed(format!("it answered {}", head.status.as_u16())));
        }
        let body = Limited::new(body, ANSWER).collect().await;
        let body = body.map_err(|_| failed("its answer broke off or is too long"))?.to_bytes();
        serde_json::from_slice(&body)
            .map_err(|error| EmbedError::Nonsense(format!("not the expected JSON ({:?})", error.classify())))
    };
    tokio::time::timeout(timeout, asking).await.map_err(|_| EmbedError::Timeout)?
}

/// The header that carries the key. `None`: there is no key, or it cannot stand in a header.
pub(super) fn key_header(name: HeaderName, before: &str, key: &ApiKey) -> Option<(HeaderName, HeaderValue)> {
    if key.is_empty() {
        return None;
    }
    let mut value = HeaderValue::from_str(&format!("{before}{}", key.reveal())).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

fn trusting_the_system() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (good, _) = roots.add_parsable_certificates(found.certs);
    if good == 0 {
        tracing::warn!("the system has no root certificates: no HTTPS server can be trusted (install ca-certificates)");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    match ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions) {
        Ok(builder) => builder.with_root_certificates(roots).with_no_client_auth(),
        // `ring` offers suites for both versions; the default provider of the process could only be the same one.
        Err(_) => ClientConfig::builder().with_root_certificates(roots).with_no_client_auth(),
    }
}
