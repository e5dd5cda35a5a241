//! A request that refers to a list of tools: the agent's body with room for them, read as if they
//! stood in it. NOT which list, NOT when all of them are sent.
//!
//! The room is a stub, one element at the END of the value of `tools`: behind the agent's own tools,
//! where it has some, in an empty or null list, else in a member that is put behind the last one of
//! the document. Every other byte is the agent's. A list of thousands is never written into a body
//! only to be read again: its tools are borrowed by the view, and a writer puts those that are bound
//! in the place of the stub. So whatever is sent is written by [`Lent::filled`] or a format's writer,
//! never `text` itself.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::json::{self, Object, elements, is_null, quoted, span};
use super::listing::Listing;
use super::view::{ChatView, ToolKind, ToolView};
use super::{Format, WireError, member};

/// Why a body has no room for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LendError {
    #[error("it is not one JSON object in UTF-8")]
    Body,
    #[error("its `tools` stands twice")]
    Twice,
    #[error("its `tools` is no list")]
    Shape,
}

/// A request whose tools are a list's, behind its own.
#[derive(Debug)]
pub struct Lent {
    format: Format,
    listing: Arc<Listing>,
    /// The body with the stub.
    text: String,
    /// Where the stub stands, and what replaces it and what is around it when there is nothing to fill in.
    stub: Range<usize>,
    /// The room: what was put in, and what it was put in the place of.
    room: Range<usize>,
    before: String,
}

impl Lent {
    /// Makes room in a body. The agent's own tools win over those of one name in the list.
    pub fn new(format: Format, body: &str, listing: Arc<Listing>) -> Result<Self, LendError> {
        let Room { place, open, close } = room(format, body)?;
        let head = body.get(..place.start).ok_or(LendError::Body)?;
        let tail = body.get(place.end..).ok_or(LendError::Body)?;
        let stub = stub(format);
        let start = head.len() + open.len();
        let text = [head, &open, stub, close, tail].concat();
        let room = place.start..start + stub.len() + close.len();
        let before = body.get(place).unwrap_or_default().to_owned();
        Ok(Self { format, listing, text, stub: start..start + stub.len(), room, before })
    }

    /// The list.
    pub fn listing(&self) -> &Arc<Listing> {
        &self.listing
    }

    /// The body that [`Lent::view`] is of. Never sent.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the request with the list's tools behind its own, in front of those that stand in messages.
    ///
    /// Gemini refuses a history that calls an undeclared function. An agent that lists its tools itself answers for that;
    /// here the list may have changed under a conversation, so what it called and neither has is declared by name.
    pub fn view<'a>(&'a self, path: &'a str) -> Result<ChatView<'a>, WireError> {
        let mut view = self.format.view(self.text.as_bytes(), path)?;
        let form = self.listing.form(self.format);
        let own = view.tools.iter().position(|tool| tool.kind == ToolKind::Placed).unwrap_or(view.tools.len());
        let placed = view.tools.split_off(own);
        let stub = view.tools.pop();
        let named = view.tools.iter().chain(&placed).filter(|tool| !tool.name.is_empty());
        let named: HashSet<String> = named.map(|tool| tool.name.to_string()).collect();
        let group = stub.map_or(0, |stub| stub.group);
        let start = view.tools.len();
        let tools = form.tools.iter().filter(|tool| named.is_empty() || !named.contains(&*tool.name));
        view.tools.extend(tools.map(|tool| ToolView { group, ..tool.lent() }));
        if self.format == Format::Gemini {
            let gone = self.gone(&view, &named, group);
            view.tools.extend(gone);
        }
        view.layout.lent = Some(start..view.tools.len());
        view.tools.extend(placed);
        view.traits.client_search |= form.client_search;
        Ok(view)
    }

