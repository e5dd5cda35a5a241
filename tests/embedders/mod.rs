//! Embedders whose vectors a test can foresee: one in this process that counts, and a server that answers as told.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use packlight::embed::{Embeddings, Settings, Space};
use packlight::retrieval::document::{self, Document};
use packlight::retrieval::embedder::{EmbedError, Embedded, Embedder, Task};
use packlight::retrieval::question::{Question, contentless_phrases};
use packlight::store::Memory;
use serde_json::{Value, json};
use tokio::sync::watch;

/// For what must happen, on a machine however busy.
pub const PATIENT: Duration = Duration::from_secs(20);
const DIMENSIONS: usize = 64;

/// Tools that only their numbers tell apart.
pub fn documents(count: usize) -> Arc<Vec<Document>> {
    let document = |n: usize| Document {
        name: format!("tool_{n}"),
        description: format!("Does what tool number {n} does, {}.", "very well ".repeat(n % 3)),
        ..Document::default()
    };
    Arc::new((0..count).map(document).collect())
}

/// All texts of the documents, each once, sorted.
pub fn question_texts(documents: &[Document]) -> Vec<String> {
    let mut texts: Vec<String> = documents.iter().flat_map(document::texts).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// A unit vector that is near another where the texts share words.
pub fn vector_of(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSIONS];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut state = word
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        for number in &mut vector {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *number += (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
        }
    }
    vector[0] += 0.01;
    let norm = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter().map(|number| number / norm).collect()
}

pub fn memory() -> Arc<Memory> {
    Arc::default()
}

/// The tool that fits the question best.
pub async fn best(embeddings: &Embeddings, space: &Space, text: &str) -> usize {
    let question = Question::bare(text);
    let vectors = embeddings.queries(&space.model, question.texts()).await.unwrap();
    space.index.rank(&question, &vectors).first().unwrap().tool
}

/// Equal but for rounding.
pub fn near(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-5)
}

/// Fast, and without a disk.
pub fn settings() -> Settings {
    Settings { retry: Duration::from_millis(50), ..Settings::default() }
}

/// Counts what it embeds; can be held, made to fail, or to answer nonsense.
pub struct Counting {
    model: String,
    embedded: Mutex<Vec<(String, Task)>>,
    calls: watch::Sender<usize>,
    held: watch::Sender<bool>,
    failure: Mutex<Failure>,
    nonsense: Mutex<Option<Vec<Vec<f32>>>>,
    idle: AtomicBool,
}

enum Failure {
    None,
    Now(EmbedError),
    /// After so many more calls.
    After(usize),
}

impl Counting {
    pub fn new() -> Arc<Self> {
        Self::named("counting")
    }

    pub fn named(name: &str) -> Arc<Self> {
        Arc::new(Self {
            model: format!("{name}:{DIMENSIONS}"),
            embedded: Mutex::default(),
            calls: watch::Sender::new(0),
            held: watch::Sender::new(false),
            failure: Mutex::new(Failure::None),
            nonsense: Mutex::default(),
            idle: AtomicBool::new(true),
        })
    }

    /// Says so, and embeds all the same.
    pub fn busy(&self, busy: bool) {
        self.idle.store(!busy, Ordering::Relaxed);
    }

    pub fn calls(&self) -> usize {
        *self.calls.borrow()
    }

    /// Until it has been called.
    pub async fn called(&self) {
        self.calls.subscribe().wait_for(|calls| *calls > 0).await.unwrap();
    }

    /// Document texts embedded since the last [`Self::forget`], sorted; twice if embedded twice.
    pub fn documents(&self) -> Vec<String> {
        self.texts(Task::Document)
    }

    /// Query texts likewise, without the phrases that stand for no content.
    pub fn queries_but_phrases(&self) -> Vec<String> {
        let phrases = contentless_phrases();
        self.texts(Task::Query).into_iter().filter(|text| !phrases.contains(&text.as_str())).collect()
    }

    fn texts(&self, task: Task) -> Vec<String> {
        let embedded = self.embedded.lock().unwrap();
        let mut texts: Vec<String> =
            embedded.iter().filter(|(_, other)| *other == task).map(|(text, _)| text.clone()).collect();
        texts.sort();
        texts
    }

