//! The scripted provider: a server on port 0 that refuses what the real ones
//! refuse, records all it gets, and answers from its script. NOT the rules
//! (openai.rs, gemini.rs, anthropic.rs), NOT the faults of the socket (wiring.rs).
//!
//! Routes: chat and embedding routes as the real providers have them under any
//! prefix; everything else is echoed (method, path, headers, digest of the body).

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::cache::PromptCache;
use super::embeddings::{self, Fault};
use super::received::{Received, Wire};
use super::reply::{Reply, Usage};
use super::wiring::{Gate, Response, Sent, send};
use super::{anthropic, eventually, gemini, openai};

type Answer = Box<dyn Fn(&Received) -> Reply + Send + Sync>;
type Hijack = Box<dyn Fn(&mut Connection) + Send + Sync>;

/// A connection whose request line and headers have been read, and nothing more.
pub struct Connection {
    pub head: Received,
    pub reader: BufReader<TcpStream>,
    pub writer: TcpStream,
}

/// What the provider insists on.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// `false`: every request is taken, JSON or not.
    pub strict: bool,
    /// Kimi with thinking on: `reasoning_content` must come back.
    pub thinking: bool,
    /// Gemini 3: the first call of each step of the turn must be signed. Also on for models named `gemini-3…`.
    pub signatures: bool,
}

/// The script and the rules, before the provider listens.
pub struct Builder {
    rules: Rules,
    queue: VecDeque<Reply>,
    answer: Option<Answer>,
    hijacks: Vec<(String, Hijack)>,
    fault: Fault,
    cache: Option<Duration>,
}

/// A provider that listens until it is dropped.
pub struct Provider {
    pub addr: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    rules: Rules,
    queue: Mutex<VecDeque<Reply>>,
    answer: Option<Answer>,
    hijacks: Vec<(String, Hijack)>,
    fault: Mutex<Fault>,
    /// Reports usage as its prompt cache has it, since this moment.
    cache: Option<(Instant, Mutex<PromptCache>)>,
    received: Mutex<Vec<Received>>,
    gate: Gate,
    stopped: AtomicBool,
    hung_up: AtomicU64,
    connections: AtomicU64,
    /// Numbers replies, so that no two share an id.
    counter: AtomicU64,
}

impl Builder {
    /// Takes anything, as a server that validates nothing.
    pub fn lenient(mut self) -> Self {
        self.rules.strict = false;
        self
    }

    pub fn thinking(mut self) -> Self {
        self.rules.thinking = true;
        self
    }

    pub fn signatures(mut self) -> Self {
        self.rules.signatures = true;
        self
    }

    /// The next reply. Beyond the queue `answer` speaks; without one the reply is 500.
    pub fn reply(mut self, reply: Reply) -> Self {
        self.queue.push_back(reply);
        self
    }

    pub fn replies(self, replies: impl IntoIterator<Item = Reply>) -> Self {
        replies.into_iter().fold(self, Self::reply)
    }

    /// Decides from the request.
    pub fn answer(mut self, answer: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        self.answer = Some(Box::new(answer));
        self
    }

    /// Takes over every connection whose path starts so, from behind the headers on; it is closed afterwards.
    pub fn hijack(mut self, path: &str, run: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        self.hijacks.push((path.into(), Box::new(run)));
        self
    }

    /// Bills by a prompt cache of this life instead of as scripted.
    pub fn caching(mut self, life: Duration) -> Self {
        self.cache = Some(life);
        self
    }

    pub fn embeddings(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    pub fn start(self) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            rules: self.rules,
            queue: Mutex::new(self.queue),
            answer: self.answer,
            hijacks: self.hijacks,
            fault: Mutex::new(self.fault),
            cache: self.cache.map(|life| (Instant::now(), Mutex::new(PromptCache::new(life)))),
            received: Mutex::default(),
            gate: Gate::default(),
            stopped: AtomicBool::new(false),
            hung_up: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            counter: AtomicU64::new(0),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.stopped.load(Ordering::SeqCst) {
                    return;
                }
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        Provider { addr, shared }
    }
}

