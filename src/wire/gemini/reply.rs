//! Assembles the reply of one request from its legs: relays, hides the calls of `find_tools`, joins.
//! NOT answering them, NOT deciding whether another leg follows.
//!
//! A finish reason says `STOP` for calls too and may come in a chunk of its own, so a leg's outcome is known only at
//! its end: a leg that searches keeps its last chunk until the reply ends with it (`close`) or goes on (`next_leg`).
//! A chunk without parts makes Google's chat helpers forget the whole turn: none is ever made.

mod array;
mod chunk;
mod frame;
mod leg;
mod said;
mod usage;

use std::sync::Arc;

use crate::wire::dispatch::Dispatch;
use crate::wire::hidden::Hidden;
use crate::wire::json::quoted;
use crate::wire::reply::{Call, Framing, Leg, Progress};
use crate::wire::request::{Answer, Exchange};
use crate::wire::sse;
use chunk::{Change, Chunk};
use frame::{Piece, Writer};
use leg::{Current, Then};
use usage::Totals;

/// The part of a last chunk that would else have none. Google's chat helpers take a chunk without parts for a failed
/// turn, older ones also an empty text; a thought stands in no text that they show.
const NO_PART: &str = r#"{"text":" ","thought":true}"#;

/// Assembles the reply.
#[derive(Debug)]
pub struct Reader {
    framing: Framing,
    hidden: Hidden,
    hold_text: bool,
    events: sse::Splitter,
    elements: array::Splitter,
    /// [`Framing::Whole`]: the leg's body.
    body: Vec<u8>,
    writer: Writer,
    leg: Current,
    /// Has a leg ended before this one?
    later: bool,
    /// JSON of the first leg's.
    response_id: Option<String>,
    model_version: Option<String>,
    /// Usage of the legs before this one.
    earlier: Totals,
    /// [`Framing::Whole`]: visible parts of the legs before this one.
    gathered: Vec<String>,
    /// Leaves with the next bytes.
    pending: Vec<u8>,
    text: String,
    calls: Vec<Call>,
}

impl Reader {
    /// `find_tools`: the name to hide. `hold_text`: keep a leg's text until its outcome is known.
    pub fn new(framing: Framing, find_tools: &str, hold_text: bool) -> Self {
        Self {
            framing,
            hidden: Hidden::new(find_tools),
            hold_text,
            events: sse::Splitter::default(),
            elements: array::Splitter::default(),
            body: Vec::new(),
            writer: Writer::new(framing),
            leg: Current::default(),
            later: false,
            response_id: None,
            model_version: None,
            earlier: Totals::default(),
            gathered: Vec::new(),
            pending: Vec::new(),
            text: String::new(),
            calls: Vec::new(),
        }
    }

    /// Calls of `call_tool` become the agent's own.
    pub fn dispatching(mut self, dispatch: Arc<Dispatch>) -> Self {
        self.hidden.dispatching(dispatch);
        self
    }

