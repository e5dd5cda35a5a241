//! Gemini bodies in, Gemini bodies out: golden files, any cut of a stream, and one test per public failure that
//! applies (named by its symptom). NOT sockets.

use packlight::wire::reply::{Call, Framing, Leg, Usage};
use packlight::wire::request::{Answer, Exchange, FindTools, Restored, Rewrite, Slot};
use packlight::wire::{Assembler, Format};
use proptest::prelude::*;

const CAMEL: &str = include_str!("wire/gemini/camel.json");
const SNAKE: &str = include_str!("wire/gemini/snake.json");
const SEARCH_1: &str = include_str!("wire/gemini/search.leg1.sse");
const SEARCH_2: &str = include_str!("wire/gemini/search.leg2.sse");
const MIXED: &str = include_str!("wire/gemini/mixed.leg1.sse");
const PATH: &str = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";

/// One client's reply out of the legs' bodies.
struct Reply {
    out: String,
    legs: Vec<Leg>,
    /// Of each leg that another followed, and of the last if it searched.
    exchanges: Vec<Exchange>,
    seen: (String, Vec<Call>),
}

fn answers(leg: &Leg) -> Vec<Answer> {
    let answer = |id: &String| Answer { id: id.clone(), name: "find_tools".to_owned(), text: "found: x".to_owned() };
    leg.searches.iter().map(|search| answer(&search.id)).collect()
}

fn assemble_cut(framing: Framing, hold_text: bool, bodies: &[&[u8]], cuts: &[usize]) -> Reply {
    let mut assembler = Assembler::new(Format::Gemini, framing, "find_tools", hold_text);
    let (mut out, mut legs, mut exchanges) = (Vec::new(), Vec::new(), Vec::new());
    for (i, body) in bodies.iter().enumerate() {
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        ends.extend([0, body.len()]);
        ends.sort_unstable();
        for range in ends.windows(2) {
            assembler.feed(&body[range[0]..range[1]], &mut out);
        }
        let leg = assembler.end_leg();
        if !leg.searches.is_empty() {
            exchanges.push(assembler.exchange(answers(&leg), vec!["x".to_owned()]));
        }
        legs.push(leg);
        if i + 1 < bodies.len() {
            assembler.next_leg();
        }
    }
    assembler.close(&mut out);
    let (text, calls) = assembler.visible();
    let seen = (text.to_owned(), calls.to_vec());
    Reply { out: String::from_utf8_lossy(&out).into_owned(), legs, exchanges, seen }
}

