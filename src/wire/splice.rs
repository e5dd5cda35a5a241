//! `Edits`: ranges of a body and what stands there instead, applied into one
//! buffer. The ONLY maker of request bodies. NOT the meaning of the JSON.

use std::ops::Range;

/// Replacements in a text, in any order, not overlapping.
#[derive(Debug, Default)]
pub struct Edits {
    edits: Vec<(Range<usize>, String)>,
}

impl Edits {
    /// Nothing to change yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `text` stands where `range` stood.
    pub fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push((range, text.into()));
    }

    /// `text` stands before byte `at`; several insertions at one place keep the order they were made in.
    pub fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    /// Is there nothing to change?
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// The edited text. Every byte outside the edited ranges is the original's.
    ///
    /// An edit that overlaps an earlier one or leaves the text is dropped: the caller's spans come from one
    /// parse of this same text, so this never happens, and a wrong body must not come of it if it did.
    pub fn apply(mut self, body: &str) -> String {
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let grown: usize = self.edits.iter().map(|(_, text)| text.len()).sum();
        let mut out = String::with_capacity(body.len() + grown);
        let mut at = 0;
        for (range, text) in &self.edits {
            let Some(kept) = body.get(at..range.start) else { continue };
            if range.end < range.start || body.get(range.start..range.end).is_none() {
                continue;
            }
            out.push_str(kept);
            out.push_str(text);
            at = range.end;
        }
        out.push_str(body.get(at..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn insertions_at_one_place_keep_their_order() {
        let mut edits = Edits::new();
        edits.insert(1, "x");
        edits.insert(1, "y");
        edits.replace(1..2, "B");
        assert_eq!(edits.apply("abc"), "axyBc");
    }

    proptest! {
        #[test]
        fn no_edit_is_the_same_text(body in "\\PC{0,60}") {
            prop_assert_eq!(Edits::new().apply(&body), body);
        }

        #[test]
        fn every_byte_outside_the_range_stays(body in "[a-z]{1,60}", a in 0usize..60, b in 0usize..60, new in "\\PC{0,9}") {
            let (a, b) = (a.min(body.len()), b.min(body.len()));
            let range = a.min(b)..a.max(b);
            let mut edits = Edits::new();
            edits.replace(range.clone(), new.clone());
            let out = edits.apply(&body);
            prop_assert_eq!(&out[..range.start], &body[..range.start]);
            prop_assert_eq!(&out[range.start + new.len()..], &body[range.end..]);
        }
    }
}
