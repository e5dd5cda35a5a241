//! The one body type of replies and upstream requests. NOT reading one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

/// What can go wrong while a body moves.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The longest read of an HTTP/1.1 connection, and the longest head: the body of a usual chat request (44 tools, 70 KB)
/// in one read and one write, where 64 KiB took two of each, and the provider was woken twice. hyper lets a connection's buffer grow to 400 KB and
/// keeps it: 200 open streams of 70 KB requests left 36 MB resident.
pub const BUFFER: usize = 96 << 10;

/// A body on its way. Received ones go through unboxed, trailers and lengths included.
pub struct Body {
    kind: Kind,
    failure: Option<Box<Failure>>,
}

/// What a body failed with, told after a pause.
struct Failure {
    error: Option<BodyError>,
    pause: Pin<Box<Sleep>>,
}

/// How long a body that fails keeps that to itself. hyper gives a connection up at once when a body fails, and with it
/// what it has not written yet: the head, and all that was said before the failure.
const LAST_WORDS: Duration = Duration::from_millis(100);

enum Kind {
    Whole(Full<Bytes>),
    Received(Incoming),
    Made(UnsyncBoxBody<Bytes, BodyError>),
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, failure: None }
    }

    pub fn empty() -> Self {
        Self::whole(Bytes::new())
    }

    /// Bytes that are all there: the length is known.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Whole(Full::new(bytes.into())))
    }

    /// As it comes from a socket.
    pub fn received(body: Incoming) -> Self {
        Self::of(Kind::Received(body))
    }

    /// Anything else, such as a `StreamBody` of frames. It is dropped when its reader goes away.
    pub fn made<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BodyError>,
    {
        Self::of(Kind::Made(body.map_err(Into::into).boxed_unsync()))
    }
}

impl Failure {
    fn of(error: BodyError) -> Box<Self> {
        Box::new(Self { error: Some(error), pause: Box::pin(sleep(LAST_WORDS)) })
    }
}

impl Kind {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self {
            Self::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Received(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Self::Made(body) => Pin::new(body).poll_frame(context),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let body = self.get_mut();
        let failure = match &mut body.failure {
            Some(failure) => failure,
            None => match body.kind.poll_frame(context) {
                Poll::Ready(Some(Err(error))) => body.failure.insert(Failure::of(error)),
                polled => return polled,
            },
        };
        ready!(failure.pause.as_mut().poll(context));
        Poll::Ready(failure.error.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Received(body) => body.is_end_stream(),
            Kind::Made(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(body) => body.size_hint(),
            Kind::Received(body) => body.size_hint(),
            Kind::Made(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Whole(_) => "whole",
            Kind::Received(_) => "received",
            Kind::Made(_) => "made",
        };
        f.debug_tuple("Body").field(&kind).finish()
    }
}
