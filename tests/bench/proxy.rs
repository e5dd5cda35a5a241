//! What does Packlight cost? The same client and the same scripted provider, directly and through the release binary,
//! in one run.
//!
//! Rounds of both ways alternate, so that what disturbs the machine disturbs both; figures are medians over the rounds'
//! medians. The provider reads the whole body, parses its JSON as a provider must, and answers at once with a fixed chat
//! completion: there is no model's thinking behind which a cost could hide, and on the loopback a request takes half a
//! millisecond where a real one takes seconds. A ratio here is therefore the hardest case; the column `added` is what an
//! agent feels.
//!
//! | what | asked |
//! |---|---|
//! | chat, 70 KB body with 44 tools, vectors warm, turn known, concurrency 1 | p50 at most 1.6x direct |
//! | the same, concurrency 8 | at least 60 % of direct's requests per second |
//! | chat, 320 KB body with 200 tools | p50 at most 1.8x |
//! | shadow, 70 KB body, concurrency 8, a provider that thinks for 20 ms | p50 at most 1.03x of `mode = off` |
//! | not a chat, 70 KB body | p50 at most 1.25x |
//! | resident memory, rosters of 44 and 200 tools embedded | at most 160 MB with the model, 30 MB without |
//! | start to listening | at most 300 ms |
//! | 200 streams, a frame a second for 60 s (10 s without `--full`) | none lost, none stalled |
//!
//! The row `a bare TCP forwarder` is no part of Packlight: a second process that copies the same bytes between two
//! sockets and reads none of them. It tells what a second hop costs on the machine at hand, whoever makes it.
//!
//! `cargo bench --bench proxy [-- --full | --relay]` (`--relay`: what is not a chat, five times, nothing else); needs
//! `make model`. Exit code 1 when something asked was missed.

mod forwarder;
mod provider;
mod sidecar;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forwarder::Forwarder;
use futures_util::future::join_all;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use provider::Provider;
use serde_json::{Value, json};
use sidecar::Sidecar;

/// Longer than this between two frames, sent a second apart, is a stall.
const STALL: Duration = Duration::from_secs(3);
const STREAMS: usize = 200;

const HEAD: &str = "                                       direct    through      added   ratio";

