//! Proof: what Packlight says it did, would have done and saved, against conversations whose truth is known. The
//! provider counts tokens and caches prefixes as its tests script it; every expected figure is worked out here. NOT the
//! report's and the page's own sums (report.rs, page.rs).

mod support;

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use packlight::decision::Decision;
use packlight::turn::tokens;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use support::client::Response;
use support::embeddings::Fault;
use support::eventually;
use support::provider::Provider;
use support::received::Received;
use support::reply::Reply;
use support::roster;
use support::sidecar::{Sidecar, over};

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-2.5-pro";
const WEATHER: &str = "Weather report: temperature, rain forecast.";
const ALARM: &str = "Alarm, wakes somebody at clock time.";

/// The records of the admin port, once there are so many.
fn records(sidecar: &Sidecar, count: usize) -> Vec<Decision> {
    eventually("the records", || {
        let shown = sidecar.admin("/decisions").json();
        let shown: Vec<Decision> = serde_json::from_value(shown).expect("records");
        (shown.len() >= count).then_some(shown)
    })
}

fn chat(messages: Value) -> Value {
    let mut body = roster::ask("x");
    body["messages"] = messages;
    body
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// A request's tools and messages as they were written.
#[derive(Deserialize)]
struct Parts {
    tools: Vec<Box<RawValue>>,
    messages: Vec<Box<RawValue>>,
}

/// Tokens of a request's tools and of each message, as a provider with this tokenizer counts what it received.
fn counted(request: &Received) -> (Vec<u64>, Vec<u64>) {
    let parts: Parts = serde_json::from_slice(&request.body).expect("a request");
    let each = |list: &[Box<RawValue>]| list.iter().map(|part| tokens::count(part.get())).collect();
    (each(&parts.tools), each(&parts.messages))
}

/// A provider that bills what it received and remembers the prefix of the request before, in chunks of 256 tokens.
fn billing(call: &'static str, completion: u64) -> Provider {
    let before: Mutex<Vec<String>> = Mutex::default();
    let answer = move |request: &Received| {
        let parts: Parts = serde_json::from_slice(&request.body).expect("a request");
        let prompt: Vec<String> = parts.tools.iter().chain(&parts.messages).map(|part| part.get().to_owned()).collect();
        let mut before = before.lock().unwrap();
        let common = prompt.iter().zip(before.iter()).take_while(|(now, then)| now == then).count();
        let sum = |parts: &[String]| parts.iter().map(|part| tokens::count(part)).sum::<u64>();
        let (all, cached) = (sum(&prompt), sum(&prompt[..common]));
        let cached = if cached == all { all } else { cached - cached % 256 };
        *before = prompt;
        let reply = if call.is_empty() { Reply::text("done") } else { Reply::call(call, json!({"value": "x"})) };
        reply.usage(all, cached, completion)
    };
    Provider::new().lenient().answer(answer).start()
}

#[test]
fn shadow_sends_the_agents_bytes_on_every_wire_and_says_what_it_would_have_done() {
    let provider = Provider::new()
        .lenient()
        .answer(|_| Reply::call("lock_door", json!({"value": "x"})).usage(2000, 500, 30))
        .start();
    let sidecar = over(&provider).set("narrow.mode", "\"shadow\"").set("narrow.deadline", "\"10s\"").start();
    // The vectors of the roster are built beside the first request, which therefore says why it would have gone in full.
    let mut warm = 0;
    eventually("a roster that is embedded", || {
        sidecar.post(KIMI, &roster::ask(ALARM).to_string());
        warm += 1;
        records(&sidecar, warm).pop()?.block.map(|_| ())
    });
    let before = provider.chats().len();
    let spaced = |body: &Value| serde_json::to_string_pretty(body).unwrap();
    let anthropic = json!({
        "model": "kimi-k2.6", "max_tokens": 100, "messages": [{"role": "user", "content": WEATHER}],
        "tools": roster::TOOLS.iter().map(|(name, text)| json!({"name": name, "description": text,
            "input_schema": {"type": "object", "properties": {"value": {"type": "string"}}}})).collect::<Vec<_>>(),
    });
    let mut streamed = anthropic.clone();
    streamed["stream"] = true.into();
    let sent = [
        (KIMI.to_owned(), spaced(&roster::ask(WEATHER))),
        (KIMI.to_owned(), spaced(&roster::ask_stream(WEATHER))),
        (format!("{GEMINI}:generateContent"), spaced(&roster::ask_gemini(WEATHER))),
        (format!("{GEMINI}:streamGenerateContent?alt=sse"), spaced(&roster::ask_gemini(WEATHER))),
        (format!("{GEMINI}:streamGenerateContent"), spaced(&roster::ask_gemini(WEATHER))),
        ("/kimi/anthropic/v1/messages".to_owned(), spaced(&anthropic)),
        ("/kimi/anthropic/v1/messages".to_owned(), spaced(&streamed)),
    ];
    for (at, (path, body)) in sent.iter().enumerate() {
        let answer = sidecar.post(path, body);
        assert_eq!((answer.status, answer.packlight("action").as_str()), (200, "shadow"), "{path}: {}", answer.text());
        assert_eq!(digest(&provider.wait(before + at + 1).body), digest(body.as_bytes()), "{path}");
        records(&sidecar, warm + at + 1);
    }
    let records = records(&sidecar, warm + sent.len());
    let watched = &records[warm..];
    for (record, (path, _)) in watched.iter().zip(&sent) {
        assert_eq!(
            (record.arm.as_str(), record.action.as_str(), record.reason.as_str()),
            ("shadow", "shadow", ""),
            "{path}"
        );
        assert_eq!(record.bound.len(), 3, "{path}");
        assert!(record.bound.contains(&"get_weather".to_owned()), "{path}");
        let called: Vec<_> = record.called.iter().map(|call| (call.name.as_str(), call.verdict.as_str())).collect();
        assert_eq!(called, [("lock_door", "withheld")], "{path}: a search would have been needed");
        assert!(record.called[0].rank.is_some_and(|rank| rank > 3), "{path}: {:?}", record.called);
        let usage = record.usage.expect("reported");
        assert_eq!((usage.prompt, usage.cached, usage.completion), (2000, 500, 30), "{path}");
        assert!(record.saved.tokens > 0 && record.saved.usd.is_some(), "{path}: {:?}", record.saved);
    }
    let metrics = sidecar.metrics();
    let called = |verdict| metrics.value("packlight_called_tools_total", &[("arm", "shadow"), ("verdict", verdict)]);
    assert!(called("withheld") >= sent.len() as f64, "{}", metrics.0);
    assert_eq!(metrics.value("packlight_missed_tools_total", &[("tool", "lock_door")]), called("withheld"));
}

#[test]
fn shadow_never_waits_for_its_choice() {
    let provider = Provider::new().embeddings(Fault::Slow).answer(|_| Reply::text("done").usage(9, 0, 1)).start();
    let sidecar = over(&provider).away().set("narrow.mode", "\"shadow\"").set("narrow.deadline", "\"20s\"").start();
    let answer = sidecar.post(KIMI, &roster::ask(WEATHER).to_string());
    assert_eq!((answer.status, answer.packlight("action").as_str()), (200, "shadow"));
    assert_eq!(sidecar.admin("/decisions").text(), "[]", "answered while the choice is still being made");
    provider.release();
    let record = records(&sidecar, 1).remove(0);
    assert_eq!(record.usage.map(|usage| usage.prompt), Some(9));
}

#[test]
fn narrowed_conversations_give_exactly_the_tokens_and_the_dollars_that_are_true() {
    let provider = billing("lock_door", 20);
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("decisions.jsonl");
    let sidecar = over(&provider).set("log.decisions", &format!("{log:?}")).start();
    // 3,000 tokens of system prompt make the history worth caching.
    let system = json!({"role": "system", "content": "Mind the house rules of the garden. ".repeat(400)});
    let turns = [json!({"role": "user", "content": WEATHER}), json!({"role": "user", "content": ALARM})];
    let first = chat(json!([system, turns[0]]));
    let second = chat(json!([system, turns[0], {"role": "assistant", "content": "done"}, turns[1]]));
    let narrowed = |body: &Value| {
        let answer: Response = sidecar.post(KIMI, &body.to_string());
        assert_eq!(answer.packlight("action"), "narrowed", "{:?}", answer.headers);
    };
    narrowed(&first);
    narrowed(&second);
    let records = records(&sidecar, 2);
    let chats = provider.chats();
    let roster: u64 = roster::openai().as_array().unwrap().iter().map(|tool| tokens::count(&tool.to_string())).sum();
    let (mut prompts, mut cost, mut saved, mut tool_tokens) = (0, 0.0, 0.0, 0);
    for (at, (record, request)) in records.iter().zip(&chats).enumerate() {
        let (tools, messages) = counted(request);
        let (bound, history): (u64, u64) = (tools.iter().sum(), messages.iter().sum());
        assert_eq!(record.roster.tokens, roster);
        assert_eq!(record.history_tokens, history);
        assert_eq!(record.block.as_ref().map(|block| block.tokens), Some(bound), "find_tools included");
        let usage = record.usage.expect("reported");
        assert_eq!(usage.prompt, bound + history);
        assert_eq!(record.saved.tokens, roster as i64 - bound as i64);
        assert_eq!(record.called.iter().map(|call| call.verdict.as_str()).collect::<Vec<_>>(), ["withheld"]);
        // kimi-k2.6: 0.95, 0.16 and 4.00 USD a million
        let price = |prompt: u64, cached: u64, completion: u64| {
            ((prompt - cached) as f64 * 0.95 + cached as f64 * 0.16 + completion as f64 * 4.0) / 1e6
        };
        let paid = price(usage.prompt, usage.cached, 20);
        assert!(record.cost_usd.is_some_and(|found| near(found, paid)), "{:?}", record.cost_usd);
        // In full the second request would have read the roster, the system prompt and the first message.
        let known = if at == 0 { 0 } else { roster + messages[0] + messages[1] };
        let full = price(roster + history, known - known % 256, 20);
        assert!(record.saved.usd.is_some_and(|found| near(found, full - paid)), "{:?} {}", record.saved, full - paid);
        prompts += usage.prompt;
        cost += paid;
        saved += full - paid;
        tool_tokens += bound;
    }
    // Another block was needed, so the second request read next to nothing: narrowing lost, and says so.
    assert!(records[1].usage.is_some_and(|usage| usage.cached < 1000), "{:?}", records[1].usage);
    assert!(records[1].saved.usd.is_some_and(|usd| usd < 0.0) && records[1].saved.tokens > 0, "{:?}", records[1].saved);
    assert!(saved < 0.0);
    let metrics = sidecar.metrics();
    let value = |name: &str, labels: &[(&str, &str)]| metrics.value(&format!("packlight_{name}"), labels);
    assert_eq!(value("prompt_tokens_total", &[("arm", "narrow")]), prompts as f64);
    assert_eq!(value("completion_tokens_total", &[("arm", "narrow")]), 40.0);
    assert!(near(value("cost_usd_total", &[("arm", "narrow"), ("model", "kimi-k2.6")]), cost));
    assert!(near(value("saved_usd_estimated_total", &[("upstream", "kimi")]), saved), "a loss is shown as one");
    assert_eq!(value("tool_tokens_estimated_total", &[("set", "bound")]), tool_tokens as f64);
    assert_eq!(value("tool_tokens_estimated_total", &[("set", "roster")]), 2.0 * roster as f64);
    assert_eq!(value("missed_tools_total", &[("tool", "lock_door")]), 2.0);
    // The same in the log, where the roster's tools are told once.
    let lines: Vec<Decision> = eventually("the log", || {
        let text =
            std::fs::read_to_string(&log).ok().filter(|text| text.lines().count() == 2 && text.ends_with('\n'))?;
        Some(text.lines().map(|line| Decision::read(line).expect("a record")).collect())
    });
    assert_eq!(lines[0].roster.tool_tokens.iter().map(|tool| tool.tokens).sum::<u64>(), roster);
    assert!(lines[1].roster.tool_tokens.is_empty() && lines[1].roster.hash == lines[0].roster.hash);
    assert!(lines.iter().zip(&records).all(|(line, record)| line.saved == record.saved && line.usage == record.usage));
    // And in the report.
    let report = std::process::Command::new(env!("CARGO_BIN_EXE_packlight"))
        .args(["report", "--json"])
        .arg(&log)
        .output()
        .expect("the binary runs");
    let report: Value = serde_json::from_slice(&report.stdout).expect("json");
    let arm =
        report["arms"].as_array().and_then(|arms| arms.iter().find(|arm| arm["arm"] == "narrow")).expect("an arm");
    assert_eq!(arm["prompt"], prompts, "{arm}");
    assert!(near(arm["cost_usd"].as_f64().unwrap_or_default(), cost), "{arm}");
    assert!(near(arm["saved_usd"].as_f64().unwrap_or_default(), saved), "{arm}");
}

#[test]
fn a_block_that_stays_saves_what_is_not_sent_at_the_price_of_the_cache() {
    let provider = billing("", 10);
    let sidecar = over(&provider).start();
    let body = chat(json!([{"role": "user", "content": WEATHER}])).to_string();
    sidecar.post(KIMI, &body);
    sidecar.post(KIMI, &body);
    let records = records(&sidecar, 2);
    let usage = records[1].usage.expect("reported");
    assert_eq!(usage.cached, usage.prompt, "an exact repetition reads everything");
    let withheld = records[1].saved.tokens as f64;
    assert!(records[0].saved.usd.is_some_and(|usd| near(usd, withheld * 0.95 / 1e6)), "{:?}", records[0].saved);
    assert!(records[1].saved.usd.is_some_and(|usd| near(usd, withheld * 0.16 / 1e6)), "{:?}", records[1].saved);
}

#[test]
fn holdout_is_the_same_group_on_every_replica_and_both_are_measured_as_reported() {
    let provider = Provider::new().answer(|_| Reply::text("done").usage(1000, 100, 10)).start();
    let replicas =
        [over(&provider).set("narrow.percent", "50").start(), over(&provider).set("narrow.percent", "50").start()];
    let mut arms = [Vec::new(), Vec::new()];
    for (sidecar, arms) in replicas.iter().zip(&mut arms) {
        for n in 0..40 {
            let answer = sidecar.post(KIMI, &roster::ask(&format!("{WEATHER} Number {n}.")).to_string());
            arms.push(answer.packlight("action"));
        }
        let narrowed = arms.iter().filter(|action| *action == "narrowed").count() as f64;
        assert!((8.0..33.0).contains(&narrowed), "{narrowed} of 40");
        let reported = |arm: &str| {
            let metrics = sidecar.metrics();
            let prompt = |kind| metrics.value("packlight_prompt_tokens_total", &[("arm", arm), ("kind", kind)]);
            (prompt("uncached"), prompt("cached"))
        };
        eventually("both arms", || {
            (reported("narrow") == (900.0 * narrowed, 100.0 * narrowed)
                && reported("holdout") == (900.0 * (40.0 - narrowed), 100.0 * (40.0 - narrowed)))
                .then_some(())
        });
        assert!(arms.iter().all(|action| action == "narrowed" || action == "holdout"), "{arms:?}");
    }
    assert_eq!(arms[0], arms[1]);
}

#[test]
fn a_pipe_that_nobody_reads_loses_records_and_no_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("decisions");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let provider = Provider::new().answer(|_| Reply::text("done").usage(10, 0, 1)).start();
    let mut sidecar = over(&provider).set("log.decisions", &format!("{pipe:?}")).start();
    let body = roster::ask(WEATHER).to_string();
    for _ in 0..60 {
        assert_eq!(sidecar.post(KIMI, &body).status, 200);
    }
    records(&sidecar, 60);
    sidecar.terminate();
    assert!(sidecar.wait().success(), "nor does it hold up the end of the process");
}

