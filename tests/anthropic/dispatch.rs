//! Dispatch binding on the Messages wire: what is found is called through `call_tool`,
//! and the agent has a `tool_use` of its own tool. NOT what all wires share (../dispatch.rs).

use serde_json::{Value, json};

use crate::find_tools::{LOCK, answers, calls, content, says, text, then};
use crate::narrowing::{KIMI, ask};
use crate::support::client::Response;
use crate::support::provider::Provider;
use crate::support::received::list;
use crate::support::reply::{Lines, Part, Reply};
use crate::support::sidecar::{self, Builder};

const PIZZA: &str = "Order pizza with toppings for delivery";

fn over(provider: &Provider) -> Builder {
    sidecar::over(provider).set("narrow.binding", "\"dispatch\"")
}

/// A call of `lock_door` through `call_tool`.
fn through(arguments: &Value) -> Reply {
    Reply::default().and_call("call_tool", json!({"name": "lock_door", "arguments": arguments.to_string()}))
}

fn never_seen(answer: &Response) {
    for hidden in ["call_tool", "find_tools"] {
        assert!(!answer.text().contains(hidden), "the agent saw it: {}", answer.text());
    }
}

fn thinking(stream: bool) -> Value {
    let mut body = ask(stream);
    body["thinking"] = json!({"type": "enabled", "budget_tokens": 1000});
    body
}

fn thoughtful(mut reply: Reply) -> Reply {
    reply.parts.insert(0, Part::Reasoning("Hm, a door.".into()));
    reply
}

#[test]
fn what_is_found_is_called_through_call_tool_and_the_agent_sees_its_own_tool() {
    for stream in [false, true] {
        let arguments = json!({"value": "größe \"x\"", "n": 9_007_199_254_740_993_001_u64});
        let provider = Provider::new()
            .replies([
                thoughtful(Reply::text("Let me look. ").and_find(LOCK)),
                thoughtful(through(&arguments).and_call("get_weather", json!({"value": "y"})).and_text("Both.")),
            ])
            .replies([Reply::text("Done."), Reply::text("Well.")])
            .start();
        let sidecar = over(&provider).start();
        let one = thinking(stream);
        let first = sidecar.post(KIMI, &one.to_string());
        provider.assert_no_refusal();
        never_seen(&first);
        assert_eq!(first.packlight("binding"), "dispatch");
        assert_eq!(calls(&first), ["lock_door", "get_weather"]);
        let blocks = content(&first);
        let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
        assert_eq!(kinds, ["thinking", "text", "thinking", "tool_use", "tool_use", "text"], "in order, none twice");
        assert_eq!((&blocks[3]["input"], &blocks[4]["input"]), (&arguments, &json!({"value": "y"})));
        assert!(first.text().contains("9007199254740993001"), "numbers are not read");
        assert!(first.text().contains("\"tool_use\""), "the reason to stop stays");
        let told = answers(&provider.wait(2)).concat();
        assert!(told.contains("lock_door") && told.contains("\"required\""), "its schema is in the answer: {told}");

        let two = then(&one, &first, &[]);
        let second = sidecar.post(KIMI, &two.to_string());
        let three = then(&two, &second, &[says(PIZZA)]);
        sidecar.post(KIMI, &three.to_string());
        provider.assert_no_refusal();
        let legs = provider.chats();
        assert_eq!(legs.len(), 4);
        for pair in legs.windows(2) {
            assert_eq!(pair[0].json()["tools"], pair[1].json()["tools"], "the block is constant");
            let (before, after) = (pair[0].messages(), pair[1].messages());
            assert_eq!(after[..before.len()], before[..], "the prefix holds");
        }
        let tools = legs[3].tools();
        assert_eq!((tools.len(), &tools[3..]), (5, &["find_tools".to_owned(), "call_tool".to_owned()][..]));
        let history: Vec<Value> = legs[3].messages().iter().flat_map(|m| list(&m["content"])).collect();
        let used: Vec<&Value> = history.iter().filter(|block| block["type"] == "tool_use").collect();
        assert_eq!(used[1]["id"], blocks[3]["id"], "the same call");
        assert_eq!(used[1]["name"], "call_tool");
        assert_eq!(used[1]["input"], json!({"name": "lock_door", "arguments": arguments.to_string()}));
        assert_eq!(used[2]["name"], "get_weather", "a declared tool stays what it is");
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_called_tools_total", &[("verdict", "discovered")]), 1.0);
    }
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    for every in [1, 7, 4096] {
        for lines in [Lines::Lf, Lines::CrLf] {
            let reply = Reply::text("Now. ").and_call("get_weather", json!({"value": "x"}));
            let reply = reply.and_call("call_tool", json!({"name": "lock_door", "arguments": {"value": "y"}}));
            let provider = Provider::new().reply(reply.and_text("So.").every(every).lines(lines)).start();
            let answer = over(&provider).start().post(KIMI, &ask(true).to_string());
            never_seen(&answer);
            assert_eq!(
                (text(&answer).as_str(), calls(&answer)),
                ("Now. So.", vec!["get_weather".to_owned(), "lock_door".to_owned()])
            );
            assert_eq!(content(&answer)[2]["input"], json!({"value": "y"}));
            assert_eq!(answer.frames().last().map(|event| event["type"].clone()), Some("message_stop".into()));
        }
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
        for stream in [false, true] {
            let replies = [
                Reply::text("Let me. ").and_broken_call("call_tool", broken),
                through(&json!({})),
                Reply::text("Locked."),
            ];
            let provider = Provider::new().replies(replies).start();
            let sidecar = over(&provider).start();
            let body = ask(stream);
            let answer = sidecar.post(KIMI, &body.to_string());
            provider.assert_no_refusal();
            never_seen(&answer);
            assert_eq!(
                (text(&answer).as_str(), calls(&answer)),
                ("Let me. ", vec!["lock_door".to_owned()]),
                "{broken}"
            );
            let told = provider.wait(2).text();
            assert!(told.contains("No tool was called"), "{told}");
            assert_eq!(sidecar.metrics().value("packlight_find_tools_total", &[("outcome", "error")]), 1.0);
            sidecar.post(KIMI, &then(&body, &answer, &[]).to_string());
            provider.assert_no_refusal();
            let (before, after) = (provider.wait(2).messages(), provider.wait(3).messages());
            assert_eq!(after[..before.len()], before[..], "the prefix holds");
        }
    }
}

