//! A client that shows what is on the wire: HTTP/1.1 over a plain socket, whole or
//! read by read. NOT an HTTP library's opinion.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use super::PATIENCE;
use super::received::list;

/// A response as it came.
#[derive(Debug, Clone, Default)]
pub struct Response {
    pub status: u16,
    /// In order, names as sent.
    pub headers: Vec<(String, String)>,
    /// Without the chunks' framing.
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    /// Did the body end as its framing said it would?
    pub complete: bool,
}

/// A request that was sent, its response read step by step.
pub struct Exchange {
    reader: BufReader<TcpStream>,
    pub response: Response,
    framing: Framing,
}

enum Framing {
    Chunked,
    Length(usize),
    Close,
}

/// Sends a request with a length and reads the whole response.
pub fn send(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    Exchange::open(to, method, path, headers, body).finish()
}

/// As [`send`], but these very bytes.
pub fn send_raw(to: SocketAddr, bytes: &[u8]) -> Response {
    Exchange::open_raw(to, bytes).finish()
}

impl Exchange {
    /// Sends a request and reads the response's head.
    pub fn open(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if !body.is_empty() || method == "POST" {
            bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        Self::open_raw(to, &bytes)
    }

    pub fn open_raw(to: SocketAddr, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(to).expect("the server listens");
        stream.set_nodelay(true).expect("nodelay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // A server may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        Self::read_head(stream)
    }

    /// Reads the head of a response on a connection on which the test has written itself.
    pub fn read_head(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut response = Response::default();
        while let Some(status) = line(&mut reader) {
            response.status = status.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
            response.headers = fields(&mut reader);
            if response.status != 100 {
                break;
            }
        }
        let framing = if response.header("transfer-encoding").is_some_and(|v| v.contains("chunked")) {
            Framing::Chunked
        } else if matches!(response.status, 204 | 304) {
            Framing::Length(0)
        } else {
            response.header("content-length").and_then(|v| v.parse().ok()).map_or(Framing::Close, Framing::Length)
        };
        Self { reader, response, framing }
    }

    /// The next bytes of the body as they come; `None` at its end, whether it is complete or not.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        let piece = match &mut self.framing {
            Framing::Chunked => {
                let size = usize::from_str_radix(line(&mut self.reader)?.trim(), 16).ok()?;
                if size == 0 {
                    self.response.trailers = fields(&mut self.reader);
                    self.response.complete = true;
                    return None;
                }
                let mut piece = vec![0; size];
                self.reader.read_exact(&mut piece).ok()?;
                line(&mut self.reader)?;
                piece
            }
            Framing::Length(0) => {
                self.response.complete = true;
                return None;
            }
            Framing::Length(left) => {
                let got = self.reader.fill_buf().ok().filter(|b| !b.is_empty())?;
                let piece = got[..got.len().min(*left)].to_vec();
                *left -= piece.len();
                self.reader.consume(piece.len());
                piece
            }
            Framing::Close => {
                let got = match self.reader.fill_buf() {
                    Ok(got) => got.to_vec(),
                    Err(_) => return None,
                };
                self.response.complete = got.is_empty();
                self.reader.consume(got.len());
                Some(got).filter(|g| !g.is_empty())?
            }
        };
        self.response.body.extend_from_slice(&piece);
        Some(piece)
    }

    /// Reads on until the body so far holds `text`. Panics when it ends before.
    pub fn read_until(&mut self, text: &str) {
        let start = std::time::Instant::now();
        while !String::from_utf8_lossy(&self.response.body).contains(text) {
            assert!(start.elapsed() < PATIENCE, "{text:?} never came: {}", self.response.text());
            assert!(self.next().is_some(), "the body ended without {text:?}: {}", self.response.text());
        }
    }

    /// Reads the rest.
    pub fn finish(mut self) -> Response {
        while self.next().is_some() {}
        self.response
    }
}

impl Response {
    /// The message of an OpenAI reply, put together from its frames as a client would.
    pub fn message(&self) -> Value {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            return self.json()["choices"][0]["message"].clone();
        }
        let mut message = json!({"role": "assistant", "content": ""});
        let mut calls: Vec<Value> = Vec::new();
        for frame in self.frames() {
            let delta = &frame["choices"][0]["delta"];
            let text = message["content"].as_str().unwrap_or_default().to_owned();
            message["content"] = (text + delta["content"].as_str().unwrap_or_default()).into();
            if let Some(thought) = delta["reasoning_content"].as_str() {
                let before = message["reasoning_content"].as_str().unwrap_or_default().to_owned();
                message["reasoning_content"] = (before + thought).into();
            }
            for part in list(&delta["tool_calls"]) {
                let index = usize::try_from(part["index"].as_u64().expect("an index")).expect("small");
                assert!(index <= calls.len(), "a gap before index {index}");
                if index == calls.len() {
                    calls
                        .push(json!({"id": part["id"], "type": "function", "function": {"name": "", "arguments": ""}}));
                }
                for key in ["name", "arguments"] {
                    let before = calls[index]["function"][key].as_str().unwrap_or_default().to_owned();
                    calls[index]["function"][key] =
                        (before + part["function"][key].as_str().unwrap_or_default()).into();
                }
            }
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        message
    }

    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// A field of the `x-packlight` header; empty when it is not there.
    pub fn packlight(&self, field: &str) -> String {
        let header = self.header("x-packlight").unwrap_or_default();
        let value = header.split(';').filter_map(|f| f.trim().split_once('=')).find(|(k, _)| *k == field);
        value.map(|(_, v)| v.to_owned()).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("not JSON ({e}): {}", self.text()))
    }

    /// The `data:` of each event, whatever the line ends.
    pub fn events(&self) -> Vec<String> {
        let text = self.text().replace("\r\n", "\n").replace('\r', "\n");
        let data = |line: &str| line.strip_prefix("data:").map(|d| d.strip_prefix(' ').unwrap_or(d).to_owned());
        text.split('\n').filter_map(data).collect()
    }

    /// The events that are JSON: all but `[DONE]`.
    pub fn frames(&self) -> Vec<Value> {
        self.events().iter().filter_map(|e| serde_json::from_str(e).ok()).collect()
    }
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut bytes = Vec::new();
    reader.read_until(b'\n', &mut bytes).ok()?;
    bytes.ends_with(b"\n").then(|| String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

fn fields(reader: &mut BufReader<TcpStream>) -> Vec<(String, String)> {
    let lines = std::iter::from_fn(|| line(reader).filter(|l| !l.is_empty()));
    lines.filter_map(|l| l.split_once(':').map(|(k, v)| (k.to_owned(), v.trim().to_owned()))).collect()
}
