//! `find_tools` over sockets: how it is declared, answered, hidden, remembered and ended.
//! NOT what is bound without it (narrowing.rs), NOT whether SDKs accept the result (sdk.rs).

mod support;

use serde_json::{Value, json};

use support::client::Response;
use support::model;
use support::provider::Provider;
use support::received::{Received, list};
use support::reply::{Lines, Reply, UsageAt};
use support::roster;
use support::sidecar::{Sidecar, over, play};

const KIMI: &str = "/kimi/v1/chat/completions";
const GEMINI: &str = "/gemini/v1beta/models/gemini-3-pro:generateContent";
const GEMINI_SSE: &str = "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
const GEMINI_ARRAY: &str = "/gemini/v1beta/models/gemini-3-pro:streamGenerateContent";
/// Weather is retrieved; the model wants to lock a door.
const DOOR: &str = "Weather report: temperature, rain forecast. want=17";
const LOCK: &str = "locks the front door of the house";

/// The sidecar before the model that wants one tool.
fn wanting() -> (Provider, Sidecar) {
    let provider = Provider::new().answer(model::wants).start();
    let sidecar = over(&provider).start();
    (provider, sidecar)
}

fn lock() -> Value {
    json!({"value": "größe"})
}

fn found() -> Reply {
    Reply::text("Found.").and_call("lock_door", lock())
}

fn calls(answer: &Response) -> Vec<String> {
    let name = |call: &Value| call["function"]["name"].as_str().unwrap_or_default().to_owned();
    list(&answer.message()["tool_calls"]).iter().map(name).collect()
}

/// The answers of `find_tools` that a leg carries.
fn answers(leg: &Received) -> Vec<String> {
    let messages = leg.messages();
    let searches: Vec<Value> = messages.iter().flat_map(|m| list(&m["tool_calls"])).filter(searching).collect();
    let openai = messages.iter().filter(|m| searches.iter().any(|call| call["id"] == m["tool_call_id"]));
    let parts = messages.iter().flat_map(|m| list(&m["parts"]));
    let gemini = parts.filter(|part| part["functionResponse"]["name"] == "find_tools");
    openai
        .filter_map(|m| m["content"].as_str().map(str::to_owned))
        .chain(gemini.map(|part| part["functionResponse"]["response"].to_string()))
        .collect()
}

fn searching(call: &Value) -> bool {
    call["function"]["name"] == "find_tools"
}

fn never_seen(answer: &Response) {
    assert!(!answer.text().contains("find_tools"), "the agent saw it: {}", answer.text());
}

fn then(body: &Value, answer: &Response, more: &[Value]) -> Value {
    roster::then(body, &answer.message(), more)
}

#[test]
fn it_is_declared_behind_the_first_block_and_says_what_can_be_found() {
    let (provider, sidecar) = play([Reply::text("x"), Reply::text("x")]);
    sidecar.post(KIMI, &roster::ask(DOOR).to_string());
    let first = provider.wait(1);
    let declared = first.declarations().into_iter().find(searching).expect("declared");
    let function = &declared["function"];
    assert_eq!(function["parameters"]["properties"]["query"]["type"], "string");
    assert_eq!(function["parameters"]["required"], json!(["query"]));
    let text = function["description"].as_str().unwrap_or_default();
    assert!(roster::TOOLS.iter().all(|(name, _)| text.contains(name)), "{text}");

    let mut next = roster::ask(DOOR);
    let messages = next["messages"].as_array_mut().expect("messages");
    messages.push(json!({"role": "assistant", "content": "x"}));
    messages.push(json!({"role": "user", "content": "Order pizza with toppings for delivery"}));
    sidecar.post(KIMI, &next.to_string());
    let second = provider.wait(2);
    assert_eq!(second.tools().iter().position(|t| t == "find_tools"), Some(3), "its place never moves");
    assert_eq!(second.declarations().into_iter().find(searching), Some(declared), "byte-stable in a conversation");
}

#[test]
fn a_large_roster_is_described_by_groups() {
    let (provider, sidecar) = play([Reply::text("x")]);
    let mut body = roster::ask("weather report");
    body["tools"] = (0..100)
        .map(|i| roster::function(&format!("{}_item_{i}", ["shop", "farm", "port", "mill"][i % 4]), "does a thing"))
        .collect();
    sidecar.post(KIMI, &body.to_string());
    let declared = provider.wait(1).declarations().into_iter().find(searching).expect("declared");
    let text = declared["function"]["description"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains("farm") && text.contains("25"), "{text}");
    assert!(!text.contains("farm_item_1"), "{text}");
}

