//! Streams: which frames a client sees, in what order, and how they end.

use crate::*;

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
