//! `find_tools` over sockets: answered, hidden, remembered and ended. NOT what a
//! provider refuses in between (repairs.rs).

use serde_json::{Value, json};

use crate::narrowing::{DOOR, KIMI, ask};
use crate::support::client::Response;
use crate::support::model;
use crate::support::provider::Provider;
use crate::support::received::{Received, list};
use crate::support::reply::{Lines, Reply, UsageAt};
use crate::support::roster;
use crate::support::sidecar::{over, play};

pub const LOCK: &str = "locks the front door of the house";

pub fn lock() -> Value {
    json!({"value": "größe"})
}

pub fn found() -> Reply {
    Reply::text("Found.").and_call("lock_door", lock())
}

/// The blocks of a reply, put together from its events as a client would.
pub fn content(answer: &Response) -> Vec<Value> {
    if answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return list(&answer.json()["content"]);
    }
    let mut blocks: Vec<Value> = Vec::new();
    for event in answer.frames() {
        let index = usize::try_from(event["index"].as_u64().unwrap_or_default()).expect("small");
        let delta = &event["delta"];
        match event["type"].as_str() {
            Some("content_block_start") => {
                assert_eq!(index, blocks.len(), "a gap");
                blocks.push(event["content_block"].clone());
                if blocks[index]["type"] == "tool_use" {
                    blocks[index]["input"] = "".into();
                }
            }
            Some("content_block_delta") => {
                let (key, piece) = match delta["type"].as_str() {
                    Some("text_delta") => ("text", &delta["text"]),
                    Some("thinking_delta") => ("thinking", &delta["thinking"]),
                    Some("signature_delta") => ("signature", &delta["signature"]),
                    _ => ("input", &delta["partial_json"]),
                };
                let before = blocks[index][key].as_str().unwrap_or_default().to_owned();
                blocks[index][key] = (before + piece.as_str().unwrap_or_default()).into();
            }
            Some("content_block_stop") if blocks[index]["type"] == "tool_use" => {
                let input = blocks[index]["input"].as_str().unwrap_or_default();
                blocks[index]["input"] = serde_json::from_str(input).unwrap_or(json!({}));
            }
            _ => {}
        }
    }
    blocks
}

