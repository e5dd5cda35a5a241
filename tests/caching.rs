//! What a provider that caches prompts makes of the bindings: random conversations
//! through the real code without sockets, a few whole ones with them.

#[path = "caching/conversation.rs"]
mod conversation;
mod support;

use std::time::Duration;

use conversation::{Conversation, Sent, Step};
use packlight::turn::policy::Binding;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::eventually;
use support::provider::Provider;
use support::received::{Received, list};
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const CHUNK: u64 = 256;
const KIMI: &str = "/kimi/v1/chat/completions";

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tools = || prop::collection::vec(0usize..40, 1..8);
    let step = prop_oneof![
        4 => (tools(), prop::bool::weighted(0.15)).prop_map(|(best, contentless)| Step::User { best, contentless }),
        6 => (0usize..40).prop_map(Step::Call),
        2 => (tools(), prop::bool::ANY).prop_map(|(found, mixed)| Step::Search { found, mixed }),
        1 => Just(Step::Retry),
        1 => (0usize..8).prop_map(Step::Branch),
    ];
    prop::collection::vec(step, 4..28)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A share of the whole prompt would flatter the larger one: what is compared is how much of what the conversation
    /// had sent before is read from the cache. With the full roster that is all of it, in whole chunks.
    #[test]
    fn append_reads_from_the_cache_all_that_the_full_roster_would(steps in steps()) {
        let mut conversation = Conversation::new(Binding::Append);
        for step in steps {
            for Sent { narrowed, full, parent, full_parent, grown, .. } in conversation.step(&step) {
                let known = |before: u64| before / CHUNK * CHUNK;
                prop_assert!(full.cached >= known(full_parent), "the ruler itself: {:?} after {}", full, full_parent);
                prop_assert!(narrowed.cached >= known(parent), "{:?} after {}: {:?}", narrowed, parent, step);
                let (new, full_new) = (narrowed.prompt - narrowed.cached, full.prompt - full.cached);
                prop_assert!(
                    new <= full_new + grown + CHUNK,
                    "uncached {} of {:?}, {} with the full roster, {} declared", new, narrowed, full_new, grown
                );
            }
        }
    }

    #[test]
    fn a_sticky_block_changes_at_most_as_often_as_its_counted_causes(steps in steps()) {
        let mut conversation = Conversation::new(Binding::Replace);
        let (mut changes, mut causes) = (0, 0);
        for step in steps {
            for sent in conversation.step(&step) {
                changes += usize::from(sent.changed);
                causes += sent.causes;
                prop_assert!(changes <= causes, "a change without a cause: {:?}", step);
            }
        }
    }

    #[test]
    fn the_same_transcript_gives_the_same_bytes_in_another_replica(steps in steps()) {
        for binding in [Binding::Append, Binding::Replace] {
            let mut conversation = Conversation::new(binding);
            for step in &steps {
                conversation.step(step);
            }
            prop_assert_eq!(conversation.body(), conversation.replica().body());
        }
    }
}

/// A request whose tools are as large as tools are: some 250 tokens.
fn large(text: &str, model: &str) -> Value {
    let mut body = roster::ask(text);
    body["model"] = model.into();
    for tool in body["tools"].as_array_mut().expect("tools") {
        tool["function"]["parameters"]["properties"]["value"]["description"] = "what it is about ".repeat(50).into();
    }
    body
}

/// Three turns of three calls each over a caching provider, the last of so many such conversations; what was billed, at
/// a tenth for what is cached.
fn billed(binding: &str, stability: &str, model: &str, conversations: usize) -> f64 {
    let provider = Provider::new().caching(Duration::from_secs(300)).answer(|_| Reply::text("Well.")).start();
    let sidecar = Sidecar::over(&provider)
        .set("narrow.max_retrieved_tools", "4")
        .set("narrow.sticky_need", "1")
        .set("narrow.mode", if binding == "off" { "\"off\"" } else { "\"narrow\"" })
        .set("narrow.binding", &format!("\"{}\"", if binding == "off" { "auto" } else { binding }))
        .set("narrow.stability", &format!("\"{stability}\""))
        .start();
    let all: Vec<_> = (0..conversations).map(|number| conversation(&provider, &sidecar, model, number)).collect();
    let weighed = all.into_iter().next_back();
    provider.assert_no_refusal();
    weighed.expect("a conversation")
}

