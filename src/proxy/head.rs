//! What is sent on of a head, in both directions: everything but the hop's own headers, in the order, number and case
//! in which it came. NOT the body, NOT where it goes.
//!
//! `HeaderMap::remove` moves the last header into the gap, so headers are never removed from a map in place: the map is
//! built anew.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, request, response};

/// The head of a request as it goes upstream. The extensions carry what hyper remembers of the headers' case.
#[derive(Debug, Clone)]
pub struct Head {
    pub method: Method,
    pub headers: HeaderMap,
    pub extensions: Extensions,
    /// Asks to leave HTTP (a websocket): needs an HTTP/1.1 connection of its own.
    pub upgrade: bool,
}

impl Head {
    /// Without the hop's headers, without `x-packlight-*`, without `host`: the connection writes its own.
    pub fn of(parts: &request::Parts) -> Self {
        let upgrade = parts.headers.contains_key(UPGRADE) && lists(&parts.headers, "upgrade");
        let mut headers = kept(&parts.headers, upgrade, |name| name == HOST || name.as_str().starts_with(OURS));
        // `te: trailers` is the one thing a hop may say for the next one, and without it no server sends trailers.
        let trailers = parts.headers.get_all(TE).iter().filter_map(|value| value.to_str().ok());
        if trailers.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case("trailers")) {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        Self { method: parts.method.clone(), headers, extensions: parts.extensions.clone(), upgrade }
    }

    /// For a body that is not the one these headers came with: its length is the one of `length` bytes, it is not
    /// encoded, and nobody waits for a `100 Continue`.
    pub fn for_body(&self, length: usize) -> Self {
        let mut head = self.without(&[EXPECT, CONTENT_ENCODING]);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        head
    }

    /// Asks for a reply that can be read as it comes.
    pub fn for_reading(mut self) -> Self {
        self.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        self
    }

    /// For a request that stays HTTP, whatever its client would change to: a chat has no tunnel.
    pub fn staying(self) -> Self {
        if !self.upgrade {
            return self;
        }
        Self { upgrade: false, ..self.without(&[UPGRADE, CONNECTION]) }
    }

    fn without(&self, names: &[HeaderName]) -> Self {
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for (name, value) in self.headers.iter().filter(|(name, _)| !names.contains(name)) {
            headers.append(name.clone(), value.clone());
        }
        Self { headers, ..self.clone() }
    }
}

/// Headers that are for us alone.
const OURS: &str = "x-packlight-";

/// Takes the hop's headers out of a reply, and its version: the agent's connection has its own.
pub fn strip_reply(parts: &mut response::Parts) {
    parts.version = http::Version::HTTP_11;
    let upgrade = parts.status == http::StatusCode::SWITCHING_PROTOCOLS;
    if parts.headers.keys().any(|name| is_hop(name) || name == CONNECTION) {
        parts.headers = kept(&parts.headers, upgrade, |_| false);
    }
}

/// Usage headers of the first leg alone: once there may be several they would lie.
const OF_ONE_LEG: [&str; 2] = ["x-msh-usage-prompt-tokens", "x-msh-usage-cached-tokens"];

/// What still holds when a reply is rewritten, and may be made of several legs.
pub fn of_rewritten(headers: &HeaderMap) -> HeaderMap {
    kept(headers, false, |name| {
        name == CONTENT_LENGTH || name == CONTENT_ENCODING || OF_ONE_LEG.contains(&name.as_str())
    })
}

fn kept(headers: &HeaderMap, upgrade: bool, dropped: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let listed = listed(headers);
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let of_upgrade = upgrade && (name == UPGRADE);
        let hop = is_hop(name) || listed.iter().any(|listed| name.as_str().eq_ignore_ascii_case(listed));
        if of_upgrade || !(hop || dropped(name)) {
            map.append(name.clone(), value.clone());
        }
    }
    if upgrade {
        map.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    map
}

/// Names that `Connection` lists: they are the hop's, too. Never those that carry the message itself: a client that
/// lists `content-type` or `authorization` there would cut its own request open.
fn listed(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty());
    names.filter(|name| !ESSENTIAL.iter().any(|essential| name.eq_ignore_ascii_case(essential))).collect()
}

fn lists(headers: &HeaderMap, option: &str) -> bool {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|name| name.trim().eq_ignore_ascii_case(option))
}

const ESSENTIAL: [&str; 7] = [
    "authorization",
    "content-length",
    "content-type",
    "content-encoding",
    "x-goog-api-key",
    "x-api-key",
    "anthropic-version",
];

fn is_hop(name: &HeaderName) -> bool {
    let standard = [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION];
    standard.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &[(&str, &str)]) -> Head {
        let mut request = http::Request::builder().method("POST");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Head::of(&request.body(()).unwrap().into_parts().0)
    }

    fn names(head: &Head) -> Vec<&str> {
        head.headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn the_hop_s_headers_stay_on_the_hop_and_the_rest_keeps_its_order() {
        let head = head(&[
            ("host", "localhost"),
            ("a", "1"),
            ("connection", "keep-alive, X-Mine, authorization"),
            ("keep-alive", "5"),
            ("x-mine", "1"),
            ("authorization", "Bearer k"),
            ("x-packlight-mode", "off"),
            ("b", "1"),
            ("a", "2"),
            ("te", "gzip, trailers"),
            ("proxy-authorization", "x"),
            ("c", "1"),
        ]);
        assert_eq!(names(&head), ["a", "authorization", "b", "c", "te"]);
        assert_eq!(head.headers.get_all("a").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(head.headers["te"], "trailers");
        assert!(!head.upgrade);
    }

    #[test]
    fn a_new_body_has_its_own_length_at_the_old_place() {
        let head = head(&[("content-length", "5"), ("expect", "100-continue"), ("content-encoding", "br"), ("z", "1")]);
        let head = head.for_body(70).for_reading();
        assert_eq!(names(&head), ["content-length", "z", "accept-encoding"]);
        assert_eq!(head.headers["content-length"], "70");
    }

    #[test]
    fn a_rewritten_reply_loses_what_no_longer_holds_and_keeps_the_order_of_the_rest() {
        let mut headers = HeaderMap::new();
        for name in ["content-length", "a", "x-msh-usage-prompt-tokens", "b", "x-msh-usage-cached-tokens", "c", "d"] {
            headers.append(name, HeaderValue::from_static("1"));
        }
        assert_eq!(of_rewritten(&headers).keys().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    }

    #[test]
    fn an_upgrade_is_the_hop_s_business_that_goes_on() {
        let head = head(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", "k")]);
        assert!(head.upgrade);
        assert_eq!(names(&head), ["upgrade", "sec-websocket-key", "connection"]);
    }
}
