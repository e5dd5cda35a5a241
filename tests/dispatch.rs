//! Dispatch binding: the block never changes, what a search finds is described in
//! its answer and called through `call_tool`, which the agent never sees.

mod support;

use serde_json::{Value, json};
use support::client::Response;
use support::provider::Provider;
use support::received::{Received, list};
use support::reply::Reply;
use support::roster;
use support::sidecar::{self, Builder};

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:generateContent";
const GEMINI_SSE: &str = "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
const RAIN: &str = "Weather report: temperature, rain forecast";
const LOCK: &str = "locks the front door of the house";

fn over(provider: &Provider) -> Builder {
    sidecar::over(provider).set("narrow.binding", "\"dispatch\"")
}

/// A call of `lock_door` through `call_tool`.
fn through(arguments: &Value) -> Reply {
    Reply::default().and_call("call_tool", json!({"name": "lock_door", "arguments": arguments.to_string()}))
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn ask(text: &str, stream: bool) -> Value {
    if stream { roster::ask_stream(text) } else { roster::ask(text) }
}

fn calls(answer: &Response) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |call: &Value| (text(&call["function"]["name"]), text(&call["function"]["arguments"]));
    list(&answer.message()["tool_calls"]).iter().map(call).collect()
}

/// An id may hold the name of the tool that the model called: it is opaque and must come back as it was.
fn never_seen(answer: &Response) {
    for hidden in ["\"call_tool\"", "\"find_tools\""] {
        assert!(!answer.text().contains(hidden), "the agent saw it: {}", answer.text());
    }
}

fn then(body: &Value, answer: &Response, more: &[Value]) -> Value {
    roster::then(body, &answer.message(), more)
}