    /// The body with these tools of the list in the room for them: the agent's own bytes where there are none.
    pub fn filled<'t>(&self, tools: impl Iterator<Item = &'t str>) -> String {
        let (span, filling) = self.filling(tools);
        let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        [part(0..span.start), &filling, part(span.end..self.text.len())].concat()
    }

    /// The value of `tools` in that body. `tools_at`: where it stands in [`Lent::text`].
    pub fn filled_tools<'t>(&self, tools_at: &Range<usize>, tools: impl Iterator<Item = &'t str>) -> String {
        let (span, filling) = self.filling(tools);
        let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        [part(tools_at.start..span.start), &filling, part(span.end..tools_at.end)].concat()
    }

    /// How many entries of its own the body's `tools` has.
    pub fn own(&self) -> usize {
        let tools = Object::parse(&self.text).and_then(|top| top.find("tools")).and_then(elements);
        let tools = tools.unwrap_or_default().into_iter().map(|entry| match self.format {
            Format::OpenAi | Format::Anthropic => 1,
            Format::Gemini => Object::of(entry)
                .and_then(|tool| tool.either("functionDeclarations", "function_declarations").and_then(elements))
                .map_or(1, |declarations| declarations.len()),
        });
        tools.sum::<usize>().saturating_sub(1)
    }

    fn filling<'t>(&self, tools: impl Iterator<Item = &'t str>) -> (Range<usize>, String) {
        let tools: Vec<&str> = tools.collect();
        match (tools.is_empty(), self.format) {
            (true, _) => (self.room.clone(), self.before.clone()),
            (false, Format::OpenAi | Format::Anthropic) => (self.stub.clone(), tools.join(",")),
            (false, Format::Gemini) => {
                (self.stub.clone(), format!(r#"{{"functionDeclarations":[{}]}}"#, tools.join(",")))
            }
        }
    }

    /// Functions that the history calls and nobody declares.
    fn gone(&self, view: &ChatView<'_>, named: &HashSet<String>, group: usize) -> Vec<ToolView<'static>> {
        let mut seen = HashSet::new();
        let calls = view.messages.iter().flat_map(|message| &message.calls);
        let gone = calls.filter(|call| {
            let known = call.name.is_empty() || named.contains(&*call.name) || self.listing.contains(&call.name);
            !known && seen.insert(call.name.to_string())
        });
        gone.map(|call| {
            let name = call.name.to_string();
            let text = format!(r#"{{"name":{},"description":{}}}"#, quoted(&name), quoted(GONE));
            ToolView {
                kind: ToolKind::Pinned,
                name: name.into(),
                description: GONE.into(),
                parameters: None,
                text: text.into(),
                group,
            }
        })
        .collect()
    }
}

/// What a tool says of itself that is in no list any more.
const GONE: &str = "No longer available: do not call it.";

/// An entry of `tools` that a reader takes for one.
fn stub(format: Format) -> &'static str {
    match format {
        Format::OpenAi | Format::Anthropic => "{}",
        Format::Gemini => r#"{"functionDeclarations":[{"name":"_"}]}"#,
    }
}

/// Where further tools go, and what stands around them there.
struct Room {
    /// What it takes the place of; mostly nothing.
    place: Range<usize>,
    open: String,
    close: &'static str,
}

fn room(format: Format, body: &str) -> Result<Room, LendError> {
    let top = Object::parse(body).ok_or(LendError::Body)?;
    let mut found = top.0.iter().filter(|(key, _)| key == "tools").map(|(_, value)| *value);
    let (value, None) = (found.next(), found.next()) else { return Err(LendError::Twice) };
    let Some(value) = value else {
        let (at, comma) = member::end(body).ok_or(LendError::Body)?;
        let open = if comma { ",\"tools\":[" } else { "\"tools\":[" };
        return Ok(Room { place: at..at, open: open.to_owned(), close: "]" });
    };
    let whole = span(body, value.get());
    if is_null(value) {
        return Ok(Room { place: whole, open: "[".to_owned(), close: "]" });
    }
    if let Some(items) = elements(value) {
        let (at, open) = match items.last() {
            Some(last) => (json::span(body, last.get()).end, ","),
            None => (whole.start + 1, ""),
        };
        return Ok(Room { place: at..at, open: open.to_owned(), close: "" });
    }
    // Google's reader takes one object where a list is due.
    if format == Format::Gemini && value.get().starts_with('{') {
        return Ok(Room { place: whole, open: format!("[{},", value.get()), close: "]" });
    }
    Err(LendError::Shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::request::{FindTools, Rewrite, Slot};
    use proptest::prelude::*;

    const FORMATS: [Format; 3] = [Format::OpenAi, Format::Gemini, Format::Anthropic];
    const PATH: &str = "/models/m:generateContent";

    fn listing() -> Arc<Listing> {
        let tools = ["a", "b", "c"].map(|name| format!(r#"{{"name":"{name}","input_schema":{{"type":"object"}}}}"#));
        Arc::new(Listing::parse(&format!("[{}]", tools.join(","))).expect("a list"))
    }

    fn messages(format: Format) -> &'static str {
        match format {
            Format::OpenAi | Format::Anthropic => r#""messages":[{"role":"user","content":"hi"}]"#,
            Format::Gemini => r#""contents":[{"parts":[{"text":"hi"}]}]"#,
        }
    }

    fn own(format: Format, name: &str) -> String {
        match format {
            Format::OpenAi => format!(r#"{{"type":"function","function":{{"name":"{name}","x":1e16}}}}"#),
            Format::Gemini => format!(r#"{{"functionDeclarations":[{{"name":"{name}","x":1e16}}]}}"#),
            Format::Anthropic => format!(r#"{{"name":"{name}","input_schema":{{"x":1e16}}}}"#),
        }
    }

    fn lent(format: Format, body: &str) -> Lent {
        Lent::new(format, body, listing()).expect("room")
    }

    fn names(view: &ChatView<'_>) -> Vec<String> {
        view.tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn the_lists_tools_stand_behind_the_agents_own_which_win() {
        for format in FORMATS {
            let body = format!(r#"{{{}, "tools" : [ {} ] , "z":1.0}}"#, messages(format), own(format, "b"));
            let lent = lent(format, &body);
            let view = lent.view(PATH).expect("a request");
            assert_eq!(names(&view), ["b", "a", "c"], "{format:?}");
            assert_eq!((view.layout.lent.clone(), lent.own()), (Some(1..3), 1));
            assert_eq!(view.messages.len(), 1);
            let tools = view.tools.iter().skip(1).map(|tool| &*tool.text);
            let whole = lent.filled(tools);
            let again = format.view(whole.as_bytes(), PATH).expect("a request");
            assert_eq!(names(&again), ["b", "a", "c"], "{whole}");
            assert!(whole.starts_with(body.strip_suffix(" ] , \"z\":1.0}").expect("the end")), "{whole}");
            assert!(whole.ends_with(" ] , \"z\":1.0}"), "{whole}");
            assert_eq!(lent.filled(std::iter::empty()), body);
        }
    }

    #[test]
    fn a_block_of_all_of_them_or_one_is_written_without_the_stub() {
        for format in FORMATS {
            for tools in ["", r#","tools":[]"#, r#","tools":null"#] {
                let body = format!("{{{}{tools}}}", messages(format));
                let lent = lent(format, &body);
                let view = lent.view(PATH).expect("a request");
                let find_tools = FindTools { name: "find_tools".into(), description: "x".into() };
                for (block, find_tools, expected) in [
                    (&[Slot::Roster(0), Slot::Roster(1), Slot::Roster(2)][..], None, &["a", "b", "c"][..]),
                    (&[Slot::Roster(1)], None, &["b"]),
                    (
                        &[Slot::Roster(2), Slot::FindTools, Slot::Roster(0)],
                        Some(&find_tools),
                        &["c", "find_tools", "a"],
                    ),
                    (&[Slot::FindTools], Some(&find_tools), &["find_tools"]),
                ] {
                    let rewrite = Rewrite { block, find_tools, ..Rewrite::default() };
                    let out = format.rewrite(lent.text(), &view, &rewrite);
                    assert_eq!(names(&format.view(out.as_bytes(), PATH).expect("a request")), expected, "{out}");
                }
            }
        }
    }

    #[test]
    fn one_object_in_place_of_geminis_list_becomes_the_first_of_it() {
        let body = r#"{"tools" : {"googleSearch":{}} ,"contents":[]}"#;
        let lent = lent(Format::Gemini, body);
        let out = lent.filled([r#"{"name":"a"}"#].into_iter());
        assert_eq!(out, r#"{"tools" : [{"googleSearch":{}},{"functionDeclarations":[{"name":"a"}]}] ,"contents":[]}"#);
        assert_eq!((lent.filled(std::iter::empty()), lent.own()), (body.to_owned(), 1));
    }

    #[test]
    fn what_gemini_has_called_and_nobody_has_any_more_is_declared_by_name() {
        let body = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},
            {"role":"model","parts":[{"functionCall":{"name":"gone","args":{}}},{"functionCall":{"name":"a"}},{"functionCall":{"name":"gone"}}]}]}"#;
        let lent = lent(Format::Gemini, body);
        let view = lent.view(PATH).expect("a request");
        assert_eq!(names(&view), ["a", "b", "c", "gone"]);
        assert_eq!(view.tools.last().map(|tool| tool.kind), Some(ToolKind::Pinned));
        let out = Format::Gemini.rewrite(
            lent.text(),
            &view,
            &Rewrite { block: &[Slot::Roster(0), Slot::Roster(3)], ..Rewrite::default() },
        );
        assert_eq!(names(&Format::Gemini.view(out.as_bytes(), PATH).expect("a request")), ["a", "gone"]);
    }

    #[test]
    fn a_body_without_room_is_named() {
        let refused = |format, body| Lent::new(format, body, listing()).map(|_| ()).expect_err(body);
        for format in FORMATS {
            for body in ["", "[]", "{} x", "\u{feff}{}", "{"] {
                assert_eq!(refused(format, body), LendError::Body, "{body:?}");
            }
            assert_eq!(refused(format, r#"{"tools":[],"to\u006fls":[]}"#), LendError::Twice);
            assert_eq!(refused(format, r#"{"tools":"x"}"#), LendError::Shape);
        }
        assert_eq!(refused(Format::OpenAi, r#"{"tools":{}}"#), LendError::Shape);
    }

    proptest! {
        /// Whatever the document: what is put in is one run of bytes, all others are the agent's, in their order.
        #[test]
        fn every_byte_but_the_tools_is_the_agents(
            which in 0usize..3,
            before in proptest::collection::vec("[a-m]{1,5}", 0..4),
            after in proptest::collection::vec("[a-m]{1,5}", 0..4),
            own_tools in 0usize..3,
            given in 0usize..3,
            space in "[ \n\t]{0,3}",
        ) {
            let format = FORMATS[which];
            let member = |(at, key): (usize, &String)| format!(r#""{key}{at}x"{space}:{space}{{"tools":["\"]}}",1e16]}}"#);
            let mut members: Vec<String> = before.iter().enumerate().map(member).collect();
            let list: Vec<String> = (0..own_tools).map(|n| own(format, &format!("own{n}"))).collect();
            match given {
                0 => {}
                1 => members.push(format!(r#""tools"{space}:{space}null"#)),
                _ => members.push(format!(r#""tools"{space}:{space}[{space}{}{space}]"#, list.join(&format!("{space},")))),
            }
            members.extend(after.iter().enumerate().map(|(at, key)| member((at + 10, key))));
            let body = format!("{space}{{{space}{}{space}}}{space}", members.join(&format!(",{space}")));
            let lent = Lent::new(format, &body, listing()).expect("room");
            let form = lent.listing().form(format);
            let out = lent.filled(form.tools.iter().map(|tool| &*tool.text));
            let body = if given == 1 { body.replacen("null", "", 1) } else { body };
            let common = body.bytes().zip(out.bytes()).take_while(|(a, b)| a == b).count();
            let rest = body.bytes().rev().zip(out.bytes().rev()).take_while(|(a, b)| a == b).count();
            prop_assert!(common + rest >= body.len(), "{body} -> {out}");
            let top = Object::parse(&out).expect("a document");
            let tools = top.0.iter().filter(|(key, _)| key == "tools").count();
            prop_assert_eq!(tools, 1);
            let expected = if given == 2 { own_tools } else { 0 } + if format == Format::Gemini { 1 } else { 3 };
            prop_assert_eq!(top.find("tools").and_then(elements).map(|tools| tools.len()), Some(expected));
            prop_assert_eq!(lent.own(), if given == 2 { own_tools } else { 0 });
        }
    }
}
