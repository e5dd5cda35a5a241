//! A model that is a script: it calls the tool its scene needs if that tool is declared, else asks `find_tools`. Speaks
//! Kimi's chat completions as a stream, refuses what Kimi refuses, and remembers what it was sent, which is what the
//! demo judges by. NOT what happens in between: it does not know that a sidecar exists.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::script::{self, Act, Heard};
use super::tokens;

/// A running scripted model; it stops when this is dropped.
#[derive(Debug)]
pub struct Provider {
    pub addr: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    _stop: DropGuard,
}

/// One call of the model.
#[derive(Debug, Clone)]
pub struct Received {
    /// When its body had arrived.
    pub at: Instant,
    /// The declared tools in order, as they came: name and bytes.
    pub tools: Vec<(String, String)>,
    /// o200k tokens of the whole body.
    pub tokens: usize,
    pub act: Act,
}

/// Starts it on a free port of this machine.
pub async fn start() -> io::Result<Provider> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let addr = listener.local_addr()?;
    let received = Arc::new(Mutex::new(Vec::new()));
    let stop = CancellationToken::new();
    tokio::spawn(accept(listener, received.clone(), stop.clone()));
    Ok(Provider { addr, received, _stop: stop.drop_guard() })
}

impl Provider {
    /// What it was sent since the last time this was asked.
    pub fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn accept(listener: TcpListener, received: Arc<Mutex<Vec<Received>>>, stop: CancellationToken) {
    while let Some(Ok((socket, _))) = stop.run_until_cancelled(listener.accept()).await {
        let (received, stop) = (received.clone(), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| reply(request, &received));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            // a client that goes away is no news here
            stop.run_until_cancelled(connection).await
        });
    }
}

async fn reply(
    request: Request<Incoming>,
    received: &Mutex<Vec<Received>>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let at = Instant::now();
    let (heard, act) = match script::hear(&body).and_then(|heard| script::act(&heard).map(|act| (heard, act))) {
        Ok(decided) => decided,
        Err(refusal) => return Ok(refuse(&refusal)),
    };
    let tokens = tokens(&String::from_utf8_lossy(&body));
    let call = heard.calls;
    let frames = stream_of(&heard, &act, call, tokens);
    let tools = heard.tools.into_iter().map(|(name, raw)| (name, raw.to_owned())).collect();
    received.lock().unwrap_or_else(PoisonError::into_inner).push(Received { at, tools, tokens, act });
    let body = StreamBody::new(stream::iter(frames.into_iter().map(|frame| Ok(Frame::data(Bytes::from(frame))))));
    let mut response = Response::new(body.boxed());
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

fn refuse(why: &str) -> Response<BoxBody<Bytes, Infallible>> {
    let body = json!({"error": {"type": "invalid_request_error", "message": why}}).to_string();
    let mut response = Response::new(http_body_util::Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// The reply as Kimi streams it: a role, then words or one call in pieces, the end with its usage, the usage again.
fn stream_of(heard: &Heard<'_>, act: &Act, call: usize, prompt: usize) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let (said, finish) = match act {
        Act::Say(words) => {
            deltas.extend(words.split_inclusive(' ').map(|word| json!({"content": word})));
            (words.clone(), "stop")
        }
        Act::Call { tool, arguments } => {
            let id = format!("{tool}:{call}");
            deltas.push(json!({"tool_calls": [{"index": 0, "id": id, "type": "function",
                "function": {"name": tool, "arguments": ""}}]}));
            let characters: Vec<char> = arguments.chars().collect();
            deltas.extend(characters.chunks(16).map(|piece| {
                json!({"tool_calls": [{"index": 0, "function": {"arguments": piece.iter().collect::<String>()}}]})
            }));
            (arguments.clone(), "tool_calls")
        }
    };
    let completion = tokens(&said);
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
    let chunk = |choices: serde_json::Value| {
        json!({"id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": heard.model,
            "choices": choices})
    };
    let mut chunks: Vec<_> =
        deltas.into_iter().map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]))).collect();
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish, "usage": usage}])));
    if heard.usage_frame {
        let mut last = chunk(json!([]));
        last["usage"] = usage;
        chunks.push(last);
    }
    let mut frames: Vec<_> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}