    pub fn forget(&self) {
        self.embedded.lock().unwrap().clear();
        self.calls.send_replace(0);
    }

    /// No answer until released.
    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    pub fn release(&self) {
        self.held.send_replace(false);
    }

    pub fn fail(&self, error: Option<EmbedError>) {
        *self.failure.lock().unwrap() = error.map_or(Failure::None, Failure::Now);
    }

    pub fn fail_after(&self, calls: usize) {
        *self.failure.lock().unwrap() = Failure::After(calls);
    }

    pub fn answer(&self, nonsense: Vec<Vec<f32>>) {
        *self.nonsense.lock().unwrap() = Some(nonsense);
    }

    fn failing(&self) -> Option<EmbedError> {
        let mut failure = self.failure.lock().unwrap();
        match &mut *failure {
            Failure::None => None,
            Failure::Now(error) => Some(error.clone()),
            Failure::After(0) => Some(EmbedError::Failed("as told".to_owned())),
            Failure::After(left) => {
                *left -= 1;
                None
            }
        }
    }
}

impl Embedder for Counting {
    fn model(&self) -> &str {
        &self.model
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed)
    }

    fn embed<'a>(&'a self, texts: &'a [String], task: Task) -> Embedded<'a> {
        Box::pin(async move {
            self.calls.send_modify(|calls| *calls += 1);
            self.held.subscribe().wait_for(|held| !held).await.unwrap();
            if let Some(error) = self.failing() {
                return Err(error);
            }
            if let Some(nonsense) = self.nonsense.lock().unwrap().clone() {
                return Ok(nonsense);
            }
            self.embedded.lock().unwrap().extend(texts.iter().map(|text| (text.clone(), task)));
            Ok(texts.iter().map(|text| vector_of(text)).collect())
        })
    }
}

/// What the server was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub headers: hyper::HeaderMap,
    pub body: Value,
}

impl Asked {
    /// Empty: absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

type Script = Box<dyn Fn(&Value) -> (u16, String) + Send + Sync>;

/// A server of embeddings that answers as told.
pub struct Server {
    port: u16,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    held: watch::Sender<bool>,
}

impl Server {
    pub async fn start(script: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::start_raw(move |body| (200, script(body).to_string())).await
    }

    pub async fn start_raw(script: impl Fn(&Value) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            asked: Mutex::default(),
            held: watch::Sender::new(false),
        });
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                let service = service_fn(move |request| Arc::clone(&shared).answer(request));
                tokio::spawn(async move {
                    let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Self { port, shared, accepting }
    }

    /// The same address with another script.
    pub fn replaced(self, script: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        *self.shared.script.lock().unwrap() = Box::new(move |body| (200, script(body).to_string()));
        self
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1/", self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    pub fn forget(&self) {
        self.shared.asked.lock().unwrap().clear();
    }

    /// No answer from now on.
    pub fn hold(&self) {
        self.shared.held.send_replace(true);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
        let (status, answer) = (self.script.lock().unwrap())(&body);
        self.asked.lock().unwrap().push(Asked { path: head.uri.path().to_owned(), headers: head.headers, body });
        self.held.subscribe().wait_for(|held| !held).await.unwrap();
        Ok(Response::builder().status(status).body(Full::new(answer.into())).unwrap())
    }
}

/// The answer of the Gemini API, twice as long as unit length: clients normalise.
pub fn gemini(body: &Value) -> Value {
    let text = |request: &Value| request["content"]["parts"][0]["text"].as_str().unwrap().to_owned();
    let texts = body["requests"].as_array().unwrap().iter().map(text);
    let values = |text: String| vector_of(&text).iter().map(|number| number * 2.0).collect::<Vec<_>>();
    json!({"embeddings": texts.map(|text| json!({"values": values(text)})).collect::<Vec<_>>()})
}

/// The answer of `/v1/embeddings`.
pub fn openai(body: &Value) -> Value {
    let texts = body["input"].as_array().unwrap().iter().enumerate();
    let data = texts.map(
        |(index, text)| json!({"object": "embedding", "index": index, "embedding": vector_of(text.as_str().unwrap())}),
    );
    json!({"object": "list", "data": data.collect::<Vec<_>>()})
}
