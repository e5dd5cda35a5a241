//! Replies on the OpenAI wire as a client sees them: each test is named by the
//! symptom that a public report describes. This file plays the provider and the
//! client. Golden files are in `golden.rs`.

mod calls;
mod chunking;
mod stream;
mod whole;

use packlight::wire::reply::{Framing, Leg, Progress};
use packlight::wire::request::{Answer, Exchange};
use packlight::wire::{Assembler, Format};
use serde_json::Value;

/// What came of a reply.
#[derive(Debug, PartialEq)]
struct Reply {
    out: String,
    legs: Vec<Leg>,
    exchanges: Vec<Exchange>,
    text: String,
    calls: Vec<String>,
}

/// Assembles legs: another follows while there is one and only `find_tools` was called. `cut`: bytes a read.
fn assemble(framing: Framing, legs: &[&str], hold_text: bool, cut: usize) -> Reply {
    let chunks = |leg: &str| leg.as_bytes().chunks(cut).map(<[u8]>::to_vec).collect();
    assemble_chunks(framing, &legs.iter().map(|leg| chunks(leg)).collect::<Vec<_>>(), hold_text)
}

fn assemble_chunks(framing: Framing, legs: &[Vec<Vec<u8>>], hold_text: bool) -> Reply {
    let mut assembler = Assembler::new(Format::OpenAi, framing, "find_tools", hold_text);
    let (mut out, mut reports, mut exchanges) = (Vec::new(), Vec::new(), Vec::new());
    for (number, chunks) in legs.iter().enumerate() {
        for chunk in chunks {
            assembler.feed(chunk, &mut out);
        }
        let leg = assembler.end_leg();
        let answers = leg.searches.iter().map(|search| Answer {
            id: search.id.clone(),
            name: "find_tools".into(),
            text: search.query.clone().unwrap_or_default(),
        });
        if !leg.searches.is_empty() {
            exchanges.push(assembler.exchange(answers.collect(), Vec::new()));
        }
        let goes_on = !leg.searches.is_empty() && leg.calls.is_empty() && number + 1 < legs.len();
        reports.push(leg);
        if !goes_on {
            break;
        }
        assembler.next_leg();
    }
    assembler.close(&mut out);
    let (text, calls) = assembler.visible();
    Reply {
        text: text.to_owned(),
        calls: calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect(),
        out: String::from_utf8(out).expect("UTF-8"),
        legs: reports,
        exchanges,
    }
}

fn sse(legs: &[&str]) -> Reply {
    let reply = assemble(Framing::Sse, legs, false, 7);
    assert!(!reply.out.contains("find_tools"), "{}", reply.out);
    reply
}

/// The chunks of a stream.
fn chunks(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

fn count(stream: &str, pattern: &str) -> usize {
    stream.matches(pattern).count()
}

/// A frame with this choice.
fn frame(id: &str, choice: &str) -> String {
    format!(
        "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-{id}\",\"choices\":[{choice}]}}\n\n"
    )
}

fn delta(id: &str, delta: &str) -> String {
    frame(id, &format!("{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}"))
}

fn finish(id: &str, reason: &str) -> String {
    let usage = r#"{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"cached_tokens":4}"#;
    frame(id, &format!("{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\",\"usage\":{usage}}}"))
}

fn call(index: usize, id: &str, name: &str) -> String {
    format!(
        r#"{{"tool_calls":[{{"index":{index},"id":"{id}","type":"function","function":{{"name":"{name}","arguments":""}}}}]}}"#
    )
}

fn arguments(index: usize, text: &str) -> String {
    let text = Value::from(text);
    format!(r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{text}}}}}]}}"#)
}

const DONE: &str = "data: [DONE]\n\n";
const ROLE: &str = r#"{"role":"assistant","content":""}"#;

fn usage_frame(id: &str) -> String {
    format!(
        "data: {{\"id\":\"{id}\",\"created\":1,\"model\":\"m-{id}\",\"choices\":[],\"usage\":{{\"prompt_tokens\":10,\"prompt_tokens_details\":{{\"cached_tokens\":4}}}}}}\n\n"
    )
}

/// Only `find_tools` is called.
fn search_leg() -> String {
    [
        delta("a", ROLE),
        delta("a", r#"{"reasoning_content":"Hm"}"#),
        delta("a", r#"{"reasoning_content":""}"#),
        delta("a", r#"{"content":"Let me look. "}"#),
        delta("a", &call(0, "find_tools:0", "find_tools")),
        delta("a", &arguments(0, "{\"query\":")),
        delta("a", &arguments(0, "\"send mail\"}")),
        finish("a", "tool_calls"),
        usage_frame("a"),
        DONE.to_owned(),
    ]
    .concat()
}

/// A call of the agent's own.
fn call_leg() -> String {
    [
        delta("b", ROLE),
        delta("b", r#"{"content":"Sending."}"#),
        delta("b", &call(0, "send:1", "send")),
        delta("b", &arguments(0, "{\"to\":9007199254740993001}")),
        finish("b", "tool_calls"),
        usage_frame("b"),
        DONE.to_owned(),
    ]
    .concat()
}
