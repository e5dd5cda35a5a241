//! Failures that were found by attacking what was finished, one test each, named by its symptom. NOT the laws
//! themselves (narrowing.rs, find_tools.rs, fail_open.rs).

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::client::Response;
use support::provider::Provider;
use support::received::{Received, list};
use support::reply::Reply;
use support::roster;
use support::sidecar::{Sidecar, over, play};

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:generateContent";
const GEMINI_SSE: &str = "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
const WEATHER: &str = "Weather report: temperature, rain forecast.";
const ALARM: &str = "wakes somebody at a clock time with an alarm";
const LOCK: &str = "locks the front door of the house";

fn done() -> (Provider, Sidecar) {
    let provider = Provider::new().lenient().answer(|_| Reply::text("done")).start();
    let sidecar = over(&provider).start();
    (provider, sidecar)
}

fn never_seen(answer: &Response) {
    assert!(!answer.text().contains("find_"), "the agent saw it: {}", answer.text());
}

/// A call of `find_tools`, whole.
fn search() -> Value {
    let function = json!({"name": "find_tools", "arguments": json!({"query": LOCK}).to_string()});
    json!({"index": 0, "id": "f:0", "type": "function", "function": function})
}

/// A stream of these deltas.
fn stream(deltas: &[Value], finish: &str) -> Vec<u8> {
    let chunk = |delta: &Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
    };
    let frames: String = deltas.iter().map(|delta| format!("data: {}\n\n", chunk(delta, Value::Null))).collect();
    format!("{frames}data: {}\n\ndata: [DONE]\n\n", chunk(&json!({}), finish.into())).into_bytes()
}

/// A whole reply with this message.
fn whole(message: Value, finish: &str) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
}

/// A Gemini request over the roster in two `Tool` objects.
fn two_objects() -> Value {
    let mut body = roster::ask_gemini(WEATHER);
    let all = list(&roster::gemini());
    body["tools"] = json!([{"functionDeclarations": all[..12]}, {"functionDeclarations": all[12..]}]);
    body
}

fn own_tools(request: &Received) -> Vec<String> {
    request.tools().into_iter().filter(|tool| tool != "find_tools").collect()
}

/// Resident memory in MiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[test]
fn a_reply_that_ends_inside_the_name_of_the_hidden_call_shows_the_agent_a_part_of_it() {
    let call = json!({"role": "assistant", "tool_calls": [search()]});
    let streamed = stream(&[json!({"role": "assistant", "content": ""}), call.clone()], "tool_calls");
    let bodies = [
        ("text/event-stream", roster::ask_stream(WEATHER), streamed),
        ("application/json", roster::ask(WEATHER), whole(call, "tool_calls").to_string().into_bytes()),
    ];
    for (kind, body, reply) in bodies {
        let name = String::from_utf8_lossy(&reply).find("find_tools").expect("the call");
        // The provider ends the body well, in the middle of a frame.
        let cuts: Vec<usize> = (name + 2..name + 14).collect();
        let cut = |end: &usize| Reply::raw(kind, vec![reply[..*end].to_vec()]);
        let (_provider, sidecar) = play(cuts.iter().map(cut));
        for end in &cuts {
            let answer = sidecar.post(KIMI, &body.to_string());
            assert!(!answer.text().contains("\"name\":\"fi"), "{kind} cut at {end}: {}", answer.text());
        }
    }
}

#[test]
fn a_search_in_a_reply_of_an_unknown_content_type_reaches_the_agent() {
    for kind in ["application/octet-stream", "text/plain; charset=utf-8"] {
        let streamed = stream(&[json!({"tool_calls": [search()]})], "tool_calls");
        let answered = whole(json!({"role": "assistant", "tool_calls": [search()]}), "tool_calls").to_string();
        let bodies = [(roster::ask_stream(WEATHER), streamed), (roster::ask(WEATHER), answered.into_bytes())];
        for (body, bytes) in bodies {
            let (provider, sidecar) = play([Reply::raw(kind, vec![bytes]), Reply::text("Found.")]);
            let answer = sidecar.post(KIMI, &body.to_string());
            never_seen(&answer);
            assert_eq!(provider.chats().len(), 2, "{kind}");
        }
    }
}