#[test]
fn a_provider_counts_a_roster_once_when_it_is_asked_to() {
    let counts = |conn: &mut support::provider::Connection, answer: &str| {
        conn.head.read_body(&mut conn.reader);
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        conn.writer.write_all((head + answer).as_bytes()).expect("an answer");
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (kimi, gemini) = (asked.clone(), asked.clone());
    let provider = Provider::new()
        .hijack("/v1/tokenizers/estimate-token-count", move |conn| {
            counts(conn, r#"{"data":{"total_tokens":1234}}"#);
            kimi.lock().unwrap().push((conn.head.header("authorization").map(str::to_owned), conn.head.text()));
        })
        .hijack("/v1beta/models/gemini-2.5-pro:countTokens", move |conn| {
            counts(conn, r#"{"totalTokens":4321}"#);
            gemini.lock().unwrap().push((conn.head.header("authorization").map(str::to_owned), conn.head.text()));
        })
        .answer(|_| Reply::text("done"))
        .start();
    let url = provider.url();
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [narrow]\nmode = \"shadow\"\n\
         [[upstream]]\nname = \"kimi\"\nurl = \"{url}\"\ncount_tokens = true\n\
         [[upstream]]\nname = \"gemini\"\nurl = \"{url}\"\ncount_tokens = true\n\
         [[upstream]]\nname = \"quiet\"\nurl = \"{url}\"\n"
    );
    let sidecar = Sidecar::bare().config(&config).away().start();
    let gemini_chat = format!("{GEMINI}:generateContent");
    for (path, body, expected) in [
        ("/quiet/v1/chat/completions", roster::ask(WEATHER), None),
        (KIMI, roster::ask(WEATHER), Some(1234)),
        (gemini_chat.as_str(), roster::ask_gemini(WEATHER), Some(4321)),
    ] {
        let mut sent = records(&sidecar, 0).len();
        eventually(path, || {
            assert_eq!(sidecar.post(path, &body.to_string()).status, 200);
            sent += 1;
            let record = records(&sidecar, sent).pop()?;
            (record.roster.provider_tokens == expected).then_some(())
        });
    }
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2, "once a roster, and not where it is off: {asked:?}");
    assert!(asked.iter().all(|(credential, _)| credential.as_deref() == Some("Bearer sk-test")), "{asked:?}");
    assert!(asked.iter().all(|(_, body)| body.contains("get_weather")), "{asked:?}");
}
