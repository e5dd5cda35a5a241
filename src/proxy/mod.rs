//! The sockets: accept, hand each request to a [`Handler`], drain. NOT binding a port, NOT signals (main does), NOT
//! what a request means.

pub mod admin;
pub mod app;
pub mod asked;
pub mod binding;
pub mod body;
pub mod catalogs;
pub mod choose;
pub mod coding;
pub mod counting;
pub mod handle;
pub mod head;
pub mod history;
pub mod journal;
pub mod learnt;
pub mod ledger;
pub mod legs;
mod look;
mod mend;
pub mod readings;
pub mod recall;
pub mod record;
pub mod relay;
pub mod reply;
pub mod respond;
pub mod route;
mod sending;
pub mod sent;
pub mod shadow;
pub mod shape;
pub mod shutdown;
pub mod source;
pub mod tls;
pub mod traffic;
pub mod tunnel;
pub mod unexpected;
pub mod upstream;
pub mod way;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use body::Body;
use respond::Trouble;
use shutdown::Shutdown;

/// What answers a request. A failure is an answer too: see [`respond`].
pub trait Handler: Clone + Send + Sync + 'static {
    fn handle(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// Serves until shutdown begins; then accepts nothing more, lets what is open finish for `shutdown.grace()`, and cuts
/// what is left. Returns when nothing is left.
pub async fn serve<H: Handler>(listener: TcpListener, tls: Option<TlsAcceptor>, handler: H, shutdown: Shutdown) {
    let builder = builder();
    loop {
        let stream = tokio::select! {
            () = shutdown.begun() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most often: what is open must go on, and end, before more can come.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        // Frames of a stream leave at once: 40 ms of Nagle per token would be seen.
        let _ = stream.set_nodelay(true);
        let task = connection(builder.clone(), stream, tls.clone(), handler.clone(), shutdown.clone());
        shutdown.spawn(task);
    }
    drop(listener);
    shutdown.drained().await;
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Nothing here limits how long a reply takes: a model may reason for many minutes without a byte.
fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // It would also end idle connections, and a client that uses one at that moment sees a failure.
        .header_read_timeout(None)
        .preserve_header_case(true)
        .max_buf_size(body::BUFFER)
        .auto_date_header(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(8 << 20);
    builder
}

/// An agent that fans out over one h2 connection must not queue behind hyper's 200.
const STREAMS: u32 = 1_000;
/// hyper's 16 KiB is too little for some identity tokens.
const HEADER_LIST: u32 = 64 << 10;

async fn connection<H: Handler>(
    builder: Builder<TokioExecutor>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: H,
    shutdown: Shutdown,
) {
    let Some(tls) = tls else { return drive(builder, stream, handler, shutdown).await };
    match tokio::time::timeout(HANDSHAKE_DEADLINE, tls.accept(stream)).await {
        Ok(Ok(stream)) => drive(builder, stream, handler, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, "tls handshake failed"),
        Err(_) => tracing::debug!("tls handshake took too long"),
    }
}

async fn drive<H: Handler>(
    builder: Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: H,
    shutdown: Shutdown,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move {
            if request.method() == Method::CONNECT {
                return Ok::<_, Infallible>(respond::trouble(request.uri().path(), &Trouble::Connect));
            }
            Ok(handler.handle(request).await)
        }
    });
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.begun() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = shutdown.cut() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
