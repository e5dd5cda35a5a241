//! The one body type of replies and upstream requests. NOT reading one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

/// What can go wrong while a body moves.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The longest read of an HTTP/1.1 connection, and the longest head: the body of a usual chat request (44 tools, 70 KB)
/// in one read and one write, where 64 KiB took two of each, and the provider was woken twice. hyper lets a connection's buffer grow to 400 KB and
/// keeps it: 200 open streams of 70 KB requests left 36 MB resident.
pub const BUFFER: usize = 96 << 10;

/// A body on its way. Received ones go through unboxed, trailers and lengths included.
pub struct Body(Kind);

enum Kind {
    Whole(Full<Bytes>),
    Received(Incoming),
    Made(UnsyncBoxBody<Bytes, BodyError>),
}

impl Body {
    pub fn empty() -> Self {
        Self::whole(Bytes::new())
    }

    /// Bytes that are all there: the length is known.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(Full::new(bytes.into())))
    }

    /// As it comes from a socket.
    pub fn received(body: Incoming) -> Self {
        Self(Kind::Received(body))
    }

    /// Anything else, such as a `StreamBody` of frames. It is dropped when its reader goes away.
    pub fn made<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BodyError>,
    {
        Self(Kind::Made(body.map_err(Into::into).boxed_unsync()))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Kind::Received(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Kind::Made(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Received(body) => body.is_end_stream(),
            Kind::Made(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(body) => body.size_hint(),
            Kind::Received(body) => body.size_hint(),
            Kind::Made(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Whole(_) => "whole",
            Kind::Received(_) => "received",
            Kind::Made(_) => "made",
        };
        f.debug_tuple("Body").field(&kind).finish()
    }
}
