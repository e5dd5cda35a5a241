//! A streamed reply: which frames leave when, over all legs. A frame waits only
//! while a name may still become `find_tools` (or its text must wait for the
//! leg's outcome); the ends of a leg that searched wait for the next. NOT what a
//! frame says.

use std::collections::VecDeque;

use super::frame::{Frame, Kind, Part, Splice};
use super::heard::Heard;
use super::past::Past;
use crate::wire::hidden::{Hidden, Whose};
use crate::wire::reply::{Leg, Progress};
use crate::wire::sse::{self, Splitter};

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) hidden: Hidden,
    hold_text: bool,
    splitter: Splitter,
    pub(super) past: Past,
    pub(super) heard: Heard,
    /// Frames that have been read and not judged.
    queue: VecDeque<Frame>,
    /// The ends of a leg that searched.
    held: Vec<Frame>,
    /// Judged when no one was there to take it: what the end of a leg sets free.
    pending: Vec<u8>,
    /// The next number of a call as the client counts.
    slots: usize,
    role_known: bool,
    ended: bool,
    line_end: Option<&'static [u8]>,
}

impl Stream {
    pub(super) fn new(find_tools: &str, hold_text: bool) -> Self {
        Self { hidden: Hidden::new(find_tools), hold_text, ..Self::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Progress {
        out.append(&mut self.pending);
        self.splitter.feed(bytes);
        while let Some(frame) = self.splitter.next_frame() {
            self.take(frame);
            self.drain(out);
        }
        if self.ended { Progress::Ended } else { Progress::More }
    }

    pub(super) fn end_leg(&mut self) -> Leg {
        let rest = self.splitter.rest();
        let mut out = Vec::new();
        let is_unsafe = !rest.is_empty() && !self.whole(&rest) && self.unsafe_to_show(&rest);
        if !rest.is_empty() && !is_unsafe {
            self.take(rest);
        }
        self.heard.settle(&self.hidden);
        self.drain_all(&mut out);
        self.pending.append(&mut out);
        let withheld = is_unsafe && !self.ended && self.heard.finish.is_none();
        Leg { withheld, ..self.past.end(&mut self.heard, &self.hidden) }
    }

    pub(super) fn next_leg(&mut self) {
        self.end_line();
        self.past.pass(&self.heard);
        self.heard = Heard::default();
        self.held.clear();
        self.ended = false;
    }

    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.pending);
        for frame in std::mem::take(&mut self.held) {
            out.extend(self.splice().write(&frame, Part::End).unwrap_or_default());
        }
    }

    pub(super) fn fail(&mut self, error: &str, out: &mut Vec<u8>) {
        self.heard.settle(&self.hidden);
        let mut freed = Vec::new();
        self.drain_all(&mut freed);
        self.pending.append(&mut freed);
        self.end_line();
        self.held.clear();
        out.append(&mut self.pending);
        let end = self.line_end.unwrap_or(b"\n");
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(error.as_bytes());
        out.extend_from_slice(end);
        out.extend_from_slice(end);
    }

    fn take(&mut self, bytes: Vec<u8>) {
        if self.line_end.is_none() {
            self.line_end = Some(sse::line_end(&bytes));
        }
        let frame = Frame::read(bytes, &self.hidden, &mut self.past, &mut self.heard);
        self.ended |= frame.kind == Kind::Done;
        self.queue.push_back(frame);
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        while self.queue.front().is_some_and(|frame| self.judged(frame)) {
            if let Some(frame) = self.queue.pop_front() {
                self.release(frame, out);
            }
        }
    }

    fn drain_all(&mut self, out: &mut Vec<u8>) {
        while let Some(frame) = self.queue.pop_front() {
            self.release(frame, out);
        }
    }

    /// May the frame leave as far as it is known?
    fn judged(&self, frame: &Frame) -> bool {
        let whose = |call: &usize| self.heard.calls.get(*call).map_or(Whose::Agents, |call| call.whose);
        let named = frame.fragments.iter().all(|(call, _)| !matches!(whose(call), Whose::Unknown | Whose::Wrapped));
        let known = self.heard.finish.is_some() || self.heard.failed || self.ended || self.heard.searched();
        named && (!self.hold_text || !frame.speaks() || known || self.heard.first_own().is_some())
    }

    fn release(&mut self, frame: Frame, out: &mut Vec<u8>) {
        for (call, _) in &frame.fragments {
            if let Some(call) = self.heard.calls.get_mut(*call).filter(|call| call.whose == Whose::Agents)
                && call.slot.is_none()
            {
                call.slot = Some(self.slots);
                self.slots += 1;
            }
        }
        let searched = self.heard.searched();
        let ends = frame.finish || matches!(frame.kind, Kind::Choiceless | Kind::Done);
        if self.past.legs == 0 && !self.heard.altered() {
            self.show(&frame);
            out.extend_from_slice(&frame.bytes);
        } else if !searched || frame.kind == Kind::Other {
            self.write(&frame, Part::All, out);
        } else if !ends {
            self.write(&frame, if frame.usage { Part::Front } else { Part::All }, out);
        } else {
            if frame.kind != Kind::Done {
                self.write(&frame, Part::Front, out);
            }
            self.held.push(frame);
        }
    }

    fn write(&mut self, frame: &Frame, part: Part, out: &mut Vec<u8>) {
        if let Some(bytes) = self.splice().write(frame, part) {
            self.show(frame);
            out.extend_from_slice(&bytes);
        }
    }

    /// Notes what the client has seen.
    fn show(&mut self, frame: &Frame) {
        self.role_known |= frame.role;
        if !self.mute() {
            self.heard.shown_content.push_str(&frame.content);
            self.heard.shown_reasoning.push_str(&frame.reasoning);
        }
    }

    fn mute(&self) -> bool {
        self.hold_text && self.heard.searched()
    }

    fn splice(&self) -> Splice<'_> {
        Splice { past: &self.past, heard: &self.heard, mute: self.mute(), role_known: self.role_known }
    }

    /// Is it a frame that only lacks its blank line?
    fn whole(&self, rest: &[u8]) -> bool {
        sse::data(rest).is_none_or(|data| {
            data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<serde::de::IgnoredAny>(&data).is_ok()
        })
    }

    /// Could half a frame show the client what is hidden from it? Where nothing was spliced it leaves as it came.
    fn unsafe_to_show(&self, rest: &[u8]) -> bool {
        self.past.legs > 0 || self.heard.altered() || self.hidden.may_be_told(rest)
    }

    /// A last frame without its blank line gets one, since another follows.
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
