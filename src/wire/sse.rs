//! Cuts an event stream into frames, whatever the network did to it. Yields the
//! bytes it was fed. NOT a Body type, NOT a timer, NOT JSON.

/// Incremental splitter.
///
/// A frame is the bytes of one event up to and including the blank line that ends it: LF, CRLF and CR line ends, also
/// when a CR|LF straddles two reads. Comment-only blocks are frames too (with no data). No line limit.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
}

impl Splitter {
    /// Takes more bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        todo!("wire/openai helper")
    }

    /// What is left when the stream is over: a last frame without its blank line, or nothing.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }
}

/// The data of a frame: its `data` lines (with or without one space) joined by LF; `None` when it has none.
pub fn data(_frame: &[u8]) -> Option<Vec<u8>> {
    todo!("wire/openai helper")
}
