//! One frame of a stream: read into a note of what stands in it, and written
//! anew when a reply is spliced. NOT the order of frames, NOT when they leave.

use super::heard::{Heard, REASONING};
use super::past::Past;
use crate::wire::hidden::{Hidden, Whose};
use crate::wire::json::{self, Object};
use crate::wire::members::Members;
use crate::wire::sse;

/// A frame as it came, and what stands in it.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
    /// Spelt as in JSON strings.
    pub(super) content: String,
    pub(super) reasoning: String,
    /// The fragments in it, in order: which call of the leg, and whether it is its first.
    pub(super) fragments: Vec<(usize, bool)>,
    pub(super) role: bool,
    /// It ends its choice.
    pub(super) finish: bool,
    pub(super) usage: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A comment, an error, an event that is no chunk: passed on as it is.
    Other,
    /// A chunk with a choice.
    Chunk,
    /// A chunk without one: usage, mostly.
    Choiceless,
    /// `[DONE]`.
    Done,
}

/// Which part of a frame shall be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// What it says, without its end: another leg may follow.
    Front,
    /// Its end, without what it says.
    End,
}

/// How a leg's frames are written anew.
pub(super) struct Splice<'a> {
    pub(super) past: &'a Past,
    pub(super) heard: &'a Heard,
    /// Text of this leg is not for the client.
    pub(super) mute: bool,
    /// The client has been told the role.
    pub(super) role_known: bool,
}

impl Frame {
    /// Reads a frame into the leg.
    pub(super) fn read(bytes: Vec<u8>, hidden: &Hidden, past: &mut Past, heard: &mut Heard) -> Self {
        let mut frame = Self {
            kind: Kind::Other,
            content: String::new(),
            reasoning: String::new(),
            fragments: Vec::new(),
            role: false,
            finish: false,
            usage: false,
            bytes,
        };
        if let Some(data) = sse::data(&frame.bytes).and_then(|data| String::from_utf8(data).ok()) {
            frame.note(&data, hidden, past, heard);
        }
        frame
    }

    fn note(&mut self, data: &str, hidden: &Hidden, past: &mut Past, heard: &mut Heard) {
        if data.trim() == "[DONE]" {
            self.kind = Kind::Done;
            return heard.settle(hidden);
        }
        let Some(top) = Object::parse(data) else { return };
        let choices = top.find("choices").and_then(json::elements);
        heard.failed |= choices.is_none() && said(&top, "error").is_some();
        past.learn(&top);
        let usage = said(&top, "usage");
        if let Some(usage) = usage {
            heard.usage.top = Some(usage.to_owned());
        }
        self.usage = usage.is_some();
        let Some(choices) = choices else { return };
        let Some(choice) = choices.first().and_then(|choice| Object::of(choice)) else {
            self.kind = Kind::Choiceless;
            return;
        };
        self.kind = Kind::Chunk;
        if let Some(usage) = said(&choice, "usage") {
            heard.usage.choice = Some(usage.to_owned());
            self.usage = true;
        }
        if let Some(delta) = choice.find("delta").and_then(Object::of) {
            self.role = said(&delta, "role").is_some();
            let (content, reasoning) = heard.message(&delta);
            content.clone_into(&mut self.content);
            reasoning.clone_into(&mut self.reasoning);
            for call in delta.find("tool_calls").and_then(json::elements).unwrap_or_default() {
                let empty = Object(Vec::new());
                self.fragments.push(heard.fragment(&Object::of(call).unwrap_or(empty), hidden));
            }
        }
        if let Some(finish) = choice.text("finish_reason").filter(|finish| !finish.is_empty()) {
            heard.finish = Some(finish.into_owned());
            self.finish = true;
            heard.settle(hidden);
        }
    }

    /// Does it say anything that is held back where text is?
    pub(super) fn speaks(&self) -> bool {
        !self.content.is_empty() || !self.reasoning.is_empty()
    }
}

