//! What the model is sent: the block, what keeps its place, which requests pass
//! untouched, and errors in the caller's shape. NOT searches (find_tools.rs).

use serde_json::{Value, json};

use crate::support::client::Response;
use crate::support::eventually;
use crate::support::provider::Provider;
use crate::support::received::{Received, list};
use crate::support::reply::Reply;
use crate::support::roster;
use crate::support::sidecar::over;

pub const KIMI: &str = "/kimi/anthropic/v1/messages";
/// Weather is retrieved; the model wants to lock a door.
pub const DOOR: &str = "Weather report: temperature, rain forecast. want=17";

pub fn ask(stream: bool) -> Value {
    let mut body = roster::ask_anthropic(DOOR);
    if stream {
        body["stream"] = true.into();
    }
    body
}

fn sent(body: &Value) -> (Response, Received) {
    let provider = Provider::new().reply(Reply::text("done")).start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &body.to_string());
    provider.assert_no_refusal();
    (answer, provider.wait(1))
}

#[test]
fn the_model_gets_what_the_message_needs_and_find_tools() {
    for system in [json!("You are helpful."), json!([{"type": "text", "text": "You are helpful."}])] {
        let provider = Provider::new().reply(Reply::text("done")).start();
        let sidecar = over(&provider).start();
        let mut body = ask(false);
        body["system"] = system.clone();
        let answer = sidecar.post("/kimi/anthropic/v1/messages?beta=true", &body.to_string());
        provider.assert_no_refusal();
        let got = provider.wait(1);
        assert_eq!(got.path, "/anthropic/v1/messages?beta=true");
        assert_eq!(got.tools().len(), 4);
        assert!(got.declares("get_weather"));
        assert_eq!(got.tools().last().map(String::as_str), Some("find_tools"));
        assert_eq!(got.json()["system"], system);
        assert_eq!(
            (answer.packlight("action").as_str(), answer.packlight("binding").as_str()),
            ("narrowed", "replace")
        );
        let narrowed = [("upstream", "kimi"), ("wire", "anthropic"), ("action", "narrowed")];
        assert_eq!(sidecar.metrics().value("packlight_requests_total", &narrowed), 1.0);
    }
}

#[test]
fn every_byte_outside_the_tools_reaches_the_provider_as_written() {
    let provider = Provider::new().reply(Reply::text("done")).start();
    let sidecar = over(&provider).start();
    let odd: Vec<String> = roster::TOOLS
        .iter()
        .map(|(name, text)| {
            format!("{{ \"name\":\"{name}\" ,\"description\":\"{text} \\u00fc\",\"input_schema\":{{\"type\":\"object\",\"x\":9007199254740993001}}, \"strict\": true}}")
        })
        .collect();
    let head = "{\"max_tokens\":1000,\n\t\"messages\" :[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Weather \\u0072eport: temperature, rain forecast \\/ \u{1f327}\"}]}] ,\"tools\": ";
    let tail = ",  \"model\":\"kimi-k3\",\"temperature\":1.0,\"metadata\":{\"n\":1e2}}\n";
    let answer = sidecar.post(KIMI, &format!("{head}[{}]{tail}", odd.join(" ,\r\n")));
    provider.assert_no_refusal();
    assert_eq!(answer.packlight("action"), "narrowed");
    let got = provider.wait(1).text();
    assert!(got.starts_with(head) && got.ends_with(tail), "{got}");
    assert_eq!(odd.iter().filter(|tool| got.contains(tool.as_str())).count(), 3, "bound tools keep their own bytes");
}

#[test]
fn a_reply_that_hides_nothing_comes_back_byte_for_byte() {
    for stream in [false, true] {
        let reply =
            Reply::default().and_reasoning("hm").and_text("größe").and_call("get_weather", json!({"value": "x"}));
        let provider = Provider::new().answer(move |_| reply.clone().every(7)).start();
        let sidecar = over(&provider).start();
        let body = ask(stream).to_string();
        let through = sidecar.post(KIMI, &body);
        let direct = crate::support::client::send(provider.addr, "POST", "/v1/messages", &[], body.as_bytes());
        let normal = |r: &Response| {
            r.text().replace("000001", "000000").replace("toolu_1_", "toolu_0_").replace("sig000000001", "sig000000000")
        };
        assert_eq!(normal(&through), normal(&direct));
        assert!(through.complete);
    }
}

