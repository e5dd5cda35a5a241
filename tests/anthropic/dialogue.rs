//! Whole conversations with a model that does anything a model may do, before a provider
//! that forgives nothing: no request is refused, nothing of a search is seen, and what
//! the provider was told stays told. NOT one behaviour at a time (find_tools.rs).

use serde_json::{Value, json};

use crate::find_tools::{calls, never_seen, says, text, then};
use crate::narrowing::KIMI;
use crate::support::provider::Provider;
use crate::support::received::{Received, list};
use crate::support::reply::{Lines, Part, Reply};
use crate::support::roster;
use crate::support::sidecar::over;

/// A deterministic number from what was asked: the same request is always answered alike.
fn dice(seed: u64, request: &Received) -> u64 {
    request.body.iter().fold(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17)
    })
}

/// Text, calls, searches and mixtures of them, bound tools and withheld ones.
fn anything(seed: u64, request: &Received) -> Reply {
    let dice = dice(seed, request);
    let pick = |shift: u32, of: usize| usize::try_from((dice >> shift) & 0xffff).unwrap_or_default() % of;
    let (name, about) = roster::TOOLS[pick(3, roster::TOOLS.len())];
    let other = roster::TOOLS[pick(19, roster::TOOLS.len())].0;
    let arguments = json!({"value": "größe", "n": 9_007_199_254_740_993_001_u64, "x": 1.0});
    let said = ["Well. ", "Gut: ", "حسنا "][pick(35, 3)];
    // Through call_tool, where there is one: most calls, declared or not.
    let wraps = request.declares("call_tool") && pick(27, 4) > 0;
    let wrapped = |name: &str| json!({"name": name, "arguments": arguments.to_string()});
    let call = |reply: Reply, name: &str| match wraps {
        true => reply.and_call("call_tool", wrapped(name)),
        false => reply.and_call(name, arguments.clone()),
    };
    let searches = request.declares("find_tools");
    let reply = match pick(41, 8) {
        0 | 1 => Reply::text(said),
        2 => call(Reply::text(said), name),
        3 => call(call(Reply::default(), name), other),
        4 if searches => Reply::text(said).and_find(about),
        5 if searches => Reply::find(about).and_text(said).and_find("nothing of the kind"),
        6 if searches => call(Reply::text(said).and_find(about), name),
        7 if searches => call(Reply::default(), name).and_find(about),
        _ => Reply::text(said),
    };
    let mut reply = match pick(49, 3) {
        0 => reply.every(11),
        1 => reply.lines(Lines::CrLf),
        _ => reply,
    };
    if request.json()["thinking"].is_object() {
        reply.parts.insert(0, Part::Reasoning(format!("{said}{name}")));
    }
    reply
}

#[test]
fn whatever_the_model_does_no_request_is_refused_and_the_prefix_holds() {
    let (mut hidden, mut mixed) = (0, 0);
    for (seed, binding) in (0..6).flat_map(|seed| [(seed, "replace"), (seed, "dispatch")]) {
        let provider = Provider::new().answer(move |request| anything(seed, request)).start();
        let sidecar = over(&provider).set("narrow.binding", &format!("\"{binding}\"")).start();
        let mut body = roster::ask_anthropic("Weather report: temperature, rain forecast");
        body["stream"] = (seed % 2 == 0).into();
        if seed % 3 != 0 {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 1000});
        }
        let mut seen = 0;
        for step in 0..12 {
            let answer = sidecar.post(KIMI, &body.to_string());
            provider.assert_no_refusal();
            never_seen(&answer);
            assert!(!answer.text().contains("call_tool"), "seed {seed}: {}", answer.text());
            assert_eq!((answer.status, answer.packlight("action").as_str()), (200, "narrowed"), "{}", answer.text());
            assert!(!text(&answer).is_empty() || !calls(&answer).is_empty(), "seed {seed}: {}", answer.text());
            seen += calls(&answer).len();
            let more: Vec<Value> = match (calls(&answer).is_empty(), step % 3) {
                (true, _) => vec![says(&format!("{} please", roster::TOOLS[(step * 7 + 3) % 20].1))],
                (false, 0) => vec![says("<system-reminder>go on</system-reminder>")],
                (false, _) => Vec::new(),
            };
            body = then(&body, &answer, &more);
        }
        let legs = provider.chats();
        assert!(legs.len() >= 12 && seen > 0, "seed {seed}: {} legs, {seen} calls", legs.len());
        for pair in legs.windows(2) {
            // The leg that may search no more has another block, so it may call otherwise, too.
            if binding == "dispatch" && !pair.iter().all(|leg| leg.declares("find_tools")) {
                continue;
            }
            let (before, after) = (pair[0].messages(), pair[1].messages());
            assert_eq!(after[..before.len()], before[..], "seed {seed}, {binding}");
            let block = |leg: &Received| leg.json()["tools"].clone();
            assert!(binding == "replace" || block(&pair[0]) == block(&pair[1]), "seed {seed}: the block changed");
        }
        for message in legs.last().expect("a leg").messages() {
            let named = |block: &Value| block["type"] == "tool_use" && block["name"] == "find_tools";
            let calls: Vec<Value> = list(&message["content"]).into_iter().filter(|b| b["type"] == "tool_use").collect();
            let searches = calls.iter().filter(|block| named(block)).count();
            hidden += usize::from(searches > 0);
            mixed += usize::from(searches > 0 && searches < calls.len());
        }
    }
    assert!(hidden > 15 && mixed > 5, "{hidden} messages with searches, {mixed} of them with calls beside");
}
