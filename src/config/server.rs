//! The two ports and what holds for every request. NOT upstreams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::read::{self, Section};
use super::source::Node;

/// `[server]`.
#[derive(Debug, Clone)]
pub struct Server {
    /// Data port; port 0: any free one.
    pub listen: SocketAddr,
    /// `/metrics`, `/healthz`, `/readyz`, `/decisions`.
    pub admin_listen: SocketAddr,
    /// Bytes of a request body that is read; a longer one is relayed.
    pub max_body: usize,
    /// How long open streams may go on once shutdown has begun.
    pub shutdown_grace: Duration,
    /// TLS on the data port.
    pub tls: Option<Tls>,
}

/// PEM files of the data port's certificate chain and key.
#[derive(Debug, Clone)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            admin_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9787)),
            max_body: 64 << 20,
            shutdown_grace: Duration::from_secs(30),
            tls: None,
        }
    }
}

impl Server {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let mut server = Self::default();
        section.take("listen", &mut server.listen, address);
        section.take("admin_listen", &mut server.admin_listen, address);
        section.take("max_body", &mut server.max_body, read::size);
        section.take("shutdown_grace", &mut server.shutdown_grace, read::duration);
        if overlap(server.listen, server.admin_listen) {
            section.report("admin_listen", format!("{} is the data port already", server.listen));
        }
        let given = section.has("tls");
        let tls = section.section("tls");
        if given {
            server.tls = read_tls(tls);
        } else {
            tls.finish();
        }
        section.finish();
        server
    }
}

/// Would the second of the two be refused its port? `0.0.0.0` stands for every IPv4 address of the machine, and `::`, as
/// Linux binds it, for those of both kinds. Port 0 is a free one.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
    let (a, b) = (one.ip(), other.ip());
    one.port() == other.port() && one.port() != 0 && (a == b || covers(a, b) || covers(b, a))
}

fn read_tls(mut section: Section<'_>) -> Option<Tls> {
    let (mut cert, mut key) = (None, None);
    section.take_path("cert", &mut cert);
    section.take_path("key", &mut key);
    for (name, path) in [("cert", &cert), ("key", &key)] {
        match path {
            None => section.report(name, "must be the path of a PEM file"),
            Some(path) if !path.is_file() => section.report(name, format!("there is no file {}", path.display())),
            Some(_) => {}
        }
    }
    section.finish();
    Some(Tls { cert: cert?, key: key? })
}

fn address(node: &Node) -> Result<SocketAddr, String> {
    let given = read::text(node)?;
    given.parse().map_err(|_| format!("`{given}` is not an IP address and a port, such as 127.0.0.1:8787"))
}