#[test]
fn server_tools_and_marked_tools_stay_in_their_place() {
    let mut body = ask(false);
    let tools = body["tools"].as_array_mut().expect("tools");
    tools.insert(0, json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}));
    tools[10]["cache_control"] = json!({"type": "ephemeral"});
    let marked = tools[10].clone();
    tools.push(json!({"type": "bash_20250124", "name": "bash"}));
    let (_, got) = sent(&body);
    let names = got.tools();
    assert_eq!(names.len(), 7, "{names:?}");
    let at = |name: &str| names.iter().position(|own| own == name).expect("bound");
    assert_eq!((at("web_search"), at("bash"), at("find_tools")), (0, 5, 6), "{names:?}");
    let marked_at = at(marked["name"].as_str().expect("a name"));
    assert_eq!(got.declarations()[marked_at], marked);
    let place = |name: &String| roster::TOOLS.iter().position(|(own, _)| own == name);
    assert!(names.iter().filter_map(place).is_sorted(), "{names:?}");
}

#[test]
fn a_marked_tool_named_like_ours_is_a_collision() {
    let mut body = ask(false);
    let own = json!({"name": "find_tools", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}});
    body["tools"].as_array_mut().expect("tools").push(own);
    let (answer, got) = sent(&body);
    assert_eq!(answer.packlight("reason"), "name_collision");
    assert_eq!(got.json(), body);
}

#[test]
fn what_the_choice_names_is_bound_and_no_choice_is_made_up() {
    for (choice, extra) in [
        (json!({"type": "tool", "name": "play_music"}), Some("play_music")),
        (json!({"type": "none"}), None),
        (json!({"type": "auto", "disable_parallel_tool_use": true}), None),
    ] {
        let mut body = ask(false);
        body["tool_choice"] = choice.clone();
        let (_, got) = sent(&body);
        assert_eq!(got.json()["tool_choice"], choice);
        assert!(extra.is_none_or(|name| got.declares(name)) && got.tools().len() < 6);
    }
    assert!(sent(&ask(false)).1.json().get("tool_choice").is_none());
}

#[test]
fn what_cannot_be_narrowed_passes_untouched_with_its_reason() {
    let change = |key: &str, value: Value| {
        let mut body = ask(false);
        body[key] = value;
        body
    };
    let mut deferred = ask(false);
    deferred["tools"][3]["defer_loading"] = true.into();
    let mut prefill = ask(false);
    prefill["messages"].as_array_mut().expect("messages").push(json!({"role": "assistant", "content": "The"}));
    let reference =
        json!([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "x"}]}]);
    let referred = change(
        "messages",
        json!([
            {"role": "user", "content": "Weather"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}]},
            {"role": "user", "content": reference},
        ]),
    );
    let unanswered = change(
        "messages",
        json!([
            {"role": "user", "content": "Weather"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}]},
            {"role": "user", "content": "well?"},
        ]),
    );
    let picture = json!([{"type": "image", "source": {"type": "base64", "data": "x"}}]);
    for (body, reason) in [
        (deferred, "client_search"),
        (referred, "client_search"),
        (prefill, "partial"),
        (unanswered, "resume"),
        (change("messages", json!([{"role": "user", "content": picture}])), "no_query"),
        (change("tools", json!([])), "no_tools"),
        (change("tools", list(&ask(false)["tools"])[..2].into()), "small_roster"),
        (change("tool_choice", json!("auto")), "unreadable"),
        (change("messages", json!([{"role": "bot", "content": "x"}])), "unreadable"),
    ] {
        let provider = Provider::new().lenient().reply(Reply::text("x")).start();
        let sidecar = over(&provider).start();
        let answer = sidecar.post(KIMI, &body.to_string());
        assert_eq!((answer.packlight("action").as_str(), answer.packlight("reason").as_str()), ("full", reason));
        assert_eq!(provider.wait(1).text(), body.to_string());
    }
}

