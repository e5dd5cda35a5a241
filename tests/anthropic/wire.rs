//! Bodies in, bodies out. The files of `tests/wire/anthropic` are the cases: `x.json` is
//! a request, `x.sse` and `x.whole` the legs of a reply, cut at lines `=== leg`. A new
//! case is a new file; `INSTA_UPDATE=always` writes its snapshot. NOT sockets.

use std::path::{Path, PathBuf};

use packlight::wire::reply::Framing;
use packlight::wire::request::{Answer, Exchange, FindTools, Restored, Rewrite, Slot};
use packlight::wire::view::{Role, ToolKind};
use packlight::wire::{Assembler, Format};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::assembled::{self, Reply};

const SAID: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"No such tool yet.","signature":"EqQB/one=="},{"type":"text","text":"Let me look. "},{"type":"tool_use","id":"toolu_01","name":"find_tools","input":{}}]}"#;

fn cases(extension: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/anthropic");
    let files = std::fs::read_dir(&folder).expect("the folder of cases");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| own == extension));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).expect("text"))).collect()
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../wire/anthropic");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn assemble(framing: Framing, hold_text: bool, bodies: &[&[u8]], cuts: &[usize]) -> Reply {
    assembled::assemble(Format::Anthropic, framing, hold_text, bodies, cuts)
}

fn legs(text: &str) -> Vec<&[u8]> {
    text.split("=== leg\n").map(str::as_bytes).collect()
}

/// Events of a stream that the SDKs take: each with its `event:` line and JSON, one start, indices from 0 without a gap.
fn accepted(stream: &str) -> Vec<Value> {
    let mut events = Vec::new();
    for event in stream.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':')) {
        let (name, data) = event.split_once("\ndata: ").expect("two lines");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(name, format!("event: {}", data["type"].as_str().expect("a type")));
        events.push(data);
    }
    let of_kind = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    assert_eq!(of_kind("message_start").len(), 1);
    for (at, event) in of_kind("content_block_start").iter().enumerate() {
        assert_eq!(event["index"], at, "{stream}");
    }
    let mut open = None;
    for event in events.iter().filter(|event| event["index"].is_u64()) {
        match event["type"].as_str() {
            Some("content_block_start") => open = Some(event["index"].clone()),
            _ => assert_eq!(Some(&event["index"]), open.as_ref(), "{stream}"),
        }
    }
    events
}

fn report(reply: &Reply) -> String {
    let legs: Vec<String> = reply.legs.iter().map(|leg| format!("{leg:#?}")).collect();
    let said: Vec<&str> = reply.exchanges.iter().map(|exchange| exchange.said.as_str()).collect();
    let (text, calls) = &reply.seen;
    format!(
        "{}\n--- visible: {text:?} {calls:?}\n--- said\n{}\n--- legs\n{}",
        reply.out,
        said.join("\n"),
        legs.join("\n")
    )
}

#[test]
fn golden_replies() {
    for (name, text) in cases("sse") {
        let reply = assemble(Framing::Sse, false, &legs(&text), &[]);
        accepted(&reply.out);
        assert!(!reply.out.contains("find_tools"), "{}", reply.out);
        snapshot(&name, &report(&reply));
    }
    for (name, text) in cases("whole") {
        let reply = assemble(Framing::Whole, false, &legs(&text), &[]);
        assert!(!reply.out.contains("find_tools"), "{}", reply.out);
        snapshot(&name, &report(&reply));
    }
}

/// Every second function, what is pinned or fixed, and `find_tools`; the first reply is given back a search, and another
/// one stands at the end.
#[test]
fn golden_requests() {
    for (name, body) in cases("json") {
        let view = Format::Anthropic.view(body.as_bytes(), "/v1/messages").expect("view");
        let tools = view.tools.iter().enumerate();
        let bound = tools.filter(|(at, tool)| tool.kind != ToolKind::Function || at % 2 == 0);
        let block: Vec<Slot> = bound.map(|(at, _)| Slot::Roster(at)).chain([Slot::FindTools]).collect();
        let find_tools = FindTools { name: "find_tools".into(), description: "Finds \"tools\": hidden".into() };
        let exchange = |id: &str, text: &str| Exchange {
            said: SAID.replace("toolu_01", id),
            answers: vec![Answer { id: id.into(), name: "find_tools".into(), text: "hidden: \"all\"".into() }],
            text: text.into(),
            reasoning: String::new(),
            mixed: false,
            found: Vec::new(),
        };
        let replied = view.messages.iter().position(|message| message.role == Role::Assistant);
        let restored: Vec<Restored> = replied
            .into_iter()
            .map(|at| Restored { run: at..at + 1, exchanges: vec![exchange("toolu_01", "Let me look. ")] })
            .collect();
        let appended = [exchange("toolu_03", "")];
        let rewrite = Rewrite {
            block: &block,
            find_tools: Some(&find_tools),
            restored: &restored,
            appended: &appended,
            max_tokens: Some(1024),
            ..Rewrite::default()
        };
        let written = Format::Anthropic.rewrite(&body, &view, &rewrite);
        Format::Anthropic.view(written.as_bytes(), "/v1/messages").expect("a request again");
        snapshot(&name, &written);
    }
}

