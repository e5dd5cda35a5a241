//! TLS in and out: the data port's certificate, the system's roots, and connecting within a deadline. NOT HTTP.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::body::BodyError;
use crate::config::server::Tls;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("server.tls.cert: {path} is not a PEM certificate chain: {why}")]
    Cert { path: String, why: String },
    #[error("server.tls.key: {path} is not a PEM private key: {why}")]
    Key { path: String, why: String },
    #[error("server.tls: the certificate and the key do not go together: {0}")]
    Pair(String),
    #[error("no TLS for upstreams: {0}")]
    Client(String),
}

/// TLS for the data port: HTTP/2 and HTTP/1.1.
pub fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let cert = |why: String| TlsError::Cert { path: tls.cert.display().to_string(), why };
    let chain = CertificateDer::pem_file_iter(&tls.cert).map_err(|error| cert(error.to_string()))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(|error| cert(error.to_string()))?;
    if chain.is_empty() {
        return Err(cert("it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| TlsError::Key { path: tls.key.display().to_string(), why: error.to_string() })?;
    let pair = |error: rustls::Error| TlsError::Pair(error.to_string());
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The system's roots (`SSL_CERT_FILE` and `SSL_CERT_DIR` are heard). Says once when there are none.
pub fn roots() -> Arc<RootCertStore> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        tracing::warn!(errors = errors.join("; "), "{NO_ROOTS}");
    }
    Arc::new(store)
}

const NO_ROOTS: &str = "no root certificates on this machine: https upstreams cannot be reached until \
                        ca-certificates is installed or SSL_CERT_FILE names a bundle";

/// Which HTTP versions are offered to a server that speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    All,
    Http1,
}

/// Connects to `http` and `https` addresses, name lookup and handshake included, within [`CONNECT_DEADLINE`].
#[derive(Debug, Clone)]
pub struct Connector {
    inner: HttpsConnector<HttpConnector>,
    rooted: bool,
}

/// The only deadline of an upstream call: after it, the provider takes its time.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

impl Connector {
    pub fn new(roots: Option<Arc<RootCertStore>>, offered: Offered) -> Result<Self, TlsError> {
        let rooted = roots.as_ref().is_some_and(|roots| !roots.is_empty());
        let roots = roots.unwrap_or_else(|| Arc::new(RootCertStore::empty()));
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(Duration::from_secs(60)));
        let builder = HttpsConnectorBuilder::new().with_tls_config(client_config(roots)?).https_or_http();
        let inner = match offered {
            Offered::All => builder.enable_all_versions().wrap_connector(http),
            Offered::Http1 => builder.enable_http1().wrap_connector(http),
        };
        Ok(Self { inner, rooted })
    }
}

fn client_config(roots: Arc<RootCertStore>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Client(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BodyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BodyError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if uri.scheme() == Some(&Scheme::HTTPS) && !self.rooted {
            return Box::pin(async { Err(BodyError::from(NO_ROOTS)) });
        }
        let connecting = self.inner.call(uri);
        Box::pin(async move {
            let late = || BodyError::from(format!("no connection within {} s", CONNECT_DEADLINE.as_secs()));
            tokio::time::timeout(CONNECT_DEADLINE, connecting).await.map_err(|_| late())?
        })
    }
}