struct Plan {
    rounds: usize,
    stream_seconds: u64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip_while(|argument| argument != forwarder::FORWARD).skip(1);
    if let Some(to) = arguments.next() {
        forwarder::forward(&to);
        return ExitCode::SUCCESS;
    }
    let full = std::env::args().any(|argument| argument == "--full");
    let plan = if full { Plan { rounds: 41, stream_seconds: 60 } } else { Plan { rounds: 15, stream_seconds: 10 } };
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/e5-small-q4.bin");
    if !model.is_file() {
        eprintln!("no model at {}: run `make model`", model.display());
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if runtime.block_on(run(&plan, model)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(plan: &Plan, model: PathBuf) -> bool {
    let mut report = Report { kept: true };
    let provider = Provider::start(plan.stream_seconds).await;

    let bare = Sidecar::start(&provider, None).await;
    let client = client();
    post(&client, &bare.url("/v1/files"), Bytes::from_static(b"{}")).await;
    report.limit("resident without the model", bare.resident_mb(), "MB", 30.0);
    drop(bare);
    let mut starts = Vec::new();
    for _ in 0..5 {
        starts.push(Sidecar::start(&provider, Some(&model)).await.listening_after.as_secs_f64() * 1e3);
    }
    report.limit("start to listening", median(starts), "ms", 300.0);
    if std::env::args().any(|argument| argument == "--relay") {
        let sidecar = Sidecar::start(&provider, None).await;
        println!("\n{HEAD}");
        for _ in 0..5 {
            relayed(&mut report, &client, &provider, &sidecar, plan.rounds).await;
        }
        return report.kept;
    }

    let sidecar = Sidecar::start(&provider, Some(&model)).await;
    let (small, large) = (chat(44, 70_000), chat(200, 320_000));
    for (body, tools) in [(&small, 44), (&large, 200)] {
        println!("embedding {tools} tools ...");
        if let Err(why) = warm(&client, &sidecar, body).await {
            println!("{:<34} MISSED: never narrowed ({why})", "chat");
            return false;
        }
    }
    report.limit("resident with the model", sidecar.resident_mb(), "MB", 160.0);

    let ways = |path: &str| [provider.url(path), sidecar.url(path)];
    let chats = ways("/v1/chat/completions");
    println!("\n{HEAD}");
    let cases = [("chat, 70 KB, 44 tools", &chats, &small, 1.6), ("chat, 320 KB, 200 tools", &chats, &large, 1.8)];
    for (name, urls, body, asked) in cases {
        let [direct, through] = latencies(&client, urls, body, plan.rounds).await;
        report.ratio(name, direct, through, asked);
    }
    relayed(&mut report, &client, &provider, &sidecar, plan.rounds).await;
    let [direct, through] = rates(&client, &chats, &small, plan.rounds).await;
    report.rate("chat, 70 KB, concurrency 8", direct, through, 0.6);
    println!("shadow beside `mode = off`, both through Packlight, concurrency 8:");
    let [off, shadow] = shadowed(&client, &chats[1], &small, plan.rounds, 20).await;
    report.ratio("  a provider that thinks 20 ms", off, shadow, 1.03);
    // Two cores are full here, so what is done beside a request is done before the next one.
    let [off, shadow] = shadowed(&client, &chats[1], &small, plan.rounds, 0).await;
    report.told("  one that answers at once", off, shadow);

    println!();
    let streams = streams(&sidecar, plan.stream_seconds).await;
    report.streams(&streams, plan.stream_seconds);
    // 200 requests of 70 KB were open at once: what the allocator keeps of that is told, not judged.
    println!("resident after the streams: {:.1} MB", sidecar.resident_mb());
    report.kept
}

/// What is not a chat, beside a bare forwarder of the same bytes.
async fn relayed(report: &mut Report, client: &Http, provider: &Provider, sidecar: &Sidecar, rounds: usize) {
    let forwarder = Forwarder::start(provider.address);
    let path = "/v1/files";
    let urls = [provider.url(path), sidecar.url(path), forwarder.url(path)];
    let [direct, through, forwarded] = latencies(client, &urls, &chat(44, 70_000), rounds).await;
    report.ratio("not a chat, 70 KB", direct, through, 1.25);
    report.told("  a bare TCP forwarder", direct, forwarded);
}

/// Until the answer was narrowed: the tools are embedded in the background by the first request.
async fn warm(client: &Http, sidecar: &Sidecar, body: &Bytes) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let said = post(client, &sidecar.url("/v1/chat/completions"), body.clone()).await;
        if said.contains("action=narrowed") {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(said);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Median milliseconds of each way, at concurrency 1. Rounds begin with another way each, so that what disturbs the
/// machine disturbs all.
async fn latencies<const WAYS: usize>(
    client: &Http,
    urls: &[String; WAYS],
    body: &Bytes,
    rounds: usize,
) -> [f64; WAYS] {
    let mut medians = [const { Vec::new() }; WAYS];
    for round in 0..rounds {
        for turn in 0..WAYS {
            let way = (round + turn) % WAYS;
            let mut times = Vec::new();
            for _ in 0..40 {
                let begun = Instant::now();
                post(client, &urls[way], body.clone()).await;
                times.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            medians[way].push(median(times));
        }
    }
    medians.map(median)
}

/// Median requests per second, directly and through, at concurrency 8.
async fn rates(client: &Http, urls: &[String; 2], body: &Bytes, rounds: usize) -> [f64; 2] {
    const EACH: usize = 40;
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for way in [round % 2, (round + 1) % 2] {
            let begun = Instant::now();
            let workers = (0..8).map(|_| {
                let (client, url, body) = (client.clone(), urls[way].clone(), body.clone());
                tokio::spawn(async move {
                    for _ in 0..EACH {
                        post(&client, &url, body.clone()).await;
                    }
                })
            });
            for worker in join_all(workers).await {
                worker.expect("a worker");
            }
            rates[way].push(8.0 * EACH as f64 / begun.elapsed().as_secs_f64());
        }
    }
    rates.map(median)
}

/// Median milliseconds at concurrency 8, with mode off and in shadow. `think`: milliseconds before the provider answers.
async fn shadowed(client: &Http, url: &str, body: &Bytes, rounds: usize, think: u64) -> [f64; 2] {
    const EACH: usize = 30;
    let mut medians = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for way in [round % 2, (round + 1) % 2] {
            let mode = HeaderValue::from_static(["off", "shadow"][way]);
            let workers = (0..8).map(|_| {
                let (client, url, body, mode) = (client.clone(), url.to_owned(), body.clone(), mode.clone());
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    for _ in 0..EACH {
                        let mut asked = request(&url, body.clone());
                        asked.headers_mut().insert("x-packlight-mode", mode.clone());
                        asked.headers_mut().insert(provider::THINK_HEADER, HeaderValue::from(think));
                        let begun = Instant::now();
                        let response = client.request(asked).await.expect("an answer");
                        response.into_body().collect().await.expect("a whole answer");
                        times.push(begun.elapsed().as_secs_f64() * 1e3);
                    }
                    times
                })
            });
            let times = join_all(workers).await.into_iter().flat_map(|times| times.expect("a worker")).collect();
            medians[way].push(median(times));
        }
    }
    medians.map(median)
}

/// What became of one stream.
struct Stream {
    frames: u64,
    done: bool,
    longest_gap: Duration,
    /// Milliseconds between a frame's leaving the provider and its arrival.
    delays: Vec<f64>,
}

async fn streams(sidecar: &Sidecar, seconds: u64) -> Vec<Stream> {
    let client = client();
    let mut body: Value = serde_json::from_slice(&chat(44, 70_000)).expect("a body");
    body["stream"] = json!(true);
    let body = Bytes::from(body.to_string());
    let url = sidecar.url("/v1/chat/completions");
    println!("{STREAMS} streams of {seconds} s ...");
    let all = (0..STREAMS).map(|_| tokio::spawn(stream(client.clone(), url.clone(), body.clone())));
    join_all(all).await.into_iter().map(|stream| stream.expect("a stream")).collect()
}

async fn stream(client: Http, url: String, body: Bytes) -> Stream {
    let mut seen = Stream { frames: 0, done: false, longest_gap: Duration::ZERO, delays: Vec::new() };
    let mut asked = request(&url, body);
    asked.headers_mut().insert(provider::STREAM_HEADER, HeaderValue::from_static("1"));
    let Ok(response) = client.request(asked).await else { return seen };
    let (mut reply, mut text, mut last) = (response.into_body(), String::new(), Instant::now());
    while let Some(Ok(frame)) = reply.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let arrived = provider::micros();
        seen.longest_gap = seen.longest_gap.max(last.elapsed());
        last = Instant::now();
        text.push_str(&String::from_utf8_lossy(&data));
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            seen.done |= event.contains("[DONE]");
            if let Some(sent) = provider::sent_at(&event) {
                seen.frames += 1;
                seen.delays.push(arrived.saturating_sub(sent) as f64 / 1e3);
            }
        }
    }
    seen
}

