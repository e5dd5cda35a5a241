//! Bytes in, bytes out, for all that Packlight does not own: every method, status, header, framing, path and size.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use support::client::{self, Exchange};
use support::provider::{Connection, Provider};
use support::received::Received;
use support::sidecar::Sidecar;
use support::{PATIENCE, eventually};

/// A sidecar with `/kimi` before this provider.
fn before(provider: &Provider) -> Sidecar {
    Sidecar::bare().upstream("kimi", &provider.url()).away().start()
}

/// A provider that answers every request under `/v1` with these bytes, and what it got.
fn saying(reply: &'static [u8]) -> (Provider, Arc<Mutex<Vec<Received>>>) {
    let got = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&got);
    let run = move |connection: &mut Connection| {
        let Connection { head, reader, writer } = connection;
        if head.read_body(reader).is_some() {
            kept.lock().unwrap().push(head.clone());
            let _ = writer.write_all(reply);
        }
    };
    (Provider::new().hijack("/v1", run).start(), got)
}

/// Sends bytes and reads until the server closes.
fn raw(to: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that no compression and no repetition could fake.
fn noise(megabytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..megabytes << 20).map(|_| next()).collect()
}

#[test]
fn every_method_arrives_with_its_body() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "BREW"] {
        let body: &[u8] = if method == "GET" || method == "TRACE" { b"" } else { b"\x00\xff body" };
        let answer = client::send(sidecar.data, method, "/kimi/v1/files", &[("content-type", "x/y")], body);
        let echo = answer.json();
        assert_eq!(echo["method"], method);
        assert_eq!(echo["path"], "/v1/files");
        assert_eq!(echo["sha256"], sha256(body), "{method}");
    }
}

#[test]
fn a_path_arrives_as_it_was_written() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    for path in [
        "/v1/a%20b/%2F%2e%2E/c",
        "/v1//double///slash/",
        "/v1/../up/./here",
        "/v1/models/m:countTokens?key=a%26b&&x=1&x=2&empty=",
        "/v1/%zz%",
        "/v1/~tilde;p=1,2/(a)'!*$@",
        "/?q",
        "/",
    ] {
        let answer = client::send(sidecar.data, "GET", &format!("/kimi{path}"), &[], b"");
        assert_eq!(answer.json()["path"], path);
    }
    assert_eq!(client::send(sidecar.data, "GET", "/kimi", &[], b"").json()["path"], "/");
    assert_eq!(client::send(sidecar.data, "GET", "/kimi?a=1", &[], b"").json()["path"], "/?a=1");
}

#[test]
fn the_path_of_an_upstreams_url_stands_in_front() {
    let provider = Provider::new().start();
    let sidecar = Sidecar::bare().upstream("kimi", &format!("{}/deep/er/", provider.url())).start();
    let answer = client::send(sidecar.data, "GET", "/kimi/v1/models?a", &[], b"");
    assert_eq!(answer.json()["path"], "/deep/er/v1/models?a");
}

#[test]
fn request_headers_keep_order_case_and_number() {
    let (provider, got) = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let sidecar = before(&provider);
    raw(
        sidecar.data,
        b"POST /kimi/v1/x HTTP/1.1\r\nHost: agent.example\r\nX-First: 1\r\nAuthORIZation: Bearer sk-1\r\n\
          connection: close, X-Hop\r\nx-hop: mine\r\nKeep-Alive: timeout=5\r\nX-Packlight-Mode: off\r\n\
          x-dup: a\r\nX-Dup: b\r\nX-EMPTY: \r\nContent-Length: 2\r\nX-Latin: caf\xe9\r\nzZz: last\r\n\r\nhi",
    );
    let got = got.lock().unwrap();
    let headers: Vec<String> = got[0].headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        headers,
        [
            format!("Host: {}", provider.addr),
            "X-First: 1".into(),
            "AuthORIZation: Bearer sk-1".into(),
            "x-dup: a".into(),
            "X-Dup: b".into(),
            "X-EMPTY: ".into(),
            "Content-Length: 2".into(),
            "X-Latin: caf\u{fffd}".into(),
            "zZz: last".into(),
        ]
    );
    assert_eq!(got[0].body, b"hi");
}

