//! The yardstick of the relay: a second process that passes bytes between two sockets and knows nothing of HTTP. What a
//! request costs through it is what the second hop costs on this machine, whoever makes it. NOT a proxy to use.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// The argument that makes the bench's own binary the forwarder: `--forward ADDRESS`.
pub const FORWARD: &str = "--forward";

/// The process; it ends with this value.
pub struct Forwarder {
    child: Child,
    address: SocketAddr,
}

impl Forwarder {
    pub fn start(to: SocketAddr) -> Self {
        let own = std::env::current_exe().expect("the bench's own path");
        let mut child =
            Command::new(own).args([FORWARD, &to.to_string()]).stdout(Stdio::piped()).spawn().expect("a forwarder");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("its address");
        Self { child, address: line.trim().parse().expect("its address") }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Forwards until it is killed: two threads for a connection, a read and a write for each 128 KiB.
pub fn forward(to: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    for stream in listener.incoming() {
        let near = stream.expect("a connection");
        let far = TcpStream::connect(to).expect("the provider");
        for (from, into) in [(&near, &far), (&far, &near)] {
            let (mut from, mut into) = (from.try_clone().expect("a socket"), into.try_clone().expect("a socket"));
            into.set_nodelay(true).expect("an option");
            std::thread::spawn(move || {
                let mut buffer = vec![0; 128 << 10];
                while let Ok(read) = from.read(&mut buffer)
                    && read > 0
                    && into.write_all(&buffer[..read]).is_ok()
                {}
                let _ = into.shutdown(Shutdown::Write);
            });
        }
    }
}
