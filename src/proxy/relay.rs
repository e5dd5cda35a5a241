//! Requests that are nobody's business but the agent's and the provider's: streamed in both directions, byte for byte.
//! NOT parsing, NOT a limit on size, time or method.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admin::Status;
use super::body::Body;
use super::head::{self, Head};
use super::respond::{self, Trouble};
use super::shutdown::Shutdown;
use super::tls::TlsError;
use super::upstream::Upstreams;
use super::{Handler, tunnel};
use crate::config::Config;
use crate::config::upstream::Upstream;
use crate::embed::Readiness;

/// Sends the request on as it is and the reply back as it is.
pub async fn untouched(upstreams: &Upstreams, mut request: Request<Incoming>) -> Response<Body> {
    let uri = request.uri().clone();
    let Some(target) = upstreams.find(&uri) else {
        return respond::trouble(uri.path(), &Trouble::unknown_prefix(upstreams.list()));
    };
    let mut client = None;
    if request.headers().contains_key(http::header::UPGRADE) {
        client = Some(hyper::upgrade::on(&mut request));
    }
    let (parts, body) = request.into_parts();
    let head = Head::of(&parts);
    match upstreams.send(target, head, Body::received(body)).await {
        Ok(mut reply) => {
            if let (StatusCode::SWITCHING_PROTOCOLS, Some(client)) = (reply.status(), client) {
                tunnel::join(upstreams.shutdown(), client, hyper::upgrade::on(&mut reply));
            }
            back(reply)
        }
        Err(error) => respond::trouble(target.path, &Trouble::unreachable(target.upstream, &error)),
    }
}

/// Relays everything: what serves until narrowing is wired.
#[derive(Debug, Clone)]
pub struct Relay {
    upstreams: Upstreams,
    registry: prometheus::Registry,
}

impl Relay {
    pub fn new(config: &Config, shutdown: Shutdown) -> Result<Self, TlsError> {
        Ok(Self { upstreams: Upstreams::new(&config.upstreams, shutdown)?, registry: prometheus::Registry::new() })
    }
}

impl Handler for Relay {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        untouched(&self.upstreams, request).await
    }
}

impl Status for Relay {
    fn registry(&self) -> &prometheus::Registry {
        &self.registry
    }

    fn readiness(&self) -> Readiness {
        Readiness::Absent
    }

    fn upstreams(&self) -> &[Upstream] {
        self.upstreams.list()
    }

    fn decisions(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A reply as it goes back to the agent: without the hop's headers, everything else as it came.
pub fn back(reply: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = reply.into_parts();
    head::strip_reply(&mut parts);
    parts.version = http::Version::HTTP_11;
    Response::from_parts(parts, Body::received(body))
}