struct Report {
    kept: bool,
}

impl Report {
    fn verdict(&mut self, kept: bool) -> &'static str {
        self.kept &= kept;
        if kept { "ok" } else { "MISSED" }
    }

    fn limit(&mut self, name: &str, found: f64, unit: &str, asked: f64) {
        let verdict = self.verdict(found <= asked);
        println!("{name:<34} {found:>10.1} {unit} (asked: at most {asked}) {verdict}");
    }

    fn ratio(&mut self, name: &str, direct: f64, through: f64, asked: f64) {
        let (ratio, added) = (through / direct, (through - direct) * 1e3);
        let verdict = self.verdict(ratio <= asked);
        println!(
            "{name:<34} {direct:>7.3} ms {through:>7.3} ms {added:>7.0} us {ratio:>7.2} (asked: at most {asked}) {verdict}"
        );
    }

    fn told(&self, name: &str, direct: f64, through: f64) {
        let (ratio, added) = (through / direct, (through - direct) * 1e3);
        println!("{name:<34} {direct:>7.3} ms {through:>7.3} ms {added:>7.0} us {ratio:>7.2} (a yardstick)");
    }

    fn rate(&mut self, name: &str, direct: f64, through: f64, asked: f64) {
        let ratio = through / direct;
        let verdict = self.verdict(ratio >= asked);
        println!(
            "{name:<34} {direct:>8.0}/s {through:>8.0}/s {:>10} {ratio:>7.2} (asked: at least {asked}) {verdict}",
            ""
        );
    }

    fn streams(&mut self, streams: &[Stream], seconds: u64) {
        let whole = streams.iter().filter(|stream| stream.done && stream.frames == seconds).count();
        let stalled = streams.iter().filter(|stream| stream.longest_gap > STALL).count();
        let mut delays: Vec<f64> = streams.iter().flat_map(|stream| stream.delays.iter().copied()).collect();
        delays.sort_by(f64::total_cmp);
        let at =
            |percent: usize| delays.get(delays.len().saturating_sub(1) * percent / 100).copied().unwrap_or(f64::NAN);
        let verdict = self.verdict(whole == STREAMS && stalled == 0);
        println!("streams: {whole} of {STREAMS} whole, {stalled} stalled {verdict}");
        println!("a frame's way through: {:.2} ms p50, {:.2} p99, {:.2} longest", at(50), at(99), at(100));
    }
}

