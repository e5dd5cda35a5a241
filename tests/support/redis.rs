//! A redis-server of a test's own, killed, frozen and asked past Packlight. NOT what a
//! store does with it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use packlight::store::Redis;

/// For what must work on a busy machine; what must fail fast uses `Redis::new`, as the program does.
pub const PATIENT: Duration = Duration::from_secs(20);

/// A redis-server of this test's own.
pub struct Server {
    port: u16,
    process: Option<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    /// A free port, with nobody on it yet.
    pub fn reserved() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { port, process: None, folder: tempfile::tempdir().unwrap() }
    }

    pub fn started() -> Self {
        let mut server = Self::reserved();
        server.start();
        server
    }

    pub fn start(&mut self) {
        let process = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is missing: apt-get install redis-server (Debian), brew install redis (macOS)");
        self.process = Some(process);
        let give_up = Instant::now() + PATIENT;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < give_up, "redis-server did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// A store as the program opens it, but for a machine that is busy with tests.
    pub fn store(&self) -> Redis {
        Redis::with_deadline(&self.url(), "pl", PATIENT, Duration::ZERO).unwrap()
    }

    /// One command past the store, each word as it stands; the reply as it came.
    pub fn raw(&self, words: &[&[u8]]) -> Vec<u8> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n", word.len()).bytes());
            command.extend(*word);
            command.extend(b"\r\n");
        }
        command.extend(b"*1\r\n$4\r\nQUIT\r\n");
        socket.write_all(&command).unwrap();
        let mut reply = Vec::new();
        socket.read_to_end(&mut reply).unwrap();
        reply.strip_suffix(b"+OK\r\n").unwrap().to_vec()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