#[test]
fn a_search_is_answered_and_the_next_leg_binds_what_it_found() {
    for stream in [false, true] {
        let (provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK), found()]);
        let body = if stream { roster::ask_stream(DOOR) } else { roster::ask(DOOR) };
        let answer = sidecar.post(KIMI, &body.to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert_eq!(calls(&answer), ["lock_door"]);
        assert_eq!(answer.message()["content"], "Let me look. Found.");
        assert_eq!(answer.message()["tool_calls"][0]["function"]["arguments"], lock().to_string());

        let legs = provider.chats();
        let (one, two) = (legs[0].tools(), legs[1].tools());
        assert_eq!(two[..one.len()], one[..], "what was there stays");
        assert!(two.len() > one.len() && two.len() <= one.len() + 5 && two[one.len()..].contains(&"lock_door".into()));
        let [told] = answers(&legs[1]).try_into().expect("one answer");
        for name in &two[one.len()..] {
            assert!(told.contains(name.as_str()), "{told}");
        }
        let text = legs[1].text();
        assert!(text.contains("Let me look. "), "the model sees what it said");
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_find_tools_total", &[("outcome", "found")]), 1.0);
        assert_eq!(metrics.value("packlight_legs_total", &[("upstream", "kimi")]), 2.0);
        assert_eq!(metrics.value("packlight_requests_total", &[]), 1.0, "one request for the agent");
    }
}

#[test]
fn an_exact_name_comes_first() {
    let provider = Provider::new().reply(Reply::find("measure_heartrate")).reply(Reply::text("x")).start();
    let sidecar = over(&provider).set("narrow.max_discovered_tools", "1").start();
    sidecar.post(KIMI, &roster::ask(DOOR).to_string());
    let legs = provider.chats();
    assert_eq!(legs[1].tools().last().map(String::as_str), Some("measure_heartrate"));
    assert_eq!(legs[1].tools().len(), legs[0].tools().len() + 1);
}

#[test]
fn a_stream_goes_on_as_one_response() {
    for reply in [Reply::default(), Reply::default().every(1), Reply::default().every(5).lines(Lines::CrLf)] {
        let faults = (reply.faults.clone(), reply.lines);
        let with = |mut reply: Reply| {
            (reply.faults, reply.lines) = faults.clone();
            reply
        };
        let first = with(Reply::default().and_reasoning("Which? ").and_text("Let me loök. ").and_find(LOCK));
        let (provider, sidecar) = play([first, with(found().and_call("get_weather", json!({})))]);
        let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert!(answer.complete);
        assert_eq!(calls(&answer), ["lock_door", "get_weather"]);
        assert_eq!(answer.message()["content"], "Let me loök. Found.");
        assert_eq!(answer.message()["reasoning_content"], "Which? ");
        let frames = answer.frames();
        let count = |test: &dyn Fn(&Value) -> bool| frames.iter().filter(|f| test(f)).count();
        assert_eq!(count(&|f| f["choices"][0]["delta"]["role"].is_string()), 1, "the role once");
        assert_eq!(count(&|f| f["choices"][0]["finish_reason"].is_string()), 1, "one finish reason");
        assert_eq!(count(&|f| f["id"] != frames[0]["id"] || f["created"] != frames[0]["created"]), 0, "one identity");
        assert_eq!(answer.events().iter().filter(|e| *e == "[DONE]").count(), 1);
        assert_eq!(answer.events().last().map(String::as_str), Some("[DONE]"));
    }
}

#[test]
fn usage_of_all_legs_is_summed_where_it_stood() {
    for (at, inside, top) in [(UsageAt::Both, 1, 1), (UsageAt::Choice, 1, 0), (UsageAt::Top, 0, 1)] {
        let one = Reply::find(LOCK).usage(1000, 400, 20).usage_at(at);
        let (_provider, sidecar) = play([one, found().usage(1500, 1100, 30).usage_at(at)]);
        let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
        let frames = answer.frames();
        let places = [
            frames.iter().map(|f| f["choices"][0]["usage"].clone()).filter(Value::is_object).collect::<Vec<_>>(),
            frames.iter().map(|f| f["usage"].clone()).filter(Value::is_object).collect::<Vec<_>>(),
        ];
        assert_eq!([places[0].len(), places[1].len()], [inside, top], "{at:?}");
        for usage in places.iter().flatten() {
            assert_eq!(usage["prompt_tokens"], 2500);
            assert_eq!(usage["completion_tokens"], 50);
            assert_eq!(usage["total_tokens"], 2550);
            assert_eq!(usage["cached_tokens"], 1500);
            assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 1500);
        }
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_prompt_tokens_total", &[("kind", "cached")]), 1500.0);
        assert_eq!(metrics.value("packlight_completion_tokens_total", &[]), 50.0);
    }
}

