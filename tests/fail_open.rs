//! Each reason to touch nothing: the provider gets the agent's own bytes, and header and metric say why.
//! Bodies are compared by bytes, so a test here fails if anything of them moves.

mod support;

use serde_json::{Value, json};
use support::embeddings::Fault;
use support::eventually;
use support::provider::Provider;
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const CHAT: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:generateContent";

/// Sends `body` and asserts that it went through whole, for `reason`.
fn full(sidecar: &Sidecar, provider: &Provider, path: &str, headers: &[(&str, &str)], body: &str, reason: &str) {
    let before = provider.chats().len();
    let counted = requests(sidecar, reason);
    let answer = sidecar.post_with(path, headers, body);
    assert_eq!(answer.packlight("action"), "full", "{reason}: {body}");
    assert_eq!(answer.packlight("reason"), reason);
    let chats = provider.chats();
    assert_eq!(chats.len(), before + 1, "one upstream call for {reason}");
    assert!(chats[before].body == body.as_bytes(), "{reason}: the agent's own bytes");
    eventually("the request is counted", || (requests(sidecar, reason) == counted + 1.0).then_some(()));
}

fn requests(sidecar: &Sidecar, reason: &str) -> f64 {
    let metrics = sidecar.metrics();
    ["openai", "gemini"]
        .iter()
        .flat_map(|wire| ["kimi", "gemini"].map(|upstream| (wire, upstream)))
        .map(|(wire, upstream)| {
            let labels = [("upstream", upstream), ("wire", wire), ("action", "full"), ("reason", reason)];
            metrics.value("packlight_requests_total", &labels)
        })
        .sum()
}

fn with(mut body: Value, change: impl FnOnce(&mut Value)) -> String {
    change(&mut body);
    body.to_string()
}

fn lenient() -> (Provider, Sidecar) {
    let provider = Provider::new().lenient().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider).start();
    (provider, sidecar)
}

#[test]
fn requests_that_have_nothing_to_narrow() {
    let (provider, sidecar) = lenient();
    let ask = || roster::ask("send a mail");
    let cases: Vec<(String, &str)> = vec![
        (with(ask(), |b| drop(b.as_object_mut().unwrap().remove("tools"))), "no_tools"),
        (with(ask(), |b| b["tools"] = json!([])), "no_tools"),
        (with(ask(), |b| b["tools"] = Value::Null), "no_tools"),
        (
            with(ask(), |b| {
                b["tools"] = json!([{"type": "builtin_function", "function": {"name": "$web_search"}}]);
            }),
            "no_tools",
        ),
        (with(ask(), |b| b["tools"].as_array_mut().unwrap().truncate(12)), "small_roster"),
        (with(ask(), |b| b["messages"][1]["content"] = json!("   \n")), "no_query"),
        (
            with(ask(), |b| {
                let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]);
                b["messages"][1]["content"] = image;
            }),
            "no_query",
        ),
        (with(ask(), |b| b["messages"] = json!([{"role": "system", "content": "x"}])), "no_query"),
        (
            with(ask(), |b| {
                b["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "send_email", "arguments": "{}"}}]}));
            }),
            "resume",
        ),
        (with(ask(), |b| b["tools"][3]["function"]["name"] = json!("find_tools")), "name_collision"),
        (with(ask(), |b| b["n"] = json!(2)), "choices"),
        (
            with(ask(), |b| {
                b["messages"].as_array_mut().unwrap().push(json!(
                    {"role": "assistant", "content": "{", "partial": true}));
            }),
            "partial",
        ),
        (with(ask(), |b| b["tools"][0]["defer_loading"] = json!(true)), "client_search"),
        (
            with(ask(), |b| b["extra_body"] = json!({"google": {"cached_content": "cachedContents/1"}})),
            "cached_content",
        ),
    ];
    for (body, reason) in &cases {
        full(&sidecar, &provider, CHAT, &[], body, reason);
    }
    let body = roster::ask("send a mail").to_string();
    full(&sidecar, &provider, CHAT, &[("x-packlight-resume", "true")], &body, "resume");
    assert!(provider.embedded().is_empty(), "none of these needs an embedding");
}