#[test]
fn a_later_leg_in_another_framing_reaches_the_agent_unread() {
    let other = whole(json!({"role": "assistant", "tool_calls": [search()]}), "tool_calls").to_string();
    let first = stream(&[json!({"tool_calls": [search()]})], "tool_calls");
    let (provider, sidecar) = play([
        Reply::raw("text/event-stream", vec![first]),
        Reply::raw("application/json", vec![other.into_bytes()]),
        Reply::text("done"),
    ]);
    let body = roster::ask_stream(WEATHER).to_string();
    let answer = sidecar.post(KIMI, &body);
    never_seen(&answer);
    assert!(answer.text().contains("done"), "{}", answer.text());
    assert!(provider.wait(3).body == body.as_bytes(), "the agent's own request");
}

#[test]
fn a_custom_call_is_swallowed_where_the_model_may_not_search() {
    let custom = json!({"index": 0, "id": "x", "type": "custom", "custom": {"name": "code", "input": "print"}});
    let bytes = stream(&[json!({"tool_calls": [custom]})], "tool_calls");
    let provider = Provider::new().reply(Reply::raw("text/event-stream", vec![bytes.clone()])).start();
    let sidecar = over(&provider).set("narrow.max_discovery_legs", "0").start();
    let answer = sidecar.post(KIMI, &roster::ask_stream(WEATHER).to_string());
    assert_eq!(answer.text(), String::from_utf8_lossy(&bytes));
}

#[test]
fn a_stream_that_speaks_of_unexpected_tool_calls_is_held_to_its_end() {
    let text = r#""UNEXPECTED_TOOL_CALL" is a finish reason."#;
    let content = json!({"parts": [{"text": text}], "role": "model"});
    let first = format!("data: {}\r\n\r\n", json!({"candidates": [{"content": content, "index": 0}]})).into_bytes();
    let last =
        b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" Yes.\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n";
    let length = first.len();
    let (provider, sidecar) = play([Reply::raw("text/event-stream", vec![first, last.to_vec()]).stall(length)]);
    let mut exchange = sidecar.open(GEMINI_SSE, &[], &roster::ask_gemini(WEATHER).to_string());
    exchange.read_until("is a finish reason");
    provider.release();
    assert!(exchange.finish().text().contains("Yes."));
}