    /// Takes the next bytes of the leg; appends what the client may see. Gemini has no terminal marker: never
    /// [`Progress::Ended`], the leg ends with its body.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Progress {
        out.append(&mut self.pending);
        match self.framing {
            Framing::Whole => self.body.extend_from_slice(bytes),
            Framing::Sse => {
                self.events.feed(bytes);
                while let Some(frame) = self.events.next_frame() {
                    self.take(Piece::Event(frame), out);
                }
            }
            Framing::Array => {
                self.elements.feed(bytes);
                while let Some(piece) = self.elements.next_piece() {
                    self.take(Piece::OfArray(piece), out);
                }
            }
        }
        Progress::More
    }

    /// What the leg was.
    pub fn end_leg(&mut self) -> Leg {
        match self.framing {
            Framing::Whole => {
                let body = std::mem::take(&mut self.body);
                match std::str::from_utf8(&body).ok().and_then(Chunk::parse) {
                    Some(chunk) => self.observe(&chunk),
                    None => self.leg.told.withheld = self.names_hidden(&body),
                }
                self.body = body;
            }
            Framing::Sse | Framing::Array => self.rest(),
        }
        self.leg.told.usage = self.leg.totals().usage();
        if !self.withholds_text() {
            self.text.push_str(&self.leg.text);
        }
        self.calls.extend(self.leg.told.calls.iter().cloned());
        self.leg.told.clone()
    }

    /// The hidden exchange of the leg that ended.
    pub fn exchange(&self, answers: Vec<Answer>, found: Vec<String>) -> Exchange {
        let seen = if self.withholds_text() { "" } else { &self.leg.text };
        Exchange {
            said: self.leg.said.content(),
            answers,
            text: seen.to_owned(),
            reasoning: self.leg.reasoning.clone(),
            mixed: !self.leg.told.calls.is_empty(),
            found,
        }
    }

    /// Another leg follows.
    pub fn next_leg(&mut self) {
        let then = if self.withholds_text() { Then::GoesOnUnsaid } else { Then::GoesOn };
        let mut out = std::mem::take(&mut self.pending);
        for piece in std::mem::take(&mut self.leg.held) {
            if let Some(chunk) = piece.json().as_deref().and_then(Chunk::parse) {
                self.show(&piece, &chunk, then, &mut out);
            }
        }
        self.pending = out;
        let body = std::mem::take(&mut self.body);
        if let Some(chunk) = std::str::from_utf8(&body).ok().and_then(Chunk::parse) {
            let parts = self.leg.visible(&chunk.parts, &self.hidden, then);
            let parts = parts.unwrap_or_else(|| chunk.parts.iter().map(|part| part.raw.to_owned()).collect());
            self.gathered.extend(parts);
        }
        self.earlier.add(&self.leg.totals());
        self.leg = Current::default();
        self.later = true;
    }

    /// The reply ends with the leg that ended.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        if self.withholds_text() {
            self.text.push_str(&self.leg.text);
        }
        self.release(out);
        let body = std::mem::take(&mut self.body);
        match std::str::from_utf8(&body).ok().and_then(Chunk::parse) {
            Some(chunk) => {
                let other = self.render(&chunk, Then::Ends);
                out.extend_from_slice(match &other {
                    Shown::Other(json) => json.as_bytes(),
                    Shown::Same | Shown::Nothing => &body,
                });
            }
            None if self.leg.told.withheld => {}
            None => out.extend_from_slice(&body),
        }
    }

    /// A later leg failed.
    pub fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        let json = format!(r#"{{"error":{{"code":502,"message":{},"status":"UNAVAILABLE"}}}}"#, quoted(message));
        self.writer.error(&json, out);
    }

    /// Nothing may be written while nothing moves: a comment makes Google's SDKs fail or lose an event.
    pub fn keep_alive(&self) -> &'static [u8] {
        b""
    }

    /// Text and calls of all legs that ended, as the client sees them.
    pub fn visible(&self) -> (&str, &[Call]) {
        (&self.text, &self.calls)
    }

    fn take(&mut self, piece: Piece, out: &mut Vec<u8>) {
        let json = piece.json();
        let Some(chunk) = json.as_deref().and_then(Chunk::parse) else {
            let of_event = matches!(piece, Piece::Event(_));
            match self.leg.searches() || !self.leg.held.is_empty() {
                true => self.leg.held.push(piece),
                false if self.later && of_event => {} // a comment or a marker: no part of a joined stream
                false => self.writer.same(&piece, out),
            }
            return;
        };
        self.observe(&chunk);
        let speaks = chunk.parts.iter().any(|part| !part.thought && part.text.as_ref().is_some_and(|t| !t.is_empty()));
        let settled = self.leg.told.complete && !self.leg.searches();
        if settled {
            self.release(out);
        }
        let last = self.leg.searches() && chunk.finish.is_some();
        if !self.leg.held.is_empty() || last || (self.hold_text && speaks && !settled) {
            self.leg.held.push(piece);
            return;
        }
        self.show(&piece, &chunk, Then::Ends, out);
    }

    /// What is left of a leg whose body is over: a last event without its blank line, a document that is no array, or
    /// half a chunk. The latter goes out as it came, unless it may hold what is hidden.
    fn rest(&mut self) {
        let array = self.framing == Framing::Array;
        let rest = if array { self.elements.rest() } else { self.events.rest() };
        let mut out = std::mem::take(&mut self.pending);
        let piece = match array {
            false => Piece::Event(rest.clone()),
            true => Piece::OfArray(array::Piece::Element { lead: b"[".to_vec(), element: rest.clone() }),
        };
        match piece.json().as_deref().and_then(Chunk::parse) {
            Some(chunk) if array => {
                self.observe(&chunk);
                match self.leg.searches() {
                    true => self.leg.held.extend([piece, Piece::OfArray(array::Piece::Tail(b"]".to_vec()))]),
                    false => self.leg.held.push(Piece::Half(rest)),
                }
            }
            Some(_) => self.take(piece, &mut out),
            None if self.later || self.leg.searches() || self.names_hidden(&rest) => {
                self.leg.told.withheld = !self.leg.told.complete && !rest.trim_ascii().is_empty();
            }
            None => self.leg.held.push(Piece::Half(rest)),
        }
        self.pending = out;
    }

    /// Notes what the chunk says.
    fn observe(&mut self, chunk: &Chunk<'_>) {
        if !self.later {
            let own = |known: &mut Option<String>, value: Option<&str>| {
                if known.is_none() {
                    *known = value.map(str::to_owned);
                }
            };
            own(&mut self.response_id, chunk.response_id);
            own(&mut self.model_version, chunk.model_version);
        }
        self.leg.observe(chunk, &self.hidden);
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        for piece in std::mem::take(&mut self.leg.held) {
            match piece.json().as_deref().and_then(Chunk::parse) {
                Some(chunk) => self.show(&piece, &chunk, Then::Ends, out),
                None => self.writer.same(&piece, out),
            }
        }
    }

    fn show(&mut self, piece: &Piece, chunk: &Chunk<'_>, then: Then, out: &mut Vec<u8>) {
        match self.render(chunk, then) {
            Shown::Same => self.writer.same(piece, out),
            Shown::Other(json) => self.writer.other(piece, &json, out),
            Shown::Nothing => return,
        }
        self.leg.counted |= chunk.usage.is_some();
    }

    fn render(&mut self, chunk: &Chunk<'_>, then: Then) -> Shown {
        let mut parts = self.leg.visible(&chunk.parts, &self.hidden, then);
        let finishes = chunk.finish.is_some();
        let empty = parts.as_ref().map_or(chunk.parts.is_empty(), Vec::is_empty);
        if then != Then::Ends && empty {
            return Shown::Nothing;
        }
        if !self.gathered.is_empty() {
            let own = parts.unwrap_or_else(|| chunk.parts.iter().map(|part| part.raw.to_owned()).collect());
            let mut all = std::mem::take(&mut self.gathered);
            all.extend(own);
            parts = Some(all);
        } else if let Some(parts) = parts.as_mut().filter(|parts| parts.is_empty()) {
            if !finishes && self.framing != Framing::Whole {
                return Shown::Nothing;
            }
            parts.push(NO_PART.to_owned());
        }
        let touched = self.later || self.leg.searches();
        let usage = match chunk.usage {
            Some(own) => (!self.earlier.is_empty()).then(|| self.earlier.added_to(own)),
            None if touched && finishes && then == Then::Ends && !self.leg.counted => {
                let mut all = self.leg.totals();
                all.add(&self.earlier);
                (!all.is_empty()).then(|| all.added_to("{}"))
            }
            None => None,
        };
        let change = Change {
            parts: parts.as_deref(),
            without_finish: then != Then::Ends && finishes,
            hidden: &self.hidden.find_tools,
            response_id: self.response_id.as_deref().filter(|_| self.later),
            model_version: self.model_version.as_deref().filter(|_| self.later),
            usage,
        };
        chunk.changed(&change).map_or(Shown::Same, Shown::Other)
    }

    /// Is this leg's text kept from the client? So it is where a JSON answer is due and the leg only searched.
    fn withholds_text(&self) -> bool {
        self.hold_text && self.leg.searches() && self.leg.told.calls.is_empty()
    }

    /// Could these bytes tell the client of what is hidden?
    fn names_hidden(&self, bytes: &[u8]) -> bool {
        self.hidden.may_be_told(bytes)
    }
}

/// What is written of a chunk.
enum Shown {
    Same,
    Other(String),
    Nothing,
}