#[test]
fn several_searches_in_one_message_are_all_answered() {
    let both = Reply::find(LOCK).and_find("orders pizza with toppings");
    let (provider, sidecar) = play([both, Reply::call("lock_door", lock()).and_call("order_pizza", lock())]);
    let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
    provider.assert_no_refusal();
    never_seen(&answer);
    assert_eq!(calls(&answer), ["lock_door", "order_pizza"]);
    assert_eq!(answers(&provider.wait(2)).len(), 2);
}

#[test]
fn broken_arguments_are_answered_and_never_fail_the_request() {
    for broken in ["", "{\"query\":\"lock", "[1]", "null", "\"locks the front door\"", "{\"query\":7}"] {
        let one = Reply::default().and_broken_call("find_tools", broken);
        let (provider, sidecar) = play([one, Reply::text("done")]);
        let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
        provider.assert_no_refusal();
        assert_eq!((answer.status, answer.message()["content"].as_str()), (200, Some("done")), "{broken}");
        never_seen(&answer);
        assert_eq!(answers(&provider.wait(2)).len(), 1, "{broken}");
    }
}

#[test]
fn a_leg_cut_by_length_is_delivered_as_length() {
    for stream in [false, true] {
        let cut = Reply::text("Let me").and_broken_call("find_tools", "{\"que").finish("length");
        let (provider, sidecar) = play([cut]);
        let body = if stream { roster::ask_stream(DOOR) } else { roster::ask(DOOR) };
        let answer = sidecar.post(KIMI, &body.to_string());
        assert_eq!(provider.chats().len(), 1, "no second leg");
        assert!(answer.text().contains("\"finish_reason\":\"length\""), "{}", answer.text());
        never_seen(&answer);
        assert_eq!(answer.message()["content"], "Let me");
    }
}

#[test]
fn endless_asking_ends() {
    let provider = Provider::new()
        .answer(|r| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::text("Then I cannot.") })
        .start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
    provider.assert_no_refusal();
    never_seen(&answer);
    assert_eq!(answer.message()["content"], "Then I cannot.");
    let legs = provider.chats();
    assert_eq!(legs.len(), 3, "two extra legs");
    assert!(legs[1].declares("find_tools") && !legs[2].declares("find_tools"));
    let told = answers(&legs[2]);
    assert!(told.last().is_some_and(|text| text.contains("over") || text.contains("do not search again")), "{told:?}");
}

#[test]
fn a_model_that_ignores_the_end_does_not_loop() {
    // A server that validates nothing, a model that calls what is not declared.
    let provider = Provider::new().lenient().answer(|_| Reply::text("Hm. ").and_find(LOCK)).start();
    let sidecar = over(&provider).start();
    for stream in [false, true] {
        let body = if stream { roster::ask_stream(DOOR) } else { roster::ask(DOOR) };
        let answer = sidecar.post(KIMI, &body.to_string());
        never_seen(&answer);
        assert_eq!(answer.status, 200);
        assert!(calls(&answer).is_empty());
    }
    assert_eq!(provider.chats().len(), 6);
    assert_eq!(sidecar.metrics().value("packlight_find_tools_total", &[("outcome", "exhausted")]), 2.0);
}

#[test]
fn what_does_not_exist_is_said_plainly() {
    let (provider, sidecar) = play([Reply::find("zq xv"), Reply::text("It cannot be done.")]);
    let answer = sidecar.post(KIMI, &roster::ask(DOOR).to_string());
    assert_eq!(answer.message()["content"], "It cannot be done.");
    let legs = provider.chats();
    let told = answers(&legs[1]).concat();
    assert!(told.contains("no such tool") && told.contains("do not search again"), "{told}");
    assert_eq!(legs[1].tools().iter().filter(|t| *t != "find_tools").count(), 3, "nothing was added");
    assert_eq!(sidecar.metrics().value("packlight_find_tools_total", &[("outcome", "nothing")]), 1.0);
}

