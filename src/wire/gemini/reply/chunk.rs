//! One `GenerateContentResponse`, whole or a piece of a stream: what it says, and the same with other parts.
//! NOT framing, NOT what is hidden.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::wire::dispatch::Native;
use crate::wire::json::{Object, elements, is_null, quoted, span, string};
use crate::wire::member;
use crate::wire::splice::Edits;

/// What it says. Of several candidates the first: requests that ask for more are not narrowed.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    text: &'a str,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) finish: Option<Cow<'a, str>>,
    pub(super) usage: Option<&'a str>,
    pub(super) response_id: Option<&'a str>,
    pub(super) model_version: Option<&'a str>,
    /// It is an error.
    pub(super) failed: bool,
    /// The prompt was refused: no candidate will come.
    pub(super) blocked: bool,
    candidate: Option<&'a str>,
    content: Option<&'a str>,
    list: Option<&'a str>,
    finish_value: Option<&'a str>,
    finish_message: Option<&'a str>,
}

#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) raw: &'a str,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) thought: bool,
    /// The JSON of its signature.
    pub(super) signature: Option<&'a str>,
    /// It holds a text and nothing else.
    pub(super) plain: bool,
    pub(super) call: Option<FunctionCall<'a>>,
}

#[derive(Debug)]
pub(super) struct FunctionCall<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    name_raw: &'a str,
    /// Raw: Google writes integers as `1e16`, and a client's own must not change.
    pub(super) args: &'a str,
}

/// What shall be different.
#[derive(Debug, Default)]
pub(super) struct Change<'c> {
    pub(super) parts: Option<&'c [String]>,
    pub(super) without_finish: bool,
    /// A finish message that names this is emptied.
    pub(super) hidden: &'c str,
    /// JSON of the values.
    pub(super) response_id: Option<&'c str>,
    pub(super) model_version: Option<&'c str>,
    pub(super) usage: Option<String>,
}

