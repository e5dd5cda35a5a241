//! Gemini bodies in, Gemini bodies out: golden files, any cut of a stream, and one test per public failure that
//! applies (`failures`, each named by its symptom). NOT sockets.

use packlight::wire::Format;
use packlight::wire::reply::Framing;
use packlight::wire::request::{Answer, Exchange, FindTools, Restored, Rewrite, Slot};
use proptest::prelude::*;

#[path = "support/assembled.rs"]
mod assembled;
#[path = "wire/gemini/failures.rs"]
mod failures;

use assembled::Reply;

const CAMEL: &str = include_str!("wire/gemini/camel.json");
const SNAKE: &str = include_str!("wire/gemini/snake.json");
const SEARCH_1: &str = include_str!("wire/gemini/search.leg1.sse");
const SEARCH_2: &str = include_str!("wire/gemini/search.leg2.sse");
const MIXED: &str = include_str!("wire/gemini/mixed.leg1.sse");
const PATH: &str = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";

fn assemble_cut(framing: Framing, hold_text: bool, bodies: &[&[u8]], cuts: &[usize]) -> Reply {
    assembled::assemble(Format::Gemini, framing, hold_text, bodies, cuts)
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
    fn bytes_that_are_no_reply_do_no_harm(changes in proptest::collection::vec(any::<(usize, u8)>(), 0..6), cuts in proptest::collection::vec(any::<usize>(), 0..9)) {
        for (framing, bodies) in streams() {
            let broken: Vec<Vec<u8>> = bodies.iter().map(|body| {
                let mut bytes = body.clone().into_bytes();
                for (at, byte) in &changes {
                    let at = at % bytes.len();
                    bytes[at] = *byte;
                }
                bytes
            }).collect();
            let bodies: Vec<_> = broken.iter().map(Vec::as_slice).collect();
            let (cut, whole) = (assemble_cut(framing, false, &bodies, &cuts), assemble_cut(framing, false, &bodies, &[]));
            prop_assert_eq!(&cut.out, &whole.out);
            prop_assert_eq!(&cut.exchanges, &whole.exchanges);
        }
    }

    #[test]
    fn a_body_with_changed_bytes_is_refused_or_written_as_json(changes in proptest::collection::vec(any::<(usize, u8)>(), 0..4), snake in any::<bool>()) {
        let mut bytes = if snake { SNAKE } else { CAMEL }.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let (Ok(body), Ok(view)) = (std::str::from_utf8(&bytes), Format::Gemini.view(&bytes, PATH)) {
            let find_tools = find_tools();
            let block = [Slot::FindTools, Slot::Roster(view.tools.len().saturating_sub(1))];
            let restored = [Restored { run: 1..2, exchanges: vec![assemble(Framing::Sse, &[MIXED]).exchanges.remove(0)] }];
            let rewrite = Rewrite { block: &block, find_tools: Some(&find_tools), restored: &restored, ..Rewrite::default() };
            let out = Format::Gemini.rewrite(body, &view, &rewrite);
            prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(&out).is_ok(), "{}", out);
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
