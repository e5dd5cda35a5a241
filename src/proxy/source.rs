//! A leg's reply as frames that can be read: decoded, and known to be of which kind.
//! NOT what they say.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::BodyStream;
use hyper::body::Incoming;

use super::body::BodyError;
use super::coding::{self, Coding};
use crate::wire::reply::Framing;

/// The frames of one leg.
pub type Source = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BodyError>> + Send>>;

/// A leg's body as frames, decoded; `None`: it cannot be decoded.
pub fn source(reply: Response<Incoming>) -> Option<Source> {
    let coding = Coding::of(reply.headers());
    let body = reply.into_body();
    if coding == Coding::Identity {
        return Some(Box::pin(BodyStream::new(body).map_err(Into::into)));
    }
    Some(Box::pin(coding::decoding(body, coding)?.map_ok(Frame::data).map_err(Into::into)))
}

/// How a reply's body is cut into pieces; `None`: it is not read.
pub fn framing(reply: &Response<Incoming>, path: &str) -> Option<Framing> {
    let kind = reply.headers().get(http::header::CONTENT_TYPE)?.to_str().ok()?.to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let streams = path.split('?').next().unwrap_or_default().ends_with(":streamGenerateContent");
    match kind {
        "text/event-stream" => Some(Framing::Sse),
        "application/json" if streams => Some(Framing::Array),
        "application/json" => Some(Framing::Whole),
        _ => None,
    }
}
