//! A reply in one document, over all legs: the last leg's message with what the
//! client was spared taken out and the blocks of earlier legs put in front. NOT streams.

use super::heard::Heard;
use super::past::Past;
use crate::wire::hidden::Hidden;
use crate::wire::json::{self, Object};
use crate::wire::members::Members;
use crate::wire::reply::Leg;

#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) hidden: Hidden,
    body: Vec<u8>,
    /// The body is no object, and may tell of what is hidden.
    withheld: bool,
    pub(super) past: Past,
    pub(super) heard: Heard,
    /// The blocks of earlier legs that the client sees, each in its own bytes.
    before: Vec<String>,
}

impl Whole {
    pub(super) fn new(find_tools: &str, hold_text: bool) -> Self {
        Self { hidden: Hidden::new(find_tools), heard: Heard::new(hold_text), ..Self::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    pub(super) fn end_leg(&mut self) -> Leg {
        let body = std::mem::take(&mut self.body);
        let message = std::str::from_utf8(&body).ok().and_then(Object::parse);
        self.withheld = message.is_none() && self.hidden.may_be_told(&body);
        if let Some(message) = message {
            self.read(&message);
        }
        self.body = body;
        Leg { withheld: self.withheld, ..self.past.end(&mut self.heard, &self.hidden) }
    }

    pub(super) fn next_leg(&mut self) {
        let shown = std::str::from_utf8(&self.body).ok().and_then(|body| Some(self.shown(&Object::parse(body)?)));
        self.before.extend(shown.unwrap_or_default());
        self.past.pass(&self.heard);
        self.heard = Heard::new(self.heard.holds_text);
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

    fn read(&mut self, message: &Object<'_>) {
        self.past.learn(message);
        if let Some(usage) = message.find("usage") {
            self.heard.usage.take(usage);
        }
        self.heard.failed = message.text("type").as_deref() == Some("error");
        self.heard.finish = message.text("stop_reason").map(std::borrow::Cow::into_owned);
        for block in message.find("content").and_then(json::elements).unwrap_or_default() {
            self.heard.begin(None, &Object::of(block).unwrap_or(Object(Vec::new())), &self.hidden);
        }
        self.heard.settle(&self.hidden);
    }

    /// The blocks of this leg that the client sees: its own bytes, but for what was called through `call_tool`.
    fn shown(&self, message: &Object<'_>) -> Vec<String> {
        let blocks = message.find("content").and_then(json::elements).unwrap_or_default();
        let read = blocks.into_iter().zip(&self.heard.blocks);
        let shown = read.filter(|(_, block)| !self.heard.hides(block));
        shown
            .map(|(raw, block)| match (&block.native, Object::of(raw)) {
                (Some(native), Some(own)) => {
                    let mut call = Members::of(&own);
                    call.set("name", json::quoted(&native.name));
                    call.set("input", native.arguments.clone());
                    call.json()
                }
                _ => raw.get().to_owned(),
            })
            .collect()
    }

    /// The body of the last leg, as the body of all; `None` when it is not such a body.
    fn write(&self, body: &str) -> Option<String> {
        let message = Object::parse(body)?;
        message.find("content").and_then(json::elements)?;
        let mut written = Members::of(&message);
        let content: Vec<String> = self.before.iter().cloned().chain(self.shown(&message)).collect();
        written.set("content", format!("[{}]", content.join(",")));
        if let Some(finish) = self.heard.shown_finish() {
            written.replace("stop_reason", json::quoted(finish));
        }
        if self.past.legs > 0 {
            self.past.identify(&mut written);
            if let Some(total) = self.past.usage.total(&self.heard.usage, message.find("usage")) {
                written.set("usage", total);
            }
        }
        Some(written.json())
    }
}
