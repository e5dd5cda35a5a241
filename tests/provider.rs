//! The scripted provider itself: it must refuse what the real ones refuse, or the
//! other black-box tests prove nothing. NOT Packlight.

mod support;

use serde_json::{Value, json};

use support::client::{self, Exchange};
use support::embeddings::{Fault, embed};
use support::provider::Provider;
use support::reply::{Lines, Reply, UsageAt, signature};
use support::roster;

const CHAT: &str = "/v1/chat/completions";
const COMPAT: &str = "/v1beta/openai/chat/completions";
const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent";
const GEMINI3: &str = "/v1beta/models/gemini-3-pro:generateContent";

fn post(provider: &Provider, path: &str, body: &Value) -> client::Response {
    client::send(provider.addr, "POST", path, &[], body.to_string().as_bytes())
}

/// `body` with the value at a JSON pointer replaced.
fn with(body: &Value, pointer: &str, value: Value) -> Value {
    let mut body = body.clone();
    *body.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is in the body")) = value;
    body
}

/// `body` with a new member at the top.
fn plus(body: &Value, key: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[key] = value;
    body
}

fn history(messages: Value) -> Value {
    plus(&roster::ask("x"), "messages", messages)
}

fn called(ids: &[&str]) -> Value {
    let call =
        |id: &&str| json!({"id": id, "type": "function", "function": {"name": "get_weather", "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "rain"})
}

fn user() -> Value {
    json!({"role": "user", "content": "hello"})
}

#[test]
fn openai_requests_are_refused_for_what_kimi_refuses() {
    let good = roster::ask("hello");
    let many: Value = (0..129).map(|i| roster::function(&format!("tool_{i}"), "x")).collect();
    let schema = "/tools/0/function/parameters";
    let k3 = |tools: Value| {
        let mut body = history(json!([user(), {"role": "system", "tools": tools}]));
        body["model"] = "kimi-k3".into();
        body
    };
    let cases: Vec<(&str, Value, &str)> = vec![
        ("empty tools", plus(&good, "tools", json!([])), "too short"),
        ("too many", plus(&good, "tools", many), "at most 128"),
        ("bad name", with(&good, "/tools/0/function/name", json!("9x")), "is invalid"),
        ("same name twice", with(&good, "/tools/0/function/name", json!("book_hotel")), "duplicated"),
        ("untyped property", with(&good, &format!("{schema}/properties/value"), json!({})), "type is not defined"),
        ("no such property", with(&good, &format!("{schema}/required"), json!(["gone"])), "not in properties"),
        (
            "type beside anyOf",
            with(
                &good,
                &format!("{schema}/properties/value"),
                json!({"type": "string", "anyOf": [{"type": "string"}]}),
            ),
            "anyOf",
        ),
        (
            "choice without tools",
            plus(&plus(&good, "tools", Value::Null), "tool_choice", json!("required")),
            "only allowed when tools",
        ),
        (
            "choice of an absent tool",
            plus(&good, "tool_choice", json!({"type": "function", "function": {"name": "gone"}})),
            "not in tools",
        ),
        ("old functions", plus(&good, "functions", json!([])), "not supported"),
        ("two ways of thinking", plus(&plus(&good, "thinking", json!({})), "reasoning_effort", json!("low")), "both"),
        ("open call at the end", history(json!([user(), called(&["a"])])), "not followed"),
        ("open call in the middle", history(json!([user(), called(&["a", "b"]), result("a"), user()])), "not followed"),
        ("result without call", history(json!([user(), called(&["a"]), result("a"), result("b")])), "not found"),
        ("result of an earlier call", history(json!([user(), called(&["a"]), result("a"), result("a")])), "not found"),
        (
            "message tools, K2",
            with(&k3(json!([roster::function("new_tool", "x")])), "/model", json!("kimi-k2.6")),
            "tokenization",
        ),
        ("message tools, known name", k3(json!([roster::function("get_weather", "x")])), "duplicated"),
        (
            "message tools and content",
            history(json!([{"role": "system", "content": "x", "tools": [roster::function("new_tool", "x")]}])),
            "tokenization",
        ),
    ];
    let provider = Provider::new().answer(|_| Reply::text("taken")).start();
    for (name, body, why) in cases {
        let answer = post(&provider, CHAT, &body);
        assert_eq!(answer.status, 400, "{name}");
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(why), "{name}: {message}");
    }
    let taken: Vec<(&str, Value)> = vec![
        ("plain", good.clone()),
        ("no tools", plus(&good, "tools", Value::Null)),
        ("paired", history(json!([user(), called(&["a", "b"]), result("b"), result("a"), user()]))),
        ("id of an earlier turn", history(json!([user(), called(&["a"]), result("a"), called(&["a"]), result("a")]))),
        ("message tools on K3", k3(json!([roster::function("new_tool", "x")]))),
        ("named choice", plus(&good, "tool_choice", json!({"type": "function", "function": {"name": "get_weather"}}))),
    ];
    for (name, body) in taken {
        let answer = post(&provider, CHAT, &body);
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    }
}

#[test]
fn broken_bodies_and_leaked_headers_are_refused() {
    let provider = Provider::new().answer(|_| Reply::text("taken")).start();
    let send = |headers: &[(&str, &str)], body: &[u8]| client::send(provider.addr, "POST", CHAT, headers, body).status;
    let good = roster::ask("hello").to_string();
    assert_eq!(send(&[], good.as_bytes()), 200);
    assert_eq!(send(&[], b"{\"model\":\"\xff\"}"), 400);
    assert_eq!(send(&[], b"{\"model\":"), 400);
    assert_eq!(send(&[("X-Packlight-Mode", "off")], good.as_bytes()), 400);
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{good}\r\n0\r\n\r\n",
        good.len()
    );
    assert_eq!(client::send_raw(provider.addr, chunked.as_bytes()).status, 400);
    let lenient = Provider::new().lenient().answer(|_| Reply::text("taken")).start();
    assert_eq!(client::send(lenient.addr, "POST", CHAT, &[], b"\xff").status, 200);
}

#[test]
fn kimi_that_thinks_wants_its_reasoning_back() {
    let provider = Provider::new().thinking().answer(|_| Reply::text("taken")).start();
    let mut call = called(&["a"]);
    let answer = post(&provider, CHAT, &history(json!([user(), call, result("a")])));
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("reasoning_content is missing in assistant tool call message at index 1"));
    call["reasoning_content"] = "".into();
    assert_eq!(post(&provider, CHAT, &history(json!([user(), call, result("a")]))).status, 200);
}