#[test]
fn mixed_calls_go_to_the_agent_and_the_hidden_ones_come_back() {
    for stream in [false, true] {
        let mixed = Reply::text("Both. ").and_find(LOCK).and_call("get_weather", json!({"value": "x"}));
        let (provider, sidecar) = play([mixed, found(), Reply::text("Finished.")]);
        let body = if stream { roster::ask_stream(DOOR) } else { roster::ask(DOOR) };
        let first = sidecar.post(KIMI, &body.to_string());
        never_seen(&first);
        assert_eq!(calls(&first), ["get_weather"]);
        assert!(first.text().contains("\"finish_reason\":\"tool_calls\""));
        assert_eq!(provider.chats().len(), 1, "the real call is the agent's to answer first");

        let next = then(&body, &first, &[]);
        let second = sidecar.post(KIMI, &next.to_string());
        provider.assert_no_refusal();
        never_seen(&second);
        assert_eq!(calls(&second), ["lock_door"]);
        let leg = provider.wait(2);
        assert!(leg.declares("lock_door"), "what the search found is bound");
        assert_eq!(answers(&leg).len(), 1, "and its answer stands in the transcript");
        let restored = leg.messages().into_iter().find(|m| m["tool_calls"].is_array()).expect("the calls");
        let names: Vec<&str> =
            list(&restored["tool_calls"]).iter().map(|c| if searching(c) { "hidden" } else { "real" }).collect();
        assert_eq!(names, ["hidden", "real"], "in the model's own order");

        let third = sidecar.post(KIMI, &then(&next, &second, &[]).to_string());
        provider.assert_no_refusal();
        assert_eq!(third.message()["content"], "Finished.");
        assert!(provider.wait(3).declares("lock_door"));
    }
}

#[test]
fn a_lost_memory_sends_the_transcript_as_the_agent_wrote_it() {
    let mixed = || Reply::find(LOCK).and_call("get_weather", json!({"value": "x"}));
    let provider = Provider::new().reply(mixed()).reply(Reply::text("Finished.")).start();
    let (one, other) = (over(&provider).start(), over(&provider).start());
    let body = roster::ask(DOOR);
    let first = one.post(KIMI, &body.to_string());
    let next = then(&body, &first, &[]);
    let second = other.post(KIMI, &next.to_string());
    provider.assert_no_refusal();
    assert_eq!(second.status, 200);
    assert_eq!(provider.wait(2).json()["messages"], next["messages"]);
}

#[test]
fn the_hidden_exchange_stands_in_later_requests_and_the_block_holds() {
    let (provider, sidecar) = wanting();
    let body = roster::ask_stream(DOOR);
    let first = sidecar.post(KIMI, &body.to_string());
    let next = then(&body, &first, &[]);
    let second = sidecar.post(KIMI, &next.to_string());
    provider.assert_no_refusal();
    assert_eq!(second.message()["content"], "Finished.");
    let legs = provider.chats();
    assert_eq!(legs.len(), 3);
    assert_eq!(legs[2].tools(), legs[1].tools(), "within a turn the block only grows");
    assert_eq!(answers(&legs[2]), answers(&legs[1]), "the cached prefix holds");
    let before = legs[1].messages();
    assert_eq!(legs[2].messages()[..before.len()], before[..]);
}

#[test]
fn finds_last_one_turn_unless_they_were_called() {
    let (provider, sidecar) = wanting();
    let body = roster::ask(DOOR);
    let first = sidecar.post(KIMI, &body.to_string());
    let next = then(&body, &first, &[]);
    let second = sidecar.post(KIMI, &next.to_string());
    let found: Vec<String> = provider.wait(2).tools();
    assert!(found.len() > 5, "more than the one that is called: {found:?}");
    let more = json!({"role": "user", "content": "Weather report: temperature, rain forecast again."});
    sidecar.post(KIMI, &then(&next, &second, &[more]).to_string());
    provider.assert_no_refusal();
    let later = provider.wait(4).tools();
    assert!(later.contains(&"lock_door".into()), "called, so it stays: {later:?}");
    assert_eq!(later.len(), 5, "the other finds are gone: {later:?}");
}