impl Provider {
    #[expect(clippy::new_ret_no_self, reason = "reads as `Provider::new()….start()` in every test")]
    pub fn new() -> Builder {
        Builder {
            rules: Rules { strict: true, thinking: false, signatures: false },
            queue: VecDeque::new(),
            answer: None,
            hijacks: Vec::new(),
            fault: Fault::None,
            cache: None,
        }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All requests so far, embeddings included.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// The chat requests so far: every leg.
    pub fn chats(&self) -> Vec<Received> {
        self.received().into_iter().filter(|r| r.wire().is_some()).collect()
    }

    /// The embedding requests so far.
    pub fn embedded(&self) -> Vec<Received> {
        self.received().into_iter().filter(Received::embeds).collect()
    }

    /// What was neither chat nor embedding.
    pub fn others(&self) -> Vec<Received> {
        self.received().into_iter().filter(|r| r.wire().is_none() && !r.embeds()).collect()
    }

    /// Waits for the n-th chat request (from 1).
    pub fn wait(&self, n: usize) -> Received {
        eventually(&format!("chat request {n}"), || self.chats().into_iter().nth(n - 1))
    }

    /// Waits until so many replies were left by their client before their end.
    pub fn wait_hung_up(&self, n: u64) {
        eventually("the client leaves", || (self.shared.hung_up.load(Ordering::SeqCst) >= n).then_some(()));
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Stalled replies go on, and later ones do not stall.
    pub fn release(&self) {
        self.shared.gate.open();
    }

    /// Later replies stall again.
    pub fn hold(&self) {
        self.shared.gate.close();
    }

    pub fn push(&self, reply: Reply) {
        self.shared.queue.lock().unwrap().push_back(reply);
    }

    pub fn set_embeddings(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap() = fault;
    }

    /// Fails when a request broke a rule of the provider.
    pub fn assert_no_refusal(&self) {
        let refused: Vec<_> = self.received().into_iter().filter_map(|r| r.refused).collect();
        assert!(refused.is_empty(), "the provider refused: {refused:#?}");
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.gate.open();
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.addr);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Ok(copy) = stream.try_clone() else { return };
        let (mut reader, mut writer) = (BufReader::new(copy), stream);
        while let Some(mut request) = Received::head(&mut reader) {
            if let Some((_, run)) = self.hijacks.iter().find(|(path, _)| request.path.starts_with(path)) {
                run(&mut Connection { head: request, reader, writer });
                return;
            }
            if request.header("expect").is_some() && writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
                return;
            }
            if request.read_body(&mut reader).is_none() {
                return;
            }
            let last = request.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
            let Some(response) = self.respond(request, &writer) else { return };
            let sent = send(&mut writer, &response, &self.gate);
            if sent == Sent::HungUp {
                self.hung_up.fetch_add(1, Ordering::SeqCst);
            }
            if sent != Sent::Whole || last || self.stopped.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// `None`: the connection is closed without an answer.
    fn respond(&self, mut request: Received, peer: &TcpStream) -> Option<Response> {
        if request.embeds() {
            return self.embed(request, peer);
        }
        let Some(wire) = request.wire().filter(|_| request.method == "POST") else {
            let echo = echo(&request);
            self.received.lock().unwrap().push(request);
            return Some(echo);
        };
        let checked = match (self.rules.strict, wire) {
            (false, _) => Ok(()),
            (true, Wire::Gemini) => framing(&request).and_then(|()| gemini::check(&request, self.rules)),
            (true, Wire::Anthropic) => framing(&request).and_then(|()| anthropic::check(&request)),
            (true, _) => framing(&request).and_then(|()| openai::check(&request, self.rules)),
        };
        request.refused = checked.err();
        self.received.lock().unwrap().push(request.clone());
        if let Some(refused) = &request.refused {
            return Some(whole(400, error(wire, 400, refused)));
        }
        let number = self.counter.fetch_add(1, Ordering::SeqCst);
        let next = self.queue.lock().unwrap().pop_front();
        let Some(mut reply) = next.or_else(|| self.answer.as_ref().map(|answer| answer(&request))) else {
            return Some(whole(500, error(wire, 500, "the script is over")));
        };
        if let Some((since, cache)) = &self.cache {
            let billed = cache.lock().unwrap().take(&request.json(), since.elapsed());
            reply.usage = Some(Usage { prompt: billed.prompt, cached: billed.cached, completion: 20 });
        }
        let mut response = match wire {
            _ if reply.raw.is_some() => Response::default(),
            Wire::Gemini => gemini::render(&request, &reply, number),
            Wire::Anthropic => anthropic::render(&request, &reply, number),
            Wire::OpenAi | Wire::Compat => openai::render(&request, &reply, number),
        };
        if let Some(pieces) = reply.raw {
            response.chunked = pieces.len() > 1;
            response.pieces = pieces;
        }
        response.status = reply.status;
        response.headers.extend(reply.headers);
        response.faults = reply.faults;
        Some(response)
    }

    fn embed(&self, mut request: Received, peer: &TcpStream) -> Option<Response> {
        let fault = *self.fault.lock().unwrap();
        let answer = embeddings::answer(&request, fault);
        request.refused = answer.as_ref().err().cloned();
        self.received.lock().unwrap().push(request);
        match (fault, answer) {
            (Fault::Down, _) => None,
            (Fault::Status(status), _) => Some(whole(status, error(Wire::OpenAi, status, "scripted"))),
            (Fault::Slow, _) if !self.gate.pass(peer) => None,
            (_, Ok(body)) => Some(whole(200, body)),
            (_, Err(text)) => Some(whole(400, error(Wire::OpenAi, 400, &text))),
        }
    }
}

/// What no provider should ever get, whatever the format.
fn framing(request: &Received) -> Result<(), String> {
    let count = |name: &str| request.headers.iter().filter(|(k, _)| k.eq_ignore_ascii_case(name)).count();
    if request.chunked() || count("content-length") != 1 {
        return Err("the body of a chat request needs one Content-Length".into());
    }
    if count("expect") > 0 {
        return Err("Expect was forwarded".into());
    }
    if let Some((name, _)) = request.headers.iter().find(|(k, _)| k.to_ascii_lowercase().starts_with("x-packlight")) {
        return Err(format!("the header {name} left the proxy"));
    }
    if count("host") != 1 {
        return Err("a request needs one Host".into());
    }
    Ok(())
}

/// An error in the shape of that API.
pub fn error(wire: Wire, code: u16, message: &str) -> String {
    let google = json!({"error": {"code": code, "message": message, "status": "INVALID_ARGUMENT"}});
    match wire {
        Wire::OpenAi => json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string(),
        Wire::Compat => json!([google]).to_string(),
        Wire::Gemini => google.to_string(),
        Wire::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string()
        }
    }
}

fn whole(status: u16, body: String) -> Response {
    let headers = vec![("content-type".into(), "application/json".into())];
    Response { status, headers, pieces: vec![body.into_bytes()], ..Response::default() }
}

fn echo(request: &Received) -> Response {
    let digest: String = Sha256::digest(&request.body).iter().map(|byte| format!("{byte:02x}")).collect();
    let seen = json!({
        "method": request.method,
        "path": request.path,
        "headers": request.headers,
        "length": request.body.len(),
        "sha256": digest,
        "trailers": request.trailers,
    });
    let mut response = whole(200, seen.to_string());
    if request.method == "HEAD" {
        response.pieces.clear();
    }
    response
}
