//! Any body that refers to a catalog, and any catalog: what is put in is one run of bytes, all others are the agent's, and
//! what is sent is read with the tools that it was chosen from.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use packlight_fuzz::run;
use packlight_fuzz::wire::Format;
use packlight_fuzz::wire::json::Object;
use packlight_fuzz::wire::lent::Lent;
use packlight_fuzz::wire::listing::Listing;
use packlight_fuzz::wire::request::{FindTools, Rewrite, Slot};
use packlight_fuzz::wire::view::ChatView;

const FORMATS: [(Format, &str); 3] = [
    (Format::OpenAi, "/v1/chat/completions"),
    (Format::Gemini, "/v1beta/models/g:generateContent"),
    (Format::Anthropic, "/v1/messages"),
];
const LIST: &str = r#"{"tools":[{"name":"get_weather","description":"\"d\"","inputSchema":{"type":"object"}},
    {"name":"find_more","input_schema":{}},{"name":"z","input_schema":{"type":"object","properties":{"n":{"type":"number"}}}}]}"#;
/// With tools of their own, without, and with nothing.
const BODIES: [&str; 3] = [
    r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"z"}}]}"#,
    r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":{"googleSearch":{}}}"#,
    "{}",
];

/// The input is the body, and the catalog of other bodies.
fn target(bytes: &[u8]) -> bool {
    static LISTING: OnceLock<Arc<Listing>> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let listing = LISTING.get_or_init(|| Arc::new(Listing::parse(LIST).expect("a list")));
    let mut far = false;
    for (format, path) in FORMATS {
        far |= lent(format, path, text, listing);
    }
    if let Ok(listing) = Listing::parse(text) {
        let listing = Arc::new(listing);
        for (format, path) in FORMATS {
            assert_eq!(listing.form(format).tools.len(), listing.len(), "{format:?} {text}");
            for body in BODIES {
                lent(format, path, body, &listing);
            }
        }
        far = true;
    }
    far
}

fn lent(format: Format, path: &str, body: &str, listing: &Arc<Listing>) -> bool {
    let own = format.view(body.as_bytes(), path);
    let lent = match Lent::new(format, body, Arc::clone(listing)) {
        Ok(lent) => lent,
        Err(error) => {
            let readable = own.is_ok_and(|view| !view.tools.is_empty());
            assert!(!readable, "{format:?} {error}: {body}");
            return false;
        }
    };
    assert_eq!(lent.filled(std::iter::empty()), body, "{format:?}");
    let all = lent.filled(listing.form(format).tools.iter().map(|tool| &*tool.text));
    keeps(body, &all);
    let Ok(view) = lent.view(path) else {
        assert!(own.is_err(), "{format:?} {body}");
        return false;
    };
    let own = own.unwrap_or_else(|error| panic!("{format:?} {error}: {body}"));
    assert_eq!(texts(body, &own), texts(lent.text(), &view), "{format:?}");

    // All of them, and the first alone.
    let range = view.layout.lent.clone().expect("what the catalog gave");
    for range in [range.clone(), range.start..range.end.min(range.start + 1)] {
        let given = || view.tools[range.clone()].iter().map(|tool| &*tool.text);
        let filled = lent.filled(given());
        keeps(body, &filled);
        let again = format.view(filled.as_bytes(), path).unwrap_or_else(|error| panic!("{error}: {filled}"));
        assert_eq!(names(&again), chosen(&view, &range), "{format:?} {filled}");
        assert_eq!(texts(body, &own), texts(&filled, &again), "{format:?}");
        if !range.is_empty() {
            assert_eq!(filled[again.layout.tools.clone()], lent.filled_tools(&view.layout.tools, given()), "{format:?}");
        }
    }

    let block: Vec<Slot> = (0..view.tools.len()).map(Slot::Roster).chain([Slot::FindTools]).collect();
    let find_tools = FindTools { name: "find_tools".into(), description: "\"more\"".into() };
    let rewrite = Rewrite { block: &block, find_tools: Some(&find_tools), ..Rewrite::default() };
    let written = format.rewrite(lent.text(), &view, &rewrite);
    let again = format.view(written.as_bytes(), path).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(texts(body, &own), texts(&written, &again), "{format:?}");
    for tool in &view.tools {
        assert!(written.contains(&*tool.text), "{format:?} {written}");
    }
    true
}

/// One run of bytes is new; where it takes the place of a value (`null`, one object), that value stands in it or was
/// nothing.
fn keeps(body: &str, filled: &str) {
    let common = body.bytes().zip(filled.bytes()).take_while(|(a, b)| a == b).count();
    let rest = body.bytes().rev().zip(filled.bytes().rev()).take_while(|(a, b)| a == b).count();
    let value = Object::parse(body).and_then(|top| top.find("tools")).map_or("", |value| value.get());
    let replaced = if value.starts_with('[') { 0 } else { value.len() };
    assert!(common + rest + replaced >= body.len(), "{body} -> {filled}");
    assert!(value == "null" || value.starts_with('[') || filled.contains(value), "{body} -> {filled}");
}

fn texts<'b>(body: &'b str, view: &ChatView<'_>) -> Vec<&'b str> {
    view.messages.iter().map(|message| &body[message.span.clone()]).collect()
}

fn names(view: &ChatView<'_>) -> Vec<String> {
    view.tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// The names of the agent's own, and of these of the catalog's.
fn chosen(view: &ChatView<'_>, range: &Range<usize>) -> Vec<String> {
    let lent = view.layout.lent.clone().unwrap_or_default();
    let named = names(view).into_iter().enumerate();
    named.filter(|(at, _)| !lent.contains(at) || range.contains(at)).map(|(_, name)| name).collect()
}

fn main() {
    run::run("lent", &[("openai", &[".json"]), ("gemini", &[".json"]), ("anthropic", &[".json"])], target);
}