#[test]
fn kimi_s_reasoning_comes_back_verbatim() {
    for thought in ["I must look.", ""] {
        let one = Reply::default().and_reasoning(thought).and_find(LOCK);
        let provider = Provider::new().thinking().reply(one).reply(found()).start();
        let sidecar = over(&provider).start();
        let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
        provider.assert_no_refusal();
        assert_eq!(answer.status, 200);
        let hidden = provider.wait(2).messages().into_iter().find(|m| m["tool_calls"].is_array()).expect("the search");
        assert_eq!(hidden["reasoning_content"], thought);
    }
}

#[test]
fn a_later_leg_that_fails_before_any_byte_is_relayed_as_it_is() {
    let (_provider, sidecar) = play([Reply::find(LOCK), Reply::busy(30)]);
    let answer = sidecar.post(KIMI, &roster::ask(DOOR).to_string());
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("30")));
    assert!(answer.text().contains("rate_limit_reached_error"));
    never_seen(&answer);
}

#[test]
fn a_later_leg_that_fails_after_bytes_is_an_error_in_the_stream() {
    let (_provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK), Reply::status(500, "{}")]);
    let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
    never_seen(&answer);
    assert!(answer.frames().iter().any(|f| f["error"].is_object()), "{}", answer.text());
    assert!(!answer.frames().iter().any(|f| f["choices"][0]["finish_reason"].is_string()), "no finish is made up");
}

#[test]
fn a_stream_that_breaks_off_stays_broken() {
    let whole = Reply::text("Let me look for it.");
    for cut in [300, 700] {
        let (_provider, sidecar) = play([whole.clone().cut(cut)]);
        let answer = sidecar.post(KIMI, &roster::ask_stream(DOOR).to_string());
        assert!(!answer.complete || !answer.text().contains("[DONE]"), "truncation is propagated");
        assert!(!answer.frames().iter().any(|f| f["choices"][0]["finish_reason"].is_string()));
    }
}

/// What the provider says with a 200 that is no document of its format.
fn unreadable(kind: &str, body: impl Into<Vec<u8>>) -> Reply {
    Reply::raw(kind, vec![body.into()])
}

#[test]
fn a_reply_that_cannot_be_read_and_may_hold_a_search_is_an_error_and_no_empty_success() {
    let search = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"f","type":"function","function":{"name":"find_tools","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let no_end = search.replace("\"tool_calls\"}]}", "null}]}");
    let second = || [Reply::find(LOCK), unreadable("application/json", "<html>busy</html>")];
    let one = |reply: Reply| vec![reply];
    for (path, replies) in [
        (KIMI, one(unreadable("text/html", "<p>find_tools</p>"))),
        (KIMI, one(unreadable("application/json", format!("\u{feff}{search}")))),
        (KIMI, one(unreadable("application/json", format!("{search}{search}")))),
        (KIMI, one(unreadable("application/json", &search[..search.len() - 9]))),
        (KIMI, one(unreadable("application/json", no_end))),
        (KIMI, second().into()),
        (GEMINI, one(unreadable("text/html", "<p>find_tools</p>"))),
        (GEMINI, second().into()),
    ] {
        let (_provider, sidecar) = play(replies);
        let body = if path == KIMI { roster::ask(DOOR) } else { roster::ask_gemini(DOOR) };
        let answer = sidecar.post(path, &body.to_string());
        assert_eq!((answer.status, answer.complete), (502, true), "{path}: {}", answer.text());
        assert_eq!(answer.packlight("action"), "narrowed");
        let error = answer.json()["error"].clone();
        assert!(error["message"].as_str().is_some_and(|said| said.contains("cannot be used")), "{error}");
        assert!(!answer.text().contains("find_tools"), "{}", answer.text());
        assert_eq!(sidecar.metrics().value("packlight_upstream_responses_total", &[("code", "502")]), 1.0);
    }
    // One that is as unreadable and tells of nothing is the agent's.
    let (_provider, sidecar) = play([unreadable("text/html", "<p>busy</p>")]);
    assert_eq!(sidecar.post(KIMI, &roster::ask(DOOR).to_string()).text(), "<p>busy</p>");
}

#[test]
fn any_success_is_read_whatever_its_number() {
    let found = Reply::text("Found.").and_call("lock_door", lock());
    let mut search = Reply::find(LOCK);
    search.status = 201;
    let (_provider, sidecar) = play([search, found]);
    let answer = sidecar.post(KIMI, &roster::ask(DOOR).to_string());
    assert_eq!((answer.status, calls(&answer)), (201, vec!["lock_door".to_owned()]));
}