#[test]
fn gemini_requests_that_have_nothing_to_narrow() {
    let (provider, sidecar) = lenient();
    let ask = || roster::ask_gemini("send a mail");
    let cases: Vec<(String, &str)> = vec![
        (with(ask(), |b| b["tools"] = json!([{"googleSearch": {}}])), "no_tools"),
        (with(ask(), |b| b["generationConfig"] = json!({"candidateCount": 2})), "choices"),
        (with(ask(), |b| b["cachedContent"] = json!("cachedContents/1")), "cached_content"),
        (with(ask(), |b| b["cached_content"] = json!("cachedContents/1")), "cached_content"),
        (with(ask(), |b| b["contents"][0]["parts"] = json!([{"inlineData": {"mimeType": "image/png"}}])), "no_query"),
        (
            with(ask(), |b| {
                b["contents"].as_array_mut().unwrap().push(json!(
                    {"role": "model", "parts": [{"functionCall": {"name": "send_email", "args": {}}}]}));
            }),
            "resume",
        ),
    ];
    for (body, reason) in &cases {
        full(&sidecar, &provider, GEMINI, &[], body, reason);
    }
    assert!(provider.embedded().is_empty());
}

#[test]
fn bodies_that_cannot_be_read() {
    let (provider, sidecar) = lenient();
    let body = roster::ask("send a mail").to_string();
    let twice = body.replacen('{', "{\"tools\":[],", 1);
    for unreadable in [
        format!("\u{feff}{body}"),
        format!("{body} x"),
        format!("{body}{body}"),
        body[..body.len() - 1].to_owned(),
        twice,
        "[]".to_owned(),
        "null".to_owned(),
        String::new(),
    ] {
        full(&sidecar, &provider, CHAT, &[], &unreadable, "unreadable");
    }
    let before = provider.chats().len();
    let mut bytes = body.into_bytes();
    let at = bytes.windows(4).position(|window| window == b"mail").unwrap();
    bytes[at] = 0xff;
    let answer = support::client::send(sidecar.data, "POST", CHAT, &[("content-type", "application/json")], &bytes);
    assert_eq!(answer.packlight("reason"), "unreadable");
    assert_eq!(provider.chats()[before].body, bytes, "bad UTF-8 passes as it is");
}

#[test]
fn a_body_over_the_limit_is_relayed_unread() {
    let provider = Provider::new().lenient().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider).set("server.max_body", "\"4KiB\"").start();
    let body = roster::ask(&"send a mail ".repeat(1000)).to_string();
    full(&sidecar, &provider, CHAT, &[], &body, "too_large");
}

#[test]
fn encodings() {
    let (provider, sidecar) = lenient();
    let body = roster::ask("send a mail").to_string();
    full(&sidecar, &provider, CHAT, &[("content-encoding", "snappy")], &body, "encoding");
    full(&sidecar, &provider, CHAT, &[("content-encoding", "gzip")], &body, "encoding");
    let before = provider.chats().len();
    let packed = support::wiring::gzip(body.as_bytes());
    let answer = support::client::send(sidecar.data, "POST", CHAT, &[("content-encoding", "gzip")], &packed);
    assert_eq!(answer.packlight("action"), "narrowed");
    let sent = &provider.chats()[before];
    assert_eq!(sent.header("content-encoding"), None, "what was decoded is sent on decoded");
    assert!(sent.declares("find_tools"));
}

/// A sidecar whose embedder has this fault from the start, with no builtin one behind it.
fn faulty(fault: Fault, deadline: &str) -> (Provider, Sidecar) {
    let provider = Provider::new().embeddings(fault).answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider).set("narrow.deadline", &format!("\"{deadline}\"")).away().start();
    (provider, sidecar)
}

#[test]
fn an_embedder_that_is_down_or_answers_nonsense() {
    let faults =
        [Fault::Down, Fault::Status(500), Fault::WrongCount, Fault::NaN, Fault::Null, Fault::WrongLength, Fault::Zero];
    for fault in faults {
        let (provider, sidecar) = faulty(fault, "20s");
        let body = roster::ask("send a mail").to_string();
        full(&sidecar, &provider, CHAT, &[], &body, "embedder");
        let body = roster::ask_gemini("send a mail").to_string();
        full(&sidecar, &provider, GEMINI, &[], &body, "embedder");
    }
}

