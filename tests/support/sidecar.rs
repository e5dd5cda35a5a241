//! The real binary on free ports, with a configuration of its own, stopped when
//! dropped. NOT a library call: what is tested is what is shipped.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::client::{self, Exchange, Response};
use super::provider::Provider;
use super::reply::Reply;
use super::{PATIENCE, eventually};

/// A configuration in the making.
pub struct Builder {
    keys: Vec<(String, String)>,
    upstreams: String,
    tail: String,
    whole: Option<String>,
    env: Vec<(String, String)>,
    folder: Option<Arc<tempfile::TempDir>>,
    away: bool,
}

/// A sidecar that serves.
pub struct Sidecar {
    child: Child,
    log: Arc<Mutex<String>>,
    pub data: SocketAddr,
    pub admin: SocketAddr,
    /// Holds the configuration and the vectors; give it to another sidecar's `folder` to share them.
    pub folder: Arc<tempfile::TempDir>,
}

impl Builder {
    /// One key by its dotted name; `value` is TOML (`"3"`, `"\"shadow\""`).
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.keys.retain(|(k, _)| k != key);
        self.keys.push((key.into(), value.into()));
        self
    }

    /// TOML behind the upstreams: keys of the last upstream first, then tables.
    pub fn tail(mut self, toml: &str) -> Self {
        self.tail += toml;
        self
    }

    /// This file and nothing else. `listen` and `admin_listen` should name port 0.
    pub fn config(mut self, toml: &str) -> Self {
        self.whole = Some(toml.into());
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Far from the repository, where there is no model to be found.
    pub fn away(mut self) -> Self {
        self.away = true;
        self
    }

    /// Keeps its files there, beside those of another.
    pub fn folder(mut self, folder: &Arc<tempfile::TempDir>) -> Self {
        self.folder = Some(Arc::clone(folder));
        self
    }

    /// Starts it and waits until it answers.
    pub fn start(self) -> Sidecar {
        let (mut child, log, folder) = self.spawn();
        let start = Instant::now();
        let (data, admin) = loop {
            if let Some(found) = addresses(&log.lock().unwrap()) {
                break found;
            }
            if let Ok(Some(status)) = child.try_wait() {
                panic!("it stopped with {status}:\n{}", log.lock().unwrap());
            }
            if start.elapsed() > PATIENCE {
                let _ = child.kill();
                panic!("it never listened:\n{}", log.lock().unwrap());
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let sidecar = Sidecar { child, log, data, admin, folder };
        eventually("healthy", || (client::send(admin, "GET", "/healthz", &[], b"").status == 200).then_some(()));
        sidecar
    }

    /// Starts it with a configuration that it must refuse; its exit and what it wrote.
    pub fn start_and_fail(self) -> (ExitStatus, String) {
        let (mut child, log, _folder) = self.spawn();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("its state") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                let _ = child.kill();
                panic!("it did not stop:\n{}", log.lock().unwrap());
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        // The pipe may hold what the reading thread has not seen yet.
        let text = eventually("its last words", || Some(log.lock().unwrap().clone()).filter(|l| !l.is_empty()));
        (status, text)
    }

    fn spawn(self) -> (Child, Arc<Mutex<String>>, Arc<tempfile::TempDir>) {
        let folder = self.folder.clone().unwrap_or_else(|| Arc::new(tempfile::tempdir().expect("a folder")));
        let name = format!("{}.toml", std::time::UNIX_EPOCH.elapsed().expect("a clock").as_nanos());
        let file = folder.path().join(name);
        std::fs::write(&file, self.text(&folder)).expect("a config file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
        // Nothing of the developer's own environment may reach the test.
        for (key, _) in std::env::vars().filter(|(k, _)| k.starts_with("PACKLIGHT_") || k.ends_with("_PROXY")) {
            command.env_remove(key);
        }
        command.env_remove("AI_EMBEDDINGS_MODEL").env_remove("RUST_LOG");
        if self.away {
            command.current_dir(folder.path());
        }
        command.args(["serve", "--config"]).arg(&file).envs(self.env);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        keep(BufReader::new(out), &log);
        keep(BufReader::new(err), &log);
        (child, log, folder)
    }

    fn text(&self, folder: &tempfile::TempDir) -> String {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let mut text = String::new();
        for (key, value) in &self.keys {
            text += &format!("{key} = {value}\n");
        }
        if !self.keys.iter().any(|(k, _)| k == "embeddings.cache_dir") {
            text += &format!("embeddings.cache_dir = {:?}\n", folder.path().join("cache"));
        }
        text + &self.upstreams + &self.tail
    }
}

/// [`Sidecar::over`], narrowing the tests' roster: three tools are retrieved, and a block that holds the best is kept.
pub fn over(provider: &Provider) -> Builder {
    Sidecar::over(provider).set("narrow.max_retrieved_tools", "3").set("narrow.sticky_need", "1")
}

/// The sidecar before a provider that plays this script.
pub fn play(replies: impl IntoIterator<Item = Reply>) -> (Provider, Sidecar) {
    let provider = Provider::new().replies(replies).start();
    let sidecar = over(&provider).start();
    (provider, sidecar)
}

impl Sidecar {
    /// Kimi and Gemini are this provider, and so is the embedder; nothing hurries. The block itself changes: what `auto`
    /// takes instead depends on models, prices and sizes, and has tests of its own.
    pub fn over(provider: &Provider) -> Builder {
        let url = provider.url();
        Self::bare()
            .set("embeddings.provider", "\"openai\"")
            .set("embeddings.model", "\"bag-of-words\"")
            .set("embeddings.url", &format!("\"{url}/v1\""))
            .set("embeddings.timeout", "\"20s\"")
            .set("narrow.binding", "\"replace\"")
            .upstream("kimi", &url)
            .upstream("gemini", &url)
    }

    /// No upstream yet.
    pub fn bare() -> Builder {
        let builder = Builder {
            keys: Vec::new(),
            upstreams: String::new(),
            tail: String::new(),
            whole: None,
            env: Vec::new(),
            folder: None,
            away: false,
        };
        builder
            .set("server.listen", "\"127.0.0.1:0\"")
            .set("server.admin_listen", "\"127.0.0.1:0\"")
            .set("narrow.deadline", "\"20s\"")
    }

    /// The base URL of an upstream's prefix: `http://127.0.0.1:PORT/kimi`.
    pub fn base(&self, upstream: &str) -> String {
        format!("http://{}/{upstream}", self.data)
    }

    /// Posts JSON to the data port.
    pub fn post(&self, path: &str, body: &str) -> Response {
        self.post_with(path, &[], body)
    }

    /// The same with these headers.
    pub fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        self.open(path, headers, body).finish()
    }

    /// Posts JSON and leaves the body to be read.
    pub fn open(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Exchange {
        let mut all = vec![("content-type", "application/json"), ("authorization", "Bearer sk-test")];
        all.extend_from_slice(headers);
        Exchange::open(self.data, "POST", path, &all, body.as_bytes())
    }

    /// Gets a page of the admin port.
    pub fn admin(&self, path: &str) -> Response {
        client::send(self.admin, "GET", path, &[], b"")
    }

    pub fn metrics(&self) -> Metrics {
        Metrics(self.admin("/metrics").text())
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(killed.is_ok_and(|s| s.success()), "SIGTERM could not be sent");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        eventually("the end", || self.child.try_wait().expect("its state"))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Builder {
    /// Adds `/{name}` before this server.
    pub fn upstream(mut self, name: &str, url: &str) -> Self {
        self.upstreams += &format!("\n[[upstream]]\nname = \"{name}\"\nprefix = \"/{name}\"\nurl = \"{url}\"\n");
        self.upstreams += match name {
            "gemini" => "max_tools = 512\n",
            _ => "max_tools = 128\n",
        };
        self
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the sidecar's log ---\n{}", self.log());
        }
    }
}

/// One reading of `/metrics`.
pub struct Metrics(pub String);

impl Metrics {
    /// The sum over all series of that name whose labels include these.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let series = self.0.lines().filter(|line| {
            let rest = line.strip_prefix(name).unwrap_or_default();
            (rest.starts_with('{') || rest.starts_with(' '))
                && labels.iter().all(|(k, v)| {
                    let pair = format!("{k}=\"{v}\"");
                    rest.contains(&format!("{{{pair}")) || rest.contains(&format!(",{pair}"))
                })
        });
        series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

fn keep(reader: impl BufRead + Send + 'static, log: &Arc<Mutex<String>>) {
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in reader.lines().map_while(Result::ok) {
            let mut log = log.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    });
}

/// The two addresses in the line `listening`, be it text or JSON.
fn addresses(log: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line = log.lines().find(|line| line.contains("listening") && line.contains("127.0.0.1:"))?;
    let plain = plain(line);
    Some((address(&plain, "data")?, address(&plain, "admin")?))
}

fn address(line: &str, field: &str) -> Option<SocketAddr> {
    let marks = [format!("{field}="), format!("\"{field}\":")];
    let rest = marks.iter().find_map(|mark| line.split_once(mark.as_str()).map(|(_, rest)| rest))?;
    let end = rest.trim_start_matches('"');
    end.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').next()?.parse().ok()
}

/// Without the colours of a terminal.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain += before;
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}
