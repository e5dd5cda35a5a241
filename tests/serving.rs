//! The process: how it starts, what it says when it cannot, and how it ends.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use support::client::{self, Exchange};
use support::provider::{Connection, Provider};
use support::sidecar::Sidecar;
use support::{PATIENCE, eventually};

const OPEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A provider whose stream says "one", and "two" once it is told to; and the way to tell it.
fn stream() -> (Provider, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let run = move |connection: &mut Connection| {
        let _ = connection.writer.write_all(OPEN);
        let _ = connection.writer.write_all(b"3\r\none\r\n");
        let _ = wait.lock().unwrap().recv_timeout(PATIENCE);
        let _ = connection.writer.write_all(b"3\r\ntwo\r\n0\r\n\r\n");
    };
    (Provider::new().hijack("/v1/stream", run).start(), go)
}

fn before(provider: &Provider) -> Sidecar {
    Sidecar::bare().upstream("kimi", &provider.url()).start()
}

#[test]
fn shutdown_lets_an_open_stream_finish() {
    let (provider, go) = stream();
    let mut sidecar = before(&provider);
    let mut exchange = Exchange::open(sidecar.data, "GET", "/kimi/v1/stream", &[], b"");
    exchange.read_until("one");
    sidecar.terminate();
    eventually("the port is closed", || TcpStream::connect(sidecar.data).is_err().then_some(()));
    // It is still there for whoever asks how it is, and says that it is going.
    let ready = sidecar.admin("/readyz");
    assert_eq!((ready.status, ready.json()["status"].as_str()), (503, Some("shutting down")));
    go.send(()).unwrap();
    let answer = exchange.finish();
    assert_eq!((answer.text().as_str(), answer.complete), ("onetwo", true));
    assert!(sidecar.wait().success());
}

#[test]
fn after_the_grace_an_open_stream_is_cut() {
    let (provider, _go) = stream();
    let mut sidecar =
        Sidecar::bare().set("server.shutdown_grace", "\"200ms\"").upstream("kimi", &provider.url()).start();
    let mut exchange = Exchange::open(sidecar.data, "GET", "/kimi/v1/stream", &[], b"");
    exchange.read_until("one");
    sidecar.terminate();
    let answer = exchange.finish();
    assert_eq!((answer.text().as_str(), answer.complete), ("one", false));
    assert!(sidecar.wait().success());
    assert!(sidecar.log().contains("cutting what is still open"), "{}", sidecar.log());
}

