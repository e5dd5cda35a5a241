//! A reply in one document, over all legs: the last leg's body with what the
//! client was spared taken out and what earlier legs said put in front. NOT streams.

use super::heard::{Heard, REASONING};
use super::past::Past;
use crate::wire::hidden::{Hidden, Whose};
use crate::wire::json::{self, Object};
use crate::wire::members::Members;
use crate::wire::reply::Leg;
use crate::wire::text;

#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) hidden: Hidden,
    hold_text: bool,
    body: Vec<u8>,
    /// The body is no object, and may tell of what is hidden.
    withheld: bool,
    pub(super) past: Past,
    pub(super) heard: Heard,
}

impl Whole {
    pub(super) fn new(find_tools: &str, hold_text: bool) -> Self {
        Self { hidden: Hidden::new(find_tools), hold_text, ..Self::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    pub(super) fn end_leg(&mut self) -> Leg {
        let body = std::mem::take(&mut self.body);
        let top = std::str::from_utf8(&body).ok().and_then(Object::parse);
        self.withheld = top.is_none() && self.hidden.may_be_told(&body);
        if let Some(top) = top {
            self.read(&top);
        }
        self.body = body;
        let mixed = self.heard.first_own().is_some();
        if !(self.hold_text && self.heard.searched() && !mixed) {
            self.heard.shown_content.clone_from(&self.heard.content);
            self.heard.shown_reasoning =
                self.heard.reasoning.as_ref().map(|(_, reasoning)| reasoning.clone()).unwrap_or_default();
        }
        Leg { withheld: self.withheld, ..self.past.end(&mut self.heard, &self.hidden) }
    }

    pub(super) fn next_leg(&mut self) {
        self.past.pass(&self.heard);
        self.heard = Heard::default();
        self.body.clear();
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        let untouched = self.past.legs == 0 && !self.heard.altered();
        let written =
            if untouched { None } else { std::str::from_utf8(&self.body).ok().and_then(|body| self.write(body)) };
        match written {
            Some(body) => out.extend_from_slice(body.as_bytes()),
            // It broke off, perhaps within the call that is hidden.
            None if self.withheld => {}
            None => out.extend_from_slice(&self.body),
        }
        self.body.clear();
    }

    fn read(&mut self, top: &Object<'_>) {
        self.past.learn(top);
        let said = |object: &Object<'_>, key| {
            object.find(key).filter(|raw| !json::is_null(raw)).map(|raw| raw.get().to_owned())
        };
        self.heard.usage.top = said(top, "usage");
        self.heard.failed = said(top, "error").is_some();
        let choices = top.find("choices").and_then(json::elements).unwrap_or_default();
        let Some(choice) = choices.first().and_then(|choice| Object::of(choice)) else { return };
        self.heard.usage.choice = said(&choice, "usage");
        self.heard.finish = choice.text("finish_reason").map(std::borrow::Cow::into_owned);
        let Some(message) = choice.find("message").and_then(Object::of) else { return };
        self.heard.message(&message);
        for call in message.find("tool_calls").and_then(json::elements).unwrap_or_default() {
            self.heard.call(&Object::of(call).unwrap_or(Object(Vec::new())));
        }
        self.heard.settle(&self.hidden);
    }

    /// The body of the last leg, as the body of all; `None` when it is not such a body.
    fn write(&self, body: &str) -> Option<String> {
        let document = Object::parse(body)?;
        let choices = json::elements(document.find("choices")?)?;
        let choice = Object::of(choices.first()?)?;
        let message = Object::of(choice.find("message")?)?;

        let mut said = Members::of(&message);
        for (key, earlier) in [("content", &self.past.content), (self.reasoning_key(), &self.past.reasoning)] {
            front(&message, &mut said, key, earlier);
        }
        self.calls(&message, &mut said);
        let mut written = Members::of(&choice);
        written.set("message", said.json());
        if let Some(finish) = self.heard.shown_finish() {
            written.replace("finish_reason", json::quoted(finish));
        }
        self.past.add_choice_usage(&mut written);
        let rest = choices.iter().skip(1).map(|raw| raw.get().to_owned());
        let all: Vec<String> = std::iter::once(written.json()).chain(rest).collect();
        let mut top = Members::of(&document);
        top.set("choices", format!("[{}]", all.join(",")));
        self.past.identify(&mut top);
        self.past.add_usage(&mut top);
        Some(top.json())
    }

    fn reasoning_key(&self) -> &'static str {
        self.heard.reasoning.as_ref().map_or(REASONING[0], |(key, _)| key)
    }

    /// The agent's own calls stay, each in its own bytes.
    fn calls(&self, message: &Object<'_>, said: &mut Members<'_>) {
        if !self.heard.altered() {
            return;
        }
        let elements = message.find("tool_calls").and_then(json::elements).unwrap_or_default();
        let own =
            elements.iter().zip(&self.heard.calls).enumerate().filter(|(_, (_, call))| call.whose == Whose::Agents);
        let kept: Vec<String> = own
            .filter_map(|(at, (raw, called))| {
                let moved = self.heard.moved_signature().filter(|_| self.heard.first_own() == Some(at));
                if moved.is_none() && called.native.is_none() {
                    return Some(raw.get().to_owned());
                }
                let call = Object::of(raw)?;
                let mut written = Members::of(&call);
                if let Some(signature) = moved {
                    written.set("extra_content", signature.to_owned());
                }
                if let Some(native) = &called.native {
                    written.set("function", native.json());
                }
                Some(written.json())
            })
            .collect();
        if kept.is_empty() {
            said.remove("tool_calls");
        } else {
            said.set("tool_calls", format!("[{}]", kept.join(",")));
        }
    }
}

/// What earlier legs said stands in front of what this one says.
fn front(message: &Object<'_>, said: &mut Members<'_>, key: &'static str, earlier: &str) {
    if earlier.is_empty() {
        return;
    }
    let own = message.find(key).filter(|raw| !json::is_null(raw));
    match own.map(|raw| (raw, text::inner(raw))) {
        Some((_, Some(own))) => said.set(key, format!("\"{earlier}{own}\"")),
        Some((raw, None)) => {
            let part = format!(r#"{{"type":"text","text":"{earlier}"}}"#);
            let parts = json::elements(raw).unwrap_or_default();
            let all: Vec<String> = std::iter::once(part).chain(parts.iter().map(|raw| raw.get().to_owned())).collect();
            said.set(key, format!("[{}]", all.join(",")));
        }
        None => said.set(key, format!("\"{earlier}\"")),
    }
}
