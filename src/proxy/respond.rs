//! The one place where an error becomes a status and a body, in the caller's format, so that its SDK shows the message
//! and not a parse error. NOT logging, NOT a secret: no path, no query, no header is repeated.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, EXPECT, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode, Version};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use serde::Serialize;

use super::body::Body;
use super::upstream::SendError;
use crate::config::upstream::Upstream;
use crate::wire::Format;
use crate::wire::lent::LendError;

/// What the agent is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("packlight: no upstream has this path, the prefixes are {}", prefixes.join(", "))]
    UnknownPrefix { prefixes: Vec<String> },
    #[error("packlight: upstream {name} ({url}) cannot be reached: {why}")]
    Unreachable { name: String, url: String, why: String },
    #[error("packlight: the reply of upstream {name} cannot be used: {why}")]
    Reply { name: String, why: String },
    #[error("packlight: CONNECT is not served, set the agent's base URL and not its proxy")]
    Connect,
    #[error("packlight: the request's body broke off")]
    Body,
    #[error("packlight: x-packlight-catalog names no catalog: {}", there_are(known))]
    UnknownCatalog { known: Vec<String> },
    #[error("packlight: the request cannot be given the tools of its catalog: {0}")]
    NoRoom(#[from] LendError),
    #[error("packlight: the request is longer than server.max_body, so it cannot be given the tools of its catalog")]
    TooLong,
    #[error(
        "packlight: the content encoding of the request is not known, so it cannot be given the tools of its catalog"
    )]
    Encoding,
}

fn there_are(catalogs: &[String]) -> String {
    match catalogs {
        [] => "none is configured ([catalogs.NAME])".to_owned(),
        some => format!("there are {}", some.join(", ")),
    }
}

/// How the caller's SDK reads an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    OpenAi,
    Gemini,
    Anthropic,
}

impl Trouble {
    pub fn unknown_prefix(upstreams: &[Upstream]) -> Self {
        Self::UnknownPrefix { prefixes: upstreams.iter().map(|upstream| upstream.prefix.clone()).collect() }
    }

    pub fn unreachable(upstream: &Upstream, error: &SendError) -> Self {
        Self::Unreachable { name: upstream.name.clone(), url: upstream.url.to_string(), why: error.to_string() }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPrefix { .. } => StatusCode::NOT_FOUND,
            Self::Unreachable { .. } | Self::Reply { .. } => StatusCode::BAD_GATEWAY,
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::Body | Self::UnknownCatalog { .. } | Self::NoRoom(_) => StatusCode::BAD_REQUEST,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// OpenAI's `code`, for programs.
    fn code(&self) -> &'static str {
        match self {
            Self::UnknownPrefix { .. } => "unknown_prefix",
            Self::Unreachable { .. } => "upstream_unreachable",
            Self::Reply { .. } => "upstream_reply_broken",
            Self::Connect => "method_not_allowed",
            Self::Body => "incomplete_body",
            Self::UnknownCatalog { .. } => "unknown_catalog",
            Self::NoRoom(_) | Self::TooLong | Self::Encoding => "catalog_unusable",
        }
    }

    /// OpenAI's and Anthropic's `type`.
    fn kind(&self) -> &'static str {
        match self {
            Self::UnknownPrefix { .. } => "not_found_error",
            Self::Unreachable { .. } | Self::Reply { .. } => "api_error",
            Self::Connect | Self::Body | Self::UnknownCatalog { .. } => "invalid_request_error",
            Self::NoRoom(_) | Self::TooLong | Self::Encoding => "invalid_request_error",
        }
    }

    /// Gemini's `status`.
    fn status_name(&self) -> &'static str {
        match self {
            Self::UnknownPrefix { .. } => "NOT_FOUND",
            Self::Unreachable { .. } | Self::Reply { .. } => "UNAVAILABLE",
            Self::Connect | Self::Body | Self::UnknownCatalog { .. } => "INVALID_ARGUMENT",
            Self::NoRoom(_) | Self::TooLong | Self::Encoding => "INVALID_ARGUMENT",
        }
    }
}

