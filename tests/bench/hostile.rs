//! A million requests whose every name is new: memory must stay where it was after ten thousand.
//!
//! In process, against all that a request leaves behind (metrics, ledger, token counts, savings, records, journal): each
//! has its own model, credential, roster, message, and tools called that nobody declared. Then fewer of the same over
//! sockets, through the release binary in shadow.
//!
//! `cargo bench --bench hostile [-- REQUESTS]`; 1,000,000 without a number; over sockets a twentieth of them, 30,000 at least. Exit
//! code 1 when memory is more than 10 % above that after 10,000.

#[allow(dead_code, reason = "the other bench uses the rest")]
mod provider;
#[allow(dead_code, reason = "the other bench uses the rest")]
mod sidecar;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use packlight::cost::prices::Prices;
use packlight::metrics::{Kept, Metrics};
use packlight::outcome::{Action, Outcome, Verdict};
use packlight::proxy::journal::Journal;
use packlight::proxy::ledger::{Ledger, Measure};
use packlight::proxy::sent::Sent;
use packlight::turn::fold::Block;
use packlight::turn::policy::{Facts, Policy};
use packlight::turn::roster::Roster;
use packlight::turn::selection::Selection;
use packlight::wire::Format;
use packlight::wire::reply::Usage;
use provider::Provider;
use sidecar::Sidecar;

const WARM: usize = 10_000;
const PARALLEL: usize = 16;

fn main() -> ExitCode {
    let requests = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let mut kept = in_process(requests);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    kept &= runtime.block_on(over_sockets((requests / 20).max(3 * WARM)));
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn in_process(requests: usize) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = Arc::new(Metrics::new().expect("series"));
    let journal = Journal::open(&folder.path().join("decisions.jsonl")).expect("a log");
    let prices = Prices::default();
    let ledger = Ledger::open(prices, metrics.clone(), Some(journal)).expect("a thread");
    let (begun, mut warm) = (Instant::now(), 0.0);
    for n in 0..requests {
        let outcome = outcome(n, &ledger);
        metrics.record(&outcome);
        ledger.record(outcome);
        // As fast as it is worked out: a queue that is full would spare the ledger, and its length is no growth.
        while ledger.waiting() > 100 {
            std::thread::sleep(Duration::from_micros(200));
        }
        if n + 1 == WARM {
            warm = resident_mb(std::process::id());
        }
        if (n + 1) % (requests / 10).max(WARM) == 0 {
            println!("  after {:>9}: {:.1} MB", n + 1, resident_mb(std::process::id()));
        }
    }
    while ledger.waiting() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let series =
        metrics.registry(&Kept::default()).gather().iter().map(|family| family.get_metric().len()).sum::<usize>();
    println!("{series} series, {} records lost", ledger.lost());
    verdict("in process", requests, begun, warm, resident_mb(std::process::id()))
}

/// One request with names that nobody has seen.
fn outcome(n: usize, ledger: &Ledger) -> Outcome {
    let tool = |t: usize| {
        format!(
            r#"{{"type":"function","function":{{"name":"t{n}_{t}","description":"Does {n} and {t}","parameters":{{}}}}}}"#
        )
    };
    let tools: Vec<String> = (0..3).map(tool).collect();
    let body = Bytes::from(format!(
        r#"{{"model":"m{n}","messages":[{{"role":"user","content":"ask {n} {}"}}],"tools":[{}]}}"#,
        "x".repeat(n % 300),
        tools.join(",")
    ));
    let sent = Sent::plain(Format::OpenAi, "/v1/chat/completions", body);
    let view = sent.view().expect("a request");
    let policy = policy();
    let roster = Arc::new(Roster::new(&view.tools, &policy, &|_| Facts::default()));
    let selection = Selection { best: vec![n % 3], ..Selection::default() };
    let mut outcome = Outcome {
        request: format!("{n:016x}"),
        conversation: format!("{n:016x}"),
        account: n as u64,
        ts: 1_796_000_000.0 + n as f64 / 100.0,
        upstream: "kimi".into(),
        wire: "openai",
        model: if n.is_multiple_of(2) { "kimi-k3".to_owned() } else { format!("m{n}-{}", "y".repeat(n % 500)) },
        mode: "shadow",
        action: if n.is_multiple_of(3) { Action::Narrowed } else { Action::Shadow },
        binding: "replace",
        roster: 3,
        bound: vec![roster.name(n % 3).to_owned()],
        block: Some(Block::begin(&roster, &policy, &selection)),
        searchable: true,
        tools: Some(roster.clone()),
        query: format!("{n:016x}"),
        usage: Usage { reported: true, prompt: 900, cached: n as u64 % 900, completion: 5 },
        status: 200,
        legs: 1,
        ..Outcome::default()
    };
    outcome.first = Some(outcome.usage);
    outcome.asked(&format!("ask {n}"), true);
    for call in 0..5 {
        outcome.called(&format!("undeclared{n}_{call}{}", "z".repeat(n % 400)), Verdict::Withheld);
    }
    ledger.measure(Measure::of(&sent, &view, &roster, &policy, outcome.history.clone()));
    outcome
}

fn policy() -> Policy {
    packlight::proxy::route::Route::new(packlight::config::Config::default().upstreams.remove(0)).policy
}

async fn over_sockets(requests: usize) -> bool {
    let provider = Provider::start(1).await;
    let sidecar = Sidecar::start(&provider, None).await;
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let (begun, mut warm) = (Instant::now(), 0.0);
    let first = WARM;
    let mut sent = 0;
    for (until, is_warm) in [(first, true), (requests, false)] {
        let next = Arc::new(std::sync::atomic::AtomicUsize::new(sent));
        let workers = (0..PARALLEL).map(|_| {
            let (client, next, url) = (client.clone(), next.clone(), sidecar.url("/v1/chat/completions"));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= until {
                        return;
                    }
                    let request = Request::post(&url)
                        .header("content-type", "application/json")
                        .header("authorization", format!("Bearer {n}"))
                        .header("x-packlight-mode", "shadow")
                        .body(Full::new(chat(n)))
                        .expect("a request");
                    let answer = client.request(request).await.expect("an answer");
                    answer.into_body().collect().await.expect("all of it");
                }
            })
        });
        for worker in join_all(workers).await {
            worker.expect("a worker");
        }
        sent = until;
        if is_warm {
            warm = sidecar.resident_mb();
        }
    }
    verdict("over sockets", requests, begun, warm, sidecar.resident_mb())
}

fn chat(n: usize) -> Bytes {
    let tool = |t: usize| {
        format!(
            r#"{{"type":"function","function":{{"name":"t{n}_{t}","description":"Does {n} and {t}","parameters":{{}}}}}}"#
        )
    };
    let tools: Vec<String> = (0..20).map(tool).collect();
    let body = format!(
        r#"{{"model":"m{n}","messages":[{{"role":"user","content":"ask {n}"}}],"tools":[{}]}}"#,
        tools.join(",")
    );
    Bytes::from(body)
}

fn verdict(what: &str, requests: usize, begun: Instant, warm: f64, now: f64) -> bool {
    let kept = now <= warm * 1.1;
    println!(
        "{what}: {requests} requests in {:.0} s; resident {warm:.1} MB when warm, {now:.1} MB at the end ({:+.1} %) {}",
        begun.elapsed().as_secs_f64(),
        (now / warm - 1.0) * 100.0,
        if kept { "ok" } else { "MISSED" }
    );
    kept
}

/// NaN where there is no /proc.
fn resident_mb(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).map_or(f64::NAN, |kb| kb / 1024.0)
}
