//! The release binary as a child process, with a folder of its own. NOT the in-process sidecar of the tests: what is
//! measured is what is shipped.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpStream;

use super::provider::Provider;

/// Killed when it goes out of scope.
pub struct Sidecar {
    child: Child,
    port: u16,
    folder: TempDir,
    /// From the start of the process to the first accepted connection.
    pub listening_after: Duration,
}

impl Sidecar {
    /// In front of `provider`, with the model or without one.
    pub async fn start(provider: &Provider, model: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = free_port();
        // The deadline is for a busy machine's first requests; a warm turn does not come near it.
        // Unnamed, it is not found: the folder is the working directory, and the cache is empty.
        let model = model.map(|path| format!("model_path = {path:?}\n")).unwrap_or_default();
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\nadmin_listen = \"127.0.0.1:{}\"\n\
             [[upstream]]\nname = \"kimi\"\nprefix = \"/kimi\"\nurl = \"http://{}\"\nmax_tools = 512\n\
             [narrow]\ndeadline = \"10s\"\n\
             [embeddings]\n{model}cache_dir = {:?}\n",
            free_port(),
            provider.address,
            folder.path().join("cache"),
        );
        let file = folder.path().join("packlight.toml");
        std::fs::write(&file, config).expect("a config");
        let begun = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_packlight"))
            .args([Path::new("serve"), Path::new("--config"), &file])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).expect("a log"))
            .spawn()
            .expect("the binary");
        let mut sidecar = Self { child, port, folder, listening_after: Duration::ZERO };
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            if let Ok(Some(status)) = sidecar.child.try_wait() {
                let log = std::fs::read_to_string(sidecar.folder.path().join("log")).unwrap_or_default();
                panic!("packlight ended with {status}: {log}");
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "packlight does not listen");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        sidecar.listening_after = begun.elapsed();
        sidecar
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/kimi{path}", self.port)
    }

    /// NaN where there is no /proc.
    pub fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1024.0)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Free a moment ago; nobody else takes ports in a bench.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
