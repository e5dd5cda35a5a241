//! A value of `tools` that was read before, known again by its bytes: an agent sends the same one with every call, and it
//! is most of the body. NOT where it is kept, NOT for how long.
//!
//! What is kept are places, so what is read in another body is borrowed from that body. The comparison is of every byte:
//! a JSON value ends where it ends whatever follows, so bytes that begin like a whole value are that value.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::json::span;
use super::view::{ChatView, Group, Layout, ToolKind, ToolView};

/// Is what this text begins with known? It begins with a value of `tools`.
pub type Recall<'m> = dyn Fn(&str) -> Option<Arc<Known>> + 'm;

/// A value of `tools`, and what a reader of its format made of it.
#[derive(Debug)]
pub struct Known {
    text: Box<str>,
    tools: Vec<Tool>,
    /// Of Gemini's, as [`Layout::groups`].
    groups: Vec<Group>,
}

/// A tool; its places are those in the text.
#[derive(Debug)]
struct Tool {
    kind: ToolKind,
    name: Part,
    description: Part,
    parameters: Option<Part>,
    text: Part,
    group: usize,
}

#[derive(Debug)]
enum Part {
    At(Range<usize>),
    /// It is written with escapes.
    Own(Box<str>),
}

impl Known {
    /// What `view`, which is of `body`, says of its tools. `None`: it has none, or they are not all that it says of them.
    pub fn of(body: &str, view: &ChatView<'_>) -> Option<Self> {
        let place = &view.layout.tools;
        if view.traits.client_search || view.layout.lent.is_some() || place.is_empty() {
            return None;
        }
        let text = body.get(place.clone())?;
        let into = |at: usize| at.checked_sub(place.start);
        let part = |part: &Cow<'_, str>| match (part, span(text, part)) {
            (_, at) if !at.is_empty() => Part::At(at),
            (written, _) => Part::Own((&**written).into()),
        };
        let tool = |tool: &ToolView<'_>| Tool {
            kind: tool.kind,
            name: part(&tool.name),
            description: part(&tool.description),
            parameters: tool.parameters.as_ref().map(part),
            text: part(&tool.text),
            group: tool.group,
        };
        Some(Self {
            text: text.into(),
            // Those that stand in messages are not of this value.
            tools: view.tools.iter().filter(|tool| tool.kind != ToolKind::Placed).map(tool).collect(),
            groups: view.layout.groups.iter().map(|group| group_moved(group, into)).collect::<Option<_>>()?,
        })
    }

    /// Does `text` begin with it?
    pub fn begins(&self, text: &str) -> bool {
        text.as_bytes().starts_with(self.text.as_bytes())
    }

    /// Bytes of the value.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Never: such a value has no tool.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes in memory, roughly.
    pub fn weight(&self) -> usize {
        let own = |part: &Part| if let Part::Own(text) = part { text.len() } else { 0 };
        let tools = self.tools.iter().map(|tool| 200 + own(&tool.name) + own(&tool.description));
        self.text.len() + tools.sum::<usize>() + 60 * self.groups.len()
    }

    /// Its tools as they stand at `at` in `body`, and the places of its parts.
    pub(super) fn read<'a>(&self, body: &'a str, at: usize, layout: &mut Layout) -> Vec<ToolView<'a>> {
        layout.tools = at..at + self.len();
        let out = |place: usize| place.checked_add(at);
        layout.groups = self.groups.iter().filter_map(|group| group_moved(group, out)).collect();
        let part = |part: &Part| match part {
            Part::At(range) => Cow::Borrowed(moved(range, out).and_then(|range| body.get(range)).unwrap_or_default()),
            Part::Own(text) => Cow::Owned(text.to_string()),
        };
        let tool = |tool: &Tool| ToolView {
            kind: tool.kind,
            name: part(&tool.name),
            description: part(&tool.description),
            parameters: tool.parameters.as_ref().map(part),
            text: part(&tool.text),
            group: tool.group,
        };
        self.tools.iter().map(tool).collect()
    }
}

/// `None`: the range has no such place. An empty one is none wherever it stands.
fn moved(range: &Range<usize>, by: impl Fn(usize) -> Option<usize>) -> Option<Range<usize>> {
    if range.is_empty() { Some(0..0) } else { Some(by(range.start)?..by(range.end)?) }
}

fn group_moved(group: &Group, by: impl Fn(usize) -> Option<usize>) -> Option<Group> {
    let (span, declarations) = (moved(&group.span, &by)?, moved(&group.declarations, &by)?);
    Some(Group { span, declarations, mixed: group.mixed })
}

