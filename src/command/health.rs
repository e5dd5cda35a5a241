//! `health`: is the sidecar of this configuration up? For a container's HEALTHCHECK, which has no curl. NOT readiness:
//! a sidecar without its model serves, and must not be restarted for it.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::failure::Failure;
use super::serve;

/// Asks `/healthz` of the admin port. A failure unless it answers 200.
pub(crate) fn health(config: Option<&Path>) -> Result<(), Failure> {
    let address = reachable(serve::load(config)?.server.admin_listen);
    let failed = |why: String| Failure::Run(format!("health: {address}: {why}"));
    let answer = ask(address)
        .map_err(|error| failed(format!("{error}: does it serve, and with this admin_listen (--config)?")))?;
    if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(failed("it does not say that it is well".to_owned())) }
}

const PATIENCE: Duration = Duration::from_secs(2);

fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(4096).read_to_string(&mut answer)?;
    Ok(answer)
}

/// Where a socket that listens everywhere is reached from this machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
