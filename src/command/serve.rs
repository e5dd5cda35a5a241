//! `serve` and `check`: settings and signals. NOT a request.

use std::fmt::Write;
use std::path::Path;

use packlight::config::Config;
use packlight::config::problem::Problem;
use packlight::embed::Provider;
use packlight::embed::builtin::Builtin;
use packlight::proxy::shutdown::Shutdown;
use packlight::proxy::tls;
use packlight::retrieval::embedder::EmbedError;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::Serve;
use super::failure::{self, Failure};
use super::sidecar::Sidecar;
use super::{logging, runtime};

/// Serves until SIGTERM or SIGINT, then until open streams have ended or the grace is over.
pub(crate) fn serve(arguments: &Serve) -> Result<(), Failure> {
    let config = load(arguments.config.as_deref())?;
    logging::start(arguments.log_format, "info");
    runtime::run(run(config))
}

/// Says "ok" and what is configured, or everything that is wrong.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    let config = load(Some(file))?;
    if let Some(pair) = &config.server.tls {
        tls::acceptor(pair).map_err(|error| Failure::settings(Some(file), vec![error.to_string()]))?;
    }
    failure::print(&(summary(&config) + &unembedded(&config) + &unlogged(&config)))
}

/// What stands in the way of the builtin embedder. A warning and no problem: without it the sidecar serves, and a model
/// may be put there before it does.
fn unembedded(config: &Config) -> String {
    let embeddings = &config.embeddings;
    if embeddings.provider != Provider::Builtin {
        return String::new();
    }
    let found = Builtin::find(embeddings.model_path.as_deref(), embeddings.cache_dir.as_deref());
    let why = match found.map(|path| Builtin::load(&path)) {
        Some(Ok(_)) => return String::new(),
        Some(Err(error)) => format!("embeddings.model_path: {error}"),
        None => EmbedError::Absent.to_string(),
    };
    format!("warning: every request would go in full: {why}\n")
}

/// The folder that the log needs and this machine does not have. A warning and no problem: the file may be another
/// machine's, and a command that measures writes no log.
fn unlogged(config: &Config) -> String {
    let folder = config.log.decisions.as_deref().and_then(Path::parent).filter(|folder| *folder != Path::new(""));
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => format!("warning: serve would not start here: log.decisions: no folder {}\n", folder.display()),
        None => String::new(),
    }
}

/// The settings of a command.
pub(crate) fn load(file: Option<&Path>) -> Result<Config, Failure> {
    Config::load(file).map_err(|problems| Failure::settings(file, problems.iter().map(Problem::to_string).collect()))
}

async fn run(config: Config) -> Result<(), Failure> {
    let sidecar = Sidecar::start(&config).await?;
    let signals = tokio::spawn(signals(sidecar.shutdown.clone())?);
    tracing::info!(data = %sidecar.data, admin = %sidecar.admin, "listening");
    let ended = sidecar.ended().await;
    signals.abort();
    tracing::info!("stopped");
    ended
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
    for catalog in &config.catalogs {
        let (name, tools, path) = (&catalog.name, catalog.listing.len(), catalog.path.display());
        let _ = writeln!(text, "  x-packlight-catalog: {name}  {tools} tools of {path}");
        let small = config.upstreams.iter().filter(|upstream| upstream.max_tools < tools);
        for upstream in small {
            let (upstream, most) = (&upstream.name, upstream.max_tools);
            let _ = writeln!(text, "    {upstream} takes {most}: where all would be sent, what fits is");
        }
    }
    text
}
