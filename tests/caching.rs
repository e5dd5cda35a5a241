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
use support::provider::Provider;
use support::received::list;
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

/// Three turns of three calls each over a caching provider; what was billed, at a tenth for what is cached.
fn billed(binding: &str, stability: &str, model: &str) -> f64 {
    let provider = Provider::new().caching(Duration::from_secs(300)).answer(|_| Reply::text("Well.")).start();
    let sidecar = Sidecar::over(&provider)
        .set("narrow.max_retrieved_tools", "4")
        .set("narrow.sticky_need", "1")
        .set("narrow.mode", if binding == "off" { "\"off\"" } else { "\"narrow\"" })
        .set("narrow.binding", &format!("\"{}\"", if binding == "off" { "auto" } else { binding }))
        .set("narrow.stability", &format!("\"{stability}\""))
        .start();
    let mut body = roster::ask("Weather report: temperature, rain forecast");
    body["model"] = model.into();
    for tool in body["tools"].as_array_mut().expect("tools") {
        // As large as tools are: some 250 tokens.
        tool["function"]["parameters"]["properties"]["value"]["description"] = "what it is about ".repeat(50).into();
    }
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
            let called = bound.iter().find(|name| *name != "find_tools").expect("a tool");
            let id = format!("{called}:{turn}{call}");
            let call = json!({"id": id, "type": "function", "function": {"name": called, "arguments": "{}"}});
            let messages: &mut Vec<Value> = body["messages"].as_array_mut().expect("messages");
            messages.push(json!({"role": "assistant", "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "as it should be ".repeat(60)}));
        }
    }
    provider.assert_no_refusal();
    assert!(list(&body["messages"]).len() > 20);
    weighed
}

#[test]
fn narrowing_costs_less_than_the_full_roster_where_the_provider_caches() {
    let full = billed("off", "sticky", "kimi-k3");
    let append = billed("append", "sticky", "kimi-k3");
    let sticky = billed("replace", "sticky", "kimi-k3");
    let anew = billed("replace", "turn", "kimi-k3");
    println!("full {full:.0}, append {append:.0}, sticky {sticky:.0}, anew every turn {anew:.0}");
    assert!(append < 0.8 * full, "append {append} of {full}");
    assert!(append < sticky, "append {append}, sticky {sticky}");
}
