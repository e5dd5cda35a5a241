//! The outside of a reply: events of a stream, elements of an array in pieces. Written as they came when untouched,
//! with the same line ends when not. NOT what stands inside.
//!
//! Nothing but events is written: Google's SDKs fail on comments, on `[DONE]` and on `data:` without a space.

use crate::wire::gemini::reply::array;
use crate::wire::reply::Framing;
use crate::wire::sse;

/// One piece of a reply, as it came.
#[derive(Debug)]
pub(super) enum Piece {
    /// An event with its blank line.
    Event(Vec<u8>),
    /// An element of the array, or its end.
    OfArray(array::Piece),
    /// What a body that ended too early, or is not what it says, leaves over.
    Half(Vec<u8>),
}

impl Piece {
    /// The JSON in it, if it has any.
    pub(super) fn json(&self) -> Option<String> {
        let bytes = match self {
            Self::Event(frame) => sse::data(frame)?,
            Self::OfArray(array::Piece::Element { element, .. }) => element.clone(),
            Self::OfArray(array::Piece::Tail(_)) | Self::Half(_) => return None,
        };
        String::from_utf8(bytes).ok()
    }
}

/// Writes pieces so that those of several legs are one reply.
#[derive(Debug)]
pub(super) struct Writer {
    framing: Framing,
    /// Array: is the bracket written?
    opened: bool,
    /// Array: is the closing bracket written? What comes behind it is nobody's element.
    closed: bool,
    /// Array: what the source puts between elements.
    between: Vec<u8>,
    /// How the source ends its lines.
    line_end: &'static [u8],
}

impl Writer {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, opened: false, closed: false, between: b",".to_vec(), line_end: b"\r\n" }
    }

    /// As it came.
    pub(super) fn same(&mut self, piece: &Piece, out: &mut Vec<u8>) {
        match piece {
            Piece::Event(frame) => {
                self.line_end = sse::line_end(frame);
                out.extend_from_slice(frame);
            }
            Piece::OfArray(array::Piece::Element { lead, element }) => {
                self.lead(lead, out);
                out.extend_from_slice(element);
            }
            Piece::OfArray(array::Piece::Tail(tail)) => self.tail(tail, out),
            Piece::Half(rest) => out.extend_from_slice(rest),
        }
    }

    /// With other JSON in it.
    pub(super) fn other(&mut self, piece: &Piece, json: &str, out: &mut Vec<u8>) {
        match piece {
            Piece::Event(frame) => {
                let whole = frame.ends_with(b"\n") || frame.ends_with(b"\r");
                self.line_end = if whole { sse::line_end(frame) } else { self.line_end };
                let written = sse::with_data(frame, json);
                let content = written.len() - written.iter().rev().take_while(|byte| b"\r\n".contains(byte)).count();
                out.extend_from_slice(written.get(..content).unwrap_or_default());
                out.extend_from_slice(self.line_end);
                out.extend_from_slice(self.line_end);
            }
            Piece::OfArray(array::Piece::Element { lead, .. }) => {
                self.lead(lead, out);
                out.extend_from_slice(json.as_bytes());
            }
            Piece::OfArray(array::Piece::Tail(tail)) => self.tail(tail, out),
            Piece::Half(rest) => out.extend_from_slice(rest),
        }
    }

    /// The end of a reply that failed.
    pub(super) fn error(&mut self, json: &str, out: &mut Vec<u8>) {
        match self.framing {
            Framing::Whole => out.extend_from_slice(json.as_bytes()),
            Framing::Array => {
                self.lead(b"[", out);
                out.extend_from_slice(json.as_bytes());
                out.push(b']');
            }
            Framing::Sse => {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(json.as_bytes());
                out.extend_from_slice(self.line_end);
                out.extend_from_slice(self.line_end);
            }
        }
    }

    /// What stands before an element: a bracket before the first that is written, a comma before the others.
    fn lead(&mut self, lead: &[u8], out: &mut Vec<u8>) {
        let comma = lead.contains(&b',');
        if comma {
            self.between = lead.to_vec();
        }
        match (self.opened, comma) {
            (true, false) => out.extend_from_slice(&self.between),
            (false, true) => out.extend(lead.iter().map(|byte| if *byte == b',' { b'[' } else { *byte })),
            (true, true) | (false, false) => out.extend_from_slice(lead),
        }
        self.opened = true;
    }

    /// An empty array's end brings its bracket along. Bytes behind the end come here too.
    fn tail(&mut self, tail: &[u8], out: &mut Vec<u8>) {
        if self.closed {
            out.extend_from_slice(tail);
            return;
        }
        let end = tail.iter().position(|byte| *byte == b']').map_or(tail.len(), |at| at + 1);
        let (end, behind) = tail.split_at_checked(end).unwrap_or((tail, &[]));
        if !self.opened && !end.contains(&b'[') {
            out.push(b'[');
        }
        out.extend(end.iter().filter(|byte| !(self.opened && **byte == b'[')));
        out.extend_from_slice(behind);
        (self.opened, self.closed) = (true, true);
    }
}
