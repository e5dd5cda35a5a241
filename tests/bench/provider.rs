//! The provider of the bench: reads a body as any provider must, JSON and all, and answers at once with a fixed
//! completion or a slow stream. NOT strict: what it is sent is checked by the tests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const COMPLETION: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1760000000,"model":"kimi-k2.6","choices":[{"index":0,"message":{"role":"assistant","content":"Done: a call with Northwind is on your list for Friday at nine."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5400,"completion_tokens":18,"total_tokens":5418,"cached_tokens":5120}}"#;
/// Asks this provider for a stream: it does not look into bodies, which would cost more the longer they are.
pub const STREAM_HEADER: &str = "x-bench-stream";
/// Milliseconds before it answers.
pub const THINK_HEADER: &str = "x-bench-think";
/// Stands in a streamed frame before the time at which it was sent.
const SENT: &str = "sent ";

/// Serves until the process ends.
pub struct Provider {
    pub address: SocketAddr,
}

impl Provider {
    /// `stream_seconds`: frames of a stream, one a second.
    pub async fn start(stream_seconds: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let _ = socket.set_nodelay(true);
                let service = service_fn(move |request| answer(request, stream_seconds));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
        });
        Self { address }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Microseconds since the first call.
pub fn micros() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64
}

/// When a streamed event left the provider, if it is one of its frames.
pub fn sent_at(event: &str) -> Option<u64> {
    let (_, rest) = event.split_once(SENT)?;
    rest.split(' ').next()?.parse().ok()
}

async fn answer(
    request: Request<Incoming>,
    stream_seconds: u64,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let streams = request.headers().contains_key(STREAM_HEADER);
    let think = request.headers().get(THINK_HEADER).and_then(|think| think.to_str().ok()?.parse().ok());
    let body = request.into_body().collect().await?.to_bytes();
    let read: serde_json::Value = serde_json::from_slice(&body).expect("a JSON body");
    std::hint::black_box(read);
    if let Some(think @ 1..) = think {
        tokio::time::sleep(Duration::from_millis(think)).await;
    }
    let (kind, body) = if streams {
        ("text/event-stream", trickle(stream_seconds))
    } else {
        ("application/json", Full::from(COMPLETION).boxed())
    };
    Ok(Response::builder().header("content-type", kind).body(body).expect("a response"))
}

fn trickle(seconds: u64) -> BoxBody<Bytes, Infallible> {
    let frames = futures_util::stream::unfold(0, move |number| async move {
        let event = |delta: &str, finish: &str| {
            format!(
                r#"data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"kimi-k2.6","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
            ) + "\n\n"
        };
        if number > seconds {
            return None;
        }
        let text = if number == seconds {
            event("{}", r#""stop""#) + "data: [DONE]\n\n"
        } else {
            tokio::time::sleep(Duration::from_secs(u64::from(number > 0))).await;
            event(&format!(r#"{{"role":"assistant","content":"{SENT}{} "}}"#, micros()), "null")
        };
        Some((Ok(Frame::data(Bytes::from(text))), number + 1))
    });
    StreamBody::new(frames).boxed()
}