pub fn text(answer: &Response) -> String {
    content(answer).iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

pub fn calls(answer: &Response) -> Vec<String> {
    let names = content(answer).into_iter().filter(|block| block["type"] == "tool_use");
    names.map(|block| block["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The events of a kind.
fn events(answer: &Response, kind: &str) -> Vec<Value> {
    answer.frames().into_iter().filter(|event| event["type"] == kind).collect()
}

fn stop_reason(answer: &Response, stream: bool) -> Value {
    if stream {
        events(answer, "message_delta")[0]["delta"]["stop_reason"].clone()
    } else {
        answer.json()["stop_reason"].clone()
    }
}

/// The answers of `find_tools` that a leg carries.
pub fn answers(leg: &Received) -> Vec<String> {
    let blocks: Vec<Value> = leg.messages().iter().flat_map(|m| list(&m["content"])).collect();
    let searches: Vec<&Value> = blocks.iter().filter(|block| block["name"] == "find_tools").collect();
    let answered = blocks.iter().filter(|block| searches.iter().any(|search| search["id"] == block["tool_use_id"]));
    answered.filter_map(|block| block["content"].as_str().map(str::to_owned)).collect()
}

pub fn never_seen(answer: &Response) {
    assert!(!answer.text().contains("find_tools"), "the agent saw it: {}", answer.text());
}

/// The next request of an agent: the reply, a result for each of its calls, and more blocks from the user.
pub fn then(body: &Value, answer: &Response, more: &[Value]) -> Value {
    let mut body = body.clone();
    let reply = content(answer);
    let calls = reply.iter().filter(|block| block["type"] == "tool_use");
    let mut blocks: Vec<Value> =
        calls.map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "it is done"})).collect();
    blocks.extend_from_slice(more);
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(json!({"role": "assistant", "content": reply}));
    messages.push(json!({"role": "user", "content": blocks}));
    body
}

pub fn says(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_search_is_answered_and_the_next_leg_binds_what_it_found() {
    for stream in [false, true] {
        let (provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK), found()]);
        let answer = sidecar.post(KIMI, &ask(stream).to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert_eq!((text(&answer).as_str(), calls(&answer)), ("Let me look. Found.", vec!["lock_door".to_owned()]));
        assert_eq!(content(&answer)[2]["input"], lock());
        assert_eq!(stop_reason(&answer, stream), "tool_use");
        let legs = provider.chats();
        let (one, two) = (legs[0].tools(), legs[1].tools());
        assert_eq!(two[..one.len()], one[..], "what was there stays");
        assert!(two.len() > one.len() && two[one.len()..].contains(&"lock_door".into()));
        let [told] = answers(&legs[1]).try_into().expect("one answer, as plain text");
        assert!(two[one.len()..].iter().all(|name| told.contains(name.as_str())), "{told}");
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_find_tools_total", &[("outcome", "found")]), 1.0);
        assert_eq!(metrics.value("packlight_requests_total", &[]), 1.0, "one request for the agent");
    }
}

#[test]
fn a_stream_goes_on_as_one_message() {
    for reply in [Reply::default(), Reply::default().every(1), Reply::default().every(5).lines(Lines::CrLf)] {
        let faults = (reply.faults.clone(), reply.lines);
        let with = |mut reply: Reply| {
            (reply.faults, reply.lines) = faults.clone();
            reply
        };
        let first = with(Reply::default().and_reasoning("Which? ").and_text("Let me loök. ").and_find(LOCK));
        let second = with(Reply::default().and_reasoning("This.").and_text("Found.").and_call("lock_door", lock()));
        let (provider, sidecar) = play([first, second.and_call("get_weather", json!({}))]);
        let answer = sidecar.post(KIMI, &ask(true).to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert!(answer.complete);
        let kinds: Vec<Value> = content(&answer).iter().map(|block| block["type"].clone()).collect();
        assert_eq!(kinds, ["thinking", "text", "thinking", "text", "tool_use", "tool_use"]);
        assert_eq!(text(&answer), "Let me loök. Found.");
        for kind in ["message_start", "message_delta", "message_stop"] {
            assert_eq!(events(&answer, kind).len(), 1, "{kind}");
        }
        assert_eq!(events(&answer, "ping").len(), 2, "each leg's is kept");
        assert_eq!(answer.frames().last().expect("an end")["type"], "message_stop");
        let hidden = provider.wait(2).messages()[1].clone();
        assert_eq!(hidden["content"][0], content(&answer)[0], "thinking and signature as they came");
    }
}

#[test]
fn usage_of_all_legs_is_summed_where_it_stood() {
    for (stream, at) in [(false, UsageAt::Both), (true, UsageAt::Both), (true, UsageAt::Choice)] {
        let one = Reply::find(LOCK).usage(1000, 400, 20).usage_at(at);
        let (_provider, sidecar) = play([one, found().usage(1500, 1100, 30).usage_at(at)]);
        let answer = sidecar.post(KIMI, &ask(stream).to_string());
        let usage =
            if stream { events(&answer, "message_delta")[0]["usage"].clone() } else { answer.json()["usage"].clone() };
        let expected = json!({"input_tokens": 560 + 290, "cache_creation_input_tokens": 40 + 110, "cache_read_input_tokens": 1500, "output_tokens": 50});
        assert_eq!(usage, expected, "{at:?}");
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_prompt_tokens_total", &[("kind", "cached")]), 1500.0);
        assert_eq!(metrics.value("packlight_prompt_tokens_total", &[("kind", "uncached")]), 1000.0);
        assert_eq!(metrics.value("packlight_completion_tokens_total", &[]), 50.0);
    }
}

#[test]
fn several_and_broken_searches_are_all_answered() {
    let both = Reply::find(LOCK).and_find("orders pizza with toppings");
    let (provider, sidecar) = play([both, Reply::call("lock_door", lock()).and_call("order_pizza", lock())]);
    let answer = sidecar.post(KIMI, &ask(true).to_string());
    provider.assert_no_refusal();
    assert_eq!((calls(&answer).len(), answers(&provider.wait(2)).len()), (2, 2));
    for broken in ["", "{\"query\":\"lock", "[1]", "{\"query\":7}"] {
        let (provider, sidecar) = play([Reply::default().and_broken_call("find_tools", broken), Reply::text("done")]);
        let answer = sidecar.post(KIMI, &ask(true).to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert_eq!((text(&answer).as_str(), answers(&provider.wait(2)).len()), ("done", 1), "{broken}");
    }
}

#[test]
fn a_leg_cut_by_length_is_delivered_as_that() {
    for stream in [false, true] {
        let cut = Reply::text("Let me").and_broken_call("find_tools", "{\"que").finish("max_tokens");
        let (provider, sidecar) = play([cut]);
        let answer = sidecar.post(KIMI, &ask(stream).to_string());
        never_seen(&answer);
        assert_eq!(provider.chats().len(), 1, "no second leg");
        assert_eq!((stop_reason(&answer, stream), text(&answer).as_str()), (json!("max_tokens"), "Let me"));
    }
}

#[test]
fn endless_asking_ends() {
    let replies =
        |r: &Received| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::text("Then I cannot.") };
    let provider = Provider::new().answer(replies).start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &ask(true).to_string());
    provider.assert_no_refusal();
    never_seen(&answer);
    assert_eq!(text(&answer), "Then I cannot.");
    let legs = provider.chats();
    assert_eq!(legs.len(), 3, "two extra legs");
    assert!(legs[1].declares("find_tools") && !legs[2].declares("find_tools"));

    let stubborn = Provider::new().lenient().answer(|_| Reply::text("Hm. ").and_find(LOCK)).start();
    let sidecar = over(&stubborn).start();
    for stream in [false, true] {
        let answer = sidecar.post(KIMI, &ask(stream).to_string());
        never_seen(&answer);
        assert_eq!((stop_reason(&answer, stream), calls(&answer).len()), (json!("end_turn"), 0), "nothing to wait for");
    }
}

#[test]
fn mixed_calls_go_to_the_agent_and_the_hidden_ones_come_back() {
    for stream in [false, true] {
        let mixed = Reply::default().and_reasoning("Two.").and_text("Both. ").and_find(LOCK);
        let mixed = mixed.and_call("get_weather", json!({"value": "x"}));
        let (provider, sidecar) = play([mixed, found(), Reply::text("Finished.")]);
        let mut body = ask(stream);
        body["thinking"] = json!({"type": "enabled"});
        let first = sidecar.post(KIMI, &body.to_string());
        never_seen(&first);
        assert_eq!((calls(&first), stop_reason(&first, stream)), (vec!["get_weather".to_owned()], json!("tool_use")));
        assert_eq!(provider.chats().len(), 1, "the real call is the agent's to answer first");

        let reminder = says("<system-reminder>be brief</system-reminder>");
        let next = then(&body, &first, &[reminder]);
        let second = sidecar.post(KIMI, &next.to_string());
        provider.assert_no_refusal();
        never_seen(&second);
        assert_eq!(calls(&second), ["lock_door"]);
        let leg = provider.wait(2);
        assert!(leg.declares("lock_door"), "what the search found is bound");
        assert_eq!(answers(&leg).len(), 1, "and its answer stands in the transcript");
        let said = list(&leg.messages()[1]["content"]);
        let names: Vec<&str> = said.iter().filter_map(|block| block["name"].as_str()).collect();
        assert_eq!(names, ["find_tools", "get_weather"], "in the model's own order");
        let results = list(&leg.messages()[2]["content"]);
        assert_eq!(results.len(), 3, "both results, then the agent's own words");

        let third = sidecar.post(KIMI, &then(&next, &second, &[]).to_string());
        provider.assert_no_refusal();
        assert_eq!(text(&third), "Finished.");
    }
}

#[test]
fn the_hidden_exchange_stands_in_later_requests_though_cache_marks_move() {
    let provider = Provider::new().answer(model::wants).start();
    let sidecar = over(&provider).start();
    let mark = |body: &Value| {
        let mut body = body.clone();
        let last = body["messages"].as_array_mut().expect("messages").last_mut().expect("one");
        let blocks = last["content"].as_array_mut().expect("blocks");
        blocks.last_mut().expect("one")["cache_control"] = json!({"type": "ephemeral"});
        body
    };
    let mut body = ask(true);
    body["messages"][0]["content"] = json!([says(DOOR)]);
    let first = sidecar.post(KIMI, &mark(&body).to_string());
    let next = then(&body, &first, &[]);
    let second = sidecar.post(KIMI, &mark(&next).to_string());
    assert_eq!(text(&second), "Finished.");
    let more = then(&next, &second, &[says("Orders pizza with toppings. want=17")]);
    let third = sidecar.post(KIMI, &mark(&more).to_string());
    provider.assert_no_refusal();
    assert_eq!(calls(&third), ["lock_door"], "called, so it stays");
    let legs = provider.chats();
    assert_eq!(legs.len(), 4, "the second turn needs no search");
    assert_eq!(legs[2].tools(), legs[1].tools(), "within a turn the block only grows");
    let bare = |leg: &Received| {
        let mut messages = leg.messages();
        for block in messages.iter_mut().flat_map(|m| m["content"].as_array_mut()).flatten() {
            block.as_object_mut().expect("a block").remove("cache_control");
        }
        messages
    };
    for (before, after) in [(&legs[1], &legs[2]), (&legs[2], &legs[3])] {
        let (before, after) = (bare(before), bare(after));
        assert_eq!(after[..before.len()], before[..], "the cached prefix holds");
    }
}

#[test]
fn a_later_leg_that_fails_is_the_provider_s_error_or_one_in_the_stream() {
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let failed = || Reply::status(529, overloaded).header("retry-after", "7");
    let (_provider, sidecar) = play([Reply::find(LOCK), failed()]);
    let answer = sidecar.post(KIMI, &ask(false).to_string());
    assert_eq!((answer.status, answer.header("retry-after"), answer.text().as_str()), (529, Some("7"), overloaded));

    let (_provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK), failed()]);
    let answer = sidecar.post(KIMI, &ask(true).to_string());
    never_seen(&answer);
    let errors = events(&answer, "error");
    assert_eq!((errors.len(), &errors[0]["error"]["type"]), (1, &json!("api_error")));
    assert!(answer.text().contains("event: error\n"), "{}", answer.text());
    assert!(
        events(&answer, "message_delta").is_empty() && events(&answer, "message_stop").is_empty(),
        "no end is made up"
    );
}