impl Splice<'_> {
    /// The frame as the client may see it; `None` when nothing is left of it.
    pub(super) fn write(&self, frame: &Frame, part: Part) -> Option<Vec<u8>> {
        if matches!(frame.kind, Kind::Other | Kind::Done) {
            return Some(frame.bytes.clone());
        }
        let data = String::from_utf8(sse::data(&frame.bytes)?).ok()?;
        let document = Object::parse(&data)?;
        let mut top = Members::of(&document);
        self.past.identify(&mut top);
        match part {
            Part::Front => drop(top.remove("usage")),
            Part::All | Part::End => self.past.add_usage(&mut top),
        }
        if frame.kind == Kind::Choiceless {
            return (part != Part::Front).then(|| sse::with_data(&frame.bytes, &top.json()));
        }
        let choices = json::elements(document.find("choices")?)?;
        let choice = Object::of(choices.first()?)?;
        let mut written = Members::of(&choice);
        let kept = self.choice(frame, part, &choice, &mut written);
        if !kept {
            return None;
        }
        let rest = choices.iter().skip(1).map(|raw| raw.get().to_owned());
        let all: Vec<String> = std::iter::once(written.json()).chain(rest).collect();
        top.set("choices", format!("[{}]", all.join(",")));
        Some(sse::with_data(&frame.bytes, &top.json()))
    }

    /// Is the choice still worth a frame?
    fn choice(&self, frame: &Frame, part: Part, choice: &Object<'_>, written: &mut Members<'_>) -> bool {
        match part {
            Part::Front => {
                written.remove("usage");
                written.replace("finish_reason", "null".to_owned());
            }
            Part::All | Part::End => self.past.add_choice_usage(written),
        }
        if part == Part::End {
            if let Some(finish) = self.heard.shown_finish().filter(|_| frame.finish) {
                written.replace("finish_reason", json::quoted(finish));
            }
            written.replace("delta", "{}".to_owned());
            return true;
        }
        let Some(delta) = choice.find("delta").and_then(Object::of) else { return part == Part::All };
        let mut said = Members::of(&delta);
        let changed = self.delta(frame, &delta, &mut said);
        let worth = said.keys().any(|key| match key {
            "role" => !self.role_known,
            // An empty one ends Kimi's thinking.
            _ if REASONING.contains(&key) => said.get(key) != Some("null"),
            _ => said.said(key).is_some(),
        });
        let ends = part == Part::All && (frame.finish || frame.usage);
        written.set("delta", said.json());
        worth || ends || (part == Part::All && !changed)
    }

    /// Takes from a delta what the client must not see (again). Was there such a thing?
    fn delta(&self, frame: &Frame, delta: &Object<'_>, said: &mut Members<'_>) -> bool {
        let mut changed = self.role_known && said.remove("role");
        if self.mute && frame.speaks() {
            changed |= said.remove("content");
            changed |= REASONING.into_iter().fold(false, |removed, key| removed | said.remove(key));
        }
        let fragments = delta.find("tool_calls").and_then(json::elements).unwrap_or_default();
        if fragments.is_empty() {
            return changed;
        }
        let kept: Vec<String> = fragments
            .iter()
            .zip(&frame.fragments)
            .filter_map(|(raw, (call, first))| self.fragment(&Object::of(raw)?, *call, *first))
            .collect();
        if kept.is_empty() {
            said.remove("tool_calls");
        } else {
            said.set("tool_calls", format!("[{}]", kept.join(",")));
        }
        true
    }

    /// A fragment of the agent's own call: numbered densely, its id and name said once.
    fn fragment(&self, fragment: &Object<'_>, call: usize, first: bool) -> Option<String> {
        let called = self.heard.calls.get(call).filter(|called| called.whose == Whose::Agents)?;
        let mut written = Members::of(fragment);
        written.set("index", called.slot?.to_string());
        if let Some(native) = &called.native {
            // Its arguments are whole only at its end: the first fragment says it all.
            written.set("function", first.then(|| native.json())?);
        }
        if first {
            if let Some(signature) = self.heard.moved_signature().filter(|_| self.heard.first_own() == Some(call)) {
                written.set("extra_content", signature.to_owned());
            }
        } else {
            written.remove("id");
            written.remove("type");
            if let Some(function) = fragment.find("function").and_then(Object::of) {
                let mut own = Members::of(&function);
                own.remove("name");
                written.set("function", own.json());
            }
        }
        Some(written.json())
    }
}

/// A member that is there and not null.
fn said<'a>(object: &Object<'a>, key: &str) -> Option<&'a str> {
    object.find(key).filter(|raw| !json::is_null(raw)).map(serde_json::value::RawValue::get)
}
