//! A request that the provider refuses for what hidden exchanges left in it once their
//! memory is lost: calls whose signature stood on a hidden one, thinking of several legs
//! in one message. Agents carry on what they were shown, so without this a turn could be
//! stranded by a restart. NOT what such a body looks like (wire).

use bytes::Bytes;
use http::Response;
use hyper::body::Incoming;

use super::body::Body;
use super::coding::{self, Read};
use super::head;
use super::relay;
use crate::wire::Format;

/// An error body is not read further.
pub const ERROR_BYTES: usize = 64 << 10;

/// The body to send instead of the refused one; else the refusal as it came, marked by nobody yet.
pub async fn instead(format: Format, refused: &[u8], refusal: Response<Incoming>) -> Result<Bytes, Response<Body>> {
    let Some(mended) = std::str::from_utf8(refused).ok().and_then(|body| format.mended(body)) else {
        return Err(relay::back(refusal));
    };
    let (mut parts, error) = refusal.into_parts();
    head::strip_reply(&mut parts);
    let error = match coding::whole(error, ERROR_BYTES).await {
        Read::Whole(error) if format.may_mend(&error) => return Ok(mended.into()),
        Read::Whole(error) => Body::whole(error),
        Read::TooLong(error) => error,
        Read::Broken => Body::whole(Bytes::new()),
    };
    Err(Response::from_parts(parts, error))
}