/// Nothing is known.
pub fn nothing(_: &str) -> Option<Arc<Known>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Format, WireError};
    use proptest::prelude::*;

    const PATH: &str = "/models/m:generateContent";

    /// A value of `tools` of every kind of entry, and the rest of a request around it.
    fn request(format: Format, before: &str, after: &str) -> String {
        let tools = match format {
            Format::OpenAi => {
                r#"[ {"type":"function","function":{"name":"a","description":"one\n\"two\"","parameters":{"n":1.0}}},
                {"type":"builtin_function","function":{"name":"$w"}},{"function":{"name":"\u0062"}},3 ]"#
            }
            Format::Gemini => {
                r#"[{"functionDeclarations":[{"name":"a","description":"\u00e9"},{"name":"b","parameters":{"x":1e16}}]},
                {"googleSearch":{}},{"function_declarations":[{"name":"c"}],"codeExecution":{}}]"#
            }
            Format::Anthropic => {
                r#"[{"name":"a","input_schema":{"x":[1]}},{"name":"b","input_schema":{},"cache_control":{"type":"ephemeral"}},
                {"type":"web_search_20250305","name":"web_search"}]"#
            }
        };
        let messages = match format {
            Format::OpenAi | Format::Anthropic => r#""messages":[{"role":"user","content":"hi"}]"#,
            Format::Gemini => r#""contents":[{"role":"user","parts":[{"text":"hi"}]}]"#,
        };
        format!(r#"{{{before}"tools" : {tools} ,{after} {messages}}}"#)
    }

    fn known(format: Format, body: &str) -> Arc<Known> {
        let view = format.view(body.as_bytes(), PATH).expect("a request");
        Arc::new(Known::of(body, &view).expect("tools"))
    }

    proptest! {
        /// Wherever the value stands, it says what it says when it is read.
        #[test]
        fn what_is_known_is_as_if_read(
            which in 0usize..3,
            before in proptest::collection::vec("[a-m]{1,5}", 0..3),
            after in proptest::collection::vec("[a-m]{1,5}", 0..3),
        ) {
            let format = [Format::OpenAi, Format::Gemini, Format::Anthropic][which];
            let member = |(at, key): (usize, &String)| format!(r#""{key}{at}x" :[{{"tools":["\"]}}",1e16]}}],"#);
            let before: String = before.iter().enumerate().map(member).collect();
            let after: String = after.iter().enumerate().map(|(at, key)| member((at + 10, key))).collect();
            let body = request(format, &before, &after);
            let known = known(format, &request(format, "", ""));
            let found = std::cell::Cell::new(0);
            let recall = |text: &str| known.begins(text).then(|| { found.set(found.get() + 1); known.clone() });
            let read = format.view(body.as_bytes(), PATH).expect("a request");
            let recalled = format.view_recalling(&body, PATH, &recall).expect("a request");
            prop_assert_eq!(format!("{read:?}"), format!("{recalled:?}"));
            prop_assert_eq!(found.get(), 1);
        }
    }

    #[test]
    fn a_known_value_that_stands_twice_or_beside_another_is_still_an_error() {
        for format in [Format::OpenAi, Format::Gemini, Format::Anthropic] {
            let body = request(format, "", "");
            let known = known(format, &body);
            let recall = |text: &str| known.begins(text).then(|| known.clone());
            let tools = &*known.text;
            for twice in [format!(r#""tools":{tools},"#), r#""tools":[],"#.to_owned()] {
                for body in [request(format, &twice, ""), request(format, "", &twice)] {
                    let view = format.view_recalling(&body, PATH, &recall).map(|_| ());
                    assert_eq!(view, Err(WireError::Duplicate("tools")), "{body}");
                }
            }
            let cut = body.get(..body.len() - 1).expect("its end");
            assert_eq!(format.view_recalling(cut, PATH, &recall).map(|_| ()), Err(WireError::Json));
        }
    }

    #[test]
    fn a_client_that_searches_itself_and_a_request_without_tools_are_not_kept() {
        for body in [
            r#"{"messages":[],"tools":[]}"#,
            r#"{"messages":[]}"#,
            r#"{"messages":[],"tools":[{"function":{"name":"a"},"defer_loading":true}]}"#,
        ] {
            let view = Format::OpenAi.view(body.as_bytes(), "").expect("a request");
            assert!(Known::of(body, &view).is_none(), "{body}");
        }
    }
}
