//! Append binding (Kimi K3): the block never changes, what a conversation comes to
//! need is declared in messages, and every request goes on where the one before
//! ended. The provider checks K3's rules: no content, one name once, no message
//! between a call and its answer.

mod support;

use serde_json::{Value, json};
use support::provider::Provider;
use support::received::{Received, list};
use support::reply::Reply;
use support::sidecar::{self, Builder};
use support::{model, roster};

const KIMI: &str = "/kimi/v1/chat/completions";
const RAIN: &str = "Weather report: temperature, rain forecast, want=17";
const PIZZA: &str = "Order pizza with toppings for delivery";

fn over(provider: &Provider) -> Builder {
    sidecar::over(provider).set("narrow.binding", "\"auto\"").set("narrow.always_on", "[\"set_alarm\"]")
}

fn ask(text: &str) -> Value {
    let mut body = roster::ask(text);
    body["model"] = "kimi-k3".into();
    body
}

fn then(body: &Value, answer: &support::client::Response, more: &[Value]) -> Value {
    roster::then(body, &answer.json()["choices"][0]["message"], more)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn names(tools: &Value) -> Vec<String> {
    list(tools).iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
}

fn top(request: &Received) -> Vec<String> {
    names(&request.json()["tools"])
}

/// Place and names of every declaration in the conversation.
fn declared(request: &Received) -> Vec<(usize, Vec<String>)> {
    let messages = request.messages().into_iter().enumerate();
    messages.filter(|(_, m)| m["tools"].is_array()).map(|(at, m)| (at, names(&m["tools"]))).collect()
}

/// Every request starts with all that the one before said.
fn goes_on(provider: &Provider) {
    let chats = provider.chats();
    for pair in chats.windows(2) {
        assert_eq!(pair[0].json()["tools"], pair[1].json()["tools"], "the block is constant");
        let (before, after) = (pair[0].messages(), pair[1].messages());
        assert_eq!(after[..before.len()], before[..], "the prefix holds");
    }
}

#[test]
fn the_block_is_constant_and_each_turn_declares_only_what_is_new() {
    let provider = Provider::new().answer(|_| Reply::text("Well.")).start();
    let sidecar = over(&provider).start();
    let one = ask("Weather report: temperature, rain forecast");
    let first = sidecar.post(KIMI, &one.to_string());
    assert!(first.header("x-packlight").is_some_and(|value| value.contains("binding=append")));
    let two = then(&one, &first, &[user(PIZZA)]);
    let second = sidecar.post(KIMI, &two.to_string());
    let three = then(&two, &second, &[user("Weather report: temperature, rain forecast again")]);
    sidecar.post(KIMI, &three.to_string());
    provider.assert_no_refusal();
    goes_on(&provider);
    let chats = provider.chats();
    assert_eq!(top(&chats[0]), ["set_alarm", "find_tools"], "core and the search");
    let declarations = declared(&chats[2]);
    assert_eq!(declarations.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [2, 5], "behind the users' messages");
    assert!(declarations[0].1.contains(&"get_weather".into()) && declarations[0].1.len() == 3);
    assert!(declarations[1].1.contains(&"order_pizza".into()), "{declarations:?}");
    assert_eq!(declared(&chats[0]), declarations[..1]);
    let own: Vec<Value> = list(&three["tools"]);
    let message = &chats[2].messages()[2];
    assert_eq!(message.as_object().map(serde_json::Map::len), Some(2), "no content: {message}");
    assert!(list(&message["tools"]).iter().all(|tool| own.contains(tool)), "in the agent's own words");
    let metrics = sidecar.metrics();
    let changes = |cause| metrics.value("packlight_block_changes_total", &[("cause", cause)]);
    assert_eq!((changes("first"), changes("needed")), (1.0, 1.0));
}

#[test]
fn finds_are_a_further_declaration_and_stand_there_ever_after() {
    let provider = Provider::new().answer(model::wants).start();
    let sidecar = over(&provider).start();
    let one = ask(RAIN);
    let first = sidecar.post(KIMI, &one.to_string());
    let two = then(&one, &first, &[]);
    let second = sidecar.post(KIMI, &two.to_string());
    let three = then(&two, &second, &[user(&format!("{PIZZA}, want=11"))]);
    sidecar.post(KIMI, &three.to_string());
    provider.assert_no_refusal();
    goes_on(&provider);
    let chats = provider.chats();
    assert_eq!(chats.len(), 4, "one search");
    let found = declared(&chats[1]);
    assert_eq!(found.len(), 2);
    assert_eq!(chats[1].messages()[found[1].0 - 1]["role"], "tool", "right behind the answer");
    assert!(found[1].1.contains(&"lock_door".into()));
    assert_eq!(declared(&chats[3])[..2], found[..]);
    assert!(first.text().contains("lock_door") && !first.text().contains("find_tools"));
}

#[test]
fn a_lost_memory_declares_what_was_called_before_its_mention() {
    let provider = Provider::new().answer(model::wants).start();
    let (one, other) = (over(&provider).start(), over(&provider).start());
    let body = ask(RAIN);
    let first = one.post(KIMI, &body.to_string());
    let next = then(&body, &first, &[]);
    let (second, again) = (other.post(KIMI, &next.to_string()), other.post(KIMI, &next.to_string()));
    provider.assert_no_refusal();
    assert_eq!((second.status, again.status), (200, 200));
    let chats = provider.chats();
    let declarations = declared(&chats[2]);
    assert_eq!(declarations[1], (3, vec!["lock_door".to_owned()]));
    assert_eq!(chats[2].messages()[4]["tool_calls"][0]["function"]["name"], "lock_door");
    assert_eq!(chats[2].body, chats[3].body);
}

#[test]
fn a_search_beside_real_calls_declares_behind_their_answers() {
    let mixed = Reply::find("locks the front door of the house").and_call("get_weather", json!({"value": "x"}));
    let provider = Provider::new().reply(mixed).reply(Reply::text("Done.")).reply(Reply::text("Well.")).start();
    let sidecar = over(&provider).start();
    let one = ask("Weather report: temperature, rain forecast");
    let first = sidecar.post(KIMI, &one.to_string());
    let two = then(&one, &first, &[]);
    let second = sidecar.post(KIMI, &two.to_string());
    sidecar.post(KIMI, &then(&two, &second, &[user(PIZZA)]).to_string());
    provider.assert_no_refusal();
    goes_on(&provider);
    let roles: Vec<Value> = provider.wait(2).messages().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "system", "assistant", "tool", "tool", "system"]);
    assert!(declared(&provider.wait(2))[1].1.contains(&"lock_door".into()));
}

