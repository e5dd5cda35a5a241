//! Bodies that came encoded: read as a whole up to a limit, or decoded as they
//! stream. NOT encoding anything: what was decoded is sent on decoded.

use std::io;
use std::pin::Pin;

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, TryStreamExt};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, BodyStream};
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};
use tokio_util::io::{ReaderStream, StreamReader};

use super::body::{Body, BodyError};

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
    /// Several, or one that is not known.
    Unknown,
}

impl Coding {
    pub fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return if headers.contains_key(CONTENT_ENCODING) { Self::Unknown } else { Self::Identity };
        };
        match value.to_str().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Identity,
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            "br" => Self::Brotli,
            "zstd" => Self::Zstd,
            _ => Self::Unknown,
        }
    }
}

/// What came of reading a body.
pub enum Read {
    Whole(Bytes),
    /// Longer than the limit: the body as it came, what was read in front of the rest.
    TooLong(Body),
    /// It broke off.
    Broken,
}

/// Reads a body as it came, up to `limit` bytes.
pub async fn whole<B>(mut body: B, limit: usize) -> Read
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let expected = body.size_hint();
    if expected.lower() > limit as u64 {
        return Read::TooLong(Body::made(body));
    }
    let mut read = BytesMut::with_capacity(usize::try_from(expected.lower()).unwrap_or_default());
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Read::Broken };
        let Ok(data) = frame.into_data() else { continue };
        if read.is_empty() && body.is_end_stream() && data.len() <= limit {
            return Read::Whole(data);
        }
        read.extend_from_slice(&data);
        if read.len() > limit {
            let first = futures_util::stream::iter([Ok(http_body::Frame::data(read.freeze()))]);
            let rest = TryStreamExt::map_err(BodyStream::new(body), Into::into);
            return Read::TooLong(Body::made(http_body_util::StreamBody::new(first.chain(rest))));
        }
    }
    Read::Whole(read.freeze())
}

/// Decodes bytes that are all there; `None`: they are not what they say, or decode to more than `limit`.
pub async fn decoded(bytes: &Bytes, coding: Coding, limit: usize) -> Option<Bytes> {
    if coding == Coding::Identity {
        return Some(bytes.clone());
    }
    let mut out = Vec::new();
    let reader = decoder(io::Cursor::new(bytes.clone()), coding)?;
    let mut reader = reader.take(limit as u64 + 1);
    reader.read_to_end(&mut out).await.ok()?;
    (out.len() <= limit).then(|| out.into())
}

/// A reply's bytes, decoded as they come. Trailers are lost with the encoding. `None`: an unknown coding.
pub fn decoding<B>(body: B, coding: Coding) -> Option<impl Stream<Item = io::Result<Bytes>> + Send + Unpin>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let data = TryStreamExt::map_err(BodyStream::new(body), |error| io::Error::other(error.into()));
    let data = data.try_filter_map(|frame| std::future::ready(Ok(frame.into_data().ok())));
    Some(ReaderStream::new(decoder(BufReader::new(StreamReader::new(data)), coding)?))
}

fn decoder<R>(reader: R, coding: Coding) -> Option<Pin<Box<dyn AsyncRead + Send>>>
where
    R: tokio::io::AsyncBufRead + Send + Unpin + 'static,
{
    Some(match coding {
        Coding::Identity => Box::pin(reader),
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(reader);
            decoder.multiple_members(true); // RFC 1952: a file is a series of them
            Box::pin(decoder)
        }
        Coding::Deflate => Box::pin(ZlibDecoder::new(reader)),
        Coding::Brotli => Box::pin(BrotliDecoder::new(reader)),
        Coding::Zstd => {
            let mut decoder = ZstdDecoder::new(reader);
            decoder.multiple_members(true); // RFC 8878: so are its frames
            Box::pin(decoder)
        }
        Coding::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_of_several_frames_is_read_to_its_end() {
        // A frame of one raw block: magic, one byte of size, a last block of two bytes.
        let frame = |text: &[u8; 2]| [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 2, 0x11, 0, 0], text.as_slice()].concat();
        let body = Bytes::from([frame(b"he"), frame(b"re")].concat());
        assert_eq!(decoded(&body, Coding::Zstd, 100).await.as_deref(), Some(b"here".as_slice()));
    }
}