fn assemble(framing: Framing, bodies: &[&str]) -> Reply {
    let bodies: Vec<_> = bodies.iter().map(|body| body.as_bytes()).collect();
    assemble_cut(framing, false, &bodies, &[])
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// The stream's chunks as one array, as Google writes it.
fn array(events: &str) -> String {
    let chunks: Vec<_> = events.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    format!("[{}\n]\n", chunks.join("\n,\r\n"))
}

/// Events of a stream that a Google SDK would accept: each has its blank line, a space behind `data:`, JSON inside,
/// and parts that are not empty.
fn accepted(stream: &str) -> Vec<serde_json::Value> {
    let end = if stream.contains("\r\n") { "\r\n\r\n" } else { "\n\n" };
    let events = stream.strip_suffix(end).expect("a last blank line").split(end);
    let values: Vec<serde_json::Value> =
        events.map(|event| serde_json::from_str(event.strip_prefix("data: ").expect("data")).expect("JSON")).collect();
    for value in &values {
        let parts = value["candidates"][0]["content"]["parts"].as_array();
        assert!(parts.is_some_and(|parts| !parts.is_empty()), "no parts: {value}");
    }
    values
}

fn finishes(values: &[serde_json::Value]) -> Vec<&str> {
    values.iter().filter_map(|value| value["candidates"][0]["finishReason"].as_str()).collect()
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("wire/gemini");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn narrowed(body: &str, rewrite: &Rewrite<'_>) -> String {
    let view = Format::Gemini.view(body.as_bytes(), PATH).expect("a request");
    Format::Gemini.rewrite(body, &view, rewrite)
}

fn find_tools() -> FindTools {
    FindTools { name: "find_tools".to_owned(), description: "Finds tools: delete_record, create_view".to_owned() }
}

// ---- golden ----

#[test]
fn golden_camel_request() {
    let leg = assemble(Framing::Sse, &[&crlf(SEARCH_1)]);
    let find_tools = find_tools();
    let block = [Slot::Roster(0), Slot::Roster(1), Slot::FindTools, Slot::Roster(3)];
    let rewrite = Rewrite {
        block: &block,
        find_tools: Some(&find_tools),
        appended: &leg.exchanges,
        max_tokens: Some(2028),
        ..Rewrite::default()
    };
    snapshot("camel.narrowed", &narrowed(CAMEL, &rewrite));
}

#[test]
fn golden_snake_request() {
    let said = r#"{"role":"model","parts":[{"text":"Let me look. "},{"functionCall":{"name":"find_tools","args":{"query":"list"}},"thoughtSignature":"c2lnMA=="}]}"#;
    let exchange = Exchange {
        said: said.to_owned(),
        answers: vec![Answer { id: String::new(), name: "find_tools".to_owned(), text: "list_records".to_owned() }],
        text: "Let me look. ".to_owned(),
        reasoning: String::new(),
        mixed: false,
        found: vec!["list_records".to_owned()],
    };
    let find_tools = find_tools();
    let restored = [Restored { run: 1..2, exchanges: vec![exchange] }];
    let block = [Slot::Roster(0), Slot::FindTools];
    let rewrite = Rewrite { block: &block, find_tools: Some(&find_tools), restored: &restored, ..Rewrite::default() };
    snapshot("snake.narrowed", &narrowed(SNAKE, &rewrite));
}

#[test]
fn golden_search_as_events_array_and_whole() {
    let events = assemble(Framing::Sse, &[&crlf(SEARCH_1), &crlf(SEARCH_2)]);
    assert_eq!(finishes(&accepted(&events.out)), ["STOP"]);
    assert_eq!(events.out.matches('\n').count(), events.out.matches("\r\n").count());
    snapshot("search.expanded", &events.out.replace("\r\n", "\n"));
    snapshot("search.exchange", &serde_json::to_string_pretty(&events.exchanges).expect("JSON"));

    let pieces = assemble(Framing::Array, &[&array(SEARCH_1), &array(SEARCH_2)]);
    assert_eq!(pieces.out, array(&events.out.replace("\r\n", "\n")));
    assert_eq!((&pieces.seen, &pieces.legs, &pieces.exchanges), (&events.seen, &events.legs, &events.exchanges));

    let whole = |leg: &str, parts: &str| {
        let last = leg.lines().rfind(|line| line.starts_with("data: ")).and_then(|line| line.get(6..)).expect("data");
        last.replace(r#"[{"text": ""}]"#, parts)
    };
    let first = whole(
        SEARCH_1,
        r#"[{"text": "Let me look."},{"functionCall": {"name": "find_tools","args": {"query": "q"},"id": "f1"},"thoughtSignature": "c2lnMQ=="}]"#,
    );
    let second = whole(SEARCH_2, r#"[{"functionCall": {"name": "merge_contacts","args": {"n": 1e16}}}]"#);
    let body = assemble(Framing::Whole, &[&first, &second]);
    snapshot("search.whole", &body.out);
}

#[test]
fn golden_mixed_reply() {
    let reply = assemble(Framing::Sse, &[&crlf(MIXED)]);
    assert_eq!(finishes(&accepted(&reply.out)), ["STOP"]);
    snapshot("mixed.expanded", &reply.out.replace("\r\n", "\n"));
    let exchange = &reply.exchanges[0];
    assert!(exchange.mixed);
    snapshot("mixed.said", &exchange.said);
    assert_eq!(reply.legs[0].searches.len(), 2);
    assert_eq!(reply.seen.1[0].arguments, r#"{"limit": 1e16}"#);
}

// ---- any cut ----

fn streams() -> Vec<(Framing, Vec<String>)> {
    let foreign = "data:{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"日本 \\\"]}\"}]}}]}\n\n: note\n\ndata: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":\"STOP\"}],\"usageMetadata\":{}}\n\n";
    let legs = |one: &str, two: &str| vec![one.to_owned(), two.to_owned()];
    vec![
        (Framing::Sse, legs(&crlf(SEARCH_1), &crlf(SEARCH_2))),
        (Framing::Sse, legs(SEARCH_1, SEARCH_2)),
        (Framing::Sse, legs(&SEARCH_1.replace('\n', "\r"), &SEARCH_2.replace('\n', "\r"))),
        (Framing::Array, legs(&array(SEARCH_1), &array(SEARCH_2))),
        (Framing::Sse, vec![crlf(MIXED)]),
        (Framing::Array, vec![array(MIXED)]),
        (Framing::Sse, vec![foreign.to_owned()]),
        (Framing::Array, vec![array(foreign)]),
    ]
}

proptest! {
    #[test]
    fn a_reply_does_not_depend_on_how_the_network_cut_it(cuts in proptest::collection::vec(any::<usize>(), 0..40), hold in any::<bool>()) {
        for (framing, bodies) in streams() {
            let bodies: Vec<_> = bodies.iter().map(|body| body.as_bytes()).collect();
            let (cut, whole) = (assemble_cut(framing, hold, &bodies, &cuts), assemble_cut(framing, hold, &bodies, &[]));
            prop_assert_eq!(&cut.out, &whole.out);
            prop_assert_eq!(&cut.legs, &whole.legs);
            prop_assert_eq!(&cut.exchanges, &whole.exchanges);
            prop_assert!(!cut.out.contains("find_tools"), "{}", cut.out);
        }
    }

    #[test]
    fn a_reply_that_never_searches_leaves_byte_for_byte(cuts in proptest::collection::vec(any::<usize>(), 0..40), hold in any::<bool>(), end in any::<usize>()) {
        for (framing, bodies) in streams() {
            let body = bodies[bodies.len() - 1].replace("find_tools", "own_tool");
            let mut end = end % (body.len() + 1);
            while !body.is_char_boundary(end) {
                end -= 1;
            }
            for body in [body.as_str(), &body[..end]] {
                let reply = assemble_cut(framing, hold, &[body.as_bytes()], &cuts);
                prop_assert_eq!(&reply.out, body);
                let whole = assemble_cut(Framing::Whole, hold, &[body.as_bytes()], &cuts);
                prop_assert_eq!(&whole.out, body);
            }
        }
    }

    #[test]
    fn a_leg_cut_anywhere_never_names_what_is_hidden(end in any::<usize>()) {
        for (framing, bodies) in streams() {
            let end = end % (bodies[0].len() + 1);
            let reply = assemble_cut(framing, false, &[&bodies[0].as_bytes()[..end]], &[]);
            prop_assert!(!reply.out.contains("find_t"), "{}", reply.out);
        }
    }

    #[test]
    fn a_request_that_is_bound_in_full_is_the_same_bytes(spaces in "[ \n\t]{0,4}", snake in any::<bool>()) {
        let body = format!("{spaces}{}{spaces}", if snake { SNAKE } else { CAMEL });
        let view = Format::Gemini.view(body.as_bytes(), PATH).expect("a request");
        let block: Vec<_> = (0..view.tools.len()).map(Slot::Roster).collect();
        prop_assert_eq!(Format::Gemini.rewrite(&body, &view, &Rewrite { block: &block, ..Rewrite::default() }), body);
    }
}

// ---- failures of others ----

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
    // See: CASES 35, 37. One finish, at the end; what the first leg said stays.
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
    // See: CASES 38. The outcome is decided by the calls seen, the reason is relayed as it is.
    let reply = assemble(Framing::Sse, &[&events(&[chunk(FIND, ""), chunk(r#"{"text":""}"#, STOP)])]);
    assert_eq!((reply.legs[0].searches.len(), reply.legs[0].finish.as_deref()), (1, Some("STOP")));
    assert!(reply.legs[0].complete && reply.legs[0].calls.is_empty());
}

#[test]
fn comments_are_taken_for_the_end_of_the_stream() {
    // See: CASES 1, 5. Verbatim in a leg that hides nothing; in a joined stream Google's SDKs would fail on them.
    let quiet = format!(": ping\r\n\r\n{}", events(&[chunk(r#"{"text":"A"}"#, STOP)]));
    assert_eq!(assemble(Framing::Sse, &[&quiet]).out, quiet);
    let reply = assemble(Framing::Sse, &[&events(&[chunk(FIND, STOP)]), &quiet]);
    assert!(!reply.out.contains("ping"));
    accepted(&reply.out);
}

#[test]
fn a_missing_space_behind_data_gives_an_empty_answer() {
    // See: CASES 9. Read without it, written with it.
    let first = format!("data:{}\n\n", chunk(&format!(r#"{{"text":"A"}},{FIND}"#), STOP));
    let second = format!("data:{}\n\n", chunk(r#"{"text":"B"}"#, STOP)).replace("]}", "],\"responseId\":\"r\"}");
    let reply = assemble(Framing::Sse, &[&first, &second]);
    assert_eq!(reply.seen.0, "AB");
    assert!(reply.out.starts_with("data: {"));
}

#[test]
fn a_stream_cut_in_a_call_gets_a_finish_it_never_had() {
    // See: CASES 12, 16. Nothing is closed, finished or repaired; what is half said about a search is not relayed.
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
    // See: CASES 14. No limit of a line's length.
    let big = chunk(&format!(r#"{{"functionCall":{{"name":"own","args":{{"t":"{}"}}}}}}"#, "x".repeat(400_000)), STOP);
    let body = events(&[big]);
    let cuts: Vec<_> = (0..body.len()).step_by(1000).collect();
    assert_eq!(assemble_cut(Framing::Sse, false, &[body.as_bytes()], &cuts).out, body);
}

#[test]
fn a_search_cut_by_max_tokens_becomes_an_error() {
    // See: CASES 17. The reason goes out as it came, without the call, and the chunk has parts.
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
    // See: CASES 56.
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
    // See: CASES 66. It moves to the first call that is left; the provider gets the true order back.
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
    // See: CASES 63. What the model said goes back whole: thoughts, signed parts, text of several chunks as one.
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
    // See: CASES 59.
    let reply = assemble(Framing::Sse, &[&events(&[chunk(FIND, STOP)])]);
    let rewrite = Rewrite { appended: &reply.exchanges, ..Rewrite::default() };
    let body = r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#;
    let out = narrowed(body, &rewrite);
    assert!(out.contains(r#"{"functionResponse":{"name":"find_tools","response":{"output":"found: x"}}}"#), "{out}");
}

#[test]
fn integers_over_two_to_the_53_are_rounded() {
    // See: CASES 76.
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