#[test]
fn endless_asking_ends_with_a_leg_that_cannot_ask() {
    let provider = Provider::new()
        .answer(
            |r| if r.declares("find_tools") { Reply::find("locks the door") } else { Reply::text("Then I cannot.") },
        )
        .start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &ask(PIZZA).to_string());
    provider.assert_no_refusal();
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "Then I cannot.");
    let legs = provider.chats();
    assert_eq!(legs.len(), 4, "two extra legs, and one more without find_tools");
    assert!(legs[..3].iter().all(|leg| top(leg) == ["set_alarm", "find_tools"]));
    assert!(!legs[3].declares("find_tools") && declared(&legs[3]).is_empty());
    let told = |leg: &Received| leg.messages().iter().rfind(|m| m["role"] == "tool").cloned();
    for leg in &legs[2..] {
        assert!(told(leg).is_some_and(|m| m["content"].as_str().is_some_and(|t| t.contains("over"))), "{}", leg.text());
    }
    assert_eq!(sidecar.metrics().value("packlight_find_tools_total", &[("outcome", "exhausted")]), 1.0);
}

#[test]
fn the_agents_own_declarations_stay_and_count_as_roster() {
    let provider = Provider::new().answer(|_| Reply::text("Well.")).start();
    let sidecar = over(&provider).start();
    let mut body = ask(PIZZA);
    let pizza = list(&body["tools"]).into_iter().find(|tool| tool["function"]["name"] == "order_pizza").expect("pizza");
    body["tools"].as_array_mut().expect("tools").retain(|tool| tool != &pizza);
    body["messages"].as_array_mut().expect("messages").insert(1, json!({"role": "system", "tools": [pizza]}));
    let answer = sidecar.post(KIMI, &body.to_string());
    provider.assert_no_refusal();
    let chat = provider.wait(1);
    assert_eq!(chat.messages()[1], body["messages"][1]);
    assert_eq!(chat.tools().iter().filter(|name| *name == "order_pizza").count(), 1);
    let declarations = declared(&chat);
    assert_eq!((declarations.len(), declarations[1].0), (2, 3));
    let header = answer.header("x-packlight").unwrap_or_default().to_owned();
    assert!(header.contains("action=narrowed") && header.contains("roster=20;bound=5"), "{header}");
}

