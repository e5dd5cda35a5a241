//! Fragments of calls: whose they are, how they are numbered, what survives.

use crate::*;

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

// CASES 67: ids that repeat in every turn are never rewritten.
#[test]
fn ids_stay_as_they_came() {
    let reply = sse(&[&search_leg(), &call_leg().replace("send:1", "functions.send:0")]);
    assert_eq!(reply.legs[1].calls[0].id, "functions.send:0");
    assert_eq!(count(&reply.out, "\"id\":\"functions.send:0\""), 1);
}
