//! `serve` and `check`: settings, ports, signals, and the order in which things end. NOT a request.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use packlight::config::Config;
use packlight::config::problem::Problem;
use packlight::proxy::admin::Admin;
use packlight::proxy::app::App;
use packlight::proxy::handle::Corridor;
use packlight::proxy::shutdown::Shutdown;
use packlight::proxy::{self, tls};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::Serve;
use super::failure::{self, Failure};
use super::logging;

/// Serves until SIGTERM or SIGINT, then until open streams have ended or the grace is over.
pub(crate) fn serve(arguments: &Serve) -> Result<(), Failure> {
    let config = load(arguments.config.as_deref())?;
    logging::start(arguments.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start the runtime: {error}")))?;
    let ended = runtime.block_on(run(config));
    // A name lookup that hangs must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

/// Says "ok" and what is configured, or everything that is wrong.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    let config = load(Some(file))?;
    if let Some(pair) = &config.server.tls {
        tls::acceptor(pair).map_err(|error| settings(Some(file), vec![error.to_string()]))?;
    }
    failure::print(&summary(&config))
}

async fn run(config: Config) -> Result<(), Failure> {
    let acceptor = match &config.server.tls {
        Some(pair) => Some(tls::acceptor(pair).map_err(|error| settings(None, vec![error.to_string()]))?),
        None => None,
    };
    let data = bind(config.server.listen, "server.listen", "PACKLIGHT_SERVER__LISTEN").await?;
    let admin = bind(config.server.admin_listen, "server.admin_listen", "PACKLIGHT_SERVER__ADMIN_LISTEN").await?;
    let address = |listener: &TcpListener| {
        listener.local_addr().map_err(|error| Failure::Run(format!("cannot read a listener's address: {error}")))
    };
    let (data_address, admin_address) = (address(&data)?, address(&admin)?);

    let shutdown = Shutdown::new(config.server.shutdown_grace);
    let admin_shutdown = Shutdown::new(Duration::from_secs(1));
    let app = App::start(&config, shutdown.clone()).map_err(|error| Failure::Run(format!("cannot start: {error}")))?;
    let app = Arc::new(app);
    let page = Admin::new(app.clone(), shutdown.clone());
    let admin = tokio::spawn(proxy::serve(admin, None, page, admin_shutdown.clone()));
    let signals = tokio::spawn(signals(shutdown.clone())?);
    let serving = tokio::spawn(proxy::serve(data, acceptor, Corridor(app), shutdown));
    tracing::info!(data = %data_address, admin = %admin_address, "listening");

    let ended = serving.await;
    signals.abort();
    admin_shutdown.begin();
    let _ = admin.await;
    tracing::info!("stopped");
    ended.map_err(|error| Failure::Run(format!("serving ended early: {error}")))
}

/// The first signal begins the shutdown, a second one does not wait for the grace.
fn signals(shutdown: Shutdown) -> Result<impl Future<Output = ()>, Failure> {
    let watch = |kind| signal(kind).map_err(|error| Failure::Run(format!("cannot watch for signals: {error}")));
    let (mut terminate, mut interrupt) = (watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tracing::info!("shutting down: open streams may finish, a second signal cuts them");
        shutdown.begin();
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        shutdown.cut_now();
    })
}

async fn bind(address: SocketAddr, key: &str, variable: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let port = address.port();
        Failure::Run(match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("port {port} of {key} = {address} is in use: stop what uses it, or set {key} or {variable}")
            }
            _ => format!("cannot listen on {key} = {address}: {error}: set {key} or {variable}"),
        })
    })
}

fn load(file: Option<&Path>) -> Result<Config, Failure> {
    Config::load(file).map_err(|problems| settings(file, problems.iter().map(Problem::to_string).collect()))
}

fn settings(file: Option<&Path>, problems: Vec<String>) -> Failure {
    let file = file.map_or_else(|| "environment".to_owned(), |file| file.display().to_string());
    Failure::Settings { file, problems }
}

fn summary(config: &Config) -> String {
    let mut text = String::from("ok\n");
    let server = &config.server;
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    let _ = writeln!(text, "  agents  {scheme}://{}", server.listen);
    let _ = writeln!(text, "  admin   http://{}", server.admin_listen);
    for upstream in &config.upstreams {
        let narrow = &upstream.narrow;
        let mode = format!("{:?}", narrow.mode).to_lowercase();
        let _ = writeln!(
            text,
            "  {}  -> {}  ({mode} {} %, {} tools a message, deadline {} ms)",
            upstream.prefix,
            upstream.url,
            narrow.percent,
            narrow.max_retrieved_tools,
            narrow.deadline.as_millis(),
        );
    }
    text
}
