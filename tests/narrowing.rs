//! What the provider gets instead of the agent's request: the laws of narrowing, over
//! sockets. NOT find_tools' exchanges (find_tools.rs), NOT the reasons to touch nothing (fail_open.rs).

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use support::client::Response;
use support::embeddings::Fault;
use support::provider::Provider;
use support::received::Received;
use support::reply::Reply;
use support::roster;
use support::sidecar::{Sidecar, over};

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-2.5-pro:generateContent";
const WEATHER: &str = "Weather report: temperature, rain forecast.";
const ALARM: &str = "Alarm, wakes somebody at clock time.";

fn done() -> Provider {
    Provider::new().answer(|_| Reply::text("done")).start()
}

/// Sends a chat and returns what reached the provider for it.
fn sent(
    provider: &Provider,
    sidecar: &Sidecar,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> (Response, Received) {
    let before = provider.chats().len();
    let answer = sidecar.post_with(path, headers, &body.to_string());
    provider.assert_no_refusal();
    assert_eq!(answer.status, 200, "{}", answer.text());
    (answer, provider.wait(before + 1))
}

fn kimi(provider: &Provider, sidecar: &Sidecar, body: &Value) -> Vec<String> {
    sent(provider, sidecar, KIMI, &[], body).1.tools()
}

#[test]
fn how_a_reply_ends_is_embedded_before_the_next_message_comes() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/models/e5-small-q4.bin");
    if !std::path::Path::new(model).is_file() {
        let meant = std::env::var("PACKLIGHT_TEST_MODEL").is_ok_and(|said| said == "absent");
        assert!(meant, "no model at {model}: run `make model` (or set PACKLIGHT_TEST_MODEL=absent)");
        return;
    }
    let speaks = Arc::new(AtomicBool::new(false));
    let spoken = speaks.clone();
    let reply = move |_: &Received| match spoken.load(Ordering::SeqCst) {
        true => Reply::text("I found 3. Archive them all?"),
        false => Reply::call("set_alarm", json!({})),
    };
    let provider = Provider::new().answer(reply).start();
    let sidecar = Sidecar::bare()
        .set("embeddings.provider", "\"builtin\"")
        .set("embeddings.model_path", &format!("\"{model}\""))
        .set("narrow.binding", "\"replace\"")
        .set("narrow.max_retrieved_tools", "4")
        .upstream("kimi", &provider.url())
        .start();
    let built = || sidecar.metrics().value("packlight_vectors_total", &[("result", "built")]);
    let user = |text: &str| json!({"role": "user", "content": text});
    let first = [user("Is there anything old lying about?")];
    support::eventually("the roster is embedded", || {
        (kimi(&provider, &sidecar, &talk(&first)).len() < roster::TOOLS.len()).then_some(())
    });
    let before = built();
    speaks.store(true, Ordering::SeqCst);
    kimi(&provider, &sidecar, &talk(&first));
    speaks.store(false, Ordering::SeqCst);
    support::eventually("the closing sentence is embedded", || (built() == before + 1.0).then_some(()));
    let said = json!({"role": "assistant", "content": "I found 3. Archive them all?"});
    kimi(&provider, &sidecar, &talk(&[first[0].clone(), said, user("Only those of last year, please")]));
    assert_eq!(built(), before + 2.0, "the new message, and nothing else");
}

#[test]
fn a_chat_stays_http_whatever_its_client_would_change_to() {
    let provider = done();
    let sidecar = over(&provider).start();
    let upgrade = [("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"), ("http2-settings", "AAMAAABk")];
    for mode in ["narrow", "shadow", "off"] {
        let headers = [&upgrade[..], &[("x-packlight-mode", mode)]].concat();
        let (answer, received) = sent(&provider, &sidecar, KIMI, &headers, &roster::ask(WEATHER));
        assert_eq!(answer.message()["content"], "done");
        for name in ["upgrade", "http2-settings"] {
            assert_eq!(received.header(name), None, "{mode}: {name}");
        }
    }
}