fn answers(leg: &Received) -> Vec<String> {
    let tools = leg.messages().into_iter().filter(|m| m["role"] == "tool");
    tools.map(|m| m["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Every request starts with all that the one before said.
fn goes_on(provider: &Provider) {
    for pair in provider.chats().windows(2) {
        assert_eq!(pair[0].json()["tools"], pair[1].json()["tools"], "the block is constant");
        let (before, after) = (pair[0].messages(), pair[1].messages());
        assert_eq!(after[..before.len()], before[..], "the prefix holds");
    }
}

#[test]
fn what_is_found_is_described_called_through_call_tool_and_the_agent_sees_its_own_tool() {
    for stream in [false, true] {
        let arguments = json!({"value": "größe \"x\"", "n": 9_007_199_254_740_993_u64});
        let provider = Provider::new()
            .replies([
                Reply::text("Let me look. ").and_find(LOCK),
                through(&arguments).and_call("get_weather", json!({})),
            ])
            .replies([Reply::text("Done."), Reply::text("Well.")])
            .start();
        let sidecar = over(&provider).start();
        let one = ask(RAIN, stream);
        let first = sidecar.post(KIMI, &one.to_string());
        provider.assert_no_refusal();
        never_seen(&first);
        assert!(first.header("x-packlight").is_some_and(|value| value.contains("binding=dispatch")));
        assert_eq!(calls(&first), [("lock_door".into(), arguments.to_string()), ("get_weather".into(), "{}".into())]);
        assert!(first.text().contains("\"finish_reason\":\"tool_calls\""));
        let id = first.message()["tool_calls"][0]["id"].clone();
        let told = answers(&provider.wait(2)).concat();
        assert!(told.contains("lock_door") && told.contains("\"required\""), "its schema is in the answer: {told}");

        let two = then(&one, &first, &[]);
        let second = sidecar.post(KIMI, &two.to_string());
        let three = then(&two, &second, &[user("Order pizza with toppings for delivery")]);
        sidecar.post(KIMI, &three.to_string());
        provider.assert_no_refusal();
        goes_on(&provider);
        let legs = provider.chats();
        assert_eq!(legs.len(), 4);
        let tools = legs[3].tools();
        assert_eq!((tools.len(), &tools[3..]), (5, &["find_tools".to_owned(), "call_tool".to_owned()][..]));
        let history: Vec<Value> = legs[3].messages().iter().flat_map(|m| list(&m["tool_calls"])).collect();
        assert_eq!(history[1]["id"], id);
        let wrapped: Value =
            serde_json::from_str(history[1]["function"]["arguments"].as_str().expect("text")).expect("JSON");
        assert_eq!(wrapped, json!({"name": "lock_door", "arguments": arguments.to_string()}));
        assert_eq!(history[2]["function"]["name"], "get_weather", "a declared tool stays what it is");
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_called_tools_total", &[("verdict", "discovered")]), 1.0);
        assert_eq!(metrics.value("packlight_block_changes_total", &[("cause", "needed")]), 0.0);
    }
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    for every in [1, 7, 4096] {
        let reply = Reply::text("Now. ").and_call("get_weather", json!({"value": "x"}));
        let reply = reply.and_call("call_tool", json!({"name": "lock_door", "arguments": {"value": "y"}})).every(every);
        let provider = Provider::new().reply(reply).start();
        let answer = over(&provider).start().post(KIMI, &ask(RAIN, true).to_string());
        never_seen(&answer);
        let expected = [("get_weather", r#"{"value":"x"}"#), ("lock_door", r#"{"value":"y"}"#)];
        assert_eq!(calls(&answer), expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned())));
        assert_eq!(answer.message()["content"], "Now. ");
        assert_eq!(answer.events().last().map(String::as_str), Some("[DONE]"));
    }
}

#[test]
fn a_broken_call_is_answered_and_never_reaches_the_agent() {
    for broken in [
        "",
        "{\"name\":\"lock",
        "{\"name\":\"unheard_of\",\"arguments\":\"{}\"}",
        "{\"name\":\"lock_door\",\"arguments\":\"{\"}",
    ] {
        let replies = [Reply::default().and_broken_call("call_tool", broken), through(&json!({}))];
        let provider = Provider::new().replies(replies).start();
        let sidecar = over(&provider).start();
        let answer = sidecar.post(KIMI, &ask(RAIN, true).to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert_eq!(calls(&answer), [("lock_door".to_owned(), "{}".to_owned())], "{broken}");
        let told = answers(&provider.wait(2)).concat();
        assert!(told.contains("No tool was called"), "{told}");
        assert_eq!(sidecar.metrics().value("packlight_find_tools_total", &[("outcome", "error")]), 1.0);
    }
}

#[test]
fn a_call_cut_by_length_is_delivered_as_length() {
    for stream in [false, true] {
        let cut = Reply::text("Let me").and_broken_call("call_tool", "{\"name\":\"lock_door\",\"argu").finish("length");
        let provider = Provider::new().reply(cut).start();
        let answer = over(&provider).start().post(KIMI, &ask(RAIN, stream).to_string());
        assert_eq!(provider.chats().len(), 1, "no second leg");
        assert!(answer.text().contains("\"finish_reason\":\"length\""), "{}", answer.text());
        never_seen(&answer);
        assert!(calls(&answer).is_empty());
    }
}

#[test]
fn a_lost_memory_still_sends_a_valid_history() {
    let provider =
        Provider::new().reply(Reply::find(LOCK)).reply(through(&json!({}))).answer(|_| Reply::text("Well.")).start();
    let (one, other) = (over(&provider).start(), over(&provider).start());
    let body = ask(RAIN, false);
    let first = one.post(KIMI, &body.to_string());
    let second = other.post(KIMI, &then(&body, &first, &[]).to_string());
    provider.assert_no_refusal();
    assert_eq!(second.status, 200);
    let leg = provider.wait(3);
    assert_eq!(leg.json()["tools"], provider.wait(1).json()["tools"]);
    assert_eq!(leg.messages()[2]["tool_calls"][0]["function"]["name"], "call_tool");
}

#[test]
fn gemini_calls_through_it_too() {
    for path in [GEMINI, GEMINI_SSE] {
        let provider = Provider::new()
            .reply(Reply::text("Let me look. ").and_find(LOCK))
            .reply(through(&json!({"value": "x"})))
            .reply(Reply::text("Done."))
            .start();
        let sidecar = over(&provider).start();
        let body = roster::ask_gemini(RAIN);
        let first = sidecar.post(path, &body.to_string());
        provider.assert_no_refusal();
        never_seen(&first);
        let chunks = if path == GEMINI { vec![first.json()] } else { first.frames() };
        let parts: Vec<Value> = chunks.iter().flat_map(|c| list(&c["candidates"][0]["content"]["parts"])).collect();
        let part = parts.iter().find(|part| part["functionCall"].is_object()).expect("a call");
        assert_eq!(
            (&part["functionCall"]["name"], &part["functionCall"]["args"]),
            (&json!("lock_door"), &json!({"value": "x"}))
        );
        assert!(part["thoughtSignature"].is_string());
        let mut next = body.clone();
        let contents = next["contents"].as_array_mut().expect("contents");
        let result = json!({"name": "lock_door", "id": part["functionCall"]["id"], "response": {"output": "locked"}});
        contents.push(json!({"role": "model", "parts": parts}));
        contents.push(json!({"role": "user", "parts": [{"functionResponse": result}]}));
        sidecar.post(path, &next.to_string());
        provider.assert_no_refusal();
        let legs = provider.chats();
        assert!(legs.windows(2).all(|pair| pair[0].json()["tools"] == pair[1].json()["tools"]));
        assert!(legs[2].declares("call_tool") && !legs[2].declares("lock_door"));
        let before = legs[1].messages();
        assert_eq!(legs[2].messages()[..before.len()], before[..], "the prefix holds");
        let text = legs[2].text();
        assert!(
            text.contains(r#""name":"call_tool","args":{"name":"lock_door""#) || text.contains(r#""name":"call_tool""#),
            "{text}"
        );
    }
}

#[test]
fn endless_asking_ends_with_a_leg_that_cannot_ask() {
    for path in [KIMI, GEMINI] {
        let provider = Provider::new()
            .answer(|r| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::call("lock_door", json!({})) })
            .start();
        let sidecar = over(&provider).start();
        let body = if path == KIMI { ask(RAIN, false) } else { roster::ask_gemini(RAIN) };
        let answer = sidecar.post(path, &body.to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert!(answer.text().contains("lock_door"));
        assert_eq!(provider.chats().len(), 4);
        assert!(provider.wait(4).declares("lock_door"), "what was found is declared at the last");
    }
}

#[test]
fn auto_takes_it_once_the_traffic_says_that_a_changed_block_bills_long_histories_anew() {
    let provider = Provider::new().answer(|_| Reply::text("Well.").usage(12_000, 11_000, 20)).start();
    let sidecar = over(&provider).set("narrow.binding", "\"auto\"").start();
    // No conversation finds the tools of the one before in the cache.
    let begun = |text: &str| {
        let mut body = roster::ask(text);
        for tool in body["tools"].as_array_mut().expect("tools") {
            let about = "what it is about ".repeat(50);
            tool["function"]["parameters"]["properties"]["value"]["description"] = format!("{about}{text}").into();
        }
        body
    };
    let taken = |body: &Value| sidecar.post(KIMI, &body.to_string()).packlight("binding");
    let goes_on = |body: &Value, text: &str| {
        let mut body = body.clone();
        let more = [json!({"role": "assistant", "content": "Well."}), user(text)];
        body["messages"].as_array_mut().expect("messages").extend(more);
        body
    };
    let mut first = Value::Null;
    for conversation in 0..50 {
        let one = begun(&format!("{RAIN}, number {conversation}"));
        assert_eq!(taken(&one), "replace", "nothing is known yet");
        first = goes_on(&one, "Order pizza with toppings for delivery");
        assert_eq!(taken(&first), "replace");
    }
    let new = taken(&begun("Translates a sentence into another language"));
    assert_eq!(new, "dispatch", "every second message bills long histories anew");
    let first = goes_on(&first, "Wakes somebody with an alarm");
    assert_eq!(taken(&first), "replace", "a conversation keeps its binding");
    provider.assert_no_refusal();
}

#[test]
fn an_agents_own_call_tool_is_its_own() {
    let provider = Provider::new().answer(|_| Reply::text("Well.")).start();
    let mut body = ask(RAIN, false);
    body["tools"].as_array_mut().expect("tools").push(roster::function("call_tool", "Calls a taxi"));
    let answer = over(&provider).start().post(KIMI, &body.to_string());
    assert!(answer.header("x-packlight").is_some_and(|value| value.contains("binding=replace")));
}
