//! The whole sidecar in this process: ports, handles, both servers, and the order in which they end. NOT signals, NOT a
//! request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use packlight::config::Config;
use packlight::proxy::admin::Admin;
use packlight::proxy::app::{App, StartError};
use packlight::proxy::handle::Corridor;
use packlight::proxy::shutdown::Shutdown;
use packlight::proxy::{self, tls};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::failure::Failure;

/// A sidecar that serves.
pub(crate) struct Sidecar {
    /// The real addresses: port 0 has become one.
    pub data: SocketAddr,
    pub admin: SocketAddr,
    /// Begins its end.
    pub shutdown: Shutdown,
    serving: JoinHandle<()>,
    page: JoinHandle<()>,
    page_shutdown: Shutdown,
}

impl Sidecar {
    /// Binds both ports and serves. The embedding model is loaded behind it.
    pub(crate) async fn start(config: &Config) -> Result<Self, Failure> {
        let wrong = |error: tls::TlsError| Failure::settings(None, vec![error.to_string()]);
        let acceptor = config.server.tls.as_ref().map(tls::acceptor).transpose().map_err(wrong)?;
        let data = bind(config.server.listen, "server.listen", "PACKLIGHT_SERVER__LISTEN").await?;
        let admin = bind(config.server.admin_listen, "server.admin_listen", "PACKLIGHT_SERVER__ADMIN_LISTEN").await?;
        let (data_address, admin_address) = (address(&data)?, address(&admin)?);

        let shutdown = Shutdown::new(config.server.shutdown_grace);
        let page_shutdown = Shutdown::new(PAGE_GRACE);
        let app = App::start(config, shutdown.clone());
        let app = Arc::new(app.map_err(|error| unstarted(config, &error))?);
        let page = Admin::new(app.clone(), shutdown.clone());
        Ok(Self {
            data: data_address,
            admin: admin_address,
            page: tokio::spawn(proxy::serve(admin, None, page, page_shutdown.clone())),
            serving: tokio::spawn(proxy::serve(data, acceptor, Corridor(app), shutdown.clone())),
            shutdown,
            page_shutdown,
        })
    }

    /// Waits for its end. The admin port stays until the last stream has ended.
    pub(crate) async fn ended(self) -> Result<(), Failure> {
        let ended = self.serving.await;
        self.page_shutdown.begin();
        let _ = self.page.await;
        ended.map_err(|error| Failure::Run(format!("serving ended early: {error}")))
    }
}

/// An error of the system names no file.
fn unstarted(config: &Config, error: &StartError) -> Failure {
    let text = match (error, &config.log.decisions) {
        (StartError::Journal(error), Some(path)) => {
            format!("log.decisions = {} cannot be written: {error}", path.display())
        }
        _ => error.to_string(),
    };
    Failure::Run(format!("cannot start: {text}"))
}

const PAGE_GRACE: Duration = Duration::from_secs(1);

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

fn address(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener.local_addr().map_err(|error| Failure::Run(format!("cannot read a listener's address: {error}")))
}