type Http = Client<HttpConnector, Full<Bytes>>;

fn client() -> Http {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

/// Posts, reads the answer to its end, and says what Packlight said of it.
async fn post(client: &Http, url: &str, body: Bytes) -> String {
    let response = client.request(request(url, body)).await.expect("an answer");
    assert!(response.status().is_success(), "{url} answered {}", response.status());
    let said = response.headers().get("x-packlight").and_then(|said| said.to_str().ok()).unwrap_or("").to_owned();
    response.into_body().collect().await.expect("a whole answer");
    said
}

fn request(url: &str, body: Bytes) -> Request<Full<Bytes>> {
    Request::builder()
        .method(Method::POST)
        .uri(url)
        .header("content-type", "application/json")
        .header("authorization", "Bearer bench")
        .body(Full::new(body))
        .expect("a request")
}

/// A chat of a fixed number of tools and bytes: the demo's roster, repeated under other names as far as needed, and a
/// history that fills the rest.
fn chat(tools: usize, bytes: usize) -> Bytes {
    let roster: Vec<Value> = serde_json::from_str(include_str!("../../src/demo/roster.json")).expect("the roster");
    let tools: Vec<Value> = (0..tools)
        .zip(roster.iter().cycle())
        .map(|(number, tool)| {
            let mut tool = tool.clone();
            let copy = number / roster.len();
            if copy > 0 {
                let function = &mut tool["function"];
                function["name"] = json!(format!("{}_{copy}", function["name"].as_str().unwrap_or_default()));
                let description = function["description"].as_str().unwrap_or_default();
                function["description"] = json!(format!("Workspace {copy}: {description}"));
            }
            tool
        })
        .collect();
    let system = "You are the assistant of a sales team. Answer briefly.";
    let body = |filler: &str| {
        json!({"model": "kimi-k2.6", "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": "Who looks after the account of Northwind?"},
            {"role": "assistant", "content": filler},
            {"role": "user", "content": "Put a call with them on my list for Friday morning"},
        ], "tools": tools})
        .to_string()
    };
    let missing = bytes.saturating_sub(body("").len());
    let sentence = "Northwind is looked after by Dana Ruiz; the last call was about the renewal of their contract. ";
    let filler: String = sentence.chars().cycle().take(missing).collect();
    Bytes::from(body(&filler))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