#[test]
fn what_agents_wrap_around_a_message_and_put_behind_a_result_is_no_turn() {
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let sidecar = over(&provider).start();
    let reminder = json!({"type": "text", "text": "<system-reminder>Order pizza with toppings</system-reminder>"});
    let mut body = ask(false);
    body["messages"] = json!([{"role": "user", "content": [reminder, {"type": "text", "text": DOOR}]}]);
    sidecar.post(KIMI, &body.to_string());
    let used = json!([{"type": "tool_use", "id": "t", "name": "get_weather", "input": {"value": "x"}}]);
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(json!({"role": "assistant", "content": used}));
    messages.push(
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "wet"}, reminder]}),
    );
    sidecar.post(KIMI, &body.to_string());
    provider.assert_no_refusal();
    assert_eq!(provider.wait(1).tools(), provider.wait(2).tools(), "the same turn");
    assert!(!provider.wait(1).declares("order_pizza"));
}

#[test]
fn counting_tokens_and_batches_are_relayed() {
    let provider = Provider::new().start();
    let sidecar = over(&provider).start();
    for path in ["/v1/messages/count_tokens", "/v1/messages/batches", "/v1/models"] {
        let body = ask(false).to_string();
        let answer = sidecar.post(&format!("/kimi/anthropic{path}"), &body);
        assert_eq!((answer.status, answer.header("x-packlight")), (200, None));
        assert_eq!(answer.json()["path"], format!("/anthropic{path}"));
        assert_eq!(answer.json()["length"], body.len());
    }
}

#[test]
fn errors_have_the_caller_s_shape() {
    let gone = Provider::new().start();
    let sidecar = over(&gone).start();
    drop(gone);
    for path in [KIMI, "/kimi/anthropic/v1/messages/count_tokens"] {
        let answer = crate::support::eventually("the provider is gone", || {
            Some(sidecar.post(path, &ask(true).to_string())).filter(|answer| answer.status != 200)
        });
        assert_eq!((answer.status, &answer.json()["type"]), (502, &json!("error")), "{}", answer.text());
        assert_eq!(answer.json()["error"]["type"], "api_error");
        assert!(answer.json()["error"]["message"].as_str().is_some_and(|text| text.contains("kimi")));
    }
    let unknown = sidecar.post("/nowhere/v1/messages", "{}");
    assert_eq!((unknown.status, &unknown.json()["error"]["type"]), (404, &json!("not_found_error")));
}

#[test]
fn a_provider_s_own_error_is_relayed_as_it_is() {
    let error = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let provider = Provider::new().reply(Reply::status(429, error).header("retry-after", "30")).start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &ask(true).to_string());
    assert_eq!((answer.status, answer.header("retry-after"), answer.text().as_str()), (429, Some("30"), error));
}

#[test]
fn a_shadowed_conversation_passes_and_its_usage_counts_cached_tokens_right() {
    for stream in [false, true] {
        let provider = Provider::new().reply(Reply::text("x").usage(1000, 400, 20)).start();
        let sidecar = over(&provider).set("narrow.mode", "\"shadow\"").start();
        let answer = sidecar.post(KIMI, &ask(stream).to_string());
        assert_eq!(answer.packlight("action"), "shadow");
        assert_eq!(provider.wait(1).text(), ask(stream).to_string());
        // Counted when the choice beside the request is known, too.
        let metrics = eventually("the request is counted", || {
            Some(sidecar.metrics()).filter(|metrics| metrics.value("packlight_completion_tokens_total", &[]) > 0.0)
        });
        let tokens = |kind: &str| metrics.value("packlight_prompt_tokens_total", &[("kind", kind)]);
        // 560 in `input_tokens`, 40 written to the cache, 400 read from it
        assert_eq!((tokens("uncached"), tokens("cached")), (600.0, 400.0));
        assert_eq!(metrics.value("packlight_completion_tokens_total", &[]), 20.0);
    }
}