#[test]
fn an_idle_connection_does_not_hold_up_the_end() {
    let provider = Provider::new().start();
    let mut sidecar = before(&provider);
    let mut idle = TcpStream::connect(sidecar.data).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    idle.write_all(b"GET /kimi/v1/models HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(Exchange::read_head(idle.try_clone().unwrap()).finish().status, 200);
    let start = Instant::now();
    sidecar.terminate();
    assert!(sidecar.wait().success());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_client_that_leaves_takes_the_provider_s_work_with_it() {
    let gone = Arc::new(AtomicBool::new(false));
    let arrived = Arc::new(AtomicUsize::new(0));
    let (seen, counter) = (Arc::clone(&gone), Arc::clone(&arrived));
    let run = move |connection: &mut Connection| {
        counter.fetch_add(1, Ordering::SeqCst);
        let mut rest = Vec::new();
        if connection.head.path.ends_with("/stream") {
            let _ = connection.writer.write_all(OPEN);
            let _ = connection.writer.write_all(b"3\r\none\r\n");
        }
        // Ends when the other side closes: nothing more is ever sent.
        let _ = connection.reader.read_to_end(&mut rest);
        seen.store(true, Ordering::SeqCst);
    };
    let provider = Provider::new().hijack("/v1/", run).start();
    let sidecar = before(&provider);
    let mut exchange = Exchange::open(sidecar.data, "GET", "/kimi/v1/stream", &[], b"");
    exchange.read_until("one");
    drop(exchange);
    eventually("the streamed request is cancelled", || gone.swap(false, Ordering::SeqCst).then_some(()));

    let mut waiting = TcpStream::connect(sidecar.data).unwrap();
    waiting.write_all(b"GET /kimi/v1/whole HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    eventually("the request arrives", || (arrived.load(Ordering::SeqCst) == 2).then_some(()));
    drop(waiting);
    eventually("the request without a reply is cancelled", || gone.load(Ordering::SeqCst).then_some(()));
}

#[test]
fn a_slow_client_slows_the_provider_and_fills_no_memory() {
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let run = move |connection: &mut Connection| {
        let _ = connection.writer.set_write_timeout(Some(PATIENCE));
        let _ = connection.writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
        while connection.writer.write_all(&[7; 64 << 10]).is_ok() {
            counter.fetch_add(64 << 10, Ordering::SeqCst);
        }
    };
    let provider = Provider::new().hijack("/v1/huge", run).start();
    let sidecar = before(&provider);
    let exchange = Exchange::open(sidecar.data, "GET", "/kimi/v1/huge", &[], b"");
    // Nobody reads: what is under way fills the sockets' buffers and stops.
    let mut last = (0, Instant::now());
    eventually("the provider is held back", || {
        let now = written.load(Ordering::SeqCst);
        if now != last.0 {
            last = (now, Instant::now());
        }
        (now > 0 && last.1.elapsed() > Duration::from_millis(500)).then_some(())
    });
    assert!(written.load(Ordering::SeqCst) < 32 << 20, "{} bytes under way", written.load(Ordering::SeqCst));
    drop(exchange);
}

#[test]
fn an_unknown_prefix_is_told_the_known_ones() {
    let provider = Provider::new().start();
    let sidecar = Sidecar::bare().upstream("kimi", &provider.url()).upstream("gemini", &provider.url()).start();
    for path in ["/", "/v1/chat/completions", "/kim/v1/chat/completions", "/kimiv1", "//kimi/v1"] {
        let answer = client::send(sidecar.data, "POST", path, &[], b"{}");
        assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/json")), "{path}");
        let error = &answer.json()["error"];
        assert_eq!(error["prefixes"], serde_json::json!(["/kimi", "/gemini"]));
        let message = "packlight: no upstream has this path, the prefixes are /kimi, /gemini";
        assert_eq!((error["message"].as_str(), error["code"].as_str()), (Some(message), Some("unknown_prefix")));
    }
    assert!(provider.received().is_empty());
}

#[test]
fn a_connection_serves_on_behind_an_answer_that_needed_no_body() {
    use std::io::{Read, Write};
    let provider = Provider::new().start();
    let sidecar = Sidecar::bare().upstream("kimi", &provider.url()).start();
    let mut stream = std::net::TcpStream::connect(sidecar.data).unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let body = vec![b'x'; 3 << 20];
    for _ in 0..2 {
        stream
            .write_all(
                format!("POST /kim/v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(),
            )
            .unwrap();
        stream.write_all(&body).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            let mut some = [0; 1024];
            let read = stream.read(&mut some).unwrap();
            assert!(read > 0, "closed: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&some[..read]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 404"), "{}", String::from_utf8_lossy(&answer));
    }
    // One that waits to be told to send is answered at once, and told that this was all.
    stream
        .write_all(b"POST /kim/v1/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("connection: close"), "{answer}");
}

#[test]
fn an_upstream_out_of_reach_answers_in_the_caller_s_shape_without_secrets() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}");
    let sidecar = Sidecar::bare().upstream("kimi", &url).upstream("gemini", &url).start();
    let headers = [("authorization", "Bearer sk-secret"), ("x-goog-api-key", "AIza-secret")];
    let ask = |path: &str| client::send(sidecar.data, "POST", path, &headers, br#"{"contents":[],"messages":[]}"#);

    let openai = ask("/kimi/v1/chat/completions");
    let message = format!("packlight: upstream kimi ({url}) cannot be reached: Connection refused (os error 111)");
    assert_eq!(openai.status, 502);
    assert_eq!(
        openai.json(),
        serde_json::json!({"error": {
            "message": message, "type": "api_error", "param": null, "code": "upstream_unreachable"
        }})
    );

    let gemini = ask("/gemini/v1beta/models/m:generateContent?key=AIza-secret");
    let message = message.replace("kimi", "gemini");
    assert_eq!(gemini.status, 502);
    let expected = serde_json::json!({"error": {"code": 502, "message": message, "status": "UNAVAILABLE"}});
    assert_eq!(gemini.json(), expected);

    let other = ask("/gemini/v1beta/files?key=AIza-secret");
    assert_eq!((other.status, other.json()), (502, expected));
    for text in [openai.text(), gemini.text(), other.text(), sidecar.log()] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_said_to_be_one() {
    let sidecar = Sidecar::bare().upstream("kimi", "http://no-such-host.invalid").start();
    let answer = client::send(sidecar.data, "GET", "/kimi/v1/models", &[], b"");
    assert_eq!(answer.status, 502);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("packlight: upstream kimi (http://no-such-host.invalid) cannot be reached: "),
        "{message}"
    );
}

#[test]
fn connect_is_refused() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    let answer = client::send_raw(sidecar.data, b"CONNECT api.moonshot.ai:443 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(answer.status, 405);
    assert!(answer.text().contains("base URL"), "{}", answer.text());
}

#[test]
fn what_is_not_http_does_not_disturb_anyone() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    for rubbish in
        [&b"\x16\x03\x01\x02\x00\x01"[..], b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\0\0\0\0\0\0\0\0"]
    {
        let mut stream = TcpStream::connect(sidecar.data).unwrap();
        let _ = stream.write_all(rubbish);
        drop(stream);
    }
    assert_eq!(client::send(sidecar.data, "GET", "/kimi/v1/models", &[], b"").status, 200);
}

#[test]
fn a_port_in_use_is_named_with_the_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (status, log) = Sidecar::bare().set("server.listen", &format!("\"{address}\"")).start_and_fail();
    assert_eq!(status.code(), Some(1));
    let message = format!(
        "packlight: port {} of server.listen = {address} is in use: stop what uses it, or set server.listen or \
         PACKLIGHT_SERVER__LISTEN",
        address.port()
    );
    assert!(log.contains(&message), "{log}");
}

#[test]
fn a_bad_configuration_stops_the_start_with_every_problem() {
    let toml = "[server]\nlisten = \"localhost\"\n[narow]\npercent = 101\n[narrow]\npercnt = 3\n";
    let (status, log) = Sidecar::bare().config(toml).env("PACKLIGHT_NARROW__MODE", "on").start_and_fail();
    assert_eq!(status.code(), Some(64));
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].starts_with("packlight: ") && lines[0].ends_with(".toml: 4 problems"), "{log}");
    assert_eq!(
        lines[1..],
        [
            "  line 2: server.listen: `localhost` is not an IP address and a port, such as 127.0.0.1:8787",
            "  line 3: narow: unknown key, did you mean narrow?",
            "  line 6: narrow.percnt: unknown key, did you mean narrow.percent?",
            "  PACKLIGHT_NARROW__MODE: narrow.mode: must be one of off, shadow, narrow, not `on`",
        ]
    );
}