#[test]
fn a_call_cut_by_length_is_delivered_as_length() {
    for stream in [false, true] {
        let cut = Reply::text("Let me").and_broken_call("call_tool", "{\"name\":\"lock_door\",\"argu");
        let provider = Provider::new().reply(cut.finish("max_tokens")).start();
        let answer = over(&provider).start().post(KIMI, &ask(stream).to_string());
        assert_eq!(provider.chats().len(), 1, "no second leg");
        assert!(answer.text().contains("\"stop_reason\":\"max_tokens\""), "{}", answer.text());
        never_seen(&answer);
        assert_eq!((text(&answer).as_str(), calls(&answer).len()), ("Let me", 0));
    }
}

#[test]
fn a_lost_memory_still_sends_a_valid_history() {
    let replies = [Reply::find(LOCK), through(&json!({"value": "x"}))];
    let provider = Provider::new().replies(replies).answer(|_| Reply::text("Well.")).start();
    let (one, other) = (over(&provider).start(), over(&provider).start());
    let body = ask(false);
    let first = one.post(KIMI, &body.to_string());
    let second = other.post(KIMI, &then(&body, &first, &[]).to_string());
    provider.assert_no_refusal();
    assert_eq!(second.status, 200);
    let leg = provider.wait(3);
    assert_eq!(leg.json()["tools"], provider.wait(1).json()["tools"]);
    let call = &leg.messages()[1]["content"][0];
    assert_eq!(call["name"], "call_tool");
    assert_eq!(call["input"], json!({"name": "lock_door", "arguments": "{\"value\":\"x\"}"}));
}

#[test]
fn endless_asking_ends_with_a_leg_that_cannot_ask() {
    let provider = Provider::new()
        .answer(|r| if r.declares("find_tools") { Reply::find(LOCK) } else { Reply::call("lock_door", json!({})) })
        .start();
    let answer = over(&provider).start().post(KIMI, &ask(false).to_string());
    provider.assert_no_refusal();
    never_seen(&answer);
    assert_eq!((answer.packlight("binding").as_str(), calls(&answer)), ("dispatch", vec!["lock_door".to_owned()]));
    assert_eq!(provider.chats().len(), 4);
}
