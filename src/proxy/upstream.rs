//! The one client to the providers: pooled, HTTP/2 where it is offered, and no limit on how long a reply may take.
//! NOT retries of a request that may have had an effect, NOT what a reply means.

use std::sync::Arc;

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header::HOST};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::body::Body;
use super::head::Head;
use super::shutdown::Shutdown;
use super::tls::{self, Connector, TlsError};
use crate::config::upstream::{Base, Upstream};

/// The configured upstreams and the way to them. Clones share the pool.
#[derive(Debug, Clone)]
pub struct Upstreams {
    list: Arc<[Upstream]>,
    client: Client<Connector, Body>,
    /// Leaving HTTP is an HTTP/1.1 affair: these connections never offer h2.
    upgrades: Client<Connector, Body>,
    shutdown: Shutdown,
}

/// Where a request belongs.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub upstream: &'a Upstream,
    /// Path below the prefix and query, as written; may be empty.
    pub path: &'a str,
}

/// Why there is no reply. The texts hold no header, no path and no query.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("{0}")]
    Connect(String),
    #[error("the connection broke before a reply came: {0}")]
    Broken(String),
    #[error("the path cannot be sent on: {0}")]
    Path(String),
}

impl Upstreams {
    /// The system's roots are read here, once, when an upstream needs them.
    pub fn new(list: &[Upstream], shutdown: Shutdown) -> Result<Self, TlsError> {
        let roots = list.iter().any(|upstream| upstream.url.scheme == Scheme::HTTPS).then(tls::roots);
        let build = |offered| {
            let connector = Connector::new(roots.clone(), offered)?;
            let mut builder = Client::builder(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .http1_preserve_header_case(true)
                .http1_max_buf_size(super::body::BUFFER)
                // Notices a peer that is gone while a model thinks; no limit on the thinking itself.
                .http2_keep_alive_interval(HTTP2_PING)
                .http2_initial_stream_window_size(1 << 20)
                .http2_initial_connection_window_size(8 << 20);
            Ok(builder.build(connector))
        };
        let (client, upgrades) = (build(tls::Offered::All)?, build(tls::Offered::Http1)?);
        Ok(Self { list: list.into(), client, upgrades, shutdown })
    }

    /// The upstream with the longest prefix of whole path segments.
    pub fn find<'a>(&'a self, uri: &'a Uri) -> Option<Target<'a>> {
        let written = uri.path_and_query().map_or("", PathAndQuery::as_str);
        let below = |prefix: &str| {
            let rest = written.strip_prefix(prefix)?;
            (rest.is_empty() || rest.starts_with(['/', '?'])).then_some(rest)
        };
        let found = self.list.iter().filter_map(|upstream| Some((upstream, below(&upstream.prefix)?)));
        let (upstream, path) = found.max_by_key(|(upstream, _)| upstream.prefix.len())?;
        Some(Target { upstream, path })
    }

    /// In the order of the configuration.
    pub fn list(&self) -> &[Upstream] {
        &self.list
    }

    pub(super) fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Sends a request to where it belongs. Returns with the reply's head. Dropped before that, or the reply's body
    /// dropped after it, the request is cancelled upstream.
    pub async fn send(&self, target: Target<'_>, head: Head, body: Body) -> Result<Response<Incoming>, SendError> {
        let base = &target.upstream.url;
        let client = if head.upgrade { &self.upgrades } else { &self.client };
        let headers =
            if base.scheme == Scheme::HTTP || head.upgrade { with_host(head.headers, base) } else { head.headers };
        let mut request = Request::new(body);
        *request.method_mut() = head.method;
        *request.uri_mut() = uri(base, target.path)?;
        *request.headers_mut() = headers;
        *request.extensions_mut() = head.extensions;
        let again = repeatable(&request);
        let failed = match (client.request(request).await, again) {
            (Ok(reply), _) => return Ok(reply),
            (Err(error), Some(again)) if !error.is_connect() => client.request(again).await,
            (Err(error), _) => Err(error),
        };
        failed.map_err(|error| {
            let why = root_cause(&error);
            if error.is_connect() { SendError::Connect(why) } else { SendError::Broken(why) }
        })
    }
}

/// The same request once more, for a server that closes a connection just when it is used again: only what changes
/// nothing and has no body (RFC 9110, 9.2.2). A chat request may have been paid for, so it is never repeated.
fn repeatable(request: &Request<Body>) -> Option<Request<Body>> {
    if !request.method().is_safe() || !request.body().is_end_stream() {
        return None;
    }
    let mut again = Request::new(Body::empty());
    again.method_mut().clone_from(request.method());
    again.uri_mut().clone_from(request.uri());
    again.headers_mut().clone_from(request.headers());
    again.extensions_mut().clone_from(request.extensions());
    Some(again)
}

/// Shorter than the idle time of the servers we know (nginx 75 s): a request never meets a connection that is closing.
const IDLE: std::time::Duration = std::time::Duration::from_secs(30);
const HTTP2_PING: std::time::Duration = std::time::Duration::from_secs(30);

/// Nothing is normalised: `//`, `..` and `%2F` mean what the provider says they mean.
fn uri(base: &Base, path: &str) -> Result<Uri, SendError> {
    let mut written = Vec::with_capacity(base.path.len() + path.len() + 1);
    written.extend_from_slice(base.path.as_bytes());
    if base.path.is_empty() && !path.starts_with('/') {
        written.push(b'/');
    }
    written.extend_from_slice(path.as_bytes());
    let wrong = |error: http::Error| SendError::Path(error.to_string());
    let path = PathAndQuery::from_maybe_shared(Bytes::from(written)).map_err(|error| wrong(error.into()))?;
    Uri::builder()
        .scheme(base.scheme.clone())
        .authority(base.authority.clone())
        .path_and_query(path)
        .build()
        .map_err(wrong)
}

/// HTTP/1.1 wants `host` first. Over TLS the client adds it itself once it knows that the connection is not HTTP/2,
/// which has `:authority` instead.
fn with_host(headers: HeaderMap, base: &Base) -> HeaderMap {
    let authority = base.authority.as_str();
    let default = if base.scheme == Scheme::HTTP { ":80" } else { ":443" };
    let Ok(host) = HeaderValue::from_str(authority.strip_suffix(default).unwrap_or(authority)) else { return headers };
    let mut map = HeaderMap::with_capacity(headers.len() + 1);
    map.append(HOST, host);
    for (name, value) in &headers {
        map.append(name.clone(), value.clone());
    }
    map
}

/// The innermost error says what happened; those around it say "client error".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(upstreams: &str) -> Config {
        Config::parse(upstreams, std::path::Path::new(""), &[]).unwrap()
    }

    const TWO: &str = r#"