#[test]
fn what_a_held_stream_said_before_it_broke_is_not_lost() {
    let mut body = roster::ask(DOOR);
    body["stream"] = true.into();
    body["response_format"] = json!({"type": "json_object"});
    let frame = |text: &str| {
        let delta = json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
        format!("data: {delta}\n\n")
    };
    let said: String = (0..200).map(|n| frame(&format!("{{\"n\": {n}}}"))).collect();
    let half = &frame("lost")[..20];
    let whole = Reply::raw("text/event-stream", vec![said.clone().into(), half.into(), b"never sent".to_vec()]);
    let (_provider, sidecar) = play([whole.cut(said.len() + half.len())]);
    let answer = sidecar.post(KIMI, &body.to_string());
    assert_eq!((answer.status, answer.complete), (200, false));
    assert_eq!(answer.text(), format!("{said}{half}"));
}

#[test]
fn a_client_that_leaves_ends_the_upstream_call() {
    let (provider, sidecar) = play([Reply::find(LOCK), Reply::text("a long story").stall(200)]);
    let exchange = sidecar.open(KIMI, &[], &roster::ask_stream(DOOR).to_string());
    provider.wait(2);
    drop(exchange);
    provider.wait_hung_up(1);
}

#[test]
fn the_first_bytes_are_not_held_back() {
    let (provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK).stall(500), found()]);
    let mut exchange = sidecar.open(KIMI, &[], &roster::ask_stream(DOOR).to_string());
    exchange.read_until("Let me look");
    provider.release();
    let answer = exchange.finish();
    never_seen(&answer);
    assert_eq!(calls(&answer), ["lock_door"]);
}

#[test]
fn structured_output_holds_a_searching_leg_s_text() {
    for stream in [false, true] {
        let (provider, sidecar) = play([Reply::text("I look. ").and_find(LOCK), Reply::text("{\"a\":1}")]);
        let mut body = if stream { roster::ask_stream(DOOR) } else { roster::ask(DOOR) };
        body["response_format"] = json!({"type": "json_object"});
        let answer = sidecar.post(KIMI, &body.to_string());
        provider.assert_no_refusal();
        assert_eq!(answer.message()["content"], "{\"a\":1}");
    }
}

#[test]
fn required_is_kept_and_the_last_leg_offers_only_real_tools() {
    let provider = Provider::new()
        .answer(|r| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::call("lock_door", lock()) })
        .start();
    let sidecar = over(&provider).start();
    let mut body = roster::ask(DOOR);
    body["tool_choice"] = "required".into();
    let answer = sidecar.post(KIMI, &body.to_string());
    provider.assert_no_refusal();
    assert_eq!(calls(&answer), ["lock_door"]);
    assert!(provider.chats().iter().all(|leg| leg.json()["tool_choice"] == "required"));
}

#[test]
fn the_agent_s_cap_on_tokens_covers_all_legs() {
    let (provider, sidecar) = play([Reply::find(LOCK).usage(1000, 0, 60), found()]);
    let mut body = roster::ask(DOOR);
    body["max_tokens"] = 1000.into();
    sidecar.post(KIMI, &body.to_string());
    assert_eq!(provider.wait(1).json()["max_tokens"], 1000);
    assert_eq!(provider.wait(2).json()["max_tokens"], 940);
}

#[test]
fn the_compatible_stream_of_gemini_gets_indices_once_it_is_spliced() {
    let provider = Provider::new()
        .signatures()
        .reply(Reply::text("Let me look. ").and_find(LOCK))
        .reply(found().and_call("get_weather", json!({})))
        .start();
    let sidecar = over(&provider).start();
    let mut body = roster::ask_stream(DOOR);
    body["model"] = "gemini-3-pro".into();
    let answer = sidecar.post("/gemini/v1beta/openai/chat/completions", &body.to_string());
    provider.assert_no_refusal();
    never_seen(&answer);
    assert_eq!(calls(&answer), ["lock_door", "get_weather"]);
    assert!(answer.text().contains("thought_signature"), "the real call keeps its signature");
    let finishes: Vec<Value> =
        answer.frames().iter().map(|f| f["choices"][0]["finish_reason"].clone()).filter(Value::is_string).collect();
    assert_eq!(finishes, ["stop"]);
    assert!(provider.wait(2).text().contains("thought_signature"), "and so does the hidden one");
}

