//! A streamed reply: which events leave when, over all legs. A call of `find_tools`
//! names itself in its first event, so nothing waits but the end of a leg that
//! searched (and a call of `call_tool` until it is whole; and, where text must wait for
//! the leg's outcome, text; and what stands behind these). NOT what an event says.

use std::collections::VecDeque;

use super::frame::{Frame, Kind};
use super::heard::Heard;
use super::past::Past;
use crate::wire::hidden::Hidden;
use crate::wire::reply::{Leg, Progress};
use crate::wire::sse::{self, Splitter};

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) hidden: Hidden,
    splitter: Splitter,
    pub(super) past: Past,
    pub(super) heard: Heard,
    /// Events that have been read and not judged.
    queue: VecDeque<Frame>,
    /// The end of a leg that searched.
    held: Vec<Frame>,
    /// Judged when no one was there to take it: what the end of a leg sets free.
    pending: Vec<u8>,
    /// The next number of a block as the client counts.
    slots: u64,
    /// A block of this leg was dropped: those behind it move up.
    moved: bool,
    ended: bool,
    line_end: Option<&'static [u8]>,
}

impl Stream {
    pub(super) fn new(find_tools: &str, hold_text: bool) -> Self {
        Self { hidden: Hidden::new(find_tools), heard: Heard::new(hold_text), ..Self::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Progress {
        out.append(&mut self.pending);
        self.splitter.feed(bytes);
        while let Some(frame) = self.splitter.next_frame() {
            self.take(frame);
            while self.queue.front().is_some_and(|frame| self.judged(frame)) {
                self.release(out);
            }
        }
        if self.ended { Progress::Ended } else { Progress::More }
    }

    pub(super) fn end_leg(&mut self) -> Leg {
        let rest = self.splitter.rest();
        let is_unsafe = !rest.is_empty() && !whole(&rest) && self.unsafe_to_show(&rest);
        if !rest.is_empty() && !is_unsafe {
            self.take(rest);
        }
        self.heard.settle(&self.hidden);
        self.drain();
        let withheld = is_unsafe && !self.ended && self.heard.finish.is_none();
        Leg { withheld, ..self.past.end(&mut self.heard, &self.hidden) }
    }

    pub(super) fn next_leg(&mut self) {
        self.end_line();
        self.past.pass(&self.heard);
        self.heard = Heard::new(self.heard.holds_text);
        self.held.clear();
        self.ended = false;
        self.moved = false;
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        for frame in std::mem::take(&mut self.held) {
            self.write_end(&frame, out);
        }
    }

    pub(super) fn fail(&mut self, error: &str, out: &mut Vec<u8>) {
        self.heard.settle(&self.hidden);
        self.drain();
        self.end_line();
        self.held.clear();
        out.append(&mut self.pending);
        let end = self.line_end.unwrap_or(b"\n");
        for line in [b"event: error", b"data: ".as_slice()] {
            out.extend_from_slice(line);
            if line.starts_with(b"data") {
                out.extend_from_slice(error.as_bytes());
            }
            out.extend_from_slice(end);
        }
        out.extend_from_slice(end);
    }

    fn take(&mut self, bytes: Vec<u8>) {
        if self.line_end.is_none() {
            self.line_end = Some(sse::line_end(&bytes));
        }
        let frame = Frame::read(bytes, &self.hidden, &mut self.past, &mut self.heard);
        self.ended |= frame.kind == Kind::Stop;
        self.queue.push_back(frame);
    }

    /// Everything that still waits, now that the leg is over.
    fn drain(&mut self) {
        let mut freed = Vec::new();
        while !self.queue.is_empty() {
            self.release(&mut freed);
        }
        self.pending.append(&mut freed);
    }

    /// May the event leave as far as it is known?
    fn judged(&self, frame: &Frame) -> bool {
        let Kind::Block(Some(place)) = frame.kind else { return true };
        let Some(block) = self.heard.blocks.get(place) else { return true };
        let known = || self.heard.finish.is_some() || self.heard.failed || self.ended || self.heard.called();
        !block.waits() && (!self.heard.holds_text || !block.is_text() || known())
    }

    /// The next event leaves, or does not.
    fn release(&mut self, out: &mut Vec<u8>) {
        let Some(frame) = self.queue.pop_front() else { return };
        let first = self.past.legs == 0;
        match frame.kind {
            Kind::Start if !first => {}
            Kind::Block(place) => self.release_block(&frame, place, out),
            Kind::End | Kind::Stop if self.heard.searched() => self.held.push(frame),
            Kind::End => self.write_end(&frame, out),
            Kind::Other | Kind::Start | Kind::Stop => out.extend_from_slice(&frame.bytes),
        }
    }

    fn release_block(&mut self, frame: &Frame, place: Option<usize>, out: &mut Vec<u8>) {
        let untouched = self.past.legs == 0 && !self.moved;
        let Some(block) = place.and_then(|place| self.heard.blocks.get(place)) else {
            if untouched {
                out.extend_from_slice(&frame.bytes);
            }
            return;
        };
        if self.heard.hides(block) {
            self.moved = true;
            return;
        }
        let slot = match (block.slot, block.index) {
            (Some(slot), _) => slot,
            (None, Some(index)) if untouched => index,
            (None, _) => self.slots,
        };
        self.slots = self.slots.max(slot.saturating_add(1));
        let raw = untouched || block.index == Some(slot);
        if let Some(block) = place.and_then(|place| self.heard.blocks.get_mut(place)) {
            block.slot = Some(slot);
            if block.native.is_some() {
                out.extend(frame.native(slot, block).unwrap_or_default());
                return;
            }
        }
        match frame.numbered(slot).filter(|_| !raw) {
            Some(bytes) => out.extend_from_slice(&bytes),
            None if raw => out.extend_from_slice(&frame.bytes),
            None => {}
        }
    }

    fn write_end(&self, frame: &Frame, out: &mut Vec<u8>) {
        let changed = frame.kind == Kind::End && (self.past.legs > 0 || self.heard.shown_finish().is_some());
        match changed.then(|| frame.closing(&self.past, &self.heard)).flatten() {
            Some(bytes) => out.extend_from_slice(&bytes),
            None => out.extend_from_slice(&frame.bytes),
        }
    }

    /// Could half an event show the client what is hidden from it? Where nothing was spliced it leaves as it came.
    fn unsafe_to_show(&self, rest: &[u8]) -> bool {
        self.past.legs > 0 || self.heard.altered() || self.hidden.may_be_told(rest)
    }

    /// A last event without its blank line gets one, since another follows.
    fn end_line(&mut self) {
        let end = self.line_end.unwrap_or(b"\n");
        if self.pending.is_empty() {
            return;
        }
        while !self.pending.ends_with(&[end, end].concat()) {
            self.pending.extend_from_slice(end);
        }
    }
}

/// Is it an event that only lacks its blank line?
fn whole(rest: &[u8]) -> bool {
    sse::data(rest).is_none_or(|data| serde_json::from_slice::<serde::de::IgnoredAny>(&data).is_ok())
}
