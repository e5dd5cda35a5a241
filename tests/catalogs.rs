//! Catalogs by reference, over sockets: a request names one and leaves out its tools, and everything goes as if it had
//! sent them. NOT the splice's own properties (`wire::lent`), NOT how a file is read (`wire::listing`).

mod support;

use std::path::PathBuf;

use serde_json::{Value, json};
use support::client::Response;
use support::embeddings::Fault;
use support::eventually;
use support::provider::Provider;
use support::received::{Received, list};
use support::reply::Reply;
use support::roster;
use support::sidecar::{self, Builder, Sidecar};

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:generateContent";
const ANTHROPIC: &str = "/kimi/anthropic/v1/messages";
const RAIN: &str = "Weather report: temperature, rain forecast.";
const LOCK: &str = "locks the front door of the house";
const CRM: (&str, &str) = ("x-packlight-catalog", "crm");
/// Three in the roster of twenty, and hundreds that share no word with it.
const MANY: usize = 400;

/// A catalog's file, kept while the test runs.
struct File(tempfile::TempDir);

impl File {
    fn of(tools: &Value) -> Self {
        let file = Self(tempfile::tempdir().expect("a folder"));
        file.write(&tools.to_string());
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("crm.json")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).expect("written");
    }
}

/// The roster and as many more as make up `count`, in OpenAI form.
fn tools(count: usize) -> Value {
    let more = (roster::TOOLS.len()..count).map(|n| {
        let words = format!("Synchronises ledger {} with archive {}", n * 7919, n * 104_729);
        roster::function(&format!("sync_{n}"), &words)
    });
    list(&roster::openai()).into_iter().chain(more).collect()
}

fn over(provider: &Provider, file: &File) -> Builder {
    sidecar::over(provider).set("catalogs.crm.tools", &format!("{:?}", file.path()))
}

fn done(count: usize) -> (Provider, Sidecar, File) {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let file = File::of(&tools(count));
    let sidecar = over(&provider, &file).start();
    (provider, sidecar, file)
}