impl<'a> Chunk<'a> {
    /// `None`: not an object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let object = Object::parse(text)?;
        let raw = |camel, snake| present(&object, camel, snake).map(RawValue::get);
        let candidates = present(&object, "candidates", "candidates").and_then(elements).unwrap_or_default();
        let candidate = candidates.first().copied();
        let members = candidate.and_then(Object::of).unwrap_or(Object(Vec::new()));
        let content = present(&members, "content", "content");
        let list = content.and_then(Object::of).and_then(|content| present(&content, "parts", "parts"));
        let finish = present(&members, "finishReason", "finish_reason");
        let feedback = present(&object, "promptFeedback", "prompt_feedback").and_then(Object::of);
        Some(Self {
            text,
            parts: list.and_then(elements).unwrap_or_default().into_iter().filter_map(Part::of).collect(),
            finish: finish.and_then(string).filter(|reason| reason != "FINISH_REASON_UNSPECIFIED"),
            usage: raw("usageMetadata", "usage_metadata"),
            response_id: raw("responseId", "response_id"),
            model_version: raw("modelVersion", "model_version"),
            failed: object.find("error").is_some_and(|error| !is_null(error)),
            blocked: feedback.is_some_and(|feedback| present(&feedback, "blockReason", "block_reason").is_some()),
            candidate: candidate.map(RawValue::get),
            content: content.map(RawValue::get),
            list: list.map(RawValue::get),
            finish_value: finish.map(RawValue::get),
            finish_message: present(&members, "finishMessage", "finish_message").map(RawValue::get),
        })
    }

    /// Its text with the change; `None` when that is no other text.
    pub(super) fn changed(&self, change: &Change<'_>) -> Option<String> {
        let mut edits = Edits::new();
        let replace = |edits: &mut Edits, old: Option<&str>, new: Option<&str>| {
            if let (Some(old), Some(new)) = (old, new)
                && old != new
            {
                edits.replace(span(self.text, old), new);
            }
        };
        replace(&mut edits, self.response_id, change.response_id);
        replace(&mut edits, self.model_version, change.model_version);
        match (self.usage, &change.usage) {
            (None, Some(usage)) => put(&mut edits, self.text, self.text, &format!(r#""usageMetadata":{usage}"#)),
            (old, new) => replace(&mut edits, old, new.as_deref()),
        }
        if let Some(parts) = change.parts {
            self.put_parts(&mut edits, &format!("[{}]", parts.join(",")));
        }
        if change.without_finish {
            let member = self.finish_value.and_then(|value| member::with_comma(self.text, &span(self.text, value)));
            member.into_iter().for_each(|range| edits.replace(range, ""));
        }
        let tells = |message: &str| change.without_finish || message.contains(change.hidden);
        if let Some(message) = self.finish_message.filter(|message| !change.hidden.is_empty() && tells(message)) {
            edits.replace(span(self.text, message), r#""""#);
        }
        (!edits.is_empty()).then(|| edits.apply(self.text))
    }

    fn put_parts(&self, edits: &mut Edits, parts: &str) {
        match (self.list, self.content, self.candidate) {
            (Some(list), _, _) => edits.replace(span(self.text, list), parts),
            (None, Some(content), _) => put(edits, self.text, content, &format!(r#""parts":{parts}"#)),
            (None, None, Some(candidate)) => {
                put(edits, self.text, candidate, &format!(r#""content":{{"parts":{parts},"role":"model"}}"#));
            }
            (None, None, None) => {}
        }
    }
}

impl<'a> Part<'a> {
    fn of(raw: &'a RawValue) -> Option<Self> {
        let object = Object::of(raw)?;
        let text = object.text("text");
        let call = present(&object, "functionCall", "function_call").and_then(Object::of);
        Some(Self {
            raw: raw.get(),
            thought: object.is_true("thought"),
            signature: present(&object, "thoughtSignature", "thought_signature").map(RawValue::get),
            plain: text.is_some() && object.0.iter().all(|(key, _)| key == "text" || key == "thought"),
            text,
            call: call.map(|call| FunctionCall {
                id: call.text("id").unwrap_or_default(),
                name: call.text("name").unwrap_or_default(),
                name_raw: call.find("name").map_or("", RawValue::get),
                args: present(&call, "args", "args").map_or("{}", RawValue::get),
            }),
        })
    }

    /// A part with a signature that it does not have.
    pub(super) fn signed(raw: &str, signature: &str) -> String {
        let mut edits = Edits::new();
        put(&mut edits, raw, raw, &format!(r#""thoughtSignature":{signature}"#));
        edits.apply(raw)
    }

    /// The part with another call in the place of its own.
    pub(super) fn renamed(&self, native: &Native) -> String {
        let mut edits = Edits::new();
        if let Some(call) = &self.call {
            edits.replace(span(self.raw, call.name_raw), quoted(&native.name));
            edits.replace(span(self.raw, call.args), native.arguments.as_str());
        }
        edits.apply(self.raw)
    }
}

impl FunctionCall<'_> {
    /// What is searched for: the member `query` of the arguments.
    pub(super) fn query(&self) -> Option<String> {
        Some(Object::parse(self.args)?.text("query")?.into_owned())
    }
}

/// Adds a member at the end of `object`, which stands in `text`.
fn put(edits: &mut Edits, text: &str, object: &str, member: &str) {
    if let Some((at, comma)) = member::end(object) {
        edits.insert(span(text, object).start + at, format!("{}{member}", if comma { "," } else { "" }));
    }
}

fn present<'a>(object: &Object<'a>, camel: &str, snake: &str) -> Option<&'a RawValue> {
    object.either(camel, snake).filter(|raw| !is_null(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: &str = r#"{"candidates": [{"content": {"parts": [{"text":"a"},{"functionCall":{"id":"1","name":"f","args":{"query":"q","n":1e16}},"thought_signature":"s"}],"role": "model"},"finishReason": "STOP","index":0}],"usageMetadata": {"promptTokenCount": 3},"responseId": "r2"}"#;

    #[test]
    fn it_is_read_in_either_spelling() {
        let chunk = Chunk::parse(CHUNK).expect("a chunk");
        let call = chunk.parts[1].call.as_ref().expect("a call");
        assert_eq!(
            (call.name.as_ref(), call.args, call.query().as_deref()),
            ("f", r#"{"query":"q","n":1e16}"#, Some("q"))
        );
        assert_eq!((chunk.parts[1].signature, chunk.finish.as_deref()), (Some(r#""s""#), Some("STOP")));
        assert!(chunk.parts[0].plain && !chunk.parts[1].plain && !chunk.failed && !chunk.blocked);
        assert!(Chunk::parse(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#).is_some_and(|chunk| chunk.blocked));
        assert!(Chunk::parse(r#"{"error":{"code":500}}"#).is_some_and(|chunk| chunk.failed));
        assert!(Chunk::parse("[DONE]").is_none());
    }

    #[test]
    fn only_what_shall_change_does() {
        let chunk = Chunk::parse(CHUNK).expect("a chunk");
        assert_eq!(chunk.changed(&Change { hidden: "find_tools", ..Change::default() }), None);
        let parts = [chunk.parts[0].raw.to_owned()];
        let change = Change {
            parts: Some(&parts),
            without_finish: true,
            response_id: Some(r#""r1""#),
            usage: Some("{}".to_owned()),
            ..Change::default()
        };
        let expected = r#"{"candidates": [{"content": {"parts": [{"text":"a"}],"role": "model"},"index":0}],"usageMetadata": {},"responseId": "r1"}"#;
        assert_eq!(chunk.changed(&change).as_deref(), Some(expected));
    }

    #[test]
    fn absent_members_are_put_in() {
        let chunk = Chunk::parse(r#"{"candidates":[{"finishReason":"STOP"}]}"#).expect("a chunk");
        let parts = ["{}".to_owned()];
        let change = Change { parts: Some(&parts), usage: Some("{}".to_owned()), ..Change::default() };
        let expected =
            r#"{"candidates":[{"finishReason":"STOP","content":{"parts":[{}],"role":"model"}}],"usageMetadata":{}}"#;
        assert_eq!(chunk.changed(&change).as_deref(), Some(expected));
    }
}
