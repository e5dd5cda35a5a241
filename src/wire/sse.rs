//! Cuts an event stream into frames, whatever the network did to it. Yields the
//! bytes it was fed. NOT a Body type, NOT a timer, NOT JSON.

use std::ops::Range;

/// Incremental splitter.
///
/// A frame is the bytes of one event up to and including the blank line that ends it: LF, CRLF and CR line ends, also
/// when a CR|LF straddles two reads. Comment-only blocks are frames too (with no data). No line limit.
///
/// The frames do not depend on how the bytes were cut, and they concatenate to what was fed.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    /// Frames before this offset have been handed out; the buffer is compacted once per feed, not once per frame.
    start: usize,
    /// Where the current line begins.
    line: usize,
    /// Everything before this offset has been looked at.
    at: usize,
    /// How the line before the current one ended.
    before: End,
    /// The last frame ended with a bare CR, so an LF that comes next is the rest of that line end, not a blank line.
    straggler: bool,
}

/// A line end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is no line before.
    #[default]
    Start,
    Lf,
    CrLf,
    Cr,
}

impl Splitter {
    /// Takes more bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.line -= self.start;
            self.at -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        if self.straggler && self.at == self.start && self.at < self.buffer.len() {
            self.straggler = false;
            if self.buffer.get(self.at) == Some(&b'\n') {
                self.at += 1;
                self.line = self.at;
            }
        }
        loop {
            let (end, next) = self.line_end()?;
            let blank = self.at == self.line;
            self.line = next;
            self.at = next;
            if !blank {
                self.before = end;
                continue;
            }
            self.straggler = end == End::Cr && self.before == End::Cr;
            self.before = End::Start;
            let frame = self.buffer.get(self.start..next).map(<[u8]>::to_vec);
            self.start = next;
            return frame;
        }
    }

    /// What is left when the stream is over: a last frame without its blank line, or nothing.
    pub fn rest(&mut self) -> Vec<u8> {
        let rest = self.buffer.get(self.start..).map(<[u8]>::to_vec).unwrap_or_default();
        *self = Self::default();
        rest
    }

    /// The end of the current line and where the next begins; moves `at` to the end. `None`: not there yet.
    fn line_end(&mut self) -> Option<(End, usize)> {
        let ahead = self.buffer.get(self.at..)?;
        let Some(found) = ahead.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.at = self.buffer.len();
            return None;
        };
        self.at += found;
        if self.buffer.get(self.at) == Some(&b'\n') {
            return Some((End::Lf, self.at + 1));
        }
        // A stream that ends its lines with bare CRs must not wait for the next event to see this one end.
        if self.at == self.line && self.before == End::Cr {
            return Some((End::Cr, self.at + 1));
        }
        match self.buffer.get(self.at + 1) {
            None => None,
            Some(b'\n') => Some((End::CrLf, self.at + 2)),
            Some(_) => Some((End::Cr, self.at + 1)),
        }
    }
}

/// The data of a frame: its `data` lines (with or without one space) joined by LF; `None` when it has none.
pub fn data(frame: &[u8]) -> Option<Vec<u8>> {
    let mut joined: Option<Vec<u8>> = None;
    for line in lines(frame) {
        let Some(value) = frame.get(line.content).and_then(data_of) else { continue };
        match &mut joined {
            Some(joined) => {
                joined.push(b'\n');
                joined.extend_from_slice(value);
            }
            None => joined = Some(value.to_vec()),
        }
    }
    joined
}

/// The frame with other data. Comments, other fields and line ends stay as they came; the data is written with a space
/// behind the colon (google-genai for Python does not see it otherwise), one line for each of its lines.
pub fn with_data(frame: &[u8], data: &str) -> Vec<u8> {
    let end = line_end(frame);
    let mut out = Vec::with_capacity(frame.len() + data.len());
    let mut written = false;
    for line in lines(frame) {
        let is_data = frame.get(line.content.clone()).is_some_and(|content| data_of(content).is_some());
        if !is_data {
            out.extend_from_slice(frame.get(line.content.start..line.end).unwrap_or_default());
        } else if !written {
            written = true;
            let own = frame.get(line.content.end..line.end).unwrap_or_default();
            let mut parts = data.split('\n').peekable();
            while let Some(part) = parts.next() {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(part.trim_end_matches('\r').as_bytes());
                out.extend_from_slice(if parts.peek().is_some() { end } else { own });
            }
        }
    }
    out
}

