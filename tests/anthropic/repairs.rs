//! What a provider refuses, and what the agent gets instead: merged thinking whose
//! memory is lost, a leg that brings one bad tool. NOT searches that go well.

use serde_json::{Value, json};

use crate::find_tools::{LOCK, answers, calls, content, lock, never_seen, says, then};
use crate::narrowing::{KIMI, ask};
use crate::support::provider::Provider;
use crate::support::reply::Reply;
use crate::support::sidecar::{over, play};

fn thinking(stream: bool) -> Value {
    let mut body = ask(stream);
    body["thinking"] = json!({"type": "enabled"});
    body
}

/// A search and a call, each with its own thinking.
fn thoughtful() -> [Reply; 2] {
    let first = Reply::default().and_reasoning("Which one?").and_text("Let me look. ").and_find(LOCK);
    [first, Reply::default().and_reasoning("This one.").and_text("Found.").and_call("lock_door", lock())]
}

#[test]
fn thinking_of_two_legs_goes_back_as_two_messages() {
    for stream in [false, true] {
        let (provider, sidecar) = play(thoughtful());
        provider.push(Reply::text("Finished."));
        provider.push(Reply::text("Bye."));
        let body = thinking(stream);
        let first = sidecar.post(KIMI, &body.to_string());
        let next = then(&body, &first, &[]);
        let second = sidecar.post(KIMI, &next.to_string());
        let more = then(&next, &second, &[says("And thanks for it, dear door")]);
        let third = sidecar.post(KIMI, &more.to_string());
        provider.assert_no_refusal();
        assert_eq!((third.packlight("action").as_str(), provider.chats().len()), ("narrowed", 4));
        let leg = provider.wait(3);
        let kinds = |at: usize| -> Vec<String> {
            let blocks = leg.messages()[at]["content"].as_array().cloned().unwrap_or_default();
            blocks.iter().map(|block| block["type"].as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(kinds(1), ["thinking", "text", "tool_use"]);
        assert_eq!(kinds(2), ["tool_result"]);
        assert_eq!(kinds(3), ["thinking", "text", "tool_use"]);
        assert_eq!(answers(&leg).len(), 1);
    }
}

#[test]
fn merged_thinking_without_its_memory_is_sent_once_more_without_the_first_leg_s() {
    for text in ["Let me look. ", ""] {
        let first = Reply::default().and_reasoning("Which one?").and_text(text).and_find(LOCK);
        let [_, second] = thoughtful();
        let provider =
            Provider::new().replies([first, second, Reply::find("orders pizza"), Reply::text("Finished.")]).start();
        let (one, other) = (over(&provider).start(), over(&provider).start());
        let body = thinking(false);
        let answer = one.post(KIMI, &body.to_string());
        let next = then(&body, &answer, &[]);
        let second = other.post(KIMI, &next.to_string());
        assert_eq!((second.status, second.packlight("action").as_str()), (200, "narrowed"), "{}", second.text());
        never_seen(&second);
        let legs = provider.chats();
        assert_eq!(legs.len(), 5, "refused once, then mended, its search included");
        assert!(legs[2].refused.as_ref().is_some_and(|why| why.contains("cannot be modified")));
        assert!(legs[3].refused.is_none() && legs[4].refused.is_none());
        let kept = &legs[3].messages()[1]["content"];
        let all = content(&answer);
        let own = all.iter().rposition(|block| block["type"] == "thinking").expect("the second leg's");
        assert_eq!(kept, &json!(all[own..]), "the second leg's reply, as it was");
    }
}

#[test]
fn merged_thinking_in_a_request_that_passes_untouched_strands_no_turn() {
    let provider = Provider::new().replies(thoughtful()).reply(Reply::text("Finished.")).start();
    let sidecar = over(&provider).start();
    let body = thinking(false);
    let answer = sidecar.post(KIMI, &body.to_string());
    let next = then(&body, &answer, &[]);
    let resumed = sidecar.post_with(KIMI, &[("x-packlight-resume", "true")], &next.to_string());
    assert_eq!((resumed.status, resumed.packlight("reason").as_str()), (200, "resume"), "{}", resumed.text());
    assert_eq!(provider.wait(3).text(), next.to_string(), "the agent's own bytes first");

    // A comparison is not touched, and neither is a refusal for other reasons.
    let headers = [("x-packlight-mode", "shadow")];
    let shadowed = sidecar.post_with(KIMI, &headers, &next.to_string());
    assert_eq!((shadowed.status, provider.chats().len()), (400, 5));
    let mut bad = next.clone();
    bad["max_tokens"] = 0.into();
    let refused = sidecar.post_with(KIMI, &[("x-packlight-resume", "true")], &bad.to_string());
    assert_eq!((refused.status, provider.chats().len()), (400, 6));
    assert!(refused.complete && refused.text().contains("max_tokens"), "{}", refused.text());
}

#[test]
fn a_found_tool_that_the_provider_rejects_is_withdrawn() {
    let (provider, sidecar) = play([Reply::find(LOCK), Reply::text("It cannot be done.")]);
    let mut body = ask(true);
    body["tools"][17]["input_schema"] = json!({});
    let answer = sidecar.post(KIMI, &body.to_string());
    assert_eq!((answer.status, calls(&answer).len()), (200, 0), "{}", answer.text());
    let legs = provider.chats();
    assert!(legs[1].refused.is_some() && legs[2].refused.is_none());
    assert!(!legs[2].declares("lock_door"));
}

#[test]
fn a_rewritten_request_that_is_refused_is_followed_by_the_agent_s_own() {
    let refusing = |r: &crate::support::received::Received| match r.declares("find_tools") {
        true => Reply::status(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#),
        false => Reply::text("done"),
    };
    let provider = Provider::new().answer(refusing).start();
    let sidecar = over(&provider).start();
    let answer = sidecar.post(KIMI, &ask(false).to_string());
    assert_eq!((answer.status, answer.packlight("reason").as_str()), (200, "refused"));
    assert_eq!(provider.wait(2).text(), ask(false).to_string());
}