fn called(name: &str, id: &str) -> Value {
    let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

/// A request over the roster with these messages behind the system prompt.
fn talk(messages: &[Value]) -> Value {
    let mut body = roster::ask("x");
    let mut all = vec![json!({"role": "system", "content": "You are helpful."})];
    all.extend_from_slice(messages);
    body["messages"] = all.into();
    body
}

fn says(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn answered() -> Value {
    json!({"role": "assistant", "content": "done"})
}

/// The place of each name in the roster.
fn places(names: &[String]) -> Vec<usize> {
    names.iter().filter_map(|name| roster::TOOLS.iter().position(|(tool, _)| tool == name)).collect()
}

#[test]
fn the_model_gets_what_the_message_needs_and_find_tools() {
    let provider = done();
    let sidecar = over(&provider).start();
    let (answer, got) = sent(&provider, &sidecar, KIMI, &[], &roster::ask(WEATHER));
    let tools = got.tools();
    assert_eq!(tools.len(), 4, "{tools:?}");
    assert!(got.declares("get_weather"));
    assert_eq!(tools.last().map(String::as_str), Some("find_tools"), "right behind the block");
    let places = places(&tools);
    assert!(places.is_sorted(), "in roster order: {tools:?}");
    let field = |name: &str| answer.packlight(name);
    assert_eq!((field("action").as_str(), field("reason").as_str()), ("narrowed", ""));
    assert_eq!((field("roster").as_str(), field("bound").as_str(), field("binding").as_str()), ("20", "3", "replace"));
    assert!(field("saved_tokens").parse::<u64>().is_ok_and(|n| n > 0) && !field("request").is_empty());
    let narrowed = [("upstream", "kimi"), ("wire", "openai"), ("action", "narrowed"), ("reason", "")];
    assert_eq!(sidecar.metrics().value("packlight_requests_total", &narrowed), 1.0);
}

#[test]
fn every_byte_outside_the_tools_reaches_the_provider_as_written() {
    let provider = done();
    let sidecar = over(&provider).start();
    let odd: Vec<String> = roster::TOOLS
        .iter()
        .map(|(name, text)| {
            format!(
                "{{ \"type\":\"function\" ,\"function\":{{\"name\":\"{name}\",\"description\":\"{text} \\u00fc\",\
                 \"parameters\":{{\"type\":\"object\",\"properties\":{{\"n\":{{\"type\":\"number\",\"maximum\":9007199254740993001}}}}}}}}, \"x\": 1e300}}"
            )
        })
        .collect();
    let head = "{\"seed\":9007199254740993001,\n\t\"messages\" :[{\"role\":\"user\",\"content\":\"Weather \\u0072eport: temperature, rain forecast \\/ \u{1f327}\"}] ,\"tools\": ";
    let tail = ",  \"model\":\"kimi-k2.6\",\"b\":1.0,\"a\":1e2,\"stop\":null}\n";
    let body = format!("{head}[{}]{tail}", odd.join(" ,\r\n"));
    let answer = sidecar.post(KIMI, &body);
    assert_eq!(answer.packlight("action"), "narrowed", "{:?}", answer.headers);
    let got = provider.wait(1).text();
    assert!(got.starts_with(head), "{got}");
    assert!(got.ends_with(tail), "{got}");
    let kept = odd.iter().filter(|tool| got.contains(tool.as_str())).count();
    assert_eq!(kept, 3, "bound tools keep their own bytes");
}

#[test]
fn a_reply_that_hides_nothing_comes_back_byte_for_byte() {
    for stream in [false, true] {
        let reply =
            Reply::default().and_reasoning("hm").and_text("größe").and_call("get_weather", json!({"value": "x"}));
        let provider = Provider::new().answer(move |_| reply.clone().every(7)).start();
        let sidecar = over(&provider).start();
        let body = if stream { roster::ask_stream(WEATHER) } else { roster::ask(WEATHER) };
        let through = sidecar.post(KIMI, &body.to_string());
        let direct =
            support::client::send(provider.addr, "POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
        let normal =
            |r: &Response| r.text().replace("000000000001", "000000000000").replace("1790000001", "1790000000");
        assert_eq!(normal(&through), normal(&direct));
        assert_eq!(through.header("content-type"), direct.header("content-type"));
        assert!(through.complete);
    }
}

#[test]
fn nothing_of_packlight_s_own_leaves_and_the_agent_s_headers_do() {
    let provider = done();
    let sidecar = over(&provider).start();
    let headers = [("X-Packlight-Keep", "book_hotel"), ("x-packlight-anything", "1"), ("x-msh-context", "7")];
    let (_, got) = sent(&provider, &sidecar, KIMI, &headers, &roster::ask(WEATHER));
    assert_eq!(got.header("x-msh-context"), Some("7"));
    assert_eq!(got.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(got.header("host"), Some(provider.addr.to_string().as_str()));
    assert!(!got.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("x-packlight")));
    assert!(got.declares("book_hotel"), "asked for by header");
}

#[test]
fn the_core_and_whatever_the_request_names_are_bound() {
    let provider = done();
    let sidecar = over(&provider).set("narrow.always_on", "[\"play_*\", \"lock_door\"]").start();
    let bound = kimi(&provider, &sidecar, &roster::ask(WEATHER));
    assert!(bound.contains(&"play_music".into()) && bound.contains(&"lock_door".into()), "{bound:?}");
    assert_eq!(bound.len(), 2 + 3 + 1);

    let mut choice = roster::ask(WEATHER);
    choice["tool_choice"] = json!({"type": "function", "function": {"name": "order_pizza"}});
    assert!(kimi(&provider, &sidecar, &choice).contains(&"order_pizza".into()), "named in tool_choice");

    let history = talk(&[says("pizza"), called("order_pizza", "a"), result("a"), answered(), says(WEATHER)]);
    assert!(kimi(&provider, &sidecar, &history).contains(&"order_pizza".into()), "called in the transcript");
}

#[test]
fn what_is_no_plain_function_stays_in_its_place() {
    let provider = done();
    let sidecar = over(&provider).start();
    let mut body = roster::ask(WEATHER);
    let builtin = json!({"type": "builtin_function", "function": {"name": "$web_search"}});
    let tools = body["tools"].as_array_mut().expect("an array");
    tools.insert(0, builtin);
    let bound = kimi(&provider, &sidecar, &body);
    assert_eq!(bound[0], "$web_search");
    assert_eq!(bound.len(), 1 + 3 + 1);
}

#[test]
fn tools_of_one_name_stay_together() {
    let provider = Provider::new().lenient().answer(|_| Reply::text("done")).start();
    let sidecar = over(&provider).start();
    let mut body = roster::ask(WEATHER);
    let tools = body["tools"].as_array_mut().expect("an array");
    tools.push(roster::function("get_weather", "The same again"));
    tools.push(roster::function("order_pizza", "The same again"));
    let bound = kimi(&provider, &sidecar, &body);
    let count = |name: &str| bound.iter().filter(|tool| *tool == name).count();
    assert_eq!((count("get_weather"), count("order_pizza") % 2), (2, 0), "{bound:?}");
}

#[test]
fn a_turn_s_requests_share_the_block_s_bytes_and_one_embedding() {
    let provider = done();
    let sidecar = over(&provider).start();
    let tools = |got: &Received| got.text().split_once("\"tools\":").map(|(_, rest)| rest.to_owned());
    let mut messages = vec![says(WEATHER)];
    let (_, first) = sent(&provider, &sidecar, KIMI, &[], &talk(&messages));
    let embedded = provider.embedded().len();
    for step in 0..3 {
        let id = format!("get_weather:{step}");
        messages.extend([called("get_weather", &id), result(&id)]);
        let (_, next) = sent(&provider, &sidecar, KIMI, &[], &talk(&messages));
        assert_eq!(tools(&next), tools(&first));
    }
    assert_eq!(provider.embedded().len(), embedded, "the turn's message was embedded once");
}

#[test]
fn a_sticky_block_is_kept_while_it_serves_and_grows_at_its_end() {
    let provider = done();
    let sidecar = over(&provider).start();
    let first = kimi(&provider, &sidecar, &talk(&[says(WEATHER)]));
    let same = kimi(&provider, &sidecar, &talk(&[says(WEATHER), answered(), says("Rain forecast, temperature?")]));
    assert_eq!(same, first, "the block serves");
    let other = kimi(&provider, &sidecar, &talk(&[says(WEATHER), answered(), says(ALARM)]));
    assert_eq!(other[..first.len()], first[..], "what was there stays, find_tools in its place");
    assert!(other[first.len()..].contains(&"set_alarm".into()), "{other:?}");
    let yes = kimi(&provider, &sidecar, &talk(&[says(WEATHER), answered(), says("yes")]));
    assert_eq!(yes, first, "a message without content keeps what is bound");
}

#[test]
fn stability_turn_chooses_anew() {
    let provider = done();
    let sidecar = over(&provider).set("narrow.stability", "\"turn\"").start();
    let other = kimi(&provider, &sidecar, &talk(&[says(WEATHER), answered(), says(ALARM)]));
    assert_eq!(other.len(), 4, "{other:?}");
    assert!(other.contains(&"set_alarm".into()), "{other:?}");
}

#[test]
fn a_block_that_is_full_is_chosen_anew() {
    let provider = done();
    let sidecar = over(&provider).set("narrow.max_bound_tools", "5").start();
    let mut messages = vec![says(WEATHER)];
    for question in [ALARM, "Order pizza with toppings for delivery.", "Translate a sentence into another language."] {
        messages.extend([answered(), says(question)]);
        let bound = kimi(&provider, &sidecar, &talk(&messages));
        assert!(bound.len() <= 5 + 1, "{bound:?}");
    }
}

#[test]
fn replicas_agree_without_talking() {
    let provider = done();
    let (one, two) = (over(&provider).start(), over(&provider).start());
    let long = talk(&[
        says(WEATHER),
        called("get_weather", "a"),
        result("a"),
        answered(),
        says(ALARM),
        answered(),
        says("Order pizza with toppings for delivery."),
    ]);
    // The first replica has seen the conversation grow, the second sees only its end.
    for end in [2, 5, 7] {
        let messages: Vec<Value> = long["messages"].as_array().expect("messages")[1..=end.min(7)].to_vec();
        if messages.last().is_some_and(|m| m["role"] != "assistant") {
            sent(&provider, &one, KIMI, &[], &talk(&messages));
        }
    }
    let (_, warm) = sent(&provider, &one, KIMI, &[], &long);
    let (_, cold) = sent(&provider, &two, KIMI, &[], &long);
    assert_eq!(warm.text(), cold.text());
}

#[test]
fn a_withheld_tool_that_is_called_is_relayed_and_bound_from_then_on() {
    let provider = Provider::new().reply(Reply::call("lock_door", json!({}))).reply(Reply::text("done")).start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &roster::ask(WEATHER).to_string());
    let call = &answer.json()["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "lock_door");
    let (_, got) = sent(&provider, &sidecar, KIMI, &[], &talk(&[says(WEATHER), called("lock_door", "a"), result("a")]));
    assert_eq!(got.tools().last().map(String::as_str), Some("lock_door"), "at the end");
    let metrics = sidecar.metrics();
    assert_eq!(metrics.value("packlight_called_tools_total", &[("verdict", "withheld")]), 1.0);
    assert_eq!(metrics.value("packlight_missed_tools_total", &[("tool", "lock_door")]), 1.0);
}

#[test]
fn order_by_name_serves_agents_that_shuffle() {
    let provider = done();
    let sidecar = over(&provider).set("narrow.order", "\"name\"").start();
    let mut body = roster::ask(WEATHER);
    let (_, one) = sent(&provider, &sidecar, KIMI, &[], &body);
    body["tools"].as_array_mut().expect("an array").reverse();
    let (_, two) = sent(&provider, &sidecar, KIMI, &[], &body);
    assert_eq!(one.text(), two.text());
}

#[test]
fn only_connected_tools_are_chosen_when_the_agent_says_which() {
    let provider = done();
    let catalog =
        "[[tool]]\nname = \"get_*\"\nconnector = \"meteo\"\n\n[[tool]]\nname = \"set_alarm\"\nconnector = \"clock\"\n";
    let folder = std::sync::Arc::new(tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("catalog.toml");
    std::fs::write(&file, catalog).expect("a catalog");
    let sidecar = over(&provider).set("narrow.catalog", &format!("{:?}", file.display().to_string())).start();
    let with = sent(&provider, &sidecar, KIMI, &[("x-packlight-connected", "meteo, mail")], &roster::ask(WEATHER)).1;
    assert!(with.declares("get_weather"));
    let without = sent(&provider, &sidecar, KIMI, &[("x-packlight-connected", "clock")], &roster::ask(WEATHER)).1;
    assert!(!without.declares("get_weather"), "{:?}", without.tools());
}

#[test]
fn the_provider_s_cap_is_never_exceeded() {
    let provider = done();
    let sidecar = over(&provider)
        .set("narrow.max_retrieved_tools", "12")
        .set("narrow.max_bound_tools", "100")
        .upstream("small", &provider.url())
        .tail("")
        .start();
    // The last upstream takes 128; the roster of 20 is far below, and a narrowed request too.
    let bound = sent(&provider, &sidecar, "/small/v1/chat/completions", &[], &roster::ask(WEATHER)).1.tools();
    assert_eq!(bound.len(), 13);
    let mut large = roster::ask(WEATHER);
    large["tools"] =
        (0..200).map(|i| roster::function(&format!("weather_{i}"), "weather report rain forecast")).collect();
    let got = sent(&provider, &sidecar, KIMI, &[], &large).1;
    assert!(got.tools().len() <= 128, "a roster that the provider would refuse passes once narrowed");
}

#[test]
fn gemini_keeps_its_tool_objects() {
    let provider = done();
    let sidecar = over(&provider).start();
    let mut body = roster::ask_gemini(WEATHER);
    let all = roster::gemini();
    let (front, back) = all.as_array().expect("an array").split_at(10);
    body["tools"] = json!([{"functionDeclarations": front}, {"functionDeclarations": back}]);
    let (answer, got) = sent(&provider, &sidecar, GEMINI, &[], &body);
    assert_eq!((answer.packlight("bound").as_str(), answer.packlight("roster").as_str()), ("3", "20"));
    let tools = got.tools();
    assert_eq!(tools.len(), 4);
    assert!(got.declares("get_weather"));
    assert_eq!(tools.last().map(String::as_str), Some("find_tools"));
    for tool in got.json()["tools"].as_array().expect("an array") {
        assert_ne!(tool["functionDeclarations"], json!([]), "no empty Tool object");
    }
}

#[test]
fn gemini_in_snake_case_and_beside_builtins() {
    let provider = done();
    let sidecar = over(&provider).start();
    let mut body = roster::ask_gemini(WEATHER);
    body["tools"] = json!([{"google_search": {}}, {"function_declarations": roster::gemini()}]);
    body["tool_config"] = json!({
        "include_server_side_tool_invocations": true,
        "function_calling_config": {"mode": "AUTO"},
    });
    let (_, got) = sent(&provider, &sidecar, GEMINI, &[], &body);
    assert_eq!(got.json()["tools"][0], json!({"google_search": {}}));
    assert_eq!(got.tools().len(), 4);
    body["tool_config"]["function_calling_config"] = json!({"mode": "ANY", "allowed_function_names": ["order_pizza"]});
    let (_, got) = sent(&provider, &sidecar, GEMINI, &[], &body);
    assert!(got.declares("order_pizza"), "allowed names stay declared");
}

#[test]
fn gemini_keeps_the_declarations_of_its_history() {
    let provider = done();
    let sidecar = over(&provider).start();
    let mut body = roster::ask_gemini(WEATHER);
    body["contents"] = json!([
        {"role": "user", "parts": [{"text": "pizza"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "order_pizza", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "order_pizza", "response": {"output": "ok"}}}]},
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": WEATHER}]},
    ]);
    let (answer, got) = sent(&provider, &sidecar, GEMINI, &[], &body);
    assert_eq!(answer.packlight("action"), "narrowed");
    assert!(got.declares("order_pizza"));
}

#[test]
fn shadow_and_holdout_send_the_agent_s_bytes() {
    let provider = done();
    let sidecar = over(&provider).set("narrow.percent", "0").start();
    let body = roster::ask(WEATHER);
    let (answer, got) = sent(&provider, &sidecar, KIMI, &[], &body);
    assert_eq!((answer.packlight("action").as_str(), got.text()), ("holdout", body.to_string()));
    let (answer, got) = sent(&provider, &sidecar, KIMI, &[("x-packlight-mode", "shadow")], &body);
    assert_eq!((answer.packlight("action").as_str(), got.text()), ("shadow", body.to_string()));
    let (answer, got) = sent(&provider, &sidecar, KIMI, &[("x-packlight-mode", "off")], &body);
    assert_eq!((answer.packlight("action").as_str(), got.text()), ("relayed", body.to_string()));
    assert_eq!(answer.packlight("reason"), "off");
}

#[test]
fn an_embedder_that_recovers_is_used() {
    let provider = Provider::new().embeddings(Fault::Down).answer(|_| Reply::text("done")).start();
    let sidecar = over(&provider).away().start();
    let body = roster::ask(WEATHER).to_string();
    assert_eq!(sidecar.post(KIMI, &body).packlight("reason"), "embedder");
    provider.set_embeddings(Fault::None);
    support::eventually("narrowed", || (sidecar.post(KIMI, &body).packlight("action") == "narrowed").then_some(()));
}

#[test]
fn other_refusals_are_relayed_as_they_are() {
    for reply in [Reply::busy(30), Reply::status(401, "{}"), Reply::status(500, "{}"), Reply::status(503, "{}")] {
        let status = reply.status;
        let provider = Provider::new().reply(reply).start();
        let sidecar = over(&provider).start();
        let answer = sidecar.post(KIMI, &roster::ask(WEATHER).to_string());
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("retry-after"), (status == 429).then_some("30"));
        assert_eq!(provider.chats().len(), 1, "nothing is sent twice");
    }
}

/// Tools of many names and, where `twins`, some of one name; the first `core` are always on.
fn crowd(path: &str, core: usize, count: usize, twins: bool) -> Value {
    let names = (0..core).map(|n| format!("core_{n}")).chain((0..count).map(|n| format!("tool_{n}")));
    let names = names.chain((0..if twins { count / 2 } else { 0 }).map(|n| format!("tool_{n}")));
    let tool = |name: String| {
        let text = format!("Does what number {} does", name.rsplit('_').next().unwrap_or_default());
        let function = roster::function(&name, &text);
        let schema = function["function"]["parameters"].clone();
        match path {
            _ if path.ends_with("completions") => function,
            _ if path.ends_with("messages") => json!({"name": name, "description": text, "input_schema": schema}),
            _ => json!({"name": name, "description": text, "parameters": schema}),
        }
    };
    let tools: Value = names.map(tool).collect();
    if path.ends_with("Content") { json!([{"functionDeclarations": tools}]) } else { tools }
}

/// A model that searches, calls what it was not given, and talks, by chance.
fn erratic(request: &Received) -> Reply {
    let chance = request.body.len() / 3;
    let called = format!("tool_{}", chance % 40);
    match chance % 4 {
        0 | 1 if request.declares("find_tools") => {
            Reply::find(&format!("number {} and number {}", chance % 41, chance % 7))
        }
        2 if request.declares("call_tool") && !request.declares(&called) => {
            Reply::call("call_tool", json!({"name": called, "arguments": "{}"}))
        }
        2 => Reply::call(&called, json!({})).and_call(&format!("tool_{}", chance % 23), json!({})),
        _ => Reply::text("done"),
    }
}

/// Whatever is bound, called, kept and found: no leg of a narrowed request declares more than the upstream takes.
#[test]
fn a_narrowed_request_never_declares_more_than_max_tools() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    let provider = Provider::new().lenient().answer(erratic).start();
    let (caps, bindings, widths) = ([4, 9, 16, 24, 128, 512], ["replace", "append", "dispatch"], [(3, 5), (12, 40)]);
    let mut upstreams = String::new();
    for cap in caps {
        for binding in bindings {
            for (at, (width, most)) in widths.iter().enumerate() {
                upstreams += &format!(
                    "[[upstream]]\nname = \"{binding}-{cap}-{at}\"\nurl = \"{}\"\nmax_tools = {cap}\n\
                     narrow = {{ binding = \"{binding}\", append_models = [\"*\"], always_on = [\"core_*\"], \
                     max_retrieved_tools = {width}, max_bound_tools = {most}, sticky_need = 2 }}\n",
                    provider.url()
                );
            }
        }
    }
    let sidecar = Sidecar::over(&provider).tail(&upstreams).start();
    let narrowed = std::cell::Cell::new(0);
    let cases = (0..caps.len(), 0..3usize, 0..2usize, 0..3usize, 0..3usize, 0..3usize, any::<bool>(), 0..60usize);
    let config = Config { cases: 72, failure_persistence: None, ..Config::default() };
    let ran = TestRunner::new(config).run(&cases, |(cap, binding, width, wire, core, count, twins, seed)| {
        let upstream = format!("{}-{}-{width}", bindings[binding], caps[cap]);
        let wire = ["/v1/chat/completions", "/v1/messages", "/v1beta/models/m:generateContent"][wire];
        let path = format!("/{upstream}{wire}");
        let asked = format!("number {seed}, number {} and number {}", seed / 2, seed / 3);
        let mut body = match wire {
            _ if wire.ends_with("Content") => roster::ask_gemini(&asked),
            _ if wire.ends_with("messages") => roster::ask_anthropic(&asked),
            _ => roster::ask(&asked),
        };
        body["tools"] = crowd(wire, [0, 2, 7][core], [20, 60, 300][count], twins);
        let keep: Vec<String> = (0..seed % 9).map(|n| format!("tool_{}", n * 2)).collect();
        let headers = [("x-packlight-keep", keep.join(","))];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for turn in 0..4 {
            let before = provider.chats().len();
            let answer = sidecar.post_with(&path, if turn % 2 == 0 { &headers } else { &[] }, &body.to_string());
            prop_assert_eq!(answer.status, 200, "{}", answer.text());
            if answer.packlight("action") == "narrowed" {
                narrowed.set(narrowed.get() + 1);
                for leg in &provider.chats()[before..] {
                    let tools = leg.tools();
                    prop_assert!(tools.len() <= caps[cap], "{} of {}: {:?}", path, tools.len(), tools);
                }
            }
            body = roster::after(&body, &answer.json(), &format!("number {} too", seed + turn));
        }
        Ok(())
    });
    assert!(ran.is_ok(), "{ran:?}");
    assert!(narrowed.get() > 100, "only {} were narrowed", narrowed.get());
}