fn conversation(provider: &Provider, sidecar: &Sidecar, model: &str, number: usize) -> f64 {
    let mut body = large(&format!("Weather report: temperature, rain forecast {number}"), model);
    // No conversation finds the tools of the one before in the cache.
    body["tools"][0]["function"]["description"] = format!("Sends an email message, version {number}").into();
    let mut weighed = 0.0;
    for (turn, text) in ["", "Order pizza with toppings for delivery", "Translates a sentence into another language"]
        .into_iter()
        .enumerate()
    {
        let messages = body["messages"].as_array_mut().expect("messages");
        if turn > 0 {
            messages.push(json!({"role": "assistant", "content": "Well."}));
            messages.push(json!({"role": "user", "content": text}));
        }
        for call in 0..3 {
            let answer = sidecar.post(KIMI, &body.to_string());
            assert_eq!(answer.status, 200);
            let usage = &answer.json()["usage"];
            let (prompt, cached) = (usage["prompt_tokens"].as_f64(), usage["cached_tokens"].as_f64());
            weighed += prompt.expect("a prompt") - 0.9 * cached.expect("cached tokens");
            let bound = provider.chats().last().expect("a chat").tools();
            let own = |name: &&String| !["find_tools", "call_tool"].contains(&name.as_str());
            let called = bound.iter().find(own).expect("a tool");
            let id = format!("{called}:{turn}{call}");
            let call = json!({"id": id, "type": "function", "function": {"name": called, "arguments": "{}"}});
            let messages: &mut Vec<Value> = body["messages"].as_array_mut().expect("messages");
            messages.push(json!({"role": "assistant", "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "as it should be ".repeat(60)}));
        }
    }
    assert!(list(&body["messages"]).len() > 20);
    weighed
}

#[test]
fn narrowing_costs_less_than_the_full_roster_where_the_provider_caches() {
    let full = billed("off", "sticky", "kimi-k3", 1);
    let append = billed("append", "sticky", "kimi-k3", 1);
    let sticky = billed("replace", "sticky", "kimi-k3", 1);
    let anew = billed("replace", "turn", "kimi-k3", 1);
    println!("full {full:.0}, append {append:.0}, sticky {sticky:.0}, anew every turn {anew:.0}");
    assert!(append < 0.8 * full, "append {append} of {full}");
    assert!(append < sticky, "append {append}, sticky {sticky}");
}

#[test]
fn auto_costs_less_than_the_full_roster_once_it_knows_the_traffic_and_append_before() {
    for (model, watched) in [("kimi-k3", &[1, 56][..]), ("kimi-k2.6", &[56])] {
        for conversations in watched.iter().copied() {
            let full = billed("off", "sticky", model, conversations);
            let auto = billed("auto", "sticky", model, conversations);
            println!("{model}, conversation {conversations}: full {full:.0}, auto {auto:.0}");
            assert!(auto < 0.8 * full, "{model}: {auto} of {full} in conversation {conversations}");
        }
    }
}

/// One request a conversation, two searches in it, and a provider that caches nothing: three prompts for one.
#[test]
fn auto_sends_in_full_what_costs_less_so_and_goes_on_learning() {
    let searching = |request: &Received| {
        let searched = request.messages().iter().filter(|message| message["role"] == "tool").count();
        match (request.declares("find_tools"), searched) {
            (true, 0) => Reply::find("locks the front door of the house"),
            (true, 1) => Reply::find("Creates an invoice with amounts"),
            _ => Reply::text("Well."),
        }
    };
    let provider = Provider::new().caching(Duration::ZERO).answer(searching).start();
    let sidecar =
        Sidecar::over(&provider).set("narrow.max_retrieved_tools", "8").set("narrow.binding", "\"auto\"").start();
    let ask = |number: usize| large(&format!("{}, number {number}", roster::TOOLS[number % 20].1), "kimi-k2.6");
    let post = |body: &Value, headers: &[(&str, &str)]| {
        let answer = sidecar.post_with(KIMI, headers, &body.to_string());
        let prompt = answer.json()["usage"]["prompt_tokens"].as_f64().expect("a prompt");
        (answer.packlight("action"), answer.packlight("reason"), prompt)
    };
    let in_full = |number: usize| post(&ask(number), &[("x-packlight-mode", "off")]).2;

    let (mut before, mut would) = (0.0, 0.0);
    let begun = (0..70).find(|number| {
        let (action, reason, prompt) = post(&ask(*number), &[]);
        if action == "full" {
            assert_eq!(reason, "cost");
            return true;
        }
        before += prompt;
        would += in_full(*number);
        false
    });
    let begun = begun.expect("it learnt");
    assert!((50..60).contains(&begun), "fifty are watched first: {begun}");
    assert!(before > 1.3 * would, "narrowing loses here: {before} for {would}");
    assert_eq!(provider.chats().last().expect("a chat").json(), ask(begun), "the agent's own");

    let (mut served, mut full, mut explored) = (0.0, 0.0, 0);
    for number in 100..500 {
        let (action, reason, prompt) = post(&ask(number), &[]);
        served += prompt;
        full += in_full(number);
        match action.as_str() {
            "narrowed" => explored += 1,
            _ => assert_eq!((action.as_str(), reason.as_str()), ("full", "cost")),
        }
    }
    println!(
        "{begun} conversations cost {before:.0} for {would:.0}, then 400 {served:.0} for {full:.0}, {explored} explored"
    );
    assert!((1..=10).contains(&explored), "one of a hundred goes on telling what searches cost: {explored}");
    assert!(served <= 1.02 * full, "{served} for {full}");

    let in_shadow = (600..610).filter(|number| {
        let (action, reason, _) = post(&ask(*number), &[("x-packlight-mode", "shadow")]);
        assert_eq!(action, "shadow");
        reason == "cost"
    });
    assert!(in_shadow.count() >= 9, "shadow says what would go in full");
    let goes_on = |number: usize| {
        let mut body = ask(number);
        let more = [json!({"role": "assistant", "content": "Well."}), json!({"role": "user", "content": "And now?"})];
        body["messages"].as_array_mut().expect("messages").extend(more);
        post(&body, &[]).0
    };
    assert_eq!((goes_on(0).as_str(), goes_on(begun).as_str()), ("narrowed", "full"), "as they began");
    let labels = [("action", "full"), ("reason", "cost")];
    assert!(sidecar.metrics().value("packlight_requests_total", &labels) > 390.0);
    let record = eventually("a record", || {
        let records = sidecar.admin("/decisions").json();
        list(&records).into_iter().find(|record| record["reason"] == "cost")
    });
    assert_eq!((&record["action"], &record["arm"], &record["binding"]), (&json!("full"), &json!("narrow"), &json!("")));
    provider.assert_no_refusal();
}