fn packlight(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
    for (key, _) in std::env::vars().filter(|(key, _)| key.starts_with("PACKLIGHT_")) {
        command.env_remove(key);
    }
    let output = command.args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn check_says_ok_or_everything_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packlight.toml");
    let path = file.to_str().unwrap();
    std::fs::write(&file, "[narrow]\nmode = \"shadow\"\n").unwrap();
    let (code, out, err) = packlight(&["check", path]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().next(), Some("ok"));
    assert!(out.contains("/kimi  -> https://api.moonshot.ai  (shadow 100 %"), "{out}");

    std::fs::write(&file, "[narrow]\nmodes = 1\n[prices.x]\ninput = 1\n").unwrap();
    let (code, out, err) = packlight(&["check", path]);
    assert_eq!((code, out.as_str()), (Some(64), ""));
    assert_eq!(
        err,
        format!(
            "packlight: {path}: 2 problems\n  line 2: narrow.modes: unknown key, did you mean narrow.mode?\n  \
         line 3: prices.x.output: must be given, in USD per million tokens\n"
        )
    );

    let missing = folder.path().join("missing.toml");
    let (code, _, err) = packlight(&["check", missing.to_str().unwrap()]);
    assert_eq!(code, Some(64));
    assert!(err.contains("cannot read") && err.contains("No such file"), "{err}");
}

#[test]
fn check_warns_where_there_is_no_model() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other.bin"), b"x").unwrap();
    let check = |toml: &str| {
        std::fs::write(folder.path().join("packlight.toml"), toml).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_packlight"));
        command.env_clear().current_dir(folder.path()).args(["check", "packlight.toml"]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let absent = "warning: every request would go in full: no embedding model is loaded: run `make model` or set \
                  embeddings.model_path\n";
    let (code, out) = check("");
    assert!(code == Some(0) && out.starts_with("ok\n") && out.ends_with(absent), "{out}");
    let wrong = "warning: every request would go in full: embeddings.model_path: other.bin is not the model file: it \
                 has 1 bytes instead of 71622400; `make model` fetches it\n";
    let (code, out) = check("[embeddings]\nmodel_path = \"other.bin\"\n");
    assert!(code == Some(0) && out.ends_with(wrong), "{out}");
    let (code, out) = check("[embeddings]\nprovider = \"openai\"\nurl = \"http://127.0.0.1:1/v1\"\n");
    assert!(code == Some(0) && !out.contains("warning"), "{out}");
}

#[test]
fn wrong_arguments_are_64_and_help_is_0() {
    assert_eq!(packlight(&["serv"]).0, Some(64));
    assert_eq!(packlight(&["serve", "--confg", "x"]).0, Some(64));
    assert_eq!(packlight(&["check"]).0, Some(64));
    let (code, out, _) = packlight(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("check") && out.contains("serve"), "{out}");
    assert_eq!(packlight(&["--version"]).0, Some(0));
}

#[test]
fn the_admin_port_shows_itself_and_nothing_else() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    assert_eq!(sidecar.admin("/healthz").text(), "ok\n");
    let ready = sidecar.admin("/readyz");
    assert_eq!((ready.status, ready.json()["status"].as_str()), (200, Some("serving")));
    assert!(["ready", "loading", "absent"].contains(&ready.json()["embedder"].as_str().unwrap()), "{}", ready.text());
    assert_eq!(ready.json()["upstreams"][0]["name"], "kimi");
    let metrics = sidecar.admin("/metrics");
    assert_eq!(
        (metrics.status, metrics.header("content-type")),
        (200, Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    assert!(sidecar.admin("/decisions").json().is_array());
    assert_eq!(sidecar.admin("/kimi/v1/models").status, 404);
    assert_eq!(client::send(sidecar.admin, "POST", "/metrics", &[], b"x").status, 405);
    assert_eq!(client::send(sidecar.data, "GET", "/metrics", &[], b"").status, 404);
    assert!(provider.received().is_empty());
}
