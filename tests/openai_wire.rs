//! Replies on the OpenAI wire as a client sees them: each test is named by the
//! symptom that a public report describes. Golden files are in `golden.rs`.

use packlight::wire::reply::{Framing, Leg, Progress};
use packlight::wire::request::{Answer, Exchange};
use packlight::wire::{Assembler, Format};
use proptest::prelude::*;
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

#[test]
fn a_search_is_continued_as_one_response() {
    let reply = sse(&[&search_leg(), &call_leg()]);
    let frames = chunks(&reply.out);
    assert!(frames.iter().all(|frame| frame["id"] == "a" && frame["model"] == "m-a"), "{}", reply.out);
    let roles = frames.iter().filter(|frame| !frame["choices"][0]["delta"]["role"].is_null());
    assert_eq!(roles.count(), 1);
    assert_eq!(count(&reply.out, "\"finish_reason\":\"tool_calls\""), 1);
    assert_eq!(count(&reply.out, DONE), 1);
    assert!(reply.out.ends_with(DONE));
    assert_eq!(reply.text, "Let me look. Sending.");
    assert_eq!(reply.calls, ["send({\"to\":9007199254740993001})"]);
    assert_eq!(reply.legs[0].searches[0].query.as_deref(), Some("send mail"));
    assert_eq!(reply.legs[1].calls.len(), 1);
    assert_eq!(
        reply.exchanges[0].said,
        r#"{"role":"assistant","content":"Let me look. ","reasoning_content":"Hm","tool_calls":[{"id":"find_tools:0","type":"function","function":{"name":"find_tools","arguments":"{\"query\":\"send mail\"}"}}]}"#
    );
    assert_eq!((&*reply.exchanges[0].text, &*reply.exchanges[0].reasoning), ("Let me look. ", "Hm"));
}