#[test]
fn gemini_requests_are_refused_for_what_gemini_refuses() {
    let good = roster::ask_gemini("hello");
    let contents = |list: Value| plus(&good, "contents", list);
    let user = json!({"role": "user", "parts": [{"text": "hello"}]});
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let back = |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "rain"}}});
    let model = |parts: Vec<Value>| json!({"role": "model", "parts": parts});
    let answer = |parts: Vec<Value>| json!({"role": "user", "parts": parts});
    let many: Vec<Value> = (0..300).map(|i| json!({"name": format!("a{i}")})).collect();
    let more: Vec<Value> = (0..213).map(|i| json!({"name": format!("b{i}")})).collect();
    let two_tools = json!([{"functionDeclarations": many}, {"function_declarations": more}]);
    let cases: Vec<(&str, Value, &str)> = vec![
        ("too many over two Tools", plus(&good, "tools", two_tools), "at most 512"),
        ("empty declarations", plus(&good, "tools", json!([{"functionDeclarations": []}])), "should not be empty"),
        ("same name twice", with(&good, "/tools/0/functionDeclarations/0/name", json!("book_hotel")), "Duplicate"),
        ("bad name", with(&good, "/tools/0/functionDeclarations/0/name", json!("a b")), "Invalid function name"),
        ("cached content with tools", plus(&good, "cachedContent", json!("caches/1")), "CachedContent"),
        (
            "allowed but not declared",
            plus(
                &good,
                "toolConfig",
                json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["gone"]}}),
            ),
            "not declared",
        ),
        (
            "builtin beside functions",
            plus(&good, "tools", json!([{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}]}])),
            "Built-in",
        ),
        (
            "undeclared in history",
            contents(json!([user, model(vec![call("gone")]), answer(vec![back("gone")])])),
            "not declared",
        ),
        (
            "call without response",
            contents(json!([user, model(vec![call("get_weather")]), user])),
            "number of function response",
        ),
        ("call at the end", contents(json!([user, model(vec![call("get_weather")])])), "number of function response"),
        (
            "two calls, one response",
            contents(json!([
                user,
                model(vec![call("get_weather")]),
                model(vec![call("set_alarm")]),
                answer(vec![back("set_alarm")])
            ])),
            "number of function response",
        ),
        (
            "response without name",
            contents(json!([user, model(vec![call("get_weather")]), answer(vec![back("")])])),
            "cannot be empty",
        ),
        (
            "response to another",
            contents(json!([user, model(vec![call("get_weather")]), answer(vec![back("set_alarm")])])),
            "answers no call",
        ),
        ("no parts", contents(json!([{"role": "user", "parts": []}])), "parts must not be empty"),
    ];
    let provider = Provider::new().answer(|_| Reply::text("taken")).start();
    for (name, body, why) in cases {
        let reply = post(&provider, GEMINI, &body);
        assert_eq!(reply.status, 400, "{name}");
        assert!(reply.text().contains(why), "{name}: {}", reply.text());
    }
    let split = contents(json!([
        user,
        model(vec![call("get_weather")]),
        model(vec![call("set_alarm")]),
        answer(vec![back("get_weather"), back("set_alarm")])
    ]));
    for body in [&good, &split, &json!({"contents": [user], "cached_content": "caches/1"})] {
        let reply = post(&provider, GEMINI, body);
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[test]
fn gemini_3_wants_the_first_call_of_each_step_signed() {
    let user = json!({"role": "user", "parts": [{"text": "hello"}]});
    let step = |signature: Option<&str>| {
        let mut call = json!({"functionCall": {"name": "get_weather", "args": {}, "id": "1"}});
        if let Some(signature) = signature {
            call["thoughtSignature"] = signature.into();
        }
        let back = json!({"functionResponse": {"name": "get_weather", "id": "1", "response": {}}});
        vec![json!({"role": "model", "parts": [call]}), json!({"role": "user", "parts": [back]})]
    };
    let body = |steps: Vec<Value>| plus(&roster::ask_gemini("x"), "contents", steps.into());
    let provider = Provider::new().answer(|_| Reply::text("taken")).start();
    let status = |steps: Vec<Vec<Value>>| post(&provider, GEMINI3, &body(steps.concat())).status;
    assert_eq!(status(vec![vec![user.clone()], step(Some(&signature(0, "get_weather")))]), 200);
    assert_eq!(status(vec![vec![user.clone()], step(Some("skip_thought_signature_validator"))]), 200);
    assert_eq!(status(vec![vec![user.clone()], step(Some("made up"))]), 400);
    assert_eq!(status(vec![vec![user.clone()], step(None)]), 400);
    assert_eq!(status(vec![vec![user.clone()], step(Some("sig0x")), step(None)]), 400);
    // An earlier turn is not validated.
    assert_eq!(status(vec![vec![user.clone()], step(None), vec![user]]), 200);
}

#[test]
fn a_kimi_stream_keeps_the_vendor_s_order() {
    let reply =
        Reply::default().and_reasoning("I think").and_text("Hello").and_call("get_weather", json!({"value": "x"}));
    let provider = Provider::new().reply(reply).start();
    let answer = post(&provider, CHAT, &roster::ask_stream("x"));
    let frames = answer.frames();
    assert_eq!(frames[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let kinds: Vec<&str> = frames[1..]
        .iter()
        .filter_map(|f| f["choices"][0]["delta"].as_object()?.keys().next().map(String::as_str))
        .fold(Vec::new(), |mut kinds, k| {
            if kinds.last() != Some(&k) {
                kinds.push(k);
            }
            kinds
        });
    assert_eq!(kinds, ["reasoning_content", "content", "tool_calls"]);
    let end = &frames[frames.len() - 2];
    assert_eq!(end["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(end["choices"][0]["usage"]["cached_tokens"], 400);
    assert_eq!(frames[frames.len() - 1]["choices"], json!([]));
    assert_eq!(answer.events().last().map(String::as_str), Some("[DONE]"));
}

#[test]
fn the_compatible_stream_has_no_index_and_stops() {
    let reply = Reply::call("get_weather", json!({})).and_call("set_alarm", json!({}));
    let provider = Provider::new().reply(reply).start();
    let frames = post(&provider, COMPAT, &roster::ask_stream("x")).frames();
    assert_eq!(frames.len(), 2);
    let call = &frames[0]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(call["index"], Value::Null);
    assert_eq!(call["extra_content"]["google"]["thought_signature"], signature(0, "get_weather"));
    assert_eq!(frames[1]["choices"][0]["finish_reason"], "stop");
    let refused = post(&provider, COMPAT, &plus(&roster::ask("x"), "tools", json!([])));
    assert_eq!(refused.json()[0]["error"]["code"], 400);
}

#[test]
fn gemini_streams_as_sse_and_as_an_array() {
    let provider = Provider::new().answer(|_| Reply::text("Hello").and_call("get_weather", json!({}))).start();
    let body = roster::ask_gemini("x");
    let stream = GEMINI3.replace(":generate", ":streamGenerate");
    let sse = post(&provider, &format!("{stream}?alt=sse"), &body);
    assert!(sse.text().contains("\r\n\r\n"));
    assert_eq!(
        sse.frames()[1]["candidates"][0]["content"]["parts"][0]["thoughtSignature"],
        signature(0, "get_weather")
    );
    assert_eq!(sse.frames()[2]["candidates"][0]["finishReason"], "STOP");
    let array = post(&provider, &stream, &body).json();
    assert_eq!(array.as_array().map(Vec::len), Some(3));
    let whole = post(&provider, GEMINI3, &body).json();
    assert_eq!(whole["candidates"][0]["content"]["parts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn usage_stands_where_the_script_says() {
    let at = |usage_at| {
        let provider = Provider::new().reply(Reply::text("x").usage_at(usage_at)).start();
        let text = post(&provider, CHAT, &roster::ask_stream("x")).text();
        text.matches("\"usage\"").count()
    };
    assert_eq!(at(UsageAt::Both), 2);
    assert_eq!(at(UsageAt::Choice), 1);
    assert_eq!(at(UsageAt::Top), 1);
}

#[test]
fn the_wire_can_fail_in_every_way() {
    let body = roster::ask_stream("x");
    let once = |reply: Reply| {
        let provider = Provider::new().reply(reply).start();
        post(&provider, CHAT, &body)
    };
    let plain = once(Reply::text("héllo"));
    assert!(plain.complete);
    assert_eq!(once(Reply::text("héllo").every(1)).body, plain.body);
    assert_eq!(once(Reply::text("héllo").lines(Lines::CrLf)).events(), plain.events());
    assert!(once(Reply::text("héllo").lines(Lines::Cr)).text().contains("\r\rdata: "));
    let cut = once(Reply::text("héllo").cut(100));
    assert!(!cut.complete);
    assert_eq!(cut.body, plain.body[..100]);
    let reset = once(Reply::text("héllo").reset(100));
    assert!(!reset.complete);
    let zipped = once(Reply::text("héllo").gzip());
    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
    assert_eq!(zipped.body[..2], [0x1f, 0x8b]);
    let trailed = once(Reply::text("héllo").trailer("x-checksum", "1"));
    assert_eq!(trailed.trailers, [("x-checksum".to_owned(), "1".to_owned())]);
    let busy = once(Reply::busy(30));
    assert_eq!((busy.status, busy.header("retry-after")), (429, Some("30")));
}

#[test]
fn a_stall_waits_and_a_leaving_client_is_noticed() {
    let provider = Provider::new().answer(|_| Reply::text("hello").stall(100)).start();
    let body = roster::ask_stream("x").to_string();
    let mut left = Exchange::open(provider.addr, "POST", CHAT, &[], body.as_bytes());
    left.read_until("data: ");
    drop(left);
    provider.wait_hung_up(1);
    let mut waits = Exchange::open(provider.addr, "POST", CHAT, &[], body.as_bytes());
    waits.read_until("data: ");
    provider.release();
    assert!(waits.finish().complete);
}

#[test]
fn everything_else_is_echoed_and_recorded() {
    let provider = Provider::new().start();
    let answer = client::send(provider.addr, "PUT", "/v1/files/a%2Fb?x=1", &[("X-Odd-Case", "1")], b"abc");
    let seen = answer.json();
    assert_eq!((&seen["method"], &seen["path"]), (&json!("PUT"), &json!("/v1/files/a%2Fb?x=1")));
    assert_eq!(seen["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(seen["headers"][1], json!(["X-Odd-Case", "1"]));
    assert_eq!(provider.others()[0].body, b"abc");
}

#[test]
fn embeddings_are_near_when_words_are_shared() {
    let near = |a: &str, b: &str| embed(a).iter().zip(embed(b)).map(|(x, y)| x * y).sum::<f32>();
    let weather = format!("{} {}", roster::TOOLS[5].0, roster::TOOLS[5].1);
    let question = "will the weather bring rain";
    assert!((near(question, question) - 1.0).abs() < 1e-5);
    for (name, text) in roster::TOOLS.iter().filter(|(name, _)| *name != "get_weather") {
        assert!(near(question, &weather) > 0.1 + near(question, &format!("{name} {text}")), "{name}");
    }
}

#[test]
fn embedding_faults_are_as_named() {
    let provider = Provider::new().start();
    let ask = || client::send(provider.addr, "POST", "/v1/embeddings", &[], br#"{"model":"m","input":["a a","b b"]}"#);
    let count = |answer: &client::Response| answer.json()["data"].as_array().map(Vec::len);
    assert_eq!(count(&ask()), Some(2));
    for (fault, status) in [(Fault::Down, 0), (Fault::Status(503), 503), (Fault::WrongCount, 200), (Fault::NaN, 200)] {
        provider.set_embeddings(fault);
        let answer = ask();
        assert_eq!(answer.status, status, "{fault:?}");
        match fault {
            Fault::WrongCount => assert_eq!(count(&answer), Some(1)),
            Fault::NaN => assert!(answer.text().contains("[NaN,")),
            _ => {}
        }
    }
    let one = json!({"model": "models/e", "content": {"parts": [{"text": "a"}]}, "taskType": "RETRIEVAL_QUERY"});
    let batch = |n: usize| json!({"requests": vec![one.clone(); n]});
    provider.set_embeddings(Fault::None);
    let path = "/v1beta/models/e:batchEmbedContents";
    assert_eq!(post(&provider, path, &batch(100)).json()["embeddings"].as_array().map(Vec::len), Some(100));
    assert_eq!(post(&provider, path, &batch(101)).status, 400);
}
