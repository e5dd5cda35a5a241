//! `demo`: the scripted model of `packlight::demo`, a real sidecar in front of it, and the page. NOT what is played, NOT
//! what is judged.

use std::env;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use packlight::config::Config;
use packlight::demo::page::{Page, Paint};
use packlight::demo::{self, Ending, Sidecar, provider};
use packlight::proxy;
use packlight::proxy::admin::Admin;
use packlight::proxy::app::App;
use packlight::proxy::handle::Corridor;
use packlight::proxy::shutdown::Shutdown;
use tokio::net::TcpListener;

use super::failure::Failure;

/// Streams of the demo are over when its page is.
const GRACE: Duration = Duration::from_secs(1);

/// Plays it. A failure, and so exit code 1, unless all went as claimed.
pub(crate) fn demo() -> Result<(), Failure> {
    let environment = Config::load(None).map_err(|problems| Failure::Settings {
        file: "environment".to_owned(),
        problems: problems.iter().map(ToString::to_string).collect(),
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start the runtime: {error}")))?;
    let ended = runtime.block_on(play(&environment));
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

/// `environment`: where the model and the vectors are kept may be set there, as for `serve`.
async fn play(environment: &Config) -> Result<(), Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| Failure::Run(format!("demo: {what}: {error}"));
    let provider = provider::start().await.map_err(|error| failed("no free port", &error))?;
    let mut config = demo::settings(provider.addr).map_err(|error| failed("settings", &error))?;
    config.embeddings.model_path.clone_from(&environment.embeddings.model_path);
    config.embeddings.cache_dir.clone_from(&environment.embeddings.cache_dir);
    let (data, admin) = (listen().await?, listen().await?);
    let sidecar = Sidecar { data: data.1, admin: admin.1 };

    let shutdown = Shutdown::new(GRACE);
    let app = Arc::new(App::start(&config, shutdown.clone()).map_err(|error| failed("the sidecar", &error))?);
    let page = Admin::new(app.clone(), shutdown.clone());
    let serving = [
        tokio::spawn(proxy::serve(admin.0, None, page, shutdown.clone())),
        tokio::spawn(proxy::serve(data.0, None, Corridor(app), shutdown.clone())),
    ];

    let mut out = io::stdout();
    let held = demo::run(sidecar, &provider, &mut Page::new(&mut out, paint())).await;
    shutdown.begin();
    for task in serving {
        let _ = task.await;
    }
    match held {
        Ok(Ending::AsClaimed) => Ok(()),
        Ok(Ending::NotAsClaimed) => Err(Failure::Run("demo: not as claimed, see above".to_owned())),
        Ok(Ending::NoModel) => Err(Failure::Run("demo: no embedding model: run `make model`".to_owned())),
        Err(error) => Err(Failure::Run(format!("demo: {error}"))),
    }
}

async fn listen() -> Result<(TcpListener, SocketAddr), Failure> {
    let free = |error: io::Error| Failure::Run(format!("demo: no free port: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(free)?;
    let address = listener.local_addr().map_err(free)?;
    Ok((listener, address))
}

/// Colours only for a person: <https://no-color.org>.
fn paint() -> Paint {
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if io::stdout().is_terminal() && !is_unwanted { Paint::Ansi } else { Paint::Plain }
}
