//! Requests that are nobody's business but the agent's and the provider's: streamed in both directions, byte for byte.
//! NOT parsing, NOT a limit on size, time or method.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::body::Body;
use super::head::{self, Head};
use super::respond::{self, Trouble};
use super::tunnel;
use super::upstream::Upstreams;

/// Sends the request on as it is and the reply back as it is.
pub async fn untouched(upstreams: &Upstreams, mut request: Request<Incoming>) -> Response<Body> {
    let uri = request.uri().clone();
    let Some(target) = upstreams.find(&uri) else {
        let answer = respond::trouble(uri.path(), &Trouble::unknown_prefix(upstreams.list()));
        let (parts, body) = request.into_parts();
        return respond::unread(&parts, body, answer).await;
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

/// A reply as it goes back to the agent: without the hop's headers, everything else as it came.
pub fn back(reply: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = reply.into_parts();
    head::strip_reply(&mut parts);
    Response::from_parts(parts, Body::received(body))
}