/// The answer to a request whose body nobody wants. What there is of it is read first: a caller that is still sending
/// would find its connection broken and not the answer. Where that takes too long, or the caller waits to be told to
/// send, the answer says that the connection ends with it.
pub async fn unread<B>(parts: &Parts, mut body: B, mut answer: Response<Body>) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let all = async {
        let mut read = 0;
        while let Some(frame) = body.frame().await {
            read += frame.ok()?.data_ref().map_or(0, Bytes::len);
            if read > UNREAD {
                return None;
            }
        }
        Some(())
    };
    let waits = parts.headers.contains_key(EXPECT);
    let is_over = !waits && tokio::time::timeout(UNREAD_WAIT, all).await.is_ok_and(|all| all.is_some());
    if !is_over && parts.version < Version::HTTP_2 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Bytes of a body that are read for nothing, and for how long.
const UNREAD: usize = 64 << 20;
const UNREAD_WAIT: Duration = Duration::from_secs(5);

/// The answer for a caller of this path.
pub fn trouble(path: &str, trouble: &Trouble) -> Response<Body> {
    let message = trouble.to_string();
    let prefixes = match trouble {
        Trouble::UnknownPrefix { prefixes } => Some(prefixes.as_slice()),
        _ => None,
    };
    let body = match Shape::of(path) {
        Shape::OpenAi => json(&OpenAi {
            error: OpenAiError {
                message: &message,
                r#type: trouble.kind(),
                param: None,
                code: trouble.code(),
                prefixes,
            },
        }),
        Shape::Gemini => json(&Gemini {
            error: GeminiError {
                code: trouble.status().as_u16(),
                message: &message,
                status: trouble.status_name(),
                prefixes,
            },
        }),
        Shape::Anthropic => json(&Anthropic {
            r#type: "error",
            error: AnthropicError { r#type: trouble.kind(), message: &message, prefixes },
        }),
    };
    with(trouble.status(), body)
}

/// JSON with a status.
pub fn with(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Shape {
    /// Of the path below the prefix, or of the whole one. What is no chat route is guessed by its version.
    fn of(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        match Format::of_path(path) {
            Some(Format::OpenAi) => return Self::OpenAi,
            Some(Format::Gemini) => return Self::Gemini,
            Some(Format::Anthropic) => return Self::Anthropic,
            None => {}
        }
        let gemini = path.contains("/v1beta/") || path.contains("/v1alpha/") || path.contains("/upload/v1");
        if path.contains("/v1/messages/") {
            Self::Anthropic
        } else if gemini && !path.contains("/openai/") {
            Self::Gemini
        } else {
            Self::OpenAi
        }
    }
}

fn json(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

#[derive(Serialize)]
struct OpenAi<'a> {
    error: OpenAiError<'a>,
}

#[derive(Serialize)]
struct OpenAiError<'a> {
    message: &'a str,
    r#type: &'a str,
    param: Option<&'a str>,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefixes: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Gemini<'a> {
    error: GeminiError<'a>,
}

#[derive(Serialize)]
struct GeminiError<'a> {
    code: u16,
    message: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefixes: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Anthropic<'a> {
    r#type: &'a str,
    error: AnthropicError<'a>,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    r#type: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefixes: Option<&'a [String]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_s_path_tells_its_format() {
        for (path, shape) in [
            ("/v1/chat/completions?key=x", Shape::OpenAi),
            ("/v1beta/openai/chat/completions", Shape::OpenAi),
            ("/v1beta/models/m:streamGenerateContent?alt=sse", Shape::Gemini),
            ("/v1beta/files/1", Shape::Gemini),
            ("/v1beta/openai/models", Shape::OpenAi),
            ("/anthropic/v1/messages", Shape::Anthropic),
            ("/anthropic/v1/messages/count_tokens", Shape::Anthropic),
            ("/v1/models", Shape::OpenAi),
        ] {
            assert_eq!(Shape::of(path), shape, "{path}");
        }
    }
}