/// A request of each wire, without tools.
fn asks(text: &str) -> [(&'static str, Value); 3] {
    let mut asks =
        [(KIMI, roster::ask(text)), (GEMINI, roster::ask_gemini(text)), (ANTHROPIC, roster::ask_anthropic(text))];
    for (_, body) in &mut asks {
        body.as_object_mut().expect("an object").remove("tools");
    }
    asks
}

/// Sends it by reference; the reply and what the provider got for it.
fn sent(provider: &Provider, sidecar: &Sidecar, path: &str, more: &[(&str, &str)], body: &str) -> (Response, Received) {
    let before = provider.chats().len();
    let headers: Vec<(&str, &str)> = [CRM].into_iter().chain(more.iter().copied()).collect();
    let answer = sidecar.post_with(path, &headers, body);
    provider.assert_no_refusal();
    assert_eq!(answer.status, 200, "{}", answer.text());
    (answer, provider.wait(before + 1))
}

fn field(answer: &Response, name: &str) -> String {
    answer.packlight(name)
}

#[test]
fn hundreds_of_tools_are_narrowed_on_every_wire_as_if_they_had_been_sent() {
    let (provider, sidecar, _file) = done(MANY);
    for (path, body) in asks(RAIN) {
        let (answer, got) = sent(&provider, &sidecar, path, &[], &body.to_string());
        let tools = got.tools();
        assert_eq!((tools.len(), tools.last().map(String::as_str)), (4, Some("find_tools")), "{path}: {tools:?}");
        assert!(got.declares("get_weather"), "{tools:?}");
        assert_eq!((field(&answer, "action"), field(&answer, "reason")), ("narrowed".into(), String::new()));
        assert_eq!((field(&answer, "roster"), field(&answer, "bound")), (MANY.to_string(), "3".to_owned()));
        let mut left = got.json();
        left.as_object_mut().expect("an object").remove("tools");
        assert_eq!(left, body, "{path}: nothing else is new");
    }
    let mut body = asks(RAIN)[0].1.clone();
    let by_reference = provider.chats()[0].json();
    body["tools"] = tools(MANY);
    sidecar.post(KIMI, &body.to_string());
    assert_eq!(provider.wait(4).json(), by_reference, "the same request with its tools in it");
}

#[test]
fn every_byte_but_the_tools_is_the_agents() {
    let (provider, sidecar, _file) = done(MANY);
    let body = format!(
        "{{ \"model\" : \"kimi-k2.6\",\n \"seed\":9007199254740993001, \"temperature\" :1.0,\n \"messages\":[{{\"role\":\"user\",\"content\":\"{RAIN} \\u4f60\"}}]\n}} "
    );
    let whole = body.strip_suffix("} ").expect("the end");
    for headers in [&[][..], &[("x-packlight-resume", "true")]] {
        let (_, got) = sent(&provider, &sidecar, KIMI, headers, &body);
        let text = got.text();
        let (before, rest) = text.split_at(whole.len());
        assert_eq!(before, whole);
        assert!(rest.starts_with(",\"tools\":[{") && rest.ends_with("}]} "), "{}", &rest[rest.len() - 20..]);
    }
}

#[test]
fn what_cannot_be_narrowed_gets_the_whole_catalog() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let file = File::of(&tools(100));
    let resume = ("x-packlight-resume", "true");
    let modes = [("off", "relayed", "off"), ("shadow", "shadow", "")];
    let sidecar = over(&provider, &file).start();
    for (path, body) in asks(RAIN) {
        let all = |headers: &[(&str, &str)], body: &Value, action: &str, reason: &str| {
            let (answer, got) = sent(&provider, &sidecar, path, headers, &body.to_string());
            assert_eq!((field(&answer, "action").as_str(), field(&answer, "reason").as_str()), (action, reason));
            assert_eq!((field(&answer, "roster"), field(&answer, "bound")), ("100".into(), "100".into()));
            let names: Vec<String> =
                list(&tools(100)).iter().map(|t| t["function"]["name"].as_str().unwrap_or_default().into()).collect();
            assert_eq!(got.tools(), names, "{path} {reason}");
            let mut left = got.json();
            left.as_object_mut().expect("an object").remove("tools");
            assert_eq!(left, *body, "{path} {reason}");
        };
        all(&[resume], &body, "full", "resume");
        for (mode, action, reason) in modes {
            all(&[("x-packlight-mode", mode)], &body, action, reason);
        }
        let (image, key) = match path {
            GEMINI => (
                json!([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]}]),
                "contents",
            ),
            _ => (json!([{"role": "user", "content": " "}]), "messages"),
        };
        let mut silent = body.clone();
        silent[key] = image;
        all(&[], &silent, "full", "no_query");
    }
    let shown: Value = sidecar.admin("/decisions").json();
    assert!(list(&shown).iter().all(|decision| decision["roster"]["count"] == 100), "{shown}");

    let provider = Provider::new().answer(|_| Reply::text("done")).embeddings(Fault::Status(500)).start();
    let held = over(&provider, &file).set("narrow.percent", "0").start();
    let (answer, got) = sent(&provider, &held, KIMI, &[], &asks(RAIN)[0].1.to_string());
    assert_eq!((field(&answer, "action").as_str(), got.tools().len()), ("holdout", 100));
    let broken = over(&provider, &file).away().start();
    let (answer, got) = sent(&provider, &broken, KIMI, &[], &asks(RAIN)[0].1.to_string());
    assert_eq!((field(&answer, "reason").as_str(), got.tools().len()), ("embedder", 100));
}

