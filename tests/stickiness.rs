//! When a block changes between requests, and that each change says why. NOT what
//! is in it (narrowing.rs).

mod support;

use serde_json::{Value, json};
use support::eventually;
use support::provider::Provider;
use support::received::list;
use support::reply::Reply;
use support::roster;
use support::sidecar::{Sidecar, over};

const KIMI: &str = "/kimi/v1/chat/completions";
const RAIN: &str = "Weather report: temperature, rain forecast";
const PIZZA: &str = "Order pizza with toppings for delivery";

fn well() -> Provider {
    Provider::new().answer(|_| Reply::text("Well.")).start()
}

/// `body` and what followed it: a reply without calls, and the user's next message.
fn then(body: &Value, text: &str) -> Value {
    let mut body = body.clone();
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(json!({"role": "assistant", "content": "Well."}));
    messages.push(json!({"role": "user", "content": text}));
    body
}

/// `body` and one call that was answered.
fn working(body: &Value, tool: &str) -> Value {
    let mut body = body.clone();
    let messages = body["messages"].as_array_mut().expect("messages");
    let id = format!("{tool}:{}", messages.len());
    let call = json!({"id": id, "type": "function", "function": {"name": tool, "arguments": "{}"}});
    messages.push(json!({"role": "assistant", "tool_calls": [call]}));
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "done"}));
    body
}

fn changes(sidecar: &Sidecar, cause: &str) -> f64 {
    sidecar.metrics().value("packlight_block_changes_total", &[("cause", cause)])
}

#[test]
fn after_a_silence_longer_than_the_provider_remembers_the_block_is_chosen_anew() {
    for (model, binding) in [("kimi-k2.6", "replace"), ("kimi-k3", "append")] {
        let provider = well();
        // Every silence is longer than a millisecond: the reply alone takes one.
        let sidecar = over(&provider)
            .set("narrow.binding", &format!("\"{binding}\""))
            .set("narrow.cache_life", "\"1ms\"")
            .start();
        let mut one = roster::ask(RAIN);
        one["model"] = model.into();
        sidecar.post(KIMI, &one.to_string());
        let two = then(&one, PIZZA);
        let answer = sidecar.post(KIMI, &two.to_string());
        let second = provider.wait(2).tools();
        assert!(!second.contains(&"get_weather".into()) && second.contains(&"order_pizza".into()), "{second:?}");
        assert_eq!(second.len(), 4, "{second:?}");
        assert_eq!((changes(&sidecar, "first"), changes(&sidecar, "expired")), (1.0, 1.0));
        assert_eq!(answer.header("x-packlight").map(|h| h.contains("narrowed")), Some(true));
        eventually("the cause stands in a record", || {
            let decisions = sidecar.admin("/decisions").json();
            list(&decisions).iter().any(|record| record["block"]["cause"] == "expired").then_some(())
        });

        sidecar.post(KIMI, &working(&two, "order_pizza").to_string());
        assert_eq!(provider.wait(3).tools(), second, "within the turn it holds, whatever the silence");
        provider.assert_no_refusal();
        assert_eq!((changes(&sidecar, "first"), changes(&sidecar, "expired")), (1.0, 1.0));
    }
}

#[test]
fn a_conversation_that_goes_on_keeps_and_grows() {
    let provider = well();
    let sidecar = over(&provider).start();
    let one = roster::ask(RAIN);
    sidecar.post(KIMI, &one.to_string());
    let two = then(&one, PIZZA);
    for _ in 0..3 {
        sidecar.post(KIMI, &two.to_string());
    }
    let blocks: Vec<Vec<String>> = provider.chats().iter().map(|chat| chat.tools()).collect();
    assert_eq!(blocks[1][..blocks[0].len()], blocks[0][..], "it grows at its end");
    assert_eq!(blocks[1], blocks[3]);
    assert_eq!(changes(&sidecar, "needed"), 1.0, "sent again it has not changed");
    assert_eq!(changes(&sidecar, "expired"), 0.0);
    let withheld = working(&two, "play_music");
    sidecar.post(KIMI, &withheld.to_string());
    sidecar.post(KIMI, &working(&withheld, "play_music").to_string());
    assert_eq!(changes(&sidecar, "discovery"), 1.0, "a call of a withheld tool, once");
    let mut shuffled = working(&withheld, "play_music");
    shuffled["tools"].as_array_mut().expect("tools").reverse();
    sidecar.post(KIMI, &shuffled.to_string());
    assert_eq!(changes(&sidecar, "other"), 1.0, "the agent reordered its own tools");
    provider.assert_no_refusal();
}