#[test]
fn a_stream_that_breaks_off_stays_broken() {
    for cut in [300, 900, 1150] {
        let (_provider, sidecar) = play([Reply::text("Let me look for it.").and_find(LOCK).cut(cut)]);
        let answer = sidecar.post(KIMI, &ask(true).to_string());
        never_seen(&answer);
        assert!(
            !answer.complete || answer.text().is_empty(),
            "truncation after {cut} bytes is propagated: {}",
            answer.text()
        );
        assert!(events(&answer, "message_stop").is_empty());
    }
}

#[test]
fn the_first_bytes_are_not_held_back_and_a_client_that_leaves_ends_the_upstream_call() {
    let (provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK), found().stall(200)]);
    let mut exchange = sidecar.open(KIMI, &[], &ask(true).to_string());
    exchange.read_until("Let me look");
    provider.wait(2);
    drop(exchange);
    provider.wait_hung_up(1);
}

#[test]
fn a_compressed_leg_is_read_and_a_broken_real_call_is_relayed_as_received() {
    for stream in [false, true] {
        let broken = Reply::text("Found.").and_broken_call("lock_door", "{\"value\":\"gr").finish("max_tokens");
        let (provider, sidecar) = play([Reply::text("Let me look. ").and_find(LOCK).gzip(), broken]);
        let answer = sidecar.post(KIMI, &ask(stream).to_string());
        provider.assert_no_refusal();
        never_seen(&answer);
        assert_eq!((answer.header("content-encoding"), stop_reason(&answer, stream)), (None, json!("max_tokens")));
        assert_eq!(calls(&answer), ["lock_door"]);
        let pieces: String = answer
            .frames()
            .iter()
            .filter_map(|event| event["delta"]["partial_json"].as_str().map(str::to_owned))
            .collect();
        assert!(!stream || pieces == "{\"value\":\"gr", "nobody closes the agent's JSON: {pieces}");
    }
}