#[test]
fn text_of_a_searching_leg_can_be_held() {
    for (name, text) in cases("sse") {
        let reply = assemble(Framing::Sse, true, &legs(&text), &[]);
        accepted(&reply.out);
        let shown = reply.out.contains("Let me look");
        assert!(!shown, "{name}: {}", reply.out);
        assert_eq!(reply.out.contains("It rains."), name.starts_with("mixed"), "{name}: real calls end the wait");
    }
    let (_, text) = cases("whole").remove(0);
    let reply = assemble(Framing::Whole, true, &legs(&text), &[]);
    assert!(!reply.out.contains("Let me look") && reply.out.contains("No calendar."), "{}", reply.out);
    assert_eq!(reply.seen.0, "");
}

#[test]
fn signs_of_life_and_failures_are_the_format_s_own_events() {
    let mut assembler = Assembler::new(Format::Anthropic, Framing::Sse, "find_tools", false);
    assert_eq!(accepted_event(assembler.keep_alive()), ("event: ping".to_owned(), "ping".into()));
    let (_, text) = cases("sse").into_iter().find(|(name, _)| name.starts_with("kimi")).expect("a search");
    let mut out = Vec::new();
    assembler.feed(legs(&text)[0], &mut out);
    assembler.end_leg();
    assembler.next_leg();
    out.clear();
    assembler.fail("the provider \"failed\"", &mut out);
    assert_eq!(accepted_event(&out), ("event: error".to_owned(), "error".into()));
    let mut assembler = Assembler::new(Format::Anthropic, Framing::Whole, "find_tools", false);
    assert_eq!(assembler.keep_alive(), b"", "one document holds no sign of life");
    out.clear();
    assembler.fail("it", &mut out);
    assert_eq!(serde_json::from_slice::<Value>(&out).expect("JSON")["error"]["type"], "api_error");
}

/// The event's first line, and the type in its data.
fn accepted_event(event: &[u8]) -> (String, Value) {
    let text = std::str::from_utf8(event).expect("UTF-8").strip_suffix("\n\n").expect("a blank line");
    let (name, data) = text.split_once("\ndata: ").expect("two lines");
    (name.to_owned(), serde_json::from_str::<Value>(data).expect("JSON")["type"].clone())
}

proptest! {
    #[test]
    fn a_reply_does_not_depend_on_how_the_network_cut_it(cuts in proptest::collection::vec(any::<usize>(), 0..40), hold in any::<bool>(), end in 0usize..3) {
        for (framing, extension) in [(Framing::Sse, "sse"), (Framing::Whole, "whole")] {
            for (_, text) in cases(extension) {
                let text = text.replace('\n', ["\n", "\r\n", "\r"][end]);
                let separator = format!("=== leg{}", ["\n", "\r\n", "\r"][end]);
                let bodies: Vec<&[u8]> = text.split(&separator).map(str::as_bytes).collect();
                let (cut, whole) = (assemble(framing, hold, &bodies, &cuts), assemble(framing, hold, &bodies, &[]));
                prop_assert_eq!(&cut, &whole);
                prop_assert!(!cut.out.contains("find_tools"), "{}", cut.out);
            }
        }
    }

    #[test]
    fn a_reply_that_never_searches_leaves_byte_for_byte(cuts in proptest::collection::vec(any::<usize>(), 0..40), hold in any::<bool>(), end in any::<usize>()) {
        for (framing, extension) in [(Framing::Sse, "sse"), (Framing::Whole, "whole")] {
            for (_, text) in cases(extension) {
                let text = text.replace("find_tools", "own_tool");
                let body = legs(&text)[0];
                let body = &body[..end % (body.len() + 1)];
                let reply = assemble(framing, hold, &[body], &cuts);
                prop_assert_eq!(&*reply.out, &*String::from_utf8_lossy(body));
                prop_assert!(reply.exchanges.is_empty());
            }
        }
    }

    #[test]
    fn a_stream_that_breaks_off_shows_nothing_of_the_search(end in any::<usize>(), hold in any::<bool>()) {
        for (_, text) in cases("sse") {
            let legs = legs(&text);
            let last = legs[legs.len() - 1];
            let cut = &last[..end % (last.len() + 1)];
            let bodies: Vec<&[u8]> = legs[..legs.len() - 1].iter().copied().chain([cut]).collect();
            let reply = assemble(Framing::Sse, hold, &bodies, &[]);
            prop_assert!(!reply.out.contains("find_tool"), "{}", reply.out);
        }
    }
}
