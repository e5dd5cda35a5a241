//! One event of a stream: read into a note of what stands in it, and written anew
//! when a reply is spliced. NOT the order of events, NOT when they leave.

use super::block::Block;
use super::heard::Heard;
use super::past::Past;
use crate::wire::hidden::Hidden;
use crate::wire::json::{self, Object};
use crate::wire::members::Members;
use crate::wire::splice::Edits;
use crate::wire::sse;

/// An event as it came, and what stands in it.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A ping, a comment, an error, an event that is not known: passed on as it is.
    Other,
    /// `message_start`.
    Start,
    /// A block begins, grows or ends: the place of the block in the leg; `None`: it never began.
    Block(Option<usize>),
    /// `message_delta`.
    End,
    /// `message_stop`.
    Stop,
}

impl Frame {
    /// Reads an event into the leg.
    pub(super) fn read(bytes: Vec<u8>, hidden: &Hidden, past: &mut Past, heard: &mut Heard) -> Self {
        let data = sse::data(&bytes).and_then(|data| String::from_utf8(data).ok());
        let kind = data.as_deref().and_then(Object::parse).map_or(Kind::Other, |top| note(&top, hidden, past, heard));
        Self { bytes, kind }
    }

    /// The event with another number for its block.
    pub(super) fn numbered(&self, slot: u64) -> Option<Vec<u8>> {
        let data = String::from_utf8(sse::data(&self.bytes)?).ok()?;
        let index = Object::parse(&data)?.find("index")?;
        let mut edits = Edits::new();
        edits.replace(json::span(&data, index.get()), slot.to_string());
        Some(sse::with_data(&self.bytes, &edits.apply(&data)))
    }

    /// The event of a `call_tool` as one of the agent's own call, under this number: the name as it begins, the arguments
    /// in one piece. `None`: there is nothing left to say.
    pub(super) fn native(&self, slot: u64, block: &mut Block) -> Option<Vec<u8>> {
        let native = block.native.as_ref()?;
        let data = String::from_utf8(sse::data(&self.bytes)?).ok()?;
        let top = Object::parse(&data)?;
        let mut written = Members::of(&top);
        written.replace("index", slot.to_string());
        match top.text("type").as_deref() {
            Some("content_block_start") => {
                let mut call = Members::of(&top.find("content_block").and_then(Object::of)?);
                call.set("name", json::quoted(&native.name));
                if !block.grew() {
                    call.set("input", native.arguments.clone());
                }
                written.set("content_block", call.json());
            }
            Some("content_block_delta") if block.grew() => {
                if std::mem::replace(&mut block.told, true) {
                    return None;
                }
                let arguments = json::quoted(&native.arguments);
                written.set("delta", format!(r#"{{"type":"input_json_delta","partial_json":{arguments}}}"#));
            }
            _ => {}
        }
        Some(sse::with_data(&self.bytes, &written.json()))
    }

    /// The end of the last leg as the end of all.
    pub(super) fn closing(&self, past: &Past, heard: &Heard) -> Option<Vec<u8>> {
        let data = String::from_utf8(sse::data(&self.bytes)?).ok()?;
        let top = Object::parse(&data)?;
        let mut written = Members::of(&top);
        if let (Some(finish), Some(delta)) = (heard.shown_finish(), top.find("delta").and_then(Object::of)) {
            let mut said = Members::of(&delta);
            said.replace("stop_reason", json::quoted(finish));
            written.set("delta", said.json());
        }
        if let Some(total) = past.usage.total(&heard.usage, top.find("usage")).filter(|_| past.legs > 0) {
            written.set("usage", total);
        }
        Some(sse::with_data(&self.bytes, &written.json()))
    }
}

fn note(top: &Object<'_>, hidden: &Hidden, past: &mut Past, heard: &mut Heard) -> Kind {
    let index = top.find("index").and_then(|raw| raw.get().parse().ok());
    match top.text("type").as_deref() {
        Some("message_start") => {
            if let Some(message) = top.find("message").and_then(Object::of) {
                past.learn(&message);
                if let Some(usage) = message.find("usage") {
                    heard.usage.take(usage);
                }
            }
            Kind::Start
        }
        Some("content_block_start") => {
            let block = top.find("content_block").and_then(Object::of).unwrap_or(Object(Vec::new()));
            Kind::Block(Some(heard.begin(index, &block, hidden)))
        }
        Some("content_block_delta") => {
            let place = heard.place(index);
            let block = place.and_then(|place| heard.blocks.get_mut(place));
            if let (Some(block), Some(delta)) = (block, top.find("delta").and_then(Object::of)) {
                block.grow(&delta);
            }
            Kind::Block(place)
        }
        Some("content_block_stop") => {
            let place = heard.place(index);
            if let Some(block) = place.and_then(|place| heard.blocks.get_mut(place)) {
                block.settle(hidden);
            }
            Kind::Block(place)
        }
        Some("message_delta") => {
            heard.settle(hidden);
            let delta = top.find("delta").and_then(Object::of);
            if let Some(finish) = delta.and_then(|delta| Some(delta.text("stop_reason")?.into_owned())) {
                heard.finish = Some(finish);
            }
            if let Some(usage) = top.find("usage") {
                heard.usage.take(usage);
            }
            Kind::End
        }
        Some("message_stop") => {
            heard.settle(hidden);
            Kind::Stop
        }
        Some("error") => {
            heard.settle(hidden);
            heard.failed = true;
            Kind::Other
        }
        _ => Kind::Other,
    }
}