#[test]
fn structured_output_holds_a_searching_leg_s_text() {
    for (stream, key) in [(false, "output_format"), (true, "output_config")] {
        let (provider, sidecar) = play([Reply::text("I look. ").and_find(LOCK), Reply::text("{\"a\":1}")]);
        let mut body = ask(stream);
        let format = json!({"type": "json_schema", "schema": {"type": "object"}});
        body[key] = if stream { json!({"format": format}) } else { format };
        let answer = sidecar.post(KIMI, &body.to_string());
        provider.assert_no_refusal();
        assert_eq!(text(&answer), "{\"a\":1}");
    }
}

#[test]
fn a_forced_call_is_kept_and_the_last_leg_offers_only_real_tools() {
    let replies =
        |r: &Received| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::call("lock_door", lock()) };
    let provider = Provider::new().answer(replies).start();
    let sidecar = over(&provider).start();
    let mut body = ask(false);
    body["tool_choice"] = json!({"type": "any"});
    let answer = sidecar.post(KIMI, &body.to_string());
    provider.assert_no_refusal();
    assert_eq!(calls(&answer), ["lock_door"]);
    assert!(provider.chats().iter().all(|leg| leg.json()["tool_choice"] == json!({"type": "any"})));
}

#[test]
fn the_agent_s_cap_on_tokens_covers_all_legs_and_stays_above_its_thinking() {
    for (thinking, second) in
        [(json!({"type": "adaptive"}), 940), (json!({"type": "enabled", "budget_tokens": 990}), 1000)]
    {
        let thought = || Reply::default().and_reasoning("Hm.");
        let (provider, sidecar) = play([thought().and_find(LOCK).usage(1000, 0, 60), thought().and_text("x")]);
        let mut body = ask(false);
        body["max_tokens"] = 1000.into();
        body["thinking"] = thinking;
        sidecar.post(KIMI, &body.to_string());
        provider.assert_no_refusal();
        assert_eq!(provider.wait(2).json()["max_tokens"], second);
    }
}

#[test]
fn a_withheld_tool_that_is_called_is_relayed_and_bound_from_then_on() {
    let (provider, sidecar) = play([Reply::call("play_music", json!({"value": "x"})), Reply::text("done")]);
    let body = ask(true);
    let first = sidecar.post(KIMI, &body.to_string());
    assert_eq!(calls(&first), ["play_music"]);
    sidecar.post(KIMI, &then(&body, &first, &[]).to_string());
    provider.assert_no_refusal();
    assert!(provider.wait(2).declares("play_music"));
    assert!(provider.wait(2).tools().len() < roster::TOOLS.len());
}