#[test]
fn what_a_request_asks_for_stands_last() {
    let provider = Provider::new().answer(|_| Reply::text("Well.")).start();
    let sidecar = over(&provider).start();
    sidecar.post_with(KIMI, &[("x-packlight-keep", "play_music,set_alarm")], &ask(PIZZA).to_string());
    provider.assert_no_refusal();
    assert_eq!(declared(&provider.wait(1))[1], (3, vec!["play_music".to_owned()]));
}

#[test]
fn a_model_that_refuses_is_asked_with_replace_at_once_and_remembered() {
    for error in ["tokenization failed", "tools cannot be used with content"] {
        let answer = move |r: &Received| {
            let refused = r.messages().iter().any(|m| m["tools"].is_array());
            let body = json!({"error": {"message": error, "type": "invalid_request_error"}}).to_string();
            if refused { Reply::status(400, &body) } else { Reply::text("Well.") }
        };
        let provider = Provider::new().lenient().answer(answer).start();
        let sidecar = over(&provider).start();
        for (number, legs, binding) in [(1, 2, "replace"), (2, 3, "replace")] {
            let answer = sidecar.post(KIMI, &ask(PIZZA).to_string());
            assert_eq!(answer.status, 200, "the agent's turn does not fail");
            assert_eq!((answer.packlight("action"), answer.packlight("binding")), ("narrowed".into(), binding.into()));
            assert_eq!(provider.chats().len(), legs, "request {number}");
        }
        assert!(provider.wait(2).declares("order_pizza") && declared(&provider.wait(2)).is_empty());
        let mut other = ask(PIZZA);
        other["model"] = "kimi-k3.1-pro".into();
        sidecar.post(KIMI, &other.to_string());
        assert_eq!(provider.chats().len(), 5, "another model is asked for itself");
        let metrics = sidecar.metrics();
        assert_eq!(metrics.value("packlight_append_refused_total", &[("upstream", "kimi"), ("model", "kimi-k3")]), 1.0);
        assert_eq!(metrics.value("packlight_append_refused_total", &[]), 2.0);
    }
}

#[test]
fn other_models_and_wires_replace() {
    let provider = Provider::new().answer(|_| Reply::text("Well.")).start();
    let sidecar = over(&provider).set("narrow.binding", "\"append\"").start();
    sidecar.post(KIMI, &roster::ask(PIZZA).to_string());
    sidecar.post("/gemini/v1beta/models/kimi-k3:generateContent", &roster::ask_gemini(PIZZA).to_string());
    provider.assert_no_refusal();
    assert!(provider.chats().iter().all(|chat| chat.declares("order_pizza") && declared(chat).is_empty()));
    let sidecar = over(&provider).set("narrow.append_models", "[\"other-*\"]").start();
    sidecar.post(KIMI, &ask(PIZZA).to_string());
    assert!(declared(&provider.wait(3)).is_empty(), "the list is configured");
}
