//! Failures of other gateways and agents, read in public trackers, as they would show on Gemini's wire: each named by
//! its symptom. NOT golden files.

use packlight::wire::reply::{Framing, Usage};
use packlight::wire::request::Rewrite;
use packlight::wire::{Assembler, Format};

use super::{accepted, array, assemble, assemble_cut, finishes, narrowed};

fn chunk(parts: &str, rest: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}}{rest}}}]}}"#)
}

fn events(chunks: &[String]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

const FIND: &str = r#"{"functionCall":{"name":"find_tools","args":{"query":"q"}},"thoughtSignature":"s1"}"#;
const OWN: &str = r#"{"functionCall":{"name":"own","args":{"n":9007199254740993001,"d":1e16}}}"#;
const STOP: &str = r#","finishReason":"STOP""#;

#[test]
fn the_rest_of_an_answer_is_lost_behind_a_first_legs_finish() {
    // See: RayBytes/ChatMock#114, BerriAI/litellm#27139. One finish, at the end; what the first leg said stays.
    let first = events(&[chunk(r#"{"text":"A"}"#, ""), chunk(&format!(r#"{FIND},{{"text":"B"}}"#), STOP)]);
    let second = events(&[chunk(r#"{"text":"C"}"#, ""), chunk(r#"{"text":"D"}"#, STOP)]);
    let reply = assemble(Framing::Sse, &[&first, &second]);
    assert_eq!(finishes(&accepted(&reply.out)), ["STOP"]);
    assert_eq!(reply.seen.0, "ABCD");
    assert_eq!(reply.exchanges[0].text, "AB");
    assert!(reply.out.ends_with(&second));
}

#[test]
fn a_stop_finish_beside_calls_ends_the_agents_loop() {
    // See: googleapis/python-genai#2868. The outcome is decided by the calls seen, the reason is relayed as it is.
    let reply = assemble(Framing::Sse, &[&events(&[chunk(FIND, ""), chunk(r#"{"text":""}"#, STOP)])]);
    assert_eq!((reply.legs[0].searches.len(), reply.legs[0].finish.as_deref()), (1, Some("STOP")));
    assert!(reply.legs[0].complete && reply.legs[0].calls.is_empty());
}

#[test]
fn comments_are_taken_for_the_end_of_the_stream() {
    // See: mnfst/llm-gateway#2053, continuedev/continue#13144. Verbatim in a leg that hides nothing; in a joined stream Google's SDKs would fail on them.
    let quiet = format!(": ping\r\n\r\n{}", events(&[chunk(r#"{"text":"A"}"#, STOP)]));
    assert_eq!(assemble(Framing::Sse, &[&quiet]).out, quiet);
    let reply = assemble(Framing::Sse, &[&events(&[chunk(FIND, STOP)]), &quiet]);
    assert!(!reply.out.contains("ping"));
    accepted(&reply.out);
}

#[test]
fn a_missing_space_behind_data_gives_an_empty_answer() {
    // See: dataelement/Clawith#106. Read without it, written with it.
    let first = format!("data:{}\n\n", chunk(&format!(r#"{{"text":"A"}},{FIND}"#), STOP));
    let second = format!("data:{}\n\n", chunk(r#"{"text":"B"}"#, STOP)).replace("]}", "],\"responseId\":\"r\"}");
    let reply = assemble(Framing::Sse, &[&first, &second]);
    assert_eq!(reply.seen.0, "AB");
    assert!(reply.out.starts_with("data: {"));
}

#[test]
fn a_stream_cut_in_a_call_gets_a_finish_it_never_had() {
    // See: CommandCodeAI/command-code#785, NousResearch/hermes-agent#6847. Nothing is closed, finished or repaired; what is half said about a search is not relayed.
    let half = r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"own","args":{"pa"#;
    let body = events(&[chunk(r#"{"text":"A"}"#, "")]) + half;
    let reply = assemble(Framing::Sse, &[&body]);
    assert_eq!(reply.out, body);
    assert!(!reply.legs[0].complete);

    let searched = events(&[chunk(FIND, "")]);
    let reply = assemble(Framing::Sse, &[&searched]);
    assert_eq!((reply.out.as_str(), reply.legs[0].complete), ("", false));
    let half = assemble(Framing::Array, &[r#"[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"find_to"#]);
    assert_eq!(half.out, "");
}

#[test]
fn a_last_event_without_its_blank_line_is_lost() {
    let body = events(&[chunk(r#"{"text":"A"}"#, ""), chunk(r#"{"text":"B"}"#, STOP)]);
    let body = body.trim_end();
    let reply = assemble(Framing::Sse, &[body]);
    assert_eq!((reply.out.as_str(), reply.legs[0].complete), (body, true));
    let joined = assemble(Framing::Sse, &[events(&[chunk(FIND, STOP)]).trim_end(), body]);
    assert_eq!(joined.seen.0, "AB");
}

#[test]
fn one_huge_chunk_after_minutes_of_silence() {
    // See: vllm-project/vllm#50604. No limit of a line's length.
    let big = chunk(&format!(r#"{{"functionCall":{{"name":"own","args":{{"t":"{}"}}}}}}"#, "x".repeat(400_000)), STOP);
    let body = events(&[big]);
    let cuts: Vec<_> = (0..body.len()).step_by(1000).collect();
    assert_eq!(assemble_cut(Framing::Sse, false, &[body.as_bytes()], &cuts).out, body);
}

#[test]
fn a_search_cut_by_max_tokens_becomes_an_error() {
    // See: experientiallabs/experiential#758. The reason goes out as it came, without the call, and the chunk has parts.
    let body = events(&[chunk(r#"{"text":"A"}"#, ""), chunk(FIND, r#","finishReason":"MAX_TOKENS""#)]);
    let reply = assemble(Framing::Sse, &[&body]);
    assert_eq!(finishes(&accepted(&reply.out)), ["MAX_TOKENS"]);
    assert!(!reply.out.contains("find_tools"));
    assert_eq!(reply.legs[0].finish.as_deref(), Some("MAX_TOKENS"));
}

#[test]
fn broken_arguments_of_a_search_fail_the_request() {
    for args in [r#"{"q":"x"}"#, r#""{\"query\":\"x\"}""#, "null", r#"{"query":5}"#] {
        let call = format!(r#"{{"functionCall":{{"id":"7","name":"find_tools","args":{args}}}}}"#);
        let leg = &assemble(Framing::Sse, &[&events(&[chunk(&call, STOP)])]).legs[0];
        assert_eq!((leg.searches[0].id.as_str(), &leg.searches[0].query), ("7", &None), "{args}");
    }
}

#[test]
fn an_undeclared_call_is_relayed_and_reported() {
    // See: epam/ai-dial-adapter-vertexai#325.
    let body =
        events(&[chunk(OWN, r#","finishReason":"UNEXPECTED_TOOL_CALL","finishMessage":"undeclared function: own""#)]);
    let reply = assemble(Framing::Sse, &[&body]);
    assert_eq!((reply.out.as_str(), reply.legs[0].finish.as_deref()), (body.as_str(), Some("UNEXPECTED_TOOL_CALL")));

    let finish = r#","finishReason":"UNEXPECTED_TOOL_CALL","finishMessage":"undeclared function: find_tools""#;
    let reply = assemble(Framing::Sse, &[&events(&[chunk(r#"{"text":"A"}"#, finish)])]);
    assert!(!reply.out.contains("find_tools") && reply.out.contains("UNEXPECTED_TOOL_CALL"), "{}", reply.out);
}

#[test]
fn a_signature_is_lost_with_the_call_it_stood_on() {
    // See: securo-finance/securo#884. It moves to the first call that is left; the provider gets the true order back.
    let reply = assemble(Framing::Sse, &[&events(&[chunk(&format!("{FIND},{OWN},{OWN}"), STOP)])]);
    let values = accepted(&reply.out);
    let parts = &values[0]["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "s1");
    assert_eq!(parts[1].get("thoughtSignature"), None);
    assert_eq!(reply.exchanges[0].said, format!(r#"{{"role":"model","parts":[{FIND},{OWN},{OWN}]}}"#));

    // behind a call of the agent's own that has one, it goes
    let signed = OWN.replace("}}}", r#"}},"thoughtSignature":"s0"}"#);
    let reply = assemble(Framing::Sse, &[&events(&[chunk(&signed, ""), chunk(FIND, ""), chunk(OWN, STOP)])]);
    assert!(reply.out.contains("s0") && !reply.out.contains("s1"), "{}", reply.out);
}

#[test]
fn a_follow_up_without_thoughts_is_refused() {
    // See: BerriAI/litellm#21604. What the model said goes back whole: thoughts, signed parts, text of several chunks as one.
    let chunks = [
        chunk(r#"{"text":"hm ","thought":true}"#, ""),
        chunk(r#"{"text":"m","thought":true}"#, ""),
        chunk(r#"{"text":"A"}"#, ""),
        chunk(&format!(r#"{{"text":"B"}},{FIND}"#), ""),
        chunk(r#"{"text":"","thoughtSignature":"s2"}"#, STOP),
    ];
    let reply = assemble(Framing::Sse, &[&events(&chunks), &events(&[chunk(r#"{"text":"C"}"#, STOP)])]);
    let expected = format!(
        r#"{{"role":"model","parts":[{{"text":"hm m","thought":true}},{{"text":"AB"}},{FIND},{{"text":"","thoughtSignature":"s2"}}]}}"#
    );
    assert_eq!(reply.exchanges[0].said, expected);
    assert_eq!((reply.exchanges[0].text.as_str(), reply.exchanges[0].reasoning.as_str()), ("AB", "hm m"));
    assert_eq!(reply.seen.0, "ABC");
}

#[test]
fn a_nameless_function_response_is_refused() {
    // See: router-for-me/CLIProxyAPI#2104.
    let reply = assemble(Framing::Sse, &[&events(&[chunk(FIND, STOP)])]);
    let rewrite = Rewrite { appended: &reply.exchanges, ..Rewrite::default() };
    let body = r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#;
    let out = narrowed(body, &rewrite);
    assert!(out.contains(r#"{"functionResponse":{"name":"find_tools","response":{"output":"found: x"}}}"#), "{out}");
}

#[test]
fn integers_over_two_to_the_53_are_rounded() {
    // See: google/adk-python#3592, earendil-works/pi#8943.
    let first = events(&[chunk(FIND, STOP)]);
    let second = events(&[chunk(OWN, "").replace("]}", r#"],"responseId":"b"}"#), chunk(r#"{"text":"x"}"#, STOP)]);
    let reply = assemble(Framing::Sse, &[&first, &second]);
    assert!(reply.out.contains(r#"{"n":9007199254740993001,"d":1e16}"#), "{}", reply.out);
    let whole = assemble(Framing::Whole, &[&chunk(FIND, STOP), &chunk(OWN, STOP)]);
    assert!(whole.out.contains(r#"{"n":9007199254740993001,"d":1e16}"#), "{}", whole.out);
}

#[test]
fn a_search_without_any_other_word_leaves_nothing_of_its_leg() {
    for framing in [Framing::Sse, Framing::Array] {
        let (first, second) = (events(&[chunk(FIND, ""), chunk("", STOP)]), events(&[chunk(OWN, STOP)]));
        let (first, second) = match framing {
            Framing::Array => (array(&first.replace('\r', "")), array(&second.replace('\r', ""))),
            _ => (first, second),
        };
        let reply = assemble(framing, &[&first, &second]);
        assert_eq!(reply.out, second);
    }
}

#[test]
fn prose_of_a_leg_that_only_searched_breaks_a_json_answer() {
    let first = events(&[chunk(r#"{"text":"Let me look"}"#, ""), chunk(FIND, ""), chunk(r#"{"text":"."}"#, STOP)]);
    let second = events(&[chunk(r#"{"text":"{\"a\""}"#, ""), chunk(r#"{"text":":1}"}"#, STOP)]);
    let reply = assemble_cut(Framing::Sse, true, &[first.as_bytes(), second.as_bytes()], &[]);
    assert_eq!((reply.out.as_str(), reply.seen.0.as_str()), (second.as_str(), r#"{"a":1}"#));
    assert_eq!(reply.exchanges[0].text, "");

    let (first, second) = (chunk(&format!(r#"{{"text":"Let me"}},{FIND}"#), STOP), chunk(r#"{"text":"{}"}"#, STOP));
    let whole = assemble_cut(Framing::Whole, true, &[first.as_bytes(), second.as_bytes()], &[]);
    assert_eq!(whole.out, second);

    // beside calls of the agent's own the text is part of the reply
    let mixed = events(&[chunk(r#"{"text":"Hm"}"#, ""), chunk(&format!("{FIND},{OWN}"), STOP)]);
    let reply = assemble_cut(Framing::Sse, true, &[mixed.as_bytes()], &[]);
    assert_eq!((reply.seen.0.as_str(), reply.seen.1.len()), ("Hm", 1));
    assert!(reply.out.contains("Hm"));
}

#[test]
fn usage_of_a_dropped_chunk_is_billed_to_nobody() {
    let with_usage = |chunk: String, usage: &str| chunk.replacen('{', &format!(r#"{{"usageMetadata":{usage},"#), 1);
    let first = events(&[with_usage(chunk(FIND, STOP), r#"{"promptTokenCount":10,"thoughtsTokenCount":3}"#)]);
    let second = events(&[chunk(r#"{"text":"A"}"#, STOP)]);
    let reply = assemble(Framing::Sse, &[&first, &second]);
    assert_eq!(accepted(&reply.out)[0]["usageMetadata"]["thoughtsTokenCount"], 3);
    assert_eq!(reply.legs[0].usage, Usage { reported: true, prompt: 10, cached: 0, completion: 3 });
    assert!(!reply.legs[1].usage.reported);
}

#[test]
fn a_later_leg_that_fails_ends_in_the_formats_error() {
    let fail = |framing: Framing, body: &str| {
        let mut assembler = Assembler::new(Format::Gemini, framing, "find_tools", false);
        let mut out = Vec::new();
        assembler.feed(body.as_bytes(), &mut out);
        assembler.end_leg();
        assembler.next_leg();
        assembler.fail("the model's \"API\" cannot be reached", &mut out);
        assert!(assembler.keep_alive().is_empty());
        String::from_utf8(out).expect("UTF-8")
    };
    let error = r#"{"error":{"code":502,"message":"the model's \"API\" cannot be reached","status":"UNAVAILABLE"}}"#;
    let said = chunk(r#"{"text":"A"}"#, "");
    let body = events(&[said.clone(), chunk(FIND, STOP)]);
    assert_eq!(fail(Framing::Sse, &body), format!("data: {said}\r\n\r\ndata: {error}\r\n\r\n"));
    assert_eq!(fail(Framing::Array, &format!("[{said},{}]", chunk(FIND, STOP))), format!("[{said},{error}]"));
    assert_eq!(fail(Framing::Array, &format!("[{}]", chunk(FIND, STOP))), format!("[{error}]"));
    assert_eq!(fail(Framing::Whole, &chunk(FIND, STOP)), error);
}

#[test]
fn an_error_in_the_stream_is_relayed_and_reported() {
    let body = events(&[chunk(r#"{"text":"A"}"#, ""), r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#.to_owned()]);
    let reply = assemble(Framing::Sse, &[&body]);
    assert_eq!((reply.out.as_str(), reply.legs[0].failed, reply.legs[0].complete), (body.as_str(), true, false));
    let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3}}"#;
    let reply = assemble(Framing::Whole, &[blocked]);
    assert_eq!((reply.out.as_str(), reply.legs[0].complete), (blocked, true));
}

#[test]
fn a_whole_reply_that_ends_with_its_search_has_parts() {
    let reply = assemble(Framing::Whole, &[&chunk(FIND, r#","finishReason":"MAX_TOKENS""#)]);
    let value: serde_json::Value = serde_json::from_str(&reply.out).expect("JSON");
    assert!(value["candidates"][0]["content"]["parts"].as_array().is_some_and(|parts| parts.len() == 1));
    assert!(!reply.out.contains("find_tools"));
}