[[upstream]]
name = "a"
prefix = "/a"
url = "http://one.example.com/base/"
[[upstream]]
name = "ab"
prefix = "/a/b"
url = "http://two.example.com"
"#;

    #[tokio::test]
    async fn the_longest_prefix_of_whole_segments_wins() {
        let upstreams = Upstreams::new(&config(TWO).upstreams, Shutdown::new(IDLE)).unwrap();
        let find = |path: &'static str| {
            let uri = Uri::from_static(path);
            upstreams.find(&uri).map(|target| (target.upstream.name.clone(), target.path.to_owned()))
        };
        let found = |name: &str, path: &str| Some((name.to_owned(), path.to_owned()));
        assert_eq!(find("/a/v1/models?x=1"), found("a", "/v1/models?x=1"));
        assert_eq!(find("/a/b/c"), found("ab", "/c"));
        assert_eq!(find("/a/bc"), found("a", "/bc"));
        assert_eq!(find("/a"), found("a", ""));
        assert_eq!(find("/a?k"), found("a", "?k"));
        assert_eq!(find("/ab"), None);
        assert_eq!(find("/"), None);
        assert_eq!(find("//a"), None);
    }

    #[test]
    fn a_path_is_sent_as_it_was_written() {
        let config = config(TWO);
        let [one, two] = config.upstreams.as_slice() else { panic!("two upstreams") };
        for path in ["/x//y/../z", "/%2F%zz?a=%20b&&c", "/models/m:generateContent", "/?"] {
            assert_eq!(uri(&two.url, path).unwrap().path_and_query().unwrap().as_str(), path);
        }
        assert_eq!(uri(&two.url, "").unwrap(), "http://two.example.com/");
        assert_eq!(uri(&one.url, "/v1?k").unwrap(), "http://one.example.com/base/v1?k");
        assert_eq!(uri(&one.url, "").unwrap(), "http://one.example.com/base");
    }
}