/// How the frame ends its lines; LF when it has no line end.
pub fn line_end(frame: &[u8]) -> &'static [u8] {
    match frame.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map(|at| (frame.get(at), frame.get(at + 1))) {
        Some((Some(b'\r'), Some(b'\n'))) => b"\r\n",
        Some((Some(b'\r'), _)) => b"\r",
        _ => b"\n",
    }
}

/// One line: its content, and where its line end ends.
struct Line {
    content: Range<usize>,
    end: usize,
}

fn lines(frame: &[u8]) -> impl Iterator<Item = Line> {
    let mut at = if frame.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    std::iter::from_fn(move || {
        let ahead = frame.get(at..).filter(|ahead| !ahead.is_empty())?;
        let length = ahead.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(ahead.len());
        let content = at..at + length;
        at = match (ahead.get(length), ahead.get(length + 1)) {
            (None, _) => content.end,
            (Some(b'\r'), Some(b'\n')) => content.end + 2,
            _ => content.end + 1,
        };
        Some(Line { content, end: at })
    })
}

fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    if rest.is_empty() {
        return Some(rest);
    }
    let value = rest.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames_of(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut splitter = Splitter::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk);
            while let Some(frame) = splitter.next_frame() {
                frames.push(frame);
            }
        }
        (frames, splitter.rest())
    }

    #[test]
    fn every_line_end_ends_a_frame() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!(": c{end}data: a{end}{end}data:b{end}data: c{end}{end}data: d");
            let (frames, rest) = frames_of(&[text.as_bytes()]);
            assert_eq!(frames.len(), 2, "{end:?}");
            assert_eq!(data(&frames[0]).as_deref(), Some(&b"a"[..]));
            assert_eq!(data(&frames[1]).as_deref(), Some(&b"b\nc"[..]));
            assert_eq!(rest, b"data: d");
        }
    }

    #[test]
    fn a_cr_lf_that_straddles_two_reads_is_one_line_end() {
        let (frames, rest) = frames_of(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n", b"\r\n"]);
        assert_eq!(frames, [b"data: a\r\n\r\n".to_vec(), b"data: b\r\n\r\n".to_vec()]);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_frame_of_bare_crs_does_not_wait_for_the_next() {
        assert_eq!(frames_of(&[b"data: a\r\r"]).0, [b"data: a\r\r".to_vec()]);
    }

    #[test]
    fn a_comment_is_no_data_and_an_empty_data_line_is() {
        assert_eq!(data(b": WAITING\n\n"), None);
        assert_eq!(data(b"event: ping\n\n"), None);
        assert_eq!(data(b"data\n\n"), Some(Vec::new()));
        assert_eq!(data(b"dataset: 1\n\n"), None);
        assert_eq!(data(b"data:  two\n\n").as_deref(), Some(&b" two"[..]));
        assert_eq!(data(b"\xef\xbb\xbfdata: x\n\n").as_deref(), Some(&b"x"[..]));
    }

    #[test]
    fn other_data_keeps_the_frames_own_lines() {
        assert_eq!(with_data(b": c\r\nid: 7\r\ndata:{}\r\n\r\n", "[1]"), b": c\r\nid: 7\r\ndata: [1]\r\n\r\n");
        assert_eq!(with_data(b"data: {\ndata: }\n\n", "x\ny"), b"data: x\ndata: y\n\n");
        assert_eq!(with_data(b"data: x", "y"), b"data: y");
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just("\n".to_owned()),
            Just("\r".to_owned()),
            Just("\r\n".to_owned()),
            Just("data: ".to_owned()),
            Just("data:{\"a\":\"你好\"}".to_owned()),
            Just(": ping".to_owned()),
            "\\PC{0,6}",
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn frames_and_rest_are_the_stream_however_it_is_cut(bytes in stream(), cuts in proptest::collection::vec(0usize..200, 0..12)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut chunks, mut at) = (Vec::new(), 0);
            for cut in cuts {
                chunks.push(&bytes[at..cut]);
                at = cut;
            }
            chunks.push(&bytes[at..]);
            let (frames, rest) = frames_of(&chunks);
            let mut all = frames.concat();
            all.extend_from_slice(&rest);
            prop_assert_eq!(&all, &bytes);
            prop_assert_eq!((frames, rest), frames_of(&[&bytes]));
        }
    }
}