/// Chunks of any Gemini reply.
fn chunks(path: &str, answer: &Response) -> Vec<Value> {
    match path {
        GEMINI => vec![answer.json()],
        GEMINI_SSE => answer.frames(),
        _ => list(&answer.json()),
    }
}

#[test]
fn gemini_goes_on_as_one_response_in_all_three_framings() {
    for path in [GEMINI, GEMINI_SSE, GEMINI_ARRAY] {
        for every in [1, 1000] {
            let one = Reply::text("Let me look. ").and_find(LOCK).every(every);
            let (provider, sidecar) = play([one, found().every(every)]);
            let answer = sidecar.post(path, &roster::ask_gemini(DOOR).to_string());
            provider.assert_no_refusal();
            never_seen(&answer);
            let chunks = chunks(path, &answer);
            let parts: Vec<Value> = chunks.iter().flat_map(|c| list(&c["candidates"][0]["content"]["parts"])).collect();
            let text: String = parts.iter().filter_map(|p| p["text"].as_str()).collect();
            assert_eq!(text, "Let me look. Found.");
            let called: Vec<&Value> = parts.iter().filter(|p| p["functionCall"].is_object()).collect();
            assert_eq!(called.len(), 1);
            assert_eq!(called[0]["functionCall"]["name"], "lock_door");
            assert!(called[0]["thoughtSignature"].is_string());
            for chunk in &chunks {
                assert!(!list(&chunk["candidates"][0]["content"]["parts"]).is_empty(), "no chunk without parts");
                assert_eq!(chunk["responseId"], chunks[0]["responseId"], "one identity");
            }
            let ends = chunks.iter().filter(|c| c["candidates"][0]["finishReason"].is_string()).count();
            assert_eq!(ends, 1, "{path}");
            let usage = &chunks.last().expect("a chunk")["usageMetadata"];
            assert_eq!((&usage["promptTokenCount"], &usage["totalTokenCount"]), (&json!(2000), &json!(2040)));
            assert_eq!(usage["cachedContentTokenCount"], 800);
            assert_eq!(usage["promptTokensDetails"][0]["tokenCount"], 2000);
            assert!(provider.wait(2).declares("lock_door"));
            assert_eq!(answers(&provider.wait(2)).len(), 1);
        }
    }
}

#[test]
fn gemini_s_last_leg_forgets_the_search() {
    let provider = Provider::new()
        .answer(|r| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::call("lock_door", lock()) })
        .start();
    let sidecar = over(&provider).start();
    let body = roster::ask_gemini(DOOR);
    let answer = sidecar.post(GEMINI_SSE, &body.to_string());
    provider.assert_no_refusal();
    never_seen(&answer);
    let legs = provider.chats();
    assert_eq!(legs.len(), 3);
    assert_eq!(legs[2].json()["contents"], body["contents"], "the agent's own contents");
    assert!(legs[2].declares("lock_door") && !legs[2].declares("find_tools"));
}

#[test]
fn gemini_mixed_calls_come_back_signed_and_in_order() {
    let mixed = Reply::find(LOCK).and_call("get_weather", json!({"value": "x"}));
    let (provider, sidecar) = play([mixed, found()]);
    let body = roster::ask_gemini(DOOR);
    let first = sidecar.post(GEMINI, &body.to_string());
    never_seen(&first);
    let content = first.json()["candidates"][0]["content"].clone();
    let call = list(&content["parts"]).into_iter().find(|p| p["functionCall"].is_object()).expect("the real call");
    assert_eq!(call["functionCall"]["name"], "get_weather");
    assert!(call["thoughtSignature"].is_string(), "the step's only signature moved to it");
    let mut next = body.clone();
    let result = json!({"name": "get_weather", "id": call["functionCall"]["id"], "response": {"output": "rain"}});
    let contents = next["contents"].as_array_mut().expect("contents");
    contents.extend([content, json!({"role": "user", "parts": [{"functionResponse": result}]})]);
    let second = sidecar.post(GEMINI, &next.to_string());
    provider.assert_no_refusal();
    assert_eq!(second.status, 200);
    let leg = provider.wait(2);
    let parts: Vec<Value> = leg.messages().iter().flat_map(|m| list(&m["parts"])).collect();
    let names: Vec<&str> = parts.iter().filter_map(|p| p["functionCall"]["name"].as_str()).collect();
    assert_eq!(names, ["find_tools", "get_weather"]);
    assert_eq!(answers(&leg).len(), 1);
}