#[test]
fn an_embedder_that_is_slow_costs_the_deadline_once_and_the_build_runs_on() {
    let (provider, sidecar) = faulty(Fault::Slow, "50ms");
    let body = roster::ask("send a mail").to_string();
    full(&sidecar, &provider, CHAT, &[], &body, "deadline");
    provider.release();
    provider.set_embeddings(Fault::None);
    eventually("the build that ran on is used", || {
        (sidecar.post(CHAT, &body).packlight("action") == "narrowed").then_some(())
    });
}

#[test]
fn without_a_model_everything_goes_in_full_and_readyz_says_so() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider).set("embeddings.provider", "\"builtin\"").away().start();
    let body = roster::ask("send a mail").to_string();
    full(&sidecar, &provider, CHAT, &[], &body, "model_absent");
    full(&sidecar, &provider, CHAT, &[], &body, "model_absent");
    let ready = sidecar.admin("/readyz");
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["embedder"], "absent");
    let log = sidecar.log();
    assert_eq!(log.matches("model").count().min(1), 1, "said in the log: {log}");
}

#[test]
fn a_request_that_the_provider_refuses_is_sent_once_more_as_the_agent_wrote_it() {
    let provider = Provider::new()
        .lenient()
        .answer(|request| {
            if request.declares("find_tools") {
                Reply::status(400, r#"{"error":{"message":"schema","type":"invalid_request_error"}}"#)
            } else {
                Reply::text("done")
            }
        })
        .start();
    let sidecar = Sidecar::over(&provider).start();
    let body = roster::ask_stream("send a mail").to_string();
    let answer = sidecar.post(CHAT, &body);
    assert_eq!(
        (answer.status, answer.packlight("action"), answer.packlight("reason")),
        (200, "full".into(), "refused".into())
    );
    let chats = provider.chats();
    assert_eq!(chats.len(), 2);
    assert!(chats[1].body == body.as_bytes(), "the agent's own bytes");
    assert!(answer.text().contains("done"));
    eventually("counted", || (requests(&sidecar, "refused") == 1.0).then_some(()));
}

#[test]
fn a_400_for_the_agents_own_request_is_relayed_as_it_is() {
    let refusal = r#"{"error":{"message":"no","type":"invalid_request_error"}}"#;
    let provider = Provider::new().lenient().answer(move |_| Reply::status(400, refusal)).start();
    let sidecar = Sidecar::over(&provider).start();
    let answer = sidecar.post(CHAT, &roster::ask("send a mail").to_string());
    assert_eq!(answer.status, 400);
    assert_eq!(answer.text(), refusal);
    assert_eq!(provider.chats().len(), 2, "once, not in a loop");
}

#[test]
fn more_tools_to_bind_than_the_provider_takes() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider)
        .set("narrow.always_on", "[\"set_*\", \"send_*\", \"get_*\"]")
        .tail(
            "\n[[upstream]]\nname = \"tight\"\nprefix = \"/tight\"\nurl = \"URL\"\nmax_tools = 3\n"
                .replace("URL", &provider.url())
                .as_str(),
        )
        .start();
    let body = roster::ask("send a mail").to_string();
    full_at(&sidecar, &provider, "/tight/v1/chat/completions", &body, "too_large");
}

fn full_at(sidecar: &Sidecar, provider: &Provider, path: &str, body: &str, reason: &str) {
    let answer = sidecar.post(path, body);
    assert_eq!((answer.packlight("action"), answer.packlight("reason")), ("full".into(), reason.into()));
    assert!(provider.chats().last().unwrap().body == body.as_bytes());
}

#[test]
fn mode_off_is_relayed_and_shadow_and_holdout_are_named() {
    let (provider, sidecar) = lenient();
    let body = roster::ask("send a mail").to_string();
    let answer = sidecar.post_with(CHAT, &[("x-packlight-mode", "off")], &body);
    assert_eq!((answer.packlight("action"), answer.packlight("reason")), ("relayed".into(), "off".into()));
    let answer = sidecar.post_with(CHAT, &[("x-packlight-mode", "shadow")], &body);
    assert_eq!((answer.packlight("action"), answer.packlight("reason")), ("shadow".into(), String::new()));
    assert!(provider.chats().iter().all(|chat| chat.body == body.as_bytes()));
    assert!(provider.chats().iter().all(|chat| chat.header("x-packlight-mode").is_none()), "ours are taken out");

    let none = Sidecar::over(&provider).set("narrow.percent", "0").start();
    let answer = none.post(CHAT, &body);
    assert_eq!((answer.packlight("action"), answer.packlight("bound")), ("holdout".into(), "20".into()));
    assert!(provider.chats().last().unwrap().body == body.as_bytes());
}