#[test]
fn a_reply_s_head_is_the_provider_s() {
    let (provider, _got) = saying(
        b"HTTP/1.1 429 Slow Down Please\r\nX-First: 1\r\nRetry-After: 30\r\nMsh-Cooldown-Seconds: 7\r\n\
          Set-Cookie: a=1\r\nset-cookie: b=2\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
          Content-LENGTH: 5\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\xff",
    );
    let sidecar = before(&provider);
    let answer = raw(sidecar.data, b"GET /kimi/v1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines: Vec<&str> = head.split("\r\n").filter(|line| !line.eq_ignore_ascii_case("connection: close")).collect();
    assert_eq!(
        lines,
        [
            "HTTP/1.1 429 Slow Down Please",
            "X-First: 1",
            "Retry-After: 30",
            "Msh-Cooldown-Seconds: 7",
            "Set-Cookie: a=1",
            "set-cookie: b=2",
            "Content-LENGTH: 5",
            "Content-Encoding: gzip",
        ]
    );
    assert_eq!(body, String::from_utf8_lossy(b"\x1f\x8b\x08\x00\xff"));
}

#[test]
fn every_status_returns() {
    let run = |connection: &mut Connection| {
        let status = connection.head.path.rsplit('/').next().unwrap_or_default().to_owned();
        let body = if matches!(status.as_str(), "204" | "304") { "" } else { "content-length: 2\r\n\r\nok" };
        let end = if body.is_empty() { "\r\n" } else { "" };
        let _ = write!(connection.writer, "HTTP/1.1 {status} X\r\netag: \"e\"\r\n{end}{body}");
    };
    let provider = Provider::new().hijack("/v1/status/", run).start();
    let sidecar = before(&provider);
    for status in [
        200, 201, 202, 203, 204, 206, 207, 226, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 408,
        409, 410, 413, 415, 418, 422, 425, 426, 429, 431, 451, 499, 500, 501, 502, 503, 504, 520, 529, 599, 999,
    ] {
        let answer = client::send(sidecar.data, "GET", &format!("/kimi/v1/status/{status}"), &[], b"");
        assert_eq!((answer.status, answer.complete, answer.header("etag")), (status, true, Some("\"e\"")), "{status}");
        assert_eq!(answer.text(), if matches!(status, 204 | 304) { "" } else { "ok" }, "{status}");
    }
}

#[test]
fn a_head_request_keeps_the_length_of_what_it_did_not_get() {
    let (provider, _got) = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 12345\r\n\r\n");
    let sidecar = before(&provider);
    let answer = raw(sidecar.data, b"HEAD /kimi/v1/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.contains("content-length: 12345\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn chunks_and_trailers_pass_both_ways() {
    let (provider, got) = saying(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nTrailer: X-Sum\r\n\r\n\
          3\r\nabc\r\n1;ext=1\r\nd\r\n0\r\nX-Sum: 42\r\n\r\n",
    );
    let sidecar = before(&provider);
    let answer = client::send_raw(
        sidecar.data,
        b"POST /kimi/v1/x HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTrailer: X-In\r\nTransfer-Encoding: chunked\r\n\r\n\
          2\r\nhe\r\n3\r\nllo\r\n0\r\nX-In: 7\r\n\r\n",
    );
    assert_eq!((answer.text().as_str(), answer.complete), ("abcd", true));
    let lower: Vec<_> = answer.trailers.iter().map(|(k, v)| (k.to_ascii_lowercase(), v.as_str())).collect();
    assert_eq!(lower, [("x-sum".to_owned(), "42")]);
    let got = got.lock().unwrap();
    assert_eq!(got[0].body, b"hello");
    let lower: Vec<_> = got[0].trailers.iter().map(|(k, v)| (k.to_ascii_lowercase(), v.as_str())).collect();
    assert_eq!(lower, [("x-in".to_owned(), "7")]);
    assert_eq!(got[0].header("te"), Some("trailers"));
}

#[test]
fn a_length_beside_chunks_never_reaches_the_provider() {
    for headers in
        ["Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3"]
    {
        let (provider, got) = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        let sidecar = before(&provider);
        let request = format!("POST /kimi/v1/x HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        client::send_raw(sidecar.data, request.as_bytes());
        let got = got.lock().unwrap();
        assert!(got.iter().all(|got| got.header("content-length").is_none() && got.body == b"hello"), "{got:?}");
    }
    let (provider, got) = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let sidecar = before(&provider);
    let twice = b"POST /kimi/v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(client::send_raw(sidecar.data, twice).status, 400);
    assert!(got.lock().unwrap().is_empty());
}

#[test]
fn a_reply_without_length_ends_with_its_connection() {
    let (provider, _got) = saying(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\n");
    let sidecar = before(&provider);
    let answer = client::send(sidecar.data, "GET", "/kimi/v1/x", &[], b"");
    assert_eq!((answer.text().as_str(), answer.complete), ("data: 1\n\ndata: 2\n\n", true));
}

#[test]
fn a_reply_that_breaks_off_is_seen_to_break_off() {
    let (provider, _got) = saying(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    let sidecar = before(&provider);
    let answer = client::send(sidecar.data, "GET", "/kimi/v1/x", &[], b"");
    assert_eq!((answer.text().as_str(), answer.complete), ("abc", false));
}

#[test]
fn informational_replies_do_not_end_a_request() {
    let (provider, _got) = saying(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
          HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    );
    let sidecar = before(&provider);
    let answer = client::send(sidecar.data, "POST", "/kimi/v1/x", &[], b"body");
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
}

#[test]
fn a_client_that_waits_for_continue_is_told_to() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    let mut stream = TcpStream::connect(sidecar.data).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /kimi/v1/files HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
    line.clear();
    reader.read_line(&mut line).unwrap();
    stream.write_all(b"hello").unwrap();
    assert_eq!(Exchange::read_head(stream).finish().json()["sha256"], sha256(b"hello"));
}

#[test]
fn a_large_upload_streams_and_is_not_kept() {
    let (first, seen) = mpsc::channel();
    let first = Mutex::new(first);
    let run = move |connection: &mut Connection| {
        let mut digest = Sha256::new();
        let mut left: usize = connection.head.header("content-length").unwrap().parse().unwrap();
        let mut buffer = vec![0; 64 << 10];
        while left > 0 {
            let read = connection.reader.read(&mut buffer).unwrap();
            digest.update(&buffer[..read]);
            left -= read;
            let _ = first.lock().unwrap().send(read);
        }
        let sum: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = write!(connection.writer, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{sum}", sum.len());
    };
    let provider = Provider::new().hijack("/v1/files", run).start();
    let sidecar = before(&provider);
    let body = noise(30);
    let resident = peak(&sidecar);
    let mut stream = TcpStream::connect(sidecar.data).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "POST /kimi/v1/files HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(&body[..1000]).unwrap();
    // The provider has bytes of a body that is not complete.
    assert!(seen.recv_timeout(PATIENCE).unwrap() > 0);
    stream.write_all(&body[1000..]).unwrap();
    assert_eq!(Exchange::read_head(stream).finish().text(), sha256(&body));
    assert!(peak(&sidecar) - resident < 12 << 10, "{} KiB more", peak(&sidecar) - resident);
}

#[test]
fn a_large_download_streams_and_is_not_kept() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let body = Arc::new(noise(30));
    let sent = Arc::clone(&body);
    let run = move |connection: &mut Connection| {
        let _ = write!(connection.writer, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", sent.len());
        let _ = connection.writer.write_all(&sent[..1000]);
        let _ = wait.lock().unwrap().recv_timeout(PATIENCE);
        let _ = connection.writer.write_all(&sent[1000..]);
    };
    let provider = Provider::new().hijack("/v1/files", run).start();
    let sidecar = before(&provider);
    let resident = peak(&sidecar);
    let mut exchange = Exchange::open(sidecar.data, "GET", "/kimi/v1/files/1/content", &[], b"");
    assert!(!exchange.next().unwrap().is_empty());
    go.send(()).unwrap();
    let answer = exchange.finish();
    assert!(answer.complete);
    assert!(answer.body == *body, "the bytes differ");
    assert!(peak(&sidecar) - resident < 12 << 10, "{} KiB more", peak(&sidecar) - resident);
}

/// The most memory it ever held, in KiB.
fn peak(sidecar: &Sidecar) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", sidecar.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_websocket_passes_bytes_both_ways() {
    let run = |connection: &mut Connection| {
        let upgrade = connection.head.header("upgrade").unwrap_or_default().to_owned();
        let asked = connection.head.header("connection").unwrap_or_default().to_ascii_lowercase();
        assert_eq!((upgrade.as_str(), asked.as_str()), ("websocket", "upgrade"));
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                    Sec-WebSocket-Accept: x\r\n\r\nhello";
        connection.writer.write_all(head.as_bytes()).unwrap();
        let mut word = [0; 4];
        while connection.reader.read_exact(&mut word).is_ok() {
            word.reverse();
            connection.writer.write_all(&word).unwrap();
        }
    };
    let provider = Provider::new().hijack("/ws", run).start();
    let sidecar = before(&provider);
    let mut stream = TcpStream::connect(sidecar.data).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "GET /kimi/ws/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Key: k\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"hello") {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let text = String::from_utf8(answer).unwrap();
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(text.to_ascii_lowercase().contains("upgrade: websocket\r\n"), "{text}");
    for word in [b"abcd", b"\x00\x01\xfe\xff"] {
        stream.write_all(word).unwrap();
        let mut back = [0; 4];
        stream.read_exact(&mut back).unwrap();
        back.reverse();
        assert_eq!(&back, word);
    }
}

#[test]
fn a_connection_serves_one_request_after_another() {
    let provider = Provider::new().start();
    let sidecar = before(&provider);
    let stream = TcpStream::connect(sidecar.data).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0..20 {
        let request = format!("GET /kimi/v1/models/{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        (&stream).write_all(request.as_bytes()).unwrap();
        let answer = Exchange::read_head(stream.try_clone().unwrap()).finish();
        assert_eq!(answer.json()["path"], format!("/v1/models/{number}"));
    }
    // The way to the provider is pooled, too; a request that comes before its predecessor's connection is back in the
    // pool opens another.
    assert!(provider.connections() < 10, "{}", provider.connections());
}

#[test]
fn http_2_comes_in_and_http_1_goes_out() {
    use http_body_util::{BodyExt, Full};
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;

    let provider = Provider::new().start();
    let sidecar = before(&provider);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let uri = format!("http://{}/kimi/v1/files?x=%20", sidecar.data);
    let (version, echo) = runtime.block_on(async {
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        let request = http::Request::post(uri).header("x-a", "1").body(Full::new(bytes::Bytes::from_static(b"hi")));
        let answer = client.request(request.unwrap()).await.unwrap();
        let version = answer.version();
        (version, answer.into_body().collect().await.unwrap().to_bytes())
    });
    assert_eq!(version, http::Version::HTTP_2);
    let echo: serde_json::Value = serde_json::from_slice(&echo).unwrap();
    assert_eq!((&echo["path"], &echo["sha256"]), (&"/v1/files?x=%20".into(), &sha256(b"hi").into()));
    let headers = echo["headers"].as_array().unwrap();
    let hosts: Vec<_> =
        headers.iter().filter(|header| header[0].as_str().unwrap().eq_ignore_ascii_case("host")).collect();
    assert_eq!(hosts.len(), 1);
    assert_eq!(hosts[0][1], provider.addr.to_string());
    eventually("the request", || (provider.others().len() == 1).then_some(()));
}