#[test]
fn a_pasted_page_of_wrapper_tags_stops_the_sidecar_for_minutes() {
    let (_provider, sidecar) = done();
    for tag in ["<system-reminder>", "<system-reminder>x</system-reminder>"] {
        let text = format!("{WEATHER} {}", tag.repeat(60_000));
        let start = Instant::now();
        let answer = sidecar.post(KIMI, &roster::ask(&text).to_string());
        assert_eq!(answer.status, 200);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

#[test]
fn rosters_that_never_come_back_fill_the_memory() {
    let (_provider, sidecar) = done();
    let mut after = Vec::new();
    for n in 0..60 {
        let mut body = roster::ask(WEATHER);
        let text = "lorem ipsum dolor ".repeat(6_000);
        body["tools"] = (0..30).map(|i| roster::function(&format!("t{n}_{i}"), &text)).collect();
        // Read and remembered, not chosen from: ranking 60 such rosters takes minutes of a development build.
        sidecar.post_with(KIMI, &[("x-packlight-resume", "true")], &body.to_string());
        after.push(resident(sidecar.pid()));
    }
    assert!(after[59] < after[19] + 60, "3 MB each: {after:?}");
}

#[test]
fn blocks_of_huge_rosters_fill_the_memory() {
    let (_provider, sidecar) = done();
    let mut body = roster::ask(WEATHER);
    let mut tools = list(&roster::openai());
    tools.extend(vec![json!(3); 400_000]);
    body["tools"] = tools.into();
    let mut after = Vec::new();
    for n in 0..40 {
        body["messages"] = json!([{"role": "user", "content": format!("{n} {WEATHER}")}]);
        let answer = sidecar.post(KIMI, &body.to_string());
        assert_eq!(answer.packlight("reason"), "too_large");
        after.push(resident(sidecar.pid()));
    }
    assert!(after[39] < after[12] + 50, "3 MB each: {after:?}");
}

#[test]
fn a_refusal_with_422_strands_the_turn_and_names_what_is_hidden() {
    let refusal = r#"{"detail":[{"loc":["body","tools",3],"msg":"find_tools: invalid"}]}"#;
    let answers = move |request: &Received| match request.declares("find_tools") {
        true => Reply::status(422, refusal),
        false => Reply::text("done"),
    };
    let provider = Provider::new().lenient().answer(answers).start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &roster::ask_stream(WEATHER).to_string());
    never_seen(&answer);
    assert_eq!((answer.status, answer.packlight("reason")), (200, "refused".to_owned()));
}

#[test]
fn a_search_in_a_turn_with_unsigned_calls_ends_in_a_400() {
    let (provider, sidecar) = play([Reply::find(LOCK), Reply::call("lock_door", json!({"value": "x"}))]);
    let mut body = roster::ask_gemini(WEATHER);
    let contents = body["contents"].as_array_mut().expect("contents");
    let result = json!({"functionResponse": {"name": "get_weather", "response": {"output": "x"}}});
    contents.push(json!({"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {}}}]}));
    contents.push(json!({"role": "user", "parts": [result]}));
    let answer = sidecar.post(GEMINI, &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("lock_door"));
    let refused: Vec<_> = provider.chats().into_iter().filter_map(|chat| chat.refused).collect();
    assert_eq!(refused.len(), 1, "once it is known, it is heeded: {refused:?}");
}

#[test]
fn a_reply_in_several_gzip_members_loses_all_but_the_first() {
    let bytes = stream(&[json!({"role": "assistant", "content": "one "}), json!({"content": "two"})], "stop");
    let (front, back) = bytes.split_at(200);
    let members = [support::wiring::gzip(front), support::wiring::gzip(back)].concat();
    let (_provider, sidecar) =
        play([Reply::raw("text/event-stream", vec![members]).header("content-encoding", "gzip")]);
    let answer = sidecar.post(KIMI, &roster::ask_stream(WEATHER).to_string());
    assert_eq!(answer.text(), String::from_utf8_lossy(&bytes));
}

#[test]
fn usage_that_nests_without_end_takes_the_sidecar_down() {
    let depth = 20_000;
    let usage = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let reply = |message: Value, finish: &str| {
        let body = whole(message, finish).to_string();
        let body = format!("{},\"usage\":{usage}}}", body.strip_suffix('}').expect("an object"));
        Reply::raw("application/json", vec![body.into_bytes()])
    };
    let search = reply(json!({"role": "assistant", "tool_calls": [search()]}), "tool_calls");
    let said = reply(json!({"role": "assistant", "content": "done"}), "stop");
    let (_provider, sidecar) = play([search, said, Reply::text("alive")]);
    let body = roster::ask(WEATHER).to_string();
    assert_eq!(sidecar.post(KIMI, &body).status, 200);
    assert!(sidecar.post(KIMI, &body).text().contains("alive"));
}

#[test]
fn the_last_leg_moves_what_was_found_into_an_earlier_tool_object() {
    let provider = Provider::new()
        .answer(|request| match (request.declares("find_tools"), request.messages().len()) {
            (true, 1) => Reply::find(ALARM),
            (true, _) => Reply::find("orders pizza with toppings for delivery"),
            (false, _) => Reply::text("x"),
        })
        .start();
    let sidecar = over(&provider).set("narrow.max_discovered_tools", "2").start();
    sidecar.post(GEMINI, &two_objects().to_string());
    provider.assert_no_refusal();
    let [one, two, three] = provider.chats().try_into().expect("three legs");
    assert_eq!(own_tools(&two)[..own_tools(&one).len()], own_tools(&one)[..]);
    assert_eq!(own_tools(&three)[..own_tools(&two).len()], own_tools(&two)[..]);
}

#[test]
fn a_block_without_search_grows_in_its_middle() {
    let provider = Provider::new().answer(|_| Reply::text("x")).start();
    let sidecar = over(&provider).set("narrow.max_discovery_legs", "0").start();
    let mut body = two_objects();
    sidecar.post(GEMINI, &body.to_string());
    let contents = body["contents"].as_array_mut().expect("contents");
    contents.push(json!({"role": "model", "parts": [{"text": "x"}]}));
    contents.push(json!({"role": "user", "parts": [{"text": ALARM}]}));
    sidecar.post(GEMINI, &body.to_string());
    let [one, two] = provider.chats().try_into().expect("two requests");
    assert!(two.tools().len() > one.tools().len());
    assert_eq!(two.tools()[..one.tools().len()], one.tools()[..]);
}

#[test]
fn a_tool_called_before_the_first_words_is_withheld() {
    let provider = Provider::new().answer(|_| Reply::text("x")).start();
    let sidecar = over(&provider).start();
    let mut body = roster::ask_gemini(WEATHER);
    let call = json!({"functionCall": {"name": "order_pizza", "args": {}}, "thoughtSignature": "sig0"});
    let result = json!({"functionResponse": {"name": "order_pizza", "response": {"output": "x"}}});
    body["contents"] = json!([
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": WEATHER}]},
    ]);
    let answer = sidecar.post(GEMINI, &body.to_string());
    provider.assert_no_refusal();
    assert_eq!(answer.packlight("action"), "narrowed");
    assert!(provider.wait(1).declares("order_pizza"));
}

/// Held from the start; here so that it goes on to.
#[test]
fn deep_documents_are_narrowed_like_others() {
    let (_provider, sidecar) = done();
    for depth in [200, 20_000] {
        let deep = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let quoted = Value::from(deep.clone()).to_string();
        let tool =
            |(name, text): &(&str, &str)| format!(r#"{{"name":"{name}","description":"{text}","parameters":{deep}}}"#);
        let declared: Vec<String> = roster::TOOLS.iter().map(tool).collect();
        let tools: Vec<String> = declared.iter().map(|d| format!(r#"{{"type":"function","function":{d}}}"#)).collect();
        let openai = format!(
            r#"{{"model":"kimi-k2.6","x":{deep},"messages":[{{"role":"user","content":"{WEATHER}","y":{deep}}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"a","type":"function","function":{{"name":"get_weather","arguments":{quoted}}}}}]}},{{"role":"tool","tool_call_id":"a","content":"1","z":{deep}}}],"tools":[{}]}}"#,
            tools.join(",")
        );
        let gemini = format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"{WEATHER}"}}],"y":{deep}}},{{"role":"model","parts":[{{"functionCall":{{"name":"get_weather","args":{deep}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"get_weather","response":{deep}}}}}]}}],"tools":[{{"functionDeclarations":[{}]}}]}}"#,
            declared.join(",")
        );
        for (path, body) in [(KIMI, openai), (GEMINI, gemini)] {
            let answer = sidecar.post(path, &body);
            assert_eq!((answer.status, answer.packlight("action")), (200, "narrowed".into()), "{path} {depth}");
        }
    }
}

/// CASES A.15: a stall watchdog of the agent fires while the hidden call's arguments are held back.
#[test]
fn a_stream_that_holds_a_search_back_shows_that_it_lives() {
    let search = Reply::find("locks the front door of the house, wherever that door may be and whoever asks for it");
    let provider = Provider::new().replies([search.every(40).stall(560), Reply::text("done")]).start();
    let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
    let mut exchange =
        sidecar.open("/kimi/v1/chat/completions", &[], &roster::ask_stream("Weather report").to_string());
    exchange.read_until(": ping\n");
    provider.release();
    let answer = exchange.finish();
    assert!(answer.complete && answer.text().contains("done"));
    assert!(!answer.text().contains("find_tools"));
    for event in answer.events().iter().filter(|event| *event != "[DONE]") {
        assert!(serde_json::from_str::<serde_json::Value>(event).is_ok(), "{event}");
    }
}