// CASES 35, 36, 37: two finish reasons.
#[test]
fn the_first_legs_finish_does_not_end_the_stream() {
    let reply =
        sse(&[&search_leg(), &[delta("b", ROLE), delta("b", r#"{"content":"No."}"#), finish("b", "stop")].concat()]);
    let reasons: Vec<_> = chunks(&reply.out)
        .iter()
        .filter_map(|f| f["choices"][0]["finish_reason"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(reasons, ["stop"]);
    assert_eq!(count(&reply.out, DONE), 0, "the last leg sent none");
}

// CASES 40, 41: usage in choices[0]; cached tokens in two spellings.
#[test]
fn usage_is_summed_where_it_stood_and_said_once() {
    let reply = sse(&[&search_leg(), &call_leg()]);
    let frames = chunks(&reply.out);
    let ends: Vec<_> = frames.iter().filter(|frame| frame["choices"][0]["usage"].is_object()).collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(
        ends[0]["choices"][0]["usage"].to_string(),
        r#"{"cached_tokens":8,"completion_tokens":4,"prompt_tokens":20,"total_tokens":24}"#
    );
    let totals: Vec<_> = frames.iter().filter(|frame| frame["usage"].is_object()).collect();
    assert_eq!(totals.len(), 1);
    assert_eq!(totals[0]["usage"].to_string(), r#"{"prompt_tokens":20,"prompt_tokens_details":{"cached_tokens":8}}"#);
    assert_eq!((reply.legs[0].usage.prompt, reply.legs[0].usage.cached), (10, 4));
}

// CASES 1, 4, 5, 9, 34: comments, odd frames, no space behind the colon, empty argument deltas.
#[test]
fn a_reply_without_a_search_is_the_providers_bytes() {
    let odd = ": WAITING\n\nevent: ping\ndata: \n\ndata:{\"choices\":[]}\n\ndata: not json\n\nid: 7\nretry: 5\n\n";
    let legs = [
        call_leg(),
        format!("{odd}{}", call_leg()),
        call_leg().replace('\n', "\r\n"),
        call_leg().replace('\n', "\r"),
        format!("{}: tail", call_leg()),
        call_leg().trim_end().to_owned(),
        delta("a", &arguments(0, "")),
        delta("a", &call(0, "find:0", "find")),
        delta("a", &call(0, "f:0", "find_tools_x")),
        [delta("a", &call(0, "f:0", "find_")), delta("a", &call(0, "f:0", "tool")), finish("a", "stop")].concat(),
        "data: {\"id\":\"a\",\"choices\":[{\"delta\":{\"content\":\"cut".to_owned(),
        format!("{DONE}: after\n\n"),
    ];
    for leg in legs {
        for cut in [1, 2, 3, 1000] {
            assert_eq!(assemble(Framing::Sse, &[&leg], false, cut).out, leg);
        }
    }
}

// CASES 12, 16, 17: a stream that ends in the middle of a call.
#[test]
fn a_cut_leg_gets_no_finish_and_no_done() {
    let leg = [delta("a", ROLE), delta("a", &call(0, "send:0", "send")), delta("a", &arguments(0, "{\"pa"))].concat();
    let reply = sse(&[&leg]);
    assert_eq!(reply.out, leg);
    assert!(!reply.legs[0].complete);
    let cut = search_leg();
    let cut = &cut[..cut.find("send mail").expect("arguments")];
    let reply = sse(&[cut]);
    assert!(!reply.legs[0].complete);
    assert_eq!(reply.legs[0].searches[0].query, None);
    assert!(!reply.out.contains("finish_reason\":\"") && !reply.out.contains("[DONE]"));
    // The name itself is cut through, and the name is whole while its frame is not.
    let name = search_leg();
    for end in ["find_tools:0", "\\\"query"] {
        let at = name.find(end).expect(end) + end.len();
        let reply = sse(&[&name[..at]]);
        assert!(!reply.legs[0].complete);
    }
}

#[test]
fn a_search_cut_by_length_ends_with_length() {
    let leg = [
        delta("a", ROLE),
        delta("a", &call(0, "f:0", "find_tools")),
        delta("a", &arguments(0, "{\"que")),
        finish("a", "length"),
        DONE.to_owned(),
    ]
    .concat();
    let reply = sse(&[&leg]);
    assert_eq!(reply.legs[0].finish.as_deref(), Some("length"));
    assert_eq!(count(&reply.out, "\"finish_reason\":\"length\""), 1);
    assert!(reply.out.ends_with(DONE));
}

// CASES 65: injected tools reach the client.
#[test]
fn a_search_that_is_never_answered_leaves_no_trace() {
    let reply = sse(&[&search_leg()]);
    assert_eq!(count(&reply.out, "\"finish_reason\":\"stop\""), 1);
    assert_eq!(count(&reply.out, "tool_calls"), 0);
    assert!(reply.out.ends_with(DONE));
}

/// Calls around a search: what the client gets is numbered without a gap.
#[test]
fn mixed_calls_are_renumbered_and_end_as_received() {
    let leg = [
        delta("a", ROLE),
        delta("a", &call(0, "send:0", "send")),
        delta("a", &arguments(0, "{}")),
        delta("a", &call(1, "find_tools:1", "find_tools")),
        delta("a", &arguments(1, "{\"query\":\"x\"}")),
        delta("a", &call(2, "read:2", "read")),
        delta("a", &arguments(2, "{\"a\":1}")),
        finish("a", "tool_calls"),
        DONE.to_owned(),
    ]
    .concat();
    let reply = sse(&[&leg, "unused"]);
    let indices: Vec<_> = chunks(&reply.out)
        .iter()
        .filter_map(|frame| frame["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64())
        .collect();
    assert_eq!(indices, [0, 0, 1, 1]);
    assert_eq!(reply.calls, ["send({})", "read({\"a\":1})"]);
    assert_eq!(count(&reply.out, "\"finish_reason\":\"tool_calls\""), 1);
    assert!(reply.exchanges[0].mixed);
    let said: Value = serde_json::from_str(&reply.exchanges[0].said).expect("JSON");
    let names: Vec<_> =
        said["tool_calls"].as_array().expect("calls").iter().map(|call| call["function"]["name"].as_str()).collect();
    assert_eq!(names, [Some("send"), Some("find_tools"), Some("read")]);
}

#[test]
fn several_calls_in_one_frame_lose_only_ours() {
    let leg = [
        delta("a", r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"f","type":"function","function":{"name":"find_tools","arguments":"{\"query\":\"x\"}"}},{"index":1,"id":"s","type":"function","function":{"name":"send","arguments":"{\"n\":1.0}"},"extra":9007199254740993001}]}"#),
        finish("a", "tool_calls"),
    ]
    .concat();
    let reply = sse(&[&leg]);
    let frames = chunks(&reply.out);
    assert_eq!(frames[0]["choices"][0]["delta"]["tool_calls"].as_array().map(Vec::len), Some(1));
    assert_eq!(frames[0]["choices"][0]["delta"]["tool_calls"][0]["index"], 0);
    assert!(reply.out.contains("\"extra\":9007199254740993001"));
}

// CASES 26, 27, 30, 38: Gemini's compatible endpoint: no index, one call a frame, `stop` for calls.
#[test]
fn calls_without_an_index_are_told_by_their_id_and_numbered_when_spliced() {
    let whole = |id: &str, name: &str| {
        delta(
            "a",
            &format!(
                r#"{{"role":"assistant","tool_calls":[{{"function":{{"arguments":"{{\"query\":\"x\"}}","name":"{name}"}},"id":"{id}","type":"function"}}]}}"#
            ),
        )
    };
    let untouched = [whole("1", "send"), whole("2", "read"), finish("a", "stop")].concat();
    assert_eq!(sse(&[&untouched]).out, untouched);
    let search = [whole("1", "find_tools"), whole("2", "find_tools"), finish("a", "stop")].concat();
    let reply = sse(&[&search, &untouched.replace("\"a\"", "\"b\"").replace("m-a", "m-b")]);
    assert_eq!(reply.legs[0].searches.len(), 2);
    let indices: Vec<_> = chunks(&reply.out)
        .iter()
        .filter_map(|frame| frame["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64())
        .collect();
    assert_eq!(indices, [0, 1]);
    assert_eq!(count(&reply.out, "\"role\""), 1);
    assert_eq!(count(&reply.out, "\"finish_reason\":\"stop\""), 1);
}

// CASES 66: signatures.
#[test]
fn a_signature_moves_to_the_first_call_that_stays() {
    let signed = r#"{"google":{"thought_signature":"c2ln"}}"#;
    let leg = [
        delta("a", &format!(r#"{{"role":"assistant","tool_calls":[{{"extra_content":{signed},"function":{{"arguments":"{{\"query\":\"x\"}}","name":"find_tools"}},"id":"1","type":"function"}}]}}"#)),
        delta("a", r#"{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"send"},"id":"2","type":"function"}]}"#),
        delta("a", r#"{"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"3","type":"function"}]}"#),
        finish("a", "stop"),
    ]
    .concat();
    let reply = sse(&[&leg]);
    let calls: Vec<_> = chunks(&reply.out)
        .iter()
        .map(|frame| frame["choices"][0]["delta"]["tool_calls"][0].clone())
        .filter(Value::is_object)
        .collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0]["extra_content"]["google"]["thought_signature"], "c2ln");
    assert!(calls[1]["extra_content"].is_null());
    let said: Value = serde_json::from_str(&reply.exchanges[0].said).expect("JSON");
    assert_eq!(said["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "c2ln");
    assert!(said["tool_calls"][1]["extra_content"].is_null());
}

// CASES 31: null names; ids and names said again on every fragment.
#[test]
fn names_that_are_null_or_repeated_do_not_grow() {
    let again = |name: &str, text: &str| {
        let text = Value::from(text);
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"s:0","type":"function","function":{{"name":{name},"arguments":{text}}}}}]}}"#
        )
    };
    let leg = [
        delta("b", &again("\"send\"", "")),
        delta("b", &again("\"send\"", "{\"a\"")),
        delta("b", &again("null", ":1")),
        delta("b", &again("\"\"", "}")),
        finish("b", "tool_calls"),
    ]
    .concat();
    let reply = sse(&[&leg]);
    assert_eq!(reply.out, leg);
    assert_eq!(reply.calls, ["send({\"a\":1})"]);
    let spliced = sse(&[&search_leg(), &leg]);
    assert_eq!(spliced.calls, ["send({\"a\":1})"]);
    assert_eq!(count(&spliced.out, "s:0"), 1, "{}", spliced.out);
    assert_eq!(count(&spliced.out, "\"name\""), 1, "{}", spliced.out);
}

#[test]
fn a_name_in_pieces_is_held_until_it_is_known() {
    let named = |name: &str, text: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,"function":{{"name":"{name}","arguments":"{text}"}}}}]}}"#)
    };
    let ours = [
        delta("a", &named("find", "")),
        delta("a", &named("_tools", "")),
        delta("a", &arguments(0, "\"x\"")),
        finish("a", "tool_calls"),
    ]
    .concat();
    let reply = sse(&[&ours]);
    assert_eq!(reply.legs[0].searches[0].query.as_deref(), Some("x"));
    assert_eq!(reply.legs[0].searches[0].id, "call_find_tools_0");
    assert!(reply.exchanges[0].said.contains(r#""id":"call_find_tools_0""#));
    assert!(reply.exchanges[0].said.contains(r#""arguments":"{}""#), "a bare string is not sent back");
    let mut assembler = Assembler::new(Format::OpenAi, Framing::Sse, "find_tools", false);
    let mut out = Vec::new();
    assembler.feed(delta("a", &named("find", "")).as_bytes(), &mut out);
    assembler.feed(delta("a", r#"{"content":"later"}"#).as_bytes(), &mut out);
    assert!(out.is_empty(), "order is kept");
    assembler.feed(delta("a", &named("_x", "")).as_bytes(), &mut out);
    assert_eq!(count(&String::from_utf8_lossy(&out), "data: "), 3);
}

#[test]
fn nothing_waits_but_the_frame_that_must_be_judged() {
    let mut assembler = Assembler::new(Format::OpenAi, Framing::Sse, "find_tools", false);
    for frame in [
        delta("a", ROLE),
        delta("a", r#"{"content":"x"}"#),
        delta("a", &call(0, "s", "send")),
        finish("a", "tool_calls"),
        usage_frame("a"),
    ] {
        let mut out = Vec::new();
        assert_eq!(assembler.feed(frame.as_bytes(), &mut out), Progress::More);
        assert_eq!(out, frame.as_bytes());
    }
    let mut out = Vec::new();
    assert_eq!(assembler.feed(DONE.as_bytes(), &mut out), Progress::Ended);
    assert_eq!(out, DONE.as_bytes());
}

#[test]
fn text_waits_for_the_outcome_where_it_must_be_one_document() {
    let reply = assemble(Framing::Sse, &[&search_leg(), &call_leg()], true, 5);
    assert_eq!(reply.text, "Sending.");
    assert!(!reply.out.contains("Let me look") && !reply.out.contains("Hm"));
    assert_eq!((&*reply.exchanges[0].text, &*reply.exchanges[0].reasoning), ("", ""));
    assert!(reply.exchanges[0].said.contains("Let me look"));
    let text = [
        delta("a", ROLE),
        delta("a", r#"{"content":"{\"x\""}"#),
        delta("a", r#"{"content":":1}"}"#),
        finish("a", "stop"),
        DONE.to_owned(),
    ]
    .concat();
    let reply = assemble(Framing::Sse, &[&text], true, 5);
    assert_eq!((&*reply.out, &*reply.text), (&*text, "{\"x\":1}"));
}

// CASES 61: reasoning goes back verbatim, also when empty.
#[test]
fn empty_reasoning_is_sent_back() {
    let leg = [
        delta("a", r#"{"reasoning_content":""}"#),
        delta("a", &call(0, "f:0", "find_tools")),
        finish("a", "tool_calls"),
    ]
    .concat();
    assert!(sse(&[&leg]).exchanges[0].said.starts_with(r#"{"role":"assistant","reasoning_content":"","tool_calls":["#));
    let leg = [delta("a", &call(0, "f:0", "find_tools")), finish("a", "tool_calls")].concat();
    assert!(sse(&[&leg]).exchanges[0].said.starts_with(r#"{"role":"assistant","tool_calls":["#));
}

#[test]
fn an_error_frame_is_passed_on() {
    let error = "data: {\"error\":{\"message\":\"x\",\"type\":\"engine_overloaded_error\"}}\n\n";
    let leg = format!("{}{error}", delta("a", ROLE));
    let reply = sse(&[&leg]);
    assert!(reply.legs[0].failed && !reply.legs[0].complete);
    assert_eq!(reply.out, leg);
    let reply = sse(&[&search_leg(), error]);
    assert!(reply.legs[1].failed && reply.out.ends_with(error));
}

#[test]
fn a_later_leg_that_fails_ends_in_an_error_without_done() {
    let mut assembler = Assembler::new(Format::OpenAi, Framing::Sse, "find_tools", false);
    let mut out = Vec::new();
    assembler.feed(search_leg().replace('\n', "\r\n").as_bytes(), &mut out);
    assembler.end_leg();
    assembler.next_leg();
    assembler.feed(b"data: {\"half\":", &mut out);
    assembler.fail("the provider answered \"503\"", &mut out);
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(out.ends_with("\r\n\r\ndata: {\"error\":{\"message\":\"the provider answered \\\"503\\\"\",\"type\":\"packlight_upstream_error\"}}\r\n\r\n"), "{out}");
    assert!(!out.contains("half") && !out.contains("[DONE]"));
    assert_eq!(assembler.keep_alive(), b": ping\n");
}

// CASES 10: a character that is cut by a read.
#[test]
fn an_emoji_in_two_frames_stays_one() {
    let leg = [
        delta("a", r#"{"content":"\ud83d"}"#),
        delta("a", r#"{"content":"\ude00 你"}"#),
        delta("a", &call(0, "f:0", "find_tools")),
        finish("a", "tool_calls"),
    ]
    .concat();
    let reply = sse(&[&leg]);
    assert_eq!(reply.exchanges[0].text, "😀 你");
    assert_eq!(reply.text, "😀 你");
}

// CASES 14: minutes of silence and then one huge delta.
#[test]
fn a_huge_frame_passes() {
    let leg =
        [delta("a", &call(0, "s", "send")), delta("a", &arguments(0, &"x".repeat(400_000))), finish("a", "tool_calls")]
            .concat();
    assert_eq!(sse(&[&leg]).out, leg);
}

// CASES 67: ids that repeat in every turn are never rewritten.
#[test]
fn ids_stay_as_they_came() {
    let reply = sse(&[&search_leg(), &call_leg().replace("send:1", "functions.send:0")]);
    assert_eq!(reply.legs[1].calls[0].id, "functions.send:0");
    assert_eq!(count(&reply.out, "\"id\":\"functions.send:0\""), 1);
}

const WHOLE_SEARCH: &str = r#"{"id":"a","object":"chat.completion","created":1,"model":"m-a","choices":[{"index":0,"message":{"role":"assistant","content":"Let me look. ","reasoning_content":"Hm","tool_calls":[{"id":"find_tools:0","type":"function","function":{"name":"find_tools","arguments":"{\"query\":\"mail\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"total_tokens":12}}"#;
const WHOLE_CALL: &str = r#"{ "id":"b", "created":2,"model":"m-b","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"send:1","type":"function","function":{"name":"send","arguments":"{\"n\": 1.0}"}, "x": 9007199254740993001}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":20,"total_tokens":25}}"#;

#[test]
fn one_document_is_verbatim_when_nothing_was_hidden() {
    for body in [WHOLE_CALL, "not json", r#"[{"error":{"code":400}}]"#, "", r#"{"error":{"message":"x"}}"#] {
        assert_eq!(assemble(Framing::Whole, &[body], false, 9).out, body);
    }
    assert!(assemble(Framing::Whole, &[r#"{"error":{"message":"x"}}"#], false, 9).legs[0].failed);
}

#[test]
fn one_document_of_two_legs_reads_as_one() {
    let reply = assemble(Framing::Whole, &[WHOLE_SEARCH, WHOLE_CALL], false, 9);
    let body: Value = serde_json::from_str(&reply.out).expect("JSON");
    assert_eq!(
        (body["id"].as_str(), body["model"].as_str(), body["created"].as_u64()),
        (Some("a"), Some("m-a"), Some(1))
    );
    let message = &body["choices"][0]["message"];
    assert_eq!(message["content"], "Let me look. ");
    assert_eq!(message["reasoning_content"], "Hm");
    assert_eq!(body["usage"]["prompt_tokens"], 30);
    assert!(reply.out.contains(r#"{"id":"send:1","type":"function","function":{"name":"send","arguments":"{\"n\": 1.0}"}, "x": 9007199254740993001}"#));
    assert!(!reply.out.contains("find_tools"));
    let held = assemble(Framing::Whole, &[WHOLE_SEARCH, WHOLE_CALL], true, 9);
    assert!(!held.out.contains("Let me look") && held.text.is_empty());
}

#[test]
fn one_document_with_mixed_calls_loses_only_ours_and_keeps_the_signature() {
    let body = r#"{"id":"a","choices":[{"message":{"role":"assistant","tool_calls":[{"id":"1","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"find_tools","arguments":"{}"}},{"id":"2","function":{"name":"send","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let reply = assemble(Framing::Whole, &[body], false, 9);
    let written: Value = serde_json::from_str(&reply.out).expect("JSON");
    let calls = written["choices"][0]["message"]["tool_calls"].as_array().expect("calls").clone();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (&calls[0]["id"], &calls[0]["extra_content"]["google"]["thought_signature"]),
        (&Value::from("2"), &Value::from("s"))
    );
    assert!(reply.exchanges[0].mixed);
    let alone = assemble(Framing::Whole, &[WHOLE_SEARCH], false, 9);
    let alone: Value = serde_json::from_str(&alone.out).expect("JSON");
    assert_eq!(alone["choices"][0]["finish_reason"], "stop");
    assert!(alone["choices"][0]["message"]["tool_calls"].is_null());
}

fn streams() -> Vec<Vec<String>> {
    let odd = ": WAITING\n\nevent: ping\ndata: {}\n\ndata: 你好 not json\n\n";
    let mixed = [
        delta("a", r#"{"content":"你\ud83d\ude00"}"#),
        delta("a", &call(0, "find_tools:0", "find_tools")),
        delta("a", &arguments(0, "{\"query\":\"بريد\"}")),
        delta("a", &call(1, "send:1", "send")),
        delta("a", &arguments(1, "{\"to\":\"你\"}")),
        finish("a", "tool_calls"),
        DONE.to_owned(),
    ]
    .concat();
    let base = vec![
        vec![format!("{odd}{}", call_leg())],
        vec![search_leg(), format!("{odd}{}", call_leg())],
        vec![search_leg(), search_leg(), call_leg()],
        vec![mixed],
        vec![search_leg(), call_leg().trim_end().to_owned()],
        vec![search_leg(), call_leg()[..call_leg().len() / 2].to_owned()],
    ];
    let ends = ["\n", "\r\n", "\r"];
    ends.iter()
        .flat_map(|end| base.iter().map(move |legs| legs.iter().map(|leg| leg.replace('\n', end)).collect()))
        .collect()
}

proptest! {
    #[test]
    fn the_reply_does_not_depend_on_how_it_is_cut(
        which in 0usize..18,
        hold_text in any::<bool>(),
        cuts in proptest::collection::vec(1usize..60, 1..20),
    ) {
        let legs = &streams()[which];
        let cut = |leg: &String| {
            let (mut rest, mut chunks, mut sizes) = (leg.as_bytes(), Vec::new(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, next) = rest.split_at(rest.len().min(*sizes.next().expect("cycle")));
                chunks.push(chunk.to_vec());
                rest = next;
            }
            chunks
        };
        let whole: Vec<_> = legs.iter().map(|leg| vec![leg.as_bytes().to_vec()]).collect();
        let expected = assemble_chunks(Framing::Sse, &whole, hold_text);
        if which % 6 == 0 {
            prop_assert_eq!(&expected.out, &legs[0]);
        }
        prop_assert!(!expected.out.contains("find_tools"));
        prop_assert_eq!(assemble_chunks(Framing::Sse, &legs.iter().map(cut).collect::<Vec<_>>(), hold_text), expected);
    }
}