#[test]
fn a_mode_that_is_none_is_read_as_off() {
    let (provider, sidecar) = lenient();
    let body = roster::ask("send a mail").to_string();
    let asks = |mode: &str| sidecar.post_with(CHAT, &[("x-packlight-mode", mode)], &body);
    assert_eq!(asks("Shadow").packlight("action"), "shadow");
    for mode in ["of", "shadow,narrow", ""] {
        let answer = asks(mode);
        assert_eq!(
            (answer.packlight("action"), answer.packlight("reason")),
            ("relayed".into(), "off".into()),
            "{mode}"
        );
        assert_eq!(provider.chats().last().expect("sent").body, body.as_bytes(), "{mode}");
    }
    assert_eq!(sidecar.log().matches("x-packlight-mode").count(), 1, "{}", sidecar.log());
    assert_eq!(asks("NARROW").packlight("action"), "narrowed");
}

#[test]
fn a_full_queue_fails_open_at_once() {
    use std::io::Write;
    let provider = Provider::new().lenient().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider).set("embeddings.provider", "\"builtin\"").start();
    eventually("the builtin model serves (is it there? run `make model`)", || {
        (sidecar.post(CHAT, &roster::ask("send a mail").to_string()).packlight("action") == "narrowed").then_some(())
    });
    // More messages at once than the queue holds (256), each of them new.
    let flood: Vec<std::net::TcpStream> = (0..400)
        .map(|n| {
            let body = roster::ask(&format!("message number {n}")).to_string();
            let mut stream = std::net::TcpStream::connect(sidecar.data).expect("the sidecar listens");
            let head = format!("POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).expect("a head");
            stream.write_all(body.as_bytes()).expect("a body");
            stream
        })
        .collect();
    eventually("a full queue is counted", || (requests(&sidecar, "queue_full") > 0.0).then_some(()));
    drop(flood);
}

#[test]
fn a_full_disk_loses_records_and_no_request() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let sidecar = Sidecar::over(&provider).set("log.decisions", "\"/dev/full\"").start();
    let answer = sidecar.post(CHAT, &roster::ask("send a mail").to_string());
    assert_eq!((answer.status, answer.packlight("action")), (200, "narrowed".to_owned()));
    eventually("the loss is counted", || {
        (sidecar.metrics().value("packlight_lost_records_total", &[]) > 0.0).then_some(())
    });
}

#[test]
fn the_decision_log_has_a_line_a_request_and_nothing_private() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("decisions.jsonl");
    let provider =
        Provider::new().answer(|_| Reply::call("send_email", json!({"value": "x"})).usage(900, 600, 20)).start();
    let sidecar = Sidecar::over(&provider).set("log.decisions", &format!("{path:?}")).start();
    let headers = [("authorization", "Bearer secret-key")];
    sidecar.post_with(CHAT, &headers, &roster::ask("send a mail about kangaroos").to_string());
    let lines =
        eventually("the record is written", || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')));
    assert_eq!(lines.lines().count(), 1);
    let record: Value = serde_json::from_str(&lines).expect("a JSON line");
    assert_eq!(record["action"], "narrowed");
    assert_eq!(record["usage"], json!({"prompt": 900, "cached": 600, "completion": 20}));
    assert_eq!(record["called"], json!([{"name": "send_email", "verdict": "bound", "rank": 1}]));
    assert_eq!(record["roster"]["count"], 20);
    assert!(record["bound"].as_array().is_some_and(|bound| bound.len() == 12));
    for private in ["secret-key", "kangaroos"] {
        assert!(!lines.contains(private) && !sidecar.log().contains(private) && !sidecar.metrics().0.contains(private));
        assert!(!sidecar.admin("/decisions").text().contains(private));
    }
    assert!(record["query"]["hash"].as_str().is_some_and(|hash| hash.len() == 16));
    let open = Sidecar::over(&provider).set("log.text", "true").start();
    open.post_with(CHAT, &headers, &roster::ask("send a mail about kangaroos").to_string());
    let shown = eventually("the record", || {
        open.admin("/decisions").json().as_array().and_then(|records| records.first().cloned())
    });
    assert_eq!(shown["query"]["text"], "send a mail about kangaroos", "text only when it is asked for");
}
