//! Cuts one JSON array that is sent in pieces into its elements, whatever the network did to it.
//! NOT the meaning of an element.
//!
//! `streamGenerateContent` without `alt=sse` answers so. The pieces concatenate to what was fed.

/// One piece of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Element {
        /// What stands before it: the bracket or a comma, and white space.
        lead: Vec<u8>,
        element: Vec<u8>,
    },
    /// The closing bracket, what stands before it, and everything behind.
    Tail(Vec<u8>),
}

/// Incremental splitter of an array's elements: strings and escapes respected, no limit of length.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    buffer: Vec<u8>,
    /// Pieces before this offset have been handed out.
    start: usize,
    /// Where the current element begins; `None`: it has not begun.
    element: Option<usize>,
    /// Everything before this offset has been looked at.
    at: usize,
    state: State,
    depth: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No bracket yet.
    #[default]
    Before,
    /// Behind the bracket or a comma.
    Between,
    /// Behind an element: a comma or the end comes next.
    After,
    Element,
    Text,
    Escape,
    /// The array is closed.
    Behind,
    /// It is no array, or none from here on: nothing is cut any more, all of it is the rest.
    Foreign,
}

impl Splitter {
    /// Takes more bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.at -= self.start;
        self.element = self.element.map(|element| element - self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole piece, if there is one.
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
        while self.state != State::Behind {
            if self.state == State::Foreign {
                return None;
            }
            let byte = *self.buffer.get(self.at)?;
            if let Some(end) = self.step(byte) {
                return self.cut(end);
            }
        }
        let tail = self.buffer.get(self.start..).filter(|tail| !tail.is_empty())?.to_vec();
        self.at = self.buffer.len();
        self.start = self.at;
        Some(Piece::Tail(tail))
    }

    /// What is left when the stream is over: an element cut short, or nothing.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        let rest = self.buffer.get(self.start..).map(<[u8]>::to_vec).unwrap_or_default();
        *self = Self::default();
        rest
    }

    /// Looks at one byte; the end of an element, when it is that.
    fn step(&mut self, byte: u8) -> Option<usize> {
        let here = self.at;
        self.at += 1;
        match (self.state, byte) {
            (State::Before | State::Between | State::After, b' ' | b'\t' | b'\r' | b'\n') => {}
            (State::Before, b'[') | (State::After, b',') => self.state = State::Between,
            (State::Between | State::After, b']') => self.state = State::Behind,
            (State::Before | State::After, _) | (State::Between, b',') => {
                self.state = State::Foreign;
                self.at = self.buffer.len();
            }
            (State::Between, _) => {
                self.element = Some(here);
                self.state = State::Element;
                self.at = here;
            }
            (State::Element, b'"') => self.state = State::Text,
            (State::Element, b'{' | b'[') => self.depth += 1,
            (State::Element, b'}' | b']') if self.depth > 0 => {
                self.depth -= 1;
                return (self.depth == 0).then_some(here + 1);
            }
            (State::Element, b',' | b']') if self.depth == 0 => return Some(here),
            (State::Text, b'"') => self.state = State::Element,
            (State::Text, b'\\') => self.state = State::Escape,
            (State::Escape, _) => self.state = State::Text,
            (State::Element | State::Text | State::Behind | State::Foreign, _) => {}
        }
        None
    }

    fn cut(&mut self, end: usize) -> Option<Piece> {
        let element = self.element.take()?;
        let lead = self.buffer.get(self.start..element)?.to_vec();
        let element = self.buffer.get(element..end)?.to_vec();
        (self.start, self.at, self.state) = (end, end, State::After);
        Some(Piece::Element { lead, element })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(chunks: &[&[u8]]) -> (Vec<Piece>, Vec<u8>) {
        let mut splitter = Splitter::default();
        let mut pieces = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk);
            while let Some(piece) = splitter.next_piece() {
                match (pieces.last_mut(), piece) {
                    (Some(Piece::Tail(tail)), Piece::Tail(more)) => tail.extend(more),
                    (_, piece) => pieces.push(piece),
                }
            }
        }
        (pieces, splitter.rest())
    }

    fn glued(pieces: &[Piece]) -> Vec<u8> {
        let bytes = |piece: &Piece| match piece {
            Piece::Element { lead, element } => [lead.as_slice(), element].concat(),
            Piece::Tail(tail) => tail.clone(),
        };
        pieces.iter().flat_map(bytes).collect()
    }

    const STREAM: &str = " [{\"a\":\"]},{\\\"[\\\\\",\"b\":[[1],{}]}\n,\r\n{\"c\":\"日本\"} , 1e16, \"x,]\",[ ]\n]\n ";

    #[test]
    fn brackets_and_commas_in_strings_are_text() {
        let (pieces, rest) = pieces(&[STREAM.as_bytes()]);
        let elements: Vec<_> = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Element { element, .. } => std::str::from_utf8(element).ok(),
                Piece::Tail(_) => None,
            })
            .collect();
        assert_eq!(elements, [r#"{"a":"]},{\"[\\","b":[[1],{}]}"#, "{\"c\":\"日本\"}", "1e16", "\"x,]\"", "[ ]"]);
        assert_eq!(pieces.last(), Some(&Piece::Tail(b"\n]\n ".to_vec())));
        assert!(rest.is_empty());
    }

    #[test]
    fn a_document_that_is_no_array_is_the_rest() {
        let (pieces, rest) = pieces(&[b" {\"error\"", b":{}}"]);
        assert!(pieces.is_empty());
        assert_eq!(rest, b" {\"error\":{}}");
    }

    #[test]
    fn what_is_no_array_from_some_byte_on_is_the_rest() {
        for (whole, elements, left) in [("[{} {}]", 1, " {}]"), ("[,{}]", 0, "[,{}]"), ("[{},,{}]", 1, ",,{}]")] {
            let (pieces, rest) = pieces(&[whole.as_bytes()]);
            assert_eq!((pieces.len(), String::from_utf8_lossy(&rest).as_ref()), (elements, left), "{whole}");
        }
    }

    #[test]
    fn an_element_cut_short_is_the_rest() {
        let (pieces, rest) = pieces(&[b"[{}", b", {\"a\":\""]);
        assert_eq!(pieces.len(), 1);
        assert_eq!(rest, b", {\"a\":\"");
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_the_cuts(cuts in proptest::collection::vec(0usize..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|w| &STREAM.as_bytes()[w[0]..w[1]]).collect();
            let (cut, rest) = pieces(&chunks);
            prop_assert_eq!(&cut, &pieces(&[STREAM.as_bytes()]).0);
            prop_assert_eq!(glued(&cut), STREAM.as_bytes());
            prop_assert!(rest.is_empty());
        }
    }
}