#[test]
fn a_narrowed_request_that_is_refused_goes_with_the_whole_catalog() {
    let refusing = |request: &Received| match request.declares("find_tools") {
        true => Reply::status(400, r#"{"error":{"message":"no"}}"#),
        false => Reply::text("done"),
    };
    let provider = Provider::new().answer(refusing).start();
    let file = File::of(&tools(60));
    let sidecar = over(&provider, &file).start();
    for (path, body) in asks(RAIN) {
        let before = provider.chats().len();
        let answer = sidecar.post_with(path, &[CRM], &body.to_string());
        assert_eq!((answer.status, field(&answer, "reason").as_str()), (200, "refused"), "{}", answer.text());
        let got = provider.wait(before + 2);
        assert_eq!((provider.chats().len(), got.tools().len()), (before + 2, 60), "{path}");
    }
}

#[test]
fn a_name_that_no_catalog_has_is_answered_in_the_agents_own_shape() {
    let (provider, sidecar, _file) = done(30);
    let message = "packlight: x-packlight-catalog names no catalog: there are crm";
    for (path, body) in asks(RAIN) {
        let answer = sidecar.post_with(path, &[("x-packlight-catalog", "sk-not-a-name")], &body.to_string());
        assert_eq!(answer.status, 400);
        let error = answer.json()["error"].clone();
        assert_eq!(error["message"], message, "{error}");
        let told = match path {
            KIMI => (&error["code"], "unknown_catalog"),
            GEMINI => (&error["status"], "INVALID_ARGUMENT"),
            _ => (&error["type"], "invalid_request_error"),
        };
        assert_eq!(told.0, told.1);
    }
    let empty = sidecar.post_with(KIMI, &[("x-packlight-catalog", "")], &asks(RAIN)[0].1.to_string());
    assert_eq!((empty.status, empty.json()["error"]["message"].as_str()), (400, Some(message)));
    assert!(provider.chats().is_empty());
    let counted = || sidecar.metrics().value("packlight_requests_total", &[("reason", "catalog")]);
    eventually("they are counted", || (counted() == 4.0).then_some(()));
    assert!(!sidecar.log().contains("sk-not-a-name"));
}

#[test]
fn a_request_that_cannot_be_given_its_tools_is_answered_and_never_sent_without_them() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let file = File::of(&tools(30));
    let sidecar = over(&provider, &file).set("server.max_body", "\"4KiB\"").start();
    let ask = asks(RAIN)[0].1.clone();
    let long = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(5000)}]}).to_string();
    let off = [("x-packlight-mode", "off")];
    let cases: [(&[_], &str, u16); 5] = [
        (&[], &long, 413),
        (&[("content-encoding", "zzz")], &ask.to_string(), 415),
        (&[], "not json", 400),
        (&[], r#"{"tools":[],"tools":[]}"#, 400),
        (&off, r#"{"tools":"x"}"#, 400),
    ];
    for (headers, body, status) in cases {
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain([CRM]).collect();
        let answer = sidecar.post_with(KIMI, &headers, body);
        assert_eq!((answer.status, field(&answer, "reason").as_str()), (status, "catalog"), "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "catalog_unusable");
    }
    assert!(provider.chats().is_empty());
    // What the provider can judge is the provider's to judge, with all tools.
    let lenient = Provider::new().lenient().answer(|_| Reply::text("done")).start();
    let sidecar = over(&lenient, &file).start();
    let (answer, got) = sent(&lenient, &sidecar, KIMI, &[], r#"{"messages":[{"role":"bot"}]}"#);
    assert_eq!((field(&answer, "reason").as_str(), got.tools().len()), ("unreadable", 30));
    let gzip = support::wiring::gzip(ask.to_string().as_bytes());
    let headers = [CRM, ("content-encoding", "gzip"), ("x-packlight-resume", "true")];
    let answer = support::client::send(sidecar.data, "POST", KIMI, &headers, &gzip);
    assert_eq!((answer.status, lenient.wait(2).tools().len()), (200, 30));
    assert_eq!(lenient.wait(2).header("content-encoding"), None);
}

#[test]
fn a_search_finds_in_the_catalog_and_the_next_request_remembers_it() {
    for (path, body) in asks(RAIN) {
        let replies = [Reply::find(LOCK), Reply::call("lock_door", json!({"value": "x"})), Reply::text("done")];
        let provider = Provider::new().replies(replies).start();
        let file = File::of(&tools(MANY));
        let sidecar = over(&provider, &file).start();
        let (answer, first) = sent(&provider, &sidecar, path, &[], &body.to_string());
        assert!(!first.declares("lock_door") && !answer.text().contains("find_tools"), "{}", answer.text());
        let second = provider.wait(2);
        assert!(second.declares("lock_door") && second.declares("get_weather"), "{path}: {:?}", second.tools());
        let (_, third) = sent(&provider, &sidecar, path, &[], &roster::after(&body, &answer.json(), "").to_string());
        assert!(third.declares("lock_door") && third.text().contains("find_tools"), "{path}");
        assert_eq!(
            third.messages()[..second.messages().len()],
            second.messages()[..],
            "{path}: the hidden exchange is back"
        );
    }
}

#[test]
fn appended_and_dispatched_as_any_other_roster() {
    let replies = || [Reply::find(LOCK), Reply::text("done")];
    let file = File::of(&tools(MANY));
    let mut k3 = asks(RAIN)[0].1.clone();
    k3["model"] = "kimi-k3".into();
    let provider = Provider::new().replies(replies()).start();
    let sidecar =
        over(&provider, &file).set("narrow.binding", "\"append\"").set("narrow.always_on", "[\"set_alarm\"]").start();
    let (answer, first) = sent(&provider, &sidecar, KIMI, &[], &k3.to_string());
    assert_eq!(field(&answer, "binding"), "append");
    let top = |got: &Received| list(&got.json()["tools"]).len();
    assert_eq!((top(&first), first.declares("get_weather")), (2, true), "core and find_tools, the rest in messages");
    let second = provider.wait(2);
    assert!(top(&second) == 2 && second.declares("lock_door"));

    for (path, body) in asks(RAIN).into_iter().take(2) {
        let provider = Provider::new().replies(replies()).start();
        let sidecar = over(&provider, &file).set("narrow.binding", "\"dispatch\"").start();
        let (answer, first) = sent(&provider, &sidecar, path, &[], &body.to_string());
        assert_eq!(field(&answer, "binding"), "dispatch");
        assert!(first.declares("call_tool") && first.declares("get_weather") && first.tools().len() == 5);
        let second = provider.wait(2);
        assert_eq!(second.tools(), first.tools(), "{path}: the block is constant");
        assert!(second.text().contains("lock_door") && second.text().contains("what it is about"), "schema and all");
    }
}

#[test]
fn the_agents_own_tools_come_first_and_win_over_those_of_one_name() {
    let (provider, sidecar, _file) = done(60);
    let resume = [("x-packlight-resume", "true")];
    let own = [("own_tool", "Counts sheep"), ("order_pizza", "Its own pizza")];
    for (path, mut body) in asks("Order pizza with toppings for delivery") {
        let openai: Value = own.iter().map(|(name, text)| roster::function(name, text)).collect();
        body["tools"] = match path {
            KIMI => openai,
            GEMINI => json!([{"functionDeclarations": own.map(|(n, d)| json!({"name": n, "description": d}))}]),
            _ => own
                .iter()
                .map(|(n, d)| json!({"name": n, "description": d, "input_schema": {"type": "object"}}))
                .collect(),
        };
        let (answer, got) = sent(&provider, &sidecar, path, &resume, &body.to_string());
        let names = got.tools();
        assert_eq!((names.len(), field(&answer, "roster").as_str()), (61, "61"), "{path}");
        assert_eq!(names[..3], ["own_tool", "order_pizza", "send_email"]);
        assert_eq!(names.iter().filter(|name| *name == "order_pizza").count(), 1);
        assert!(got.text().contains("Its own pizza") && !got.text().contains("Orders pizza"));
        let (answer, got) = sent(&provider, &sidecar, path, &[], &body.to_string());
        assert_eq!(field(&answer, "action"), "narrowed");
        assert!(got.declares("order_pizza") && got.text().contains("Its own pizza"), "{:?}", got.tools());
        assert_eq!(got.tools().len(), 4, "{:?}", got.tools());
    }
}

#[test]
fn more_than_the_provider_takes_goes_as_far_as_it_fits() {
    let (provider, sidecar, _file) = done(MANY);
    let mut body = asks(RAIN)[0].1.clone();
    let call = json!({"id": "c:0", "type": "function", "function": {"name": "sync_399", "arguments": "{}"}});
    body["messages"] = json!([
        {"role": "user", "content": RAIN},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c:0", "content": "ok"},
    ]);
    for headers in [&[("x-packlight-mode", "off")], &[("x-packlight-resume", "true")]] {
        let (answer, got) = sent(&provider, &sidecar, KIMI, headers, &body.to_string());
        let names = got.tools();
        assert_eq!(
            (names.len(), field(&answer, "bound").as_str(), field(&answer, "roster").as_str()),
            (128, "128", "400")
        );
        assert_eq!(
            (names[0].as_str(), names[127].as_str()),
            ("send_email", "sync_399"),
            "what was called, then in order"
        );
    }
    let keep = [("x-packlight-resume", "true"), ("x-packlight-keep", "sync_300")];
    let (_, got) = sent(&provider, &sidecar, KIMI, &keep, &body.to_string());
    assert!(got.declares("sync_300") && got.tools().len() == 128);
    let (answer, got) = sent(&provider, &sidecar, KIMI, &[], &body.to_string());
    assert!(got.declares("sync_399") && got.tools().len() == 5, "{:?}", got.tools());
    assert_eq!((field(&answer, "bound").as_str(), field(&answer, "roster").as_str()), ("4", "400"));
    let (_, got) = sent(&provider, &sidecar, GEMINI, &[("x-packlight-mode", "off")], &asks(RAIN)[1].1.to_string());
    assert_eq!(got.tools().len(), MANY, "Gemini takes 512");
}

#[test]
fn a_changed_file_is_used_and_a_broken_one_leaves_what_there_was() {
    let (provider, sidecar, file) = done(30);
    let resume = [("x-packlight-resume", "true")];
    let mut body = asks(RAIN)[1].1.clone();
    let names = || sent(&provider, &sidecar, GEMINI, &resume, &asks(RAIN)[1].1.to_string()).1.tools();
    let broken = || sidecar.metrics().value("packlight_file_broken", &[("kind", "catalog"), ("name", "crm")]);
    assert_eq!((names().len(), broken()), (30, 0.0));
    assert!(sidecar.metrics().0.contains("packlight_file_broken{"), "it is told that all is well");
    let mut other = list(&tools(30));
    other.retain(|tool| tool["function"]["name"] != "order_pizza");
    other.push(roster::function("brew_tea", "Brews a pot of tea"));
    file.write(&json!({"tools": other}).to_string());
    eventually("the other version", || names().contains(&"brew_tea".to_owned()).then_some(()));
    assert!(!names().contains(&"order_pizza".to_owned()));

    // A conversation that called what is gone now goes on: Gemini refuses a history of undeclared functions.
    body["contents"] = json!([
        {"role": "user", "parts": [{"text": "pizza"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "order_pizza", "args": {}}, "thoughtSignature": "c2lnbmVk"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "order_pizza", "response": {"output": "ok"}}}]},
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": RAIN}]},
    ]);
    for headers in [&resume[..], &[]] {
        let (_, got) = sent(&provider, &sidecar, GEMINI, headers, &body.to_string());
        let gone = got.declarations().into_iter().find(|tool| tool["name"] == "order_pizza").expect("declared");
        assert_eq!(gone["description"], "No longer available: do not call it.");
        assert_eq!(gone.get("parameters"), None);
    }

    file.write("[{\"function\":{}}]");
    eventually("a warning", || sidecar.log().contains("the version before is used on").then_some(()));
    assert!(sidecar.log().contains("tool 1 has no name"));
    assert_eq!((names().contains(&"brew_tea".to_owned()), broken()), (true, 1.0));
    file.write(&tools(25).to_string());
    eventually("a version that is whole again", || (names().len() == 25).then_some(()));
    assert_eq!(broken(), 0.0);
    std::fs::remove_file(file.path()).expect("gone");
    eventually("a file that is gone", || (broken() == 1.0).then_some(()));
    assert_eq!(names().len(), 25);
}

#[test]
fn a_catalog_in_any_form_serves_every_wire() {
    let schema =
        json!({"type": "object", "properties": {"value": {"type": "string", "description": "what it is about"}}});
    let gemini =
        json!({"type": "OBJECT", "properties": {"value": {"type": "STRING", "description": "what it is about"}}});
    let flat = |key: &str, schema: &Value| -> Value {
        let tool = |(name, text): &(&str, &str)| json!({"name": name, "description": text, key: schema});
        roster::TOOLS.iter().map(tool).collect()
    };
    let files = [
        json!([{"functionDeclarations": flat("parameters", &gemini)}]),
        json!({"tools": flat("input_schema", &schema)}),
        json!({"tools": flat("inputSchema", &schema)}),
    ];
    for tools in files {
        let provider = Provider::new().answer(|_| Reply::text("done")).start();
        let file = File::of(&tools);
        let sidecar = over(&provider, &file).start();
        for (path, body) in asks(RAIN) {
            let (_, got) = sent(&provider, &sidecar, path, &[], &body.to_string());
            let weather = got.declarations().into_iter().find(|tool| tool.to_string().contains("get_weather"));
            let weather = weather.expect("declared");
            let parameters = ["parameters", "input_schema", "parametersJsonSchema"];
            let own = weather.get("function").unwrap_or(&weather);
            let found = parameters.iter().find_map(|key| own.get(*key)).expect("a schema");
            let lower = found.to_string().to_lowercase();
            assert_eq!(serde_json::from_str::<Value>(&lower).ok(), Some(schema.clone()), "{path} {weather}");
        }
    }
}

/// The texts that an embedder was asked for.
fn texts(calls: &[Received]) -> Vec<String> {
    let text = |text: &Value| text.as_str().unwrap_or_default().to_owned();
    calls.iter().flat_map(|call| list(&call.json()["input"])).map(|input| text(&input)).collect()
}

/// What the last line says that tells how far a build is.
fn progress(sidecar: &Sidecar) -> Option<(u64, u64)> {
    let log = sidecar.log();
    let line = log.lines().rfind(|line| line.contains("making vectors; what is done is kept"))?;
    let number = |field: &str| {
        let rest = line.split_once(&format!("\"{field}\":"))?.1;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    Some((number("done")?, number("of")?))
}

#[test]
fn a_first_build_that_is_killed_goes_on_where_it_was() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let file = File::of(&tools(1500));
    let sidecar = over(&provider, &file).set("narrow.deadline", "\"50ms\"").start();
    let folder = std::sync::Arc::clone(&sidecar.folder);
    let body = asks(RAIN)[0].1.to_string();
    let (answer, got) = sent(&provider, &sidecar, KIMI, &[], &body);
    assert_eq!((field(&answer, "reason").as_str(), got.tools().len()), ("deadline", 128), "it does not wait");
    eventually("some of it is done", || (provider.embedded().len() >= 16).then_some(()));
    provider.set_embeddings(Fault::Slow);
    eventually("it says how far it is", || progress(&sidecar).filter(|(done, of)| *done == 0 && *of > 2900));
    drop(sidecar);
    let first = provider.embedded();
    provider.set_embeddings(Fault::None);

    let sidecar = over(&provider, &file).folder(&folder).start();
    let (answer, _) = sent(&provider, &sidecar, KIMI, &[], &body);
    assert_eq!(field(&answer, "action"), "narrowed", "in the time that it has now");
    let (done, of) = progress(&sidecar).expect("it says so again");
    assert!(done > 0 && of > 2900, "{done} of {of}");
    // What was under way when it was killed is made again.
    let kept: std::collections::HashSet<String> = texts(&first[..first.len() - 4]).into_iter().collect();
    let again = texts(&provider.embedded()[first.len()..]);
    let repeated: Vec<&String> = again.iter().filter(|text| kept.contains(*text) && *text != RAIN).collect();
    assert!(again.len() > 300 && repeated.is_empty(), "{} of {}: {repeated:?}", repeated.len(), again.len());
}
