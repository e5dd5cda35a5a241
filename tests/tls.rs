//! TLS in and out: one sidecar ends TLS before the provider, another one reaches it over HTTPS with the system's roots.
//! NOT what the requests become (narrowing.rs).

mod support;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use support::provider::Provider;
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const CHAT: &str = "/kimi/v1/chat/completions";

/// A certificate for `localhost` and its key, as files and as they are.
struct Identity {
    folder: tempfile::TempDir,
    pair: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Identity {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pair = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        std::fs::write(folder.path().join("cert.pem"), pair.cert.pem()).expect("written");
        std::fs::write(folder.path().join("key.pem"), pair.signing_key.serialize_pem()).expect("written");
        Self { folder, pair }
    }

    fn cert(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }
}

#[test]
fn a_request_goes_through_tls_on_both_sides() {
    let identity = Identity::new();
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let tls = format!("{{ cert = {:?}, key = {:?} }}", identity.cert(), identity.folder.path().join("key.pem"));
    let far = Sidecar::over(&provider).set("server.tls", &tls).start();
    let url = format!("https://localhost:{}/kimi", far.data.port());
    let cert = identity.cert();
    let near =
        Sidecar::over(&provider).upstream("far", &url).env("SSL_CERT_FILE", cert.to_str().expect("a path")).start();
    let body = roster::ask_stream("send a mail").to_string();
    for _ in 0..3 {
        let answer = near.post_with("/far/v1/chat/completions", &[("x-packlight-mode", "off")], &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("done"));
    }
    assert!(provider.chats().iter().all(|chat| chat.declares("find_tools")), "the far one narrowed");
}

#[test]
fn a_certificate_that_the_system_does_not_know_is_refused() {
    let identity = Identity::new();
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let tls = format!("{{ cert = {:?}, key = {:?} }}", identity.cert(), identity.folder.path().join("key.pem"));
    let far = Sidecar::over(&provider).set("server.tls", &tls).start();
    let url = format!("https://localhost:{}/kimi", far.data.port());
    let near = Sidecar::over(&provider).upstream("far", &url).start();
    let answer = near.post("/far/v1/models", "{}");
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("far") && answer.text().to_lowercase().contains("cert"), "{}", answer.text());
    assert!(provider.received().is_empty());
}

#[test]
fn http2_is_offered_to_upstreams() {
    let identity = Identity::new();
    let key = rustls::pki_types::PrivateKeyDer::try_from(identity.pair.signing_key.serialize_der()).expect("a key");
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocols")
        .with_no_client_auth()
        .with_single_cert(vec![identity.pair.cert.der().clone()], key)
        .expect("an identity");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let agreed = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let mut connection = rustls::ServerConnection::new(Arc::new(config)).expect("a connection");
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).expect("a handshake");
        }
        connection.alpn_protocol().map(<[u8]>::to_vec)
    });
    let cert = identity.cert();
    let sidecar = Sidecar::bare()
        .upstream("kimi", &format!("https://localhost:{port}"))
        .env("SSL_CERT_FILE", cert.to_str().expect("a path"))
        .start();
    let answer = sidecar.post(CHAT, "{}");
    assert_eq!(answer.status, 502, "this server says nothing more");
    assert_eq!(agreed.join().expect("the server"), Some(b"h2".to_vec()));
}
